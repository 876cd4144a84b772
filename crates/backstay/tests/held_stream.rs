//! A provider that says its finish and then neither ends nor closes the stream.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by failing")]

use std::time::Duration;

use backstay::call::{self, Body};
use backstay::contract::Ask;
use backstay::engine::Engine;
use backstay::policy::{Policy, Provider};
use backstay::record::CallLog;
use backstay_wire::Dialect;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const SAID: &str = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\
    \"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"All of it.\"},\
    \"finish_reason\":null}]}\n\n";
const FINISH: &str = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\
    \"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

const USAGE: &str = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\
    \"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n";

/// What a caller sees of a stream that says `events` and is then held open.
async fn held_after(events: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap()).parse().unwrap();
    let provider = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 4096]).await.unwrap();
        socket.write_all(HEAD.as_bytes()).await.unwrap();
        socket.write_all(events.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
    };
    let policy = Policy::of([Provider::at("p", Dialect::OpenaiChat, base, None)]);
    let engine = Engine::new(policy, CallLog::off()).unwrap();
    let body = r#"{"model":"p/m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let mut ask = Ask::new(Dialect::OpenaiChat, body, engine.now());
    ask.headers.insert("x-backstay-deadline", "2s".parse().unwrap());
    let caller = async {
        let Body::Live(live) = call::answer(&engine, ask).await.unwrap().body else {
            panic!("a stream was asked for")
        };
        let seen = live.collect().await.unwrap().to_bytes();
        String::from_utf8(seen.to_vec()).unwrap()
    };
    tokio::select! {
        seen = caller => seen,
        () = provider => panic!("the caller waited longer than its deadline"),
    }
}

#[tokio::test]
async fn a_stream_held_after_its_finish_is_completed_in_a_moment() {
    for (events, soon) in [([SAID, FINISH, ""], 1_400), ([SAID, FINISH, USAGE], 400)] {
        let began = Instant::now();
        let seen = held_after(joined(events)).await;
        assert!(began.elapsed() < Duration::from_millis(soon), "{:?}", began.elapsed());
        assert!(seen.contains("All of it."), "{seen}");
        assert!(seen.ends_with("data: [DONE]\n\n") && !seen.contains("\"error\""), "{seen}");
    }
}

#[tokio::test]
async fn a_stream_held_before_its_finish_is_an_error_and_never_a_clean_end() {
    let seen = held_after(SAID).await;
    assert!(seen.contains("provider_total_timeout") && !seen.contains("[DONE]"), "{seen}");
}

/// The texts as one that lives as long as the test.
fn joined(events: [&str; 3]) -> &'static str {
    Box::leak(events.concat().into_boxed_str())
}
