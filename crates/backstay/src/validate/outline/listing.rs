//! The values of an enum, kept so that one look says whether a value is among them.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

/// The members of an enum. Looking a word up takes the time of reading it, however many there are.
#[derive(Debug, Default)]
pub(in crate::validate) struct Listing {
    texts: HashSet<String>,
    /// Numbers by what they come to: `1` and `1.0` are one.
    numbers: HashSet<u64>,
    /// `null`, `false`, `true`.
    words: [bool; 3],
    /// Arrays and objects.
    composites: Vec<Value>,
    /// Folded word -> the one member that folds into it; `None`: several do.
    folded: OnceLock<HashMap<String, Option<String>>>,
}

impl Listing {
    pub(super) fn of<'v>(members: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut listing = Self::default();
        for member in members {
            match member {
                Value::Null => listing.words[0] = true,
                Value::Bool(truth) => listing.words[1 + usize::from(*truth)] = true,
                Value::Number(number) => {
                    listing.numbers.insert(size(number.as_f64()));
                }
                Value::String(text) => {
                    listing.texts.insert(text.clone());
                }
                Value::Array(_) | Value::Object(_) => listing.composites.push(member.clone()),
            }
        }
        listing
    }

    /// Whether a text is a member.
    pub(in crate::validate) fn has_text(&self, text: &str) -> bool {
        self.texts.contains(text)
    }

    /// Whether there is one member only, no array and no object.
    pub(super) fn is_one_word(&self) -> bool {
        let words = self.words.iter().filter(|has| **has).count();
        self.composites.is_empty() && self.texts.len() + self.numbers.len() + words == 1
    }

    /// Arrays and objects among the members: what asking for another costs.
    pub(in crate::validate) fn composites(&self) -> usize {
        self.composites.len()
    }

    /// Whether a value is a member by JSON Schema. Numbers that `f64` cannot tell apart are taken
    /// for one: an outline says less, never more.
    pub(in crate::validate) fn has(&self, value: &Value) -> bool {
        match value {
            Value::Null => self.words[0],
            Value::Bool(truth) => self.words[1 + usize::from(*truth)],
            Value::Number(number) => self.numbers.contains(&size(number.as_f64())),
            Value::String(text) => self.has_text(text),
            Value::Array(_) | Value::Object(_) => {
                self.composites.iter().any(|member| alike(member, value))
            }
        }
    }

    /// The one member that is the same as `word` but for case, width and other forms that Unicode
    /// holds for the same (NFKC), `-`, `_` and spaces. `None`: there is none, or more than one.
    pub(in crate::validate) fn only_folded(&self, word: &str) -> Option<&str> {
        self.only_like(&folded(word))
    }

    /// The same for a word that is [`folded`] already.
    pub(super) fn only_like(&self, folded: &str) -> Option<&str> {
        if folded.is_empty() {
            return None;
        }
        self.folded.get_or_init(|| self.fold_all()).get(folded)?.as_deref()
    }

    fn fold_all(&self) -> HashMap<String, Option<String>> {
        let mut all: HashMap<String, Option<String>> = HashMap::with_capacity(self.texts.len());
        for member in &self.texts {
            let place = all.entry(folded(member));
            place.and_modify(|only| *only = None).or_insert_with(|| Some(member.clone()));
        }
        all
    }
}

/// What a number comes to, as one word: `0` and `-0` are one, and so are all that are too large.
pub(super) fn size(number: Option<f64>) -> u64 {
    // Adding zero takes the sign off a zero.
    number.map_or(u64::MAX, |number| (number + 0.0).to_bits())
}

/// Whether two values may be the same by JSON Schema. The parser bounds the depth.
pub(super) fn alike(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => size(one.as_f64()) == size(two.as_f64()),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| alike(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            let same = |(key, value)| two.get(key).is_some_and(|other| alike(value, other));
            one.len() == two.len() && one.iter().all(same)
        }
        _ => one == two,
    }
}

/// A word without what [`Listing::only_folded`] does not look at.
pub(super) fn folded(word: &str) -> String {
    let plain = |letter: &char| !matches!(letter, '-' | '_') && !letter.is_whitespace();
    // Once more after the small letters: some of them have another form again.
    word.nfkc().flat_map(char::to_lowercase).nfkc().filter(plain).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(members: &Value) -> Listing {
        Listing::of(members.as_array().unwrap())
    }

    #[test]
    fn a_word_folds_into_exactly_one_member_or_into_none() {
        let listed = listing(&json!(["IN_PROGRESS", "on-hold", "onhold", 3, "Café", "x²"]));
        for (word, member) in [
            ("in progress", Some("IN_PROGRESS")),
            ("In-Progress", Some("IN_PROGRESS")),
            ("ＩＮ＿ＰＲＯＧＲＥＳＳ", Some("IN_PROGRESS")),
            ("On Hold", None),
            ("in progres", None),
            ("3", None),
            ("", None),
            ("-_ ", None),
            // An accent of its own, a superscript, a ligature and a wide space.
            ("CAFE\u{301}", Some("Café")),
            ("X2", Some("x²")),
            ("in\u{3000}progreſs", Some("IN_PROGRESS")),
            ("cafe", None),
        ] {
            assert_eq!(listed.only_folded(word), member, "{word}");
        }
    }

    #[test]
    fn a_value_is_listed_as_json_schema_compares_it() {
        let listed = listing(&json!(["a", 1.0, null, true, {"k": [1]}]));
        for (value, expected) in [
            (json!("a"), true),
            (json!("A"), false),
            (json!(1), true),
            (json!(2), false),
            (json!(null), true),
            (json!(true), true),
            (json!(false), false),
            (json!({"k": [1.0]}), true),
            (json!({"k": []}), false),
            (json!([1]), false),
        ] {
            assert_eq!(listed.has(&value), expected, "{value}");
        }
    }
}
