//! From a response's status, headers and error body to a fault.
//!
//! The dialect's own table reads the body (`backstay_wire::dialect`); here its class becomes a
//! fault, and the headers say when to come back.

use std::time::Duration;

use backstay_decide::fault::Fault;
use backstay_decide::pacing::Seen;
use backstay_decide::retry_after::{self, DelayHeaders, server_delay};
use backstay_wire::{ErrorClass, ProviderError};
use http::HeaderMap;

use super::{Failure, Head};
use crate::clock::Clock;
use crate::route::Armed;

/// An error response.
pub(super) fn status(armed: &Armed, head: &Head, body: &[u8], wall: Duration) -> Failure {
    let error = armed.request.dialect.read_error(head.status, body);
    reported(error, head, wall)
}

/// An error the provider reported, with the headers it came with.
pub(super) fn reported(error: ProviderError, head: &Head, wall: Duration) -> Failure {
    let word = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let now = i64::try_from(wall.as_secs()).unwrap_or(i64::MAX);
    let mut failure = failed(error, &DelayHeaders::read(word), now);
    failure.note = format!("status {}: {}", head.status, failure.note);
    failure
}

/// An error the provider reported inside a stream.
pub(super) fn in_stream(error: ProviderError) -> Failure {
    // What a body asks for is a span: no clock is needed.
    failed(error, &DelayHeaders::default(), 0)
}

/// An error that the provider reported beside `headers`.
fn failed(error: ProviderError, headers: &DelayHeaders<'_>, now: i64) -> Failure {
    let headers = DelayHeaders { body: error.delay.as_deref(), ..*headers };
    let (server_delay, veto) = (server_delay(&headers, now), headers.veto());
    let word = error.code.as_deref().or(error.kind.as_deref());
    let word = word.unwrap_or_else(|| error.class.word());
    // The provider's sentence may quote the prompt, so only its words for the kind are logged.
    let note = format!("the provider says {word}");
    let failure = Failure::new(fault(error.class), note);
    Failure { provider: Some(Box::new(error)), server_delay, veto, ..failure }
}

/// The fault a provider's error class means.
fn fault(class: ErrorClass) -> Fault {
    match class {
        ErrorClass::Auth => Fault::Auth,
        ErrorClass::BadRequest => Fault::BadRequest,
        ErrorClass::ContentPolicy => Fault::ContentPolicy,
        ErrorClass::ContextExceeded => Fault::ContextExceeded,
        ErrorClass::NotFound => Fault::NotFound,
        ErrorClass::Overloaded => Fault::Overloaded,
        ErrorClass::QuotaExhausted => Fault::QuotaExhausted,
        ErrorClass::RateLimited => Fault::RateLimited,
        ErrorClass::ServerError => Fault::ServerError,
        ErrorClass::Timeout => Fault::ProviderTimeout,
        ErrorClass::TooLarge => Fault::TooLarge,
    }
}

/// The provider's id of a request, at most 200 characters.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("x-request-id").or_else(|| headers.get("request-id"))?;
    // All of it is ASCII.
    value.to_str().ok().map(|id| id.get(..200).unwrap_or(id).to_owned())
}

/// The rate limits that a reply states. Most state none, and then no clock is read.
pub(super) fn limits(headers: &HeaderMap, clock: &Clock) -> Vec<Seen> {
    if !headers.keys().any(|name| retry_after::is_limit(name.as_str())) {
        return Vec::new();
    }
    let told =
        headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    retry_after::limits(told, i64::try_from(clock.wall().as_secs()).unwrap_or(i64::MAX))
}
