//! The edits of a streamed answer, told in the event that names its finish.

use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::fixed::Fixed;
use crate::world::{BOTH, HELLO, Setup, World, request};
use crate::{pairs, told};

/// A call of a tool with a comma too many, after a word; or an answer with one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Says {
    Call,
    Text,
}

fn events(provider: Dialect, says: Says) -> String {
    let openai = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "x", "object": "chat.completion.chunk", "created": 7, "model": "m",
            "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let anthropic = |event: Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    let block = |at: usize, head: Value, delta: Value| {
        [
            json!({"type": "content_block_start", "index": at, "content_block": head}),
            json!({"type": "content_block_delta", "index": at, "delta": delta}),
            json!({"type": "content_block_stop", "index": at}),
        ]
    };
    let city = "{\"city\": \"Bern\",}";
    let text = if says == Says::Call { "Well." } else { city };
    match provider {
        Dialect::OpenaiChat => {
            let call = json!([{"index": 0, "id": "c1", "type": "function",
                "function": {"name": "weather", "arguments": city}}]);
            let mut told = openai(json!({"role": "assistant", "content": text}), Value::Null);
            if says == Says::Call {
                told += &openai(json!({"tool_calls": call}), Value::Null);
            }
            let finish = if says == Says::Call { "tool_calls" } else { "stop" };
            told + &openai(json!({}), json!(finish)) + "data: [DONE]\n\n"
        }
        Dialect::Anthropic => {
            let message = json!({"id": "m1", "type": "message", "role": "assistant", "model": "m",
                "content": [], "stop_reason": null, "stop_sequence": null,
                "usage": {"input_tokens": 3, "output_tokens": 1}});
            let mut all = vec![json!({"type": "message_start", "message": message})];
            let delta = json!({"type": "text_delta", "text": text});
            all.extend(block(0, json!({"type": "text", "text": ""}), delta));
            if says == Says::Call {
                let head = json!({"type": "tool_use", "id": "c1", "name": "weather", "input": {}});
                let delta = json!({"type": "input_json_delta", "partial_json": city});
                all.extend(block(1, head, delta));
            }
            let finish = if says == Says::Call { "tool_use" } else { "end_turn" };
            all.push(json!({"type": "message_delta", "usage": {"output_tokens": 5},
                "delta": {"stop_reason": finish, "stop_sequence": null}}));
            all.push(json!({"type": "message_stop"}));
            all.into_iter().map(anthropic).collect()
        }
    }
}

async fn world(provider: Dialect, says: Says, route: &str) -> (World, Fixed) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let fixed = Fixed::raw(vec![format!("{head}{}", events(provider, says))]).await;
    let setup = Setup::new().tables(&fixed.provider_in("fixed", provider));
    let world = setup.alone("r", "fixed", &["healthy"], &format!("deadline = \"6s\"\n{route}"));
    (world.start().await, fixed)
}

/// What each event says as `backstay`, by its place from the end.
fn reports(seen: &Seen) -> Vec<(usize, Value)> {
    let text = seen.text();
    let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let reports = data.iter().rev().enumerate().filter_map(|(at, line)| {
        let event: Value = serde_json::from_str(line).ok()?;
        Some((at, event.get("backstay")?.clone()))
    });
    reports.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_tells_its_edits_beside_its_finish_where_somebody_asked() {
    let schema =
        json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}});
    for provider in BOTH {
        for (says, route, outcome) in [
            (Says::Text, "", "mended"),
            (Says::Call, "stream = \"buffered\"", "mended"),
            // Its head cannot know the end.
            (Says::Call, "stream = \"gate\"", "answered"),
        ] {
            let (world, _fixed) = world(provider, says, route).await;
            for caller in BOTH {
                let mut body = request(caller, "r", HELLO);
                body["stream"] = json!(true);
                match (says, caller) {
                    (Says::Call, _) => body["tools"] = pairs::tools(caller),
                    (Says::Text, Dialect::OpenaiChat) => {
                        body["response_format"] = json!({"type": "json_schema",
                            "json_schema": {"name": "s", "schema": schema}});
                    }
                    (Says::Text, Dialect::Anthropic) => {
                        body["output_config"] =
                            json!({"format": {"type": "json_schema", "schema": schema}});
                    }
                }
                let case = format!("{provider:?} to {caller:?}, {says:?}, {route}");
                let silent = world.ask(caller, &body).await;
                assert_eq!(silent.status, 200, "{case}: {}", silent.text());
                assert_eq!(reports(&silent), [], "{case}: nobody asked");
                let seen = world.ask_with(caller, &[("x-backstay-edits", "1")], &body).await;
                assert_eq!(seen.header("x-backstay-outcome"), outcome, "{case}");
                assert_eq!(
                    told::stream(caller, &seen),
                    told::stream(caller, &silent),
                    "{case}: the answer is the same"
                );
                let reports = reports(&seen);
                let [(from_end, report)] = reports.as_slice() else {
                    panic!("{case}: {}", seen.text())
                };
                assert_eq!(*from_end, 1, "{case}: {}", seen.text());
                let edits = report["edits"].as_array().unwrap();
                let kinds: Vec<&str> =
                    edits.iter().filter_map(|edit| edit["kind"].as_str()).collect();
                assert_eq!(kinds, ["trailing_comma"], "{case}");
                let tool = (says == Says::Call).then_some("weather");
                assert_eq!(edits[0]["tool"].as_str(), tool, "{case}");
            }
            world.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_a_route_that_always_tells_says_that_nothing_was_changed() {
    for provider in BOTH {
        let (world, _fixed) = world(provider, Says::Text, "report_edits = \"always\"").await;
        for caller in BOTH {
            let mut body = request(caller, "r", HELLO);
            body["stream"] = json!(true);
            let seen = world.ask(caller, &body).await;
            assert_eq!(reports(&seen), [(1, json!({"edits": []}))], "{}", seen.text());
        }
        world.stop().await;
    }
}
