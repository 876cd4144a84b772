//! The families `status` and `transport`.

use std::time::Duration;

use backstay_mock::End;
use serde_json::json;
use tokio::time::Instant;

use crate::case::{FORMS, Form, body_case, case, gold, knowing};
use crate::client::{BOTH, Dialect, Ended, request, streamed};

/// name, status, OpenAI's type and code, Anthropic's type
pub(crate) type StatusRow = (&'static str, u16, &'static str, Option<&'static str>, &'static str);

#[rustfmt::skip]
pub(crate) const STATUSES: &[StatusRow] = &[
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

#[tokio::test]
async fn a_request_that_ends_with_the_assistants_words_is_rejected_where_prefill_is() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            let fine = case(&mock, dialect, form, "rejects-prefill").await;
            assert_eq!(fine.said(), (gold().to_string(), fine.normal()));
            let mut body = request(dialect, "rejects-prefill");
            let messages = body["messages"].as_array_mut().expect("messages");
            messages.push(json!({"role": "assistant", "content": "{\"category\":"}));
            let rejected = body_case(&mock, dialect, form, body).await;
            assert_eq!(rejected.seen.status, 400);
            let message = &rejected.seen.json()["error"]["message"];
            assert!(message.as_str().is_some_and(|m| m.contains("prefill")), "{message}");
        }
    }
}
