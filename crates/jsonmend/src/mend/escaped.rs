//! Reads a document whose every quote is escaped once more, as if cut out of a string.

use super::Mender;
use crate::edit::{Change, Kind, spliced};
use crate::hypothesis::Ended;
use crate::lex::space;
use crate::parse::{Doubt, Parser};
use crate::tape::build::{Builder, Reach, Step};

/// The document at `start`, if it is escaped throughout and strict once one level is taken off.
pub(super) fn read(mender: &Mender<'_>, parser: &Parser<'_>, start: usize) -> Option<Ended> {
    let bytes = parser.bytes;
    let mut first = space::skip(bytes, start + 1);
    while bytes.get(first..first + 2) == Some(b"\\n") {
        first = space::skip(bytes, first + 2);
    }
    if bytes.get(first..first + 2) != Some(b"\\\"") {
        return None;
    }
    let mut changes = Vec::new();
    let mut in_string = false;
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'\\', Some(b'"')) => {
                changes.push(Change::new(Kind::EscapedDocument, at..at + 1, ""));
                in_string = !in_string;
                at += 2;
            }
            (b'\\', Some(b'\\')) => {
                changes.push(Change::new(Kind::EscapedDocument, at..at + 1, ""));
                // What is escaped inside belongs to the string there.
                let is_inner = bytes.get(at + 2..at + 4) == Some(b"\\\"");
                if is_inner {
                    changes.push(Change::new(Kind::EscapedDocument, at + 2..at + 3, ""));
                }
                at += if is_inner { 4 } else { 2 };
            }
            (b'\\', Some(b'n' | b'r' | b't')) if !in_string => {
                changes.push(Change::new(Kind::EscapedDocument, at..at + 2, " "));
                at += 2;
            }
            (b'\\', _) => at += 2,
            (b'"', _) => return None,
            (b'{' | b'[', _) if !in_string => {
                depth += 1;
                at += 1;
            }
            (b'}' | b']', _) if !in_string => {
                depth = depth.saturating_sub(1);
                at += 1;
                if depth == 0 {
                    break;
                }
            }
            _ => at += 1,
        }
        if changes.len() > mender.policy.limits.edits {
            return None;
        }
    }
    let inner = parser.raw.get(..at)?;
    let text = spliced(inner, &changes, &[]);
    let mut builder = Builder::new(mender.policy.limits.depth);
    builder.skip_to(start);
    (builder.run(text.as_bytes(), Reach::Whole) == Step::Done).then_some(Ended {
        changes,
        cost: 0,
        doubt: Doubt::None,
        doubt_at: start,
        end: at,
        cut: false,
    })
}
