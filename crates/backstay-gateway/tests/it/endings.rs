//! Streams whose end is easily read wrong: with nothing left to say, with a finish and no text, in the
//! middle of a word when the time is over.

use std::time::Duration;

use backstay::record::Row;
use backstay_wire::Dialect;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::client::{Line, Seen};
use crate::reported::played::Played;
use crate::told::{self, BROKEN, WHOLE};
use crate::world::{BOTH, HELLO, Setup, World, request, short, start, streamed};

const OPENAI: Dialect = Dialect::OpenaiChat;

const ROUTE: &str = "deadline = \"8s\"\nmax_output_tokens = 600\n\
    timeouts = { connect = \"500ms\", first_token = \"2s\", gap = \"500ms\", total = \"5s\" }";

/// A text long enough that the seam behind it can be found.
const TEXT: &str = "The lamp was lit at dusk, and out again by the morning.";

/// The modes that let a stream out before its end.
const RELEASING: [&str; 3] = ["passthrough", "gate", "windowed"];

/// An event of a stream in which the first choice says `delta` and finishes with `finish`.
fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m",
        "choices": choices});
    format!("data: {chunk}\n\n")
}

fn says(text: &str) -> String {
    chunk(&json!({ "content": text }), None)
}

/// Events of a stream in a provider's dialect.
fn events(events: &[Value]) -> String {
    let name = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
    let one = |event: &Value| format!("event: {}\ndata: {event}\n\n", name(event));
    events.iter().map(one).collect::<Vec<_>>().concat()
}

fn message_start() -> Value {
    json!({"type": "message_start", "message": {"id": "m1", "type": "message", "role": "assistant",
        "content": [], "model": "m", "usage": {"input_tokens": 2, "output_tokens": 1}}})
}

/// A whole stream that says nothing but that it is over, for this reason.
fn silent(dialect: Dialect, finish: &str) -> String {
    match dialect {
        Dialect::OpenaiChat => {
            let role = chunk(&json!({"role": "assistant", "content": ""}), None);
            format!("{role}{}data: [DONE]\n\n", chunk(&json!({}), Some(finish)))
        }
        Dialect::Anthropic => events(&[
            message_start(),
            json!({"type": "message_delta", "delta": {"stop_reason": finish,
                "stop_sequence": null}, "usage": {"output_tokens": 3}}),
            json!({"type": "message_stop"}),
        ]),
    }
}

/// A stream of these texts, the next at once, that is then closed.
fn stream<T: AsRef<str>>(texts: &[T]) -> Value {
    let texts = texts.iter().map(|text| json!({ "text": text.as_ref() }));
    let steps: Vec<Value> = texts.chain([json!({"close": "clean"})]).collect();
    json!({"sse": {"http_status": 200, "transport": steps}})
}

async fn ask_in(world: &World, mode: &str, body: Value) -> Seen {
    world.ask_with(OPENAI, &[("x-backstay-stream", mode)], &streamed(body)).await
}

/// Terminals, errors, what came after one of them, and what was broken.
/// A target `one` that plays `played`, and a healthy one, `two`.
fn backed(played: &Played) -> Setup {
    Setup::new().tables(&played.provider("played")).target("one", "played", &[]).target(
        "two",
        "openai",
        &["healthy"],
    )
}

fn row(world: &World, seen: &Seen) -> Row {
    let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
    row.expect("the log").expect("a row")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_continuation_with_nothing_to_add_ends_the_text_well() {
    let route = format!("{ROUTE}\nafter_release = \"continue\"\nwindow = {{ tokens = 4 }}");
    let (begun, rest) = TEXT.split_at(34);
    let cut = Played::start(vec![stream(&[says(begun), says(rest)])]).await;
    let whole = |dialect| match dialect {
        Dialect::OpenaiChat => json!({"id": "c2", "object": "chat.completion", "created": 7,
            "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": ""}}]}),
        Dialect::Anthropic => json!({"id": "m2", "type": "message", "role": "assistant",
            "model": "m", "content": [], "stop_reason": "end_turn",
            "usage": {"input_tokens": 2, "output_tokens": 1}}),
    };
    let (mut setup, mut players) = (Setup::new().tables(&cut.provider("cut")), Vec::new());
    for dialect in BOTH {
        let finish = if dialect == OPENAI { "stop" } else { "end_turn" };
        let kind = json!({"content-type": "application/json"});
        let plain = json!({"status": 200, "headers": kind, "body": whole(dialect)});
        for (how, exchange, streams) in
            [("s", stream(&[silent(dialect, finish)]), true), ("p", plain, false)]
        {
            let played = Played::start(vec![exchange]).await;
            let name = format!("{}{how}", short(dialect));
            let (one, two) = (format!("{name}-1"), format!("{name}-2"));
            setup = setup
                .tables(&played.provider_in(&format!("of-{name}"), dialect))
                .target(&one, "cut", &[])
                .target(&two, &format!("of-{name}"), &[])
                .and(&format!("prefill = \"assistant\"\nstreams = {streams}"))
                .route(&name, &[&one, &two], &route);
            players.push((name, played));
        }
    }
    let world = setup.start().await;
    for mode in RELEASING {
        for (name, played) in &players {
            let before = played.heard().len();
            let seen = ask_in(&world, mode, request(OPENAI, name, HELLO)).await;
            let told = told::stream(OPENAI, &seen);
            assert_eq!(told.ends(), WHOLE, "{mode} {name}: {}", seen.text());
            assert_eq!(told.finish.as_deref(), Some("stop"), "{mode} {name}");
            // A window takes its last words with it.
            let is_text =
                if mode == "windowed" { TEXT.starts_with(&told.text) } else { told.text == TEXT };
            assert!(is_text, "{mode} {name}: {}", told.text);
            assert!(seen.text().contains("rescued=continue"), "{mode} {name}: {}", seen.text());
            assert_eq!(played.heard().len() - before, 1, "{mode} {name}: once is enough");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_empty_from_its_beginning_is_still_no_answer() {
    let played = Played::start(vec![stream(&[silent(OPENAI, "stop")])]).await;
    let world = backed(&played)
        .route("empty", &["one", "two"], &format!("{ROUTE}\nafter_release = \"continue\""))
        .start()
        .await;
    for mode in ["gate", "windowed", "buffered"] {
        let seen = ask_in(&world, mode, request(OPENAI, "empty", HELLO)).await;
        let told = told::stream(OPENAI, &seen);
        assert_eq!((told.ends(), seen.header("x-backstay-tier")), (WHOLE, "2"), "{mode}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finish_without_text_means_the_same_in_every_mode() {
    let call = json!({"tool_calls": [{"index": 0, "id": "t1", "type": "function",
        "function": {"name": "weather", "arguments": ""}}]});
    let calls =
        [chunk(&call, None), chunk(&json!({}), Some("tool_calls")), "data: [DONE]\n\n".into()];
    let rows = [
        ("cut", OPENAI, vec![silent(OPENAI, "length")]),
        ("paused", Dialect::Anthropic, vec![silent(Dialect::Anthropic, "pause_turn")]),
        ("refused", Dialect::Anthropic, vec![silent(Dialect::Anthropic, "refusal")]),
        ("called", OPENAI, calls.to_vec()),
    ];
    let (mut setup, mut players) = (Setup::new(), Vec::new());
    for (name, dialect, steps) in &rows {
        let played = Played::start(vec![stream(steps)]).await;
        let target = format!("{name}-1");
        setup = setup
            .tables(&played.provider_in(&format!("of-{name}"), *dialect))
            .target(&target, &format!("of-{name}"), &[])
            .route(name, &[&target], ROUTE)
            .route(
                &format!("{name}-paced"),
                &[&target],
                &format!("{ROUTE}\ngate = {{ tokens = 20, min_tokens_per_second = 1 }}"),
            );
        players.push(played);
    }
    let world = setup.start().await;
    for (name, ..) in &rows {
        let ask = async |mode: &str, route: &str| {
            let mut body = request(OPENAI, route, HELLO);
            body["tools"] = json!([{"type": "function", "function": {"name": "weather",
                "parameters": {"type": "object"}}}]);
            let seen = ask_in(&world, mode, body).await;
            let told = told::stream(OPENAI, &seen);
            assert_eq!((seen.status, told.ends()), (200, WHOLE), "{name} {mode}: {}", seen.text());
            let calls = told.calls.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            (told.finish, told.text, calls, row(&world, &seen).outcome)
        };
        let buffered = ask("buffered", name).await;
        assert_eq!(ask("gate", name).await, buffered, "{name}");
        assert_eq!(ask("windowed", name).await, buffered, "{name}");
        assert_eq!(ask("gate", &format!("{name}-paced")).await, buffered, "{name}, paced");
    }
    world.stop().await;
}

/// A stream that says `text` and then a word every 100 ms for three seconds.
fn endless(text: &str) -> Value {
    let mut steps = vec![json!({ "text": says(text) })];
    for _ in 0..30 {
        steps.extend([json!({"wait_ms": 100}), json!({ "text": says(" more") })]);
    }
    json!({"sse": {"http_status": 200, "transport": steps}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_takes_longer_than_it_may_is_at_fault_and_another_one_takes_over() {
    let route = ROUTE.replace("\"5s\"", "\"700ms\"").replace("\"2s\"", "\"600ms\"");
    let end = [says(&format!("{TEXT}{} and no more.", " more".repeat(9))), silent(OPENAI, "stop")];
    let (slow, good) = (endless(TEXT), stream(&end));
    let (slow, good) = (Played::start(vec![slow]).await, Played::start(vec![good]).await);
    let world = Setup::new()
        .tables(&slow.provider("slow"))
        .tables(&good.provider("good"))
        .target("one", "slow", &[])
        .target("two", "good", &[])
        .route("ends", &["one"], &route)
        .route("rescued", &["one", "two"], &format!("{route}\nafter_release = \"restart\""))
        .start()
        .await;
    for mode in ["passthrough", "gate"] {
        let seen = ask_in(&world, mode, request(OPENAI, "ends", HELLO)).await;
        let told = told::stream(OPENAI, &seen);
        assert_eq!(told.ends(), BROKEN, "{mode}: {}", seen.text());
        assert_eq!(told::not_an_error(OPENAI, &told.errors[0], "provider_total_timeout"), [""; 0]);
        let message = told.errors[0]["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("not done in"), "{mode}: {message}");
        let seen = ask_in(&world, mode, request(OPENAI, "rescued", HELLO)).await;
        let told = told::stream(OPENAI, &seen);
        assert_eq!(told.ends(), WHOLE, "{mode}: {}", seen.text());
        assert!(told.text.ends_with("and no more."), "{mode}: {}", told.text);
        assert!(seen.text().contains("rescued=restart"), "{mode}: {}", seen.text());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_after_the_first_words_is_told_with_the_providers_own() {
    let error = json!({"error": {"message": "no room for you", "code": 503}});
    let played = Played::start(vec![stream(&[says(TEXT), format!("data: {error}\n\n")])]).await;
    let world = backed(&played).route("ends", &["one"], ROUTE).start().await;
    for caller in BOTH {
        let seen = world.ask(caller, &streamed(request(caller, "ends", HELLO))).await;
        let told = told::stream(caller, &seen);
        assert_eq!(told.ends(), BROKEN, "{}", seen.text());
        let error = &told.errors[0]["error"];
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains("; the provider says: no room for you"), "{message}");
        if caller == Dialect::Anthropic {
            assert_eq!(error["type"], "overloaded_error");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_in_another_dialect_says_when_it_began_and_what_it_lost() {
    let said = events(&[
        message_start(),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "signature_delta", "signature": "c2ln"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1,
            "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "text_delta", "text": TEXT}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn",
            "stop_sequence": null}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ]);
    let played = Played::start(vec![stream(&[said])]).await;
    let world = Setup::new()
        .tables(&played.provider_in("played", Dialect::Anthropic))
        .target("one", "played", &[])
        .route("told", &["one"], ROUTE)
        .start()
        .await;
    for mode in ["passthrough", "gate", "windowed", "buffered"] {
        let seen = ask_in(&world, mode, request(OPENAI, "told", HELLO)).await;
        let text = seen.text();
        let chunks = text.lines().filter_map(|line| line.strip_prefix("data: {"));
        let chunks: Vec<Value> = chunks
            .map(|chunk| serde_json::from_str(&format!("{{{chunk}")).expect("JSON"))
            .collect();
        let created: Vec<u64> =
            chunks.iter().map(|chunk| chunk["created"].as_u64().expect("a time")).collect();
        assert!(created.len() > 2 && created[0] > 1_700_000_000, "{mode}: {created:?}");
        assert!(created.iter().all(|at| *at == created[0]), "{mode}: {created:?}");
        let told = row(&world, &seen).trail.notes.iter().any(|note| {
            format!("{:?}", note.step).contains("the reasoning's signature cannot be said")
        });
        assert!(told, "{mode}: {:?}", row(&world, &seen).trail);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_has_the_time_of_the_first_content_and_not_of_a_sign_of_life() {
    let role = chunk(&json!({"role": "assistant", "content": ""}), None);
    let steps = json!([{"text": role}, {"wait_ms": 300}, {"text": says(TEXT)},
        {"text": silent(OPENAI, "stop")}, {"close": "clean"}]);
    let exchange = json!({"sse": {"http_status": 200, "transport": steps}});
    let played = Played::start(vec![exchange]).await;
    let world = backed(&played).route("told", &["one"], ROUTE).start().await;
    for mode in RELEASING {
        let seen = ask_in(&world, mode, request(OPENAI, "told", HELLO)).await;
        assert_eq!(told::stream(OPENAI, &seen).ends(), WHOLE, "{mode}: {}", seen.text());
        let row = row(&world, &seen);
        // A window of which the reply is shorter tells it at once.
        let least = if mode == "windowed" { 0.0 } else { 300.0 };
        assert!(row.first_token_ms >= least, "{mode}: {}", row.first_token_ms);
    }
    world.stop().await;
}

/// An error that says when to come back.
fn later(text: &str) -> Value {
    let message = "Rate limit reached. Please try again in 20s.";
    let error = json!({"error": {"message": message, "code": 429}});
    let begun = if text.is_empty() { String::new() } else { says(text) };
    stream(&[format!("{begun}data: {error}\n\n")])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_asks_for_a_rest_inside_a_stream_gets_it() {
    for (text, mode) in [("", "gate"), (TEXT, "gate"), (TEXT, "passthrough"), ("", "windowed")] {
        let played = Played::start(vec![later(text)]).await;
        let world = backed(&played).route("both", &["one", "two"], ROUTE).start().await;
        let _ = ask_in(&world, mode, request(OPENAI, "both", HELLO)).await;
        let began = tokio::time::Instant::now();
        let seen = ask_in(&world, mode, request(OPENAI, "both", HELLO)).await;
        assert_eq!(told::stream(OPENAI, &seen).ends(), WHOLE, "{mode}: {}", seen.text());
        assert_eq!(seen.header("x-backstay-tier"), "2", "{mode} {text}");
        assert_eq!(played.heard().len(), 1, "{mode} {text}: it rests");
        assert!(began.elapsed() < Duration::from_secs(3));
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_does_not_read_until_the_time_is_over_is_told_that_it_did_not() {
    // More than the sockets of both sides hold together.
    let page = json!({ "text": says(&"word ".repeat(12_000)) });
    let exchange = json!({"sse": {"http_status": 200, "transport": vec![page; 400]}});
    let played = Played::start(vec![exchange]).await;
    let route = ROUTE.replace("\"5s\"", "\"700ms\"").replace("\"2s\"", "\"600ms\"");
    let world = backed(&played)
        .route("slow", &["one", "two"], &format!("{route}\nafter_release = \"restart\""))
        .start()
        .await;
    let mut line = Line::open(world.address()).await;
    let body = streamed(request(OPENAI, "slow", HELLO)).to_string();
    let unguarded = &[("x-backstay-guards", "off")];
    line.ask(start(OPENAI), unguarded, body.as_bytes()).await.expect("sent");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let (mut last, mut buffer) = (String::new(), vec![0; 256 << 10]);
    while !last.contains("the deadline passed while the stream was being read") {
        let size = line.socket.read(&mut buffer).await.expect("bytes");
        assert!(size > 0, "it ended without: {last}");
        // The words may come in two reads.
        last = last.split_off(last.floor_char_boundary(last.len().saturating_sub(400)));
        last.push_str(&String::from_utf8_lossy(&buffer[..size]));
    }
    assert_eq!(world.log("two").len(), 0, "nobody else is asked");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_continuation_is_given_is_reserved_with_its_prompt() {
    let (begun, rest) = TEXT.split_at(34);
    let cut = Played::start(vec![stream(&[says(begun), says(rest)])]).await;
    let quiet = Played::start(vec![stream(&[silent(OPENAI, "stop")])]).await;
    let prices = "input_price = 1\noutput_price = 1";
    let world = Setup::new()
        .tables(&cut.provider("cut"))
        .tables(&quiet.provider("quiet"))
        .target("one", "cut", &[])
        .and(prices)
        .target("two", "quiet", &[])
        .and(&format!("{prices}\nprefill = \"assistant\""))
        .route("goes", &["one", "two"], &format!("{ROUTE}\nafter_release = \"continue\""))
        .route("ends", &["one"], ROUTE)
        .start()
        .await;
    // Nobody says what was used: what was reserved is booked.
    let booked = async |route: &str| {
        let seen = ask_in(&world, "gate", request(OPENAI, route, HELLO)).await;
        row(&world, &seen).booked_tokens
    };
    let (both, first) = (booked("goes").await, booked("ends").await);
    assert!(first > 600, "{first}");
    assert_eq!(both, 2 * first + TEXT.len() as u64);
    world.stop().await;
}
