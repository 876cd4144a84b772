//! Says where a reading could not go on, in words.

use super::quote::Quote;
use super::{Expect, Parser, Reading};
use crate::halt::{Halt, excerpt};

/// The state of a reading before the step that it did not survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stuck {
    pub(crate) at: usize,
    cost: u32,
    expect: Expect,
    /// Quote and inside of the open string.
    string: Option<(Quote, usize)>,
    value: (usize, usize),
    comma: usize,
    /// The closer that the innermost container needs.
    closer: Option<u8>,
}

impl Stuck {
    pub(crate) fn of(reading: &Reading) -> Self {
        Self {
            at: reading.at,
            cost: reading.cost,
            expect: reading.expect,
            string: reading.string.map(|open| (open.quote, open.start)),
            value: (reading.value_start, reading.value_end),
            comma: reading.comma,
            closer: reading.frames.last().map(|frame| frame.closer()),
        }
    }

    /// Says whether this one tells more: it came further, or as far with fewer assumptions.
    pub(crate) fn is_beyond(&self, other: &Self) -> bool {
        (self.at, other.cost) > (other.at, self.cost)
    }
}

impl Parser<'_> {
    pub(crate) fn halt(&self, stuck: &Stuck) -> Halt {
        if let Some((quote, start)) = stuck.string {
            return self.halt_in_string(stuck, quote, start);
        }
        let at = self.peek(stuck.at);
        let (behind, expected) = match stuck.expect {
            Expect::Root | Expect::Done => (String::new(), "an object or a list"),
            Expect::Element => ("after `[`".to_owned(), "a value or `]`"),
            Expect::Again => (self.behind_comma(stuck), "a value"),
            Expect::Value => ("after a key and its colon".to_owned(), "a value"),
            Expect::Member => ("after `{`".to_owned(), "a key or `}`"),
            Expect::Key => (self.behind_comma(stuck), "a key"),
            Expect::Colon => ("after a key".to_owned(), "a colon"),
            Expect::Next => {
                let expected = match stuck.closer {
                    Some(b']') => "a comma or `]`",
                    Some(b')') => "a comma or `)`",
                    _ => "a comma or `}`",
                };
                (format!("after {}", self.value_before(stuck)), expected)
            }
        };
        Halt::new(self.raw, at, behind, expected)
    }

    fn behind_comma(&self, stuck: &Stuck) -> String {
        if self.byte(stuck.comma) == Some(b',') && stuck.value.1 <= stuck.comma {
            return format!("after {} and a comma", self.value_before(stuck));
        }
        format!("after {}", self.value_before(stuck))
    }

    /// `the value 1`; of a container there is only its end to show.
    fn value_before(&self, stuck: &Stuck) -> String {
        let (start, end) = stuck.value;
        let shown = if start < end { excerpt(self.slice(start, end)) } else { None };
        shown.map_or_else(|| "a value".to_owned(), |shown| format!("the value {shown}"))
    }

    /// A key whose quote is there and no colon behind it, or a string without an end.
    fn halt_in_string(&self, stuck: &Stuck, quote: Quote, start: usize) -> Halt {
        let is_key = matches!(stuck.expect, Expect::Member | Expect::Key);
        let opener = start.saturating_sub(quote.width());
        let shown = excerpt(self.rest_text(opener)).unwrap_or_default();
        if let Some(end) = self.quote_ahead(start, quote).filter(|_| is_key) {
            let at = self.peek(end);
            return Halt::new(self.raw, at, format!("after the key {shown}"), "a colon");
        }
        let behind = format!("in the string that begins with {shown}");
        Halt::new(self.raw, self.raw.len(), behind, "its closing quote")
    }

    fn rest_text(&self, at: usize) -> &str {
        self.slice(at, self.raw.len())
    }
}
