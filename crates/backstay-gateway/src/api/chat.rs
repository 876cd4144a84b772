//! The generating paths: read, answer, respond.

use std::sync::Arc;
use std::time::Duration;

use backstay::attempt::forward::Forward;
use backstay::call;
use backstay::contract::{Ask, Caller, Wants};
use backstay::fault::CallError;
use backstay_wire::Dialect;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;

use super::{admit, through, watch};
use crate::body::Sent;
use crate::hold::{Held, Seeking};
use crate::server::Gateway;
use crate::{door, respond, simulate};

/// Serves a generating call in `dialect`, whose path is rightly written `path`.
pub(super) async fn serve(
    gateway: Arc<Gateway>,
    request: Request<Incoming>,
    dialect: Dialect,
    path: &'static str,
) -> Response<Sent> {
    match take(&gateway, request, dialect, path).await {
        Ok(Taken::Ask(ask)) => answer(&gateway, *ask).await,
        Ok(Taken::Bypass(forward, caller)) => {
            through::send(&gateway, *forward, caller.as_deref()).await
        }
        Ok(Taken::Watch(forward, ask)) => watch::serve(&gateway, *forward, *ask).await,
        Err(error) => respond::failure(dialect, &error),
    }
}

enum Taken {
    Ask(Box<Ask>),
    Bypass(Box<Forward>, Option<Arc<Caller>>),
    Watch(Box<Forward>, Box<Ask>),
}

/// Lets the request in and reads its body.
async fn take(
    gateway: &Gateway,
    request: Request<Incoming>,
    dialect: Dialect,
    path: &'static str,
) -> Result<Taken, CallError> {
    let arrived = gateway.engine().now();
    let caller = admit(gateway, request.headers())?;
    let (parts, body) = request.into_parts();
    let body = door::read(&parts.headers, body, gateway.max_body(), gateway.room()).await?;
    if through::bypasses(&parts.headers) {
        let forward = through::of(&parts, body, dialect, path);
        return Ok(Taken::Bypass(Box::new(forward), caller));
    }
    door::is_plain(&parts.headers)?;
    let watched = gateway.engine().watches(&body, caller.as_deref())?.then(|| {
        let mut forward = through::of(&parts, body.clone(), dialect, path);
        // The route says who gets it.
        forward.headers.remove("x-backstay-provider");
        through::without_our_key(forward, caller.as_deref())
    });
    let query = parts.uri.query().map(str::to_owned);
    let ask = Box::new(Ask { dialect, body, headers: parts.headers, query, caller, arrived });
    Ok(match watched {
        Some(forward) => Taken::Watch(Box::new(forward), ask),
        None => Taken::Ask(ask),
    })
}

async fn answer(gateway: &Gateway, ask: Ask) -> Response<Sent> {
    let dialect = ask.dialect;
    let engine = gateway.engine().clone();
    let mut contract = match call::settle(&engine, ask) {
        Ok(contract) => contract,
        Err(error) => return respond::failure(dialect, &error),
    };
    if simulate::is_asked(&contract)
        && let Err(error) = simulate::arrange(gateway, &mut contract).await
    {
        return respond::failure(dialect, &error);
    }
    if contract.wants == Wants::Whole {
        let answered = match gateway.carrier(&contract) {
            None => call::serve(&engine, contract).await,
            Some(carrier) => {
                let seeking = Box::pin(async move { call::serve(&engine, contract).await });
                carrier.call(seeking).await
            }
        };
        return match answered {
            Ok(answer) => respond::answer(answer),
            Err(error) => respond::failure(dialect, &error),
        };
    }
    let carrier = gateway.carrier(&contract);
    let pause = contract.keep_alive;
    let mut seeking: Seeking = Box::pin(async move { call::serve(&engine, contract).await });
    if let Some(carrier) = &carrier {
        seeking = Box::pin(carrier.call(seeking));
    }
    // Dropping the sleep loses nothing; the search is only borrowed and goes on in the body.
    let found = tokio::select! {
        found = &mut seeking => Some(found),
        () = tokio::time::sleep(pause) => None,
    };
    let response = match found {
        Some(Ok(answer)) => respond::answer(answer),
        Some(Err(error)) => respond::failure(dialect, &error),
        None => held(seeking, dialect, pause),
    };
    match carrier {
        Some(carrier) => response.map(|body| carrier.body(body)),
        None => response,
    }
}

/// The caller has waited long enough: the head leaves now, the answer follows in the stream.
fn held(seeking: Seeking, dialect: Dialect, pause: Duration) -> Response<Sent> {
    let mut response = Response::new(Sent::Held(Box::new(Held::new(seeking, dialect, pause))));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-backstay-outcome", HeaderValue::from_static("pending"));
    response
}
