//! Says why and where a text is not JSON, in the words of Python's `json`.
//!
//! `jsonmend` decides whether a text is JSON; this only words a refusal. Models have read Python's
//! messages often, and S2 prints them. What Python accepts and JSON does not (`NaN`) is
//! `Expecting value`.

use std::fmt::Write as _;
use std::ops::Range;

use backstay_wire::pointer;

/// The deepest nesting that is read: the limit of the policy.
const MAX_DEPTH: usize = 127;

/// Where a text stops being JSON, and why.
pub(super) struct Diagnosis {
    /// One line on why. Its position counts characters from 0.
    pub(super) words: String,
    /// In bytes.
    pub(super) at: usize,
    /// JSON Pointer to what is read there: a value, or the container that something lacks.
    pub(super) pointer: String,
}

/// Why `text` is not JSON. `None`: it is, as far as its grammar goes.
pub(super) fn of(text: &str) -> Option<Diagnosis> {
    let mut scan = Scan { bytes: text.as_bytes(), at: 0, open: Vec::new() };
    let Spot { what, at } = scan.document().err()?;
    let words = format!("{what} at char {}", characters(text, at));
    Some(Diagnosis { words, at, pointer: scan.pointer(text) })
}

struct Spot {
    what: &'static str,
    /// In bytes.
    at: usize,
}

/// The characters before byte `at`.
fn characters(text: &str, at: usize) -> usize {
    text.char_indices().take_while(|(start, _)| *start < at).count()
}

/// Reads JSON and builds nothing. Never steps back: linear in the text.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    open: Vec<Open>,
}

/// An open container.
struct Open {
    kind: Kind,
    step: Step,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Object,
    Array,
}

/// Where in a container the reading is.
#[derive(Clone)]
enum Step {
    /// Not at a value.
    Between,
    /// At the value of the key that stands there, in its quotes.
    Key(Range<usize>),
    Item(usize),
}

impl Scan<'_> {
    fn document(&mut self) -> Result<(), Spot> {
        self.space();
        loop {
            if self.value()? {
                continue;
            }
            if self.after_value()? {
                continue;
            }
            return if self.at == self.bytes.len() { Ok(()) } else { Err(self.spot("Extra data")) };
        }
    }

    /// Reads a scalar, or opens a container up to its first value. True: a value comes next.
    fn value(&mut self) -> Result<bool, Spot> {
        let (kind, end) = match self.peek() {
            Some(b'{') => (Kind::Object, b'}'),
            Some(b'[') => (Kind::Array, b']'),
            _ => return self.scalar().map(|()| false),
        };
        if self.open.len() >= MAX_DEPTH {
            return Err(self.spot("Nested too deeply"));
        }
        self.at += 1;
        self.space();
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        self.open.push(Open { kind, step: Step::Between });
        match kind {
            Kind::Object => self.key()?,
            Kind::Array => self.step(Step::Item(0)),
        }
        Ok(true)
    }

    /// Closes what ends after a value, or steps over a comma. True: a value comes next.
    fn after_value(&mut self) -> Result<bool, Spot> {
        loop {
            self.space();
            let Some(Open { kind, step }) = self.open.last() else { return Ok(false) };
            let (kind, step) = (*kind, step.clone());
            match (self.peek(), kind) {
                (Some(b'}'), Kind::Object) | (Some(b']'), Kind::Array) => {
                    self.at += 1;
                    self.open.pop();
                }
                (Some(b','), _) => {
                    self.at += 1;
                    self.space();
                    match step {
                        Step::Item(index) => self.step(Step::Item(index + 1)),
                        Step::Between | Step::Key(_) => self.key()?,
                    }
                    return Ok(true);
                }
                _ => {
                    self.step(Step::Between);
                    return Err(self.spot("Expecting ',' delimiter"));
                }
            }
        }
    }

    /// A key, its colon, and the space after it.
    fn key(&mut self) -> Result<(), Spot> {
        self.step(Step::Between);
        if self.peek() != Some(b'"') {
            return Err(self.spot("Expecting property name enclosed in double quotes"));
        }
        let start = self.at;
        self.string()?;
        self.step(Step::Key(start..self.at));
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.spot("Expecting ':' delimiter"));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    /// Goes to another place in the innermost container.
    fn step(&mut self, step: Step) {
        if let Some(open) = self.open.last_mut() {
            open.step = step;
        }
    }

    /// Where the reading is in `text`.
    fn pointer(&self, text: &str) -> String {
        let mut pointer = String::new();
        for Open { step, .. } in &self.open {
            // Writing to a `String` cannot fail.
            let _ = match step {
                Step::Between => break,
                Step::Item(index) => write!(pointer, "/{index}"),
                Step::Key(key) => {
                    let quoted = text.get(key.clone()).unwrap_or_default();
                    let key: String = serde_json::from_str(quoted).unwrap_or_default();
                    write!(pointer, "/{}", pointer::escape(&key))
                }
            };
        }
        pointer
    }

    fn scalar(&mut self) -> Result<(), Spot> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.first() == Some(&b'"') {
            return self.string();
        }
        let literals: [&[u8]; 3] = [b"null", b"true", b"false"];
        let literal = literals.iter().find(|word| rest.starts_with(word)).map(|word| word.len());
        match literal.or_else(|| number(rest)) {
            Some(length) => self.at += length,
            None => return Err(self.spot("Expecting value")),
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Spot> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(Spot { what: "Unterminated string starting", at: start }),
                Some(b'"') => break,
                Some(b'\\') => self.escape(start)?,
                Some(byte) if byte < 0x20 => return Err(self.spot("Invalid control character")),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self, start: usize) -> Result<(), Spot> {
        match self.bytes.get(self.at + 1) {
            None => Err(Spot { what: "Unterminated string starting", at: start }),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6).unwrap_or_default();
                if digits.len() < 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    let at = self.at + 1;
                    return Err(Spot { what: "Invalid \\uXXXX escape", at });
                }
                self.at += 6;
                Ok(())
            }
            Some(_) => Err(self.spot("Invalid \\escape")),
        }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn spot(&self, what: &'static str) -> Spot {
        Spot { what, at: self.at }
    }
}

/// The length of the number at the start of `text`, without a fraction or exponent that is not
/// whole. `None`: no number stands there.
fn number(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let sign = usize::from(text.first() == Some(&b'-'));
    let whole = match text.get(sign) {
        Some(b'0') => 1,
        Some(b'1'..=b'9') => digits(sign),
        _ => return None,
    };
    let mut end = sign + whole;
    if text.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let power = digits(end + 1 + signed);
        if power > 0 {
            end += 1 + signed + power;
        }
    }
    Some(end)
}
