//! Says why and where a text is not JSON, in the words of Python's `json`.
//!
//! `jsonmend` decides whether a text is JSON; this only words a refusal. Models have read Python's
//! messages often, and S2 prints them. What Python accepts and JSON does not (`NaN`) is
//! `Expecting value`.

/// The deepest nesting that is read: the limit of the policy.
const MAX_DEPTH: usize = 127;

/// Where a text stops being JSON.
struct Spot {
    what: &'static str,
    /// In bytes.
    at: usize,
}

/// One line on why `text` is not JSON. Positions count characters from 0. `None`: it is JSON as far
/// as its grammar goes.
pub(super) fn words(text: &str) -> Option<String> {
    let spot = (Scan { bytes: text.as_bytes(), at: 0 }).document().err()?;
    Some(format!("{} at char {}", spot.what, characters(text, spot.at)))
}

/// The characters before byte `at`.
fn characters(text: &str, at: usize) -> usize {
    text.char_indices().take_while(|(start, _)| *start < at).count()
}

/// Reads JSON and builds nothing. Never steps back: linear in the text.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// What an open container still lacks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Object,
    Array,
}

impl Scan<'_> {
    fn document(&mut self) -> Result<(), Spot> {
        self.space();
        let mut open = Vec::new();
        loop {
            if self.value(&mut open)? {
                continue;
            }
            if self.after_value(&mut open)? {
                continue;
            }
            return if self.at == self.bytes.len() { Ok(()) } else { Err(self.spot("Extra data")) };
        }
    }

    /// Reads a scalar, or opens a container up to its first value. True: a value comes next.
    fn value(&mut self, open: &mut Vec<Open>) -> Result<bool, Spot> {
        let (kind, end) = match self.peek() {
            Some(b'{') => (Open::Object, b'}'),
            Some(b'[') => (Open::Array, b']'),
            _ => return self.scalar().map(|()| false),
        };
        if open.len() >= MAX_DEPTH {
            return Err(self.spot("Nested too deeply"));
        }
        self.at += 1;
        self.space();
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        open.push(kind);
        if kind == Open::Object {
            self.key()?;
        }
        Ok(true)
    }

    /// Closes what ends after a value, or steps over a comma. True: a value comes next.
    fn after_value(&mut self, open: &mut Vec<Open>) -> Result<bool, Spot> {
        loop {
            self.space();
            let Some(kind) = open.last().copied() else { return Ok(false) };
            match (self.peek(), kind) {
                (Some(b'}'), Open::Object) | (Some(b']'), Open::Array) => {
                    self.at += 1;
                    open.pop();
                }
                (Some(b','), _) => {
                    self.at += 1;
                    self.space();
                    if kind == Open::Object {
                        self.key()?;
                    }
                    return Ok(true);
                }
                _ => return Err(self.spot("Expecting ',' delimiter")),
            }
        }
    }

    /// A key, its colon, and the space after it.
    fn key(&mut self) -> Result<(), Spot> {
        if self.peek() != Some(b'"') {
            return Err(self.spot("Expecting property name enclosed in double quotes"));
        }
        self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.spot("Expecting ':' delimiter"));
        }
        self.at += 1;
        self.space();
        Ok(())
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
