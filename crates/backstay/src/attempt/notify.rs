//! Delivers alerts to the webhook: one at a time, each within a few seconds, twice at most.
//!
//! A call never waits for this: it runs in a task of its own, on the connections of its own engine.
//! What cannot be delivered is counted and told in the log; that it fails shows in `/health/ready`.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::policy::Webhook;
use crate::record::Alert;

/// Longest wait for a connection to the webhook.
const CONNECT: Duration = Duration::from_secs(2);

/// Longest wait for its answer, connection included.
const TOTAL: Duration = Duration::from_secs(5);

/// Tries for each alert, and the pause between them.
const TRIES: u32 = 2;
const PAUSE: Duration = Duration::from_secs(1);

/// What is said of a webhook that fails, to whoever asks: its address may be a secret, and an error has
/// the host. The log has the error.
const FAILED: &str = "the webhook did not take the last alert";

/// Delivers what is told from now on. Never ends; dropping it loses at most the alert on its way.
pub async fn deliver(engine: &Engine) {
    loop {
        let alert = engine.next_alert().await;
        // Read anew each time: a reload may have moved it.
        let plan = engine.plan();
        let webhook = plan.policy().alerts.as_ref().and_then(|alerts| alerts.webhook.as_ref());
        let Some(webhook) = webhook else { continue };
        let fate = match post(engine, webhook, &alert).await {
            Ok(()) => "delivered",
            Err(why) => {
                tracing::warn!(alert = alert.kind, why, "an alert could not be delivered");
                "dropped"
            }
        };
        engine.metrics().alerted(alert.kind, fate);
    }
}

/// Posts `alert`; again once if that fails.
async fn post(engine: &Engine, webhook: &Webhook, alert: &Alert) -> Result<(), String> {
    let body = Bytes::from(serde_json::to_vec(alert).map_err(|error| error.to_string())?);
    let mut last = String::new();
    let delivery = engine.alerts().delivery();
    delivery.begin();
    for number in 0..TRIES {
        if number > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let sent = engine.transport().send(request(webhook, body.clone()), CONNECT);
        match timeout(TOTAL, sent).await {
            Ok(Ok(response)) if response.status().is_success() => {
                delivery.done();
                return Ok(());
            }
            Ok(Ok(response)) => last = format!("it answered {}", response.status()),
            Ok(Err(fault)) => last = fault.to_string(),
            Err(_) => last = format!("no answer within {TOTAL:?}"),
        }
        delivery.failed(FAILED.to_owned());
    }
    delivery.given_up();
    Err(last)
}

fn request(webhook: &Webhook, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = webhook.url.clone();
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in &webhook.headers {
        headers.insert(name, value.clone());
    }
    request
}
