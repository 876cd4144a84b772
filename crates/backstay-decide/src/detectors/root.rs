//! Finds the place where a reply that is to be one JSON value is complete, so that nothing after it need be
//! waited or paid for.
//!
//! It is sure or it says nothing: the root is an object or an array, all of it is strict JSON, and before
//! it stand at most blanks and the first line of a code fence. What a reader would have to mend is never
//! complete here, since it may go on.

/// Nesting that is followed. A deeper reply is read to its end.
const DEEPEST: u32 = 120;
/// Bytes of a fence's first line, such as ` ```json `.
const FENCE_LINE: u8 = 24;

/// How much of a reply's root value is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Root {
    state: State,
    /// Open brackets, the innermost in the lowest bit: 1 is an object.
    open: u128,
    depth: u32,
    fenced: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Blanks so far.
    #[default]
    Before,
    /// In the first line of a fence, of so many bytes.
    Fence(u8),
    /// Between tokens.
    Next(Next),
    /// In a string; of a name or a value.
    Text(Role, Escape),
    Number(Number),
    /// In `true`, `false` or `null`: what is left of it.
    Word(&'static [u8]),
    Complete,
    /// Not strict JSON: never complete.
    Unsure,
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    Colon,
    CommaOrEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Name,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// So many hexadecimal digits are to come.
    Hex(u8),
}

/// Where in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Whole,
    Dot,
    Fraction,
    E,
    Sign,
    Exponent,
}

impl Root {
    /// Takes the next piece of the reply. Returns how many bytes of it belong to the value, if it ends there.
    pub fn feed(&mut self, piece: &str) -> Option<usize> {
        if matches!(self.state, State::Complete | State::Unsure) {
            return None;
        }
        let last = piece.bytes().position(|byte| {
            self.state = self.after(byte);
            matches!(self.state, State::Complete | State::Unsure)
        });
        last.filter(|_| self.is_complete()).map(|last| last + 1)
    }

    /// Whether the value is complete.
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Whether a fence was opened before the value.
    pub(super) fn is_fenced(&self) -> bool {
        self.fenced
    }

    fn after(&mut self, byte: u8) -> State {
        match self.state {
            State::Before if byte.is_ascii_whitespace() => State::Before,
            State::Before if byte == b'`' => {
                self.fenced = true;
                State::Fence(1)
            }
            State::Before => self.begin(byte),
            State::Fence(length) => fence(length, byte),
            State::Text(role, escape) => text(role, escape, byte),
            State::Word([first, rest @ ..]) if *first == byte => match rest {
                [] => State::Next(Next::CommaOrEnd),
                _ => State::Word(rest),
            },
            State::Number(number) => match digit(number, byte) {
                Some(number) => State::Number(number),
                None if number.may_end() => self.token(Next::CommaOrEnd, byte),
                None => State::Unsure,
            },
            State::Next(next) => self.token(next, byte),
            State::Word(_) | State::Complete | State::Unsure => State::Unsure,
        }
    }

    /// The state after `byte`, the first one of a token or a blank, where `next` may come.
    fn token(&mut self, next: Next, byte: u8) -> State {
        match (next, byte) {
            (_, b' ' | b'\t' | b'\n' | b'\r') => State::Next(next),
            (Next::ValueOrEnd | Next::CommaOrEnd, b']') => self.close(Bracket::Array),
            (Next::NameOrEnd | Next::CommaOrEnd, b'}') => self.close(Bracket::Object),
            (Next::CommaOrEnd, b',') => {
                State::Next(if self.open & 1 == 1 { Next::Name } else { Next::Value })
            }
            (Next::Colon, b':') => State::Next(Next::Value),
            (Next::Name | Next::NameOrEnd, b'"') => State::Text(Role::Name, Escape::None),
            (Next::Value | Next::ValueOrEnd, _) => self.value(byte),
            _ => State::Unsure,
        }
    }

    /// Begins a value with `byte`.
    fn value(&mut self, byte: u8) -> State {
        match byte {
            b'"' => State::Text(Role::Value, Escape::None),
            b't' => State::Word(b"rue"),
            b'f' => State::Word(b"alse"),
            b'n' => State::Word(b"ull"),
            b'-' => State::Number(Number::Minus),
            b'0' => State::Number(Number::Zero),
            b'1'..=b'9' => State::Number(Number::Whole),
            _ => self.begin(byte),
        }
    }

    /// Opens the bracket `byte`.
    fn begin(&mut self, byte: u8) -> State {
        let (bit, next) = match byte {
            b'{' => (1, Next::NameOrEnd),
            b'[' => (0, Next::ValueOrEnd),
            _ => return State::Unsure,
        };
        if self.depth == DEEPEST {
            return State::Unsure;
        }
        self.open = self.open << 1 | bit;
        self.depth += 1;
        State::Next(next)
    }

    fn close(&mut self, bracket: Bracket) -> State {
        if self.open & 1 != bracket as u128 {
            return State::Unsure;
        }
        self.open >>= 1;
        self.depth -= 1;
        if self.depth == 0 { State::Complete } else { State::Next(Next::CommaOrEnd) }
    }
}

#[derive(Clone, Copy, Debug)]
enum Bracket {
    Array = 0,
    Object = 1,
}

/// The state in a fence's first line after `byte`, when it had `length` bytes.
fn fence(length: u8, byte: u8) -> State {
    match (length, byte) {
        (1 | 2, b'`') => State::Fence(length + 1),
        (3.., b'\n') => State::Before,
        (3..FENCE_LINE, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b' ' | b'\r') => {
            State::Fence(length + 1)
        }
        _ => State::Unsure,
    }
}

fn text(role: Role, escape: Escape, byte: u8) -> State {
    let escape = match (escape, byte) {
        (Escape::None, b'"') => {
            return State::Next(match role {
                Role::Name => Next::Colon,
                Role::Value => Next::CommaOrEnd,
            });
        }
        (Escape::None, b'\\') => Escape::Begun,
        (Escape::None, 0x20..) => Escape::None,
        (Escape::Begun, b'u') => Escape::Hex(4),
        (Escape::Begun, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')
        | (Escape::Hex(1), _)
            if escape == Escape::Begun || byte.is_ascii_hexdigit() =>
        {
            Escape::None
        }
        (Escape::Hex(left @ 2..), _) if byte.is_ascii_hexdigit() => Escape::Hex(left - 1),
        _ => return State::Unsure,
    };
    State::Text(role, escape)
}

/// Where in the number `byte` leads. `None`: it does not belong to it.
const fn digit(number: Number, byte: u8) -> Option<Number> {
    use Number::{Dot, E, Exponent, Fraction, Minus, Sign, Whole, Zero};
    Some(match (number, byte) {
        (Minus, b'0') => Zero,
        (Minus, b'1'..=b'9') | (Whole, b'0'..=b'9') => Whole,
        (Zero | Whole, b'.') => Dot,
        (Dot | Fraction, b'0'..=b'9') => Fraction,
        (Zero | Whole | Fraction, b'e' | b'E') => E,
        (E, b'+' | b'-') => Sign,
        (E | Sign | Exponent, b'0'..=b'9') => Exponent,
        _ => return None,
    })
}

impl Number {
    const fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::Exponent)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn end(text: &str) -> Option<usize> {
        Root::default().feed(text)
    }

    #[test]
    fn a_value_is_complete_at_its_last_bracket() {
        assert_eq!(end("{\"a\": [1, -2.5e+3, \"}\\\"\\u00e9\"], \"b\": {}} thank you"), Some(41));
        assert_eq!(end(" \n[true,false,null,[]]x"), Some(22));
        assert_eq!(end("```json\n{\"a\":1}\n```"), Some(15));
        assert_eq!((end("[0]"), end("[-0]")), (Some(3), Some(4)));
        assert_eq!(end("```jsonabcdefghijk\n[]"), Some(21));
        assert_eq!(end("{\"a\": 1"), None);
        let mut root = Root::default();
        root.feed("[");
        assert!(!root.is_complete());
        root.feed("]");
        assert!(root.is_complete());
        assert_eq!(end("{\"a\": \"}"), None);
    }

    #[test]
    fn what_is_no_strict_json_is_never_complete() {
        for text in [
            "Here it is: {\"a\":1}",
            "{a: 1}",
            "{'a': 1}",
            "{\"a\": 1,}",
            "[1 2]",
            "[01]",
            "[1.]",
            "{\"a\" 1}",
            "[}",
            "{]",
            "[\"\\x\"]",
            "[\"\u{1}\"]",
            "[tru]",
            "[txue]",
            "[\"\\u123g\"]",
            "```jsonabcdefghijklmnopqrstuvwxyz\n[]",
            "[+1]",
            "12",
            "\"text\"",
            "[1,]",
            "{\"a\":1 /* b */}",
            "`{}`",
            "[\"\\u12g4\"]",
            "<think>{}</think>",
        ] {
            assert_eq!(end(text), None, "{text}");
        }
        assert_eq!(end(&"[".repeat(500)), None);
    }

    #[test]
    fn no_part_of_a_value_is_complete() {
        let text = "[{\"a\": [1, -2.5e+3, \"}\\\"\\u00e9日\"], \"b\": {}}, [[], true, null]]";
        for (cut, _) in text.char_indices() {
            assert_eq!(end(text.split_at(cut).0), None, "{cut}");
        }
        assert_eq!(end(text), Some(text.len()));
    }

    proptest! {
        #[test]
        fn the_end_is_where_a_parser_finds_it(text in "[\\[\\]{}:,\"a1.e\\-\\\\ nul]{0,24}", cut in 0_usize..24) {
            let first = serde_json::Deserializer::from_str(&text).into_iter::<Box<RawValue>>().next();
            let is_root = first.and_then(Result::ok).is_some_and(|value| value.get().starts_with(['[', '{']));
            let (one, other) = text.split_at(cut.min(text.len()));
            let mut root = Root::default();
            root.feed(one);
            root.feed(other);
            prop_assert_eq!(root.is_complete(), is_root, "{}", text);
        }
    }
}
