//! `/admin/…`: what an operator sees and orders, as JSON, behind a key of its own.
//!
//! Without `server.admin_key` there is nothing here, on whatever address the gateway listens.

use std::time::Duration;

use backstay::fault::CallError;
use backstay::operator::MAX_ORDER;
use backstay_decide::Local;
use backstay_decide::breaker::Mode;
use backstay_decide::queue::Standing;
use backstay_wire::Dialect;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{json as document, levels, path, wrong_method};
use crate::body::Sent;
use crate::server::Gateway;
use crate::{door, respond};

/// The largest body of an order, in bytes.
const MAX_ORDER_BYTES: u64 = 4_096;

/// Where one target stands.
const TARGETS: &str = "/admin/targets";

/// An order as it is sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderText {
    mode: String,
    for_seconds: Option<u64>,
}

/// Answers an operator.
pub(super) async fn serve(gateway: &Gateway, request: Request<Incoming>) -> Response<Sent> {
    answer(gateway, request).await.unwrap_or_else(|error| match error {
        Unserved::Told(error) => respond::failure(Dialect::OpenaiChat, &error),
        Unserved::Method(method, path, right) => wrong_method(&method, &path, right),
    })
}

enum Unserved {
    Told(CallError),
    Method(Method, String, &'static str),
}

impl From<CallError> for Unserved {
    fn from(error: CallError) -> Self {
        Self::Told(error)
    }
}

async fn answer(gateway: &Gateway, request: Request<Incoming>) -> Result<Response<Sent>, Unserved> {
    if !gateway.callers().has_admin() {
        let note = "the admin API is off: set server.admin_key in the config";
        return Err(CallError::local(Local::UnknownRoute, note).into());
    }
    gateway.callers().admit_operator(request.headers())?;
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let (right, seen): (&'static str, fn(&Gateway) -> Value) = match path.as_str() {
        TARGETS => ("GET", targets),
        "/admin/limits" => ("GET", levels::limits),
        "/admin/queue" => ("GET", queue),
        _ => match path.strip_prefix(TARGETS).and_then(|rest| rest.strip_prefix('/')) {
            Some(_) if method != Method::POST => {
                return Err(Unserved::Method(method, path, "POST"));
            }
            Some(id) => return Ok(document(&order(gateway, &path::plain(id), request).await?)),
            None => return Err(nothing(&path).into()),
        },
    };
    if method != Method::GET {
        return Err(Unserved::Method(method, path, right));
    }
    Ok(document(&seen(gateway)))
}

fn nothing(path: &str) -> CallError {
    let note = format!(
        "no such path: {path}; there are GET /admin/targets, /admin/limits, /admin/queue and POST \
         /admin/targets/NAME"
    );
    CallError::local(Local::UnknownRoute, note)
}

fn targets(gateway: &Gateway) -> Value {
    json!({"at_ms": gateway.engine().clock().wall_ms(), "targets": gateway.engine().targets()})
}

/// The seats of all calls, and who waits for one.
fn queue(gateway: &Gateway) -> Value {
    let line = gateway.engine().line();
    let (report, seats) = (line.report(), line.gate().count());
    let classes: Vec<Value> = report.classes.iter().map(class).collect();
    json!({"at_ms": gateway.engine().clock().wall_ms(), "calls_in_flight": report.running,
        "seats": seats, "waiting": report.count[0], "may_wait": report.count[1],
        "bytes_waiting": report.bytes[0], "bytes_may_wait": report.bytes[1],
        "cost_leaving_a_second": report.drain, "classes": classes})
}

fn class(class: &Standing) -> Value {
    json!({"class": *class.name, "waiting": class.count, "bytes": class.bytes, "cost": class.cost,
        "calls_in_flight": class.running, "oldest_ms": class.oldest.as_secs_f64() * 1_000.0})
}

/// Puts a mode on the target `id`, and tells how it stands now.
async fn order(
    gateway: &Gateway,
    id: &str,
    request: Request<Incoming>,
) -> Result<Value, CallError> {
    let (parts, body) = request.into_parts();
    let body = door::read(&parts.headers, body, MAX_ORDER_BYTES, gateway.room()).await?;
    let (mode, lasts) = read(&body)?;
    let engine = gateway.engine();
    engine.order(id, mode, lasts).map_err(|unknown| {
        let note = format!("{unknown}; GET /admin/targets lists them");
        CallError::local(Local::UnknownRoute, note)
    })?;
    let targets: Vec<_> =
        engine.targets().into_iter().filter(|target| target.target == id).collect();
    Ok(json!({"at_ms": gateway.engine().clock().wall_ms(), "targets": targets}))
}

/// The mode and how long it holds. No mode: the config's.
fn read(body: &[u8]) -> Result<(Option<Mode>, Option<Duration>), CallError> {
    let invalid = |note: String| CallError::local(Local::InvalidRequest, note);
    let text: OrderText = serde_json::from_slice(body).map_err(|error| {
        let example = r#"{"mode": "forced_open", "for_seconds": 600}"#;
        invalid(format!("the body is no order: {error}; send such as {example}"))
    })?;
    let mode = Mode::ALL.into_iter().find(|mode| mode.name() == text.mode);
    if mode.is_none() && text.mode != "normal" {
        let names = Mode::ALL.map(|mode| format!("`{}`", mode.name())).join(", ");
        return Err(invalid(format!("`mode` is none of {names}, `normal`")).blaming("mode"));
    }
    let most = MAX_ORDER.as_secs();
    match text.for_seconds {
        Some(_) if mode.is_none() => {
            let note = "`normal` takes an order back and has no time limit".to_owned();
            Err(invalid(note).blaming("for_seconds"))
        }
        Some(seconds) if seconds == 0 || seconds > most => {
            Err(invalid(format!("`for_seconds` must be from 1 to {most}")).blaming("for_seconds"))
        }
        seconds => Ok((mode, seconds.map(Duration::from_secs))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use backstay_decide::breaker::Mode;

    use super::read;

    #[test]
    fn an_order_is_a_mode_and_perhaps_a_time() {
        let told = |text: &str| read(text.as_bytes()).map_err(|error| error.to_string());
        let ten = Some(Duration::from_mins(10));
        assert_eq!(
            told(r#"{"mode": "forced_open", "for_seconds": 600}"#),
            Ok((Some(Mode::ForcedOpen), ten))
        );
        assert_eq!(told(r#"{"mode": "automatic"}"#), Ok((Some(Mode::Automatic), None)));
        assert_eq!(told(r#"{"mode": "normal"}"#), Ok((None, None)));
        for (text, words) in [
            ("", "no order"),
            ("{}", "missing field `mode`"),
            (r#"{"mode": "off"}"#, "none of `automatic`, `forced_open`"),
            (r#"{"mode": "forced_open", "for": 1}"#, "unknown field `for`"),
            (r#"{"mode": "forced_open", "for_seconds": 0}"#, "from 1 to 604800"),
            (r#"{"mode": "forced_open", "for_seconds": 604801}"#, "from 1 to 604800"),
            (r#"{"mode": "forced_open", "for_seconds": -1}"#, "no order"),
            (r#"{"mode": "normal", "for_seconds": 5}"#, "no time limit"),
        ] {
            let error = told(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
