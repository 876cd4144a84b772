//! Streams that break after their release, on routes that let another reply take their place: the
//! caller reads one message to its end, or one error with the fault that broke it first.

use std::time::Duration;

use backstay_mock::End;
use backstay_wire::Dialect;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{Line, Seen};
use crate::told::{self, Told};
use crate::world::{
    BOTH, Setup, TALE, TOLD, World, pairs, provider, request, short, start, streamed,
};

const ROUTE: &str = "deadline = \"8s\"\n\
    timeouts = { connect = \"500ms\", first_token = \"2s\", gap = \"500ms\", total = \"5s\" }\n\
    max_output_tokens = 600\nafter_release = \"restart\"";

const CONTINUES: &str = "deadline = \"8s\"\n\
    timeouts = { connect = \"500ms\", first_token = \"2s\", gap = \"500ms\", total = \"5s\" }\n\
    max_output_tokens = 600\nafter_release = \"continue\"";

/// Behaviours that break a stream in the middle, and the code of the fault for each provider's dialect.
#[rustfmt::skip]
const BREAKS: &[(&str, &str, &str)] = &[
    ("stream-cut",       "provider_stream_cut",     "provider_stream_cut"),
    ("stream-end-early", "provider_stream_cut",     "provider_stream_cut"),
    ("stream-stall",     "provider_stream_stalled", "provider_stream_stalled"),
    ("error-event",      "provider_error",          "provider_overloaded"),
    ("malformed-chunk",  "reply_malformed",         "reply_malformed"),
];

/// Asks as a stream, with a usage event.
fn tale(caller: Dialect, route: &str) -> Value {
    let mut body = streamed(request(caller, route, TALE));
    if caller == Dialect::OpenaiChat {
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

/// What is wrong with a stream that must be the whole tale, told once.
fn not_whole(caller: Dialect, seen: &Seen, told: &Told) -> Vec<String> {
    let mut wrongs = Vec::new();
    let ends = told.ends();
    if seen.status != 200 || ends != told::WHOLE || told.finish.is_none() {
        wrongs.push(format!("terminals, errors, late, broken: {ends:?}"));
    }
    if told.text != TOLD {
        wrongs.push(format!("another text: {}", told.text));
    }
    wrongs.extend(not_one_message(caller, seen));
    if !wrongs.is_empty() {
        wrongs.push(seen.text());
    }
    wrongs
}

/// What is wrong with a stream that must be one message: a second name, or blocks out of order.
fn not_one_message(caller: Dialect, seen: &Seen) -> Vec<String> {
    let text = seen.text();
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = events.filter_map(|data| serde_json::from_str(data).ok()).collect();
    if caller == Dialect::OpenaiChat {
        let name = |event: &Value| (event["id"].clone(), event["model"].clone());
        let chunks = events.iter().filter(|event| event["object"] == "chat.completion.chunk");
        let names: Vec<_> = chunks.map(name).collect();
        let roles = events.iter().filter(|event| event["choices"][0]["delta"]["role"].is_string());
        let roles = roles.count();
        let one = names.windows(2).all(|pair| pair[0] == pair[1]) && roles == 1;
        return if one { vec![] } else { vec![format!("names {names:?}, {roles} roles")] };
    }
    let (mut open, mut next, mut wrongs) = (None, 0, Vec::new());
    let starts = events.iter().filter(|event| event["type"] == "message_start").count();
    for event in &events {
        let index = event["index"].as_u64();
        let is_right = match event["type"].as_str() {
            Some("content_block_start") => {
                let is_right = open.is_none() && index == Some(next);
                (open, next) = (index, next + 1);
                is_right
            }
            Some("content_block_delta") => index.is_some() && index == open,
            Some("content_block_stop") => {
                let is_right = index == open;
                open = None;
                is_right
            }
            _ => true,
        };
        if !is_right {
            wrongs.push(format!("out of order: {event}"));
        }
    }
    if starts != 1 || open.is_some() {
        wrongs.push(format!("{starts} starts, open {open:?}"));
    }
    wrongs
}

/// The last comment of a stream: the receipt.
fn receipt(seen: &Seen) -> String {
    let text = seen.text();
    let mut comments = text.lines().rev().filter(|line| line.starts_with(": backstay "));
    comments.next().unwrap_or_default().to_owned()
}

/// The name of the route between these two.
fn between(kind: &str, caller: Dialect, target: Dialect) -> String {
    format!("{kind}-{}{}", short(caller), short(target))
}

/// For every pair a route whose first target does `first`, and whose second, with what else its table holds, takes over.
fn taken_over(
    setup: Setup,
    kind: &str,
    (first, (second, more)): (&str, (&str, &str)),
    route: &str,
) -> Setup {
    pairs().fold(setup, |setup, (caller, target)| {
        let name = between(kind, caller, target);
        let (one, two) = (format!("{name}-1"), format!("{name}-2"));
        setup
            .target(&one, provider(target), &[first])
            .target(&two, provider(target), &[second])
            .and(more)
            .route(&name, &[&one, &two], route)
    })
}

async fn arrived(world: &World, model: &str) {
    let end = Instant::now() + Duration::from_secs(3);
    while world.log(model).is_empty() {
        assert!(Instant::now() < end, "no request for {model}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_breaks_goes_on_at_the_next_tier_and_is_read_as_one_message() {
    let mut setup = Setup::new();
    let name = |at: usize, caller, first, second| {
        format!("r{at}-{}{}{}", short(caller), short(first), short(second))
    };
    let cases: Vec<_> = (0..BREAKS.len())
        .flat_map(|at| pairs().map(move |(caller, first)| (at, caller, first)))
        .flat_map(|(at, caller, first)| BOTH.map(|second| (at, caller, first, second)))
        .collect();
    for (at, caller, first, second) in &cases {
        let name = name(*at, *caller, *first, *second);
        let (one, two) = (format!("{name}-1"), format!("{name}-2"));
        setup = setup
            .target(&one, provider(*first), &[BREAKS[*at].0])
            .target(&two, provider(*second), &["healthy+n=7+completion_tokens=42"])
            .route(&name, &[&one, &two], ROUTE);
    }
    let world = setup.start().await;
    let mut wrongs = Vec::new();
    for (at, caller, first, second) in cases {
        let name = name(at, caller, first, second);
        let seen = world.ask(caller, &tale(caller, &name)).await;
        let told = told::stream(caller, &seen);
        let mut found = not_whole(caller, &seen, &told);
        if told.usage.map(|(_, output)| output) != Some(42) {
            found.push(format!("usage {:?} is not of the target that answered", told.usage));
        }
        let receipt = receipt(&seen);
        let said = format!("outcome=answered target={name}-2 tier=2 attempts=2");
        if !receipt.contains(&said) || !receipt.contains(" rescued=restart") {
            found.push(format!("the receipt says {receipt}"));
        }
        if world.log(&format!("{name}-1")).len() != 1 || world.log(&format!("{name}-2")).len() != 1
        {
            found.push("not one request each".into());
        }
        wrongs.extend(found.into_iter().map(|wrong| format!("{} {name}: {wrong}", BREAKS[at].0)));
    }
    let metrics = world.get("/metrics").await.text();
    let counted = metrics.lines().filter(|line| {
        line.starts_with("backstay_rescues_total{") && line.contains("result=\"restart\"")
    });
    assert_eq!(counted.count(), BREAKS.len() * 8);
    world.stop().await;
    assert!(wrongs.is_empty(), "\n{}", wrongs.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_reply_is_never_mixed_in_and_the_fault_told_is_the_first_ones() {
    let mut setup = Setup::new();
    for (at, (behaviour, ..)) in BREAKS.iter().enumerate() {
        setup = taken_over(setup, &format!("d{at}"), (behaviour, ("loop+n=5", "")), ROUTE);
    }
    let world = setup.start().await;
    let mut wrongs = Vec::new();
    for (at, (behaviour, openai, anthropic)) in BREAKS.iter().enumerate() {
        for (caller, target) in pairs() {
            let name = between(&format!("d{at}"), caller, target);
            let seen = world.ask(caller, &tale(caller, &name)).await;
            let told = told::stream(caller, &seen);
            let code = if target == Dialect::OpenaiChat { openai } else { anthropic };
            let mut found = Vec::new();
            if (told.terminals, told.late, told.errors.len()) == (0, 0, 1) {
                found.extend(told::not_an_error(caller, &told.errors[0], code));
                let message = told.errors[0]["error"]["message"].as_str().unwrap_or_default();
                if !message.contains(&format!("{name}-1")) {
                    found.push(format!("not the first fault: {message}"));
                }
            } else {
                found.push(format!("not one error at the end: {}", seen.text()));
            }
            if told.text.is_empty() || !TOLD.starts_with(&told.text) {
                found.push(format!("mixed: {}", told.text));
            }
            let receipt = receipt(&seen);
            if !receipt.contains("outcome=failed") || !receipt.contains("rescued=differs") {
                found.push(format!("the receipt says {receipt}"));
            }
            wrongs.extend(found.into_iter().map(|wrong| format!("{behaviour} {name}: {wrong}")));
        }
    }
    world.stop().await;
    assert!(wrongs.is_empty(), "\n{}", wrongs.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alone_the_same_target_is_asked_again_and_attempts_end_with_the_first_fault() {
    let world = Setup::new()
        .alone("again", "openai", &["stream-cut", "stream-cut+at=20", "healthy"], ROUTE)
        .alone("late", "openai", &["stream-cut+at=4000", "healthy"], ROUTE)
        .alone("spent", "openai", &["error-event", "stream-cut", "stream-stall"], ROUTE)
        .alone("dead", "openai", &["stream-cut", "status-500"], ROUTE)
        .start()
        .await;
    let caller = Dialect::OpenaiChat;
    let seen = world.ask(caller, &tale(caller, "again")).await;
    assert_eq!(not_whole(caller, &seen, &told::stream(caller, &seen)), [""; 0]);
    assert!(receipt(&seen).contains("target=again-1 tier=1 attempts=3"), "{}", receipt(&seen));
    // All of the text was out, and only the finish was missing.
    let seen = world.ask(caller, &tale(caller, "late")).await;
    assert_eq!(not_whole(caller, &seen, &told::stream(caller, &seen)), [""; 0]);
    for (name, code) in [("spent", "provider_error"), ("dead", "provider_stream_cut")] {
        let seen = world.ask(caller, &tale(caller, name)).await;
        let told = told::stream(caller, &seen);
        assert_eq!((told.terminals, told.errors.len(), told.late), (0, 1, 0), "{}", seen.text());
        assert_eq!(told::not_an_error(caller, &told.errors[0], code), [""; 0]);
        assert!(TOLD.starts_with(&told.text) && !told.text.is_empty());
        let requests = world.log(&format!("{name}-1")).len();
        assert_eq!(requests, 3, "{name}: a rescue draws on the attempts of the call");
        assert!(receipt(&seen).contains("attempts=3 "), "{}", receipt(&seen));
        assert!(receipt(&seen).contains("rescued=failed"), "{}", receipt(&seen));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_goes_on_from_the_last_word_and_the_usage_is_the_sum() {
    let second = ("healthy+prompt_tokens=50+completion_tokens=9", "prefill = \"assistant\"");
    let world = taken_over(Setup::new(), "c", ("stream-cut", second), CONTINUES).start().await;
    for (caller, target) in pairs() {
        let name = between("c", caller, target);
        let seen = world.ask(caller, &tale(caller, &name)).await;
        let told = told::stream(caller, &seen);
        assert_eq!(not_whole(caller, &seen, &told), [""; 0], "{name}");
        assert!(receipt(&seen).contains(" rescued=continue"), "{name}: {}", receipt(&seen));
        let log = world.settled_log(&format!("{name}-2")).await;
        let body: Value =
            serde_json::from_str(log[0].body.as_deref().expect("a body")).expect("JSON");
        let last = body["messages"].as_array().expect("messages").last().expect("a message");
        let begun = last["content"].as_str().expect("text");
        assert_eq!((&last["role"], begun), (&json!("assistant"), begun.trim_end()));
        assert!(TOLD.starts_with(begun) && !begun.is_empty(), "{begun}");
        // Anthropic says what the prompt took at once, OpenAI with the end that never came.
        let before = u64::from(target == Dialect::Anthropic);
        let (input, output) = told.usage.expect("usage");
        assert!(output >= 9 + before, "{name}: {input} {output}");
        if caller == Dialect::OpenaiChat {
            assert_eq!(input > 50, target == Dialect::Anthropic, "{name}: {input}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_rejects_the_beginning_of_its_reply_answers_anew() {
    let mut setup = Setup::new();
    for target in BOTH {
        let name = format!("p-{}", short(target));
        let (one, two) = (format!("{name}-1"), format!("{name}-2"));
        setup = setup
            .target(&one, provider(target), &["stream-cut"])
            .target(&two, provider(target), &["rejects-prefill"])
            .and("prefill = \"assistant\"")
            .route(&name, &[&one, &two], CONTINUES);
    }
    let world = setup
        .target("gone-1", "openai", &["stream-cut"])
        .target("gone-2", "openai", &["rejects-prefill", "status-400"])
        .and("prefill = \"assistant\"")
        .route("gone", &["gone-1", "gone-2"], CONTINUES)
        .start()
        .await;
    let caller = Dialect::OpenaiChat;
    for target in BOTH {
        let name = format!("p-{}", short(target));
        let seen = world.ask(caller, &tale(caller, &name)).await;
        assert_eq!(not_whole(caller, &seen, &told::stream(caller, &seen)), [""; 0], "{name}");
        assert!(receipt(&seen).contains(" rescued=restart"), "{name}: {}", receipt(&seen));
    }
    // Case B117: its refusal is nothing that the caller asked for.
    let seen = world.ask(caller, &tale(caller, "gone")).await;
    let told = told::stream(caller, &seen);
    assert_eq!((told.terminals, told.errors.len(), told.late), (0, 1, 0), "{}", seen.text());
    assert_eq!(told::not_an_error(caller, &told.errors[0], "provider_stream_cut"), [""; 0]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_structure_and_several_choices_are_not_continued() {
    let world = Setup::new()
        .target("one", "openai", &["stream-cut"])
        .target("two", "openai", &["healthy"])
        .and("prefill = \"prefix\"")
        .route("all", &["one", "two"], CONTINUES)
        .start()
        .await;
    let caller = Dialect::OpenaiChat;
    let tool = json!([{"type": "function", "function": {"name": "t", "parameters": {}}}]);
    let begun = json!([{"role": "user", "content": TALE}, {"role": "assistant", "content": ""}]);
    for (field, value, how) in [
        ("tools", tool, "restart"),
        ("messages", begun, "restart"),
        ("user", json!("somebody"), "continue"),
    ] {
        let mut body = tale(caller, "all");
        body[field] = value;
        let seen = world.ask(caller, &body).await;
        assert_eq!(not_whole(caller, &seen, &told::stream(caller, &seen)), [""; 0], "{field}");
        assert!(receipt(&seen).contains(&format!("rescued={how}")), "{field}: {}", receipt(&seen));
    }
    let mut body = tale(caller, "all");
    body["n"] = json!(2);
    let seen = world.ask(caller, &body).await;
    let told = told::stream(caller, &seen);
    assert_eq!((told.terminals, told.errors.len()), (0, 1), "{}", seen.text());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_does_not_stream_takes_over_too() {
    let second = ("healthy", "streams = false");
    let world = taken_over(Setup::new(), "w", ("stream-cut", second), ROUTE).start().await;
    for (caller, target) in pairs() {
        let name = between("w", caller, target);
        let seen = world.ask(caller, &tale(caller, &name)).await;
        assert_eq!(not_whole(caller, &seen, &told::stream(caller, &seen)), [""; 0], "{name}");
        assert!(receipt(&seen).contains(&format!("target={name}-2")), "{name}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_leaves_while_another_reply_is_sought_frees_everything_at_once() {
    let world = Setup::new()
        .target("one", "openai", &["stream-cut"])
        .and("max_concurrency = 1")
        .target("two", "openai", &["silence", "healthy"])
        .and("max_concurrency = 1")
        .route("leaves", &["one", "two"], ROUTE)
        .start()
        .await;
    let caller = Dialect::OpenaiChat;
    let mut line = Line::open(world.address()).await;
    let body = tale(caller, "leaves").to_string();
    line.ask(start(caller), &[], body.as_bytes()).await.expect("sent");
    line.read_until("data:").await;
    arrived(&world, "two").await;
    drop(line);
    let began = Instant::now();
    while world.log("two")[0].end != End::ClientGone {
        assert!(began.elapsed() < Duration::from_millis(150), "{:?}", world.log("two")[0].end);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for snapshot in world.engine().standings() {
        assert_eq!(snapshot.in_flight, 0, "{snapshot:?}");
    }
    let seen = world.ask(caller, &tale(caller, "leaves")).await;
    assert_eq!(not_whole(caller, &seen, &told::stream(caller, &seen)), [""; 0]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_held_open_after_its_finish_is_whole_in_a_moment() {
    let long = ROUTE.replace("gap = \"500ms\"", "gap = \"4s\"");
    let mut setup = Setup::new();
    for (caller, target) in pairs() {
        let name = between("h", caller, target);
        setup = setup
            .alone(&name, provider(target), &["held-open"], &long)
            .alone(
                &format!("{name}-b"),
                provider(target),
                &["held-open"],
                &format!("{long}\nstream = \"buffered\""),
            )
            .alone(
                &format!("{name}-w"),
                provider(target),
                &["held-open"],
                &format!("{long}\nstream = \"windowed\"\nwindow = {{ tokens = 4 }}"),
            )
            .alone(
                &format!("{name}-f"),
                provider(target),
                &["held-open"],
                &format!("{long}\nupstream = \"stream\""),
            );
    }
    let world = setup.start().await;
    for (caller, target) in pairs() {
        let name = between("h", caller, target);
        for route in [name.clone(), format!("{name}-b"), format!("{name}-w")] {
            let seen = world.ask(caller, &tale(caller, &route)).await;
            let told = told::stream(caller, &seen);
            assert_eq!(not_whole(caller, &seen, &told), [""; 0], "{route}");
            assert!(told.usage.is_some_and(|(input, output)| input > 0 && output > 0), "{route}");
            assert!(seen.took < Duration::from_millis(900), "{route} took {:?}", seen.took);
        }
        let plain = request(caller, &format!("{name}-f"), TALE);
        let seen = world.ask(caller, &plain).await;
        let told = told::plain(caller, &seen.json());
        assert_eq!((told.text.as_str(), told.usage.is_some()), (TOLD, true), "{}", seen.text());
        assert!(seen.took < Duration::from_millis(900), "{name} took {:?}", seen.took);
    }
    world.stop().await;
}
