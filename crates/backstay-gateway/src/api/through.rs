//! Requests handed through raw: paths of a provider that Backstay does not judge, and calls with
//! `x-backstay-bypass: 1`.

use std::sync::Arc;

use backstay::attempt::forward::{Forward, forward};
use backstay::contract::Caller;
use backstay::fault::{CallError, Cause};
use backstay_decide::Local;
use backstay_wire::Dialect;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use hyper::body::Incoming;

use super::{VERSION, admit, dialect_of, path};
use crate::body::Sent;
use crate::server::Gateway;
use crate::{door, respond};

/// The header by which a caller asks for no check at all.
static BYPASS: HeaderName = HeaderName::from_static("x-backstay-bypass");

/// Whether a caller wants no check at all.
pub(super) fn bypasses(headers: &HeaderMap) -> bool {
    headers.get(&BYPASS).is_some_and(|value| value == "1" || value == "true")
}

/// Serves any other path below `/v1/`.
pub(super) async fn serve(gateway: Arc<Gateway>, request: Request<Incoming>) -> Response<Sent> {
    let version = request.headers().get(&VERSION);
    let dialect = dialect_of(request.uri().path(), version);
    if !request.uri().path().starts_with("/v1/") {
        let note = format!(
            "no such path: {}; Backstay serves /v1/chat/completions, /v1/messages and the other \
             /v1/ paths of its providers",
            request.uri().path()
        );
        return respond::failure(dialect, &CallError::local(Local::UnknownRoute, note));
    }
    if let Some(what) = path::ambiguous(request.uri().path()) {
        let note = format!(
            "the path holds {what}, which servers read in different ways; send the plain path"
        );
        return respond::failure(dialect, &CallError::local(Local::InvalidRequest, note));
    }
    let caller = match admit(&gateway, request.headers()) {
        Ok(caller) => caller,
        Err(error) => return respond::failure(dialect, &error),
    };
    let (parts, body) = request.into_parts();
    match door::read(&parts.headers, body, gateway.max_body(), gateway.room()).await {
        Ok(body) => {
            let request = of(&parts, body, dialect, parts.uri.path());
            send(&gateway, request, caller.as_deref()).await
        }
        Err(error) => respond::failure(dialect, &error),
    }
}

/// The request to be handed through to `path`.
pub(super) fn of(parts: &Parts, body: Bytes, dialect: Dialect, path: &str) -> Forward {
    Forward {
        method: parts.method.clone(),
        path: path.to_owned(),
        query: parts.uri.query().map(str::to_owned),
        headers: parts.headers.clone(),
        body,
        dialect,
    }
}

/// Takes out what let the caller in here: it is no provider's business.
pub(super) fn without_our_key(mut request: Forward, caller: Option<&Caller>) -> Forward {
    if caller.is_some() {
        request.headers.remove(AUTHORIZATION);
        request.headers.remove("x-api-key");
    }
    request
}

/// Hands it through, without the key that let `caller` in.
pub(super) async fn send(
    gateway: &Gateway,
    request: Forward,
    caller: Option<&Caller>,
) -> Response<Sent> {
    let dialect = request.dialect;
    if let Some(caller) = caller.filter(|caller| !caller.reach.has_direct()) {
        let note = format!("the key `{}` may use routes only, and with their checks", caller.name);
        return respond::failure(dialect, &CallError::local(Local::Forbidden, note));
    }
    let request = without_our_key(request, caller);
    match forward(gateway.engine(), request).await {
        Ok(forwarded) => {
            let (mut parts, body) = forwarded.response.into_parts();
            parts.headers.insert("x-backstay-outcome", HeaderValue::from_static("bypassed"));
            say_target(&mut parts.headers, &forwarded.target);
            Response::from_parts(parts, Sent::Through(Box::new(body)))
        }
        Err(error) => may_retry(respond::failure(dialect, &error), &error),
    }
}

/// Says who got the request.
pub(super) fn say_target(headers: &mut HeaderMap, target: &str) {
    if let Ok(target) = HeaderValue::from_str(target) {
        headers.insert("x-backstay-target", target);
    }
}

/// Takes the veto off a failure: nothing was tried again here, so the caller's own retries multiply
/// nothing.
pub(super) fn may_retry(mut response: Response<Sent>, error: &CallError) -> Response<Sent> {
    if matches!(error.cause(), Cause::Attempt(_)) {
        response.headers_mut().remove("x-should-retry");
    }
    response
}
