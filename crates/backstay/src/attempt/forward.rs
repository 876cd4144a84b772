//! Hands a request through to a provider as it is: paths Backstay does not judge (embeddings,
//! token counts), and calls that ask to bypass every check.
//!
//! Only three things are changed: the credentials, the model's name where a route stands for
//! another, and hop headers. Two waits are bounded: for the head, and between two pieces of the
//! body.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use backstay_decide::Local;
use backstay_decide::fault::Fault;
use backstay_wire::Dialect;
use backstay_wire::scan::{Edit, scan};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use tokio::time::{Instant, Sleep, timeout};

use super::adapter::{authorize, join};
use super::transport::{Incoming, SendFault};
use crate::engine::{Engine, Plan};
use crate::fault::CallError;
use crate::policy::{Provider, Target};

/// Longest wait for the head of a forwarded response: the official SDKs' own limit.
const HEAD: Duration = Duration::from_mins(10);

/// Longest silence inside a forwarded body.
const GAP: Duration = Duration::from_mins(2);

/// Headers that are not passed on in either direction: they belong to one connection, carry the
/// caller's credentials, or are set anew.
const NOT_FORWARDED: [&str; 16] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
    "authorization",
    "x-api-key",
    "api-key",
    "cookie",
    "expect",
];

/// A request to be handed through.
#[derive(Clone, Debug)]
pub struct Forward {
    /// The method.
    pub method: Method,
    /// The path as the caller wrote it, such as `/v1/embeddings`.
    pub path: String,
    /// The query string without `?`.
    pub query: Option<String>,
    /// The caller's headers. A provider of the path's dialect that takes the caller's credentials
    /// is sent those in here, so a credential that was for the door must be gone.
    pub headers: HeaderMap,
    /// The body, whole.
    pub body: Bytes,
    /// The dialect the path belongs to.
    pub dialect: Dialect,
}

/// Where a forwarded request went, and what came back.
#[derive(Debug)]
pub struct Forwarded {
    /// The provider's response; its body is bounded in its silences.
    pub response: Response<Passing>,
    /// The name of the provider, or of the target where a route chose it.
    pub target: String,
}

/// Hands `forward` through.
///
/// # Errors
/// No provider is meant, or it cannot be reached.
pub async fn forward(engine: &Engine, forward: Forward) -> Result<Forwarded, CallError> {
    let plan = engine.plan();
    let (target, provider, body) = destination(&plan, &forward)?;
    let path = match provider.dialect {
        Dialect::OpenaiChat => forward.path.strip_prefix("/v1").unwrap_or(&forward.path),
        Dialect::Anthropic => &forward.path,
    };
    let mut request = Request::new(Full::new(body));
    *request.uri_mut() = join(&provider, path, forward.query.as_deref())?;
    *request.method_mut() = forward.method;
    let headers = request.headers_mut();
    for (name, value) in &forward.headers {
        if is_forwarded(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    let own = (provider.dialect == forward.dialect).then_some(&forward.headers);
    authorize(headers, &provider, own, 0)?;
    let sending = engine.transport().send(request, provider.connect);
    match timeout(HEAD, sending).await {
        Ok(Ok(response)) => Ok(Forwarded { response: cleaned(response), target }),
        Ok(Err(fault @ SendFault::Connect { .. })) => {
            Err(CallError::attempt(Fault::ConnectFailed, fault.to_string()))
        }
        // The provider may have done the work.
        Ok(Err(fault @ (SendFault::Lost { .. } | SendFault::Stale { .. }))) => {
            Err(CallError::attempt(Fault::ConnectionLost, fault.to_string()))
        }
        Err(_) => {
            let note = format!("{} did not answer within {HEAD:?}", provider.name);
            Err(CallError::attempt(Fault::TotalTimeout, note))
        }
    }
}

/// Which provider is meant: by the header `x-backstay-provider`, by the model in the body, else
/// the first of the path's dialect.
fn destination(
    plan: &Plan,
    forward: &Forward,
) -> Result<(String, Arc<Provider>, Bytes), CallError> {
    let named = forward.headers.get("x-backstay-provider").and_then(|name| name.to_str().ok());
    if let Some(name) = named {
        let provider = plan.policy().providers.get(name).ok_or_else(|| {
            let note = format!("x-backstay-provider: no provider is named `{name}`");
            CallError::local(Local::UnknownRoute, note)
        })?;
        return Ok((name.to_owned(), Arc::clone(provider), forward.body.clone()));
    }
    if let Some((target, body)) = by_model(plan, forward)? {
        return Ok((target.id.clone(), Arc::clone(&target.provider), body));
    }
    let mut providers = plan.policy().providers.values();
    let provider = providers.find(|provider| provider.dialect == forward.dialect);
    let provider = provider.ok_or_else(|| {
        let note = format!("no provider speaks {}; name one in config", forward.dialect.name());
        CallError::local(Local::UnknownRoute, note)
    })?;
    Ok((provider.name.clone(), Arc::clone(provider), forward.body.clone()))
}

/// The first target of the path's dialect on the route that the body's model names, and the body
/// with the target's own name of the model in it. `None`: the body names no model that is known.
///
/// # Errors
/// The route has no such target. Another provider that is not on the route must not get the call.
fn by_model(plan: &Plan, forward: &Forward) -> Result<Option<(Arc<Target>, Bytes)>, CallError> {
    let Ok(head) = scan(&forward.body, 127) else { return Ok(None) };
    let Ok(Some(model)) = head.string(&forward.body, "model") else { return Ok(None) };
    let Some((route, _)) = plan.route(&model) else { return Ok(None) };
    let mut targets = route.tiers.iter().flatten();
    let target = targets.find(|target| target.provider.dialect == forward.dialect);
    let target = target.ok_or_else(|| {
        let dialect = forward.dialect.name();
        let note = format!(
            "no target of `{model}` speaks {dialect}, the format of {}; name another model, or a \
             provider in the header x-backstay-provider",
            forward.path
        );
        CallError::local(Local::InvalidRequest, note).blaming("model")
    })?;
    let renamed = target.model.as_ref().filter(|name| **name != model);
    let body = match renamed {
        Some(name) => {
            let edit = Edit::Set("model", serde_json::Value::from(name.as_str()).to_string());
            Bytes::from(head.edit(&forward.body, &[edit]))
        }
        None => forward.body.clone(),
    };
    Ok(Some((Arc::clone(target), body)))
}

/// Whether a header may cross the gateway.
fn is_forwarded(name: &HeaderName) -> bool {
    let name = name.as_str();
    !NOT_FORWARDED.contains(&name) && !name.starts_with("x-backstay-")
}

fn cleaned(response: Response<Incoming>) -> Response<Passing> {
    let (mut parts, body) = response.into_parts();
    let length = parts.headers.get(CONTENT_LENGTH).cloned();
    let gone: Vec<HeaderName> =
        parts.headers.keys().filter(|name| !is_forwarded(name)).cloned().collect();
    for name in gone {
        parts.headers.remove(name);
    }
    if let Some(length) = length {
        parts.headers.insert(CONTENT_LENGTH, length);
    }
    parts.headers.entry(CONTENT_TYPE).or_insert(http::HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Passing::new(body))
}

/// A body on its way through: bounded in its silences, and cut where the provider cut it.
#[derive(Debug)]
pub struct Passing {
    body: Incoming,
    alarm: Pin<Box<Sleep>>,
    waiting: Option<Instant>,
}

impl Passing {
    fn new(body: Incoming) -> Self {
        Self { body, alarm: Box::pin(tokio::time::sleep(GAP)), waiting: None }
    }
}

/// A forwarded body that broke off. The connection to the caller is cut with it, so that nobody
/// takes half a body for a whole one.
#[derive(Debug, thiserror::Error)]
#[error("the provider's body broke off: {0}")]
pub struct BrokenOff(String);

impl From<Infallible> for BrokenOff {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Body for Passing {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.waiting = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(|e| BrokenOff(e.to_string()))));
        }
        let due = *this.waiting.get_or_insert_with(Instant::now) + GAP;
        loop {
            if this.alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if Instant::now() >= due {
                return Poll::Ready(Some(Err(BrokenOff(format!("silent for {GAP:?}")))));
            }
            this.alarm.as_mut().reset(due);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
