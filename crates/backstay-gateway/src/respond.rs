//! From an answer or a failure to an HTTP response. Status codes and headers are chosen here and
//! nowhere else.

use backstay::call::{Answer, Body as Said};
use backstay::fault::{CallError, Cause};
use backstay::record::Receipt;
use backstay_decide::fault::Fault;
use backstay_decide::{Local, retry_after};
use backstay_wire::Dialect;
use backstay_wire::dialect::ErrorOut;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::body::Sent;

/// An answer.
pub fn answer(answer: Answer) -> Response<Sent> {
    let (kind, body) = match answer.body {
        Said::Whole(bytes) => ("application/json", Sent::full(bytes)),
        Said::Told(bytes) => ("text/event-stream; charset=utf-8", Sent::full(bytes)),
        Said::Live(live) => ("text/event-stream; charset=utf-8", Sent::Live(live)),
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    // Ours, the provider's id, and the library's own two: no growth on the way.
    headers.reserve(13);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if kind != "application/json" {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    headers.extend(answer.headers);
    stamp(headers, &answer.receipt);
    response
}

/// A failure, in the caller's dialect.
pub fn failure(dialect: Dialect, error: &CallError) -> Response<Sent> {
    let status = status(error);
    let call_id = error.receipt().map_or("", |receipt| receipt.call_id.as_str());
    let message = message(error);
    let told =
        ErrorOut { status, code: error.code(), message: &message, param: error.param(), call_id };
    let mut response = Response::new(Sent::full(dialect.write_error(&told)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("x-backstay-code", HeaderValue::from_static(error.code()));
    match error.receipt() {
        Some(receipt) => stamp(headers, receipt),
        None => {
            headers.insert("x-backstay-outcome", HeaderValue::from_static("failed"));
        }
    }
    if let Some(delay) = error.retry_after() {
        headers.insert("retry-after", HeaderValue::from(retry_after::outbound(delay)));
    }
    if !is_passing(error) {
        headers.insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}

/// Failures for which a new try by the caller is right: nothing was done, and the next gateway or
/// the next second may have room.
fn is_passing(error: &CallError) -> bool {
    matches!(error.cause(), Cause::Here(Local::Busy | Local::ShuttingDown))
}

/// The sentence for the caller: ours, then the provider's own words.
pub fn message(error: &CallError) -> String {
    match error.provider().map(|provider| provider.message.as_str()) {
        Some(words) if !words.is_empty() => format!("{error}; the provider says: {words}"),
        _ => error.to_string(),
    }
}

/// The HTTP status of a failure.
pub fn status(error: &CallError) -> u16 {
    match error.cause() {
        Cause::Here(local) => local_status(local),
        Cause::Attempt(fault) => fault_status(fault, error),
    }
}

fn local_status(local: Local) -> u16 {
    match local {
        Local::DeadlineExceeded => 504,
        Local::AttemptsExhausted => 502,
        Local::NoTarget | Local::Busy | Local::ShuttingDown => 503,
        Local::OverBudget | Local::InvalidRequest => 400,
        Local::UnknownRoute => 404,
        Local::Unauthorized => 401,
        Local::Forbidden => 403,
        Local::SpendLimit => 429,
        Local::BodyTooLarge => 413,
        Local::Internal => 500,
    }
}

fn fault_status(fault: Fault, error: &CallError) -> u16 {
    let theirs = error.provider().and_then(|provider| provider.status);
    match fault {
        Fault::RateLimited | Fault::QuotaExhausted => 429,
        Fault::Overloaded => 503,
        Fault::NoFirstToken
        | Fault::Stalled
        | Fault::TooSlow
        | Fault::TotalTimeout
        | Fault::ProviderTimeout => 504,
        Fault::BadRequest => theirs.filter(|status| (400..500).contains(status)).unwrap_or(400),
        Fault::ContentPolicy | Fault::ContextExceeded => 400,
        Fault::NotFound => 404,
        Fault::TooLarge => 413,
        // The credentials are the operator's: a caller cannot mend them, so it is not told 401.
        Fault::Auth
        | Fault::ConnectFailed
        | Fault::ConnectionLost
        | Fault::ServerError
        | Fault::Refused
        | Fault::ContentFiltered
        | Fault::Truncated
        | Fault::Paused
        | Fault::UnknownFinish
        | Fault::Empty
        | Fault::MalformedReply
        | Fault::StreamCut
        | Fault::Looping
        | Fault::NotJson
        | Fault::SchemaError
        | Fault::SemanticError => 502,
    }
}

/// At most 2 kB of plain letters, as a header can carry.
fn plain(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    text.chars().take(2_048).map(letter).collect()
}

const CALL_ID: HeaderName = HeaderName::from_static("x-backstay-call-id");
const OUTCOME: HeaderName = HeaderName::from_static("x-backstay-outcome");
const FINGERPRINT: HeaderName = HeaderName::from_static("x-backstay-fingerprint");
const TARGET: HeaderName = HeaderName::from_static("x-backstay-target");
const EDITS: HeaderName = HeaderName::from_static("x-backstay-edits");
const NOTES: HeaderName = HeaderName::from_static("x-backstay-notes");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-backstay-attempts");
const COST: HeaderName = HeaderName::from_static("x-backstay-cost");
const TIER: HeaderName = HeaderName::from_static("x-backstay-tier");

/// Puts the receipt into headers.
pub fn stamp(headers: &mut HeaderMap, receipt: &Receipt) {
    let mut put = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    put(CALL_ID, &receipt.call_id);
    if !receipt.fingerprint.is_empty() {
        put(FINGERPRINT, &receipt.fingerprint);
    }
    if let Some(target) = &receipt.target {
        put(TARGET, target);
    }
    if !receipt.edits.is_empty() {
        put(EDITS, &receipt.edits_told());
    }
    if let Some(cost) = receipt.cost {
        put(COST, &cost.to_string());
    }
    if !receipt.notes.is_empty() {
        put(NOTES, &plain(&receipt.notes.join("; ")));
    }
    headers.insert(OUTCOME, HeaderValue::from_static(receipt.outcome.word()));
    headers.insert(ATTEMPTS, HeaderValue::from(receipt.attempts));
    if let Some(tier) = receipt.tier {
        headers.insert(TIER, HeaderValue::from(tier));
    }
}
