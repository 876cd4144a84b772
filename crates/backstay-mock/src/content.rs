//! The content of a message: text, or a list of parts, read in one pass without copying.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// What a message holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// One part; whatever else it holds is not looked at.
#[derive(Debug, PartialEq, serde::Deserialize)]
pub(crate) struct Part<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(default, deserialize_with = "lenient")]
    text: Option<String>,
}

/// A part's text; anything that is no text counts as none.
fn lenient<'de, D: Deserializer<'de>>(source: D) -> Result<Option<String>, D::Error> {
    let value = serde_json::Value::deserialize(source)?;
    Ok(if let serde_json::Value::String(text) = value { Some(text) } else { None })
}

impl Content<'_> {
    /// The text, parts joined by a line break; none when there is no text at all.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone().into_owned()),
            Self::Parts(parts) => {
                let texts: Vec<&str> = parts.iter().filter_map(|p| p.text.as_deref()).collect();
                (!texts.is_empty()).then(|| texts.join("\n"))
            }
        }
    }

    pub(crate) fn has_tool_result(&self) -> bool {
        matches!(self, Self::Parts(parts) if parts.iter().any(|p| p.kind == "tool_result"))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content<'de>, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = list.next_element()? {
            parts.push(part);
        }
        Ok(Content::Parts(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Content<'_> {
        serde_json::from_str(json).expect("content")
    }

    #[test]
    fn text_is_found_in_both_forms() {
        assert_eq!(read(r#""plain""#), Content::Text(Cow::Borrowed("plain")));
        assert_eq!(read(r#""a\nb""#).text().as_deref(), Some("a\nb"));
        let parts = r#"[{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"a\"b"},
            {"type":"text","text":"c"},{"type":"odd","text":7}]"#;
        assert_eq!(read(parts).text().as_deref(), Some("a\"b\nc"));
        assert_eq!(read("[]").text(), None);
    }

    #[test]
    fn a_tool_result_is_a_part_and_not_a_word() {
        let result = r#"[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text"}]}]"#;
        assert!(read(result).has_tool_result());
        assert!(!read(r#"[{"type":"text","text":"\"tool_result\""}]"#).has_tool_result());
        assert!(!read(r#""tool_result""#).has_tool_result());
    }

    #[test]
    fn other_kinds_of_content_are_errors() {
        for json in ["7", "true", "{}", "[7]", r#"["text"]"#] {
            assert!(serde_json::from_str::<Content<'_>>(json).is_err(), "{json}");
        }
    }
}
