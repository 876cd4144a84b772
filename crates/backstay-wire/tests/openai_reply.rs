//! Whole replies of `OpenAI` Chat Completions.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use backstay_wire::chat::{Choice, Part, Reply, Usage};
use backstay_wire::dialect::{Dialect, ReadFault};
use backstay_wire::{ErrorClass, Finish};
use serde_json::{Value, json};

fn read(body: &Value) -> Reply {
    Dialect::OpenaiChat.read_reply(body.to_string().as_bytes()).unwrap()
}

fn fault(body: &str) -> ReadFault {
    Dialect::OpenaiChat.read_reply(body.as_bytes()).unwrap_err()
}

fn one(message: &Value, finish: &Value) -> Choice {
    let body = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": finish }] });
    read(&body).choices.remove(0)
}

fn write(reply: &Reply) -> Value {
    serde_json::from_slice(&Dialect::OpenaiChat.write_reply(reply).bytes).unwrap()
}

#[test]
fn a_plain_reply_is_read_whole() {
    let reply = read(&json!({
        "id": "c1", "object": "chat.completion", "created": 7, "model": "m-1",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": "Hi", "refusal": null, "annotations": [] },
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": {
            "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
            "prompt_tokens_details": { "cached_tokens": 4, "audio_tokens": 0 },
            "completion_tokens_details": { "reasoning_tokens": 3 },
        },
        "service_tier": "default",
    }));
    assert_eq!((reply.id.as_str(), reply.model.as_str(), reply.created), ("c1", "m-1", 7));
    assert_eq!(reply.choices[0].text(), "Hi");
    assert_eq!(reply.choices[0].finish, Finish::Complete);
    assert_eq!(reply.unknown, Vec::<String>::new());
    let usage = Usage {
        input: Some(10),
        output: Some(5),
        cached: Some(4),
        cache_write: None,
        reasoning: Some(3),
    };
    assert_eq!(reply.usage, usage);
}

#[test]
fn every_finish_reason_has_its_meaning_and_an_unknown_one_fails_closed() {
    let rows: &[(Value, Finish)] = &[
        (json!("stop"), Finish::Complete),
        (json!("length"), Finish::Truncated),
        (json!("tool_calls"), Finish::ToolUse),
        (json!("function_call"), Finish::ToolUse),
        (json!("content_filter"), Finish::ContentFiltered),
        (json!("eos_by_new_rules"), Finish::Unknown),
        (json!("STOP"), Finish::Unknown),
        (json!(""), Finish::Unknown),
        (json!(7), Finish::Unknown),
        (json!({}), Finish::Unknown),
        (Value::Null, Finish::Unknown),
    ];
    for (word, want) in rows {
        assert_eq!(one(&json!({ "content": "x" }), word).finish, *want, "{word}");
    }
    let absent = read(&json!({ "choices": [{ "message": { "content": "x" } }] }));
    assert_eq!(absent.choices[0].finish, Finish::Unknown);
    assert_eq!(absent.choices[0].finish_word, None);
    let body = json!({ "choices": [{ "message": {}, "finish_reason": "new" }] });
    assert_eq!(read(&body).unknown, ["finish reason: new"]);
}

#[test]
fn a_refusal_in_its_field_or_among_the_parts_outranks_stop() {
    let field = json!({ "content": null, "refusal": "No." });
    let choice = one(&field, &json!("stop"));
    assert_eq!((choice.finish, choice.refusal()), (Finish::Refused, Some("No.")));
    let part = json!({ "content": [
        { "type": "text", "text": "Sure" }, { "type": "refusal", "refusal": "No." },
    ] });
    assert_eq!(one(&part, &json!("stop")).finish, Finish::Refused);
    let blank = json!({ "content": "Fine.", "refusal": "" });
    assert_eq!(one(&blank, &json!("stop")).finish, Finish::Complete);
    assert_eq!(one(&field, &json!("length")).finish, Finish::Truncated);
}

#[test]
fn content_may_be_null_text_or_parts_and_unknown_parts_are_counted() {
    let part = json!({ "type": "hologram", "seed": 1 });
    let body = json!({ "choices": [{
        "message": { "content": [{ "type": "text", "text": "a" }, part, { "type": "text", "text": "b" }] },
        "finish_reason": "stop",
    }] });
    let reply = read(&body);
    assert_eq!(reply.choices[0].text(), "ab");
    assert_eq!(reply.choices[0].parts[1], Part::Other(part));
    assert_eq!(reply.unknown, ["content part: hologram"]);
    for empty in [json!({ "content": null }), json!({ "content": "" }), json!({})] {
        assert!(one(&empty, &json!("stop")).parts.is_empty());
    }
}

#[test]
fn reasoning_is_found_under_every_name() {
    let thinking = |text: &str| Part::Thinking { text: text.to_owned(), signature: None };
    for message in [
        json!({ "reasoning_content": "so", "content": "x" }),
        json!({ "reasoning": "so", "content": "x" }),
        json!({ "reasoning": "so", "reasoning_content": "so", "content": "x" }),
        json!({ "content": [
            { "type": "thinking", "thinking": [{ "type": "text", "text": "so" }] },
            { "type": "text", "text": "x" },
        ] }),
    ] {
        let choice = one(&message, &json!("stop"));
        assert_eq!(choice.parts, [thinking("so"), Part::Text("x".to_owned())], "{message}");
    }
}

#[test]
fn tool_calls_keep_their_arguments_as_they_came() {
    let message = json!({ "content": null, "tool_calls": [
        { "id": "t1", "type": "function", "function": { "name": "f", "arguments": "{\"a\": 1" } },
        { "id": "t2", "type": "function", "function": { "name": "g", "arguments": { "b": 2.50 } } },
        { "id": "t3", "function": { "name": "h", "arguments": null } },
        { "id": "t4", "type": "custom", "custom": { "name": "k", "input": "free" } },
    ] });
    let choice = one(&message, &json!("tool_calls"));
    let call = |id: &str, name: &str, arguments: &str| Part::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    assert_eq!(choice.finish, Finish::ToolUse);
    assert_eq!(
        choice.parts[..3],
        [call("t1", "f", "{\"a\": 1"), call("t2", "g", "{\"b\":2.5}"), call("t3", "h", ""),]
    );
    let custom =
        json!({ "id": "t4", "type": "custom", "custom": { "name": "k", "input": "free" } });
    assert_eq!(choice.parts[3], Part::Other(custom));
    let legacy = json!({ "content": null, "function_call": { "name": "f", "arguments": "{}" } });
    let choice = one(&legacy, &json!("function_call"));
    assert_eq!(choice.parts, [call("", "f", "{}")]);
    assert_eq!(choice.finish, Finish::ToolUse);
}

#[test]
fn an_error_under_a_success_status_is_a_failure() {
    let rows: &[(&str, ErrorClass)] = &[
        (r#"{"error":{"message":"m","type":"server_error"}}"#, ErrorClass::ServerError),
        (r#"{"error":{"code":429,"message":"m"}}"#, ErrorClass::RateLimited),
        (r#"{"error":"m"}"#, ErrorClass::ServerError),
        (r#"[{"error":{"code":429,"message":"m"}}]"#, ErrorClass::RateLimited),
        (r#"{"object":"error","message":"m","code":503}"#, ErrorClass::Overloaded),
        (r#"{"type":"error","message":"m"}"#, ErrorClass::ServerError),
        (
            r#"{"choices":[{"message":{"content":"half"},"finish_reason":"error","error":{"code":502,"message":"m"}}]}"#,
            ErrorClass::ServerError,
        ),
        (
            r#"{"error":{"code":"context_length_exceeded","message":"m"},"choices":[]}"#,
            ErrorClass::ContextExceeded,
        ),
    ];
    for (body, class) in rows {
        let ReadFault::Failure(error) = fault(body) else { panic!("{body} is no failure") };
        assert_eq!((error.class, error.message.as_str()), (*class, "m"), "{body}");
    }
    let fine = json!({ "error": null, "choices": [{ "message": { "content": "x" } }] });
    assert_eq!(read(&fine).choices[0].text(), "x");
}

#[test]
fn a_body_that_is_no_reply_is_malformed_and_not_quoted() {
    let rows: &[(&str, &str)] = &[
        ("", "the reply is empty"),
        ("  \n", "the reply is empty"),
        ("{\"choices\":[{\"mess", "the reply ends in the middle at line 1, column 18"),
        ("<html>", "the reply is not valid JSON at line 1, column 1"),
        ("[]", "expected an object"),
        ("null", "expected an object"),
        ("{}", "expected an array, found nothing"),
        (r#"{"choices":null}"#, "expected an array, found nothing"),
        (r#"{"choices":[]}"#, "expected at least one choice, found none"),
        (r#"{"choices":"secret"}"#, "expected an array of objects"),
        (r#"{"choices":["secret"]}"#, "a choice is not of the expected form"),
        (r#"{"choices":[{"message":"secret"}]}"#, "a choice is not of the expected form"),
        (r#"{"choices":[{"finish_reason":"stop"}]}"#, "expected an object, found nothing"),
        (
            r#"{"choices":[{"message":{"content":{"secret":1}}}]}"#,
            "a choice is not of the expected form",
        ),
    ];
    for (body, note) in rows {
        let ReadFault::Malformed(malformed) = fault(body) else { panic!("{body}") };
        assert_eq!(malformed.note, *note, "{body}");
    }
}

#[test]
fn fields_of_odd_types_and_repeated_keys_do_not_spoil_a_reply() {
    let body = r#"{"id":5,"model":null,"created":1.0,"usage":{"prompt_tokens":12.0,"completion_tokens":-1,
        "prompt_tokens_details":null},"choices":[{"index":"0","message":{"role":1,"content":"x",
        "content":"y","tool_calls":null},"finish_reason":"length","finish_reason":"stop"}]}"#;
    let reply = Dialect::OpenaiChat.read_reply(body.as_bytes()).unwrap();
    assert_eq!((reply.id.as_str(), reply.created), ("", 1));
    assert_eq!((reply.usage.input, reply.usage.output), (Some(12), None));
    assert_eq!(reply.choices[0].text(), "y");
    assert_eq!(reply.choices[0].finish, Finish::Complete);
}

#[test]
fn fields_that_hold_nothing_say_nothing() {
    // Every unused field sent empty, as one server does.
    let message = json!({
        "content": "4", "refusal": "", "tool_calls": null, "annotations": null,
        "audio": { "data": "", "expires_at": 0 }, "function_call": { "arguments": "", "name": "" },
    });
    let body = json!({ "choices": [{ "message": message, "finish_reason": "" }] });
    let reply = read(&body);
    assert_eq!(reply.choices[0].parts, [Part::Text("4".to_owned())]);
    assert_eq!((reply.choices[0].finish, &reply.choices[0].finish_word), (Finish::Unknown, &None));
    assert_eq!(reply.unknown, Vec::<String>::new());
}

#[test]
fn all_choices_are_read() {
    let choice = |text: &str| json!({ "message": { "content": text }, "finish_reason": "stop" });
    let reply = read(&json!({ "choices": [choice("a"), choice("b")] }));
    let texts: Vec<_> = reply.choices.iter().map(Choice::text).collect();
    assert_eq!(texts, ["a", "b"]);
}

#[test]
fn what_is_written_reads_back_the_same() {
    let reply = Reply {
        logprobs: vec![],
        id: "c1".to_owned(),
        model: "m".to_owned(),
        created: 9,
        choices: vec![Choice {
            parts: vec![
                Part::Thinking { text: "so".to_owned(), signature: None },
                Part::Text("x".to_owned()),
                Part::ToolCall {
                    id: "t".to_owned(),
                    name: "f".to_owned(),
                    arguments: "{\"a\":1".to_owned(),
                },
            ],
            finish: Finish::ToolUse,
            finish_word: Some("tool_calls".to_owned()),
        }],
        usage: Usage {
            input: Some(10),
            output: Some(4),
            cached: Some(1),
            cache_write: Some(2),
            reasoning: Some(3),
        },
        unknown: vec![],
        quirks: vec![],
    };
    let written = write(&reply);
    assert_eq!(read(&written), reply);
    assert_eq!(written["object"], "chat.completion");
    assert_eq!(written["usage"]["total_tokens"], 14);
    assert_eq!(written["choices"][0]["message"]["role"], "assistant");
}

#[test]
fn what_the_dialect_cannot_say_is_a_loss_and_a_refusal_stays_a_refusal() {
    let said = |finish: Finish, parts: Vec<Part>| Reply {
        choices: vec![Choice { parts, finish, finish_word: Some("theirs".to_owned()) }],
        ..Reply::default()
    };
    let finish =
        |finish: Finish| write(&said(finish, vec![]))["choices"][0]["finish_reason"].clone();
    assert_eq!(finish(Finish::Complete), "stop");
    assert_eq!(finish(Finish::Truncated), "length");
    assert_eq!(finish(Finish::ContextExceeded), "length");
    assert_eq!(finish(Finish::Paused), "length");
    assert_eq!(finish(Finish::ContentFiltered), "content_filter");
    assert_eq!(finish(Finish::Unknown), "theirs");

    let refused = write(&said(Finish::Refused, vec![]));
    let message = &refused["choices"][0]["message"];
    assert_eq!(message["refusal"], "the model declined to answer");
    assert_eq!(message["content"], Value::Null);
    assert_eq!(read(&refused).choices[0].finish, Finish::Refused);

    let wordless = write(&said(Finish::Refused, vec![Part::Refusal(String::new())]));
    assert_eq!(wordless, refused);

    let odd = said(
        Finish::Complete,
        vec![
            Part::Thinking { text: "t".to_owned(), signature: Some("s".to_owned()) },
            Part::Other(json!({ "type": "server_tool_use" })),
        ],
    );
    let losses = Dialect::OpenaiChat.write_reply(&odd).losses;
    let notes: Vec<_> = losses.iter().map(|l| (l.path.as_str(), l.note.as_str())).collect();
    assert_eq!(
        notes,
        [
            ("/choices/0/parts/0", "the reasoning's signature cannot be said"),
            ("/choices/0/parts/1", "a block of kind server_tool_use cannot be said"),
        ]
    );
    assert!(write(&odd).get("usage").is_none(), "usage nobody gave is not invented");
}

#[test]
fn how_likely_the_tokens_of_each_choice_were_is_read_where_it_is_said() {
    let choice = |logprobs: Value| json!({ "message": { "content": "a" }, "finish_reason": "stop", "logprobs": logprobs });
    let said = json!({ "content": [{ "token": "a", "logprob": -0.5, "top_logprobs": [] }] });
    let reply = read(&json!({ "choices": [choice(Value::Null), choice(said), choice(json!(7))] }));
    let odds: Vec<Vec<f32>> =
        reply.logprobs.iter().map(|told| told.text.tokens().flatten().copied().collect()).collect();
    assert_eq!(odds, [vec![], vec![-0.5]]);
    assert!(read(&json!({ "choices": [choice(Value::Null)] })).logprobs.is_empty());
}
