//! Providers and the models they serve.

use std::sync::Arc;
use std::time::Duration;

use backstay_decide::breaker::Rules;
pub use backstay_decide::money::{Money, Price, Prices};
pub use backstay_decide::spend::Tariff;
use backstay_wire::Dialect;
use backstay_wire::lower::Subset;
use http::{HeaderName, HeaderValue, Uri};

use super::{KeyDigest, Limits, Secret};

/// A model API somebody else operates.
#[derive(Clone, Debug)]
pub struct Provider {
    /// Its name in config.
    pub name: String,
    /// Its wire format.
    pub dialect: Dialect,
    /// Where it is, without a trailing slash. Comes from config only, never from a caller.
    pub base_url: Uri,
    /// Whose credentials go upstream.
    pub credentials: CredentialSource,
    /// Headers sent with every request, such as `OpenAI-Organization`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The name under which the output cap is sent.
    pub cap_field: CapField,
    /// What it takes of JSON Schema, for models that say nothing of their own.
    pub subset: Subset,
    /// Longest wait for a connection when a route says nothing.
    pub connect: Duration,
}

impl Provider {
    /// OpenAI itself, named `openai`.
    pub fn openai(key: Secret) -> Self {
        let base = Uri::from_static("https://api.openai.com/v1");
        let mut provider = Self::at("openai", Dialect::OpenaiChat, base, Some(key));
        provider.cap_field = CapField::MaxCompletionTokens;
        provider
    }

    /// Anthropic itself, named `anthropic`.
    pub fn anthropic(key: Secret) -> Self {
        let base = Uri::from_static("https://api.anthropic.com");
        Self::at("anthropic", Dialect::Anthropic, base, Some(key))
    }

    /// Any server of `dialect` at `base_url`. `None`: it wants no key.
    pub fn at(name: &str, dialect: Dialect, base_url: Uri, key: Option<Secret>) -> Self {
        Self {
            name: name.to_owned(),
            dialect,
            subset: Self::usual_subset(dialect, &base_url),
            base_url,
            credentials: key
                .map_or(CredentialSource::Nobody, |key| CredentialSource::Own(vec![key])),
            headers: Vec::new(),
            cap_field: CapField::MaxTokens,
            connect: Self::CONNECT,
        }
    }
}

impl Provider {
    /// Longest wait for a connection where nobody says anything. One takes a round trip and TLS another
    /// two: 3 s covers a slow link and one lost packet (sent again after 1 s).
    pub const CONNECT: Duration = Duration::from_secs(3);

    /// The subset of JSON Schema that is known of an API by its dialect and host: Anthropic's of every
    /// Messages API, OpenAI's `strict` of `api.openai.com`, else none.
    pub fn usual_subset(dialect: Dialect, base_url: &Uri) -> Subset {
        match dialect {
            Dialect::Anthropic => Subset::Anthropic,
            Dialect::OpenaiChat if base_url.host() == Some("api.openai.com") => {
                Subset::OpenaiStrict
            }
            Dialect::OpenaiChat => Subset::Whole,
        }
    }
}

/// Whose credentials go upstream.
#[derive(Clone, Debug)]
pub enum CredentialSource {
    /// The operator's, used in turn. Never empty.
    Own(Vec<Secret>),
    /// The caller's own key is passed on (`auth = "caller"`).
    Caller,
    /// None: a local server without keys.
    Nobody,
}

/// The name of the output cap in an `OpenAI` request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CapField {
    /// `max_tokens`, understood by most compatible servers.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, required by newer `OpenAI` models.
    MaxCompletionTokens,
}

/// A target: one model at one provider.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name in config; the key of its state.
    pub id: String,
    /// Who serves it.
    pub provider: Arc<Provider>,
    /// The provider's name of the model. `None`: the caller's own word is kept (glob routes).
    pub model: Option<String>,
    /// Whether the name is a dated snapshot or a moving alias.
    pub pinning: Pinning,
    /// The day the provider retires the model, as `YYYY-MM-DD`. `None`: not announced.
    pub retires: Option<jiff::civil::Date>,
    /// Input and output tokens the model's window holds. `None`: not checked.
    pub context_tokens: Option<u64>,
    /// The most tokens the model can write. `None`: not known.
    pub max_output_tokens: Option<u64>,
    /// What its tokens cost. `None`: not known.
    pub prices: Option<Tariff>,
    /// How far the provider can be asked to hold a schema.
    pub structured: Structured,
    /// What it takes of JSON Schema. `None`: as its provider.
    pub subset: Option<Subset>,
    /// Whether it can stream.
    pub streams: bool,
    /// How it is given the beginning of its own reply. `None`: it is not.
    pub prefill: Option<Prefill>,
    /// The largest request body it takes, in bytes. 0: not checked.
    pub max_request_bytes: u64,
    /// What the load on it is kept within.
    pub limits: Limits,
    /// When it rests, and how it comes back.
    pub breaker: Rules,
}

impl Target {
    /// How many keys its provider has; at least 1.
    pub fn keys(&self) -> usize {
        match &self.provider.credentials {
            CredentialSource::Own(keys) => keys.len().max(1),
            CredentialSource::Caller | CredentialSource::Nobody => 1,
        }
    }

    /// What tells its provider's keys from others, in their order; as many as [`Target::keys`]. `None`:
    /// it is not the provider's own.
    pub(crate) fn key_digests(&self) -> impl Iterator<Item = Option<KeyDigest>> {
        (0..self.keys()).map(|key| self.key_digest(key))
    }

    /// Where each of its keys stood in `before`, if it did; `None`: all stand where they stood.
    pub(crate) fn moved_keys(&self, before: &Self) -> Option<Vec<Option<usize>>> {
        let known: Vec<Option<KeyDigest>> = before.key_digests().collect();
        let place = |(at, key)| {
            let stays = known.get(at) == Some(&key);
            if stays { Some(at) } else { known.iter().position(|known| *known == key) }
        };
        let places: Vec<Option<usize>> = self.key_digests().enumerate().map(place).collect();
        let stays = |(at, place): (usize, &Option<usize>)| *place == Some(at);
        let all_stay = places.len() == known.len() && places.iter().enumerate().all(stays);
        (!all_stay).then_some(places)
    }

    /// What tells one of its provider's keys from others; `None`: it is not the provider's own.
    pub(crate) fn key_digest(&self, key: usize) -> Option<KeyDigest> {
        match &self.provider.credentials {
            CredentialSource::Own(keys) => keys.get(key).map(Secret::digest),
            CredentialSource::Caller | CredentialSource::Nobody => None,
        }
    }

    /// What it takes of JSON Schema.
    pub fn subset(&self) -> Subset {
        self.subset.unwrap_or(self.provider.subset)
    }
}

/// Whether a model name can change its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// A dated snapshot, or a name the operator vouches for.
    Pinned,
    /// An alias that moves to newer versions without notice.
    Alias,
}

/// How a target is given the beginning of its own reply, to go on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefill {
    /// As a last message of the assistant, and nothing else: the Messages API, and servers that do the
    /// same under Chat Completions.
    Assistant,
    /// The same, marked with `"prefix": true`: `DeepSeek`, Mistral. Chat Completions only.
    Prefix,
    /// The same, with `continue_final_message` and without `add_generation_prompt`: vLLM, `SGLang`. Chat
    /// Completions only.
    ContinueFinalMessage,
}

/// How far a target can be asked to hold a schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Structured {
    /// The schema is sent and decoding is constrained by it.
    #[default]
    JsonSchema,
    /// Only "some JSON" can be asked for.
    JsonObject,
    /// Nothing is sent; the prompt must do.
    Nothing,
}
