//! Finds values in a JSON text by where they stand, and puts others in their place; every byte
//! beside them stays as it is.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON value inside a larger text, by its bytes there. Without space around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    text: &'a str,
    start: usize,
}

/// One change of a text: what is put in the place of some of its bytes.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The bytes that go; empty for an insertion.
    pub(super) span: Range<usize>,
    /// What stands there then.
    pub(super) text: String,
}

impl<'a> Found<'a> {
    /// The whole of `raw`. `None`: it is no JSON.
    pub(super) fn root(raw: &'a [u8]) -> Option<Self> {
        let whole = std::str::from_utf8(raw).ok()?;
        let value: &RawValue = serde_json::from_str(whole).ok()?;
        let start = whole.len() - whole.trim_ascii_start().len();
        Some(Self { text: value.get(), start })
    }

    /// The value as it is written.
    pub(super) fn text(self) -> &'a str {
        self.text
    }

    /// Where it stands in the whole text.
    pub(super) fn span(self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// The value under `key`, the last where it is repeated. `None` where there is none, where it is
    /// null, and in what is no object.
    pub(super) fn member(self, key: &str) -> Option<Self> {
        self.member_or_null(key).filter(|found| found.text != "null")
    }

    /// As [`Found::member`]; null is a value like any other.
    pub(super) fn member_or_null(self, key: &str) -> Option<Self> {
        let members: Members<'a> = serde_json::from_str(self.text).ok()?;
        let (_, value) = members.0.into_iter().rev().find(|(name, _)| *name == key)?;
        self.inner(value.get())
    }

    /// The items of an array. `None`: it is none.
    pub(super) fn items(self) -> Option<Vec<Self>> {
        let items: Vec<&'a RawValue> = serde_json::from_str(self.text).ok()?;
        items.into_iter().map(|item| self.inner(item.get())).collect()
    }

    /// Whether it is this string.
    pub(super) fn is(self, word: &str) -> bool {
        serde_json::from_str::<Text<'_>>(self.text).is_ok_and(|text| text.0 == word)
    }

    pub(super) fn is_string(self) -> bool {
        self.text.starts_with('"')
    }

    /// The value replaced by `json`.
    pub(super) fn replaced(self, json: String) -> Change {
        Change { span: self.span(), text: json }
    }

    /// `json` as the value under `key` of an object, in the place of the one that is there or as its
    /// first. `None`: it is no object.
    pub(super) fn with(self, key: &str, json: &str) -> Option<Change> {
        if let Some(found) = self.member_or_null(key) {
            return Some(found.replaced(json.to_owned()));
        }
        self.with_all(&[(key, json.to_owned())])
    }

    /// `members`, none of which an object has, as its first. `None`: there are none, or it is no object.
    pub(super) fn with_all(self, members: &[(&str, String)]) -> Option<Change> {
        let inside = self.text.strip_prefix('{').filter(|_| !members.is_empty())?;
        let told = members.iter().map(|(key, json)| {
            let key = serde_json::Value::from(*key);
            format!("{key}:{json}")
        });
        let told = told.collect::<Vec<_>>().join(",");
        let comma = if inside.trim_ascii_start() == "}" { "" } else { "," };
        let at = self.start + 1;
        Some(Change { span: at..at, text: format!("{told}{comma}") })
    }

    /// A part of this value's text, where `serde` found it.
    fn inner(self, text: &'a str) -> Option<Self> {
        let offset = text.as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        let is_inside = offset + text.len() <= self.text.len();
        is_inside.then_some(Self { text, start: self.start + offset })
    }
}

/// `raw` with all of `changes` made, in any order. `None`: two of them meet, or one is not inside.
pub(super) fn changed(raw: &[u8], mut changes: Vec<Change>) -> Option<Vec<u8>> {
    changes.sort_by_key(|change| (change.span.start, change.span.end));
    let added: usize = changes.iter().map(|change| change.text.len()).sum();
    let mut made = Vec::with_capacity(raw.len() + added);
    let mut from = 0;
    for Change { span, text } in &changes {
        made.extend_from_slice(raw.get(from..span.start)?);
        made.extend_from_slice(text.as_bytes());
        from = span.end;
    }
    made.extend_from_slice(raw.get(from..)?);
    Some(made)
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of an object in their order, repeated ones too.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(key), value)) = map.next_entry()? {
                    members.push((key, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(All)
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Found, changed};

    #[test]
    fn values_are_found_where_they_stand_and_the_last_of_a_repeated_key_counts() {
        let raw = " {\"a\": [1.10, {\"\\u0062\" : \"x\"} ], \"a\":\t[2, {\"b\":\"\\u0079\"}]}\n";
        let root = Found::root(raw.as_bytes()).unwrap();
        let items = root.member("a").unwrap().items().unwrap();
        assert_eq!(
            items.iter().map(|item| item.text()).collect::<Vec<_>>(),
            ["2", r#"{"b":"\u0079"}"#]
        );
        let b = items.last().unwrap().member("b").unwrap();
        assert!(b.is("y") && b.is_string());
        assert_eq!(raw.get(b.span()), Some(r#""\u0079""#));
        assert_eq!(raw.get(root.span()), Some(raw.trim()));
        assert!(root.member("c").is_none() && root.items().is_none());
    }

    #[test]
    fn changes_are_made_in_any_order_and_never_over_each_other() {
        let change = |span, text: &str| Change { span, text: text.to_owned() };
        let made =
            changed(b"0123456", vec![change(5..6, "x"), change(1..1, "y"), change(2..4, "")]);
        assert_eq!(made.as_deref(), Some(&b"0y14x6"[..]));
        assert_eq!(changed(b"0123456", vec![change(1..4, ""), change(2..5, "")]), None);
        assert_eq!(changed(b"01", vec![change(1..3, "")]), None);
    }

    #[test]
    fn a_member_is_replaced_where_it_is_and_added_where_it_is_not() {
        for (raw, told) in [
            ("{ }", r#"{"k":1 }"#),
            (r#"{"a":2}"#, r#"{"k":1,"a":2}"#),
            (r#"{"a":2,"k": null}"#, r#"{"a":2,"k": 1}"#),
        ] {
            let change = Found::root(raw.as_bytes()).unwrap().with("k", "1").unwrap();
            assert_eq!(changed(raw.as_bytes(), vec![change]).as_deref(), Some(told.as_bytes()));
        }
        assert!(Found::root(b"[]").unwrap().with("k", "1").is_none());
    }
}
