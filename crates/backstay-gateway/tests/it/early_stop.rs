//! Early stop: where a route says so, nothing is read behind the one JSON value that was asked for, and the
//! provider learns of it at once; anything else is read to its end.

use backstay::record::Step;
use backstay_mock::End;
use backstay_wire::Dialect;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::fixed::Fixed;
use crate::streams::{ROUTE, not_whole};
use crate::told;
use crate::world::{
    BOTH, HELLO, Setup, TICKET, TRIAGE, World, pairs, provider, request, short, streamed, triaged,
};

const OPENAI: Dialect = Dialect::OpenaiChat;

/// Ten chunks of the answer, then ten seconds of sentences, 25 ms a chunk.
const LONG: &str = "then-prose+n=400+size=8000+gap=25ms";

const ON: &str = "guards = { early_stop = true }";

fn patient(more: &str) -> String {
    let route = ROUTE.replace("\"6s\"", "\"20s\"").replace("\"3s\"", "\"15s\"");
    format!("{}\n{more}", route.replace("= 600", "= 5000"))
}

fn checked(more: &str) -> String {
    patient(&format!("{more}\n{TRIAGE}"))
}

fn is_stopped(seen: &Seen) -> bool {
    seen.header("x-backstay-notes").contains("stopped early: ")
}

async fn end_of(world: &World, model: &str) -> End {
    world.settled_log(model).await.last().expect("a request").end
}

/// Whether `/metrics` has this series.
async fn counts(world: &World, series: &str) -> bool {
    world.get("/metrics").await.text().lines().any(|line| line == series)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_is_cut_off_behind_its_value_at_once() {
    let mut setup = Setup::new();
    for dialect in BOTH {
        setup = setup.alone(short(dialect), provider(dialect), &[LONG], &checked(ON));
    }
    let world = setup.start().await;
    for (caller, target) in pairs() {
        let route = short(target);
        let body = request(caller, route, TICKET);
        let plain = world.ask(caller, &body).await;
        assert_eq!(told::plain(caller, &plain.json()).text, triaged().to_string(), "{route}");
        let stream = world.ask(caller, &streamed(body)).await;
        let told = told::stream(caller, &stream);
        assert_eq!(not_whole(&stream, &told), [""; 0], "{route}");
        assert_eq!(told.text, triaged().to_string(), "{route}");
        for seen in [plain, stream] {
            assert_eq!(seen.header("x-backstay-outcome"), "answered", "{route}");
            let notes = seen.header("x-backstay-notes");
            assert!(
                notes.contains("stopped early: ") && notes.contains(" tokens spared"),
                "{notes}"
            );
            let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
            let row = row.expect("a log").expect("a row");
            assert!(row.at_least, "what it cost is not known");
            assert_eq!(row.output_tokens, 0, "a count on the way is no count");
            let last = row.trail.notes.last().map(|note| note.step.clone());
            let Some(Step::Ended { note, .. }) = last else { panic!("no end") };
            assert!(note.contains("stopped early: "), "{note}");
        }
    }
    for dialect in BOTH {
        let name = format!("{}-1", short(dialect));
        for entry in world.settled_log(&name).await {
            assert_eq!(entry.end, End::ClientGone, "{name}");
            // Three events open it and ten tell the answer; four more are 100 ms.
            assert!(entry.events_sent <= 18, "{name}: {} events", entry.events_sent);
        }
        let stops = format!("backstay_early_stops_total{{target=\"{name}\",why=\"more\"}} 4");
        assert!(counts(&world, &stops).await, "{name}");
        let none = format!("backstay_early_stop_spared_tokens_total{{target=\"{name}\"}} 0");
        assert!(!counts(&world, &none).await, "{name}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_stopped_unless_the_route_says_so_or_where_the_caller_does_not_want_it() {
    let brief = "then-prose+size=400";
    let world = Setup::new()
        .alone("usual", "openai", &[brief], &checked(""))
        .alone("early", "openai", &[brief], &checked(ON))
        .alone(
            "last",
            "openai",
            &[brief],
            &checked(&format!("{ON}\nmend = {{ candidates = \"last\" }}")),
        )
        .start()
        .await;
    let off: &[_] = &[("x-backstay-guards", "off")];
    for (route, headers) in [("usual", &[][..]), ("early", off), ("last", &[][..])] {
        let seen = world.ask_with(OPENAI, headers, &streamed(request(OPENAI, route, TICKET))).await;
        let told = told::stream(OPENAI, &seen);
        let value: Value = serde_json::from_str(&told.text).expect("JSON");
        assert_eq!(value, triaged(), "{route}");
        assert_eq!(seen.header("x-backstay-edits"), "prose_after=1", "{route}");
        assert!(!is_stopped(&seen), "{route}");
        assert_eq!(end_of(&world, &format!("{route}-1")).await, End::Complete, "{route}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_several_answers_and_text_are_read_to_their_end() {
    let brief = "then-prose+size=400";
    let world = Setup::new().alone("any", "openai", &[brief], &patient(ON)).start().await;
    let json = json!({"type": "json_object"});
    let tool = json!([{"type": "function", "function": {"name": "find", "parameters": {}}}]);
    let rows = [
        ("one", json!({"response_format": json}), true),
        ("tools", json!({"response_format": json, "tools": tool, "tool_choice": "none"}), false),
        ("several", json!({"response_format": json, "n": 2}), false),
        ("text", json!({}), false),
    ];
    for (what, fields, stops) in rows {
        let mut body = streamed(request(OPENAI, "any", TICKET));
        let fields = fields.as_object().cloned().unwrap_or_default();
        body.as_object_mut().expect("an object").extend(fields);
        let headers: &[_] =
            if what == "tools" { &[("x-backstay-stream", "buffered")] } else { &[] };
        let seen = world.ask_with(OPENAI, headers, &body).await;
        assert_eq!((seen.status, is_stopped(&seen)), (200, stops), "{what}: {}", seen.text());
    }
    assert!(counts(&world, "backstay_early_stops_total{target=\"any-1\",why=\"more\"} 1").await);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_and_its_end_are_no_early_stop() {
    let world = Setup::new()
        .alone("whole", "openai", &["healthy+gap=20ms"], &checked(ON))
        .alone("fenced", "anthropic", &["fenced+gap=20ms"], &checked(ON))
        .alone("open", "openai", &["held-open"], &checked(ON))
        .alone("around", "openai", &["prose-around"], &checked(ON))
        .start()
        .await;
    for (route, edits) in [
        ("whole", ""),
        ("fenced", "fence=2"),
        ("open", ""),
        ("around", "prose_before=1, prose_after=1"),
    ] {
        let seen = world.ask(OPENAI, &request(OPENAI, route, TICKET)).await;
        let told = told::plain(OPENAI, &seen.json());
        assert_eq!(serde_json::from_str::<Value>(&told.text).expect("JSON"), triaged(), "{route}");
        assert_eq!(seen.header("x-backstay-edits"), edits, "{route}");
        assert!(told.usage.is_some() && !is_stopped(&seen), "{route}");
    }
    let metrics = world.get("/metrics").await.text();
    assert!(!metrics.contains("backstay_early_stops_total{"), "{metrics}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_behind_a_value_is_taken_for_its_end_only_where_the_route_stops_early() {
    let stall = "stream-stall+n=8+at=8";
    let world = Setup::new()
        .alone("early", "openai", &[stall], &checked(ON))
        .alone("usual", "openai", &[stall], &checked("max_attempts = 1"))
        .start()
        .await;
    let seen = world.ask(OPENAI, &streamed(request(OPENAI, "early", TICKET))).await;
    let told = told::stream(OPENAI, &seen);
    assert_eq!(not_whole(&seen, &told), [""; 0]);
    assert_eq!(told.text, triaged().to_string());
    assert!(seen.header("x-backstay-notes").contains("no end came behind the value"));
    assert_eq!(end_of(&world, "early-1").await, End::ClientGone);
    assert!(
        counts(&world, "backstay_early_stops_total{target=\"early-1\",why=\"silence\"} 1").await
    );
    assert!(counts(&world, "backstay_early_stop_spared_tokens_total{target=\"early-1\"} 0").await);
    let seen = world.ask(OPENAI, &streamed(request(OPENAI, "usual", TICKET))).await;
    assert_eq!(seen.header("x-backstay-code"), "provider_stream_stalled");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_value_counts_only_where_the_reply_is_read_to_its_end() {
    let world = Setup::new()
        .alone("early", "openai", &["two-objects"], &checked(ON))
        .alone("usual", "openai", &["two-objects"], &checked("reasks = 0"))
        .start()
        .await;
    let seen = world.ask(OPENAI, &streamed(request(OPENAI, "early", TICKET))).await;
    assert_eq!(told::stream(OPENAI, &seen).text, triaged().to_string());
    let seen = world.ask(OPENAI, &streamed(request(OPENAI, "usual", TICKET))).await;
    assert_eq!(seen.header("x-backstay-code"), "reply_not_json");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_the_bytes_are_cut_the_answer_is_the_same() {
    let event = |text: &str| {
        let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": null});
        format!("data: {}\n\n", json!({"id": "c", "model": "m", "choices": [choice]}))
    };
    let value = "{\"name\":\"Zoë\",\"tags\":[\"}\",\"]\"]}";
    let (one, other) = value.split_at(10);
    let events = [one, other, "\n", "\nI cho", "se"].map(event).concat();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let all = format!("{head}{events}");
    let cuts = (head.len()..all.len()).step_by(37).filter(|cut| all.is_char_boundary(*cut));
    let runs = cuts.map(|cut| {
        let (before, behind) = all.split_at(cut);
        let pieces = vec![before.to_owned(), behind.to_owned()];
        async move {
            let target = Fixed::raw(pieces).await;
            let tables = format!(
                "{}\n[models.cut]\nprovider = \"cut\"\nmodel = \"m\"\npinned = true",
                target.provider("cut")
            );
            let world =
                Setup::new().tables(&tables).route("r", &["cut"], &patient(ON)).start().await;
            let mut body = request(OPENAI, "r", HELLO);
            body["response_format"] = json!({"type": "json_object"});
            let seen = world.ask(OPENAI, &body).await;
            assert_eq!(told::plain(OPENAI, &seen.json()).text, value, "cut at {cut}");
            assert!(seen.header("x-backstay-notes").contains(" behind the value"), "cut at {cut}");
            world.stop().await;
        }
    });
    join_all(runs).await;
}
