//! Whatever comes in, the readers answer with a value or a typed fault: no panic, no hang.

use backstay_wire::dialect::{Dialect, UsageEvent};
use backstay_wire::frame::sse::Event;
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value};

const NAMES: &[&str] = &[
    "type",
    "role",
    "content",
    "text",
    "messages",
    "model",
    "max_tokens",
    "system",
    "tools",
    "name",
    "input_schema",
    "tool_choice",
    "index",
    "delta",
    "content_block",
    "message",
    "usage",
    "error",
    "stop_reason",
    "stop_details",
    "source",
    "id",
    "input",
    "tool_use_id",
    "thinking",
    "partial_json",
    "metadata",
    "user_id",
    "output_config",
    "format",
    "schema",
    "input_tokens",
];
const WORDS: &[&str] = &[
    "text",
    "image",
    "tool_use",
    "tool_result",
    "thinking",
    "user",
    "assistant",
    "base64",
    "url",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
    "ping",
    "text_delta",
    "input_json_delta",
    "json_schema",
    "tool",
    "auto",
    "refusal",
    "",
];

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..5_i64).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(NAMES), inner), 0..7).prop_map(|fields| {
                let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::Object(fields.collect::<Map<_, _>>())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_body_gives_a_value_or_a_fault(value in values()) {
        let body = value.to_string();
        for to in [Dialect::OpenaiChat, Dialect::Anthropic] {
            if let Ok(chat) = Dialect::Anthropic.read_request(body.as_bytes()) {
                let written = to.write_request(&chat).bytes;
                prop_assert!(serde_json::from_slice::<Value>(&written).is_ok());
            }
            if let Ok(reply) = Dialect::Anthropic.read_reply(body.as_bytes()) {
                let written = to.write_reply(&reply).bytes;
                prop_assert!(serde_json::from_slice::<Value>(&written).is_ok());
            }
        }
        let error = Dialect::Anthropic.read_error(500, body.as_bytes());
        prop_assert!(error.message.len() <= 2_000);
    }

    #[test]
    fn any_events_give_deltas_or_a_fault(
        events in prop::collection::vec((prop::sample::select(WORDS), values()), 0..6)
    ) {
        let mut reader = Dialect::Anthropic.stream_reader();
        let mut writer = Dialect::Anthropic.stream_writer("m", UsageEvent::Send);
        let (mut deltas, mut out) = (Vec::new(), Vec::new());
        for (name, value) in events {
            let data = Bytes::from(value.to_string());
            let event = Event { raw: data.clone(), name: name.to_owned(), data };
            let before = deltas.len();
            match reader.read(&event, &mut deltas) {
                Ok(()) => prop_assert!(deltas.len() > before),
                Err(fault) => prop_assert!(!fault.note.is_empty()),
            }
        }
        for delta in &deltas {
            writer.write(delta, &mut out);
        }
    }

    #[test]
    fn any_bytes_give_a_value_or_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert!(Dialect::Anthropic.read_request(&bytes).is_err());
        prop_assert!(Dialect::Anthropic.read_reply(&bytes).is_err());
        let error = Dialect::Anthropic.read_error(529, &bytes);
        prop_assert_eq!(error.status, Some(529));
    }
}
