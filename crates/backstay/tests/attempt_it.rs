//! What one attempt sends, and what it makes of providers that answer badly.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by failing")]
#![expect(clippy::disallowed_methods, reason = "the provider's task ends with the test's runtime")]

use std::sync::Arc;
use std::time::Duration;

use backstay::attempt::forward::{Forward, forward};
use backstay::call::{self, Body};
use backstay::contract::{Ask, Caller};
use backstay::engine::Engine;
use backstay::policy::{CapField, CredentialSource, Pinning, Policy, Provider, Structured, Target};
use backstay::record::{CallLog, Step};
use backstay_wire::Dialect;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A provider that says `reply` to every request and keeps the connection open for `held`.
struct Upstream {
    provider: Provider,
    requests: UnboundedReceiver<String>,
}

impl Upstream {
    async fn start(name: &str, dialect: Dialect, reply: String, held: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap()).parse().unwrap();
        let (seen, requests) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (reply, seen) = (reply.clone(), seen.clone());
                tokio::spawn(async move {
                    let _ = seen.send(read(&mut socket).await);
                    let _ = socket.write_all(reply.as_bytes()).await;
                    tokio::time::sleep(held).await;
                });
            }
        });
        Self { provider: Provider::at(name, dialect, base, None), requests }
    }

    /// One that answers at once and well.
    async fn good(name: &str, dialect: Dialect) -> Self {
        Self::start(name, dialect, whole(&said(dialect)), Duration::ZERO).await
    }

    /// The next request it got, as text.
    fn request(&mut self) -> Option<String> {
        self.requests.try_recv().ok()
    }

    /// The next request's body.
    fn body(&mut self) -> Value {
        let request = self.request().unwrap();
        serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

/// One request, head and body.
async fn read(socket: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        match socket.read(&mut piece).await {
            Ok(0) | Err(_) => return text,
            Ok(count) => all.extend_from_slice(&piece[..count]),
        }
    }
}

fn said(dialect: Dialect) -> Value {
    match dialect {
        Dialect::OpenaiChat => json!({
            "id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": "hello"}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        }),
        Dialect::Anthropic => json!({
            "id": "m", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1}
        }),
    }
}

/// A whole JSON response.
fn whole(body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )
}

fn engine(providers: impl IntoIterator<Item = Provider>) -> Engine {
    Engine::new(Policy::of(providers), CallLog::off()).unwrap()
}

/// A plain request for `model` with the given extra fields.
fn ask(engine: &Engine, dialect: Dialect, model: &str, more: &Value) -> Ask {
    let mut body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    Ask::new(dialect, body.to_string(), engine.now())
}

/// The whole answer's body.
async fn answered(engine: &Engine, ask: Ask) -> Value {
    match call::answer(engine, ask).await.unwrap().body {
        Body::Whole(bytes) => serde_json::from_slice(&bytes).unwrap(),
        body => panic!("a whole answer was asked for: {body:?}"),
    }
}

// --- credentials ---

fn with_keys() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", "Bearer callers-key".parse().unwrap());
    headers.insert("x-api-key", "callers-other-key".parse().unwrap());
    headers
}

/// The request that goes upstream from an `OpenAI` caller where the caller's credentials are used.
async fn sent_on(dialect: Dialect, caller: Option<Arc<Caller>>) -> String {
    let mut upstream = Upstream::good("p", dialect).await;
    upstream.provider.credentials = CredentialSource::Caller;
    let engine = engine([upstream.provider.clone()]);
    let mut ask = ask(&engine, Dialect::OpenaiChat, "p/m", &json!({"max_tokens": 9}));
    (ask.headers, ask.caller) = (with_keys(), caller);
    answered(&engine, ask).await;
    upstream.request().unwrap()
}

#[tokio::test]
async fn a_callers_key_goes_to_a_provider_of_its_dialect() {
    let request = sent_on(Dialect::OpenaiChat, None).await;
    assert!(request.contains("authorization: Bearer callers-key\r\n"), "{request}");
    assert!(request.contains("x-api-key: callers-other-key\r\n"), "{request}");
}

#[tokio::test]
async fn a_callers_key_never_goes_to_a_provider_of_another_dialect() {
    let request = sent_on(Dialect::Anthropic, None).await;
    assert!(request.starts_with("POST /v1/messages "), "{request}");
    assert!(!request.contains("callers-"), "{request}");
}

#[tokio::test]
async fn a_key_of_the_gateway_never_goes_upstream() {
    let caller = Caller { name: "app".into(), ..Caller::default() };
    let request = sent_on(Dialect::OpenaiChat, Some(Arc::new(caller))).await;
    assert!(!request.contains("callers-"), "{request}");
}

/// A request of an `OpenAI` caller to be handed through.
fn through(model: &str) -> Forward {
    Forward {
        method: Method::POST,
        path: "/v1/embeddings".into(),
        query: None,
        headers: with_keys(),
        body: json!({"model": model, "input": "hi"}).to_string().into(),
        dialect: Dialect::OpenaiChat,
    }
}

#[tokio::test]
async fn a_handed_through_key_never_goes_to_a_provider_of_another_dialect() {
    let mut upstream = Upstream::good("p", Dialect::Anthropic).await;
    upstream.provider.credentials = CredentialSource::Caller;
    let mut request = through("m");
    request.headers.insert("x-backstay-provider", "p".parse().unwrap());
    forward(&engine([upstream.provider.clone()]), request).await.unwrap();
    let request = upstream.request().unwrap();
    assert!(!request.contains("callers-"), "{request}");
}

// --- headers and names ---

#[tokio::test]
async fn every_line_of_a_repeated_header_is_passed_on() {
    let mut upstream = Upstream::good("p", Dialect::Anthropic).await;
    let engine = engine([upstream.provider.clone()]);
    let mut ask = ask(&engine, Dialect::Anthropic, "p/m", &json!({"max_tokens": 9}));
    for beta in ["one-2026", "two-2026"] {
        ask.headers.append("anthropic-beta", beta.parse().unwrap());
    }
    answered(&engine, ask).await;
    let request = upstream.request().unwrap();
    for line in ["anthropic-beta: one-2026\r\n", "anthropic-beta: two-2026\r\n"] {
        assert!(request.contains(line), "{request}");
    }
}

#[tokio::test]
async fn a_translated_cap_goes_under_the_name_the_provider_knows() {
    for (field, known, other) in [
        (CapField::MaxTokens, "max_tokens", "max_completion_tokens"),
        (CapField::MaxCompletionTokens, "max_completion_tokens", "max_tokens"),
    ] {
        let mut upstream = Upstream::good("p", Dialect::OpenaiChat).await;
        upstream.provider.cap_field = field;
        let engine = engine([upstream.provider.clone()]);
        let asked = ask(&engine, Dialect::Anthropic, "p/m", &json!({"max_tokens": 9}));
        answered(&engine, asked).await;
        let body = upstream.body();
        assert_eq!((&body[known], body.get(other)), (&json!(9), None), "{body}");
    }
}

// --- what is streamed and folded ---

/// Whether a plain request with `more` in it is asked of the provider as a stream.
async fn is_streamed(dialect: Dialect, more: Value) -> bool {
    let mut upstream = Upstream::good("p", dialect).await;
    let engine = engine([upstream.provider.clone()]);
    answered(&engine, ask(&engine, dialect, "p/m", &more)).await;
    upstream.body()["stream"] == json!(true)
}

#[tokio::test]
async fn a_reply_with_parts_that_a_fold_would_lose_is_never_folded() {
    let (anthropic, openai) = (Dialect::Anthropic, Dialect::OpenaiChat);
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let own = json!({"name": "look", "input_schema": {"type": "object"}});
    let custom = json!({"type": "custom", "name": "see", "input_schema": {"type": "object"}});
    for (dialect, more, streamed) in [
        (anthropic, json!({}), true),
        (anthropic, json!({"tools": [own, custom]}), true),
        (anthropic, json!({"tools": [own, search]}), false),
        (anthropic, json!({"thinking": {"type": "disabled"}}), true),
        (anthropic, json!({"thinking": {"type": "enabled", "budget_tokens": 2048}}), false),
        (anthropic, json!({"thinking": {"type": "adaptive"}}), false),
        (anthropic, json!({"mcp_servers": [{"type": "url"}]}), false),
        (anthropic, json!({"container": "c1"}), false),
        (openai, json!({}), true),
        (openai, json!({"n": 1, "logprobs": false}), true),
        (openai, json!({"n": 2}), false),
        (openai, json!({"web_search_options": {}}), false),
    ] {
        let mut asked = more.clone();
        asked["max_tokens"] = json!(4096);
        assert_eq!(is_streamed(dialect, asked).await, streamed, "{dialect:?} {more}");
    }
}

// --- streams held after their finish ---

/// An event stream of these chunks of the first choice: its delta, and its finish reason.
fn events(chunks: &[(Value, Value)]) -> String {
    let mut out = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned();
    for (delta, finish) in chunks {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "m",
            "choices": [choice]});
        out.push_str("data: ");
        out.push_str(&chunk.to_string());
        out.push_str("\n\n");
    }
    out
}

/// The answer to a plain call whose provider streams `chunks` and then holds the stream, and how
/// many requests the provider got.
async fn held_after(chunks: &[(Value, Value)]) -> (Result<Value, &'static str>, usize) {
    let held = Duration::from_secs(20);
    let mut upstream = Upstream::start("p", Dialect::OpenaiChat, events(chunks), held).await;
    let engine = engine([upstream.provider.clone()]);
    let mut ask = ask(&engine, Dialect::OpenaiChat, "p/m", &json!({}));
    ask.headers.insert("x-backstay-deadline", "1s".parse().unwrap());
    let answer = match call::answer(&engine, ask).await {
        Ok(answer) => match answer.body {
            Body::Whole(bytes) => Ok(serde_json::from_slice(&bytes).unwrap()),
            body => panic!("a whole answer was asked for: {body:?}"),
        },
        Err(error) => Err(error.code()),
    };
    (answer, std::iter::from_fn(|| upstream.request()).count())
}

#[tokio::test]
async fn a_folded_stream_held_after_its_finish_is_a_whole_reply() {
    let said = (json!({"role": "assistant", "content": "All of it."}), json!(null));
    let (answer, requests) = held_after(&[said, (json!({}), json!("stop"))]).await;
    assert_eq!(answer.unwrap()["choices"][0]["message"]["content"], "All of it.");
    assert_eq!(requests, 1);
}

#[tokio::test]
async fn a_folded_stream_held_before_a_finish_that_is_known_is_no_reply() {
    let said = (json!({"role": "assistant", "content": "Half of"}), json!(null));
    let odd = (json!({}), json!("sleepy"));
    assert!(held_after(std::slice::from_ref(&said)).await.0.is_err());
    assert!(held_after(&[said, odd]).await.0.is_err());
}

// --- requests handed through ---

#[tokio::test]
async fn a_model_without_a_target_of_the_paths_dialect_is_refused_and_goes_nowhere_else() {
    let named = Upstream::good("named", Dialect::Anthropic).await;
    let mut other = Upstream::good("other", Dialect::OpenaiChat).await;
    let engine = engine([named.provider.clone(), other.provider.clone()]);
    let error = forward(&engine, through("named/m")).await.unwrap_err();
    assert_eq!((error.code(), error.param()), ("invalid_request", Some("model")), "{error}");
    assert!(error.to_string().contains("no target of `named/m` speaks"), "{error}");
    assert_eq!(other.request(), None);
    for free in ["nobodys-model", ""] {
        let to = forward(&engine, through(free)).await.unwrap().target;
        assert_eq!(to, "other", "{free}");
        assert!(other.request().is_some());
    }
}

#[tokio::test]
async fn a_handed_through_call_tells_a_lost_connection_from_one_never_made() {
    let lost =
        Upstream::start("lost", Dialect::OpenaiChat, String::new(), Duration::ZERO).await.provider;
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let base = format!("http://{port}/v1").parse().unwrap();
    let away = Provider::at("away", Dialect::OpenaiChat, base, None);
    let engine = engine([lost, away]);
    for (model, code) in
        [("lost/m", "provider_connection_lost"), ("away/m", "provider_unreachable")]
    {
        let error = forward(&engine, through(model)).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
}

// --- error responses ---

#[tokio::test]
async fn an_error_body_that_never_ends_holds_the_call_two_seconds() {
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\
        content-length: 900\r\n\r\n{\"error\": ";
    let held = Duration::from_secs(20);
    let upstream = Upstream::start("p", Dialect::OpenaiChat, head.into(), held).await;
    let engine = engine([upstream.provider.clone()]);
    let ask = ask(&engine, Dialect::OpenaiChat, "p/m", &json!({}));
    let answer = tokio::time::timeout(Duration::from_secs(8), call::answer(&engine, ask)).await;
    let error = answer.unwrap().unwrap_err();
    assert_eq!(error.side(), backstay_decide::Side::Caller, "{}", error.code());
}

// --- the gate ---

/// What a streaming caller gets of a stream that opens with `count` comments and holds then.
async fn after_comments(count: usize) -> Result<(), String> {
    let comments = format!(": {}\n\n", "a".repeat(1000)).repeat(count);
    let held = Duration::from_secs(20);
    let stream = events(&[]) + &comments;
    let upstream = Upstream::start("p", Dialect::OpenaiChat, stream, held).await;
    let engine = engine([upstream.provider.clone()]);
    let mut ask = ask(&engine, Dialect::OpenaiChat, "p/m", &json!({"stream": true}));
    ask.headers.insert("x-backstay-deadline", "2s".parse().unwrap());
    let answer = call::answer(&engine, ask).await;
    answer.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_stream_without_content_is_not_held_without_limit() {
    let told = after_comments(1500).await.unwrap_err();
    assert!(told.contains("no content in the first 1048576 bytes"), "{told}");
    let told = after_comments(500).await.unwrap_err();
    assert!(!told.contains("no content in the first"), "{told}");
}

// --- the output cap ---

/// What a target is sent for an `OpenAI` call with `more` in it, and what is told of it. The target
/// can write `most` tokens and has a window of `window`.
async fn capped(
    dialect: Dialect,
    (most, window): (Option<u64>, Option<u64>),
    more: Value,
) -> (Value, Vec<String>) {
    let mut upstream = Upstream::good("p", dialect).await;
    let mut policy = Policy::of([upstream.provider.clone()]);
    let target = Target {
        id: "main".into(),
        provider: Arc::new(upstream.provider.clone()),
        model: Some("m".into()),
        pinning: Pinning::Pinned,
        retires: None,
        context_tokens: window,
        max_output_tokens: most,
        prices: None,
        structured: Structured::JsonSchema,
        subset: None,
        streams: false,
        prefill: None,
        limits: backstay::policy::Limits::default(),
        max_request_bytes: 0,
        breaker: backstay_decide::breaker::Rules::DEFAULT,
    };
    policy.targets.insert("main".into(), Arc::new(target));
    let engine = Engine::new(policy, CallLog::memory(10)).unwrap();
    let ask = ask(&engine, Dialect::OpenaiChat, "main", &more);
    let receipt = call::answer(&engine, ask).await.unwrap().receipt;
    let row = engine.call_log().find(&receipt.call_id).unwrap().unwrap();
    let told = row.trail.notes.iter().find_map(|note| match &note.step {
        Step::Sent { losses, .. } => Some(losses.clone()),
        _ => None,
    });
    (upstream.body(), told.unwrap())
}

#[tokio::test]
async fn a_cap_that_is_chosen_or_lowered_is_told() {
    let (anthropic, openai) = (Dialect::Anthropic, Dialect::OpenaiChat);
    let (known, unknown) = ((Some(64_000), None), (None, None));
    let none = json!({});
    let ten = json!({"max_completion_tokens": 10_000});
    for (dialect, limits, more, sent, told) in [
        (anthropic, unknown, &none, json!(4096), "/max_tokens: not given"),
        (anthropic, known, &none, json!(64_000), "/max_tokens: not given"),
        (anthropic, (Some(64_000), Some(20_000)), &none, json!(19_940), "/max_tokens: not given"),
        (anthropic, (Some(64_000), Some(4_100)), &none, json!(4_096), "/max_tokens: not given"),
        (anthropic, known, &ten, json!(10_000), ""),
        (anthropic, (Some(4_096), None), &ten, json!(4_096), "/max_completion_tokens: lowered"),
        (openai, (Some(4_096), None), &ten, json!(4_096), "/max_completion_tokens: lowered"),
        (openai, known, &none, json!(null), ""),
        (openai, known, &ten, json!(10_000), ""),
    ] {
        let (body, losses) = capped(dialect, limits, more.clone()).await;
        assert_eq!(body["max_tokens"], sent, "{dialect:?} {limits:?} {more}");
        let found = losses.first().map_or("", String::as_str);
        assert!(
            found.starts_with(told) && losses.len() == usize::from(!told.is_empty()),
            "{dialect:?} {limits:?} {more}: {losses:?}"
        );
    }
}
