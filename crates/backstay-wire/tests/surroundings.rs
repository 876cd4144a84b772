//! Events that differ in a text only are read without their JSON. What they say must be what the JSON says:
//! each stream is read twice, once as it is and once with white space in front that grows from event to event,
//! so that no two are alike.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use backstay_wire::Dialect;
use backstay_wire::chat::Delta;
use backstay_wire::frame::sse::Event;
use proptest::prelude::*;
use serde_json::json;

/// What a stream says, event by event, up to the first that cannot be read.
fn said(dialect: Dialect, events: impl IntoIterator<Item = Event>) -> Vec<Option<Vec<Delta>>> {
    let mut reader = dialect.stream_reader();
    let mut said = Vec::new();
    for event in events {
        let mut deltas = Vec::new();
        let read = reader.read(&event, &mut deltas).is_ok();
        // Words that are no JSON are told as they are, with the white space of this test.
        for delta in &mut deltas {
            if let Delta::Error(error) = delta {
                error.message.retain(|letter| letter != ' ');
            }
        }
        said.push(read.then_some(deltas));
        if !read {
            break;
        }
    }
    said
}

/// The same events, no two of which begin alike.
fn apart(events: &[Event]) -> impl Iterator<Item = Event> {
    events.iter().enumerate().map(|(at, event)| {
        let Some(rest) = event.data.strip_prefix(b"{") else { return event.clone() };
        let data = [b"{", " ".repeat(at).as_bytes(), rest].concat();
        Event { data: data.into(), ..event.clone() }
    })
}

fn event(name: &str, data: impl AsRef<[u8]>) -> Event {
    Event { name: name.to_owned(), data: data.as_ref().to_vec().into(), ..Event::default() }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z ]{0,8}",
        1 => "[\"\\\\\n\u{1}\u{7f}é漢😀{}:,]{0,4}",
        1 => Just(String::new()),
    ]
}

fn openai(choice: &serde_json::Value, padding: Option<String>) -> Event {
    let mut chunk = json!({ "id": "c", "model": "m", "choices": [choice] }).to_string();
    if let Some(padding) = padding {
        chunk.truncate(chunk.len() - 1);
        chunk.push_str(",\"obfuscation\":\"");
        chunk.push_str(&padding);
        chunk.push_str("\"}");
    }
    event("", chunk)
}

/// A piece of a call: names and arguments come again and again, and indices are shared.
fn openai_call() -> impl Strategy<Value = serde_json::Value> {
    let name = prop::sample::select(vec![json!("f"), json!("g"), json!(null)]);
    let arguments = prop::sample::select(vec![json!("{}"), json!("{\"a\":"), json!(null)]);
    (0..2, name, arguments).prop_map(|(index, name, arguments)| {
        json!({ "index": index, "function": { "name": name, "arguments": arguments } })
    })
}

fn openai_event() -> impl Strategy<Value = Event> {
    let delta = prop_oneof![
        8 => text().prop_map(|text| json!({ "delta": { "content": text } })),
        3 => text().prop_map(|text| json!({ "delta": { "reasoning_content": text } })),
        1 => text().prop_map(|text| json!({ "delta": { "content": text, "reasoning": text } })),
        1 => text().prop_map(|text| json!({ "delta": { "refusal": text } })),
        1 => text().prop_map(|text| json!({ "delta": { "content": "x", "odd": text } })),
        1 => text().prop_map(|text| json!({ "index": 1, "delta": { "content": text } })),
        1 => text().prop_map(|text| json!({ "delta": { "content": text }, "finish_reason": "stop" })),
        1 => Just(json!({ "delta": {}, "finish_reason": "stop" })),
        3 => (text(), openai_call()).prop_map(|(text, call)| {
            json!({ "delta": { "content": text, "tool_calls": [call] } })
        }),
        2 => openai_call().prop_map(|call| json!({ "delta": { "tool_calls": [call] } })),
    ];
    let padding = prop_oneof![3 => Just(None), 1 => "[a-zA-Z0-9]{0,8}".prop_map(Some)];
    let name = prop::sample::select(vec!["", "", "", "", "", "error", "ping"]);
    prop_oneof![
        20 => (delta, padding, name).prop_map(|(delta, padding, name)| {
            Event { name: name.to_owned(), ..openai(&delta, padding) }
        }),
        1 => Just(event("", "[DONE]")),
        1 => Just(event("ping", "{}")),
    ]
}

fn anthropic_event() -> impl Strategy<Value = Event> {
    let delta = |index: u8, delta: serde_json::Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let start = |kind: &str| {
        let block = json!({ "type": kind, "text": "", "thinking": "", "id": "t", "name": "n", "input": {} });
        json!({ "type": "content_block_start", "index": 0, "content_block": block })
    };
    let data = prop_oneof![
        8 => text().prop_map(move |text| delta(0, json!({ "type": "text_delta", "text": text }))),
        3 => text().prop_map(move |text| delta(0, json!({ "type": "thinking_delta", "thinking": text }))),
        1 => text().prop_map(move |text| delta(1, json!({ "type": "text_delta", "text": text }))),
        1 => text().prop_map(move |text| delta(0, json!({ "type": "new_delta", "text": text }))),
        1 => prop::sample::select(vec!["text", "thinking", "server_tool_use", "tool_use"]).prop_map(start),
        1 => Just(json!({ "type": "content_block_stop", "index": 0 })),
        1 => Just(json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } })),
        1 => Just(json!({ "type": "ping" })),
    ];
    data.prop_map(|data| event(data["type"].as_str().unwrap(), data.to_string()))
}

/// `events`, of which one may have one byte changed.
fn damaged(events: impl Strategy<Value = Event> + 'static) -> impl Strategy<Value = Vec<Event>> {
    let damage = prop::option::weighted(
        0.3,
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()),
    );
    (prop::collection::vec(events, 1..40), damage).prop_map(|(mut events, damage)| {
        if let Some((which, at, byte)) = damage {
            let which = which.index(events.len());
            let mut data = events[which].data.to_vec();
            let at = at.index(data.len());
            data[at] = byte;
            events[which].data = data.into();
        }
        events
    })
}

/// Named over and over a call says nothing new, until another one has taken its place.
#[test]
fn a_piece_of_a_call_beside_a_text_is_read_each_time() {
    let named = |text: &str, name: &str, arguments: Option<&str>| {
        let call = json!({ "index": 0, "function": { "name": name, "arguments": arguments } });
        openai(&json!({ "delta": { "content": text, "tool_calls": [call] } }), None)
    };
    let again = |text: &str| named(text, "f", None);
    let whole = |name: &str| named("", name, Some("{}"));
    let events =
        [again("a"), again("b"), again("c"), again("d"), whole("f"), whole("g"), again("e")];
    let alone = said(Dialect::OpenaiChat, apart(&events));
    let starts = alone.iter().flatten().flatten();
    let starts = starts.filter(|delta| matches!(delta, Delta::ToolStart { .. })).count();
    assert_eq!(starts, 3, "{alone:?}");
    assert_eq!(said(Dialect::OpenaiChat, events), alone);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_openai_says_is_what_its_json_says(events in damaged(openai_event())) {
        let alone = said(Dialect::OpenaiChat, apart(&events));
        prop_assert_eq!(said(Dialect::OpenaiChat, events), alone);
    }

    #[test]
    fn what_anthropic_says_is_what_its_json_says(events in damaged(anthropic_event())) {
        let alone = said(Dialect::Anthropic, apart(&events));
        prop_assert_eq!(said(Dialect::Anthropic, events), alone);
    }
}
