//! Checks at the end of a stream that what was committed is in the document.

use std::borrow::Cow;

use crate::outcome::Document;
use crate::tape::{Node, Tape, ValueKind};

/// Says whether the document begins with what the tape has.
pub(super) fn keeps(sure: &Tape, document: &Document, raw: &str) -> bool {
    let Some(sure) = sure.view(raw) else { return true };
    let Some(root) = document.root(raw) else { return false };
    let mut pairs = vec![(sure, root)];
    while let Some((part, whole)) = pairs.pop() {
        if part.kind() != whole.kind() {
            return false;
        }
        match part.kind() {
            ValueKind::Array => {
                let items: Vec<Node<'_>> = whole.items().collect();
                for (spot, item) in part.items().enumerate() {
                    let Some(twin) = items.get(spot) else { return false };
                    pairs.push((item, *twin));
                }
            }
            ValueKind::Object => {
                let mut members = whole.members();
                for (key, value) in part.members() {
                    let Some(twin) = find(&mut members, whole, &key) else { return false };
                    pairs.push((value, twin));
                }
            }
            _ => {
                if !part.same(whole) {
                    return false;
                }
            }
        }
    }
    true
}

/// The member with this key: the next one as a rule, else wherever it is.
fn find<'t>(
    members: &mut impl Iterator<Item = (Cow<'t, str>, Node<'t>)>,
    whole: Node<'t>,
    key: &str,
) -> Option<Node<'t>> {
    match members.next() {
        Some((name, value)) if name == key => Some(value),
        _ => whole.get(key),
    }
}
