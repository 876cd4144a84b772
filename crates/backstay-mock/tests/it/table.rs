//! Every behaviour, in both dialects, whole and streamed: the wire and the log entry.

use std::collections::BTreeSet;
use std::time::Duration;

use backstay_mock::{Answer, End, Entry, Family, Mock, Settings, behaviours};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{
    BOTH, Dialect, Ended, Seen, TICKET, ask, data, fold, newest, plain, reply, request, streamed,
};

const FORMS: [Form; 2] = [Form::Whole, Form::Stream];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Whole,
    Stream,
}

/// One call of a behaviour.
struct Case {
    dialect: Dialect,
    form: Form,
    model: String,
    seen: Seen,
    entry: Entry,
}

fn gold() -> Value {
    json!({"category": "billing", "priority": 2, "summary": "Duplicate charge",
        "evidence": "charged twice for order 1182", "needs_human": true})
}

/// A mock that knows the right answer to [`TICKET`].
async fn knowing() -> Mock {
    let answers = vec![Answer { contains: "order 1182".into(), reply: gold(), text: None }];
    Mock::start(Settings { answers, ..Settings::default() }).await.expect("a mock")
}

async fn case(mock: &Mock, dialect: Dialect, form: Form, model: &str) -> Case {
    body_case(mock, dialect, form, request(dialect, model)).await
}

async fn body_case(mock: &Mock, dialect: Dialect, form: Form, body: Value) -> Case {
    let model = body["model"].as_str().expect("a model").to_owned();
    let body = if form == Form::Stream { streamed(body) } else { body };
    let seen = ask(mock, dialect, &body).await;
    Case { dialect, form, seen, entry: newest(mock).await, model }
}

impl Case {
    fn name(&self) -> String {
        format!("{} {:?} {:?}: {:?}", self.model, self.dialect, self.form, self.seen)
    }

    /// The reply's text and finish, and that nothing else is wrong with it.
    fn said(&self) -> (String, Value) {
        assert_eq!((self.seen.status, self.seen.ended), (200, Ended::Clean), "{}", self.name());
        assert_eq!(self.entry.end, End::Complete, "{}", self.name());
        match self.form {
            Form::Whole => reply(self.dialect, &self.seen.json()),
            Form::Stream => {
                let (text, finish, done) = fold(self.dialect, &self.seen.text());
                assert!(done, "{}", self.name());
                (text, finish)
            }
        }
    }

    fn finish(&self, openai: &str, anthropic: &str) -> Value {
        json!(if self.dialect == Dialect::OpenAi { openai } else { anthropic })
    }

    fn normal(&self) -> Value {
        self.finish("stop", "end_turn")
    }

    fn ended(&self, ended: Ended, end: End) {
        assert_eq!(self.seen.ended, ended, "{}", self.name());
        assert_eq!(self.entry.end, end, "{}", self.name());
    }

    fn events(&self) -> u64 {
        let text = self.seen.text();
        let comments = text.matches(": keep-alive\n\n").count();
        u64::try_from(data(&text).len() + comments).expect("a count")
    }
}

#[tokio::test]
async fn healthy_replies_have_the_true_shape_of_their_dialect() {
    let mock = knowing().await;
    for dialect in BOTH {
        let whole = case(&mock, dialect, Form::Whole, "healthy+prompt_tokens=11").await;
        assert_eq!(whole.said(), (gold().to_string(), whole.normal()));
        let body = whole.seen.json();
        let tokens = gold().to_string().len().div_ceil(4);
        match dialect {
            Dialect::OpenAi => {
                assert_eq!(body["object"], "chat.completion");
                assert!(body["id"].as_str().is_some_and(|id| id.starts_with("chatcmpl-")));
                assert_eq!(body["usage"]["completion_tokens"], tokens);
                assert_eq!(body["usage"]["prompt_tokens"], 11);
                assert_eq!(body["usage"]["total_tokens"], tokens + 11);
                assert_eq!(body["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
                assert!(whole.seen.header("x-request-id").starts_with("req_"));
            }
            Dialect::Anthropic => {
                assert_eq!(body["type"], "message");
                assert!(body["id"].as_str().is_some_and(|id| id.starts_with("msg_01")));
                assert_eq!(body["usage"]["output_tokens"], tokens);
                assert_eq!(body["usage"]["input_tokens"], 11);
                assert!(whole.seen.header("request-id").starts_with("req_01"));
            }
        }
        let stream = case(&mock, dialect, Form::Stream, "healthy+n=5").await;
        assert_eq!(stream.said(), (gold().to_string(), stream.normal()));
        assert!(stream.seen.header("content-type").starts_with("text/event-stream"));
        assert_eq!(stream.entry.events_sent, stream.events());
        let data = data(&stream.seen.text());
        let all: Vec<Value> = data.iter().filter_map(|d| serde_json::from_str(d).ok()).collect();
        match dialect {
            Dialect::OpenAi => {
                // Role, five pieces, finish, usage; then [DONE].
                assert_eq!((all.len(), data.len()), (8, 9));
                assert_eq!(all[0]["choices"][0]["delta"]["role"], "assistant");
                assert_eq!(all[7]["choices"], json!([]));
                assert_eq!(all[7]["usage"]["completion_tokens"], tokens);
                assert!(all[..7].iter().all(|chunk| chunk["usage"].is_null()));
                assert!(all.iter().all(|c| c["object"] == "chat.completion.chunk"));
            }
            Dialect::Anthropic => {
                let kinds: Vec<&str> = all.iter().filter_map(|e| e["type"].as_str()).collect();
                assert_eq!(kinds[..3], ["message_start", "content_block_start", "ping"]);
                assert_eq!(kinds[3..8], ["content_block_delta"; 5]);
                assert_eq!(kinds[8..], ["content_block_stop", "message_delta", "message_stop"]);
                assert_eq!(all[9]["usage"]["output_tokens"], tokens);
                assert!(stream.seen.text().starts_with("event: message_start\ndata: {"));
            }
        }
    }
}

#[tokio::test]
async fn usage_comes_in_a_stream_only_when_asked_for() {
    let mock = knowing().await;
    let mut body = streamed(plain(Dialect::OpenAi, "healthy"));
    body["stream_options"] = json!({});
    let seen = ask(&mock, Dialect::OpenAi, &body).await;
    assert!(!seen.text().contains("usage"));
}

#[tokio::test]
async fn a_cap_is_honoured_and_said() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            let mut body = plain(dialect, "healthy+size=900");
            body["messages"][0]["content"] = json!("Tell me something");
            body.as_object_mut().expect("an object").remove("max_completion_tokens");
            body["max_tokens"] = json!(10);
            let case = body_case(&mock, dialect, form, body).await;
            let (text, finish) = case.said();
            assert_eq!(text.len(), 40, "{}", case.name());
            assert_eq!(finish, case.finish("length", "max_tokens"));
        }
    }
}

#[tokio::test]
async fn every_schema_without_a_known_answer_gets_a_valid_instance() {
    let mock = crate::client::mock().await;
    let check = jsonschema::validator_for(&crate::client::schema()).expect("a schema");
    for dialect in BOTH {
        for form in FORMS {
            let case = case(&mock, dialect, form, "healthy").await;
            let made: Value = serde_json::from_str(&case.said().0).expect("JSON");
            assert!(check.is_valid(&made), "{made}");
            let evidence = made["evidence"].as_str().expect("a string");
            assert!(!evidence.is_empty() && TICKET.contains(evidence), "{evidence}");
        }
    }
}

/// name, status, OpenAI's type and code, Anthropic's type
type StatusRow = (&'static str, u16, &'static str, Option<&'static str>, &'static str);

#[rustfmt::skip]
const STATUSES: &[StatusRow] = &[
    ("status-400", 400, "invalid_request_error", Some("invalid_value"), "invalid_request_error"),
    ("status-401", 401, "invalid_request_error", Some("invalid_api_key"), "authentication_error"),
    ("status-402", 402, "billing_error", Some("billing_not_active"), "billing_error"),
    ("status-403", 403, "request_forbidden", Some("unsupported_country_region_territory"), "permission_error"),
    ("status-404", 404, "invalid_request_error", Some("unknown_url"), "not_found_error"),
    ("status-408", 408, "timeout_error", None, "timeout_error"),
    ("status-409", 409, "conflict_error", None, "conflict_error"),
    ("status-413", 413, "invalid_request_error", Some("request_too_large"), "request_too_large"),
    ("status-422", 422, "invalid_request_error", None, "invalid_request_error"),
    ("status-429", 429, "requests", Some("rate_limit_exceeded"), "rate_limit_error"),
    ("status-500", 500, "server_error", None, "api_error"),
    ("status-502", 502, "server_error", Some("bad_gateway"), "api_error"),
    ("status-503", 503, "server_error", Some("server_is_overloaded"), "overloaded_error"),
    ("status-504", 504, "server_error", Some("gateway_timeout"), "timeout_error"),
    ("status-529", 529, "server_error", Some("server_is_overloaded"), "overloaded_error"),
    ("quota-429", 429, "insufficient_quota", Some("insufficient_quota"), "rate_limit_error"),
    ("quota-400", 400, "invalid_request_error", Some("billing_hard_limit_reached"), "invalid_request_error"),
    ("context-exceeded", 400, "invalid_request_error", Some("context_length_exceeded"), "invalid_request_error"),
    ("content-policy", 400, "invalid_request_error", Some("content_policy_violation"), "invalid_request_error"),
    ("model-gone", 404, "invalid_request_error", Some("model_not_found"), "not_found_error"),
];

#[tokio::test]
async fn statuses_come_with_the_body_of_their_dialect() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            for (name, status, kind, code, anthropic) in STATUSES.iter().copied() {
                let case = case(&mock, dialect, form, name).await;
                assert_eq!((case.seen.status, case.entry.status), (status, Some(status)));
                case.ended(Ended::Clean, End::Complete);
                assert_eq!(case.seen.header("content-type"), "application/json");
                assert_eq!(case.seen.header("retry-after"), "");
                let body = case.seen.json();
                if dialect == Dialect::OpenAi {
                    assert_eq!(body["error"]["type"], kind, "{name}");
                    assert_eq!(body["error"]["code"], json!(code), "{name}");
                    assert!(body["error"].get("param").is_some());
                } else {
                    assert_eq!(
                        (&body["type"], &body["error"]["type"]),
                        (&json!("error"), &json!(anthropic))
                    );
                    assert_eq!(body["request_id"], case.seen.header("request-id"), "{name}");
                }
            }
            let page = case(&mock, dialect, form, "status-503-html").await;
            assert_eq!(page.seen.status, 503);
            assert!(page.seen.text().starts_with("<!DOCTYPE html>"));
            assert_eq!(page.seen.header("content-type"), "text/html");
        }
    }
    let of = async |name| case(&mock, Dialect::Anthropic, Form::Whole, name).await.seen.json();
    let quota = of("quota-429").await;
    assert_eq!(quota["error"]["details"]["error_code"], "enforced_spend_limit_reached");
    let limit = of("quota-400").await;
    let message = limit["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with("You have reached your specified API usage limits"));
    let long = of("context-exceeded").await;
    assert!(long["error"]["message"].as_str().expect("a message").contains("prompt is too long"));
}

#[tokio::test]
async fn retry_advice_is_sent_in_the_form_asked_for() {
    let mock = knowing().await;
    let of = async |model: &str| case(&mock, Dialect::OpenAi, Form::Whole, model).await.seen;
    assert_eq!(of("status-429+after=7").await.header("retry-after"), "7");
    assert_eq!(of("status-503+after=0.25").await.header("retry-after"), "0.25");
    assert_eq!(of("status-429+after=ms:150").await.header("retry-after-ms"), "150");
    assert_eq!(
        of("status-429+after=garbage").await.header("retry-after"),
        "when the cows come home"
    );
    let date = of("status-429+after=date:60").await;
    let then = httpdate::parse_http_date(date.header("retry-after")).expect("an HTTP-date");
    let now = httpdate::parse_http_date(date.header("date")).expect("an HTTP-date");
    let ahead = then.duration_since(now).expect("ahead").as_secs();
    assert!((59..=61).contains(&ahead), "{ahead}");
    assert_eq!(of("status-500+should_retry=false").await.header("x-should-retry"), "false");
}

#[tokio::test]
async fn transport_faults_break_the_connection_where_they_say() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            let reset = case(&mock, dialect, form, "reset").await;
            reset.ended(Ended::Reset, End::Reset);
            assert_eq!((reset.seen.status, reset.entry.status), (0, None));

            let after = case(&mock, dialect, form, "reset-after-headers").await;
            after.ended(Ended::Reset, End::Reset);
            assert_eq!((after.seen.status, after.seen.body.len()), (200, 0));
            assert_eq!((after.entry.status, after.entry.events_sent), (Some(200), 0));

            let silence = case(&mock, dialect, form, "silence").await;
            silence.ended(Ended::Quiet, End::ClientGone);
            assert_eq!((silence.seen.status, silence.entry.status), (0, None));
            let closed = case(&mock, dialect, form, "silence+hold=20ms").await;
            closed.ended(Ended::Closed, End::Cut);

            let short = case(&mock, dialect, form, "short-body").await;
            short.ended(Ended::Closed, End::Cut);
            assert!(!short.seen.body.is_empty());
            if form == Form::Whole {
                let claimed: usize = short.seen.header("content-length").parse().expect("a length");
                assert_eq!(short.seen.body.len(), claimed / 2);
            }
            let hang = case(&mock, dialect, form, "hang-body").await;
            hang.ended(Ended::Quiet, End::ClientGone);
            assert!(!hang.seen.body.is_empty());
        }
    }
}

#[tokio::test]
async fn slow_behaviours_are_late_in_the_place_they_say() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            for model in ["slow-headers+wait=60ms", "slow-first+wait=60ms", "healthy+delay=60ms"] {
                let start = Instant::now();
                let case = case(&mock, dialect, form, model).await;
                assert!(start.elapsed() >= Duration::from_millis(60), "{model}");
                assert_eq!(case.said(), (gold().to_string(), case.normal()));
            }
        }
        // The head of a stream comes before the first token is due.
        let body = streamed(request(dialect, "slow-first+wait=5s")).to_string();
        let path = crate::client::path(dialect);
        let mut socket = crate::client::open(&mock, "POST", path, body.as_bytes()).await;
        let seen = crate::client::read(&mut socket, Duration::from_millis(50)).await;
        assert_eq!((seen.status, seen.body.len()), (200, 0));
    }
    let start = Instant::now();
    case(&mock, Dialect::OpenAi, Form::Stream, "healthy+n=6+gap=10ms").await.said();
    assert!(start.elapsed() >= Duration::from_millis(50));
}

/// name, check of the text, finish of OpenAI, finish of Anthropic
type DamageRow = (&'static str, fn(&str), &'static str, &'static str);

fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The first half of the gold answer.
fn half() -> String {
    let all = gold().to_string();
    all.chars().take(all.len() / 2).collect()
}

/// The gold answer with one field replaced.
fn with(key: &str, value: Value) -> Value {
    let mut made = gold();
    made[key] = value;
    made
}

#[rustfmt::skip]
const DAMAGES: &[DamageRow] = &[
    ("fenced", |t| {
        let inner = t.strip_prefix("```json\n").and_then(|t| t.strip_suffix("\n```"));
        assert_eq!(object(inner.expect("a fence")), gold());
    }, "stop", "end_turn"),
    ("prose-around", |t| {
        assert!(t.contains(&gold().to_string()) && t.starts_with("Sure") && t.ends_with('.'));
    }, "stop", "end_turn"),
    ("two-objects", |t| {
        let (first, second) = t.split_once('\n').expect("two lines");
        assert_eq!(object(first), gold());
        assert_eq!(object(second), with("category", json!("shipping")));
    }, "stop", "end_turn"),
    ("wrong-schema", |t| {
        let mut made = gold();
        made.as_object_mut().expect("an object").remove("needs_human");
        assert_eq!(object(t), made);
    }, "stop", "end_turn"),
    ("wrong-type", |t| assert_eq!(object(t), with("priority", json!("2"))), "stop", "end_turn"),
    ("extra-key", |t| assert_eq!(object(t), with("confidence", json!(0.93))), "stop", "end_turn"),
    ("enum-miss", |t| assert_eq!(object(t), with("category", json!("payments"))), "stop", "end_turn"),
    ("invented-quote", |t| {
        assert_eq!(object(t), with("evidence", json!("charged three times")));
    }, "stop", "end_turn"),
    ("urgent-no-review", |t| {
        let mut made = with("priority", json!(1));
        made["needs_human"] = json!(false);
        assert_eq!(object(t), made);
    }, "stop", "end_turn"),
    ("wrong-category", |t| {
        assert_eq!(object(t), with("category", json!("shipping")));
    }, "stop", "end_turn"),
    ("quiet-refusal", |t| assert!(t.starts_with("I'm sorry, but I can't help")), "stop", "end_turn"),
    ("content-filter", |t| {
        assert_eq!(t, half());
    }, "content_filter", "refusal"),
    ("truncated", |t| {
        assert_eq!(t, half());
    }, "length", "max_tokens"),
    ("truncated-by-cap+need=2000", |t| {
        assert_eq!(t, half());
    }, "length", "max_tokens"),
    ("truncated-by-cap", |t| assert_eq!(object(t), gold()), "stop", "end_turn"),
    ("right-on-second", |t| {
        assert_eq!(object(t), with("category", json!("payments")));
    }, "stop", "end_turn"),
    ("right-after+k=1", |t| {
        assert_eq!(object(t), with("category", json!("payments")));
    }, "stop", "end_turn"),
    ("unknown-finish", |t| assert_eq!(object(t), gold()), "flux_exhausted", "flux_exhausted"),
    ("empty-content", |t| assert_eq!(t, ""), "stop", "end_turn"),
    ("think-tags", |t| {
        assert!(t.starts_with("<think>\n"));
        assert_eq!(object(t.split_once("</think>").expect("an end").1), gold());
    }, "stop", "end_turn"),
    ("unclosed", |t| assert_eq!(object(&format!("{t}}}")), gold()), "stop", "end_turn"),
];

#[tokio::test]
async fn each_structural_damage_is_the_only_one() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            mock.reset();
            for (model, check, openai, anthropic) in DAMAGES.iter().copied() {
                let case = case(&mock, dialect, form, model).await;
                let (text, finish) = case.said();
                check(&text);
                assert_eq!(finish, case.finish(openai, anthropic), "{}", case.name());
            }
        }
    }
}

#[tokio::test]
async fn the_right_answer_comes_on_the_second_ask_of_the_same_ticket() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            mock.reset();
            let wrong = with("category", json!("payments"));
            for (model, wanted) in [
                ("right-on-second", [&wrong, &gold(), &gold()]),
                ("right-after+k=2", [&wrong, &wrong, &gold()]),
            ] {
                for wanted in wanted {
                    // Another ticket in between has a count of its own.
                    let mut other = request(dialect, model);
                    other["messages"][0]["content"] = json!("Order 99 is late");
                    ask(&mock, dialect, &other).await;
                    let text = case(&mock, dialect, form, model).await.said().0;
                    assert_eq!(&object(&text), wanted, "{model}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_has_the_form_of_its_dialect() {
    let mock = knowing().await;
    for form in FORMS {
        let openai = case(&mock, Dialect::OpenAi, form, "refusal").await;
        assert_eq!(openai.said(), (String::new(), json!("stop")));
        if form == Form::Whole {
            let message = &openai.seen.json()["choices"][0]["message"];
            assert!(message["content"].is_null());
            assert!(message["refusal"].as_str().expect("a refusal").starts_with("I'm sorry"));
        } else {
            let refusal: String = data(&openai.seen.text())
                .iter()
                .filter_map(|d| serde_json::from_str::<Value>(d).ok())
                .filter_map(|c| c["choices"][0]["delta"]["refusal"].as_str().map(str::to_owned))
                .collect();
            assert_eq!(refusal, "I'm sorry, I cannot assist with that request.");
        }
        let anthropic = case(&mock, Dialect::Anthropic, form, "refusal").await;
        assert_eq!(anthropic.said(), (String::new(), json!("refusal")));
        assert!(anthropic.seen.text().contains("\"stop_details\":{\"type\":\"refusal\""));
    }
}

#[tokio::test]
async fn bodies_that_are_no_replies_come_with_status_200() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            let empty = case(&mock, dialect, form, "empty-200").await;
            empty.ended(Ended::Clean, End::Complete);
            assert_eq!((empty.seen.status, empty.seen.body.len()), (200, 0));
            let page = case(&mock, dialect, form, "html-200").await;
            page.ended(Ended::Clean, End::Complete);
            assert!(page.seen.text().starts_with("<!DOCTYPE html>"));
            assert!(page.seen.header("content-type").starts_with("text/html"));
            let array = case(&mock, dialect, form, "json-array-200").await;
            assert!(array.seen.status == 200 && array.seen.json().is_array());
            let error = case(&mock, dialect, form, "error-in-200").await;
            assert!(error.seen.status == 200 && error.seen.json()["error"]["type"].is_string());
            let null = case(&mock, dialect, form, "null-finish").await;
            assert_eq!(null.said(), (gold().to_string(), Value::Null));
        }
    }
}

#[tokio::test]
async fn streams_break_where_they_say() {
    let mock = knowing().await;
    let begun = |text: &str| !text.is_empty() && gold().to_string().starts_with(text);
    for dialect in BOTH {
        for (name, ended, end) in [
            ("stream-cut", Ended::Closed, End::Cut),
            ("stream-end-early", Ended::Clean, End::Complete),
            ("stream-stall", Ended::Quiet, End::ClientGone),
        ] {
            let case = case(&mock, dialect, Form::Stream, &format!("{name}+n=8+at=3")).await;
            case.ended(ended, end);
            let (text, finish, done) = fold(dialect, &case.seen.text());
            assert!(begun(&text), "{}", case.name());
            assert_eq!((finish, done), (Value::Null, false));
            let before = if dialect == Dialect::OpenAi { 1 } else { 3 };
            assert_eq!((case.entry.events_sent, case.events()), (before + 3, before + 3));
            // Nothing but the opening when the fault strikes at 0.
            let early = format!("{name}+n=8+at=0+hold=9s");
            let early = body_case(&mock, dialect, Form::Stream, request(dialect, &early)).await;
            assert_eq!(fold(dialect, &early.seen.text()).0, "");
        }
        let late = case(&mock, dialect, Form::Stream, "error-event+at=2+n=8").await;
        late.ended(Ended::Clean, End::Complete);
        let (text, finish, done) = fold(dialect, &late.seen.text());
        assert!(begun(&text) && finish.is_null() && !done);
        let last = object(data(&late.seen.text()).last().expect("an event"));
        assert!(last["error"]["type"].is_string(), "{last}");

        let bad = case(&mock, dialect, Form::Stream, "malformed-chunk+n=8").await;
        bad.ended(Ended::Clean, End::Complete);
        let broken = data(&bad.seen.text())
            .iter()
            .filter(|d| *d != "[DONE]" && serde_json::from_str::<Value>(d).is_err())
            .count();
        assert_eq!(broken, 1);
        assert!(fold(dialect, &bad.seen.text()).2);
    }
}

#[tokio::test]
async fn streams_end_wrongly_as_they_say() {
    let mock = knowing().await;
    for dialect in BOTH {
        let no_done = case(&mock, dialect, Form::Stream, "no-done").await;
        no_done.ended(Ended::Clean, End::Complete);
        let folded = fold(dialect, &no_done.seen.text());
        assert_eq!(folded, (gold().to_string(), no_done.normal(), false));

        let no_finish = case(&mock, dialect, Form::Stream, "no-finish").await;
        assert_eq!(no_finish.said(), (gold().to_string(), Value::Null));

        let twice = case(&mock, dialect, Form::Stream, "double-terminal").await;
        assert_eq!(twice.said(), (gold().to_string(), twice.normal()));
        let terminal = if dialect == Dialect::OpenAi { "[DONE]" } else { "event: message_stop" };
        assert_eq!(twice.seen.text().matches(terminal).count(), 2);

        let after = case(&mock, dialect, Form::Stream, "content-after-finish+n=8").await;
        let (text, finish) = after.said();
        assert_eq!(finish, after.normal());
        assert!(text.starts_with(&gold().to_string()) && text.len() > gold().to_string().len());

        let json = case(&mock, dialect, Form::Stream, "json-not-stream").await;
        assert_eq!(json.seen.header("content-type"), "application/json");
        assert_eq!(reply(dialect, &json.seen.json()), (gold().to_string(), json.normal()));
        let page = case(&mock, dialect, Form::Stream, "html-stream").await;
        assert!(page.seen.header("content-type").starts_with("text/html"));
        assert!(page.seen.text().starts_with("<!DOCTYPE html>"));
    }
}

#[tokio::test]
async fn streams_in_odd_writes_still_say_the_same() {
    let mock = knowing().await;
    for dialect in BOTH {
        let drip = case(&mock, dialect, Form::Stream, "byte-drip+n=4").await;
        assert_eq!(drip.said(), (gold().to_string(), drip.normal()));
        assert!(drip.seen.reads > 50, "{} reads", drip.seen.reads);
        assert_eq!(drip.entry.events_sent, drip.events());

        let crlf = case(&mock, dialect, Form::Stream, "crlf").await;
        assert_eq!(crlf.said(), (gold().to_string(), crlf.normal()));
        let text = crlf.seen.text();
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());

        let mut body = plain(dialect, "split-utf8+size=300+n=10");
        body["messages"][0]["content"] = json!("Write me a poem");
        let split = body_case(&mock, dialect, Form::Stream, body).await;
        let (text, _) = split.said();
        let wide = text.chars().filter(|c| c.len_utf8() > 1).count();
        assert!(wide > 10, "{text}");
        assert_eq!(split.entry.events_sent, split.events());
        // A write a piece: more reads than there are events.
        assert!(u64::try_from(split.seen.reads).expect("a count") > split.entry.events_sent);

        let round = case(&mock, dialect, Form::Stream, "loop+n=12").await;
        let text = round.said().0;
        let phrase = text.split_inclusive(". ").next().expect("a phrase");
        assert_eq!(text, phrase.repeat(12));

        let mut alive = request(dialect, "keepalive-forever+gap=10ms+hold=400ms");
        alive["stream"] = json!(true);
        let seen = ask(&mock, dialect, &alive).await;
        let entry = newest(&mock).await;
        assert_eq!((seen.ended, entry.end), (Ended::Closed, End::Cut));
        assert_eq!(fold(dialect, &seen.text()), (String::new(), Value::Null, false));
        assert!(entry.events_sent > 20, "{}", entry.events_sent);
    }
}

/// What the stream family does where no stream was asked for.
#[tokio::test]
async fn stream_faults_of_a_plain_reply_are_the_nearest_thing() {
    let mock = knowing().await;
    for dialect in BOTH {
        for behaviour in behaviours().iter().filter(|b| b.family == Family::Stream) {
            let model = format!("{}+hold=300ms", behaviour.name);
            let case = case(&mock, dialect, Form::Whole, &model).await;
            let (seen, end) = (&case.seen, case.entry.end);
            assert_eq!((seen.status, case.entry.events_sent), (200, 0), "{}", case.name());
            match behaviour.name {
                "stream-cut" => case.ended(Ended::Closed, End::Cut),
                "stream-stall" => assert_eq!(seen.ended, Ended::Quiet),
                "keepalive-forever" => {
                    assert!(end == End::Cut && seen.body.iter().all(|b| *b == b'\n'));
                }
                "stream-end-early" | "malformed-chunk" => {
                    case.ended(Ended::Clean, End::Complete);
                    assert!(serde_json::from_slice::<Value>(&seen.body).is_err());
                }
                "error-event" => assert!(seen.json()["error"].is_object()),
                "html-stream" => assert!(seen.text().starts_with("<!DOCTYPE html>")),
                "no-finish" => assert_eq!(case.said(), (gold().to_string(), Value::Null)),
                "loop" => assert!(case.said().0.len() > 1_000),
                _ => assert_eq!(case.said(), (gold().to_string(), case.normal())),
            }
        }
    }
}

fn with_tools(dialect: Dialect, model: &str) -> Value {
    let schema = json!({"type": "object", "required": ["city", "days"], "properties":
        {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7}}});
    let mut body = plain(dialect, model);
    body["tools"] = match dialect {
        Dialect::OpenAi => {
            json!([{"type": "function", "function": {"name": "weather", "parameters": schema}}])
        }
        Dialect::Anthropic => json!([{"name": "weather", "input_schema": schema}]),
    };
    body
}

/// The tool calls of a reply: name and arguments as text.
fn calls(case: &Case) -> Vec<(String, String)> {
    match (case.form, case.dialect) {
        (Form::Whole, Dialect::OpenAi) => {
            let body = case.seen.json();
            let list =
                body["choices"][0]["message"]["tool_calls"].as_array().expect("calls").clone();
            list.iter()
                .map(|c| {
                    let text = |v: &Value| v.as_str().expect("text").to_owned();
                    (text(&c["function"]["name"]), text(&c["function"]["arguments"]))
                })
                .collect()
        }
        (Form::Whole, Dialect::Anthropic) => {
            let body = case.seen.json();
            let list = body["content"].as_array().expect("blocks").clone();
            list.iter()
                .filter(|b| b["type"] == "tool_use")
                .map(|b| {
                    let input = &b["input"];
                    let broken = input["INVALID_JSON"].as_str().map(str::to_owned);
                    (
                        b["name"].as_str().expect("a name").into(),
                        broken.unwrap_or(input.to_string()),
                    )
                })
                .collect()
        }
        (Form::Stream, dialect) => {
            let mut calls: Vec<(String, String)> = Vec::new();
            for event in data(&case.seen.text()) {
                let Ok(event) = serde_json::from_str::<Value>(&event) else { continue };
                let (name, piece) = match dialect {
                    Dialect::OpenAi => (
                        "/choices/0/delta/tool_calls/0/function/name",
                        "/choices/0/delta/tool_calls/0/function/arguments",
                    ),
                    Dialect::Anthropic => ("/content_block/name", "/delta/partial_json"),
                };
                if let Some(name) = event.pointer(name).and_then(Value::as_str) {
                    calls.push((name.to_owned(), String::new()));
                }
                if let Some(piece) = event.pointer(piece).and_then(Value::as_str) {
                    calls.last_mut().expect("an open call").1.push_str(piece);
                }
            }
            calls
        }
    }
}

#[tokio::test]
async fn tools_are_called_well_and_badly() {
    let mock = crate::client::mock().await;
    for dialect in BOTH {
        for form in FORMS {
            let of = async |model: &str| {
                body_case(&mock, dialect, form, with_tools(dialect, model)).await
            };
            for (model, count) in [("tool-call", 1), ("parallel-tools", 2)] {
                let case = of(model).await;
                assert_eq!(case.said().1, case.finish("tool_calls", "tool_use"));
                let calls = calls(&case);
                assert_eq!(calls.len(), count);
                for (name, arguments) in &calls {
                    assert_eq!(name, "weather");
                    assert!((1..=7).contains(&object(arguments)["days"].as_i64().expect("days")));
                }
                let ids: BTreeSet<String> = ["call_", "toolu_01"]
                    .iter()
                    .flat_map(|prefix| {
                        let text = case.seen.text();
                        let ids: Vec<String> = text
                            .split(&format!("\"id\":\"{prefix}"))
                            .skip(1)
                            .map(|t| t.chars().take(16).collect())
                            .collect();
                        ids
                    })
                    .collect();
                assert_eq!(ids.len(), count, "each call has its own id");
            }
            for (model, openai, anthropic) in [
                ("tool-args-truncated", "length", "max_tokens"),
                ("tool-args-invalid", "tool_calls", "tool_use"),
            ] {
                let case = of(model).await;
                assert_eq!(case.said().1, case.finish(openai, anthropic));
                let calls = calls(&case);
                assert!(serde_json::from_str::<Value>(&calls[0].1).is_err(), "{calls:?}");
            }
            // Without tools in the request, one of the mock's own.
            let own = body_case(&mock, dialect, form, plain(dialect, "tool-call")).await;
            assert_eq!(calls(&own)[0].0, "lookup_order");
            // With the result in hand, an answer.
            let mut body = with_tools(dialect, "tool-call");
            let result = match dialect {
                Dialect::OpenAi => json!({"role": "tool", "tool_call_id": "x", "content": "sunny"}),
                Dialect::Anthropic => json!({"role": "user", "content":
                    [{"type": "tool_result", "tool_use_id": "x", "content": "sunny"}]}),
            };
            body["messages"].as_array_mut().expect("messages").push(result);
            let case = body_case(&mock, dialect, form, body).await;
            assert_eq!(case.said().1, case.normal());
        }
    }
}

#[tokio::test]
async fn a_forced_tool_carries_the_structured_answer() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            let mut body = with_tools(dialect, "healthy");
            body["tool_choice"] = match dialect {
                Dialect::OpenAi => json!("required"),
                Dialect::Anthropic => json!({"type": "tool", "name": "weather"}),
            };
            let case = body_case(&mock, dialect, form, body).await;
            assert_eq!(case.said().1, case.finish("tool_calls", "tool_use"));
            assert_eq!(object(&calls(&case)[0].1), gold());
            assert!(case.entry.has_schema);
        }
    }
}

/// No behaviour goes without a test in this file, and none is tested that does not exist.
#[test]
fn every_behaviour_is_in_a_table() {
    let mut tested: BTreeSet<&str> = ["healthy", "status-503-html"].into();
    tested.extend(STATUSES.iter().map(|row| row.0));
    tested.extend(DAMAGES.iter().map(|row| row.0.split('+').next().expect("a name")));
    tested.extend([
        "refusal",
        "empty-200",
        "html-200",
        "json-array-200",
        "error-in-200",
        "null-finish",
    ]);
    tested.extend(["reset", "reset-after-headers", "silence", "slow-first", "slow-headers"]);
    tested.extend(["short-body", "hang-body"]);
    tested.extend(["stream-cut", "stream-end-early", "stream-stall", "malformed-chunk", "no-done"]);
    tested.extend([
        "no-finish",
        "error-event",
        "byte-drip",
        "split-utf8",
        "crlf",
        "double-terminal",
    ]);
    tested.extend(["content-after-finish", "keepalive-forever", "json-not-stream", "html-stream"]);
    tested.extend([
        "loop",
        "tool-call",
        "parallel-tools",
        "tool-args-truncated",
        "tool-args-invalid",
    ]);
    let known: BTreeSet<&str> = behaviours().iter().map(|b| b.name).collect();
    assert_eq!(tested, known);
}
