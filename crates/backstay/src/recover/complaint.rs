//! One thing that is wrong with a reply, as a model is told it.

use std::fmt;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, Value};

use crate::validate::{Problem, Unfit};

/// One thing that is wrong with a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Where, as a JSON pointer into the reply. `None`: the reply as a whole.
    pub pointer: Option<String>,
    /// What is broken there: a keyword of the schema, a rule's name, or a word such as `ambiguous`.
    pub rule: String,
    /// One sentence for the model.
    pub message: String,
}

impl Complaint {
    /// What is wrong with a reply. Never empty.
    pub fn all(unfit: &Unfit) -> Vec<Self> {
        if unfit.problems.is_empty() {
            let layer = unfit.layer.name();
            let message = format!("the reply failed the check of its {layer}");
            return vec![Self { pointer: None, rule: layer.to_owned(), message }];
        }
        let complaint = |problem: &Problem| Self {
            pointer: (!problem.at.is_empty()).then(|| problem.at.clone()),
            rule: problem.rule.clone().into_owned(),
            message: problem.message.clone(),
        };
        unfit.problems.iter().map(complaint).collect()
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

/// The sentence, with its place in front where it does not say it itself.
impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pointer {
            Some(pointer) if !self.message.starts_with('/') => {
                write!(f, "{pointer}: {}", self.message)
            }
            Some(_) | None => f.write_str(&self.message),
        }
    }
}

/// In a template a complaint prints as it is displayed and has the fields `pointer`, `rule` and
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
        fmt::Display::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use backstay_decide::fault::Fault;

    use super::*;
    use crate::validate::Layer;

    fn all(problems: &[(&'static str, &'static str, &'static str)]) -> Vec<Complaint> {
        let problem = |&(at, rule, message)| Problem::new(at, rule, message);
        let problems = problems.iter().map(problem).collect();
        Complaint::all(&Unfit::of(Fault::SchemaError, Layer::Schema, problems))
    }

    #[test]
    fn errors_are_the_same_by_place_and_rule_not_by_what_the_reply_had_there() {
        let kind = |problems: &[_]| Complaint::kind(&all(problems));
        let wrong = kind(&[("/kind", "enum", "kind 'payments' not in enum")]);
        assert_eq!(wrong, kind(&[("/kind", "enum", "kind 'refunds' not in enum")]));
        assert_ne!(wrong, kind(&[("/sort", "enum", "sort 'payments' not in enum")]));
        assert_ne!(wrong, kind(&[("/kind", "type", "'kind' should be str")]));
        let (a, b) = (("/a", "required", "missing 'a'"), ("/i/0/b", "required", "missing 'b'"));
        assert_eq!(kind(&[a, b]), kind(&[b, a]));
        assert_eq!(kind(&[a, b]), kind(&[a, b, a]));
        assert_ne!(kind(&[a, b]), kind(&[a]));
        assert_ne!(kind(&[a, b]), kind(&[a, ("/i/1/b", "required", "missing 'b'")]));
    }

    #[test]
    fn a_place_is_told_once() {
        let told = all(&[
            ("/kind", "enum", "kind 'x' not in enum"),
            ("/i/0/b", "type", "/i/0/b: 'b' should be int"),
            ("", "not_json", "Expecting value at char 0"),
        ]);
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "/kind: kind 'x' not in enum",
                "/i/0/b: 'b' should be int",
                "Expecting value at char 0"
            ]
        );
    }
}
