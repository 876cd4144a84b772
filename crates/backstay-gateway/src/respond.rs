//! From an answer or a failure to an HTTP response. Headers are chosen here and nowhere else.

use backstay::call::{Answer, Body as Said};
use backstay::fault::{CallError, Cause};
use backstay::record::Receipt;
use backstay_decide::{Local, retry_after};
use backstay_wire::Dialect;
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
    let call_id = error.receipt().map_or("", |receipt| receipt.call_id.as_str());
    let body = error.told(call_id, |told| dialect.write_error(told));
    let mut response = Response::new(Sent::full(body));
    *response.status_mut() =
        StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_GATEWAY);
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
