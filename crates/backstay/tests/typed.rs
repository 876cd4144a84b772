//! Answers as values of Rust types, over real sockets: the schema that goes out, the type's own
//! last word, and what comes where there is no value.
#![expect(clippy::unwrap_used, reason = "a test says so by failing")]

use std::sync::Arc;

use backstay::call::{self, TypedError};
use backstay::contract::Ask;
use backstay::engine::Engine;
use backstay::policy::{LastResort, Policy, Provider, Route};
use backstay::record::{CallLog, Outcome, Step};
use backstay_mock::{Answer, Mock, Settings};
use backstay_wire::Dialect;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};

const TICKET: &str = "I was charged twice for order 1182. Please refund one charge.";

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Category {
    Billing,
    Shipping,
    Technical,
    Other,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Triage {
    category: Category,
    #[schemars(range(min = 1, max = 4))]
    priority: u8,
    summary: String,
    needs_human: bool,
}

/// Takes billing only, which its schema does not say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(try_from = "Triage")]
struct Bill(#[expect(dead_code, reason = "only built")] Triage);

impl TryFrom<Triage> for Bill {
    type Error = String;

    fn try_from(triage: Triage) -> Result<Self, String> {
        if triage.category == Category::Billing {
            return Ok(Self(triage));
        }
        Err(format!("{:?} is not about money", triage.category))
    }
}

/// A type whose schema is none.
#[derive(Debug, Deserialize)]
struct Odd {}

impl JsonSchema for Odd {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Odd".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": 42})
    }
}

fn good() -> Value {
    json!({"category": "billing", "priority": 2, "summary": "Duplicate charge", "needs_human": true})
}

async fn mock() -> Mock {
    let long = Answer {
        contains: "How many".into(),
        reply: json!({"count": 1}),
        text: Some("{\"count\": 618970019642690137449562111}".into()),
    };
    let triage = Answer { contains: TICKET.into(), reply: good(), text: None };
    Mock::start(Settings { answers: vec![long, triage], ..Settings::default() }).await.unwrap()
}

/// Both dialects of one mock; `route` is asked of the first model of either.
fn engine(mock: &Mock, routes: Vec<Route>) -> Engine {
    let at = |name, dialect, base: String| Provider::at(name, dialect, base.parse().unwrap(), None);
    let mut policy = Policy::of([
        at("o", Dialect::OpenaiChat, mock.openai_base()),
        at("a", Dialect::Anthropic, mock.anthropic_base()),
    ]);
    policy.routes.extend(routes.into_iter().map(Arc::new));
    Engine::new(policy, CallLog::memory(100)).unwrap()
}

fn ask(engine: &Engine, dialect: Dialect, model: &str, text: &str) -> Ask {
    let body = json!({"model": model, "max_tokens": 900, "stream": true,
        "messages": [{"role": "user", "content": text}]});
    Ask::new(dialect, body.to_string(), engine.now())
}

const BOTH: [(Dialect, &str); 2] = [(Dialect::OpenaiChat, "o"), (Dialect::Anthropic, "a")];

#[tokio::test]
async fn a_type_is_asked_for_and_read_in_every_pair_of_dialects() {
    let mock = mock().await;
    let engine = engine(&mock, Vec::new());
    for (caller, _) in BOTH {
        for (_, provider) in BOTH {
            mock.reset();
            let ask = ask(&engine, caller, &format!("{provider}/healthy"), TICKET);
            let typed = call::answer_as::<Triage>(&engine, ask).await.unwrap();
            let want = Triage {
                category: Category::Billing,
                priority: 2,
                summary: "Duplicate charge".into(),
                needs_human: true,
            };
            assert_eq!(typed.value, want);
            assert_eq!((typed.receipt.outcome, typed.receipt.attempts), (Outcome::Answered, 1));
            let log = mock.log();
            assert!(log[0].has_schema && log[0].body.as_deref().unwrap().contains("needs_human"));
        }
    }
    mock.stop().await;
}

#[tokio::test]
async fn what_was_changed_on_the_way_to_the_value_is_told() {
    let mock = mock().await;
    let engine = engine(&mock, Vec::new());
    for (dialect, provider) in BOTH {
        let ask = ask(&engine, dialect, &format!("{provider}/fenced"), TICKET);
        let typed = call::answer_as::<Triage>(&engine, ask).await.unwrap();
        let kinds: Vec<&str> = typed.edits.iter().map(|edit| edit.kind.name()).collect();
        assert_eq!((typed.receipt.outcome, kinds), (Outcome::Mended, vec!["fence", "fence"]));
    }
    mock.stop().await;
}

#[tokio::test]
async fn a_number_keeps_every_digit_its_type_can_hold() {
    #[derive(Deserialize, JsonSchema)]
    struct Count {
        count: u128,
    }
    let mock = mock().await;
    let engine = engine(&mock, Vec::new());
    let ask = ask(&engine, Dialect::OpenaiChat, "o/healthy", "How many?");
    let typed = call::answer_as::<Count>(&engine, ask).await.unwrap();
    assert_eq!(typed.value.count, 618_970_019_642_690_137_449_562_111);
    mock.stop().await;
}

#[tokio::test]
async fn what_only_the_type_refuses_is_told_to_the_model() {
    let mock = mock().await;
    let engine = engine(&mock, Vec::new());
    for (dialect, provider) in BOTH {
        mock.reset();
        let model = format!("learns-{provider}");
        mock.script(&model, &["wrong-category", "healthy"]);
        let ask = ask(&engine, dialect, &format!("{provider}/{model}"), TICKET);
        let typed = call::answer_as::<Bill>(&engine, ask).await.unwrap();
        assert_eq!(typed.receipt.attempts, 2);
        let told = mock.log()[1].body.clone().unwrap();
        assert!(told.contains("is not about money"), "{told}");
        let row = engine.call_log().find(&typed.receipt.call_id).unwrap().unwrap();
        let verdicts = row.trail.notes.iter().filter_map(|note| match &note.step {
            Step::Judged { verdict, .. } => Some(verdict.to_string()),
            _ => None,
        });
        assert_eq!(verdicts.collect::<Vec<_>>(), ["schema_error", "ok"]);
        let trail = format!("{:?}", row.trail);
        assert!(!trail.contains("about money"), "a type may quote the reply: {trail}");
    }
    let ask = ask(&engine, Dialect::OpenaiChat, "o/wrong-category", TICKET);
    let error = call::answer_as::<Bill>(&engine, ask).await.unwrap_err();
    let TypedError::Call(error) = error else { panic!("{error}") };
    assert_eq!(error.code(), "reply_schema_error");
    assert!(error.to_string().contains("is not about money"), "{error}");
    mock.stop().await;
}

#[tokio::test]
async fn a_type_without_a_schema_costs_no_call() {
    let mock = mock().await;
    let engine = engine(&mock, Vec::new());
    let ask = ask(&engine, Dialect::OpenaiChat, "o/healthy", TICKET);
    let error = call::answer_as::<Odd>(&engine, ask).await.unwrap_err();
    assert_eq!(error.to_string(), "the schema of `Odd` cannot be used");
    assert!(matches!(error, TypedError::Schema { .. }) && mock.log().is_empty());
    let broken = Ask::new(Dialect::OpenaiChat, "{", engine.now());
    let error = call::answer_as::<Triage>(&engine, broken).await.unwrap_err();
    assert!(matches!(error, TypedError::Call(error) if error.code() == "invalid_request"));
    mock.stop().await;
}

#[tokio::test]
async fn a_refusal_is_no_value_and_the_answer_can_be_looked_at() {
    let mock = mock().await;
    let engine = engine(&mock, Vec::new());
    for (dialect, provider) in BOTH {
        let ask = ask(&engine, dialect, &format!("{provider}/refusal"), TICKET);
        let error = call::answer_as::<Triage>(&engine, ask).await.unwrap_err();
        assert_eq!(error.to_string(), "the answer is no `Triage` but refused");
        let TypedError::NoValue { answer, .. } = error else { panic!("{error}") };
        assert_eq!((answer.receipt.outcome, answer.receipt.attempts), (Outcome::Refused, 1));
    }
    mock.stop().await;
}

#[tokio::test]
async fn a_last_resort_answers_where_it_is_of_the_type() {
    let mock = mock().await;
    let plain = engine(&mock, Vec::new());
    let (direct, _) = plain.plan().route("o/enum-miss").unwrap();
    let with = |name: &str, resort: Value| {
        let mut route = (*direct).clone();
        route.name = name.into();
        route.pattern = backstay::policy::Pattern(name.into());
        route.last_resort = Some(LastResort::Json(Arc::new(resort)));
        route
    };
    let other = json!({"category": "other", "priority": 3, "summary": "", "needs_human": true});
    let engine = engine(&mock, vec![with("bill", good()), with("other", other)]);
    let bill = ask(&engine, Dialect::OpenaiChat, "bill", TICKET);
    let typed = call::answer_as::<Bill>(&engine, bill).await.unwrap();
    assert_eq!(typed.receipt.outcome, Outcome::LastResort);
    let other = ask(&engine, Dialect::OpenaiChat, "other", TICKET);
    let error = call::answer_as::<Bill>(&engine, other).await.unwrap_err();
    assert!(matches!(error, TypedError::Call(error) if error.code() == "reply_schema_error"));
    mock.stop().await;
}
