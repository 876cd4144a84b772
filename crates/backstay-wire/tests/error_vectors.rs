//! The error vectors of the providers' contract table, and error bodies from public reports.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

#[path = "../../../tests/shared.rs"]
mod shared;

use backstay_wire::Dialect;
use serde_json::Value;
use shared::shared;

fn bytes(file: &str) -> Option<Vec<u8>> {
    shared(file).map(|path| std::fs::read(path).unwrap())
}

fn vectors_agree(api: &str, dialect: Dialect, at_least: usize) {
    let Some(text) = bytes("reference/providers.json") else { return };
    let table: Value = serde_json::from_slice(&text).unwrap();
    let rows = table["error_test_vectors"].as_array().unwrap();
    let rows: Vec<_> = rows.iter().filter(|row| row["api"] == api).collect();
    assert!(rows.len() >= at_least, "{} vectors for {api}", rows.len());
    let mut wrong = vec![];
    for row in rows {
        let status = u16::try_from(row["status"].as_u64().unwrap()).unwrap();
        let body = match &row["body"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let error = dialect.read_error(status, body.as_bytes());
        let got = (error.class.word(), error.class.passes());
        let want =
            (row["expect_class"].as_str().unwrap(), row["expect_retryable"].as_bool().unwrap());
        if got != want {
            wrong.push(format!("{status} {body}: {got:?}, expected {want:?}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_openai_vectors_agree() {
    vectors_agree("openai_chat", Dialect::OpenaiChat, 7);
}

#[test]
fn the_anthropic_vectors_agree() {
    vectors_agree("anthropic_messages", Dialect::Anthropic, 9);
}

/// Each row of the table of `api`, turned into a body that meets its conditions, has its class:
/// no row is hidden by one above it that says otherwise.
fn every_row_is_reached(api: &str, dialect: Dialect) {
    let Some(text) = bytes("reference/providers.json") else { return };
    let table: Value = serde_json::from_slice(&text).unwrap();
    let first = |value: &Value| match value {
        Value::Array(items) => items[0].as_str().unwrap_or_default().to_owned(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    for row in table["apis"][api]["error_codes"].as_array().unwrap() {
        let statuses = match &row["status"] {
            Value::Array(items) => items.clone(),
            Value::Null => vec![Value::from(200)],
            one => vec![one.clone()],
        };
        let message = first(
            row.get("message_prefix").or(row.get("message_contains")).unwrap_or(&Value::Null),
        );
        let body = serde_json::json!({ "error": {
            "type": row.get("type").map(first),
            "code": row.get("code").map(first),
            "message": message.to_uppercase(),
            "details": { "error_code": row.get("error_code").map(first) },
        } });
        for status in statuses {
            let status = u16::try_from(status.as_u64().unwrap()).unwrap();
            let error = dialect.read_error(status, body.to_string().as_bytes());
            assert_eq!(error.class.word(), row["class"], "{status} {body}");
            assert_eq!(error.class.passes(), row["retryable"], "{status} {body}");
        }
    }
}

#[test]
fn every_row_of_the_openai_table_is_reached() {
    every_row_is_reached("openai_chat", Dialect::OpenaiChat);
}

#[test]
fn every_row_of_the_anthropic_table_is_reached() {
    every_row_is_reached("anthropic_messages", Dialect::Anthropic);
}

#[test]
fn bodies_from_public_reports_have_the_class_their_reports_tell() {
    let Some(text) = bytes("cassettes/error_shapes.jsonl") else { return };
    let text = String::from_utf8(text).unwrap();
    // The streamed ones (02, 04, 13, 14) are events, not bodies; read in the stream tests.
    // 07 and 08 are Google's own form, which says no more here than its status.
    let want = [
        ("shape-00", Dialect::OpenaiChat, "rate_limited"),
        ("shape-01", Dialect::OpenaiChat, "quota_exhausted"),
        ("shape-03", Dialect::Anthropic, "overloaded"),
        ("shape-05", Dialect::Anthropic, "rate_limited"),
        ("shape-06", Dialect::OpenaiChat, "overloaded"),
        ("shape-07", Dialect::OpenaiChat, "rate_limited"),
        ("shape-08", Dialect::OpenaiChat, "rate_limited"),
        ("shape-09", Dialect::OpenaiChat, "rate_limited"),
        // The code of a rate limit, but too large for ever: the status decides.
        ("shape-10", Dialect::OpenaiChat, "too_large"),
        ("shape-11", Dialect::OpenaiChat, "content_policy"),
        ("shape-12", Dialect::OpenaiChat, "rate_limited"),
    ];
    let mut seen = 0;
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let Some((_, dialect, class)) = want.iter().find(|(id, ..)| row["id"] == *id) else {
            continue;
        };
        seen += 1;
        let status = u16::try_from(row["status"].as_u64().unwrap()).unwrap();
        let error = dialect.read_error(status, row["body"].to_string().as_bytes());
        assert_eq!(error.class.word(), *class, "{}", row["id"]);
        assert!(!error.message.is_empty(), "{}", row["id"]);
    }
    assert_eq!(seen, want.len());
}

#[test]
fn what_is_written_reads_back_as_the_same_failure() {
    let rows = [
        (400, "invalid_request_error", "bad_request"),
        (401, "authentication_error", "auth"),
        (403, "permission_error", "auth"),
        (404, "invalid_request_error", "not_found"),
        (413, "invalid_request_error", "too_large"),
        (429, "rate_limit_error", "rate_limited"),
        (500, "server_error", "server_error"),
        (503, "service_unavailable_error", "overloaded"),
        (504, "server_error", "timeout"),
    ];
    for (status, kind, class) in rows {
        let out = backstay_wire::dialect::ErrorOut {
            status,
            code: "stable_code",
            message: "what \"happened\"",
            param: Some("messages"),
            call_id: "id",
        };
        let body = Dialect::OpenaiChat.write_error(&out);
        let error = Dialect::OpenaiChat.read_error(status, &body);
        assert_eq!(error.kind.as_deref(), Some(kind), "{status}");
        assert_eq!(error.code.as_deref(), Some("stable_code"));
        assert_eq!(error.param.as_deref(), Some("messages"));
        assert_eq!(error.message, "what \"happened\"");
        assert_eq!(error.class.word(), class, "{status}");
    }
}
