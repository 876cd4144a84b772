//! What the route wants done about a field that breaks the schema: another value, or nothing.

use std::ops::Range;

use jsonmend::{Node, ValueKind};
use serde_json::Value;

use super::cursor::Cursor;
use super::splice::{Splice, spliced};
use super::{check, declared};
use crate::policy::{Field, OnFail};
use crate::validate::outline::Outline;
use crate::validate::syntax::Parsed;
use crate::validate::{Candidate, Edit, EditKind, Problem, Schema, Unfit};

/// How often fallbacks may uncover further problems.
const ROUNDS: usize = 3;

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
        let Some(candidate) = unfit.candidate.clone() else { return Err(unfit) };
        let Candidate { text, edits } = *candidate;
        let Some(mut parsed) = Parsed::strict(text) else { return Err(unfit) };
        parsed.edits = edits;
        let outline = schema.outline();
        let plan = unfit.problems.iter().map(|problem| order(problem, fields, outline, asking));
        let Some(orders) = plan.collect::<Option<Vec<Order>>>() else { return Err(unfit) };
        let mut changed = false;
        for (order, problem) in orders.into_iter().zip(&unfit.problems) {
            match order {
                Order::Flag => {}
                Order::Take(pointer, value) => {
                    let kind = if problem.rule == "enum" && problem.at == pointer {
                        EditKind::EnumFallback
                    } else {
                        EditKind::FieldFallback
                    };
                    let Some(next) = placed(&parsed, &pointer, &value, kind) else {
                        return Err(unfit);
                    };
                    parsed = next;
                    changed = true;
                }
            }
        }
        if !changed {
            return Ok(flagged(parsed, &unfit.problems));
        }
        match check(&parsed, schema) {
            Ok(()) => return Ok(parsed),
            Err(left) => unfit = with_orders(left.about(parsed), fields),
        }
    }
    Err(unfit)
}

/// What is done about one problem.
enum Order {
    /// It is let through.
    Flag,
    /// The value at this pointer is put in place.
    Take(String, Value),
}

/// `None`: nothing can be done about it here.
fn order(problem: &Problem, fields: &[Field], outline: &Outline, asking: Asking) -> Option<Order> {
    match (problem.on_fail, asking) {
        (OnFail::Flag, _) => return Some(Order::Flag),
        (OnFail::Reject, _) | (OnFail::Reask, Asking::Open) => return None,
        (OnFail::Fallback, _) | (OnFail::Reask, Asking::Spent) => {}
    }
    above(&problem.at).find_map(|pointer| {
        let value = declared(pointer, fields, outline.at(pointer))?;
        Some(Order::Take(pointer.to_owned(), value.clone()))
    })
}

/// The problems with what the route wants done about each.
fn with_orders(mut unfit: Unfit, fields: &[Field]) -> Unfit {
    for problem in &mut unfit.problems {
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

fn flagged(mut parsed: Parsed, problems: &[Problem]) -> Parsed {
    parsed.edits.extend(
        problems
            .iter()
            .map(|problem| Edit::of_value(EditKind::Flagged, &problem.at, "", &problem.message)),
    );
    parsed
}

/// `parsed` with `value` at `pointer`, where there is something already or a key can be added.
fn placed(parsed: &Parsed, pointer: &str, value: &Value, kind: EditKind) -> Option<Parsed> {
    let spot = found(parsed, pointer)?;
    let text = value.to_string();
    let before = parsed.text.get(spot.span.clone()).unwrap_or_default();
    let edit = Edit::of_value(kind, pointer, before, &text);
    let splice = Splice { span: spot.span, after: spot.before + &text };
    let mut made = Parsed::strict(spliced(&parsed.text, &[splice]))?;
    made.edits.clone_from(&parsed.edits);
    made.edits.push(edit);
    Some(made)
}

/// Where a value goes, and what has to stand before it.
struct Spot {
    span: Range<usize>,
    before: String,
}

fn found(parsed: &Parsed, pointer: &str) -> Option<Spot> {
    let mut cursor = Cursor::new(&parsed.text);
    let mut node = parsed.root()?;
    for (depth, step) in pointer.split('/').enumerate().skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let is_last = pointer.split('/').count() == depth + 1;
        node = match node.kind() {
            ValueKind::Array => item(node, &mut cursor, step.parse().ok()?)?,
            ValueKind::Object => match member(node, &mut cursor, &step) {
                Ok(value) => value,
                Err(end) if is_last => {
                    let comma = if node.is_empty() { "" } else { ", " };
                    let before = format!("{comma}{}: ", Value::from(step));
                    return Some(Spot { span: end..end, before });
                }
                Err(_) => return None,
            },
            ValueKind::Null | ValueKind::Boolean | ValueKind::Number | ValueKind::String => {
                return None;
            }
        };
    }
    Some(Spot { span: cursor.value(), before: String::new() })
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
