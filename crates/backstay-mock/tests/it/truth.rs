//! The log against what happened.

use std::time::Duration;

use backstay_mock::{Answer, End, Limit, Mock, Settings, UNRESOLVABLE, refused_address};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::client::{
    BOTH, Dialect, PATIENCE, ask, call, mock, newest, open, path, plain, read, reply, request,
    streamed,
};

/// The end of the newest entry must say "gone" within 100 ms after the client hung up.
async fn gone_after_hanging_up(mock: &Mock, socket: TcpStream, what: &str) {
    assert_eq!(mock.log().pop().expect("an entry").end, End::Pending, "{what}");
    let hung_up = Instant::now();
    drop(socket);
    let entry = newest(mock).await;
    assert!(hung_up.elapsed() < Duration::from_millis(100), "{what}: {:?}", hung_up.elapsed());
    assert_eq!(entry.end, End::ClientGone, "{what}");
    assert!(entry.ended_at_ms.expect("a time") >= entry.at_ms);
}

/// Waits until the newest call is under way.
async fn pending(mock: &Mock) {
    for _ in 0..1_000 {
        if mock.log().last().is_some_and(|e| e.end == End::Pending) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("nothing is under way: {:?}", mock.log().pop());
}

#[tokio::test]
async fn a_client_that_hangs_up_is_noticed_at_once() {
    let mock = mock().await;
    for model in [
        "silence",
        "slow-headers",
        "slow-first",
        "stream-stall",
        "hang-body",
        "keepalive-forever",
        "healthy+delay=5s",
        "healthy+n=50+gap=1s",
    ] {
        for dialect in BOTH {
            let body = streamed(plain(dialect, model)).to_string();
            let mut socket = open(&mock, "POST", path(dialect), body.as_bytes()).await;
            read(&mut socket, Duration::from_millis(30)).await;
            pending(&mock).await;
            gone_after_hanging_up(&mock, socket, model).await;
        }
    }
    let mut socket = TcpStream::connect(mock.addr()).await.expect("a connection");
    let half = b"POST /v1/messages HTTP/1.1\r\nhost: m\r\ncontent-length: 900\r\n\r\n{\"model\":";
    tokio::io::AsyncWriteExt::write_all(&mut socket, half).await.expect("written");
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(socket);
    for _ in 0..1_000 {
        if mock.log().last().is_some_and(|e| e.behaviour == "unread") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let entry = newest(&mock).await;
    assert_eq!((entry.behaviour.as_str(), entry.end), ("unread", End::ClientGone));
}

#[tokio::test]
async fn an_entry_says_what_was_asked_and_what_was_sent() {
    let mock = mock().await;
    let body = streamed(request(Dialect::Anthropic, "mock/healthy+n=4"));
    let seen = ask(&mock, Dialect::Anthropic, &body).await;
    let entry = newest(&mock).await;
    assert_eq!((entry.seq, entry.call_no, entry.status), (1, 1, Some(200)));
    assert_eq!((entry.model.as_str(), entry.behaviour.as_str()), ("mock/healthy+n=4", "healthy"));
    assert_eq!((entry.method.as_str(), entry.path.as_str()), ("POST", "/v1/messages?beta=true"));
    assert_eq!((entry.stream, entry.messages, entry.max_tokens), (true, 1, Some(1000)));
    assert!(entry.has_schema);
    assert_eq!(entry.body_bytes, body.to_string().len());
    assert_eq!(entry.body.as_deref(), Some(body.to_string().as_str()));
    assert_eq!(entry.events_sent, u64::try_from(seen.text().matches("event: ").count()).unwrap());
    assert!(entry.header("authorization").is_some_and(|v| v.starts_with("present (14 chars) #")));
    assert_eq!(entry.header("content-type"), Some("application/json"));
    assert_eq!(entry.end, End::Complete);
}

#[tokio::test]
async fn the_log_is_read_and_reset_over_http() {
    let mock = mock().await;
    ask(&mock, Dialect::OpenAi, &plain(Dialect::OpenAi, "healthy")).await;
    let log = call(&mock, "GET", "/_mock/log", &Value::Null).await.json();
    assert_eq!(log[0]["model"], "healthy");
    assert_eq!(log[0]["end"], "complete");
    assert!(log[0].get("body").is_none());
    let log = call(&mock, "GET", "/_mock/log?bodies=1", &Value::Null).await.json();
    assert!(log[0]["body"].as_str().expect("a body").contains("1182"));
    let entries: Vec<backstay_mock::Entry> = serde_json::from_value(log).expect("entries");
    assert_eq!(entries.len(), 1);
    assert_eq!(call(&mock, "POST", "/_mock/reset", &Value::Null).await.status, 200);
    assert!(mock.log().is_empty());
    let list = call(&mock, "GET", "/_mock/behaviours", &Value::Null).await.json();
    assert_eq!(
        list["behaviours"].as_array().expect("a list").len(),
        backstay_mock::behaviours().len()
    );
    assert_eq!(call(&mock, "GET", "/_mock/nothing", &Value::Null).await.status, 404);
}

#[tokio::test]
async fn the_log_is_bounded() {
    let settings = Settings { log_bodies: 10, ..Settings::default() };
    let mock = Mock::start(settings).await.expect("a mock");
    let body = plain(Dialect::OpenAi, "healthy").to_string();
    let one = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: m\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // 20,100 calls in pipelined rounds of 100 on one connection.
    let mut socket = TcpStream::connect(mock.addr()).await.expect("a connection");
    let round = one.repeat(100);
    for _ in 0..201 {
        tokio::io::AsyncWriteExt::write_all(&mut socket, round.as_bytes()).await.expect("written");
        let mut answered = 0;
        let mut raw = Vec::new();
        while answered < 100 {
            let mut buffer = vec![0; 64 << 10];
            let size = tokio::io::AsyncReadExt::read(&mut socket, &mut buffer).await.expect("read");
            assert!(size > 0);
            raw.extend_from_slice(&buffer[..size]);
            answered = raw.windows(16).filter(|w| w == b"\"fp_mock\"}HTTP/1").count()
                + usize::from(raw.ends_with(b"\"fp_mock\"}"));
        }
    }
    let log = mock.log();
    assert_eq!(log.len(), 20_000);
    assert_eq!(log.last().map(|e| e.seq), Some(20_100));
    assert!(log.iter().all(|e| e.body.as_ref().is_some_and(|b| b.len() == 10)));
}

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes() {
    let mut bodies = Vec::new();
    for seed in [7, 7, 8] {
        let mock = Mock::start(Settings { seed, ..Settings::default() }).await.expect("a mock");
        let mut all = Vec::new();
        for dialect in BOTH {
            for body in [plain(dialect, "healthy"), request(dialect, "healthy")] {
                all.extend(ask(&mock, dialect, &body).await.body);
                all.extend(ask(&mock, dialect, &streamed(body)).await.body);
            }
        }
        bodies.push(all);
    }
    assert_eq!(bodies[0], bodies[1]);
    assert_ne!(bodies[0], bodies[2]);
}

#[tokio::test]
async fn different_messages_get_different_texts() {
    let mock = mock().await;
    let mut texts = std::collections::BTreeSet::new();
    for at in 0..10 {
        let mut body = plain(Dialect::OpenAi, "healthy");
        body["messages"][0]["content"] = json!(format!("message {at}"));
        texts.insert(reply(Dialect::OpenAi, &ask(&mock, Dialect::OpenAi, &body).await.json()).0);
    }
    assert_eq!(texts.len(), 10);
}

#[tokio::test]
async fn known_answers_come_first_and_are_what_is_damaged() {
    let gold = json!({"category": "billing", "priority": 2, "summary": "Duplicate charge",
        "evidence": "charged twice for order 1182", "needs_human": true});
    let answers = vec![
        Answer { contains: "order 1182".into(), reply: gold.clone(), text: None },
        Answer { contains: "hello".into(), reply: json!({}), text: Some("Hi there".into()) },
    ];
    let mock = Mock::start(Settings { answers, ..Settings::default() }).await.expect("a mock");
    for dialect in BOTH {
        let seen = ask(&mock, dialect, &request(dialect, "healthy")).await;
        assert_eq!(reply(dialect, &seen.json()).0, gold.to_string());
        let seen = ask(&mock, dialect, &plain(dialect, "wrong-type")).await;
        let mut wrong = gold.clone();
        wrong["priority"] = json!("2");
        assert_eq!(reply(dialect, &seen.json()).0, wrong.to_string());
        let mut hello = plain(dialect, "healthy");
        hello["messages"][0]["content"] = json!("hello you");
        let seen = ask(&mock, dialect, &hello).await;
        assert_eq!(reply(dialect, &seen.json()).0, "Hi there");
    }
}

#[tokio::test]
async fn scripts_play_in_order() {
    let mock = mock().await;
    let script = json!({"model": "x", "steps": ["status-503", "reset", "healthy"]});
    assert_eq!(call(&mock, "POST", "/_mock/script", &script).await.status, 200);
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let seen = ask(&mock, Dialect::OpenAi, &plain(Dialect::OpenAi, "x")).await;
        statuses.push(seen.status);
    }
    assert_eq!(statuses, [503, 0, 200, 200]);
    let log = mock.log();
    assert_eq!(log[0].behaviour, "status-503");
    assert!(log.iter().all(|e| e.model == "x"));
    mock.script("y", &["status-429+after=7"]);
    let seen = ask(&mock, Dialect::Anthropic, &plain(Dialect::Anthropic, "y")).await;
    assert_eq!((seen.status, seen.header("retry-after")), (429, "7"));
    for bad in [
        json!({"model": "x", "steps": ["nonsense"]}),
        json!({"model": "", "steps": ["healthy"]}),
        json!({"model": "x", "steps": []}),
        json!({"model": "x"}),
        json!([]),
    ] {
        assert_eq!(call(&mock, "POST", "/_mock/script", &bad).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn times_counts_calls_of_that_name_and_then_the_model_is_healthy() {
    let mock = mock().await;
    let mut statuses = Vec::new();
    for model in [
        "status-500+times=2",
        "status-500+times=2",
        "status-500+times=2",
        "status-503-once",
        "status-503-once",
    ] {
        statuses.push(ask(&mock, Dialect::OpenAi, &plain(Dialect::OpenAi, model)).await.status);
    }
    assert_eq!(statuses, [500, 500, 200, 503, 200]);
    assert_eq!(newest(&mock).await.behaviour, "healthy");
    mock.reset();
    let seen = ask(&mock, Dialect::OpenAi, &plain(Dialect::OpenAi, "status-503-once")).await;
    assert_eq!(seen.status, 503);
}

#[tokio::test]
async fn bad_requests_are_refused_in_the_dialect_and_logged() {
    let mock = mock().await;
    for dialect in BOTH {
        for body in [&b"{\"model\":"[..], b"[]", b"{}", b"\xff\xfe", b"", b"{\"model\":7}"] {
            let mut socket = open(&mock, "POST", path(dialect), body).await;
            let seen = read(&mut socket, PATIENCE).await;
            assert_eq!(seen.status, 400);
            assert_eq!(seen.json()["error"]["type"], "invalid_request_error");
            assert_eq!(newest(&mock).await.behaviour, "invalid");
        }
        let seen = ask(&mock, dialect, &plain(dialect, "helthy")).await;
        assert_eq!(seen.status, 404);
        assert!(seen.text().contains("`healthy`"), "{}", seen.text());
        assert_eq!(newest(&mock).await.behaviour, "unknown");
        let seen = ask(&mock, dialect, &plain(dialect, "healthy+nonsense=1")).await;
        assert_eq!(seen.status, 400);
    }
    let huge = vec![b' '; (32 << 20) + 1];
    let mut socket = open_lenient(&mock, &huge).await;
    let seen = read(&mut socket, Duration::from_secs(2)).await;
    assert_eq!(seen.status, 413);
}

/// As `open`, for a body the mock stops reading.
async fn open_lenient(mock: &Mock, body: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(mock.addr()).await.expect("a connection");
    let head =
        format!("POST /v1/messages HTTP/1.1\r\nhost: m\r\ncontent-length: {}\r\n\r\n", body.len());
    tokio::io::AsyncWriteExt::write_all(&mut socket, head.as_bytes()).await.expect("written");
    let _ = tokio::io::AsyncWriteExt::write_all(&mut socket, body).await;
    socket
}

#[tokio::test]
async fn the_small_endpoints_answer_in_their_shapes() {
    let mock = mock().await;
    let list = call(&mock, "GET", "/v1/models", &Value::Null).await.json();
    assert_eq!(list["object"], "list");
    assert_eq!(list["data"][0]["id"], "healthy");
    assert_eq!(newest(&mock).await.behaviour, "models");
    let one = call(&mock, "GET", "/v1/models/status-500", &Value::Null).await.json();
    assert_eq!(one["id"], "status-500");
    assert_eq!(call(&mock, "GET", "/v1/models/nope", &Value::Null).await.status, 404);
    assert_eq!(call(&mock, "POST", "/v1/nowhere", &json!({})).await.status, 404);

    let body = json!({"model": "healthy", "input": ["a", "b"], "dimensions": 8});
    let seen = call(&mock, "POST", "/v1/embeddings", &body).await.json();
    assert_eq!(seen["data"][1]["embedding"].as_array().expect("a vector").len(), 8);
    let body =
        json!({"model": "healthy", "input": "a", "dimensions": 8, "encoding_format": "base64"});
    let seen = call(&mock, "POST", "/v1/embeddings", &body).await.json();
    // 32 bytes are 44 base64 signs.
    assert_eq!(seen["data"][0]["embedding"].as_str().expect("base64").len(), 44);
    let body = plain(Dialect::Anthropic, "healthy");
    let seen = call(&mock, "POST", "/v1/messages/count_tokens", &body).await.json();
    assert!(seen["input_tokens"].as_u64().expect("a count") > 10);
    let body = json!({"model": "status-429+after=1", "input": "a"});
    assert_eq!(call(&mock, "POST", "/v1/embeddings", &body).await.status, 429);
}

#[tokio::test]
async fn a_refused_address_refuses_and_an_invalid_name_does_not_resolve() {
    let refused = TcpStream::connect(refused_address()).await.expect_err("refused");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(refused_address(), refused_address());
    assert!(UNRESOLVABLE.ends_with(".invalid"));
}

#[tokio::test]
async fn stop_closes_everything_and_calls_under_way_are_cut() {
    let mock = mock().await;
    let body = plain(Dialect::OpenAi, "silence").to_string();
    let mut socket = open(&mock, "POST", "/v1/chat/completions", body.as_bytes()).await;
    pending(&mock).await;
    tokio::time::timeout(Duration::from_secs(1), mock.stop()).await.expect("it stops");
    assert_eq!(newest(&mock).await.end, End::Cut);
    let seen = read(&mut socket, PATIENCE).await;
    assert_eq!(seen.status, 0);
    assert!(TcpStream::connect(mock.addr()).await.is_err());
}

#[tokio::test]
async fn the_usual_body_is_about_645_bytes_and_leaves_in_one_read() {
    let mock = mock().await;
    let seen = ask(&mock, Dialect::OpenAi, &plain(Dialect::OpenAi, "healthy")).await;
    assert!((600..700).contains(&seen.body.len()), "{} bytes", seen.body.len());
    assert_eq!(seen.reads, 1);
}

#[tokio::test]
async fn a_limited_model_says_what_is_left_and_then_how_long_to_wait() {
    let mock = mock().await;
    mock.limit("healthy", Limit { requests: Some(2), tokens: None });
    for dialect in BOTH {
        mock.reset();
        let names = match dialect {
            Dialect::OpenAi => ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests"],
            Dialect::Anthropic => {
                ["anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining"]
            }
        };
        for (status, left) in [(200, "1"), (200, "0"), (429, "0")] {
            let seen = ask(&mock, dialect, &plain(dialect, "healthy")).await;
            assert_eq!(seen.status, status);
            assert_eq!(names.map(|name| seen.header(name)), ["2", left]);
            let waits =
                seen.header("retry-after").parse::<u64>().is_ok_and(|s| (59..=61).contains(&s));
            assert_eq!(waits, status == 429, "{:?}", seen.header("retry-after"));
        }
        assert_eq!(newest(&mock).await.behaviour, "limited");
        assert_eq!(ask(&mock, dialect, &plain(dialect, "byte-drip")).await.status, 200);
    }
    mock.limit("healthy", Limit::default());
    let seen = ask(&mock, Dialect::OpenAi, &plain(Dialect::OpenAi, "healthy")).await;
    assert_eq!((seen.status, seen.header("x-ratelimit-limit-requests")), (200, ""));
}
