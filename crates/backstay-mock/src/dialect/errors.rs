//! Error bodies: what each provider says with each status.

use bytes::Bytes;
use serde_json::{Value, json};

use super::Tag;
use crate::ask::{Ask, Dialect, Invalid};
use crate::behaviour::Refusal;

/// An error as it goes out.
#[derive(Clone, Debug)]
pub(crate) struct Wrong {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
    pub(crate) content_type: &'static str,
}

/// One row: what a status is called and what is said with it.
struct Row {
    status: u16,
    openai: (&'static str, Option<&'static str>),
    anthropic: &'static str,
    message: &'static str,
}

const fn row(
    status: u16,
    openai: (&'static str, Option<&'static str>),
    anthropic: &'static str,
    message: &'static str,
) -> Row {
    Row { status, openai, anthropic, message }
}

const INVALID: &str = "invalid_request_error";

#[rustfmt::skip]
static ROWS: &[Row] = &[
    // status, OpenAI's type and code, Anthropic's type, message
    row(400, (INVALID, Some("invalid_value")), INVALID, "The request is not valid."),
    row(401, (INVALID, Some("invalid_api_key")), "authentication_error", "The API key provided is not accepted."),
    row(402, ("billing_error", Some("billing_not_active")), "billing_error", "The account has a billing problem."),
    row(403, ("request_forbidden", Some("unsupported_country_region_territory")), "permission_error", "This key may not use the resource."),
    row(404, (INVALID, Some("unknown_url")), "not_found_error", "The requested resource was not found."),
    row(408, ("timeout_error", None), "timeout_error", "The request timed out."),
    row(409, ("conflict_error", None), "conflict_error", "The resource was changed by another request."),
    row(413, (INVALID, Some("request_too_large")), "request_too_large", "The request exceeds the maximum size."),
    row(422, (INVALID, None), INVALID, "The request cannot be processed as it is."),
    row(429, ("requests", Some("rate_limit_exceeded")), "rate_limit_error", "Rate limit reached on requests per minute: Limit 500, Used 500, Requested 1."),
    row(500, ("server_error", None), "api_error", "The server had an error while processing the request."),
    row(502, ("server_error", Some("bad_gateway")), "api_error", "Bad gateway."),
    row(503, ("server_error", Some("server_is_overloaded")), "overloaded_error", "The server is overloaded. Try again later."),
    row(504, ("server_error", Some("gateway_timeout")), "timeout_error", "The server did not answer in time."),
    row(529, ("server_error", Some("server_is_overloaded")), "overloaded_error", "Overloaded"),
];

/// The error of a behaviour of the `status` family.
pub(crate) fn refusal(refusal: Refusal, ask: &Ask, tag: Tag) -> Wrong {
    let dialect = ask.dialect();
    let openai = dialect == Dialect::OpenAi;
    match refusal {
        Refusal::Code(status) => plain(status, dialect, None, tag),
        Refusal::Quota429 if openai => {
            let message =
                "You exceeded your current quota, please check your plan and billing details.";
            told(429, "insufficient_quota", message, Some("insufficient_quota"), None)
        }
        Refusal::Quota429 => wrong(
            429,
            &json!({"type": "error", "error": {"type": "rate_limit_error",
                "message": "This organization has reached its enforced spend limit.",
                "details": {"error_visibility": "user_facing",
                    "error_code": "enforced_spend_limit_reached"}},
                "request_id": tag.id("req_01")}),
        ),
        Refusal::Quota400 if openai => {
            let code = Some("billing_hard_limit_reached");
            told(400, INVALID, "Billing hard limit has been reached.", code, None)
        }
        Refusal::Quota400 => {
            let message = "You have reached your specified API usage limits. You will regain access \
                on 2026-12-01 at 00:00 UTC.";
            named(400, INVALID, message, tag)
        }
        Refusal::ContextExceeded if openai => {
            let message = format!(
                "This model's maximum context length is 128000 tokens. However, your messages \
                resulted in {} tokens. Please reduce the length of the messages.",
                ask.prompt_tokens.saturating_add(128_000)
            );
            told(400, INVALID, &message, Some("context_length_exceeded"), Some("messages"))
        }
        Refusal::ContextExceeded => {
            let tokens = ask.prompt_tokens.saturating_add(200_000);
            let message = format!("prompt is too long: {tokens} tokens > 200000 maximum");
            named(400, INVALID, &message, tag)
        }
        Refusal::ContentPolicy if openai => {
            let message = "Your request was rejected as a result of our safety system.";
            told(400, INVALID, message, Some("content_policy_violation"), None)
        }
        Refusal::ContentPolicy => {
            named(400, INVALID, "Output blocked by content filtering policy", tag)
        }
        Refusal::ModelGone => no_model(dialect, &ask.model, "", tag),
        Refusal::Page503 => Wrong {
            status: 503,
            body: Bytes::from_static(PAGE_503.as_bytes()),
            content_type: "text/html",
        },
    }
}

/// A page such as a proxy in front of the provider sends.
const PAGE_503: &str = "<!DOCTYPE html>\n<html><head><title>503 Service Temporarily Unavailable\
    </title></head>\n<body><center><h1>503 Service Temporarily Unavailable</h1></center></body></html>\n";

/// A page that has nothing to do with the API, as a captive portal sends it.
pub(crate) const PAGE_200: &str = "<!DOCTYPE html>\n<html><head><title>Welcome</title></head>\n\
    <body><h1>Please sign in</h1><p>{\"this\": \"is not the reply\"}</p></body></html>\n";

/// The error that goes with a status; `message` replaces the usual one.
pub(crate) fn plain(status: u16, dialect: Dialect, message: Option<&str>, tag: Tag) -> Wrong {
    let known = ROWS.iter().find(|row| row.status == status);
    let usual = row(status, ("server_error", None), "api_error", "Something went wrong.");
    let row = known.unwrap_or(&usual);
    let message = message.unwrap_or(row.message);
    match dialect {
        Dialect::OpenAi => told(status, row.openai.0, message, row.openai.1, None),
        Dialect::Anthropic => named(status, row.anthropic, message, tag),
    }
}

/// 400 for a request that the provider itself would refuse.
pub(crate) fn invalid(dialect: Dialect, invalid: &Invalid, tag: Tag) -> Wrong {
    match dialect {
        Dialect::OpenAi => told(400, INVALID, &invalid.message, invalid.code, invalid.param),
        Dialect::Anthropic => named(400, INVALID, &invalid.message, tag),
    }
}

/// 400 for a reply that was begun by the caller.
pub(crate) fn no_prefill(dialect: Dialect, tag: Tag) -> Wrong {
    let message = "This model does not support assistant message prefill. The conversation must \
        end with a user message.";
    match dialect {
        Dialect::OpenAi => told(400, INVALID, message, None, Some("messages")),
        Dialect::Anthropic => named(400, INVALID, message, tag),
    }
}

/// 404 for a model; `hint` is added to OpenAI's and Anthropic's own sentence.
pub(crate) fn no_model(dialect: Dialect, model: &str, hint: &str, tag: Tag) -> Wrong {
    match dialect {
        Dialect::OpenAi => {
            let message = format!(
                "The model `{model}` does not exist or you do not have access to it.{hint}"
            );
            told(404, INVALID, &message, Some("model_not_found"), None)
        }
        Dialect::Anthropic => named(404, "not_found_error", &format!("model: {model}{hint}"), tag),
    }
}

/// The error event in a stream that began well, or the error in a body with status 200.
pub(crate) fn late(dialect: Dialect, tag: Tag) -> Value {
    match dialect {
        Dialect::OpenAi => json!({"error": {"message":
            "The server had an error while processing the request.", "type": "server_error",
            "param": null, "code": null}}),
        Dialect::Anthropic => json!({"type": "error", "error": {"type": "overloaded_error",
            "message": "Overloaded"}, "request_id": tag.id("req_01")}),
    }
}

/// OpenAI's form.
fn told(status: u16, kind: &str, message: &str, code: Option<&str>, param: Option<&str>) -> Wrong {
    let error = json!({"message": message, "type": kind, "param": param, "code": code});
    wrong(status, &json!({"error": error}))
}

/// Anthropic's form.
fn named(status: u16, kind: &str, message: &str, tag: Tag) -> Wrong {
    wrong(
        status,
        &json!({"type": "error", "error": {"type": kind, "message": message},
            "request_id": tag.id("req_01")}),
    )
}

fn wrong(status: u16, body: &Value) -> Wrong {
    Wrong { status, body: Bytes::from(body.to_string()), content_type: "application/json" }
}
