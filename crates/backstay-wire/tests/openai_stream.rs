//! Streams of `OpenAI` Chat Completions.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use backstay_wire::chat::{Delta, Logprobs, Odds, ProviderError, Quirk, Usage};
use backstay_wire::dialect::{Dialect, ErrorOut, UsageEvent};
use backstay_wire::frame::sse::Event;
use backstay_wire::{ErrorClass, Finish};
use serde_json::{Value, json};

fn event(data: &str) -> Event {
    Event { data: data.as_bytes().to_vec().into(), ..Event::default() }
}

fn chunk(delta: &Value) -> String {
    json!({ "id": "c1", "model": "m", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
        .to_string()
}

fn read(events: &[&str]) -> Vec<Delta> {
    let mut reader = Dialect::OpenaiChat.stream_reader();
    let mut out = vec![];
    for data in events {
        reader.read(&event(data), &mut out).unwrap();
    }
    out
}

/// The deltas of a stream without its start.
fn rest(events: &[&str]) -> Vec<Delta> {
    let mut deltas = read(events);
    assert!(matches!(deltas.remove(0), Delta::Start { .. }));
    deltas
}

fn text(text: &str) -> Delta {
    Delta::Text(text.to_owned())
}

fn tool(index: u32, id: &str, name: &str) -> Delta {
    Delta::ToolStart { index, id: id.to_owned(), name: name.to_owned() }
}

fn arguments(index: u32, fragment: &str) -> Delta {
    Delta::ToolArguments { index, fragment: fragment.to_owned() }
}

#[test]
fn an_ordinary_stream_is_read_step_by_step() {
    let deltas = read(&[
        &chunk(&json!({ "role": "assistant", "content": "", "refusal": null })),
        &chunk(&json!({ "content": "Hé\n" })),
        &chunk(&json!({ "content": "llo" })),
        r#"{"id":"c1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#,
        r#"{"id":"c1","model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
        "[DONE]",
    ]);
    assert_eq!(
        deltas,
        [
            Delta::Start { id: "c1".to_owned(), model: "m".to_owned() },
            text("Hé\n"),
            text("llo"),
            Delta::Finish { finish: Finish::Complete, word: Some("stop".to_owned()) },
            Delta::Usage(Usage { input: Some(3), output: Some(2), ..Usage::default() }),
            Delta::End,
        ]
    );
}

#[test]
fn signs_of_life_are_no_progress() {
    for data in ["", " ", ": keepalive", "{}", "ping", r#"{"type":"ping"}"#, r#"{"choices":[]}"#] {
        assert_eq!(read(&[data]), [Delta::Alive], "{data}");
    }
    let azure = r#"{"id":"","object":"","model":"","choices":[],"prompt_filter_results":[{}]}"#;
    assert_eq!(read(&[azure]), [Delta::Alive]);
    let mut reader = Dialect::OpenaiChat.stream_reader();
    let mut out = vec![];
    let named = Event { name: "ping".to_owned(), ..event("what ever") };
    reader.read(&named, &mut out).unwrap();
    assert_eq!(out, [Delta::Alive]);
    let role_only = chunk(&json!({ "role": "assistant" }));
    assert_eq!(rest(&[&role_only, &role_only]), [Delta::Alive]);
}

#[test]
fn an_error_in_any_form_is_an_error() {
    let rows: &[(&str, ErrorClass)] = &[
        (
            r#"{"error":{"message":"m","type":"server_error","param":{"x":1},"code":null}}"#,
            ErrorClass::ServerError,
        ),
        (
            r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}"#,
            ErrorClass::RateLimited,
        ),
        (r#"{"object":"error","message":"m","code":503}"#, ErrorClass::Overloaded),
        (
            r#"{"type":"error","error":{"message":"m","type":"insufficient_quota"}}"#,
            ErrorClass::QuotaExhausted,
        ),
        (r#"{"error":"m"}"#, ErrorClass::ServerError),
        // Without a field `error`, or with its words elsewhere.
        (r#"{"code":429,"message":"m"}"#, ErrorClass::RateLimited),
        (r#"{"code":"Throttling.RateQuota","message":"m"}"#, ErrorClass::RateLimited),
        (r#"{"status":503,"message":"m"}"#, ErrorClass::Overloaded),
        (r#"{"success":false,"message":"m"}"#, ErrorClass::ServerError),
        (r#"{"detail":"m"}"#, ErrorClass::ServerError),
        (r#"{"errors":[{"message":"m","code":"model_not_found"}]}"#, ErrorClass::NotFound),
        (r#"{"error":{"message":"m","type":"overloaded_error"}}"#, ErrorClass::Overloaded),
        (r#"{"error":{"message":"m","status":"UNAVAILABLE"}}"#, ErrorClass::Overloaded),
        (r#"{"error":{"message":"m","type":"rate_limit_error"}}"#, ErrorClass::RateLimited),
        (r#"{"error":{"message":"m","type":"api_error","status_code":504}}"#, ErrorClass::Timeout),
        (r#"[{"error":{"code":429,"message":"m"}}]"#, ErrorClass::RateLimited),
        (r#"{"id":"g","choices":[],"error":{"code":502,"message":"m"}}"#, ErrorClass::ServerError),
    ];
    for (data, class) in rows {
        let deltas = read(&[data]);
        let [Delta::Error(error)] = deltas.as_slice() else { panic!("{data}: {deltas:?}") };
        assert_eq!((error.class, error.message.as_str()), (*class, "m"), "{data}");
    }
    for (data, class) in [
        (
            r#"{"error":{"message":"Error code: 429 - slow down","type":"api_error"}}"#,
            ErrorClass::RateLimited,
        ),
        (r#"{"error":{"message":"[HTTP 502] <!DOCTYPE html>"}}"#, ErrorClass::ServerError),
        // A kind that says more than "error" goes before a number in the sentence.
        (
            r#"{"error":{"message":"HTTP 500","type":"insufficient_quota"}}"#,
            ErrorClass::QuotaExhausted,
        ),
        (
            r#"{"error":{"message":"HTTP 500","code":"rate_limit_exceeded"}}"#,
            ErrorClass::RateLimited,
        ),
        ("\"Rate limit exceeded\"", ErrorClass::RateLimited),
        ("Error: upstream died", ErrorClass::ServerError),
        ("[ERROR] 503 Service Unavailable", ErrorClass::Overloaded),
        ("<html><title>502 Bad Gateway</title>", ErrorClass::ServerError),
    ] {
        let deltas = read(&[data]);
        assert!(matches!(&deltas[..], [Delta::Error(e)] if e.class == class), "{data}: {deltas:?}");
    }
    // An unused field sent all the same is no error beside an answer.
    for blank in ["null", "\"\"", "{}"] {
        let data = format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"x"}},"error":{blank}}}],"error":{blank}}}"#
        );
        assert_eq!(rest(&[&data]), [text("x")], "{blank}");
    }
    let in_choice = r#"{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"error","error":{"message":"m","code":502}}]}"#;
    let deltas = rest(&[in_choice]);
    assert_eq!(deltas[0], text("x"));
    assert!(matches!(&deltas[1..], [Delta::Error(ProviderError { status: Some(502), .. })]));
}

#[test]
fn an_event_named_error_is_an_error_whatever_it_holds() {
    for data in [r#"{"message":"m","code":503}"#, r#"{"error":{"message":"m","code":503}}"#] {
        let mut reader = Dialect::OpenaiChat.stream_reader();
        let mut out = vec![];
        reader.read(&Event { name: "error".to_owned(), ..event(data) }, &mut out).unwrap();
        assert!(
            matches!(&out[..], [Delta::Error(e)] if e.class == ErrorClass::Overloaded && e.message == "m")
        );
    }
    let mut out = vec![];
    let words = Event { name: "error".to_owned(), ..event("upstream <died>") };
    Dialect::OpenaiChat.stream_reader().read(&words, &mut out).unwrap();
    assert!(matches!(&out[..], [Delta::Error(e)] if e.message == "upstream <died>"));
}

#[test]
fn a_payload_that_is_no_chunk_is_malformed_and_not_quoted() {
    for data in [
        "{\"choices\":[{\"del",
        "secret",
        "[]",
        "7",
        r#"{"choices":"secret"}"#,
        r#"{"choices":[{"delta":7}]}"#,
    ] {
        let fault =
            Dialect::OpenaiChat.stream_reader().read(&event(data), &mut vec![]).unwrap_err();
        assert!(!fault.to_string().contains("secret"), "{fault}");
        assert!(fault.note.starts_with("a stream event"), "{fault}");
    }
}

#[test]
fn a_refusal_turns_stop_into_refused() {
    let finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let deltas =
        rest(&[&chunk(&json!({ "refusal": "No" })), &chunk(&json!({ "refusal": "." })), finish]);
    assert_eq!(deltas[2], Delta::Finish { finish: Finish::Refused, word: Some("stop".to_owned()) });
    assert_eq!(deltas[0], Delta::Refusal("No".to_owned()));
}

#[test]
fn an_unknown_or_missing_finish_is_never_a_success() {
    let new = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}"#;
    let want = Delta::Finish { finish: Finish::Unknown, word: Some("abort".to_owned()) };
    assert_eq!(rest(&[new]), [want]);
    let null = chunk(&json!({}));
    assert_eq!(rest(&[&null, "[DONE]"]), [Delta::End]);
}

#[test]
fn reasoning_in_every_form_is_reasoning() {
    let so = || Delta::Reasoning("so".to_owned());
    for delta in [
        json!({ "reasoning_content": "so" }),
        json!({ "reasoning": "so", "content": null }),
        json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "so" }] }] }),
    ] {
        assert_eq!(rest(&[&chunk(&delta)]), [so()], "{delta}");
    }
}

#[test]
fn tool_calls_are_put_together_by_index() {
    let deltas = rest(&[
        &chunk(
            &json!({ "tool_calls": [{ "index": 0, "id": "a", "type": "function", "function": { "name": "f", "arguments": "" } }] }),
        ),
        &chunk(&json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{\"x\"" } }] })),
        &chunk(
            &json!({ "tool_calls": [{ "index": 1, "id": "b", "function": { "name": "g", "arguments": "{}" } }] }),
        ),
        &chunk(&json!({ "tool_calls": [{ "index": 0, "function": { "arguments": ":1}" } }] })),
    ]);
    assert_eq!(
        deltas,
        [
            tool(0, "a", "f"),
            arguments(0, "{\"x\""),
            tool(1, "b", "g"),
            arguments(1, "{}"),
            arguments(0, ":1}"),
        ]
    );
}

#[test]
fn two_fragments_of_one_index_in_one_chunk_are_one_call() {
    // https://github.com/openai/openai-python/issues/3201
    let deltas = rest(&[&chunk(&json!({ "tool_calls": [
        { "index": 0, "id": "t1", "function": { "name": "f", "arguments": "{\"a\":" } },
        { "index": 0, "function": { "arguments": "1}" } },
    ] }))]);
    let split = Delta::Quirk(Quirk::CallSplit);
    assert_eq!(deltas, [tool(0, "t1", "f"), arguments(0, "{\"a\":"), arguments(0, "1}"), split]);
}

#[test]
fn a_name_repeated_in_later_fragments_is_not_doubled() {
    // https://github.com/open-webui/open-webui/pull/22235
    let piece = |arguments: &str| {
        chunk(
            &json!({ "tool_calls": [{ "index": 0, "id": "t1", "function": { "name": "find", "arguments": arguments } }] }),
        )
    };
    let again = Delta::Quirk(Quirk::CallNamedAgain);
    assert_eq!(
        rest(&[&piece(""), &piece("{}"), &piece("")]),
        [tool(0, "t1", "find"), arguments(0, "{}"), again, Delta::Alive]
    );
}

#[test]
fn without_an_index_a_fragment_goes_by_id_then_by_place() {
    let deltas = rest(&[
        &chunk(&json!({ "tool_calls": [
            { "id": "a", "function": { "name": "f", "arguments": "{" } },
            { "id": "b", "function": { "name": "g", "arguments": "" } },
        ] })),
        &chunk(&json!({ "tool_calls": [{ "id": "a", "function": { "arguments": "}" } }] })),
        &chunk(&json!({ "tool_calls": [{ "function": { "arguments": "{}" } }] })),
    ]);
    assert_eq!(
        deltas,
        [
            Delta::Quirk(Quirk::IndexMissing),
            tool(0, "a", "f"),
            arguments(0, "{"),
            tool(1, "b", "g"),
            arguments(0, "}"),
            Delta::Quirk(Quirk::CallNamedAgain),
            arguments(1, "{}"),
        ]
    );
}

#[test]
fn two_whole_calls_under_one_index_stay_two() {
    let deltas = rest(&[
        &chunk(
            &json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{}" } }] }),
        ),
        &chunk(
            &json!({ "tool_calls": [{ "index": 0, "id": "b", "function": { "name": "f", "arguments": "[]" } }] }),
        ),
    ]);
    assert_eq!(
        deltas,
        [
            tool(0, "a", "f"),
            arguments(0, "{}"),
            Delta::Quirk(Quirk::IndexShared),
            tool(1, "b", "f"),
            arguments(1, "[]")
        ]
    );
}

#[test]
fn arguments_before_the_name_wait_for_it() {
    let nameless = chunk(
        &json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "arguments": "{" } }] }),
    );
    let named = chunk(
        &json!({ "tool_calls": [{ "index": 0, "function": { "name": "f", "arguments": "}" } }] }),
    );
    let first = Delta::Quirk(Quirk::ArgumentsFirst);
    let want = [first.clone(), tool(0, "a", "f"), arguments(0, "{"), arguments(0, "}")];
    assert_eq!(rest(&[&nameless, &named]), want);
    let want = [first, tool(0, "a", ""), arguments(0, "{"), Delta::End];
    assert_eq!(rest(&[&nameless, "[DONE]"]), want);
}

/// The deltas of one tool-call fragment an event.
fn calls(fragments: &[Value]) -> Vec<Delta> {
    let chunks: Vec<String> =
        fragments.iter().map(|call| chunk(&json!({ "tool_calls": [call] }))).collect();
    rest(&chunks.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_call_under_a_shared_index_is_found_by_its_id() {
    let of = |id: &str, name: &str, arguments: &str| json!({ "index": 0, "id": id, "function": { "name": name, "arguments": arguments } });
    let deltas = calls(&[
        of("a", "f", "{"),
        of("b", "g", "["),
        of("a", "", "}"),
        json!({ "index": 0, "function": { "arguments": "]" } }),
    ]);
    let said: Vec<&Delta> = deltas.iter().filter(|d| !matches!(d, Delta::Quirk(_))).collect();
    let want = [
        &tool(0, "a", "f"),
        &arguments(0, "{"),
        &tool(1, "b", "g"),
        &arguments(1, "["),
        &arguments(0, "}"),
        &arguments(1, "]"),
    ];
    assert_eq!(said, want);
}

#[test]
fn another_name_under_one_index_is_another_call_only_behind_a_whole_one() {
    let of = |name: &str, arguments: &str| json!({ "index": 0, "function": { "name": name, "arguments": arguments } });
    let deltas = calls(&[of("f", "{}"), of("g", "{}")]);
    assert!(deltas.contains(&tool(1, "", "g")), "{deltas:?}");
    let mut reader = Dialect::OpenaiChat.stream_reader();
    let mut out = vec![];
    for (call, is_fine) in [(of("f", "{"), true), (of("g", "}"), false)] {
        let data = chunk(&json!({ "tool_calls": [call] }));
        assert_eq!(reader.read(&event(&data), &mut out).is_ok(), is_fine);
    }
}

#[test]
fn a_name_that_comes_again_without_index_and_id_goes_on_with_its_call_until_that_is_whole() {
    let of = |arguments: &str| json!({ "function": { "name": "f", "arguments": arguments } });
    let deltas = calls(&[of("{\"a\":"), of("1}"), of("{}")]);
    let starts = deltas.iter().filter(|delta| matches!(delta, Delta::ToolStart { .. })).count();
    assert_eq!(starts, 2, "{deltas:?}");
    assert!(deltas.contains(&arguments(0, "1}")) && deltas.contains(&arguments(1, "{}")));
}

#[test]
fn arguments_written_as_json_are_their_text_and_a_quirk() {
    let deltas = calls(&[
        json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": { "a": 1 } } }),
    ]);
    let quirk = Delta::Quirk(Quirk::ArgumentsNotText);
    assert_eq!(deltas, [tool(0, "a", "f"), arguments(0, "{\"a\":1}"), quirk]);
}

#[test]
fn arguments_that_wait_for_a_name_are_bounded() {
    let piece = chunk(
        &json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "x".repeat(100_000) } }] }),
    );
    let mut reader = Dialect::OpenaiChat.stream_reader();
    let mut out = vec![];
    let refused = (0..20).any(|_| reader.read(&event(&piece), &mut out).is_err());
    assert!(refused);
}

#[test]
fn content_after_the_finish_is_refused_and_blanks_are_not() {
    let done = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    let late = |delta: Value| {
        let mut reader = Dialect::OpenaiChat.stream_reader();
        let mut out = vec![];
        reader.read(&event(done), &mut out).unwrap();
        let read = reader.read(&event(&chunk(&delta)), &mut out).is_ok();
        reader.read(&event("[DONE]"), &mut out).unwrap();
        reader.read(&event(&chunk(&delta)), &mut out).unwrap();
        read
    };
    assert!(!late(json!({ "content": "b" })));
    assert!(!late(json!({ "reasoning_content": "b" })));
    assert!(!late(json!({ "tool_calls": [{ "index": 0, "function": { "name": "f" } }] })));
    assert!(late(json!({ "content": "\n" })));
    assert!(late(json!({})));
}

#[test]
fn the_old_function_call_is_one_tool_call() {
    let deltas = rest(&[
        &chunk(&json!({ "function_call": { "name": "f", "arguments": "" } })),
        &chunk(&json!({ "function_call": { "arguments": "{}" } })),
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}"#,
    ]);
    assert_eq!(deltas[..2], [tool(0, "", "f"), arguments(0, "{}")]);
    assert!(matches!(deltas[2], Delta::Finish { finish: Finish::ToolUse, .. }));
}

#[test]
fn other_choices_and_unknown_fields_are_told_apart() {
    let other = r#"{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":null}]}"#;
    assert_eq!(rest(&[other]), [Delta::of_choice(1, text("b"))]);
    let field = chunk(&json!({ "content": "a", "hologram": { "x": 1 } }));
    assert_eq!(rest(&[&field]), [text("a"), Delta::Unknown("message field: hologram".to_owned())]);
    assert_eq!(
        read(&[r#"{"type":"audio.delta","x":1}"#]),
        [Delta::Unknown("event: audio.delta".to_owned())]
    );
}

// --- writing ---

fn write(usage: UsageEvent, deltas: &[Delta]) -> String {
    let mut writer = Dialect::OpenaiChat.stream_writer("asked", usage);
    let mut out = vec![];
    for delta in deltas {
        writer.write(delta, &mut out);
    }
    String::from_utf8(out).unwrap()
}

fn payloads(stream: &str) -> Vec<String> {
    assert!(stream.ends_with("\n\n"));
    stream
        .trim_end()
        .split("\n\n")
        .map(|event| event.strip_prefix("data: ").unwrap().to_owned())
        .collect()
}

fn whole() -> Vec<Delta> {
    vec![
        Delta::Start { id: "c1".to_owned(), model: "provider".to_owned() },
        Delta::Reasoning("so".to_owned()),
        text("a\nb"),
        tool(0, "t1", "f"),
        arguments(0, "{\"x\":"),
        arguments(0, "1}"),
        Delta::Finish { finish: Finish::ToolUse, word: Some("tool_use".to_owned()) },
        Delta::Usage(Usage { input: Some(3), output: Some(2), ..Usage::default() }),
        Delta::End,
    ]
}

#[test]
fn what_is_written_reads_back_the_same() {
    let stream = write(UsageEvent::Send, &whole());
    let payloads = payloads(&stream);
    let deltas = read(&payloads.iter().map(String::as_str).collect::<Vec<_>>());
    let mut want = whole();
    want[0] = Delta::Start { id: "c1".to_owned(), model: "asked".to_owned() };
    want[6] = Delta::Finish { finish: Finish::ToolUse, word: Some("tool_calls".to_owned()) };
    assert_eq!(deltas, want);
}

#[test]
fn the_first_chunk_names_the_role_and_done_comes_once() {
    let stream = write(UsageEvent::Omit, &[&whole()[..], &[Delta::End, text("late")]].concat());
    let payloads = payloads(&stream);
    let first: Value = serde_json::from_str(&payloads[0]).unwrap();
    assert_eq!(first["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
    assert_eq!(first["choices"][0]["finish_reason"], Value::Null);
    assert_eq!(first["object"], "chat.completion.chunk");
    assert!(first.get("usage").is_none());
    assert_eq!(payloads.last().unwrap(), "[DONE]");
    assert_eq!(stream.matches("[DONE]").count(), 1);
    assert!(!stream.contains("late"));
}

#[test]
fn usage_is_a_chunk_without_choices_only_where_it_was_asked_for() {
    let sent = payloads(&write(UsageEvent::Send, &whole()));
    let first: Value = serde_json::from_str(&sent[0]).unwrap();
    assert_eq!(first.get("usage"), Some(&Value::Null));
    let last: Value = serde_json::from_str(&sent[sent.len() - 2]).unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["total_tokens"], 5);
    assert!(!write(UsageEvent::Omit, &whole()).contains("usage"));
}

#[test]
fn a_stream_that_starts_with_content_still_names_the_role_first() {
    let stream = write(UsageEvent::Omit, &[text("x")]);
    assert_eq!(payloads(&stream).len(), 2);
    assert!(payloads(&stream)[0].contains(r#""role":"assistant""#));
}

#[test]
fn a_refusal_without_words_gets_some() {
    let finish = Delta::Finish { finish: Finish::Refused, word: Some("refusal".to_owned()) };
    let stream = write(UsageEvent::Omit, &[finish, Delta::End]);
    let payloads = payloads(&stream);
    let deltas = read(&payloads.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(deltas.iter().any(|d| matches!(d, Delta::Finish { finish: Finish::Refused, .. })));
}

#[test]
fn a_failure_ends_the_stream_and_is_never_followed_by_done() {
    let error = ProviderError {
        class: ErrorClass::Overloaded,
        status: Some(529),
        kind: None,
        code: None,
        param: None,
        message: "busy\nnow".to_owned(),
        delay: None,
    };
    let stream = write(UsageEvent::Send, &[text("x"), Delta::Error(error), Delta::End]);
    assert!(!stream.contains("[DONE]"));
    let payloads = payloads(&stream);
    let last: Value = serde_json::from_str(payloads.last().unwrap()).unwrap();
    assert_eq!(last["error"]["message"], "busy\nnow");
    assert_eq!(last["error"]["code"], "overloaded");

    let out = ErrorOut {
        status: 504,
        code: "deadline_exceeded",
        message: "late",
        param: None,
        call_id: "c",
    };
    let bytes = Dialect::OpenaiChat.write_stream_error(&out);
    let want = "data: {\"error\":{\"message\":\"late\",\"type\":\"server_error\",\"param\":null,\"code\":\"deadline_exceeded\"}}\n\n";
    assert_eq!(String::from_utf8(bytes).unwrap(), want);
}

#[test]
fn what_a_stream_cannot_say_is_lost_once() {
    let mut writer = Dialect::OpenaiChat.stream_writer("m", UsageEvent::Omit);
    let mut out = vec![];
    for _ in 0..3 {
        writer.write(&Delta::Signature("s".to_owned()), &mut out);
        writer.write(&Delta::Unknown("block: hologram".to_owned()), &mut out);
        writer.write(&Delta::Alive, &mut out);
    }
    assert!(out.is_empty());
    assert_eq!(writer.losses().len(), 2);
}

#[test]
fn every_choice_is_read_and_told_under_its_own_index() {
    let other = |delta| Delta::of_choice(1, delta);
    let call = r#"{"choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let deltas = rest(&[
        &chunk(&json!({ "content": "a" })),
        call,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]);
    assert_eq!(deltas[1..3], [other(tool(0, "c", "f")), other(arguments(0, "{}"))]);
    let mut fold = backstay_wire::chat::Fold::default();
    for delta in &deltas {
        fold.push(delta);
    }
    let reply = fold.into_reply();
    let finishes: Vec<Finish> = reply.choices.iter().map(|choice| choice.finish).collect();
    assert_eq!(finishes, [Finish::Complete, Finish::ToolUse]);
    let mut writer = Dialect::OpenaiChat.stream_writer("m", UsageEvent::Omit);
    let mut out = vec![];
    for delta in reply.deltas() {
        writer.write(&delta, &mut out);
    }
    let told = String::from_utf8(out).unwrap();
    for (part, count) in [
        (r#""index":1,"delta":{"role":"assistant","content":""}"#, 1),
        (r#""index":1,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}"#, 1),
        (r#""index":0,"delta":{},"logprobs":null,"finish_reason":"stop""#, 1),
        (r#""index":1,"delta":{},"logprobs":null,"finish_reason":"tool_calls""#, 1),
        ("[DONE]", 1),
    ] {
        assert_eq!(told.matches(part).count(), count, "{part}: {told}");
    }
}

#[test]
fn how_likely_the_tokens_were_comes_before_them_and_is_the_reasonings_where_that_comes() {
    let likely = |delta: Value| {
        let logprobs = json!({ "content": [{ "token": "a", "logprob": -0.5, "top_logprobs": [
            { "token": "a", "logprob": -0.5 }, { "token": "b", "logprob": -1.5 }] }] });
        json!({ "id": "c1", "model": "m", "choices": [{ "index": 0, "delta": delta,
            "logprobs": logprobs, "finish_reason": null }] })
        .to_string()
    };
    let mut odds = Odds::default();
    odds.push([-0.5, -1.5]);
    let said = Logprobs { text: odds.clone(), reasoning: Odds::default() };
    let thought = Logprobs { text: Odds::default(), reasoning: odds };
    assert_eq!(
        rest(&[
            &likely(json!({ "content": "a" })),
            &likely(json!({ "reasoning_content": "a", "content": "" })),
            &chunk(&json!({ "content": "b" })),
        ]),
        [
            Delta::Logprobs(said),
            text("a"),
            Delta::Logprobs(thought),
            Delta::Reasoning("a".to_owned()),
            text("b"),
        ]
    );
}
