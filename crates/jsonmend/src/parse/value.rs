//! Starts a value: a container, a string, or something without marks.

use super::quote::Quote;
use super::{Doubt, Expect, Frame, Parser, Reading, Shape, cost};
use crate::edit::Kind;
use crate::guide::Types;

impl Parser<'_> {
    pub(super) fn value(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        let at = reading.at;
        let Some(byte) = self.byte(at) else { return };
        let is_again = reading.expect == Expect::Again;
        if matches!(reading.expect, Expect::Element | Expect::Again)
            && let Some(frame) = reading.frames.last_mut()
        {
            frame.member = if is_again { reading.comma } else { at };
        }
        if is_again {
            self.guide_lost(&reading, out);
        }
        match byte {
            b'}' | b']' | b')' => self.closer_for_value(reading, byte, out),
            b',' if matches!(reading.expect, Expect::Element | Expect::Again) => {
                // An element may have stood there.
                reading.change(Kind::ElidedItem, at, at + 1, "");
                reading.elide();
                if self.byte(at + 1) == Some(b'/') || self.opens_oddly(self.peek(at + 1)) {
                    // A comment right there may be the text that was lost.
                    reading.doubted(Doubt::Always);
                }
                reading.at += 1;
                out.push(reading);
            }
            b'{' => self.open(reading, Shape::Object, 1, out),
            b'[' => self.open(reading, Shape::Array, 1, out),
            b'(' if reading.expect != Expect::Root => {
                reading.change(Kind::Tuple, at, at + 1, "[");
                reading.cost += cost::UNQUOTED;
                self.open(reading, Shape::Tuple, 1, out);
            }
            b':' if reading.expect == Expect::Value
                && at.checked_sub(1).and_then(|before| self.byte(before)) == Some(b':') =>
            {
                reading.change(Kind::WrongColon, at, at + 1, "");
                reading.cost += 1;
                reading.at += 1;
                out.push(reading);
            }
            _ => match (Quote::at(self.rest(at)), self.fullwidth(at)) {
                (Some((quote, _)), _) => self.quoted(reading, quote, out),
                (None, Some((mark @ (b'{' | b'['), width))) => {
                    let (shape, after) =
                        if mark == b'{' { (Shape::Object, "{") } else { (Shape::Array, "[") };
                    reading.change(Kind::Fullwidth, at, at + width, after);
                    self.open(reading, shape, width, out);
                }
                (None, Some(_)) => {}
                (None, None) => self.bare(reading, out),
            },
        }
    }

    fn closer_for_value(&self, mut reading: Reading, byte: u8, out: &mut Vec<Reading>) {
        match reading.expect {
            // An empty container; one closed by another's mark may have lost what was in it.
            Expect::Element
                if reading.frames.last().is_some_and(|frame| frame.closer() == byte) =>
            {
                self.close_container(reading, out);
            }
            Expect::Again => {
                let comma = reading.comma;
                if self.byte(comma) == Some(b',') {
                    reading.change(Kind::TrailingComma, comma, comma + 1, "");
                    reading.expect = Expect::Next;
                    out.push(reading);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn open(
        &self,
        mut reading: Reading,
        shape: Shape,
        width: usize,
        out: &mut Vec<Reading>,
    ) {
        if reading.frames.len() >= self.policy.limits.depth {
            self.deep.set(true);
            return;
        }
        let start = reading.at;
        let place = self.place_of_value(&reading);
        let is_object = matches!(shape, Shape::Object | Shape::Doubled);
        self.guide_type(&mut reading, if is_object { Types::OBJECT } else { Types::ARRAY });
        reading.frames.push(Frame { place, ..Frame::new(shape, start) });
        reading.at += width;
        reading.expect = if shape == Shape::Object { Expect::Member } else { Expect::Element };
        out.push(reading);
    }

    fn quoted(&self, mut reading: Reading, quote: Quote, out: &mut Vec<Reading>) {
        let at = reading.at;
        self.guide_type(&mut reading, Types::STRING);
        let triple = match self.rest(at) {
            [b'"', b'"', b'"', ..] => Some(Quote::Triple),
            [b'\'', b'\'', b'\'', ..] => Some(Quote::TripleSingle),
            _ => None,
        };
        if let Some(quote) = triple {
            let mut triple = reading.clone();
            triple.cost += 1;
            triple.open_string(at, quote);
            out.push(triple);
        } else if quote == Quote::Double && self.is_doubled(at) {
            let mut doubled = reading.clone();
            if !doubled.doubles {
                // The only one may be a text in quotes.
                doubled.cost += cost::DOUBLED;
                doubled.doubted(Doubt::Always);
            }
            doubled.open_string(at, Quote::Doubled);
            out.push(doubled);
        }
        // `””`: two closing marks are an empty string only to somebody who wants one.
        if let [0xe2, 0x80, 0x9d | 0x99, 0xe2, 0x80, 0x98..=0x9f, ..] = self.rest(at) {
            reading.doubted(Doubt::Always);
        }
        reading.open_string(at, quote);
        out.push(reading);
    }
}
