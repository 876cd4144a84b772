//! Streams of Anthropic Messages, both ways.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use backstay_wire::chat::{
    Delta, ErrorClass, Finish, Fold, FoldEnd, Part, ProviderError, Terminator, Usage,
};
use backstay_wire::dialect::{Dialect, ErrorOut, Malformed, UsageEvent};
use backstay_wire::frame::sse::{Decoder, Event, Frame, write_event};
use bytes::Bytes;
use serde_json::{Value, json};

fn events(body: &[u8]) -> Vec<Event> {
    let mut decoder = Decoder::default();
    decoder.push(Bytes::copy_from_slice(body));
    let mut found = Vec::new();
    while let Some(frame) = decoder.finish().unwrap() {
        match frame {
            Frame::Event(event) | Frame::Cut(event) => found.push(event),
            Frame::Alive(_) => {}
        }
    }
    found
}

fn try_read(body: &[u8]) -> Result<Vec<Delta>, Malformed> {
    let mut reader = Dialect::Anthropic.stream_reader();
    let mut deltas = Vec::new();
    for event in events(body) {
        let before = deltas.len();
        reader.read(&event, &mut deltas)?;
        assert!(deltas.len() > before, "every event says something: {event:?}");
    }
    Ok(deltas)
}

fn stream(events: &[Value]) -> Vec<u8> {
    let mut body = Vec::new();
    for event in events {
        write_event(&mut body, event["type"].as_str().unwrap(), event.to_string().as_bytes());
    }
    body
}

/// What the events say, signs of life left out.
fn read(events: &[Value]) -> Vec<Delta> {
    let mut deltas = try_read(&stream(events)).unwrap();
    deltas.retain(|delta| *delta != Delta::Alive);
    deltas
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "m1", "type": "message",
        "role": "assistant", "content": [], "model": "m", "stop_reason": null,
        "usage": {"input_tokens": 25, "output_tokens": 1}}})
}

fn begin(index: u32, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn piece(index: u32, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn text_block() -> Value {
    json!({"type": "text", "text": ""})
}

fn text(index: u32, words: &str) -> Value {
    piece(index, &json!({"type": "text_delta", "text": words}))
}

fn closing(word: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": null},
            "usage": {"output_tokens": 15}}),
        json!({"type": "message_stop"}),
    ]
}

fn started() -> [Delta; 2] {
    let usage = Usage { input: Some(25), output: Some(1), ..Usage::default() };
    [Delta::Start { id: "m1".into(), model: "m".into() }, Delta::Usage(usage)]
}

fn closed(finish: Finish, word: &str) -> [Delta; 3] {
    let usage = Usage { input: Some(25), output: Some(15), ..Usage::default() };
    [Delta::Usage(usage), Delta::Finish { finish, word: Some(word.into()) }, Delta::End]
}

#[test]
fn a_plain_stream_is_read_and_its_counters_overwrite() {
    let mut events = vec![start(), json!({"type": "ping"}), begin(0, &text_block())];
    events.extend([text(0, "Hel"), text(0, "lo!"), text(0, ""), stop(0)]);
    events.extend(closing("end_turn"));
    let mut expected = started().to_vec();
    expected.extend([Delta::Text("Hel".into()), Delta::Text("lo!".into())]);
    expected.extend(closed(Finish::Complete, "end_turn"));
    assert_eq!(read(&events), expected);
}

#[test]
fn tool_calls_are_counted_among_themselves() {
    let tool = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}, "caller": {"type": "direct"}});
    let arguments = |index, text: &str| {
        piece(index, &json!({"type": "input_json_delta", "partial_json": text}))
    };
    let mut events = vec![start(), begin(0, &text_block()), text(0, "a"), stop(0)];
    events.extend([begin(1, &tool("t1", "f")), arguments(1, ""), arguments(1, "{\"a\""), stop(1)]);
    events.extend([begin(2, &tool("t2", "g")), arguments(2, ""), stop(2)]);
    events.push(begin(3, &json!({"type": "tool_use", "id": "t3", "name": "h", "input": {"b": 2}})));
    events.push(stop(3));
    let start = |index, id: &str, name: &str| Delta::ToolStart {
        index,
        id: id.to_owned(),
        name: name.to_owned(),
    };
    let piece = |index, text: &str| Delta::ToolArguments { index, fragment: text.to_owned() };
    let mut expected = started().to_vec();
    expected.push(Delta::Text("a".into()));
    expected.extend([start(0, "t1", "f"), piece(0, "{\"a\"")]);
    expected.extend([start(1, "t2", "g"), piece(1, "{}")]);
    expected.extend([start(2, "t3", "h"), piece(2, "{\"b\":2}")]);
    assert_eq!(read(&events), expected);
}

#[test]
fn thinking_and_its_signature_are_read() {
    let events = [
        begin(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        piece(0, &json!({"type": "thinking_delta", "thinking": "hm"})),
        piece(0, &json!({"type": "signature_delta", "signature": "s1"})),
        stop(0),
        begin(1, &json!({"type": "redacted_thinking", "data": "x"})),
        stop(1),
    ];
    let deltas = [
        Delta::Reasoning("hm".into()),
        Delta::Signature("s1".into()),
        Delta::Untold("content block: redacted_thinking".into()),
    ];
    assert_eq!(read(&events), deltas);
    let mut fold = Fold::default();
    for delta in &deltas {
        fold.push(delta);
    }
    assert_eq!(fold.into_reply().unknown, ["content block: redacted_thinking"]);
}

#[test]
fn an_error_event_is_read_with_its_class_wherever_it_stands() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error",
        "message": "Overloaded"}});
    for events in [vec![overloaded.clone()], vec![start(), overloaded]] {
        let deltas = read(&events);
        let Some(Delta::Error(error)) = deltas.last() else { panic!("{deltas:?}") };
        assert_eq!(error.class, ErrorClass::Overloaded);
        let mut fold = Fold::default();
        for delta in &deltas {
            fold.push(delta);
        }
        assert!(matches!(fold.outcome(), FoldEnd::Failed(e) if e.class == ErrorClass::Overloaded));
    }
    let class = |body: &str| match try_read(body.as_bytes()).unwrap().as_slice() {
        [Delta::Error(error)] => error.class,
        other => panic!("{body}: {other:?}"),
    };
    assert_eq!(class("{\"error\":{\"message\":\"x\",\"code\":429}}\n"), ErrorClass::RateLimited);
    assert_eq!(class("event: error\ndata: upstream went away\n\n"), ErrorClass::ServerError);
    assert_eq!(class("event: error\ndata: {\"message\":\"x\"}\n\n"), ErrorClass::ServerError);
    assert_eq!(class("data: {\"type\":\"error\",\"error\":null}\n\n"), ErrorClass::ServerError);
}

#[test]
fn odd_keep_alives_are_signs_of_life() {
    for body in [
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "data: \n\n",
        "data: : keepalive\n\n",
        "data: [DONE]\n\n",
        "event: ping\ndata: {}\n\n",
    ] {
        assert_eq!(try_read(body.as_bytes()).unwrap(), [Delta::Alive], "{body}");
    }
}

#[test]
fn unknown_events_blocks_and_deltas_are_counted_and_their_content_stays_out() {
    let events = [
        json!({"type": "aurora"}),
        begin(0, &json!({"type": "hologram", "text": "x"})),
        text(0, "not an answer"),
        stop(0),
        begin(1, &text_block()),
        piece(1, &json!({"type": "smell_delta"})),
        piece(1, &json!({"type": "colour_delta", "text": {"red": 1}})),
        piece(1, &json!({"type": "citations_delta", "citation": {}})),
        text(1, "a"),
        begin(2, &json!({"type": "server_tool_use", "id": "s", "name": "w", "input": {}})),
        piece(2, &json!({"type": "input_json_delta", "partial_json": "{}"})),
        stop(2),
        json!({"type": "message_delta", "delta": {"stop_reason": "tired"}}),
    ];
    assert_eq!(
        read(&events),
        [
            Delta::Unknown("event: aurora".into()),
            Delta::Unknown("content block: hologram".into()),
            Delta::Unknown("content delta: smell_delta".into()),
            Delta::Unknown("content delta: colour_delta".into()),
            Delta::Untold("content delta: citations_delta".into()),
            Delta::Text("a".into()),
            Delta::Untold("content block: server_tool_use".into()),
            Delta::Unknown("stop_reason: tired".into()),
            Delta::Finish { finish: Finish::Unknown, word: Some("tired".into()) },
        ]
    );
}

#[test]
fn a_missing_or_repeated_start_is_tolerated() {
    let mut events = vec![begin(0, &text_block()), text(0, "hi"), stop(0)];
    events.extend(closing("end_turn"));
    assert_eq!(read(&events)[0], Delta::Text("hi".into()));
    let starts = read(&[start(), start()]);
    let [begun, usage] = started();
    assert_eq!(starts, [begun, usage.clone(), usage]);
}

#[test]
fn content_that_a_start_brings_along_is_not_lost() {
    let mut begun = start();
    begun["message"]["content"] = json!([{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}, {"type": "hologram"}]);
    let deltas = read(&[begun]);
    assert_eq!(
        deltas[2..],
        [
            Delta::ToolStart { index: 0, id: "t".into(), name: "f".into() },
            Delta::ToolArguments { index: 0, fragment: "{\"a\":1}".into() },
            Delta::Unknown("content block: hologram".into()),
        ]
    );
}

#[test]
fn a_refusal_in_the_stream_brings_its_words() {
    let details = json!({"type": "refusal", "category": "bio", "explanation": "not that"});
    let events = [json!({"type": "message_delta",
        "delta": {"stop_reason": "refusal", "stop_details": details}})];
    let finish = Delta::Finish { finish: Finish::Refused, word: Some("refusal".into()) };
    assert_eq!(read(&events), [Delta::Refusal("not that".into()), finish]);
}

#[test]
fn a_payload_of_another_form_is_malformed() {
    for body in [
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_de\n\n",
        "data: {\"choices\":[]}\n\n",
        "data: hello\n\n",
        "data: [1]\n\n",
        "data: {\"type\":\"message_start\"}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0}\n\n",
        "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":7}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":5,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n",
    ] {
        assert!(try_read(body.as_bytes()).is_err(), "{body}");
    }
    let many: Vec<Value> = (0..2_000).map(|at| begin(at, &text_block())).collect();
    assert!(try_read(&stream(&many)).is_err(), "open blocks are bounded");
}

#[test]
fn a_silent_close_is_no_end_and_a_stop_reason_without_a_stop_is_flagged() {
    let outcome = |events: &[Value]| {
        let mut fold = Fold::default();
        for delta in &read(events) {
            fold.push(delta);
        }
        fold.outcome()
    };
    let mut events = vec![start(), begin(0, &text_block()), text(0, "par")];
    assert_eq!(outcome(&events), FoldEnd::NoEnd);
    events.push(stop(0));
    let end = closing("end_turn");
    events.push(end[0].clone());
    assert_eq!(outcome(&events), FoldEnd::Whole { terminator: Terminator::Missing });
    events.push(end[1].clone());
    assert_eq!(outcome(&events), FoldEnd::Whole { terminator: Terminator::Seen });
    assert_eq!(outcome(&[start(), end[1].clone()]), FoldEnd::NoFinish);
}

// --- writing ---

fn write(deltas: &[Delta]) -> Vec<u8> {
    let mut writer = Dialect::Anthropic.stream_writer("asked", UsageEvent::Send);
    let mut out = Vec::new();
    for delta in deltas {
        writer.write(delta, &mut out);
    }
    out
}

/// `type` of each event, with the block's index; the name and the type must agree.
fn outline(body: &[u8]) -> Vec<String> {
    let told = |event: &Event| {
        let value: Value = serde_json::from_slice(&event.data).unwrap();
        assert_eq!(value["type"], event.name);
        match value["index"].as_u64() {
            Some(index) => format!("{} {index}", event.name),
            None => event.name.clone(),
        }
    };
    events(body).iter().map(told).collect()
}

fn tool(index: u32) -> Delta {
    Delta::ToolStart { index, id: format!("t{index}"), name: "f".into() }
}

fn arguments(index: u32, fragment: &str) -> Delta {
    Delta::ToolArguments { index, fragment: fragment.into() }
}

fn finish() -> Delta {
    Delta::Finish { finish: Finish::ToolUse, word: Some("tool_calls".into()) }
}

#[test]
fn blocks_open_and_close_in_order_and_the_end_comes_once() {
    let deltas = [
        Delta::Start { id: "c1".into(), model: "real".into() },
        Delta::Alive,
        Delta::Reasoning("hm".into()),
        Delta::Text("a".into()),
        Delta::Text("b".into()),
        tool(0),
        arguments(0, "{\"a\":"),
        arguments(0, "1}"),
        tool(1),
        arguments(1, "{}"),
        finish(),
        Delta::Usage(Usage {
            input: Some(9),
            output: Some(4),
            cached: Some(5),
            ..Usage::default()
        }),
        Delta::End,
        Delta::End,
        Delta::Text("late".into()),
    ];
    let body = write(&deltas);
    assert_eq!(
        outline(&body),
        [
            "message_start",
            "content_block_start 0",
            "content_block_delta 0",
            "content_block_stop 0",
            "content_block_start 1",
            "content_block_delta 1",
            "content_block_delta 1",
            "content_block_stop 1",
            "content_block_start 2",
            "content_block_delta 2",
            "content_block_delta 2",
            "content_block_stop 2",
            "content_block_start 3",
            "content_block_delta 3",
            "content_block_stop 3",
            "message_delta",
            "message_stop",
        ]
    );
    let found = events(&body);
    let first: Value = serde_json::from_slice(&found[0].data).unwrap();
    assert_eq!(first["message"]["model"], "asked");
    let last: Value = serde_json::from_slice(&found[15].data).unwrap();
    assert_eq!(last["delta"]["stop_reason"], "tool_use");
    assert_eq!(
        last["usage"],
        json!({"input_tokens": 4, "cache_read_input_tokens": 5, "output_tokens": 4})
    );
}

#[test]
fn input_tokens_that_come_first_stand_in_the_start() {
    let usage = Usage { input: Some(25), output: Some(1), ..Usage::default() };
    let body = write(&[
        Delta::Start { id: "m1".into(), model: String::new() },
        Delta::Usage(usage),
        Delta::Text("a".into()),
    ]);
    let first: Value = serde_json::from_slice(&events(&body)[0].data).unwrap();
    assert_eq!(first["message"]["usage"], json!({"input_tokens": 25, "output_tokens": 1}));
}

#[test]
fn a_stream_without_an_asked_name_is_named_after_the_model_that_answers() {
    let mut writer = Dialect::Anthropic.stream_writer("", UsageEvent::Send);
    let mut out = Vec::new();
    writer.write(&Delta::Start { id: "c1".into(), model: "real".into() }, &mut out);
    assert_eq!(out, b"", "the start waits for something to be said");
    writer.write(&Delta::Text("a".into()), &mut out);
    let first: Value = serde_json::from_slice(&events(&out)[0].data).unwrap();
    assert_eq!(
        (&first["message"]["model"], &first["message"]["id"]),
        (&json!("real"), &json!("c1"))
    );
}

#[test]
fn mixed_fragments_of_tool_calls_are_told_one_call_after_the_other() {
    let deltas = [
        tool(0),
        tool(1),
        arguments(1, "{\"b\":"),
        arguments(0, "{\"a\":"),
        Delta::Text("x".into()),
        arguments(1, "2}"),
        arguments(0, "1}"),
        finish(),
        Delta::End,
    ];
    let mut fold = Fold::default();
    for delta in &try_read(&write(&deltas)).unwrap() {
        fold.push(delta);
    }
    let call = |id: &str, arguments: &str| Part::ToolCall {
        id: id.into(),
        name: "f".into(),
        arguments: arguments.into(),
    };
    assert_eq!(fold.outcome(), FoldEnd::Whole { terminator: Terminator::Seen });
    let parts = fold.into_reply().choices.remove(0).parts;
    assert_eq!(parts, [call("t0", "{\"a\":1}"), call("t1", "{\"b\":2}"), Part::Text("x".into())]);
}

#[test]
fn more_of_a_whole_call_fails_the_stream_instead_of_lying() {
    let again = write(&[tool(0), arguments(0, "{}"), arguments(0, "{}"), finish(), Delta::End]);
    assert_eq!(outline(&again).last().unwrap(), "error");
    let deltas = [
        tool(0),
        arguments(0, "{}"),
        tool(1),
        arguments(0, "\n"),
        arguments(0, "{\"a\":1}"),
        finish(),
        Delta::End,
    ];
    let body = write(&deltas);
    assert_eq!(outline(&body).last().unwrap(), "error");
    assert!(!String::from_utf8(body).unwrap().contains("message_stop"));
}

#[test]
fn an_end_without_content_or_finish_is_still_a_closed_stream_without_a_stop_reason() {
    let body = write(&[Delta::End]);
    assert_eq!(outline(&body), ["message_start", "message_delta", "message_stop"]);
    let last: Value = serde_json::from_slice(&events(&body)[1].data).unwrap();
    assert_eq!(last["delta"]["stop_reason"], Value::Null);
}

#[test]
fn what_a_stream_cannot_say_is_a_loss_once() {
    let mut writer = Dialect::Anthropic.stream_writer("m", UsageEvent::Omit);
    let mut out = Vec::new();
    for _ in 0..200 {
        writer.write(&Delta::of_choice(1, Delta::Text("x".into())), &mut out);
        writer.write(&Delta::Unknown("event: x".into()), &mut out);
    }
    assert_eq!(out, b"");
    assert_eq!(writer.losses().len(), 2, "{:?}", writer.losses());
}

#[test]
fn a_failure_inside_a_stream_is_an_error_event_that_reads_back() {
    let error = ErrorOut {
        status: 529,
        code: "provider_overloaded",
        message: "line\nbreak",
        param: None,
        call_id: "c-1",
    };
    let body = Dialect::Anthropic.write_stream_error(&error);
    assert!(body.starts_with(b"event: error\ndata: {") && body.ends_with(b"}\n\n"));
    let Some(Delta::Error(read)) = try_read(&body).unwrap().pop() else { panic!() };
    assert_eq!(read.class, ErrorClass::Overloaded);
    assert_eq!(read.code.as_deref(), Some("provider_overloaded"));
    assert_eq!(read.message, "line\nbreak");

    let provider = ProviderError {
        class: ErrorClass::RateLimited,
        status: None,
        kind: None,
        code: None,
        param: None,
        message: "slow down".into(),
        delay: None,
    };
    let body = write(&[Delta::Text("a".into()), Delta::Error(provider), Delta::End]);
    let Some(Delta::Error(read)) = try_read(&body).unwrap().pop() else { panic!() };
    assert_eq!((read.class, read.message.as_str()), (ErrorClass::RateLimited, "slow down"));
}
