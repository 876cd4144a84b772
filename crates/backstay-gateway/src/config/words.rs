//! The values a config file is made of: lengths of time, days, secrets and fixed words.

use std::fmt;
use std::time::Duration;

use backstay::policy::{OnSemantic, RefusalPolicy, RouteMode, Structured, Upstream};
use backstay_wire::lower::Subset;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Runtime;

/// A length of time, written as a whole number and `ms`, `s`, `m` or `h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Length(pub(super) Duration);

/// A limit of time: so long, or as measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerText {
    /// As measured.
    Auto,
    /// So long.
    Set(Length),
}

impl TimerText {
    /// How long, where that is said.
    pub(super) const fn set(self) -> Option<Length> {
        match self {
            Self::Auto => None,
            Self::Set(length) => Some(length),
        }
    }
}

/// A day, written as "2027-03-01" with or without quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Day(pub(super) jiff::civil::Date);

/// A secret, or where to find it.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected { env = \"NAME\" } or text in quotes")]
pub(super) enum KeyText {
    /// The value of an environment variable.
    Env(EnvTable),
    /// The text itself. For a key this is discouraged: files are read, copied and committed.
    Literal(String),
}

/// The value of an environment variable.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EnvTable {
    /// The variable's name.
    pub(super) env: String,
}

/// A template, or where to find it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a path, or { inline = \"…\" }")]
#[schemars(extend("x-type" = "path or table"))]
pub(super) enum TemplateText {
    /// Its text.
    Inline(InlineTable),
    /// The file it stands in.
    Path(String),
}

/// A text that stands in the file itself.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InlineTable {
    /// The text.
    pub(super) inline: String,
}

/// One step of a route: a model, or several that share the calls.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected the name of a model, or a list of names")]
#[schemars(extend("x-type" = "name or list of names"))]
pub(super) enum Tier {
    /// One model.
    One(String),
    /// Any of these.
    Any(Vec<String>),
}

impl Tier {
    /// Its models.
    pub(super) fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Any(names) => names,
        }
    }
}

/// A provider's wire format.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum DialectWord {
    /// `OpenAI` Chat Completions and everything compatible with it.
    OpenaiChat,
    /// Anthropic Messages.
    Anthropic,
}

/// Whose key goes upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum AuthWord {
    /// Those of `api_keys`.
    Own,
    /// The caller's own.
    Caller,
    /// None.
    None,
}

/// The name under which the output cap is sent.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum CapWord {
    /// Understood by most compatible servers.
    MaxTokens,
    /// Required by newer `OpenAI` models.
    MaxCompletionTokens,
}

/// Whether a route acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RouteModeWord {
    /// It does.
    Normal,
    /// It only says what it would do.
    Shadow,
}

impl RouteModeWord {
    pub(super) fn mode(self) -> RouteMode {
        match self {
            Self::Normal => RouteMode::Normal,
            Self::Shadow => RouteMode::Shadow,
        }
    }
}

/// How far a model can be held to a schema.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StructuredWord {
    /// The schema is sent, and decoding is constrained by it.
    JsonSchema,
    /// Only "some JSON" can be asked for.
    JsonObject,
    /// Nothing is sent.
    None,
}

impl StructuredWord {
    pub(super) fn structured(self) -> Structured {
        match self {
            Self::JsonSchema => Structured::JsonSchema,
            Self::JsonObject => Structured::JsonObject,
            Self::None => Structured::Nothing,
        }
    }
}

/// What a provider takes of JSON Schema.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum SubsetWord {
    /// OpenAI's `strict: true`.
    OpenaiStrict,
    /// Anthropic's structured output.
    Anthropic,
    /// Gemini's `responseJsonSchema`.
    GeminiJsonSchema,
    /// Gemini's `responseSchema`.
    GeminiResponseSchema,
    /// vLLM with xgrammar.
    Xgrammar,
    /// llama.cpp.
    LlamaCpp,
    /// Ollama.
    Ollama,
    /// Not known: schemas go as they are.
    None,
}

impl SubsetWord {
    pub(super) fn subset(self) -> Subset {
        match self {
            Self::OpenaiStrict => Subset::OpenaiStrict,
            Self::Anthropic => Subset::Anthropic,
            Self::GeminiJsonSchema => Subset::GeminiJsonSchema,
            Self::GeminiResponseSchema => Subset::GeminiResponseSchema,
            Self::Xgrammar => Subset::Xgrammar,
            Self::LlamaCpp => Subset::LlamaCpp,
            Self::Ollama => Subset::Ollama,
            Self::None => Subset::Whole,
        }
    }
}

/// How a plain call is asked of the provider.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum UpstreamWord {
    /// Streamed when the output cap is unknown or above 1,000 tokens.
    Auto,
    /// Streamed wherever the target can.
    Stream,
    /// As the caller asked.
    AsAsked,
}

impl UpstreamWord {
    pub(super) fn upstream(self) -> Upstream {
        match self {
            Self::Auto => Upstream::Auto,
            Self::Stream => Upstream::Stream,
            Self::AsAsked => Upstream::AsAsked,
        }
    }
}

/// How the work is spread over threads.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RuntimeWord {
    /// One runtime a core.
    PerCore,
    /// One runtime for all cores.
    Shared,
}

impl RuntimeWord {
    pub(super) fn runtime(self) -> Runtime {
        match self {
            Self::PerCore => Runtime::PerCore,
            Self::Shared => Runtime::Shared,
        }
    }
}

/// What a refusal leads to.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RefusalWord {
    /// The last resort, else the provider's reason.
    LastResort,
    /// The next tier.
    NextTier,
}

impl RefusalWord {
    pub(super) fn on_refusal(self) -> RefusalPolicy {
        match self {
            Self::LastResort => RefusalPolicy::LastResort,
            Self::NextTier => RefusalPolicy::NextTier,
        }
    }
}

/// What a stream leads to that breaks after its release.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum AfterReleaseWord {
    /// An error in the stream.
    Error,
    /// Another reply, from where the first broke off, while it is the same.
    Restart,
    /// A continuation where a target takes one, else as `restart`.
    Continue,
}

/// How a target is given the beginning of its reply.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PrefillWord {
    /// As the assistant's last message.
    Assistant,
    /// The same, marked as a prefix.
    Prefix,
    /// The same, with vLLM's fields.
    ContinueFinalMessage,
}

/// What becomes of a call whose caller leaves.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum DisconnectWord {
    /// The provider is cancelled.
    Cancel,
    /// The reply is read to its end.
    Finish,
}

/// What a broken rule leads to.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum SemanticWord {
    /// The target is asked again, with the errors.
    Reask,
    /// The call fails with the rule's message.
    Reject,
    /// The call ends at the last resort, where a person looks at it.
    Human,
}

impl SemanticWord {
    pub(super) fn on_semantic(self) -> OnSemantic {
        match self {
            Self::Reask => OnSemantic::Reask,
            Self::Reject => OnSemantic::Reject,
            Self::Human => OnSemantic::Human,
        }
    }
}

/// The longest time a file may ask for: longer is a slip of the unit.
pub(super) const MAX_LENGTH: Duration = Duration::from_hours(24);

impl Length {
    /// So many seconds.
    pub(super) const fn seconds(count: u64) -> Self {
        Self(Duration::from_secs(count))
    }

    /// Reads "30s" and its like; `None` for anything else or more than [`MAX_LENGTH`].
    fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|c: char| !c.is_ascii_digit())?;
        let (count, unit) = text.split_at_checked(digits)?;
        let millis_each = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        let length = Duration::from_millis(count.parse::<u64>().ok()?.checked_mul(millis_each)?);
        (length <= MAX_LENGTH).then_some(Self(length))
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(1_000) {
            return write!(f, "{}s", millis / 1_000);
        }
        write!(f, "{millis}ms")
    }
}

struct LengthVisitor;

impl Visitor<'_> for LengthVisitor {
    type Value = Length;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a length of time such as \"1500ms\", \"30s\" or \"2m\", at most \"24h\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Length, E> {
        Length::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(LengthVisitor)
    }
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Length {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Length".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$", "x-type": "length of time" })
    }
}

impl<'de> Deserialize<'de> for TimerText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimerVisitor;
        impl Visitor<'_> for TimerVisitor {
            type Value = TimerText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                LengthVisitor.expecting(f)?;
                f.write_str(", or \"auto\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<TimerText, E> {
                if text == "auto" {
                    return Ok(TimerText::Auto);
                }
                let length = Length::parse(text);
                length
                    .map(TimerText::Set)
                    .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(TimerVisitor)
    }
}

impl JsonSchema for TimerText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TimerText".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(auto|[0-9]+(ms|s|m|h))$",
            "x-type": "length of time, or `\"auto\"`"
        })
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a day such as \"2027-03-01\"")]
        enum Written {
            Plain(toml::value::Datetime),
            Quoted(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Plain(moment) => moment.to_string(),
            Written::Quoted(text) => text,
        };
        let wrong =
            || D::Error::invalid_value(Unexpected::Str(&text), &"a day such as \"2027-03-01\"");
        if text.len() != "2027-03-01".len() {
            return Err(wrong());
        }
        text.parse().map(Self).map_err(|_| wrong())
    }
}

impl JsonSchema for Day {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Day".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date", "x-type": "day" })
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(table) => write!(f, "Env({})", table.env),
            Self::Literal(text) => write!(f, "Literal({} bytes)", text.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_needs_a_whole_number_and_a_unit() {
        for (text, millis) in
            [("0s", 0), ("1500ms", 1_500), ("30s", 30_000), ("2m", 120_000), ("24h", 86_400_000)]
        {
            assert_eq!(Length::parse(text).map(|l| l.0.as_millis()), Some(millis), "{text}");
        }
        for text in
            ["", "30", "s", "-1s", "1.5s", "30 s", "30S", "25h", "99999999999999999999s", "é"]
        {
            assert_eq!(Length::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_literal_key_is_not_in_its_debug_text() {
        assert_eq!(format!("{:?}", KeyText::Literal("sk-1".into())), "Literal(4 bytes)");
    }
}
