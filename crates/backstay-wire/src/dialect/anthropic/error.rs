//! Errors: `{"type":"error","error":{"type","message","details"?},"request_id"}`.
//!
//! Where we write one, `error.type` is always one of the provider's own words, because SDKs and
//! callers branch on it; our stable code stands beside it as `error.code`, which the provider does
//! not send and SDKs show with the body. `error.param` is there where a parameter is to blame.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::chat::ErrorClass::{
    self, Auth, BadRequest, ContentPolicy, ContextExceeded, NotFound, Overloaded, QuotaExhausted,
    RateLimited, ServerError, Timeout, TooLarge,
};
use crate::dialect::ErrorOut;
use crate::dialect::errors::{Rule, Rules};

/// From the provider's documents and recorded bodies; the order matters.
pub(crate) const RULES: Rules = Rules(&[
    // Three ways to say that the money is used up; none has a retry-after.
    Rule::of(QuotaExhausted).status(&[429]).error_code(&["enforced_spend_limit_reached"]),
    Rule::of(QuotaExhausted).status(&[400]).kind(&["invalid_request_error"]).prefix(&[
        "You have reached your specified API usage limits",
        "You have reached your specified workspace API usage limits",
    ]),
    Rule::of(QuotaExhausted)
        .status(&[400])
        .kind(&["invalid_request_error"])
        .contains(&["credit balance is too low"]),
    Rule::of(QuotaExhausted).status(&[402]).kind(&["billing_error"]),
    Rule::of(ContextExceeded)
        .status(&[400])
        .kind(&["invalid_request_error"])
        .contains(&["prompt is too long", "exceed context limit"]),
    // A refusal in the form of a bad request.
    Rule::of(ContentPolicy)
        .status(&[400])
        .kind(&["invalid_request_error"])
        .contains(&["blocked by content filtering policy"]),
    Rule::of(RateLimited).status(&[429]).kind(&["rate_limit_error"]),
    Rule::of(Overloaded).status(&[529, 503]).kind(&["overloaded_error"]),
    Rule::of(TooLarge).status(&[413]).kind(&["request_too_large"]),
    Rule::of(Timeout).status(&[504]).kind(&["timeout_error"]),
    Rule::of(Auth).status(&[401]).kind(&["authentication_error"]),
    Rule::of(Auth).status(&[403]).kind(&["permission_error"]),
    Rule::of(NotFound).status(&[404]).kind(&["not_found_error"]),
    Rule::of(ServerError).status(&[409]).kind(&["conflict_error"]),
    Rule::of(ServerError).status(&[500]).kind(&["api_error"]),
    Rule::of(BadRequest).status(&[400, 422]).kind(&["invalid_request_error"]),
    Rule::of(Timeout).status(&[408]),
    Rule::of(Overloaded).status(&[503, 529]),
    Rule::of(ServerError).status(&[500, 502]),
]);

/// Writes an error body.
pub(crate) fn write(error: &ErrorOut<'_>) -> Vec<u8> {
    body(error).to_string().into_bytes()
}

/// The error object that a response and a stream share.
pub(crate) fn body(error: &ErrorOut<'_>) -> Value {
    let mut inner = json!({
        "type": kind_of_status(error.status),
        "message": message(error),
        "code": error.code,
    });
    if let (Some(param), Some(fields)) = (error.param, inner.as_object_mut()) {
        fields.insert("param".into(), param.into());
    }
    json!({ "type": "error", "error": inner, "request_id": error.call_id })
}

/// The sentence. Programs know a prompt that is too long by how the provider's own begins.
fn message<'a>(error: &ErrorOut<'a>) -> Cow<'a, str> {
    const TOO_LONG: &str = "prompt is too long";
    match error.code {
        "context_exceeded" | "context_budget_exceeded" if !error.message.starts_with(TOO_LONG) => {
            format!("{TOO_LONG}: {}", error.message).into()
        }
        _ => error.message.into(),
    }
}

/// The provider's own word for a status.
fn kind_of_status(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// The status that stands for a class, where a failure has none.
pub(crate) fn status_of(class: ErrorClass) -> u16 {
    match class {
        Auth => 401,
        BadRequest | ContentPolicy | ContextExceeded => 400,
        NotFound => 404,
        Overloaded => 529,
        QuotaExhausted => 402,
        RateLimited => 429,
        ServerError => 500,
        Timeout => 504,
        TooLarge => 413,
    }
}
