//! Errors of `OpenAI` Chat Completions: `{"error":{"message","type","param","code"}}`.

use serde_json::{Value, json};

use crate::chat::ErrorClass::{
    Auth, BadRequest, ContentPolicy, ContextExceeded, NotFound, Overloaded, QuotaExhausted,
    RateLimited, ServerError, Timeout, TooLarge,
};
use crate::dialect::ErrorOut;
use crate::dialect::errors::{Rule, Rules};

/// From the provider's documents and recorded bodies; the order matters.
pub(crate) const RULES: Rules = Rules(&[
    // `type` first: the codes under it grow.
    Rule::of(QuotaExhausted).status(&[429]).kind(&["insufficient_quota"]),
    Rule::of(QuotaExhausted).status(&[429]).code(&[
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
    ]),
    // The same code also comes with 400, where it is no fault of the request.
    Rule::of(QuotaExhausted).code(&["billing_hard_limit_reached"]),
    Rule::of(RateLimited).status(&[429]).code(&["rate_limit_exceeded", "slow_down"]),
    Rule::of(Overloaded).status(&[503]).code(&["server_is_overloaded", "slow_down"]),
    Rule::of(ContextExceeded).status(&[400]).code(&["context_length_exceeded"]),
    Rule::of(TooLarge).status(&[400]).code(&["string_above_max_length"]),
    Rule::of(ContentPolicy).status(&[400]).code(&["content_policy_violation", "invalid_prompt"]),
    Rule::of(NotFound).status(&[400, 404]).code(&["model_not_found"]),
    Rule::of(Auth).status(&[401]).code(&["invalid_api_key"]),
    Rule::of(Auth).status(&[401, 403]),
    Rule::of(BadRequest).status(&[400]).code(&[
        "unsupported_parameter",
        "unsupported_value",
        "unknown_parameter",
        "invalid_value",
        "decimal_above_max_value",
    ]),
    // What compatible servers say where `OpenAI` has a code; behind its own rows, before the rest.
    Rule::of(ContentPolicy).status(&[400]).code(&["content_filter"]),
    Rule::of(ContentPolicy).status(&[400]).contains(&["content exists risk"]),
    Rule::of(ContextExceeded).status(&[400, 500]).kind(&["exceed_context_size_error"]),
    Rule::of(ContextExceeded).status(&[400]).contains(&[
        "maximum context length",
        "maximum prompt length",
        "longer than the maximum model length",
        "longer than the model's context length",
    ]),
    Rule::of(ContextExceeded).status(&[500]).contains(&["context size has been exceeded"]),
    Rule::of(Overloaded).status(&[498]).code(&["capacity_exceeded"]),
    Rule::of(BadRequest).status(&[400]).code(&["json_validate_failed", "tool_use_failed"]),
    Rule::of(BadRequest).status(&[400, 422]),
    Rule::of(NotFound).status(&[404]),
    Rule::of(TooLarge).status(&[413]),
    Rule::of(Timeout).status(&[408]),
    Rule::of(ServerError).status(&[409]),
    Rule::of(RateLimited).status(&[429]),
    Rule::of(Timeout).status(&[504]),
    Rule::of(Overloaded).status(&[503]),
    Rule::of(ServerError).status(&[500, 502]),
]);

/// Writes an error body.
pub(crate) fn write(error: &ErrorOut<'_>) -> Vec<u8> {
    body(error).to_string().into_bytes()
}

/// The error object that a response and a stream share.
pub(crate) fn body(error: &ErrorOut<'_>) -> Value {
    json!({
        "error": {
            "message": error.message,
            "type": kind(error.status),
            "param": error.param,
            "code": code(error.code),
        }
    })
}

/// The dialect's own word for a fault that programs act on, such as agents that shorten their talk;
/// else ours. Ours is in the header `x-backstay-code` in any case.
fn code(ours: &str) -> &str {
    match ours {
        "context_exceeded" | "context_budget_exceeded" => "context_length_exceeded",
        ours => ours,
    }
}

/// The dialect's own `type` word for a status; its SDKs choose by status, people by this word.
fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        503 | 529 => "service_unavailable_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ErrorClass;

    #[test]
    fn a_delay_is_read_from_details_and_from_a_sentence_with_a_unit() {
        let rows = [
            (
                r#"{"error":{"code":429,"details":[{"@type":"x"},{"retryDelay":"12s"}]}}"#,
                Some("12s"),
            ),
            (r#"[{"error":{"details":[{"retryDelay":"0.5s"}]}}]"#, Some("0.5s")),
            (r#"{"error":{"message":"Please try again in 5.289s."}}"#, Some("5.289s")),
            (r#"{"error":{"message":"please try again in 6m0s (limit 5)"}}"#, Some("6m0s")),
            (r#"{"error":{"message":"try again in 20 minutes"}}"#, None),
            (r#"{"error":{"message":"try again in a few days"}}"#, None),
            (r#"{"error":{"details":[{"retryDelay":null}],"message":""}}"#, None),
            ("try again in", None),
        ];
        for (body, delay) in rows {
            assert_eq!(RULES.read(429, body.as_bytes()).delay.as_deref(), delay, "{body}");
        }
    }

    #[test]
    fn compatible_servers_are_understood_where_their_words_are_plain() {
        let rows: &[(u16, &str, ErrorClass)] = &[
            (400, r#"{"error":{"code":"content_filter","type":null}}"#, ContentPolicy),
            (400, r#"{"error":{"message":"Content Exists Risk"}}"#, ContentPolicy),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 8 tokens."}"#,
                ContextExceeded,
            ),
            (500, r#"{"error":{"message":"Context size has been exceeded."}}"#, ContextExceeded),
            (400, r#"{"error":{"type":"exceed_context_size_error"}}"#, ContextExceeded),
            (498, r#"{"error":{"code":"capacity_exceeded"}}"#, Overloaded),
            (200, r#"{"error":{"message":"maximum context length"}}"#, ContextExceeded),
            (
                400,
                r#"{"error":{"code":"invalid_value","message":"maximum context length"}}"#,
                BadRequest,
            ),
            (200, r#"{"error":{"type":"insufficient_quota"}}"#, QuotaExhausted),
            (200, r#"{"error":{"code":"tool_use_failed","status_code":400}}"#, BadRequest),
        ];
        for (status, body, class) in rows {
            assert_eq!(RULES.read(*status, body.as_bytes()).class, *class, "{status} {body}");
        }
    }
}
