//! Tool calls of servers that tell them in their own way: what a caller gets is in the dialect's form,
//! and what could be two things is refused.

use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::reported::played::Played;
use crate::told::{self, Told};
use crate::world::{BOTH, HELLO, Setup, World, request, streamed};

fn chunk(delta: &Value, finish: &Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "model": "m",
        "choices": [choice]});
    json!({"text": format!("data: {chunk}\n\n")})
}

/// A stream of these fragments of tool calls, an event each.
fn openai(fragments: &[Value], finish: &Value) -> Value {
    let each = fragments.iter().map(|call| chunk(&json!({"tool_calls": [call]}), &Value::Null));
    let mut steps: Vec<Value> = each.collect();
    steps.push(chunk(&json!({}), finish));
    steps.push(json!({"text": "data: [DONE]\n\n"}));
    steps.push(json!({"close": "clean"}));
    json!({"sse": {"transport": steps}})
}

fn anthropic(events: &[Value]) -> Value {
    let head = json!({"type": "message_start", "message": {"id": "m1", "type": "message",
        "role": "assistant", "content": [], "model": "m",
        "usage": {"input_tokens": 2, "output_tokens": 1}}});
    let text = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        json!({"text": format!("event: {kind}\ndata: {event}\n\n")})
    };
    let mut steps: Vec<Value> = std::iter::once(&head).chain(events).map(text).collect();
    steps.push(json!({"close": "clean"}));
    json!({"sse": {"transport": steps}})
}

async fn world(dialect: Dialect, exchange: Value, more: &str) -> (World, Played) {
    let played = Played::start(vec![exchange]).await;
    let world = Setup::new()
        .tables(&played.provider_in("odd", dialect))
        .target("p1", "odd", &[])
        .route("route", &["p1"], &format!("max_attempts = 1\ndeadline = \"5s\"\n{more}"))
        .start()
        .await;
    (world, played)
}

/// A request that offers the tools `f` and `g`.
fn offering(caller: Dialect) -> Value {
    let mut body = streamed(request(caller, "route", HELLO));
    let any = json!({"type": "object"});
    let tool = |name: &str| match caller {
        Dialect::OpenaiChat => {
            json!({"type": "function", "function": {"name": name, "parameters": any}})
        }
        Dialect::Anthropic => json!({"name": name, "input_schema": any}),
    };
    body["tools"] = json!([tool("f"), tool("g")]);
    body
}

/// What a caller of each dialect is told, with the metrics after it.
async fn heard(dialect: Dialect, exchange: Value, more: &str) -> (Vec<(Seen, Told)>, String) {
    let (world, _played) = world(dialect, exchange, more).await;
    let mut all = Vec::new();
    for caller in BOTH {
        let seen = world.ask(caller, &offering(caller)).await;
        let told = told::stream(caller, &seen);
        all.push((seen, told));
    }
    let metrics = world.get("/metrics").await.text();
    world.stop().await;
    (all, metrics)
}

fn piece(index: Option<u64>, id: &str, name: &str, arguments: &str) -> Value {
    let mut call = json!({"function": {"arguments": arguments}});
    if let Some(index) = index {
        call["index"] = json!(index);
    }
    if !id.is_empty() {
        call["id"] = json!(id);
    }
    if !name.is_empty() {
        call["function"]["name"] = json!(name);
    }
    call
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_gets_odd_tool_calls_in_the_form_of_its_dialect() {
    let rows = [
        (
            "call_named_again",
            vec![piece(Some(0), "a", "f", "{\"a\":"), piece(Some(0), "a", "f", "1}")],
        ),
        ("index_missing", vec![piece(None, "a", "f", "{\"a\":"), piece(None, "", "", "1}")]),
        (
            "index_shared",
            vec![piece(Some(0), "a", "f", "{\"a\":1}"), piece(Some(0), "b", "g", "{}")],
        ),
        (
            "arguments_again",
            vec![piece(Some(0), "a", "f", "{\"a\":"), piece(Some(0), "", "", "{\"a\":1}")],
        ),
        (
            "arguments_first",
            vec![piece(Some(0), "a", "", "{\"a\":"), piece(Some(0), "", "f", "1}")],
        ),
    ];
    for (quirk, fragments) in rows {
        let exchange = openai(&fragments, &json!("tool_calls"));
        let (all, metrics) = heard(Dialect::OpenaiChat, exchange, "").await;
        for (seen, told) in all {
            let mut wanted = vec![("f".to_owned(), json!({"a": 1}).to_string())];
            if quirk == "index_shared" {
                wanted.push(("g".to_owned(), "{}".to_owned()));
            }
            assert_eq!(told.calls, wanted, "{quirk}: {}", seen.text());
            assert_eq!((told.terminals, told.errors.len()), (1, 0), "{quirk}: {}", seen.text());
            // Clients join what comes again.
            assert_eq!(seen.text().matches("\"f\"").count(), 1, "{quirk}: {}", seen.text());
        }
        assert!(metrics.contains(&format!("quirk=\"{quirk}\"")), "{quirk}: {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_finish_is_told_where_every_call_is_whole_and_else_the_stream_fails() {
    let whole = [piece(Some(0), "a", "f", "{\"a\":1}")];
    let (all, metrics) = heard(Dialect::OpenaiChat, openai(&whole, &Value::Null), "").await;
    for ((seen, told), finish) in all.into_iter().zip(["tool_calls", "tool_use"]) {
        assert_eq!(told.finish.as_deref(), Some(finish), "{}", seen.text());
        assert_eq!((told.terminals, told.calls.len()), (1, 1), "{}", seen.text());
    }
    assert!(metrics.contains("quirk=\"finish_missing\""), "{metrics}");
    let half = [piece(Some(0), "a", "f", "{\"a\":1")];
    let (all, _) = heard(Dialect::OpenaiChat, openai(&half, &Value::Null), "").await;
    for ((seen, _), caller) in all.into_iter().zip(BOTH) {
        let wrongs = told::not_an_error(caller, &seen.json(), "provider_stream_cut");
        assert!(wrongs.is_empty(), "{wrongs:?} {}", seen.text());
    }
    let events = [
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_stop"}),
    ];
    let (all, _) = heard(Dialect::Anthropic, anthropic(&events), "").await;
    for ((seen, told), finish) in all.into_iter().zip(["tool_calls", "tool_use"]) {
        assert_eq!(told.finish.as_deref(), Some(finish), "{}", seen.text());
        assert_eq!((told.terminals, told.calls.len()), (1, 1), "{}", seen.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_be_two_calls_or_two_arguments_is_refused_however_much_may_be_mended() {
    let rows = [
        [piece(Some(0), "a", "f", "{\"a\":1}"), piece(Some(0), "", "", "{\"a\":2}")],
        [piece(Some(0), "a", "f", "{\"a\":1}"), piece(Some(0), "", "", "{\"a\":1,\"b\":2}")],
        // A resending that was cut.
        [piece(Some(0), "a", "f", "{\"a\":"), piece(Some(0), "", "", "{\"a\":\"x")],
        [piece(Some(0), "a", "f", "{\"a\":"), piece(Some(0), "", "g", "1}")],
    ];
    for fragments in rows {
        for more in ["", "stream = \"buffered\"", "mend = \"lenient\""] {
            let exchange = openai(&fragments, &json!("tool_calls"));
            let (all, _) = heard(Dialect::OpenaiChat, exchange, more).await;
            for (seen, told) in all {
                assert!(seen.status >= 400, "{more} {fragments:?}: {}", seen.text());
                assert!(told.calls.is_empty(), "{more} {fragments:?}: {}", seen.text());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_under_one_index_are_told_apart_while_nothing_is_out() {
    let begin = |id: &str, name: &str| {
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}})
    };
    let stop = json!({"type": "content_block_stop", "index": 0});
    let say = |text: &str| {
        json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "text_delta", "text": text}})
    };
    let ends = [
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ];
    let calls = [begin("a", "f"), begin("b", "g"), stop];
    let events = [&calls[..], &ends[..]].concat();
    let (all, _) = heard(Dialect::Anthropic, anthropic(&events), "").await;
    for (seen, told) in all {
        let names: Vec<&str> = told.calls.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["f", "g"], "{}", seen.text());
    }
    let text = [
        json!({"type": "content_block_start", "index": 1,
            "content_block": {"type": "text", "text": ""}}),
        say("first"),
    ];
    let events = [&text[..], &calls[..], &ends[..]].concat();
    let (all, _) = heard(Dialect::Anthropic, anthropic(&events), "").await;
    let told: Vec<usize> = all.iter().map(|(_, told)| told.errors.len()).collect();
    assert_eq!(told, [0, 1], "an index tells two blocks of one dialect, and none of the other");
}
