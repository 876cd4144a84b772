//! Which path means what. The few hot paths are one `match`; nothing is looked up in a table.

mod admin;
mod chat;
mod levels;
mod models;
mod path;
mod through;
mod watch;

use std::sync::Arc;

use backstay::contract::Caller;
use backstay::fault::CallError;
use backstay::record::Trouble;
use backstay_decide::Local;
use backstay_wire::Dialect;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use crate::body::Sent;
use crate::respond;
use crate::server::Gateway;

pub use watch::Watched;

/// The header that tells a caller of the Messages API. A name made at compile time is not parsed
/// anew for each look-up.
pub(crate) static VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// Answers one request. Total: every failure is a response.
pub async fn serve(gateway: Arc<Gateway>, request: Request<Incoming>) -> Response<Sent> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    if let Some((dialect, path)) = path::generating(&path) {
        if method != Method::POST {
            return wrong_method(&method, path, "POST");
        }
        return chat::serve(gateway, request, dialect, path).await;
    }
    match (&method, path.as_str()) {
        (&Method::GET | &Method::HEAD, "/health/live") => text("ok\n"),
        (&Method::GET | &Method::HEAD, "/health/ready") => ready(&gateway),
        (&Method::GET, "/metrics") => metrics(&gateway),
        (&Method::GET, "/") => text("Backstay. See /health/ready, /v1/models, /metrics.\n"),
        (_, "/health/live" | "/health/ready" | "/metrics") => wrong_method(&method, &path, "GET"),
        (&Method::GET | &Method::HEAD, "/v1/models") => models::list(&gateway, &request),
        (&Method::GET, _) if path.starts_with(MODEL) => {
            let name = path.strip_prefix(MODEL).unwrap_or_default();
            models::one(&gateway, &request, &path::plain(name))
        }
        _ if path == "/admin" || path.starts_with("/admin/") => {
            admin::serve(&gateway, request).await
        }
        _ => through::serve(gateway, request).await,
    }
}

/// Before a model's name.
const MODEL: &str = "/v1/models/";

/// The dialect whose provider a path belongs to, and in which its errors are told.
pub(crate) fn dialect_of(path: &str, anthropic_version: Option<&HeaderValue>) -> Dialect {
    if anthropic_version.is_some() || path::is_of_messages(path) {
        return Dialect::Anthropic;
    }
    Dialect::OpenaiChat
}

/// Lets the caller in, or says why not.
fn admit(gateway: &Gateway, headers: &http::HeaderMap) -> Result<Option<Arc<Caller>>, CallError> {
    if gateway.is_draining() {
        let note = "the gateway is shutting down; send the request to another one";
        let soon = std::time::Duration::from_secs(1);
        return Err(CallError::local(Local::ShuttingDown, note).again_after(Some(soon)));
    }
    gateway.callers().admit(headers)
}

/// Ready as soon as it serves, also while providers are down, which is what it is for, and while what
/// works beside the calls does not: that is told, and no reason to send callers elsewhere.
fn ready(gateway: &Gateway) -> Response<Sent> {
    if gateway.is_draining() {
        let mut response = text("shutting down\n");
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        return response;
    }
    let troubles = gateway.engine().troubles();
    if troubles.is_empty() {
        return text("ready\n");
    }
    let lines = troubles.iter().map(|Trouble { part, note }| format!("{part}: {note}\n"));
    text(format!("degraded\n{}", lines.collect::<String>()))
}

fn metrics(gateway: &Gateway) -> Response<Sent> {
    let engine = gateway.engine();
    let mut response = text(engine.metrics_text());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn wrong_method(method: &Method, path: &str, right: &'static str) -> Response<Sent> {
    let note = format!("{path} takes {right}, not {method}");
    let error = CallError::local(Local::InvalidRequest, note);
    let mut response = respond::failure(dialect_of(path, None), &error);
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response.headers_mut().insert("allow", HeaderValue::from_static(right));
    response
}

fn text(text: impl Into<bytes::Bytes>) -> Response<Sent> {
    let mut response = Response::new(Sent::full(text));
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A JSON document.
fn json(value: &serde_json::Value) -> Response<Sent> {
    let mut response = Response::new(Sent::full(value.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
