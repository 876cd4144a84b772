//! Says when a reply that is to be one JSON value has said it, and when it goes on with something else.
//!
//! Behind a value may come blanks and, where it stands in a fence, the end of that. Anything else is not
//! waited for. What goes on as a value does, with a comma, a colon, a closer or a quote, shows that the
//! value was closed too soon: then nothing is sure any more, and the reply is read to its end.

use super::Root;

/// Ticks of a fence.
const TICKS: u8 = 3;

/// How far a reply is that is to be one JSON value.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneValue {
    root: Root,
    state: State,
    /// Bytes of the reply so far.
    bytes: usize,
    /// Bytes of it up to the end of the value, or of its fence. Counts from [`Reached::Value`] on.
    kept: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Value,
    /// Behind it, and so many ticks of its fence's end.
    Behind(u8),
    More,
    Unsure,
}

/// What a reply has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The value is not complete, or nobody can say: read on.
    Part,
    /// The value is complete, and nothing came behind it but blanks and its fence.
    Value,
    /// Something else began behind it.
    More,
}

impl OneValue {
    /// Takes the next piece of the reply.
    pub fn feed(&mut self, piece: &str) -> Reached {
        let before = self.bytes;
        self.bytes += piece.len();
        let mut rest = piece.as_bytes();
        if self.state == State::Value {
            let Some(end) = self.root.feed(piece) else { return Reached::Part };
            (self.state, self.kept) = (State::Behind(0), before + end);
            rest = rest.get(end..).unwrap_or_default();
        }
        for (at, byte) in (self.bytes - rest.len()..).zip(rest) {
            self.state = self.after(*byte);
            if self.state == State::Behind(TICKS) && *byte == b'`' {
                self.kept = at + 1;
            }
        }
        self.reached()
    }

    /// Something other than text came: it belongs to no value.
    pub fn other(&mut self) -> Reached {
        self.state = match self.state {
            State::Value | State::Unsure => State::Unsure,
            State::Behind(_) | State::More => State::More,
        };
        self.reached()
    }

    /// What the reply has come to.
    pub fn reached(&self) -> Reached {
        match self.state {
            State::Value | State::Unsure => Reached::Part,
            State::Behind(_) => Reached::Value,
            State::More => Reached::More,
        }
    }

    /// Bytes that came behind the value and its fence. 0: none, or there is no value yet.
    pub fn behind(&self) -> usize {
        match self.reached() {
            Reached::Part => 0,
            Reached::Value | Reached::More => self.bytes - self.kept,
        }
    }

    fn after(&self, byte: u8) -> State {
        match (self.state, byte) {
            (State::Value | State::More | State::Unsure, _)
            | (State::Behind(0 | TICKS), b' ' | b'\t' | b'\n' | b'\r') => self.state,
            (State::Behind(0), b',' | b':' | b']' | b'}' | b'"') => State::Unsure,
            (State::Behind(ticks @ 0..TICKS), b'`') if self.root.is_fenced() => {
                State::Behind(ticks + 1)
            }
            (State::Behind(_), _) => State::More,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a reply comes to, and how much of it stands behind its value.
    fn read(text: &str) -> (Reached, usize) {
        let mut value = OneValue::default();
        (value.feed(text), value.behind())
    }

    #[test]
    fn a_reply_is_read_on_until_something_else_begins_behind_its_value() {
        use Reached::{More, Part, Value};
        for (text, reached) in [
            ("", (Part, 0)),
            ("{\"a\":1", (Part, 0)),
            ("{\"a\":1}", (Value, 0)),
            ("{\"a\":1} \r\n\t", (Value, 4)),
            ("[{}]\n\nI chose", (More, 9)),
            ("{}\u{a0}", (More, 2)),
            // A second value is something else.
            ("{\"a\":1}\n{\"a\":2}", (More, 8)),
            ("{\"a\":1}\nWait: {\"a\":2}", (More, 14)),
            // A fence, its end, and what is none.
            ("```json\n{}\n", (Value, 1)),
            ("```json\n{}\n``", (Value, 3)),
            ("```json\n{}\n```", (Value, 0)),
            ("```json\n{}\n```\n \n", (Value, 3)),
            ("```json\n{}\n```\nThis", (More, 5)),
            ("```json\n{}\n````", (More, 1)),
            ("```json\n{}\n`` x", (More, 5)),
            ("```json\n{}\nThis", (More, 5)),
            ("{}\n```", (More, 4)),
            // Closed too soon: the value goes on.
            ("{\"a\":{}},\"b\":1}", (Part, 0)),
            ("{\"a\":1}}", (Part, 0)),
            ("{\"a\":1} ]", (Part, 0)),
            ("{\"a\":1}\n:2", (Part, 0)),
            ("{\"a\":1}\"b\":2}", (Part, 0)),
            ("{\"a\":1}, and that is it", (Part, 0)),
            ("```json\n{}\n```, done", (More, 6)),
            // Never sure of a value.
            ("Here: {\"a\":1} done", (Part, 0)),
            ("\"text\" and more", (Part, 0)),
            ("12 and more", (Part, 0)),
        ] {
            assert_eq!(read(text), reached, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_text_ends_a_value_only_behind_it() {
        let mut value = OneValue::default();
        assert_eq!(value.feed("{}"), Reached::Value);
        assert_eq!((value.other(), value.behind()), (Reached::More, 0));
        assert_eq!(value.other(), Reached::More);
        let mut value = OneValue::default();
        assert_eq!(value.other(), Reached::Part);
        assert_eq!(value.feed("{} and more"), Reached::Part);
    }

    proptest! {
        #[test]
        fn any_split_of_a_reply_comes_to_the_same(
            text in "(```json\n)?\\{(\"a\":\\[1,\"\\}é\"\\])?\\}[ \n]{0,2}(```)?[ \n`]{0,2}[,\\]x`é\\{]{0,3}",
            cuts in proptest::collection::vec(0_usize..60, 0..6),
        ) {
            let mut value = OneValue::default();
            let mut from = 0;
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| text.is_char_boundary(*cut)).collect();
            cuts.sort_unstable();
            for cut in cuts.into_iter().chain([text.len()]) {
                value.feed(text.get(from..cut).unwrap_or_default());
                from = cut;
            }
            prop_assert_eq!((value.reached(), value.behind()), read(&text), "{}", text);
        }
    }
}
