//! What the route wants done about a field that breaks the schema: another value, or nothing.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use backstay_wire::pointer;
use jsonmend::{Node, ValueKind};
use serde_json::Value;

use super::cursor::Cursor;
use super::splice::{Splice, spliced};
use super::{check, declared};
use crate::policy::{Field, OnFail};
use crate::validate::outline::Outline;
use crate::validate::syntax::Parsed;
use crate::validate::unfit::Extent;
use crate::validate::{Candidate, Edit, EditKind, Problem, Schema, Unfit};

/// How often fallbacks may uncover further problems.
const ROUNDS: usize = 3;

/// The most bytes read to find the places of fallbacks, each from the start of the text: 30 ms.
const MAX_SCANNED: usize = 32 * 1024 * 1024;

/// The most bytes looked at to find the alternatives around problems, for each the whole text. Past
/// it, fallbacks inside alternatives are not found.
const MAX_LOOKED_AT: usize = 1024 * 1024;

/// Whether the model may still be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::validate) enum Asking {
    /// It may: only what the route wants at once is done.
    Open,
    /// It may not: every declared fallback counts.
    Spent,
}

/// A reply that broke its schema, as the route's fields settle it: fallbacks in place, and what is
/// let through marked.
///
/// # Errors
/// Something is left, or the route rejects it. The problems say what the route wants.
pub(in crate::validate) fn settled(
    unfit: Unfit,
    schema: &Schema,
    fields: &[Field],
    asking: Asking,
) -> Result<Parsed, Unfit> {
    let mut unfit = with_orders(unfit, fields);
    for _ in 0..ROUNDS {
        // What is not known cannot be settled.
        if unfit.extent == Extent::Cut {
            return Err(unfit);
        }
        let Some(candidate) = unfit.candidate.clone() else { return Err(unfit) };
        let Candidate { text, edits } = *candidate;
        let Some(mut parsed) = Parsed::strict(text) else { return Err(unfit) };
        parsed.edits = edits;
        let Some(takes) = takes(&unfit, (schema.outline(), &parsed), fields, asking) else {
            return Err(unfit);
        };
        if takes.is_empty() {
            return Ok(flagged(parsed, unfit.each()));
        }
        let Some(made) = placed(&parsed, &takes) else { return Err(unfit) };
        match check(&made, schema) {
            Ok(()) => return Ok(made),
            Err(left) => unfit = with_orders(left.about(made), fields),
        }
    }
    Err(unfit)
}

/// The fallbacks that are put in place, by pointer; none inside another. `None`: nothing can be
/// done about some problem.
fn takes(
    unfit: &Unfit,
    said: (&Outline, &Parsed),
    fields: &[Field],
    asking: Asking,
) -> Option<BTreeMap<String, Take>> {
    let (outline, parsed) = said;
    let looked_at = unfit.each().count().saturating_mul(parsed.text.len());
    let root = parsed.root().filter(|_| looked_at <= MAX_LOOKED_AT);
    let mut takes = BTreeMap::new();
    for problem in unfit.each() {
        match order(problem, fields, (outline, root), asking)? {
            Order::Flag => {}
            Order::Take(pointer, value) => {
                let is_choice = problem.rule == "enum" && problem.at == pointer;
                let kind = if is_choice { EditKind::EnumFallback } else { EditKind::FieldFallback };
                takes.entry(pointer).or_insert(Take { value, kind });
            }
        }
    }
    let pointers: HashSet<String> = takes.keys().cloned().collect();
    takes.retain(|pointer, _| !above(pointer).skip(1).any(|outer| pointers.contains(outer)));
    Some(takes)
}

/// A fallback that is put in place.
struct Take {
    value: Value,
    kind: EditKind,
}

/// What is done about one problem.
enum Order {
    /// It is let through.
    Flag,
    /// The value at this pointer is put in place.
    Take(String, Value),
}

/// `None`: nothing can be done about it here.
fn order(
    problem: &Problem,
    fields: &[Field],
    (outline, root): (&Outline, Option<Node<'_>>),
    asking: Asking,
) -> Option<Order> {
    match (problem.on_fail, asking) {
        (OnFail::Flag, _) => return Some(Order::Flag),
        (OnFail::Reject, _) | (OnFail::Reask, Asking::Open) => return None,
        (OnFail::Fallback, _) | (OnFail::Reask, Asking::Spent) => {}
    }
    let places = outline.along(root, &problem.at);
    above(&problem.at).zip(places.iter().rev()).find_map(|(pointer, place)| {
        let value = declared(pointer, fields, outline.spot(*place))?;
        Some(Order::Take(pointer.to_owned(), value.clone()))
    })
}

/// The problems with what the route wants done about each.
fn with_orders(mut unfit: Unfit, fields: &[Field]) -> Unfit {
    for problem in unfit.each_mut() {
        let field = above(&problem.at)
            .find_map(|pointer| fields.iter().find(|field| field.at.matches(pointer)));
        problem.on_fail = field.map_or(OnFail::Reask, |field| field.on_fail);
    }
    unfit
}

/// A pointer and those of the values around it, the innermost first.
fn above(pointer: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(pointer), |inner| inner.rsplit_once('/').map(|(outer, _)| outer))
}

fn flagged<'p>(mut parsed: Parsed, problems: impl Iterator<Item = &'p Problem>) -> Parsed {
    parsed.edits.extend(
        problems
            .map(|problem| Edit::of_value(EditKind::Flagged, &problem.at, "", &problem.message)),
    );
    parsed
}

/// `parsed` with each value at its pointer, where there is something already or a key can be added.
/// `None`: there is not, or finding the places takes too long.
fn placed(parsed: &Parsed, takes: &BTreeMap<String, Take>) -> Option<Parsed> {
    if takes.len().saturating_mul(parsed.text.len()) > MAX_SCANNED {
        return None;
    }
    let mut spots = Vec::with_capacity(takes.len());
    for (pointer, take) in takes {
        spots.push((found(parsed, pointer)?, pointer, take));
    }
    spots.sort_by_key(|(spot, ..)| spot.span.start);
    let mut edits = parsed.edits.clone();
    let mut splices = Vec::with_capacity(spots.len());
    // Where a key was added to an empty object: the next one there needs a comma.
    let mut filled = None;
    for (Spot { span, added }, pointer, Take { value, kind }) in spots {
        let text = value.to_string();
        let before = parsed.text.get(span.clone()).unwrap_or_default();
        edits.push(Edit::of_value(*kind, pointer, before, &text));
        let front = match added {
            None => String::new(),
            Some(Added { key, around }) => {
                let first = around == Around::Empty && filled != Some(span.start);
                filled = Some(span.start);
                format!("{}{}: ", if first { "" } else { ", " }, Value::from(key))
            }
        };
        splices.push(Splice { span, after: front + &text });
    }
    let mut made = Parsed::strict(spliced(&parsed.text, &splices))?;
    made.edits = edits;
    Some(made)
}

/// Where a value goes.
struct Spot {
    span: Range<usize>,
    /// The key that has to stand before it.
    added: Option<Added>,
}

/// A key that is not there yet.
struct Added {
    key: String,
    around: Around,
}

/// The object that a key is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    Empty,
    Filled,
}

fn found(parsed: &Parsed, pointer: &str) -> Option<Spot> {
    let mut cursor = Cursor::new(&parsed.text);
    let mut node = parsed.root()?;
    for (depth, step) in pointer.split('/').enumerate().skip(1) {
        let step = pointer::unescape(step);
        let is_last = pointer.split('/').count() == depth + 1;
        node = match node.kind() {
            ValueKind::Array => item(node, &mut cursor, step.parse().ok()?)?,
            ValueKind::Object => match member(node, &mut cursor, &step) {
                Ok(value) => value,
                Err(end) if is_last => {
                    let around = if node.is_empty() { Around::Empty } else { Around::Filled };
                    let added = Some(Added { key: step.into_owned(), around });
                    return Some(Spot { span: end..end, added });
                }
                Err(_) => return None,
            },
            ValueKind::Null | ValueKind::Boolean | ValueKind::Number | ValueKind::String => {
                return None;
            }
        };
    }
    Some(Spot { span: cursor.value(), added: None })
}

fn item<'t>(node: Node<'t>, cursor: &mut Cursor<'_>, wanted: usize) -> Option<Node<'t>> {
    let item = node.items().nth(wanted)?;
    cursor.step();
    for _ in 0..wanted {
        cursor.value();
        cursor.skip_space();
        cursor.step();
    }
    Some(item)
}

/// The member with this key, the cursor at its value; or where the last member ends.
fn member<'t>(node: Node<'t>, cursor: &mut Cursor<'_>, wanted: &str) -> Result<Node<'t>, usize> {
    cursor.step();
    let mut end = cursor.at();
    for (index, (key, value)) in node.members().enumerate() {
        if index > 0 {
            cursor.skip_space();
            cursor.step();
        }
        cursor.value();
        cursor.skip_space();
        cursor.step();
        if key == wanted {
            return Ok(value);
        }
        end = cursor.value().end;
    }
    Err(end)
}
