//! Sends tickets as an application would, over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use backstay::attempt::transport::Transport;
use backstay::validate::schema::Schema;
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full, Limited};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::tickets::{PROMPT, SCHEMA, Ticket};

/// The gateway's deadline in the demo is 10 s; an application would be a little more patient.
const PATIENCE: Duration = Duration::from_secs(12);

/// The demo's application.
#[derive(Debug)]
pub(super) struct Client {
    transport: Transport,
    address: SocketAddr,
    schema: Option<Schema>,
}

/// What the application saw of one ticket.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub ticket: String,
    pub end: End,
    pub took: Duration,
    pub call_id: String,
    pub outcome: String,
    pub tier: String,
    pub attempts: usize,
}

/// How a ticket ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    /// A value that fits the schema, checked here again.
    Valid(Value),
    /// A refusal, in the dialect's own field.
    Refused,
    /// An error with a stable code.
    Typed(String),
    /// Neither: the promise is broken.
    Neither(String),
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Self {
        let schema = serde_json::from_str(SCHEMA).ok();
        let schema = schema.and_then(|schema: Value| Schema::compile(&schema).ok());
        Self { transport: Transport::new(), address, schema }
    }

    /// Sends `ticket` and judges what comes back.
    pub(super) async fn send(&self, ticket: &Ticket) -> Seen {
        let began = Instant::now();
        let answered = timeout(PATIENCE, self.call(ticket)).await;
        let took = began.elapsed();
        let mut seen = Seen {
            ticket: ticket.id.clone(),
            end: End::Neither(format!("no answer within {PATIENCE:?}")),
            took,
            call_id: String::new(),
            outcome: "none".into(),
            tier: "none".into(),
            attempts: 0,
        };
        match answered {
            Ok(Ok((status, headers, body))) => {
                seen.end = self.judge(ticket, status, &body);
                let header = |name: &str| {
                    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
                };
                header("x-backstay-call-id").clone_into(&mut seen.call_id);
                header("x-backstay-outcome").clone_into(&mut seen.outcome);
                header("x-backstay-tier").clone_into(&mut seen.tier);
                seen.attempts = header("x-backstay-attempts").parse().unwrap_or(0);
            }
            Ok(Err(error)) => seen.end = End::Neither(error.to_string()),
            Err(_) => {}
        }
        seen
    }

    async fn call(&self, ticket: &Ticket) -> anyhow::Result<(u16, HeaderMap, Bytes)> {
        let body = json!({
            "model": "triage",
            "messages": [
                {"role": "system", "content": PROMPT},
                {"role": "user", "content": ticket.text}
            ]
        });
        let request = Request::post(format!("http://{}/v1/chat/completions", self.address))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_string())))?;
        let response = self.transport.send(request, Duration::from_secs(1)).await?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, 1 << 20).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("{error}"))?.to_bytes();
        Ok((parts.status.as_u16(), parts.headers, body))
    }

    /// Valid, typed, or neither: by the application's own reading, not by the gateway's word.
    fn judge(&self, ticket: &Ticket, status: u16, body: &[u8]) -> End {
        let Ok(body) = serde_json::from_slice::<Value>(body) else {
            return End::Neither(format!("status {status} with a body that is not JSON"));
        };
        if status != 200 {
            return match body.pointer("/error/code").and_then(Value::as_str) {
                Some(code) => End::Typed(code.to_owned()),
                None => End::Neither(format!("status {status} without a code")),
            };
        }
        let message = body.pointer("/choices/0/message").cloned().unwrap_or_default();
        if message.get("refusal").is_some_and(|refusal| !refusal.is_null()) {
            return End::Refused;
        }
        let content = message.get("content").and_then(Value::as_str).unwrap_or_default();
        let Ok(value) = serde_json::from_str::<Value>(content) else {
            return End::Neither("status 200, and the content is not JSON".into());
        };
        if let Some(schema) = &self.schema
            && let Err(unfit) = schema.check(&value)
        {
            return End::Neither(format!("status 200 and {}", unfit.errors.join("; ")));
        }
        let evidence = value.get("evidence").and_then(Value::as_str).unwrap_or_default();
        if !ticket.text.contains(evidence) {
            return End::Neither("status 200 and the evidence is not in the ticket".into());
        }
        End::Valid(value)
    }
}
