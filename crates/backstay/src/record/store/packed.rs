//! Rows on their way to the file, packed one after the other into one buffer.
//!
//! A row has some twenty texts. Handed over as they are, each would be freed by the writing thread,
//! and memory freed by another thread than its own costs more than the row does; packed, a row is
//! one copy into a buffer that is used again.

use super::brief;
use crate::record::Row;

/// What a row is in its table, in the order of the columns.
pub(super) const COLUMNS: [&str; 30] = [
    "call_id",
    "at_ms",
    "route",
    "model",
    "dialect",
    "streamed",
    "caller",
    "tenant",
    "fingerprint",
    "prompt_version",
    "outcome",
    "code",
    "target",
    "tier",
    "attempts",
    "provider_request_id",
    "finish",
    "validation",
    "latency_ms",
    "first_token_ms",
    "input_tokens",
    "output_tokens",
    "at_least",
    "trail",
    "edits",
    "would",
    "cost",
    "cost_at_least",
    "booked_tokens",
    "simulated",
];

/// The value of one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Field<'a> {
    /// A whole number.
    Whole(i64),
    /// A number.
    Real(f64),
    /// A text's bytes.
    Text(&'a [u8]),
}

/// Rows, packed.
#[derive(Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    rows: usize,
}

impl Packed {
    /// One row.
    pub(super) fn of(row: &Row) -> Self {
        let mut packed = Self { bytes: Vec::with_capacity(640), rows: 1 };
        packed.text(&row.call_id);
        packed.whole(row.at_ms);
        packed.text(&row.route);
        packed.text(&row.model);
        packed.text(&row.dialect);
        packed.whole(row.streamed.into());
        packed.text(&row.caller);
        packed.text(&row.tenant);
        packed.text(&row.fingerprint);
        packed.text(&row.prompt_version);
        packed.text(&row.outcome);
        packed.text(&row.code);
        packed.text(&row.target);
        packed.whole(row.tier.into());
        packed.whole(row.attempts.into());
        packed.text(&row.provider_request_id);
        packed.text(&row.finish);
        packed.text(&row.validation);
        packed.real(row.latency_ms);
        packed.real(row.first_token_ms);
        packed.whole(row.input_tokens);
        packed.whole(row.output_tokens);
        packed.whole(row.at_least.into());
        packed.trail(row);
        packed.text(&row.edits);
        packed.text(&row.would);
        packed.text(&row.cost);
        packed.whole(row.cost_at_least.into());
        packed.whole(row.booked_tokens);
        packed.text(&row.simulated);
        packed
    }

    /// How many rows it holds.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// How many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds the rows of `other`.
    pub(super) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.rows += other.rows;
    }

    /// Forgets all rows and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows = 0;
    }

    /// All fields of all rows, row by row.
    pub(super) fn fields(&self) -> Fields<'_> {
        Fields { rest: &self.bytes }
    }

    /// A number over the file's range is kept as its greatest.
    fn whole(&mut self, number: u64) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.bytes.push(0);
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn real(&mut self, number: f64) {
        self.bytes.push(1);
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.bytes.push(2);
        self.bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// The trail as a text, written where it stands then.
    fn trail(&mut self, row: &Row) {
        self.text("");
        let start = self.bytes.len();
        brief::write(row, &mut self.bytes);
        let length = (self.bytes.len() - start) as u64;
        if let Some(place) = self.bytes.get_mut(start - 8..start) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }
}

/// The fields of packed rows.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let (kind, rest) = self.rest.split_first()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        self.rest = rest;
        match kind {
            0 => Some(Field::Whole(i64::from_le_bytes(*number))),
            1 => Some(Field::Real(f64::from_le_bytes(*number))),
            _ => {
                let length = usize::try_from(u64::from_le_bytes(*number)).ok()?;
                let (text, rest) = rest.split_at_checked(length)?;
                self.rest = rest;
                Some(Field::Text(text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, Field, Packed};
    use crate::record::Row;

    #[test]
    fn every_row_has_a_field_for_every_column_and_they_come_back_in_order() {
        let mut all = Packed::default();
        for id in ["first", ""] {
            let row = Row {
                call_id: id.into(),
                latency_ms: 1.5,
                input_tokens: u64::MAX,
                target: "größer".into(),
                ..Row::default()
            };
            all.append(&Packed::of(&row));
        }
        assert_eq!(all.rows(), 2);
        let fields: Vec<Field<'_>> = all.fields().collect();
        assert_eq!(fields.len(), 2 * COLUMNS.len());
        assert_eq!(fields[0], Field::Text(b"first"));
        assert_eq!(fields[COLUMNS.len()], Field::Text(b""));
        let at = |name| COLUMNS.iter().position(|column| *column == name).unwrap();
        assert_eq!(fields[at("latency_ms")], Field::Real(1.5));
        assert_eq!(fields[at("input_tokens")], Field::Whole(i64::MAX));
        assert_eq!(fields[at("target")], Field::Text("größer".as_bytes()));
        all.clear();
        assert_eq!((all.rows(), all.fields().count()), (0, 0));
    }
}
