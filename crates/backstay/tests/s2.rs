//! The printed outputs of the second source document that need the whole engine: the fingerprint
//! relations and the three repair runs, over real sockets against the mock.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by failing")]

use std::sync::Arc;
use std::time::Duration;

use backstay::call::{self, Body};
use backstay::contract::Ask;
use backstay::engine::Engine;
use backstay::policy::{
    CapField, CredentialSource, LastResort, OnSemantic, Pattern, Pinning, Policy, Provider,
    ReaskPolicy, RefusalPolicy, Route, RuleText, Structured, Target, Timeouts, Timer, Upstream,
};
use backstay::record::{CallLog, Row, Step};
use backstay_mock::{Answer, Mock, Settings};
use backstay_wire::Dialect;
use serde_json::{Value, json};

const TICKET: &str = "I was charged twice for order 1182. Please refund one charge.";

fn good() -> Value {
    json!({"category": "billing", "priority": 2, "summary": "Duplicate charge",
           "evidence": "charged twice for order 1182", "needs_human": true})
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "category": {"enum": ["billing", "shipping", "technical", "other"]},
            "priority": {"type": "integer", "minimum": 1, "maximum": 4},
            "summary": {"type": "string", "maxLength": 200},
            "evidence": {"type": "string"},
            "needs_human": {"type": "boolean"}
        },
        "required": ["category", "priority", "summary", "evidence", "needs_human"],
        "additionalProperties": false
    })
}

async fn mock() -> Mock {
    let answer = Answer { contains: TICKET.into(), reply: good(), text: None };
    Mock::start(Settings { answers: vec![answer], ..Settings::default() }).await.unwrap()
}

/// The triage service at one target whose model is `model`.
fn policy(mock: &Mock, model: &str, change: impl FnOnce(&mut Route)) -> Policy {
    let provider = Arc::new(Provider {
        name: "mock".into(),
        dialect: Dialect::OpenaiChat,
        base_url: mock.openai_base().parse().unwrap(),
        credentials: CredentialSource::Nobody,
        headers: Vec::new(),
        cap_field: CapField::MaxTokens,
        subset: backstay_wire::lower::Subset::Whole,
        connect: Duration::from_secs(1),
    });
    let target = Arc::new(Target {
        id: "main".into(),
        provider: Arc::clone(&provider),
        model: Some(model.into()),
        pinning: Pinning::Pinned,
        retires: None,
        context_tokens: Some(8_000),
        max_output_tokens: None,
        prices: None,
        structured: Structured::JsonSchema,
        subset: None,
        streams: true,
        prefill: None,
        limits: backstay::policy::Limits::default(),
        max_request_bytes: 0,
        breaker: backstay_decide::breaker::Rules::DEFAULT,
    });
    let mut route = Route {
        name: "triage".into(),
        pattern: Pattern("triage".into()),
        mode: backstay::policy::RouteMode::Normal,
        tiers: vec![vec![Arc::clone(&target)]],
        deadline: Duration::from_secs(30),
        timeouts: Timeouts {
            first_token: Timer::Set(Duration::from_secs(8)),
            gap: Timer::Set(Duration::from_secs(5)),
            total: Timer::Set(Duration::from_secs(20)),
            ..Timeouts::auto(Duration::from_secs(30))
        },
        max_attempts: 4,
        reasks: 2,
        reask: ReaskPolicy::default(),
        max_output_tokens: Some(300),
        max_output_tokens_ceiling: None,
        stop: Vec::new(),
        prompt_version: Some("triage-v3".into()),
        schema: Some(Arc::new(schema())),
        rules: vec![RuleText {
            name: "evidence is a quote from the ticket".into(),
            check: "input.contains(reply.evidence)".into(),
            message: Some("evidence is not a quote from the ticket".into()),
            input: None,
        }],
        upstream: Upstream::Auto,
        stream: None,
        holding: backstay::policy::Holding::default(),
        guards: backstay::policy::GuardPolicy::default(),
        on_refusal: RefusalPolicy::LastResort,
        on_disconnect: backstay::policy::OnDisconnect::Cancel,
        after_release: backstay::policy::AfterRelease::Error,
        mending: Arc::default(),
        on_semantic: OnSemantic::Reask,
        last_resort: Some(LastResort::Text("route to the non-AI path".into())),
        revision: "r1".into(),
    };
    change(&mut route);
    let mut policy = Policy::default();
    policy.providers.insert("mock".into(), provider);
    policy.targets.insert("main".into(), target);
    policy.routes.push(Arc::new(route));
    policy
}

fn ask(engine: &Engine) -> Ask {
    let body = json!({"model": "triage", "messages": [
        {"role": "system", "content": "Classify the support ticket. Reply with JSON only."},
        {"role": "user", "content": TICKET}
    ]});
    Ask::new(Dialect::OpenaiChat, body.to_string(), engine.now())
}

/// Sends the ticket; gives the answer's text, the fingerprint, and the row.
async fn triage(policy: Policy) -> (String, String, Row) {
    let engine = Engine::new(policy, CallLog::memory(10)).unwrap();
    let answer = call::answer(&engine, ask(&engine)).await.unwrap();
    let Body::Whole(bytes) = answer.body else { panic!("a whole answer was asked for") };
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    let text = body["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let row = engine.call_log().find(&answer.receipt.call_id).unwrap().unwrap();
    (text, answer.receipt.fingerprint, row)
}

/// The statuses of the attempts, as the seed prints them.
fn statuses(row: &Row) -> Vec<String> {
    let verdicts = row.trail.notes.iter().filter_map(|note| match &note.step {
        Step::Judged { verdict, .. } => Some(verdict.to_string()),
        _ => None,
    });
    verdicts.collect()
}

#[tokio::test]
async fn a_new_timeout_keeps_the_fingerprint_and_a_new_prompt_changes_it() {
    let mock = mock().await;
    let (_, short, _) = triage(policy(&mock, "healthy", |_| {})).await;
    let (_, retimed, _) = triage(policy(&mock, "healthy", |route| {
        route.timeouts.total = Timer::Set(Duration::from_secs(5));
        route.deadline = Duration::from_secs(6);
    }))
    .await;
    let (_, reworded, _) = triage(policy(&mock, "healthy", |route| {
        route.prompt_version = Some("triage-v4".into());
    }))
    .await;
    assert_eq!(short.len(), 12);
    assert_eq!(short, retimed);
    assert_ne!(short, reworded);
    mock.stop().await;
}

#[tokio::test]
async fn repair_succeeds_on_the_second_attempt() {
    let mock = mock().await;
    mock.script("m", &["enum-miss", "healthy"]);
    let (text, _, row) = triage(policy(&mock, "m", |_| {})).await;
    assert_eq!(statuses(&row), ["schema_error", "ok"]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), good());
    assert_eq!(mock.log().len(), 2);
    mock.stop().await;
}

#[tokio::test]
async fn a_model_that_keeps_the_wrong_enum_ends_in_the_fallback_after_three_calls() {
    let mock = mock().await;
    let (text, _, row) = triage(policy(&mock, "enum-miss", |_| {})).await;
    assert_eq!(statuses(&row), ["schema_error", "schema_error", "schema_error"]);
    assert_eq!((text.as_str(), row.outcome.as_ref()), ("route to the non-AI path", "last_resort"));
    assert_eq!(mock.log().len(), 3);
    mock.stop().await;
}

#[tokio::test]
async fn a_truncated_reply_is_not_repaired_by_asking_again() {
    let mock = mock().await;
    let (text, _, row) = triage(policy(&mock, "truncated", |_| {})).await;
    assert_eq!(statuses(&row), ["truncated"]);
    assert_eq!((text.as_str(), row.outcome.as_ref()), ("route to the non-AI path", "last_resort"));
    assert_eq!(mock.log().len(), 1);
    mock.stop().await;
}

#[tokio::test]
async fn an_oversized_input_is_refused_before_any_call_with_the_sum() {
    let mock = mock().await;
    let policy = policy(&mock, "healthy", |route| route.last_resort = None);
    let engine = Engine::new(policy, CallLog::off()).unwrap();
    let body = json!({"model": "triage", "messages": [
        {"role": "system", "content": "Classify the support ticket. Reply with JSON only."},
        {"role": "user", "content": "Order log line. ".repeat(1_900)}
    ]});
    let ask = Ask::new(Dialect::OpenaiChat, body.to_string(), engine.now());
    let error = call::answer(&engine, ask).await.unwrap_err();
    assert_eq!(error.code(), "context_budget_exceeded");
    let sum = "prompt~7613 + output cap 300 = 7913 vs allowed 7200";
    assert!(error.to_string().contains(sum), "{error}");
    assert!(mock.log().is_empty());
    mock.stop().await;
}
