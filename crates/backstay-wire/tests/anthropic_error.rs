//! Errors of Anthropic Messages: the documented vectors, and what we write.

#[path = "../../../tests/shared.rs"]
mod shared;

use backstay_wire::chat::ErrorClass;
use backstay_wire::dialect::{Dialect, ErrorOut};
use serde_json::{Value, json};
use shared::shared;

fn class(status: u16, kind: &str, message: &str) -> ErrorClass {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    Dialect::Anthropic.read_error(status, body.to_string().as_bytes()).class
}

#[test]
fn every_documented_error_has_its_class() {
    use ErrorClass as C;
    for (status, kind, message, expected) in [
        (400, "invalid_request_error", "x", C::BadRequest),
        (422, "invalid_request_error", "x", C::BadRequest),
        (
            400,
            "invalid_request_error",
            "You have reached your specified API usage limits. You …",
            C::QuotaExhausted,
        ),
        (
            400,
            "invalid_request_error",
            "You have reached your specified workspace API usage limits.",
            C::QuotaExhausted,
        ),
        (400, "invalid_request_error", "Your credit balance is too low to …", C::QuotaExhausted),
        (
            400,
            "invalid_request_error",
            "Output blocked by content filtering policy",
            C::ContentPolicy,
        ),
        (400, "invalid_request_error", "prompt is too long: 2 tokens > 1", C::ContextExceeded),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
            C::ContextExceeded,
        ),
        (401, "authentication_error", "x", C::Auth),
        (402, "billing_error", "x", C::QuotaExhausted),
        (403, "permission_error", "x", C::Auth),
        (404, "not_found_error", "x", C::NotFound),
        (409, "conflict_error", "x", C::ServerError),
        (413, "request_too_large", "x", C::TooLarge),
        (429, "rate_limit_error", "x", C::RateLimited),
        (500, "api_error", "x", C::ServerError),
        (504, "timeout_error", "x", C::Timeout),
        (529, "overloaded_error", "x", C::Overloaded),
        (503, "overloaded_error", "x", C::Overloaded),
        (200, "overloaded_error", "x", C::Overloaded),
        (200, "api_error", "x", C::ServerError),
        (200, "rate_limit_error", "x", C::RateLimited),
        (200, "a_type_never_seen", "x", C::ServerError),
        (418, "a_type_never_seen", "x", C::BadRequest),
    ] {
        assert_eq!(class(status, kind, message), expected, "{status} {kind} {message}");
    }
    let spent = br#"{"type":"error","error":{"type":"rate_limit_error","message":"x",
        "details":{"error_code":"enforced_spend_limit_reached"}}}"#;
    assert_eq!(Dialect::Anthropic.read_error(429, spent).class, C::QuotaExhausted);
    assert_eq!(Dialect::Anthropic.read_error(413, b"<html>").class, C::TooLarge);
    assert_eq!(Dialect::Anthropic.read_error(529, b"").class, C::Overloaded);
}

#[test]
fn the_written_vectors_of_the_reference_are_met() {
    let Some(path) = shared("reference/providers.json") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let reference: Value = serde_json::from_str(&text).unwrap();
    let mut met = 0;
    for vector in reference["error_test_vectors"].as_array().unwrap() {
        if vector["api"] != "anthropic_messages" {
            continue;
        }
        let status = u16::try_from(vector["status"].as_u64().unwrap()).unwrap();
        let error = Dialect::Anthropic.read_error(status, vector["body"].to_string().as_bytes());
        assert_eq!(error.class.word(), vector["expect_class"], "{vector}");
        assert_eq!(error.class.passes(), vector["expect_retryable"] == true, "{vector}");
        met += 1;
    }
    assert!(met >= 9, "{met} vectors");
}

#[test]
fn an_error_is_written_in_the_providers_words_with_our_code_beside() {
    let error = ErrorOut {
        status: 503,
        code: "provider_overloaded",
        message: "no target left",
        param: None,
        call_id: "c-1",
    };
    let body: Value = serde_json::from_slice(&Dialect::Anthropic.write_error(&error)).unwrap();
    assert_eq!(
        body,
        json!({
            "type": "error",
            "error": {
                "type": "overloaded_error",
                "message": "no target left",
                "code": "provider_overloaded",
            },
            "request_id": "c-1",
        })
    );
    let blamed = ErrorOut { status: 400, param: Some("/model"), ..error };
    let body: Value = serde_json::from_slice(&Dialect::Anthropic.write_error(&blamed)).unwrap();
    assert_eq!(body["error"]["param"], "/model");
}

#[test]
fn each_status_is_written_with_a_word_that_reads_back_as_its_class() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (408, "timeout_error"),
        (409, "conflict_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ] {
        let error = ErrorOut { status, code: "c", message: "m", param: None, call_id: "" };
        let bytes = Dialect::Anthropic.write_error(&error);
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(body["error"]["type"], kind, "{status}");
        let read = Dialect::Anthropic.read_error(status, &bytes);
        let by_status = Dialect::Anthropic.read_error(status, b"");
        assert_eq!(read.class, by_status.class, "{status}");
        assert_eq!(read.code.as_deref(), Some("c"));
    }
}
