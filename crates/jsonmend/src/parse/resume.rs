//! Makes the state of reading that a strict beginning of a document leads to.

use super::{Expect, Frame, Last, Parser, Reading, Shape};
use crate::tape::{Rewound, Tag, Word};

impl Parser<'_> {
    /// The reading of the words of a strict parse that was taken back.
    pub(crate) fn resume(&self, words: &[Word], rewound: &Rewound) -> Option<Reading> {
        let mut reading = Reading::new(rewound.end);
        let mut open = rewound.open.iter().peekable();
        // Where each container on the stack ends: `None` for one that is still open.
        let mut ends: Vec<Option<usize>> = Vec::new();
        for (place, word) in words.iter().enumerate() {
            while ends.pop_if(|end| *end == Some(place)).is_some() {
                reading.shut(0);
            }
            let in_object = reading.frames.last().is_some_and(|frame| frame.is_object());
            if in_object && reading.expect != Expect::Value {
                reading.expect = Expect::Value;
                continue;
            }
            match word.tag() {
                tag @ (Tag::Object | Tag::Array) => {
                    let shape = if tag == Tag::Object { Shape::Object } else { Shape::Array };
                    let is_open = open.next_if(|inner| inner.word == place);
                    let start = is_open.map_or(0, |inner| inner.start);
                    reading.frames.push(Frame::new(shape, start));
                    reading.expect = Expect::Element;
                    ends.push(if is_open.is_some() { None } else { Some(word.wide()) });
                }
                Tag::Plain | Tag::Escaped => reading.valued(Last::String, 0),
                Tag::Null | Tag::False | Tag::True | Tag::Number => reading.valued(Last::Bare, 0),
            }
        }
        while ends.pop_if(|end| *end == Some(words.len())).is_some() {
            reading.shut(0);
        }
        let is_whole = open.next().is_none() && reading.frames.len() == rewound.open.len();
        is_whole.then_some(())?;
        self.place(&mut reading, words, rewound)?;
        Some(reading)
    }

    /// Sets what the words do not tell: the offsets.
    fn place(&self, reading: &mut Reading, words: &[Word], rewound: &Rewound) -> Option<()> {
        for (outer, inner) in rewound.open.iter().zip(rewound.open.get(1..)?) {
            let depth = rewound.open.iter().position(|open| open.word == outer.word)?;
            let mut start = inner.start;
            if outer.is_object {
                // Its key is the word before it; the offset is that of the quote.
                start = words.get(inner.word.checked_sub(1)?)?.span().0 - 1;
            }
            let mark = self.mark_before(start)?;
            let is_comma = self.byte(mark) == Some(b',');
            reading.frames.get_mut(depth)?.member = if is_comma { mark } else { start };
        }
        let mark = rewound.mark;
        let frame = reading.frames.last_mut()?;
        let is_object = frame.is_object();
        reading.at = mark + 1;
        reading.comma = mark;
        frame.member = mark;
        reading.expect = match (self.byte(mark)?, is_object) {
            (b',', true) => Expect::Key,
            (b',', false) => Expect::Again,
            (_, true) => Expect::Member,
            (_, false) => Expect::Element,
        };
        reading.value_end = rewound.end;
        reading.value_start = rewound.end;
        if self.byte(mark) == Some(b',') && reading.last != Last::Container {
            let (start, _) = words.last()?.span();
            reading.value_start = start - usize::from(reading.last == Last::String);
        }
        Some(())
    }

    fn mark_before(&self, at: usize) -> Option<usize> {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        self.bytes.get(..at)?.iter().rposition(|byte| !is_space(byte))
    }
}
