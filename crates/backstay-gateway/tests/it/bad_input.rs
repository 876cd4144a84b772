//! Bad input over raw sockets: a clear error in the caller's dialect, bounded memory, and a
//! connection that is usable or cleanly closed.

use std::time::Duration;

use backstay_wire::Dialect;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::client::{Ended, Line, Seen};
use crate::fixed::Fixed;
use crate::told;
use crate::world::{BOTH, HELLO, Setup, World, request, start};

const ROUTE: &str = "deadline = \"3s\"\nmax_output_tokens = 300";

async fn world() -> World {
    Setup::new()
        .server("header_timeout = \"400ms\"")
        .alone("o", "openai", &["healthy"], ROUTE)
        .alone("a", "anthropic", &["healthy"], ROUTE)
        .start()
        .await
}

async fn post(world: &World, dialect: Dialect, body: &[u8]) -> Seen {
    crate::client::call(world.address(), start(dialect), &[], body).await
}

/// A request with one field replaced.
fn with(dialect: Dialect, model: &str, field: &str, value: Value) -> Value {
    let mut body = request(dialect, model, HELLO);
    body[field] = value;
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_request_is_refused_in_the_callers_dialect_at_no_cost() {
    let world = world().await;
    let bad: &[&[u8]] = &[
        b"",
        b" ",
        b"{",
        b"}",
        b"[]",
        b"null",
        b"42",
        b"\"text\"",
        b"{\"model\": \"o\", \"messages\": [{\"role\": \"user\", \"content\": \"x\"}]} trailing",
        b"{\"model\": \"o\", \"messages\": [{\"role\": \"user\", \"content\": \"x\"}",
        b"{\"model\": \"o\", \"messages\": [{\"role\": \"user\", \"content\": \"\xff\xfe\"}]}",
        b"\xef\xbb\xbf\xff{",
        b"{\"model\": \"o\", 'messages': []}",
        b"{\"model\": \"o\", \"messages\": [], \"messages\": [{\"role\": \"user\"}], }",
    ];
    for dialect in BOTH {
        for body in bad {
            let seen = post(&world, dialect, body).await;
            let wrongs = told::not_typed(dialect, &seen, 400, "invalid_request");
            assert_eq!(wrongs, [""; 0], "{:?}", String::from_utf8_lossy(body));
        }
        for (field, value) in [
            ("model", json!(5)),
            ("model", json!(null)),
            ("model", json!("")),
            ("model", json!(["o"])),
            ("messages", json!(null)),
            ("messages", json!({})),
            ("messages", json!("hello")),
            ("messages", json!([])),
            ("stream", json!("yes")),
            ("stream", json!(1)),
            ("max_tokens", json!("10")),
            ("max_tokens", json!(-1)),
            ("max_tokens", json!(1.5)),
            ("max_tokens", json!([])),
        ] {
            let body = with(dialect, "o", field, value.clone());
            let seen = post(&world, dialect, body.to_string().as_bytes()).await;
            let wrongs = told::not_typed(dialect, &seen, 400, "invalid_request");
            assert_eq!(wrongs, [""; 0], "{field}: {value}");
            let told = seen.text();
            assert!(told.contains(field), "{field}: {value}: the field is not named: {told}");
        }
    }
    assert!(world.mock.log().is_empty(), "a broken request reached a provider");
    world.stop().await;
}

/// Fields that one dialect or the other knows.
const FIELDS: [&str; 24] = [
    "temperature",
    "top_p",
    "top_k",
    "stop",
    "stop_sequences",
    "tools",
    "tool_choice",
    "system",
    "response_format",
    "output_config",
    "metadata",
    "user",
    "n",
    "seed",
    "logprobs",
    "parallel_tool_calls",
    "thinking",
    "stream_options",
    "max_completion_tokens",
    "logit_bias",
    "reasoning_effort",
    "service_tier",
    "modalities",
    "prediction",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_types_of_every_known_field_never_break_anything_across_dialects() {
    let world = world().await;
    let values = [
        json!("text"),
        json!(-3),
        json!(1e300),
        json!([]),
        json!([5]),
        json!({}),
        json!(true),
        json!({"type": 5}),
        json!([{"type": []}]),
        json!(null),
    ];
    let mut refused = 0;
    for (dialect, model) in [(Dialect::OpenaiChat, "a"), (Dialect::Anthropic, "o")] {
        for field in FIELDS {
            for value in &values {
                let body = with(dialect, model, field, value.clone());
                let seen = post(&world, dialect, body.to_string().as_bytes()).await;
                let code = seen.json()["error"]["code"].clone();
                let fine = seen.status == 200
                    || (seen.status == 400
                        && told::not_typed(dialect, &seen, 400, code.as_str().unwrap_or(""))
                            .is_empty());
                assert!(fine, "{field}: {value}: {} {}", seen.status, seen.text());
                refused += usize::from(seen.status == 400);
            }
        }
        let message = [
            json!([5]),
            json!(["x"]),
            json!([null]),
            json!([{}]),
            json!([{"role": 5}]),
            json!([{"role": "nobody", "content": "x"}]),
            json!([{"role": "user", "content": 5}]),
            json!([{"role": "user", "content": {"a": 1}}]),
            json!([{"role": "user", "content": [5]}]),
            json!([{"role": "user", "content": [{"type": "text", "text": 5}]}]),
            json!([{"role": "assistant", "tool_calls": "x"}]),
            json!([{"role": "assistant", "tool_calls": [{"function": 5}]}]),
        ];
        for value in message {
            let body = with(dialect, model, "messages", value.clone());
            let seen = post(&world, dialect, body.to_string().as_bytes()).await;
            let code = seen.json()["error"]["code"].clone();
            assert_eq!(seen.status, 400, "{value}: {}", seen.text());
            let wrongs = told::not_typed(dialect, &seen, 400, code.as_str().unwrap_or(""));
            assert_eq!(wrongs, [""; 0], "{value}");
        }
    }
    assert!(refused > 40, "only {refused} of the wrong types were noticed");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_brackets_are_an_error_and_no_stack() {
    let world = world().await;
    let many = "[".repeat(100_000);
    let closed = format!("{many}{}", "]".repeat(100_000));
    let objects = "{\"a\":".repeat(100_000);
    for dialect in BOTH {
        for body in [
            many.clone(),
            closed.clone(),
            objects.clone(),
            format!("{{\"model\":\"o\",\"messages\":{closed}}}"),
            format!(
                "{{\"model\":\"o\",\"messages\":[{{\"role\":\"user\",\"content\":{closed}}}]}}"
            ),
            format!("{{\"model\":\"o\",\"messages\":[{{\"role\":\"user\"}}],\"extra\":{closed}}}"),
        ] {
            let seen = post(&world, dialect, body.as_bytes()).await;
            assert_eq!(told::not_typed(dialect, &seen, 400, "invalid_request"), [""; 0]);
        }
    }
    assert!(world.mock.log().is_empty());
    world.stop().await;
}

/// The process's resident memory, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0);
    kib << 10
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_a_hundred_megabytes_is_refused_within_bounded_memory() {
    const SIZE: usize = 100_000_000;
    let world = world().await;
    let piece = vec![b' '; 100_000];
    for (dialect, chunked) in [(Dialect::OpenaiChat, false), (Dialect::Anthropic, true)] {
        let before = resident();
        let mut most = before;
        let mut line = Line::open(world.address()).await;
        let length = if chunked {
            "transfer-encoding: chunked".to_owned()
        } else {
            format!("content-length: {SIZE}")
        };
        let head = format!("{} HTTP/1.1\r\nhost: gateway\r\n{length}\r\n\r\n", start(dialect));
        line.socket.write_all(head.as_bytes()).await.expect("sent");
        for _ in 0..SIZE / piece.len() {
            if chunked {
                line.socket.write_all(b"186a0\r\n").await.expect("sent");
            }
            line.socket.write_all(&piece).await.expect("sent");
            if chunked {
                line.socket.write_all(b"\r\n").await.expect("sent");
            }
            most = most.max(resident());
        }
        if chunked {
            line.socket.write_all(b"0\r\n\r\n").await.expect("sent");
        }
        let seen = line.read(Duration::from_secs(5)).await;
        assert_eq!(told::not_typed(dialect, &seen, 413, "body_too_large"), [""; 0], "{seen:?}");
        let grown = (most - before) >> 20;
        assert!(grown < 64, "grew by {grown} MiB");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_and_too_large_headers_are_a_431_with_words() {
    let world = world().await;
    let headers = |count: usize| "x-padding: v\r\n".repeat(count);
    let many = headers(10_000);
    let few = headers(200);
    let large = format!("x-large: {}\r\n", "v".repeat(200_000));
    for headers in [many, few, large] {
        let mut line = Line::open(world.address()).await;
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{headers}\r\n");
        // The gateway may answer and close before all of it was taken.
        let _ = line.socket.write_all(head.as_bytes()).await;
        let seen = line.read(Duration::from_secs(3)).await;
        if seen.status == 0 && seen.ended == Ended::Reset {
            continue;
        }
        assert_eq!(seen.status, 431, "{seen:?}");
        assert_eq!(
            told::not_an_error(Dialect::Anthropic, &seen.json(), "invalid_request"),
            [""; 0]
        );
        assert_eq!(
            told::not_an_error(Dialect::OpenaiChat, &seen.json(), "invalid_request"),
            [""; 0]
        );
        assert!(seen.text().contains("headers"), "{}", seen.text());
    }
    let seen = world.get("/health/live").await;
    assert_eq!(seen.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_http_is_answered_with_words_and_closed() {
    let world = world().await;
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello hello hello\r\n\r\n"[..],
        b"HELO example.org\r\n\r\n",
        b"POST /v1/chat/completions HTTP/9.9\r\nhost: g\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ncontent-length: many\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nbad header line\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
    ] {
        let mut line = Line::open(world.address()).await;
        line.socket.write_all(garbage).await.expect("sent");
        let seen = line.read(Duration::from_secs(3)).await;
        let shown = String::from_utf8_lossy(garbage).into_owned();
        assert_eq!(seen.status, 400, "{shown:?}: {seen:?}");
        assert_eq!(
            told::not_an_error(Dialect::OpenaiChat, &seen.json(), "invalid_request"),
            [""; 0]
        );
        let rest = line.read(Duration::from_secs(3)).await;
        assert_ne!(rest.ended, Ended::Quiet, "{shown:?}: the connection stays open");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_providers_words_that_look_like_the_librarys_own_go_on_as_they_are() {
    let empty = "HTTP/1.1 400 Bad Request\r\nx-theirs: yes\r\ncontent-length: 0\r\n\r\n".to_owned();
    let said = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_owned();
    let length = said.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
    let refusing = Fixed::raw(vec![empty]).await;
    let quoting = Fixed::raw(vec![head, said.clone()]).await;
    let world = Setup::new()
        .tables(&refusing.provider("refusing"))
        .tables(&quoting.provider("quoting"))
        .alone("o", "openai", &["healthy"], ROUTE)
        .start()
        .await;
    let mut line = Line::open(world.address()).await;
    let mut ask = async |provider: &str| {
        let headers = [("x-backstay-provider", provider)];
        line.ask("POST /v1/embeddings", &headers, b"{}").await.expect("sent");
        line.read(Duration::from_secs(3)).await
    };
    let seen = ask("refusing").await;
    assert_eq!((seen.status, seen.header("x-theirs"), seen.body.len()), (400, "yes", 0));
    let seen = ask("quoting").await;
    assert_eq!((seen.status, seen.text()), (200, said), "its head and its body come apart");
    // The next request on the connection is none: now the library speaks, and gets words.
    line.socket.write_all(b"no request\r\n\r\n").await.expect("sent");
    let seen = line.read(Duration::from_secs(3)).await;
    let wrongs = told::not_an_error(Dialect::OpenaiChat, &seen.json(), "invalid_request");
    assert_eq!((seen.status, wrongs), (400, vec![]), "{seen:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callers_own_prefill_that_a_model_rejects_is_the_callers_error_at_once() {
    let world =
        Setup::new().backed("begun", "anthropic", &["rejects-prefill"], ROUTE).start().await;
    for dialect in BOTH {
        let mut body = request(dialect, "begun", HELLO);
        let begun = json!({"role": "assistant", "content": "A lighthouse"});
        body["messages"].as_array_mut().expect("messages").push(begun);
        let seen = world.ask(dialect, &body).await;
        assert_eq!(told::not_typed(dialect, &seen, 400, "request_rejected"), [""; 0]);
        assert!(seen.text().contains("prefill"), "{}", seen.text());
    }
    assert_eq!((world.log("begun-1").len(), world.log("begun-2").len()), (2, 0));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_connections_are_closed_after_the_header_timeout() {
    let world = world().await;
    for sent in [&b""[..], b"POST /v1/chat/comp", b"POST /v1/messages HTTP/1.1\r\nhost: g\r\nx-a: "]
    {
        let mut line = Line::open(world.address()).await;
        line.socket.write_all(sent).await.expect("sent");
        let seen = line.read(Duration::from_secs(2)).await;
        assert_ne!(seen.ended, Ended::Quiet, "{:?}", String::from_utf8_lossy(sent));
        assert!(seen.took < Duration::from_millis(900), "{:?}", seen.took);
    }
    // A body that breaks off is no request either, and nothing of it reaches a provider.
    let mut line = Line::open(world.address()).await;
    let head =
        "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ncontent-length: 500\r\n\r\n{\"model\"";
    line.socket.write_all(head.as_bytes()).await.expect("sent");
    line.socket.shutdown().await.expect("half closed");
    let seen = line.read(Duration::from_secs(2)).await;
    assert!(seen.status == 400 || seen.ended == Ended::Closed, "{seen:?}");
    assert!(world.mock.log().is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_rests_between_requests_for_longer_than_a_head_may_take() {
    let world = world().await;
    let mut line = Line::open(world.address()).await;
    for _ in 0..2 {
        line.ask("GET /health/live", &[], b"").await.expect("sent");
        assert_eq!(line.read(Duration::from_secs(2)).await.status, 200);
        // The header timeout is 400 ms.
        tokio::time::sleep(Duration::from_millis(900)).await;
    }
    line.socket.write_all(b"GET /health/live HT").await.expect("sent");
    let seen = line.read(Duration::from_secs(2)).await;
    assert_ne!(seen.ended, Ended::Quiet, "half a head stays open");
    assert!(seen.took > Duration::from_millis(300), "{:?}", seen.took);
    assert!(seen.took < Duration::from_millis(900), "{:?}", seen.took);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_routes_paths_and_methods_are_told_with_what_there_is() {
    let world = world().await;
    for dialect in BOTH {
        let seen = world.ask(dialect, &request(dialect, "nobody", HELLO)).await;
        assert_eq!(told::not_typed(dialect, &seen, 404, "unknown_route"), [""; 0]);
        assert!(seen.text().contains("`o`") && seen.text().contains("`a`"), "{}", seen.text());
        let long = "x".repeat(100_000);
        let seen = world.ask(dialect, &request(dialect, &long, HELLO)).await;
        assert_eq!(told::not_typed(dialect, &seen, 400, "invalid_request"), [""; 0]);
        assert!(seen.body.len() < 2000, "the name is not sent back whole");
    }
    for (start, dialect, right) in [
        ("GET /v1/chat/completions", Dialect::OpenaiChat, "POST"),
        ("PUT /v1/messages", Dialect::Anthropic, "POST"),
        ("POST /metrics", Dialect::OpenaiChat, "GET"),
        ("DELETE /health/live", Dialect::OpenaiChat, "GET"),
    ] {
        let seen = crate::client::call(world.address(), start, &[], b"").await;
        assert_eq!(told::not_typed(dialect, &seen, 405, "invalid_request"), [""; 0], "{start}");
        assert_eq!(seen.header("allow"), right);
    }
    for path in ["/nope", "/v2/chat/completions", "/..%2f..%2fetc/passwd", "//"] {
        let seen = world.get(path).await;
        let wrongs = told::not_typed(Dialect::OpenaiChat, &seen, 404, "unknown_route");
        assert_eq!(wrongs, [""; 0], "{path}");
    }
    assert!(world.mock.log().is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compressed_body_is_told_so_and_not_taken_for_broken_json() {
    let world = world().await;
    for dialect in BOTH {
        let headers = [("content-encoding", "gzip")];
        let seen =
            crate::client::call(world.address(), start(dialect), &headers, b"\x1f\x8b").await;
        let wrongs = told::not_typed(dialect, &seen, 400, "invalid_request");
        assert_eq!(wrongs, [""; 0]);
        assert!(seen.text().contains("send it uncompressed"), "{}", seen.text());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_goes_on_after_an_error() {
    let world = world().await;
    let mut line = Line::open(world.address()).await;
    let good = request(Dialect::OpenaiChat, "o", HELLO).to_string();
    for _ in 0..3 {
        for (start, body, status) in [
            ("POST /v1/chat/completions", "{", 400),
            ("POST /v1/chat/completions", good.as_str(), 200),
            ("GET /nope", "", 404),
            ("POST /v1/chat/completions", good.as_str(), 200),
        ] {
            line.ask(start, &[], body.as_bytes()).await.expect("sent");
            let seen = line.read(Duration::from_secs(3)).await;
            assert_eq!(
                (seen.status, seen.ended),
                (status, Ended::Clean),
                "{start} {}",
                seen.text()
            );
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_heard_also_by_a_caller_who_is_still_sending() {
    let world = Setup::new()
        .tables("[keys.app]\ntoken = \"s3cret-token\"")
        .alone("o", "openai", &["healthy"], ROUTE)
        .start()
        .await;
    let large = vec![b' '; 3_000_000];
    for (start, status) in [
        ("POST /v1/chat/completions", 401),
        ("POST /v1/messages", 401),
        ("POST /v1/embeddings", 401),
        ("PUT /v1/messages", 405),
        ("POST /metrics", 405),
        ("POST /nope", 404),
    ] {
        let mut line = Line::open(world.address()).await;
        let sent = line.ask(start, &[], &large).await;
        let seen = line.read(Duration::from_secs(3)).await;
        assert_eq!(seen.status, status, "{start}: {sent:?} {seen:?}");
    }
    world.stop().await;
}
