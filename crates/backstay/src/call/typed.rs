//! Answers as values of a Rust type: the schema is the type's own, and so is the last check.
//!
//! The type's schema is derived and set as the response format of the request; the reply is
//! checked against it in full, as any other; then the type's own `Deserialize` has its say, and what
//! it does not take is told to the model like any other error.

use std::fmt;
use std::sync::Arc;

use backstay_wire::Dialect;
use backstay_wire::scan::{self, Scanned};
use http::HeaderMap;
use jsonmend::{Mender, Node, Policy, Status};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Answer, Body, serve, settle};
use crate::contract::{self, Ask};
use crate::engine::Engine;
use crate::fault::CallError;
use crate::record::{Outcome, Receipt};
use crate::validate::{Edit, SchemaFault};

/// A value of the type that was asked for, and what happened on the way to it.
#[derive(Clone, Debug)]
pub struct Typed<T> {
    /// The value.
    pub value: T,
    /// What a caller of the gateway is told in headers.
    pub receipt: Receipt,
    /// Headers of the provider's, such as its request id.
    pub headers: HeaderMap,
    /// Every change that was made to the reply before the value was read. Empty: none.
    pub edits: Vec<Edit>,
}

/// Why there is no value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypedError {
    /// The type's schema cannot be used; no request was sent. The type has to change.
    #[error("the schema of `{name}` cannot be used")]
    Schema {
        /// The type, as its schema names it.
        name: String,
        /// What is wrong with its schema.
        #[source]
        cause: SchemaFault,
    },
    /// The call failed. A reply that is invalid after every re-ask has the code
    /// `reply_schema_error`, also where it was the type's own `Deserialize` that refused it.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The call gave something else than a value: a refusal, a pause, a call of a tool. The answer
    /// is there to be looked at.
    #[error("the answer is no `{name}` but {}", .answer.receipt.outcome)]
    NoValue {
        /// The type, as its schema names it.
        name: String,
        /// The answer.
        answer: Box<Answer>,
    },
}

/// What the type that was asked for says to a value that fits its schema: its objection, if any.
#[derive(Clone)]
pub(crate) struct Reader(Arc<Check>);

type Check = dyn Fn(Node<'_>) -> Result<(), String> + Send + Sync;

impl Reader {
    fn of<T: DeserializeOwned + 'static>() -> Self {
        Self(Arc::new(|node| match node.read::<T>() {
            Ok(_) => Ok(()),
            Err(mismatch) => Err(mismatch.to_string()),
        }))
    }

    /// Whether `node` is a value of the type.
    ///
    /// # Errors
    /// One sentence for the model.
    pub(crate) fn check(&self, node: Node<'_>) -> Result<(), String> {
        (self.0)(node)
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

/// Answers `ask` with a `T`.
///
/// The request's own response format, and its wish for a stream, give way. Where a route has a last
/// resort that is a `T`, that may be the value: the receipt says so.
///
/// ```
/// use backstay::call;
/// use backstay::contract::{Ask, Dialect};
/// use backstay::engine::Engine;
/// use backstay::policy::{Policy, Provider};
/// use backstay::record::CallLog;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Ticket {
///     category: String,
///     /// 1 is urgent, 4 can wait.
///     #[schemars(range(min = 1, max = 4))]
///     priority: u8,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let reply = serde_json::json!({"category": "billing", "priority": 2});
/// # let answer = backstay_mock::Answer { contains: String::new(), reply, text: None };
/// # let settings = backstay_mock::Settings { answers: vec![answer], ..Default::default() };
/// # let mock = backstay_mock::Mock::start(settings).await?;
/// // A model server of your own; `Provider::openai(key)` is OpenAI itself.
/// # let address = mock.openai_base();
/// let provider = Provider::at("local", Dialect::OpenaiChat, address.parse()?, None);
/// let engine = Engine::new(Policy::of([provider]), CallLog::memory(1_000))?;
///
/// let request = r#"{"model": "local/healthy",
///     "messages": [{"role": "user", "content": "I was charged twice. Sort this ticket."}]}"#;
/// let ask = Ask::new(Dialect::OpenaiChat, request, engine.now());
/// let ticket = call::answer_as::<Ticket>(&engine, ask).await?;
/// assert_eq!((ticket.value.category.as_str(), ticket.value.priority), ("billing", 2));
/// assert_eq!(ticket.receipt.attempts, 1);
/// # mock.stop().await;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`TypedError`]: the type cannot be asked for, the call failed, or its answer is no value.
pub async fn answer_as<T>(engine: &Engine, mut ask: Ask) -> Result<Typed<T>, TypedError>
where
    T: DeserializeOwned + JsonSchema + 'static,
{
    let name = T::schema_name().into_owned();
    let generator = SchemaSettings::draft2020_12().into_generator();
    let schema = generator.into_root_schema_for::<T>().to_value();
    let compiled = engine.schemas().get(&schema);
    if let Err(cause) = compiled.and_then(|schema| schema.fallbacks()) {
        return Err(TypedError::Schema { name, cause });
    }
    // A body that cannot be scanned is left as it is: settling says what is wrong with it.
    if let Ok(head) = contract::scanned(&ask) {
        ask.body = with_format(&ask, &head, &name, &schema).into();
    }
    let dialect = ask.dialect;
    let mut contract = settle(engine, ask)?;
    contract.reader = Some(Reader::of::<T>());
    let answer = serve(engine, contract).await?;
    match value(dialect, &answer) {
        Some(value) => {
            let Answer { receipt, headers, edits, .. } = answer;
            Ok(Typed { value, receipt, headers, edits })
        }
        None => Err(TypedError::NoValue { name, answer: Box::new(answer) }),
    }
}

/// The request with the schema as its response format, as an answer in one piece.
fn with_format(ask: &Ask, head: &Scanned, name: &str, schema: &Value) -> Vec<u8> {
    let format = match ask.dialect {
        Dialect::OpenaiChat => {
            let schema = json!({"name": plain(name), "schema": schema});
            json!({"type": "json_schema", "json_schema": schema})
        }
        Dialect::Anthropic => contract::output_config(head, &ask.body, schema),
    };
    let field = contract::format_field(ask.dialect);
    let edits = [
        scan::Edit::Set(field, format.to_string()),
        scan::Edit::Remove("stream"),
        scan::Edit::Remove("stream_options"),
    ];
    head.edit(&ask.body, &edits)
}

/// A type's name as providers take it: letters, digits, `_` and `-`, at most 64.
fn plain(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().take(64).map(kept).collect()
}

/// The value that an answer says, if it is one.
fn value<T: DeserializeOwned>(dialect: Dialect, answer: &Answer) -> Option<T> {
    let Body::Whole(bytes) = &answer.body else { return None };
    // What was handed on as it is was not checked, even if it looks like a value.
    let unchecked = [Outcome::Refused, Outcome::Truncated, Outcome::Paused, Outcome::Bypassed];
    if unchecked.contains(&answer.receipt.outcome) {
        return None;
    }
    let reply = dialect.read_reply(bytes).ok()?;
    let choice = reply.choices.first()?;
    if choice.calls_tools() {
        return None;
    }
    let text = choice.text();
    let outcome = Mender::new(Policy::strict().allowing(&[])).mend(&text, Status::Stopped);
    outcome.document()?.root(&text)?.read().ok()
}
