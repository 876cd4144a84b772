//! What shape the answer must have: the caller's own response format, else the route's schema.

use std::sync::Arc;

use backstay_decide::Local;
use backstay_wire::Dialect;
use backstay_wire::dialect::Malformed;
use backstay_wire::scan::Scanned;
use serde_json::{Value, json};

use super::{Ask, malformed};
use crate::engine::{Engine, Ready};
use crate::fault::CallError;
use crate::policy::{Field, Mending, OnFail, Route};
use crate::validate::{Checks, Shape};

/// Whose wish the shape is. It decides what has to be sent to the provider.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// Nobody asked for a shape.
    Nothing,
    /// The caller did; its own field says so already.
    ByCaller {
        /// The schema, where it gave one.
        given: Option<Given>,
    },
    /// The route does; the field has to be added.
    ByRoute {
        /// The schema.
        schema: Arc<Value>,
    },
}

/// A caller's own schema, and what it says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The schema.
    pub schema: Arc<Value>,
    /// Its name. `None`: it has none.
    pub name: Option<String>,
    /// Whether it is to be held strictly. `None`: it does not say.
    pub strict: Option<bool>,
}

impl Asked {
    /// The route's schema, when it has to be sent.
    pub fn route_schema(&self) -> Option<&Arc<Value>> {
        match self {
            Self::ByRoute { schema } => Some(schema),
            Self::Nothing | Self::ByCaller { .. } => None,
        }
    }

    /// The caller's own schema.
    pub fn caller_schema(&self) -> Option<&Arc<Value>> {
        self.given().map(|given| &given.schema)
    }

    /// The caller's own schema, with what it says of it.
    pub fn given(&self) -> Option<&Given> {
        match self {
            Self::ByCaller { given } => given.as_ref(),
            Self::Nothing | Self::ByRoute { .. } => None,
        }
    }

    /// The schema, whoever gave it.
    pub fn schema(&self) -> Option<&Arc<Value>> {
        self.route_schema().or_else(|| self.caller_schema())
    }

    /// Whether the caller's own field says what shape it wants.
    pub fn by_caller(&self) -> bool {
        matches!(self, Self::ByCaller { .. })
    }
}

/// What tells one schema's text from another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Print {
    digest: [u8; 32],
    /// Bytes of the compact JSON.
    pub bytes: usize,
}

impl Print {
    /// Of `schema`, its keys in their order.
    pub fn of(schema: &Value) -> Self {
        let text = schema.to_string();
        Self { digest: blake3::hash(text.as_bytes()).into(), bytes: text.len() }
    }
}

/// Settles the shape and the checks that go with it. Calls that offer tools are not held to the
/// route's schema: their answers are tool calls.
pub(super) fn settle(
    head: &Scanned,
    ask: &Ask,
    route: &Route,
    ready: &Ready,
    engine: &Engine,
) -> Result<(Asked, Checks), CallError> {
    let (rules, mending) = (Arc::clone(&ready.rules), Arc::clone(&route.mending));
    let checks = |shape, rules| Checks { shape, rules, mending };
    match own_format(head, ask).map_err(|fault| malformed(&fault))? {
        Some(Own::Text) => {
            Ok((Asked::ByCaller { given: None }, checks(Shape::Text, Arc::default())))
        }
        Some(Own::Json) => Ok((Asked::ByCaller { given: None }, checks(Shape::Json, rules))),
        Some(Own::Schema(given)) => {
            let compiled = engine.schemas().get(&given.schema);
            let usable = compiled.and_then(|schema| schema.fallbacks().map(|()| schema));
            let compiled = usable.map_err(|fault| {
                let note = format!("the response schema cannot be used: {fault}");
                CallError::local(Local::InvalidRequest, note).blaming(field(ask.dialect))
            })?;
            let mending = mending_of(route, &given.schema);
            let checks = Checks { shape: Shape::Schema(compiled), rules, mending };
            Ok((Asked::ByCaller { given: Some(given) }, checks))
        }
        None => Ok(match (&route.schema, &ready.schema) {
            (Some(source), Some(compiled)) if !offers_tools(head, ask) => {
                let checks = checks(Shape::Schema(Arc::clone(compiled)), rules);
                (Asked::ByRoute { schema: Arc::clone(source) }, checks)
            }
            // Rules of a route without a schema look at the text. Calls with tools have no rules.
            _ if offers_tools(head, ask) => (Asked::Nothing, checks(Shape::Text, Arc::default())),
            _ => (Asked::Nothing, checks(Shape::Text, rules)),
        }),
    }
}

/// What may be done to an answer in a caller's own schema. The fields of a route with a schema are
/// places in that one; those of a route without are meant for any, but let nothing pass that the
/// caller's schema forbids.
fn mending_of(route: &Route, schema: &Value) -> Arc<Mending> {
    let mending = &route.mending;
    let is_routes = route.schema.as_deref() == Some(schema);
    if mending.fields.is_empty() || is_routes {
        return Arc::clone(mending);
    }
    let strict = |field: &Field| match field.on_fail {
        OnFail::Flag => Field { on_fail: OnFail::Reask, fallback: None, ..field.clone() },
        OnFail::Reask | OnFail::Fallback | OnFail::Reject => field.clone(),
    };
    let fields = match &route.schema {
        Some(_) => Vec::new(),
        None => mending.fields.iter().map(strict).collect(),
    };
    Arc::new(Mending { fields, ..Mending::clone(mending) })
}

enum Own {
    Text,
    Json,
    Schema(Given),
}

/// The field that carries a caller's wish for a shape.
pub(crate) fn field(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenaiChat => "response_format",
        Dialect::Anthropic => "output_config",
    }
}

/// The `output_config` of a Messages request with `schema` as its format, and what else it says.
pub(crate) fn output_config(head: &Scanned, body: &[u8], schema: &Value) -> Value {
    let raw = head.raw(body, field(Dialect::Anthropic)).unwrap_or(b"{}");
    let mut config: Value = serde_json::from_slice(raw).unwrap_or_default();
    if !config.is_object() {
        config = json!({});
    }
    config["format"] = json!({"type": "json_schema", "schema": schema});
    config
}

fn own_format(head: &Scanned, ask: &Ask) -> Result<Option<Own>, Malformed> {
    let field = field(ask.dialect);
    let Some(raw) = head.raw(&ask.body, field).filter(|raw| *raw != b"null") else {
        return Ok(None);
    };
    let value: Value = serde_json::from_slice(raw)
        .map_err(|_| Malformed::new(format!("/{field}"), "is not valid JSON"))?;
    let format = match ask.dialect {
        Dialect::OpenaiChat => &value,
        Dialect::Anthropic => match value.get("format") {
            Some(format) if !format.is_null() => format,
            _ => return Ok(None),
        },
    };
    // The Messages API has the schema in the format itself, and no name for it.
    let (around, named) = match ask.dialect {
        Dialect::OpenaiChat => (format.get("json_schema"), format.get("json_schema")),
        Dialect::Anthropic => (Some(format), None),
    };
    let named = |key: &str| named.and_then(|named| named.get(key));
    match format.get("type").and_then(Value::as_str) {
        Some("json_object") => Ok(Some(Own::Json)),
        Some("json_schema") => match around.and_then(|around| around.get("schema")) {
            Some(schema) => Ok(Some(Own::Schema(Given {
                schema: Arc::new(schema.clone()),
                name: named("name").and_then(Value::as_str).map(str::to_owned),
                strict: named("strict").and_then(Value::as_bool),
            }))),
            None => Err(Malformed::new(format!("/{field}"), "asks for json_schema without one")),
        },
        // Plain text; and a form this version does not know goes through unchanged, unchecked.
        Some(_) => Ok(Some(Own::Text)),
        None => Err(Malformed::new(format!("/{field}/type"), "is missing")),
    }
}

/// Whether the caller offers tools; `functions` is their older name.
pub(super) fn offers_tools(head: &Scanned, ask: &Ask) -> bool {
    let offers = |raw: &[u8]| raw.len() > 2 && raw != b"null";
    ["tools", "functions"].iter().any(|field| head.raw(&ask.body, field).is_some_and(offers))
}
