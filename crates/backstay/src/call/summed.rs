//! Adds what earlier attempts of a call used to the counts in a provider's own reply.

use backstay_wire::{Dialect, Usage};
use bytes::Bytes;
use serde_json::Value;

use super::places::{Change, Found, changed};

/// `raw`, a reply of `dialect`, with `earlier` added to its counts. Where there is nothing to add,
/// it is as it was.
pub(super) fn with_usage(dialect: Dialect, raw: Bytes, earlier: &Usage) -> Bytes {
    let Usage { input, output, cached, cache_write, reasoning } = *earlier;
    let all = [input, output, cached, cache_write, reasoning];
    if all.into_iter().flatten().all(|count| count == 0) {
        return raw;
    }
    let earlier = dialect.write_usage(earlier).filter(counts);
    earlier.and_then(|earlier| added(&raw, &earlier)).unwrap_or(raw)
}

fn added(raw: &[u8], earlier: &Value) -> Option<Bytes> {
    let reply = Found::root(raw)?;
    let mut changes = Vec::new();
    match reply.member("usage") {
        Some(usage) => add(usage, earlier, &mut changes),
        None => changes.push(reply.with("usage", &earlier.to_string())?),
    }
    changed(raw, changes).map(Bytes::from)
}

/// Adds every count of `earlier` to the one of the same name. What is no count stays.
fn add(usage: Found<'_>, earlier: &Value, changes: &mut Vec<Change>) {
    let members = earlier.as_object().into_iter().flatten();
    let mut missing = Vec::new();
    for (key, more) in members.filter(|(_, more)| counts(more)) {
        let change = match usage.member(key) {
            Some(known) if more.is_object() => {
                add(known, more, changes);
                continue;
            }
            Some(known) => known.text().parse::<u64>().ok().map(|count| {
                known.replaced(count.saturating_add(more.as_u64().unwrap_or(0)).to_string())
            }),
            // The earlier ones' total alone would be none.
            None if key == "total_tokens" => None,
            None => {
                let null = usage.member_or_null(key);
                if null.is_none() {
                    missing.push((key.as_str(), more.to_string()));
                }
                null.map(|null| null.replaced(more.to_string()))
            }
        };
        changes.extend(change);
    }
    changes.extend(usage.with_all(&missing));
}

/// Whether it counts anything.
fn counts(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(counts),
        other => other.as_u64().is_some_and(|count| count > 0),
    }
}

#[cfg(test)]
mod tests {
    use backstay_wire::Dialect::{self, Anthropic, OpenaiChat};
    use backstay_wire::Usage;
    use bytes::Bytes;

    use super::with_usage;

    fn summed(dialect: Dialect, raw: &str, earlier: Usage) -> String {
        let told = with_usage(dialect, Bytes::copy_from_slice(raw.as_bytes()), &earlier);
        String::from_utf8(told.to_vec()).unwrap()
    }

    fn earlier() -> Usage {
        let (input, output) = (Some(100), Some(20));
        Usage { input, output, cached: Some(30), cache_write: Some(0), reasoning: Some(7) }
    }

    #[test]
    fn what_earlier_attempts_used_is_added_and_every_other_byte_stays() {
        let raw = r#"{"a":1.10,"usage":{ "prompt_tokens":10,"completion_tokens": 5,"total_tokens":16,"cost":0.1234567890123456789,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":4}} }"#;
        assert_eq!(
            summed(OpenaiChat, raw, earlier()),
            r#"{"a":1.10,"usage":{"completion_tokens_details":{"reasoning_tokens":7}, "prompt_tokens":110,"completion_tokens": 25,"total_tokens":136,"cost":0.1234567890123456789,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":34}} }"#
        );
        let raw = r#"{"usage":{"input_tokens":10,"cache_read_input_tokens":null,"output_tokens":5,"service_tier":"standard","output_tokens_details":{"thinking_tokens":1}}}"#;
        assert_eq!(
            summed(Anthropic, raw, earlier()),
            r#"{"usage":{"input_tokens":80,"cache_read_input_tokens":30,"output_tokens":25,"service_tier":"standard","output_tokens_details":{"thinking_tokens":8}}}"#
        );
        assert_eq!(
            summed(
                OpenaiChat,
                r#"{"usage":null}"#,
                Usage { input: Some(1), output: Some(2), ..Usage::default() }
            ),
            r#"{"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#
        );
    }

    #[test]
    fn counts_that_are_missing_together_come_together() {
        let raw = r#"{"usage":{}}"#;
        let told = r#"{"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":30,"cache_write_tokens":0},"completion_tokens":20,"completion_tokens_details":{"reasoning_tokens":7}}}"#;
        assert_eq!(value(&summed(OpenaiChat, raw, earlier())), value(told));
        let cache = Usage { cache_write: Some(2), ..earlier() };
        for raw in
            [r#"{"usage":{"prompt_tokens":1,"prompt_tokens_details":{}}}"#, r#"{"usage":{ }}"#]
        {
            for dialect in [OpenaiChat, Anthropic] {
                let told = value(&summed(dialect, raw, cache));
                assert!(told["usage"].as_object().is_some_and(|counts| counts.len() > 1), "{told}");
            }
        }
    }

    fn value(json: &str) -> serde_json::Value {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
    }

    #[test]
    fn a_first_answer_is_as_it_came() {
        let nothing = Usage { input: Some(0), output: Some(0), ..Usage::default() };
        for raw in [r#"{ "usage" : {"prompt_tokens": 1e1}}"#, "{}", "[]", "no JSON"] {
            assert_eq!(summed(OpenaiChat, raw, nothing), raw);
            assert_eq!(summed(Anthropic, raw, Usage::default()), raw);
        }
    }
}
