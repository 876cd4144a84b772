//! Puts checked text into a provider's own reply and leaves every other field as it came.

use backstay_wire::Dialect;
use bytes::Bytes;
use serde_json::Value;

use super::amended::Amended;
use crate::validate::NewArguments;

/// `raw`, a reply of `dialect`, with what was amended in the place of what its choices say. `None`
/// where a place is not found: then the reply has to be written anew.
pub(super) fn retold(dialect: Dialect, raw: &[u8], amended: &[Amended]) -> Option<Bytes> {
    let mut reply: Value = serde_json::from_slice(raw).ok()?;
    for Amended { at, text, arguments } in amended {
        let said = match dialect {
            Dialect::OpenaiChat => reply.get_mut("choices")?.get_mut(*at)?.get_mut("message")?,
            Dialect::Anthropic => reply.get_mut("content")?,
        };
        for new in arguments {
            put_arguments(dialect, said, new)?;
        }
        let Some(text) = text else { continue };
        let place = match dialect {
            Dialect::OpenaiChat => said.get_mut("content")?,
            Dialect::Anthropic => only_text(said.as_array_mut()?)?,
        };
        if !place.is_string() {
            return None;
        }
        *place = Value::from(text.as_str());
    }
    serde_json::to_vec(&reply).ok().map(Bytes::from)
}

/// Puts new arguments into the call they belong to. `None`: it is not found.
fn put_arguments(dialect: Dialect, said: &mut Value, new: &NewArguments) -> Option<()> {
    match dialect {
        Dialect::OpenaiChat => {
            let call = said.get_mut("tool_calls")?.get_mut(new.call)?;
            let place = call.get_mut("function")?.get_mut("arguments")?;
            *place = Value::from(new.text.as_str());
        }
        Dialect::Anthropic => {
            let is_call = |block: &&mut Value| block.get("type").is_some_and(|t| t == "tool_use");
            let block = said.as_array_mut()?.iter_mut().filter(is_call).nth(new.call)?;
            *block.get_mut("input")? = serde_json::from_str(&new.text).ok()?;
        }
    }
    Some(())
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

    use super::{Amended, NewArguments, retold};

    fn told(dialect: backstay_wire::Dialect, raw: &str, texts: &[(usize, &str)]) -> Option<String> {
        let amended = |(at, text): &(usize, &str)| Amended {
            at: *at,
            text: Some((*text).to_owned()),
            arguments: Vec::new(),
        };
        let texts: Vec<Amended> = texts.iter().map(amended).collect();
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
    fn new_arguments_go_to_the_call_they_belong_to() {
        let new = |call| NewArguments { part: call, call, text: r#"{"q":2}"#.to_owned() };
        let amended = [Amended { at: 0, text: None, arguments: vec![new(1)] }];
        let raw = r#"{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"a","arguments":"{}"}},{"function":{"name":"b","arguments":"{q:2}"},"x":1}]}}]}"#;
        assert_eq!(
            retold(OpenaiChat, raw.as_bytes(), &amended).unwrap(),
            r#"{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"a","arguments":"{}"}},{"function":{"name":"b","arguments":"{\"q\":2}"},"x":1}]}}]}"#
        );
        let raw = r#"{"content":[{"type":"text","text":"a"},{"type":"tool_use","input":{}},{"type":"tool_use","input":{"q":"2"},"x":1}]}"#;
        assert_eq!(
            retold(Anthropic, raw.as_bytes(), &amended).unwrap(),
            r#"{"content":[{"type":"text","text":"a"},{"type":"tool_use","input":{}},{"type":"tool_use","input":{"q":2},"x":1}]}"#
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
