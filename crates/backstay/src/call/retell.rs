//! Puts checked text into a provider's own reply and leaves every other byte as it came.

use backstay_wire::Dialect;
use bytes::Bytes;
use serde_json::Value;

use super::amended::Amended;
use super::places::{Change, Found, changed};
use crate::validate::NewArguments;

/// `raw`, a reply of `dialect`, with what was amended in the place of what its choices say. `None`
/// where a place is not found: then the reply has to be written anew.
pub(super) fn retold(dialect: Dialect, raw: &[u8], amended: &[Amended]) -> Option<Bytes> {
    let reply = Found::root(raw)?;
    let mut changes = Vec::new();
    for Amended { at, text, arguments } in amended {
        let said = match dialect {
            Dialect::OpenaiChat => reply.member("choices")?.items()?.get(*at)?.member("message")?,
            Dialect::Anthropic if *at == 0 => reply,
            Dialect::Anthropic => return None,
        };
        put_arguments(dialect, said, arguments, &mut changes)?;
        if let Some(text) = text {
            put_text(said.member("content")?, text, &mut changes)?;
        }
    }
    changed(raw, changes).map(Bytes::from)
}

/// Puts new arguments into the calls they belong to. `None`: one is not found.
fn put_arguments(
    dialect: Dialect,
    said: Found<'_>,
    arguments: &[NewArguments],
    changes: &mut Vec<Change>,
) -> Option<()> {
    if arguments.is_empty() {
        return Some(());
    }
    let calls = match dialect {
        Dialect::OpenaiChat => functions(said),
        Dialect::Anthropic => said.member("content")?.items()?,
    };
    let is_call = |call: &Found<'_>| match dialect {
        Dialect::OpenaiChat => true,
        Dialect::Anthropic => call.member("type").is_some_and(|kind| kind.is("tool_use")),
    };
    let calls: Vec<Found<'_>> = calls.into_iter().filter(is_call).collect();
    for new in arguments {
        let call = calls.get(new.call)?;
        changes.push(match dialect {
            Dialect::OpenaiChat => call.with("arguments", &quoted(&new.text))?,
            // As it is written: a number keeps its digits.
            Dialect::Anthropic => call.with("input", &new.text)?,
        });
    }
    Some(())
}

/// The functions that a message calls, in the order of the reader of replies: calls of another kind
/// are none of them, and the older `function_call` is the last.
fn functions(message: Found<'_>) -> Vec<Found<'_>> {
    let calls = message.member("tool_calls").and_then(Found::items).unwrap_or_default();
    let functions = calls.into_iter().filter_map(|call| call.member("function"));
    functions.chain(message.member("function_call")).collect()
}

/// Puts the text in the place of what `content` says. In a list the first text takes all of it, and
/// the others, whose words are part of it, go.
fn put_text(content: Found<'_>, text: &str, changes: &mut Vec<Change>) -> Option<()> {
    if content.is_string() {
        changes.push(content.replaced(quoted(text)));
        return Some(());
    }
    let items = content.items()?;
    let is_text = |item: &Found<'_>| {
        let is = |word| item.member("type").is_some_and(|kind| kind.is(word));
        is("text") || is("output_text")
    };
    let first = items.iter().position(is_text)?;
    let place = items.get(first)?.member("text").filter(|place| place.is_string())?;
    changes.push(place.replaced(quoted(text)));
    for pair in items.get(first..)?.windows(2) {
        let [before, item] = pair else { continue };
        if is_text(item) {
            let span = before.span().end..item.span().end;
            changes.push(Change { span, text: String::new() });
        }
    }
    Some(())
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
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
            (OpenaiChat, r#"{"choices":[{"message":{"content":null}}]}"#),
            (OpenaiChat, "[]"),
            (Anthropic, r#"{"content":[{"type":"tool_use"}]}"#),
            (Anthropic, r#"{"content":7}"#),
            (Anthropic, "no JSON"),
        ] {
            assert_eq!(told(dialect, raw, &[(0, "x")]), None, "{raw}");
        }
    }

    fn with_arguments(
        dialect: backstay_wire::Dialect,
        raw: &str,
        new: &[(usize, &str)],
    ) -> Option<String> {
        let new = new.iter().map(|(call, text)| NewArguments {
            part: *call,
            call: *call,
            text: (*text).to_owned(),
        });
        let amended = [Amended { at: 0, text: None, arguments: new.collect() }];
        let bytes = retold(dialect, raw.as_bytes(), &amended)?;
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn a_call_that_is_no_function_does_not_shift_the_arguments_of_the_others() {
        let raw = |b: &str| {
            format!(
                r#"{{"choices":[{{"message":{{"tool_calls":[{{"type":"custom","custom":{{"name":"c","input":"x"}}}},{{"function":null,"type":"odd"}},{{"type":"function","function":{{"name":"a","arguments":"{{\"q\":1}}"}}}},{{"type":"function","function":{{"name":"b","arguments":"{b}"}}}}]}}}}]}}"#
            )
        };
        let told = with_arguments(OpenaiChat, &raw(r#"{\"q\":2,}"#), &[(1, r#"{"q":2}"#)]);
        assert_eq!(told.unwrap(), raw(r#"{\"q\":2}"#));
        let raw = r#"{"content":[{"type":"server_tool_use","input":{}},{"type":"tool_use","input":{"q":"2"}}]}"#;
        assert_eq!(
            with_arguments(Anthropic, raw, &[(0, r#"{"q":2}"#)]).unwrap(),
            r#"{"content":[{"type":"server_tool_use","input":{}},{"type":"tool_use","input":{"q":2}}]}"#
        );
    }

    #[test]
    fn numbers_of_any_length_keep_their_digits_inside_and_beside_a_change() {
        let raw = r#"{ "cost": 0.1234567890123456789, "big":123456789012345678901234,"choices":[ {"message": {"content":"[1,]","n":1.10 } }],"e":1E+2}"#;
        assert_eq!(told(OpenaiChat, raw, &[(0, "[1]")]).unwrap(), raw.replace("[1,]", "[1]"));
        let raw = r#"{"content":[{"type":"tool_use","input":{"q":123456789012345678901234,"n":"2"},"cost":0.1234567890123456789}]}"#;
        let input = r#"{"q":123456789012345678901234,"n":2}"#;
        assert_eq!(
            with_arguments(Anthropic, raw, &[(0, input)]).unwrap(),
            raw.replace(r#""2""#, "2")
        );
    }

    #[test]
    fn a_call_in_the_older_field_is_mended_where_it_stands() {
        let raw = r#"{"choices":[{"message":{"content":null,"function_call":{"name":"a","arguments":"{\"q\":1,}"}},"finish_reason":"function_call"}]}"#;
        assert_eq!(
            with_arguments(OpenaiChat, raw, &[(0, r#"{"q":1}"#)]).unwrap(),
            raw.replace(",}", "}")
        );
        // Beside calls in the newer field it comes after them.
        let raw = r#"{"choices":[{"message":{"function_call":{"name":"b"},"tool_calls":[{"function":{"name":"a","arguments":"{}"}}]}}]}"#;
        assert_eq!(
            with_arguments(OpenaiChat, raw, &[(1, "{}")]).unwrap(),
            raw.replace(r#"{"name":"b"}"#, r#"{"arguments":"{}","name":"b"}"#)
        );
    }

    #[test]
    fn text_in_a_list_of_parts_is_changed_in_place_too() {
        let raw = r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":"t"}, {"type":"text","text":"a"} , {"type":"odd"},{"type":"text","text":"b"}]}}]}"#;
        assert_eq!(
            told(OpenaiChat, raw, &[(0, "ab")]).unwrap(),
            r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":"t"}, {"type":"text","text":"ab"} , {"type":"odd"}]}}]}"#
        );
        let raw = r#"{"content":"a","n":1.0}"#;
        assert_eq!(told(Anthropic, raw, &[(0, "b")]).unwrap(), r#"{"content":"b","n":1.0}"#);
    }
}
