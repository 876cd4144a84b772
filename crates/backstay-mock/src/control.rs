//! The mock's own paths: the log, reset, the catalogue, scripts.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::behaviour::{GENERAL_PARAMS, behaviours};
use crate::limits::Limit;
use crate::log::Pen;
use crate::memory::MAX_STEPS;
use crate::order::Order;
use crate::plan::{JSON, Reply};
use crate::reel::Verdict;
use crate::stage::{Played, Stage, send};

/// 1 MiB: a thousand steps fit many times.
const MAX_SCRIPT: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    model: String,
    steps: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelLimit {
    model: String,
    /// A minute.
    requests: Option<u64>,
    /// A minute.
    tokens: Option<u64>,
}

/// Answers a request to `/_mock/…`. Not logged.
pub(crate) async fn answer(stage: &Stage, request: Request<Incoming>, verdict: Verdict) -> Played {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or("").to_owned();
    let (status, body) = match (request.method(), path.as_str()) {
        (&Method::GET, "/_mock/log") => (200, log(stage, &query)),
        (&Method::GET, "/_mock/behaviours") => (
            200,
            json!({
                "behaviours": behaviours(),
                "general_params": GENERAL_PARAMS.iter().map(|(name, meaning)| json!({"name": name,
                    "meaning": meaning})).collect::<Vec<_>>(),
            }),
        ),
        (&Method::POST, "/_mock/reset") => {
            stage.reset();
            (200, json!({"reset": true}))
        }
        (&Method::POST, "/_mock/script") => told(script(stage, request).await),
        (&Method::POST, "/_mock/limits") => told(limit(stage, request).await),
        _ => (
            404,
            json!({"error": {"message": "the mock has GET /_mock/log, GET \
            /_mock/behaviours, POST /_mock/reset, POST /_mock/script and POST /_mock/limits"}}),
        ),
    };
    send(
        Reply::plain(status, Bytes::from(body.to_string()), JSON),
        Pen::blank(stage.clock),
        verdict,
    )
}

/// The status and body that tell how an order went.
fn told(done: Result<Value, String>) -> (u16, Value) {
    match done {
        Ok(done) => (200, done),
        Err(message) => (400, json!({"error": {"message": message}})),
    }
}

fn log(stage: &Stage, query: &str) -> Value {
    let mut entries = stage.log.entries();
    if !query.split('&').any(|pair| pair == "bodies=1") {
        for entry in &mut entries {
            entry.body = None;
        }
    }
    json!(entries)
}

async fn bytes(request: Request<Incoming>) -> Result<Bytes, String> {
    let body = Limited::new(request.into_body(), MAX_SCRIPT).collect().await;
    Ok(body.map_err(|e| format!("the body cannot be read: {e}"))?.to_bytes())
}

async fn limit(stage: &Stage, request: Request<Incoming>) -> Result<Value, String> {
    let limited: ModelLimit = serde_json::from_slice(&bytes(request).await?)
        .map_err(|e| format!("wanted {{\"model\": …, \"requests\": …, \"tokens\": …}}: {e}"))?;
    let (requests, tokens) = (limited.requests, limited.tokens);
    stage.limits.lock().set(&limited.model, Limit { requests, tokens });
    Ok(json!({"model": limited.model, "requests": requests, "tokens": tokens}))
}

async fn script(stage: &Stage, request: Request<Incoming>) -> Result<Value, String> {
    let script: Script = serde_json::from_slice(&bytes(request).await?)
        .map_err(|e| format!("wanted {{\"model\": …, \"steps\": […]}}: {e}"))?;
    if script.model.is_empty() || script.model.len() > 512 {
        return Err("`model` must have 1 to 512 bytes".to_owned());
    }
    if script.steps.is_empty() || script.steps.len() > MAX_STEPS {
        return Err(format!("`steps` must have 1 to {MAX_STEPS} steps"));
    }
    for step in &script.steps {
        Order::read(step).map_err(|bad| bad.to_string())?;
    }
    let done = json!({"model": script.model, "steps": script.steps.len()});
    stage.memory.lock().script(script.model, script.steps);
    Ok(done)
}
