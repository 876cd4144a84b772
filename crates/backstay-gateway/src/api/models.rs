//! `GET /v1/models`: what may be asked for as `model`.

use http::{Request, Response};
use hyper::body::Incoming;
use serde_json::{Value, json};

use backstay::fault::CallError;
use backstay_decide::Local;
use backstay_wire::Dialect;

use super::{VERSION, admit, dialect_of, json as document};
use crate::body::Sent;
use crate::respond;
use crate::server::Gateway;

/// The routes, then the targets, in the caller's dialect.
pub(super) fn list(gateway: &Gateway, request: &Request<Incoming>) -> Response<Sent> {
    let dialect = dialect_of("", request.headers().get(&VERSION));
    if let Err(error) = admit(gateway, request.headers()) {
        return respond::failure(dialect, &error);
    }
    let names = names(gateway);
    let first = names.first().cloned().unwrap_or_default();
    let last = names.last().cloned().unwrap_or_default();
    let models: Vec<Value> = names.iter().map(|name| model(name, dialect)).collect();
    document(&match dialect {
        Dialect::OpenaiChat => json!({"object": "list", "data": models}),
        Dialect::Anthropic => {
            json!({"data": models, "has_more": false, "first_id": first, "last_id": last})
        }
    })
}

/// One of them.
pub(super) fn one(gateway: &Gateway, request: &Request<Incoming>, name: &str) -> Response<Sent> {
    let dialect = dialect_of("", request.headers().get(&VERSION));
    if let Err(error) = admit(gateway, request.headers()) {
        return respond::failure(dialect, &error);
    }
    if gateway.engine().plan().route(name).is_some() {
        return document(&model(name, dialect));
    }
    let shown: String = name.chars().take(100).collect();
    let note = format!("no route or provider serves the model `{shown}`; see GET /v1/models");
    respond::failure(dialect, &CallError::local(Local::UnknownRoute, note))
}

/// Names a caller can use as they are; patterns are left out.
fn names(gateway: &Gateway) -> Vec<String> {
    let plan = gateway.engine().plan();
    let policy = plan.policy();
    let routes = policy.routes.iter().filter(|route| !route.pattern.is_glob());
    let mut names: Vec<String> = routes.map(|route| route.pattern.0.clone()).collect();
    for (name, target) in &policy.targets {
        if target.model.is_some() && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn model(name: &str, dialect: Dialect) -> Value {
    match dialect {
        Dialect::OpenaiChat => {
            json!({"id": name, "object": "model", "created": 0, "owned_by": "backstay"})
        }
        Dialect::Anthropic => json!({
            "type": "model", "id": name, "display_name": name,
            "created_at": "1970-01-01T00:00:00Z"
        }),
    }
}
