//! What one caller asks for must not cost the others: its deadline, its schema, its model's name.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by failing")]

use std::sync::Arc;

use backstay::call::{self, Body};
use backstay::contract::Ask;
use backstay::engine::Engine;
use backstay::policy::{LastResort, Pattern, Policy, Provider, Route};
use backstay::record::CallLog;
use backstay_mock::{Mock, Settings};
use backstay_wire::Dialect;
use serde_json::{Value, json};

/// The mock behind `p`, beside a route `*` to it.
async fn engine(change: impl FnOnce(&mut Route)) -> (Mock, Engine) {
    let mock = Mock::start(Settings::default()).await.unwrap();
    let base = mock.openai_base().parse().unwrap();
    let mut policy = Policy::of([Provider::at("p", Dialect::OpenaiChat, base, None)]);
    let plan = Engine::new(policy.clone(), CallLog::off()).unwrap().plan();
    let mut route = Route::clone(&plan.route("p/route-model").unwrap().0);
    route.name = "all".into();
    route.pattern = Pattern("*".into());
    change(&mut route);
    policy.routes.push(Arc::new(route));
    (mock, Engine::new(policy, CallLog::off()).unwrap())
}

async fn ask(engine: &Engine, body: Value, deadline: &str) -> Result<Value, &'static str> {
    let mut ask = Ask::new(Dialect::OpenaiChat, body.to_string(), engine.now());
    ask.headers.insert("x-backstay-deadline", deadline.parse().unwrap());
    let answer = call::answer(engine, ask).await.map_err(|error| error.code())?;
    let Body::Whole(bytes) = answer.body else { panic!("no stream was asked for") };
    Ok(serde_json::from_slice(&bytes).unwrap())
}

fn hello(model: &str) -> Value {
    json!({"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]})
}

#[tokio::test]
async fn provider_and_model_work_beside_a_route_for_everything() {
    let (mock, engine) = engine(|_| {}).await;
    ask(&engine, hello("p/healthy"), "5s").await.unwrap();
    assert_eq!(mock.log()[0].model, "healthy");
    mock.stop().await;
}

#[tokio::test]
async fn an_impatient_caller_takes_no_target_from_the_others() {
    let (mock, engine) = engine(|_| {}).await;
    let slow = "p/slow-headers+wait=400ms";
    for _ in 0..7 {
        assert_eq!(ask(&engine, hello(slow), "150ms").await, Err("provider_total_timeout"));
    }
    let before = mock.log().len();
    ask(&engine, hello(slow), "5s").await.unwrap();
    assert_eq!(mock.log().len(), before + 1, "asked at once: it never rested");
    mock.stop().await;
}

#[tokio::test]
async fn a_last_resort_of_another_shape_is_not_given_to_a_caller_with_its_own_schema() {
    let resort = LastResort::Json(Arc::new(json!({"category": "other"})));
    let (mock, engine) = engine(|route| {
        route.last_resort = Some(resort);
    })
    .await;
    mock.script("route-model", &["quota-429"]);
    let mut body = hello("anything");
    let answer = ask(&engine, body.clone(), "5s").await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "{\"category\":\"other\"}");
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}},
        "required": ["n"], "additionalProperties": false});
    body["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    let refused = ask(&engine, body, "5s").await;
    assert!(refused.is_err(), "{refused:?}");
    mock.stop().await;
}

#[tokio::test]
async fn a_model_name_of_a_megabyte_is_refused_and_kept_nowhere() {
    let (mock, engine) = engine(|_| {}).await;
    let name = format!("p/{}", "x".repeat(1 << 20));
    assert_eq!(ask(&engine, hello(&name), "5s").await, Err("invalid_request"));
    assert_eq!(ask(&engine, hello("p/a\nb"), "5s").await, Err("invalid_request"));
    assert!(mock.log().is_empty());
    mock.stop().await;
}
