//! Puts checked text into a provider's own reply and leaves every other field as it came.

use backstay_wire::Dialect;
use bytes::Bytes;
use serde_json::Value;

/// `raw`, a reply of `dialect`, with `texts` in the place of what its choices say, by their index.
/// `None` where their place is not found: then the reply has to be written anew.
pub(super) fn retold(dialect: Dialect, raw: &[u8], texts: &[(usize, String)]) -> Option<Bytes> {
    let mut reply: Value = serde_json::from_slice(raw).ok()?;
    for (at, text) in texts {
        let place = match dialect {
            Dialect::OpenaiChat => {
                reply.get_mut("choices")?.get_mut(*at)?.pointer_mut("/message/content")?
            }
            Dialect::Anthropic => only_text(reply.get_mut("content")?.as_array_mut()?)?,
        };
        if !place.is_string() {
            return None;
        }
        *place = Value::from(text.as_str());
    }
    serde_json::to_vec(&reply).ok().map(Bytes::from)
}

/// The text of the first text block; the others, whose words are part of the new text, are taken
/// out.
fn only_text(blocks: &mut Vec<Value>) -> Option<&mut Value> {
    let is_text = |block: &Value| block.get("type").is_some_and(|kind| kind == "text");
    let mut first = true;
    blocks.retain(|block| !is_text(block) || std::mem::take(&mut first));
    blocks.iter_mut().find(|block| is_text(block))?.get_mut("text")
}

#[cfg(test)]
mod tests {
    use backstay_wire::Dialect::{Anthropic, OpenaiChat};

    use super::retold;

    fn told(dialect: backstay_wire::Dialect, raw: &str, texts: &[(usize, &str)]) -> Option<String> {
        let texts: Vec<(usize, String)> =
            texts.iter().map(|(at, text)| (*at, (*text).to_owned())).collect();
        let bytes = retold(dialect, raw.as_bytes(), &texts)?;
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn only_the_text_changes_and_fields_not_known_here_stay() {
        let raw = r#"{"odd":[1,2],"choices":[{"message":{"content":"a","x":1}},{"message":{"content":"b"},"y":2}]}"#;
        assert_eq!(
            told(OpenaiChat, raw, &[(1, "B")]).unwrap(),
            r#"{"odd":[1,2],"choices":[{"message":{"content":"a","x":1}},{"message":{"content":"B"},"y":2}]}"#
        );
        let raw = r#"{"content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"odd":1}"#;
        assert_eq!(
            told(Anthropic, raw, &[(0, "A")]).unwrap(),
            r#"{"content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"A"}],"odd":1}"#
        );
    }

    #[test]
    fn a_reply_without_the_place_is_left_to_the_writer() {
        for (dialect, raw) in [
            (OpenaiChat, r#"{"choices":[]}"#),
            (OpenaiChat, r#"{"choices":[{"message":{"content":[{"type":"text"}]}}]}"#),
            (OpenaiChat, "[]"),
            (Anthropic, r#"{"content":[{"type":"tool_use"}]}"#),
            (Anthropic, r#"{"content":"text"}"#),
            (Anthropic, "no JSON"),
        ] {
            assert_eq!(told(dialect, raw, &[(0, "x")]), None, "{raw}");
        }
    }
}
