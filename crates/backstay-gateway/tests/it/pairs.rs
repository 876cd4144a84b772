//! Both dialects of callers with both of providers: plain and streamed, tools, refusals, usage, and
//! what becomes of fields that one of them does not know.

use backstay::record::Step;
use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::told::{self, Told};
use crate::world::{BOTH, HELLO, Setup, World, pairs, provider, request, short, streamed};

const ROUTE: &str = "deadline = \"4s\"\nmax_output_tokens = 500";

fn name(kind: &str, caller: Dialect, target: Dialect) -> String {
    format!("{kind}-{}{}", short(caller), short(target))
}

async fn world(kinds: &[(&str, &str)]) -> World {
    let mut setup = Setup::new();
    for (kind, behaviour) in kinds {
        for (caller, target) in pairs() {
            setup = setup.alone(&name(kind, caller, target), provider(target), &[behaviour], ROUTE);
        }
    }
    setup.start().await
}

/// The same request plain and as a stream.
async fn both_ways(world: &World, dialect: Dialect, body: Value) -> (Seen, Told, Told) {
    let seen = world.ask(dialect, &body).await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    let plain = told::plain(dialect, &seen.json());
    let mut body = streamed(body);
    if dialect == Dialect::OpenaiChat {
        body["stream_options"] = json!({"include_usage": true});
    }
    let stream = world.ask(dialect, &body).await;
    assert_eq!(stream.status, 200, "{}", stream.text());
    assert!(stream.header("content-type").starts_with("text/event-stream"));
    let told = told::stream(dialect, &stream);
    assert_eq!((told.terminals, told.late, told.errors.len()), (1, 0, 0), "{}", stream.text());
    assert_eq!(told.broken, [""; 0]);
    (seen, plain, told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pair_says_the_same_plain_and_streamed_with_its_usage() {
    let world = world(&[("say", "healthy+size=300"), ("wide", "split-utf8")]).await;
    for kind in ["say", "wide"] {
        for (caller, target) in pairs() {
            let name = name(kind, caller, target);
            let (seen, plain, stream) =
                both_ways(&world, caller, request(caller, &name, HELLO)).await;
            assert!(plain.text.len() > 50, "{name}: {plain:?}");
            assert_eq!(plain.text, stream.text, "{name}");
            assert_eq!(plain.finish, stream.finish, "{name}");
            let word = if caller == Dialect::OpenaiChat { "stop" } else { "end_turn" };
            assert_eq!(plain.finish.as_deref(), Some(word), "{name}");
            let (input, output) = plain.usage.unwrap_or_default();
            assert!(input > 0 && output > 0, "{name}: {plain:?}");
            assert_eq!(plain.usage.map(|u| u.1), stream.usage.map(|u| u.1), "{name}");
            for header in ["call-id", "outcome", "target", "tier", "attempts", "fingerprint"] {
                assert!(!seen.header(&format!("x-backstay-{header}")).is_empty(), "{header}");
            }
            let id = if caller == Dialect::OpenaiChat { "x-request-id" } else { "request-id" };
            assert!(seen.header(id).starts_with("req_"), "{name}: {:?}", seen.headers);
            let log = world.settled_log(&format!("{name}-1")).await;
            let asked: Vec<bool> = log.iter().map(|entry| entry.stream).collect();
            assert_eq!(asked, [false, true], "{name}");
        }
    }
    world.stop().await;
}

/// Two tools, as a caller offers them.
pub(crate) fn tools(dialect: Dialect) -> Value {
    let schema = |field: &str| json!({"type": "object", "required": [field], "properties": {field: {"type": "string"}}});
    let of = |name: &str, field: &str| match dialect {
        Dialect::OpenaiChat => json!({"type": "function", "function":
            {"name": name, "description": name, "parameters": schema(field)}}),
        Dialect::Anthropic => {
            json!({"name": name, "description": name, "input_schema": schema(field)})
        }
    };
    json!([of("weather", "city"), of("clock", "zone")])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_calls_cross_every_pair_one_and_two_at_a_time() {
    let world = world(&[("one", "tool-call"), ("two", "parallel-tools")]).await;
    for (kind, want) in [("one", &["weather"][..]), ("two", &["weather", "clock"])] {
        for (caller, target) in pairs() {
            let name = name(kind, caller, target);
            let mut body = request(caller, &name, HELLO);
            body["tools"] = tools(caller);
            let (_, plain, stream) = both_ways(&world, caller, body).await;
            for told in [&plain, &stream] {
                let names: Vec<&str> = told.calls.iter().map(|call| call.0.as_str()).collect();
                assert_eq!(names, want, "{name}: {told:?}");
                for (tool, arguments) in &told.calls {
                    let value: Value = serde_json::from_str(arguments).unwrap_or_default();
                    let field = if tool == "weather" { "city" } else { "zone" };
                    assert!(value[field].is_string(), "{name} {tool}: {arguments}");
                }
                let word = if caller == Dialect::OpenaiChat { "tool_calls" } else { "tool_use" };
                assert_eq!(told.finish.as_deref(), Some(word), "{name}");
            }
            let sent = world.log(&format!("{name}-1"));
            let sent: Value = serde_json::from_str(sent[0].body.as_deref().unwrap()).unwrap();
            let place = if target == Dialect::OpenaiChat {
                "/tools/1/function/parameters/required/0"
            } else {
                "/tools/1/input_schema/required/0"
            };
            assert_eq!(sent.pointer(place), Some(&json!("zone")), "{name}: {sent}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_crosses_every_pair_with_its_reason() {
    let world = world(&[("no", "refusal"), ("filter", "content-filter")]).await;
    for (caller, target) in pairs() {
        let name = name("no", caller, target);
        let seen = world.ask(caller, &request(caller, &name, HELLO)).await;
        assert_eq!((seen.status, seen.header("x-backstay-outcome")), (200, "refused"), "{name}");
        let plain = told::plain(caller, &seen.json());
        let stream = world.ask(caller, &streamed(request(caller, &name, HELLO))).await;
        let stream = told::stream(caller, &stream);
        assert_eq!((stream.terminals, stream.late), (1, 0), "{name}: {stream:?}");
        for told in [plain, stream] {
            match caller {
                Dialect::OpenaiChat => {
                    let by_word = told.finish.as_deref() == Some("content_filter");
                    assert!(by_word || !told.refusal.is_empty(), "{name}: {told:?}");
                }
                Dialect::Anthropic => assert_eq!(told.finish.as_deref(), Some("refusal"), "{name}"),
            }
        }
        assert_eq!(world.settled_log(&format!("{name}-1")).await.len(), 2, "never asked again");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_fields_survive_within_a_dialect_and_are_told_as_lost_across() {
    let world = world(&[("odd", "healthy")]).await;
    for (caller, target) in pairs() {
        let name = name("odd", caller, target);
        let mut body = request(caller, &name, HELLO);
        body["made_up_field"] = json!({"deep": [1, 2.50, "x"]});
        body["metadata"] = json!({"user_id": "u-1"});
        if caller == Dialect::OpenaiChat {
            body["logit_bias"] = json!({"50256": -100});
        } else {
            body["top_k"] = json!(40);
        }
        let odd = if caller == Dialect::OpenaiChat { "logit_bias" } else { "top_k" };
        let seen = world.ask(caller, &body).await;
        assert_eq!(seen.status, 200, "{name}: {}", seen.text());
        let log = world.settled_log(&format!("{name}-1")).await;
        let sent: Value = serde_json::from_str(log[0].body.as_deref().unwrap()).unwrap();
        if caller == target {
            for field in ["made_up_field", "metadata", odd] {
                assert_eq!(sent[field], body[field], "{name}");
            }
            assert_eq!(sent["messages"], body["messages"]);
            continue;
        }
        let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
        let row = row.unwrap().expect("a row");
        let lost: Vec<String> = row
            .trail
            .notes
            .iter()
            .filter_map(|note| match &note.step {
                Step::Sent { losses, .. } => Some(losses.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        for field in ["made_up_field", odd] {
            assert!(sent.get(field).is_none(), "{name}: {sent}");
            assert!(lost.iter().any(|loss| loss.contains(field)), "{name}: {lost:?}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_conversation_with_tool_results_crosses_every_pair() {
    let world = world(&[("talk", "healthy")]).await;
    for (caller, target) in pairs() {
        let name = name("talk", caller, target);
        let mut body = request(caller, &name, HELLO);
        body["tools"] = tools(caller);
        body["messages"] = match caller {
            Dialect::OpenaiChat => json!([
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Weather in Oslo?"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "4 degrees"}
            ]),
            Dialect::Anthropic => json!([
                {"role": "user", "content": "Weather in Oslo?"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1",
                    "name": "weather", "input": {"city": "Oslo"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1",
                    "content": "4 degrees"}]}
            ]),
        };
        if caller == Dialect::Anthropic {
            body["system"] = json!("Be brief.");
        }
        let seen = world.ask(caller, &body).await;
        assert_eq!(seen.status, 200, "{name}: {}", seen.text());
        let log = world.settled_log(&format!("{name}-1")).await;
        let sent: Value = serde_json::from_str(log[0].body.as_deref().unwrap()).unwrap();
        let found = |place: &str| sent.pointer(place).cloned().unwrap_or_default();
        match target {
            Dialect::OpenaiChat => {
                assert_eq!(found("/messages/0/role"), "system", "{sent}");
                assert_eq!(found("/messages/3/role"), "tool", "{sent}");
                assert_eq!(found("/messages/3/tool_call_id"), "call_1");
                let text = found("/messages/2/tool_calls/0/function/arguments");
                let args: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
                assert_eq!(args, json!({"city": "Oslo"}));
            }
            Dialect::Anthropic => {
                assert!(sent["system"].to_string().contains("Be brief."), "{sent}");
                assert_eq!(found("/messages/1/content/0/input"), json!({"city": "Oslo"}), "{sent}");
                assert_eq!(found("/messages/2/content/0/tool_use_id"), "call_1", "{sent}");
            }
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_tool_arguments_are_never_dressed_up_as_good_ones() {
    let world = world(&[("cut", "tool-args-truncated"), ("bad", "tool-args-invalid")]).await;
    for (caller, target) in pairs() {
        for kind in ["cut", "bad"] {
            let name = name(kind, caller, target);
            let mut body = request(caller, &name, HELLO);
            body["tools"] = tools(caller);
            let seen = world.ask(caller, &body).await;
            if seen.status != 200 {
                let code = seen.json()["error"]["code"].clone();
                let code = code.as_str().unwrap_or_default().to_owned();
                assert_eq!(told::not_typed(caller, &seen, 502, &code), [""; 0], "{name}");
                continue;
            }
            let told = told::plain(caller, &seen.json());
            let whole = told.calls.iter().all(|(_, arguments)| {
                serde_json::from_str::<Value>(arguments).is_ok_and(|v| v.get("city").is_some())
            });
            let cut = ["length", "max_tokens"].contains(&told.finish.as_deref().unwrap_or(""));
            assert!(cut || !whole, "{name}: {}", seen.text());
        }
    }
    for dialect in BOTH {
        assert!(!world.log(&format!("{}-1", name("cut", dialect, dialect))).is_empty());
    }
    world.stop().await;
}
