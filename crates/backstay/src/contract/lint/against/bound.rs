//! Limits on numbers, lengths and counts, and keywords that can only be told to have changed.

use serde_json::Value;

use super::{Breaks, ChangeKind, Compare, Side, Spot};
use crate::contract::lint::clipped;

/// Limits from below: a larger one leaves less.
const LOWER: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];

/// Limits from above: a smaller one leaves less.
const UPPER: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];

/// Keywords of which it can be told that they came or went, but not which of two leaves more.
const PLAIN: [&str; 3] = ["pattern", "multipleOf", "contains"];

/// Keywords that hold schemas in ways that are not compared.
const RULES: [&str; 10] = [
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "propertyNames",
    "minContains",
    "maxContains",
    "unevaluatedItems",
];

impl<'s> Compare<'s> {
    pub(super) fn bounds(&mut self, old: &Spot<'s>, new: &Spot<'s>) {
        for keyword in LOWER {
            self.bound(keyword, old, new, |was, is| is > was);
        }
        for keyword in UPPER {
            self.bound(keyword, old, new, |was, is| is < was);
        }
        for keyword in PLAIN {
            self.plain(keyword, old, new);
        }
        let is_set = |spot: &Spot<'_>| spot.get("uniqueItems") == Some(&Value::Bool(true));
        match (is_set(old), is_set(new)) {
            (false, true) => self.tightened(new, "`uniqueItems` is new".into()),
            (true, false) => self.loosened(new, "`uniqueItems` is gone".into()),
            _ => {}
        }
        // A format asserts nothing when a reply is checked, but readers go by it.
        let format = |spot: &Spot<'s>| spot.get("format");
        match (format(old), format(new)) {
            (was, is) if was == is => {}
            (None, _) => {}
            (Some(was), is) => {
                let is = is.map_or("none".to_owned(), told);
                let message = format!("`format` was {}, now it is {is}", told(was));
                self.note(ChangeKind::Loosened, Breaks::Readers, (Side::New, &new.at), message);
            }
        }
    }

    fn bound(
        &mut self,
        keyword: &str,
        old: &Spot<'s>,
        new: &Spot<'s>,
        is_tighter: impl Fn(f64, f64) -> bool,
    ) {
        let number = |spot: &Spot<'s>| spot.get(keyword).filter(|bound| bound.is_number());
        let value = |bound: &Value| bound.as_f64().unwrap_or_default();
        match (number(old), number(new)) {
            (None, None) => {}
            (None, Some(is)) => self.tightened(new, format!("`{keyword}` is new: {is}")),
            (Some(was), None) => {
                self.loosened(new, format!("`{keyword}` is gone, it was {was}"));
            }
            (Some(was), Some(is)) => {
                let message = format!("`{keyword}` was {was}, now it is {is}");
                if is_tighter(value(was), value(is)) {
                    self.tightened(new, message);
                } else if is_tighter(value(is), value(was)) {
                    self.loosened(new, message);
                }
            }
        }
    }

    fn plain(&mut self, keyword: &str, old: &Spot<'s>, new: &Spot<'s>) {
        match (old.get(keyword), new.get(keyword)) {
            (was, is) if was == is => {}
            (None, Some(is)) => self.tightened(new, format!("`{keyword}` is new: {}", told(is))),
            (_, None) => self.loosened(new, format!("`{keyword}` is gone")),
            (Some(was), Some(is)) => {
                let message = format!("`{keyword}` was {}, now it is {}", told(was), told(is));
                self.note(ChangeKind::RuleChanged, Breaks::Both, (Side::New, &new.at), message);
            }
        }
    }

    /// Tells of keywords that are not compared.
    pub(super) fn rules(&mut self, old: &Spot<'s>, new: &Spot<'s>) {
        let changed: Vec<String> = RULES
            .iter()
            .filter(|keyword| old.get(keyword) != new.get(keyword))
            .map(|keyword| format!("`{keyword}`"))
            .collect();
        if !changed.is_empty() {
            let message = format!("changed, for better or worse: {}", changed.join(", "));
            self.note(ChangeKind::RuleChanged, Breaks::Both, (Side::New, &new.at), message);
        }
    }

    pub(super) fn tightened(&mut self, new: &Spot<'s>, message: String) {
        self.note(ChangeKind::Tightened, Breaks::Stored, (Side::New, &new.at), message);
    }

    pub(super) fn loosened(&mut self, new: &Spot<'s>, message: String) {
        self.note(ChangeKind::Loosened, Breaks::Readers, (Side::New, &new.at), message);
    }
}

fn told(value: &Value) -> String {
    clipped(&value.to_string())
}
