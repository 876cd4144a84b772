//! One thing that is wrong with a reply, as a model is told it.

use std::fmt;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, Value};

use crate::validate::Unfit;

/// One thing that is wrong with a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Where, as a JSON pointer into the reply. `None`: the reply as a whole.
    pub pointer: Option<String>,
    /// What was asked of it there: the layer or the keyword, and nothing of the reply's own words.
    pub rule: String,
    /// One sentence for the model.
    pub message: String,
}

impl Complaint {
    /// What is wrong with a reply. Never empty.
    pub fn all(unfit: &Unfit) -> Vec<Self> {
        let layer = unfit.layer.name();
        if unfit.errors.is_empty() {
            let message = format!("the reply failed the check of its {layer}");
            return vec![Self { pointer: None, rule: layer.to_owned(), message }];
        }
        let complaint = |error: &String| {
            let (pointer, told) = match error.split_once(": ") {
                Some((pointer, told)) if pointer.starts_with('/') => (Some(pointer), told),
                _ => (None, error.as_str()),
            };
            Self {
                pointer: pointer.map(str::to_owned),
                rule: format!("{layer}: {}", without_quotes(told)),
                message: error.clone(),
            }
        };
        unfit.errors.iter().map(complaint).collect()
    }

    /// A number for a set of complaints. Two sets have the same when they are about the same places
    /// and rules, whatever the reply had there and in whichever order they came.
    pub fn kind(complaints: &[Self]) -> u64 {
        let mut places: Vec<(Option<&str>, &str)> =
            complaints.iter().map(|c| (c.pointer.as_deref(), c.rule.as_str())).collect();
        places.sort_unstable();
        places.dedup();
        let mut hasher = std::hash::DefaultHasher::new();
        places.hash(&mut hasher);
        hasher.finish()
    }
}

/// The sentence without what stands in single quotes after its first word, and without numbers: the
/// reply's own words are there.
fn without_quotes(told: &str) -> String {
    let mut kept = String::with_capacity(told.len());
    for (at, piece) in told.split('\'').enumerate() {
        // A name that begins the sentence says where; later ones are values.
        if at % 2 == 0 || at == 1 && kept.is_empty() || kept == "missing " {
            kept.extend(piece.chars().filter(|c| !c.is_ascii_digit()));
        }
    }
    kept
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// In a template a complaint prints as its sentence and has the fields `pointer`, `rule` and
/// `message`.
impl Object for Complaint {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        Some(match key.as_str()? {
            "pointer" => Value::from(self.pointer.as_deref().unwrap_or_default()),
            "rule" => Value::from(self.rule.as_str()),
            "message" => Value::from(self.message.as_str()),
            _ => return None,
        })
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["pointer", "rule", "message"])
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use backstay_decide::fault::Fault;

    use super::*;
    use crate::validate::Layer;

    fn kind(errors: &[&str]) -> u64 {
        let errors = errors.iter().map(|error| (*error).to_owned()).collect();
        Complaint::kind(&Complaint::all(&Unfit::new(Fault::SchemaError, Layer::Schema, errors)))
    }

    #[test]
    fn errors_are_the_same_by_place_and_rule_not_by_what_the_reply_had_there() {
        let wrong = kind(&["category 'payments' not in enum"]);
        assert_eq!(wrong, kind(&["category 'refunds' not in enum"]));
        assert_ne!(wrong, kind(&["kind 'payments' not in enum"]));
        assert_ne!(wrong, kind(&["'category' should be str"]));
        let two = kind(&["missing 'a'", "/items/0: missing 'b'"]);
        assert_eq!(two, kind(&["/items/0: missing 'b'", "missing 'a'"]));
        assert_ne!(two, kind(&["missing 'a'", "/items/1: missing 'b'"]));
        assert_ne!(two, kind(&["missing 'a'"]));
        assert_ne!(kind(&["missing 'a'"]), kind(&["missing 'b'"]));
        assert_eq!(
            kind(&["Expecting ',' delimiter at char 212"]),
            kind(&["Expecting ',' delimiter at char 9"]),
        );
    }
}
