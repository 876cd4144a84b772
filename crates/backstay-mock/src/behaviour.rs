//! The catalogue: every way the mock can behave, by name.

use serde::Serialize;

/// A group of behaviours that fail in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Nothing is wrong with the reply.
    Healthy,
    /// An error status with the body the provider sends with it.
    Status,
    /// The connection misbehaves: reset, silent, slow, cut.
    Transport,
    /// Status 200, and the reply is damaged in one way.
    Structure,
    /// The event stream misbehaves.
    Stream,
    /// Tool calls, good and bad.
    Tools,
}

impl Family {
    /// The family's name in lower case, as `--list` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Status => "status",
            Self::Transport => "transport",
            Self::Structure => "structure",
            Self::Stream => "stream",
            Self::Tools => "tools",
        }
    }
}

/// One way to behave. Ask for it with its name as the model name.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Behaviour {
    /// The model name that picks it, without parameters.
    pub name: &'static str,
    /// Where it fails.
    pub family: Family,
    /// Parameters it takes beside the general ones ([`GENERAL_PARAMS`]); often empty.
    pub params: &'static [&'static str],
    /// What it does, in one line.
    pub summary: &'static str,
    #[serde(skip)]
    pub(crate) kind: Kind,
}

/// Parameters that every behaviour takes, with their meaning.
pub const GENERAL_PARAMS: &[(&str, &str)] = &[
    ("times", "misbehave for the first N calls of this model name since reset, then be healthy"),
    ("delay", "wait before the response head, e.g. 200ms or 1.5s (a bare number is ms); default 0"),
    ("n", "content chunks of a stream; without `size` the text grows with it"),
    ("gap", "wait between content chunks; default 0"),
    ("size", "bytes of reply text, about"),
    ("at", "content chunk after which a fault in the stream strikes; default half of them"),
    ("prompt_tokens", "prompt tokens to report"),
    ("completion_tokens", "completion tokens to report"),
    ("hold", "longest time a silent or stalled connection is held; default 10m"),
];

/// What a behaviour does, for the code that does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Healthy,
    RejectsPrefill,
    Status(Refusal),
    Transport(Wire),
    Structure(Damage),
    Stream(Snag),
    Tools(Play),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Code(u16),
    Quota429,
    Quota400,
    ContextExceeded,
    ContentPolicy,
    ModelGone,
    Page503,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Reset,
    ResetAfterHeaders,
    Silence,
    SlowFirst,
    SlowHeaders,
    ShortBody,
    HangBody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    Fenced,
    ProseAround,
    ThenProse,
    TwoObjects,
    WrongSchema,
    WrongType,
    ExtraKey,
    EnumMiss,
    InventedQuote,
    UrgentNoReview,
    WrongCategory,
    Refusal,
    QuietRefusal,
    ContentFilter,
    Truncated,
    TruncatedByCap,
    RightOnSecond,
    RightAfter,
    UnknownFinish,
    NullFinish,
    EmptyBody,
    EmptyContent,
    Page,
    JsonArray,
    ErrorIn200,
    ThinkTags,
    Unclosed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Snag {
    Cut,
    EndEarly,
    Stall,
    MalformedChunk,
    NoDone,
    HeldOpen,
    NoFinish,
    ErrorEvent,
    ByteDrip,
    SplitUtf8,
    Crlf,
    DoubleTerminal,
    ContentAfterFinish,
    KeepaliveForever,
    JsonNotStream,
    PageStream,
    Loop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Play {
    Call,
    Parallel,
    ArgsTruncated,
    ArgsInvalid,
}

/// The parameters of the `status` family.
const AFTER: &[&str] = &[
    "after=SECONDS|date|date:SECONDS|ms:N|garbage (Retry-After)",
    "should_retry=true|false (x-should-retry)",
];

const fn status(name: &'static str, code: u16, summary: &'static str) -> Behaviour {
    refusal(name, Refusal::Code(code), summary)
}

const fn refusal(name: &'static str, refusal: Refusal, summary: &'static str) -> Behaviour {
    Behaviour { name, family: Family::Status, params: AFTER, summary, kind: Kind::Status(refusal) }
}

const fn wire(
    name: &'static str,
    wire: Wire,
    params: &'static [&'static str],
    summary: &'static str,
) -> Behaviour {
    Behaviour { name, family: Family::Transport, params, summary, kind: Kind::Transport(wire) }
}

const fn damage(
    name: &'static str,
    damage: Damage,
    params: &'static [&'static str],
    summary: &'static str,
) -> Behaviour {
    Behaviour { name, family: Family::Structure, params, summary, kind: Kind::Structure(damage) }
}

const fn snag(name: &'static str, snag: Snag, summary: &'static str) -> Behaviour {
    Behaviour { name, family: Family::Stream, params: &[], summary, kind: Kind::Stream(snag) }
}

const fn play(name: &'static str, play: Play, summary: &'static str) -> Behaviour {
    Behaviour { name, family: Family::Tools, params: &[], summary, kind: Kind::Tools(play) }
}

const WAIT: &[&str] = &["wait=DURATION (default 3s)"];

static ALL: &[Behaviour] = &[
    Behaviour {
        name: "healthy",
        family: Family::Healthy,
        params: &[],
        summary: "answers as asked: schema, tools, cap and stream are honoured",
        kind: Kind::Healthy,
    },
    Behaviour {
        name: "rejects-prefill",
        family: Family::Healthy,
        params: &[],
        summary: "healthy, and 400 for a request whose last message is the assistant's",
        kind: Kind::RejectsPrefill,
    },
    status("status-400", 400, "bad request"),
    status("status-401", 401, "the key is not accepted"),
    status("status-402", 402, "billing problem"),
    status("status-403", 403, "no permission"),
    status("status-404", 404, "no such thing"),
    status("status-408", 408, "the request timed out at the provider"),
    status("status-409", 409, "conflict, worth a retry"),
    status("status-413", 413, "the request is too large"),
    status("status-422", 422, "the request cannot be processed"),
    status("status-429", 429, "rate limited"),
    status("status-500", 500, "server error"),
    status("status-502", 502, "bad gateway"),
    status("status-503", 503, "overloaded"),
    status("status-504", 504, "gateway timeout"),
    status("status-529", 529, "overloaded, as Anthropic says it"),
    refusal("quota-429", Refusal::Quota429, "429 that no wait cures: the quota is used up"),
    refusal("quota-400", Refusal::Quota400, "400 that means the spend limit is reached"),
    refusal("context-exceeded", Refusal::ContextExceeded, "the prompt is over the context window"),
    refusal("content-policy", Refusal::ContentPolicy, "400 by content policy"),
    refusal("model-gone", Refusal::ModelGone, "404: the model is retired or unknown"),
    refusal("status-503-html", Refusal::Page503, "503 with an HTML page, as a proxy sends it"),
    wire("reset", Wire::Reset, &[], "TCP reset before any byte of the response"),
    wire("reset-after-headers", Wire::ResetAfterHeaders, &[], "TCP reset right after the head"),
    wire("silence", Wire::Silence, &[], "accepts the request and never answers"),
    wire("slow-first", Wire::SlowFirst, WAIT, "first token late (a stream's head is prompt)"),
    wire("slow-headers", Wire::SlowHeaders, WAIT, "response head late"),
    wire("short-body", Wire::ShortBody, &[], "closes before Content-Length (or a stream) is full"),
    wire("hang-body", Wire::HangBody, &[], "sends half of the body, then nothing"),
    damage("fenced", Damage::Fenced, &[], "the JSON stands in a Markdown fence"),
    damage("prose-around", Damage::ProseAround, &[], "sentences before and after the JSON"),
    damage(
        "then-prose",
        Damage::ThenProse,
        &[],
        "the JSON, then sentences of `size` bytes (default 2000)",
    ),
    damage("two-objects", Damage::TwoObjects, &[], "two different objects, one after the other"),
    damage("wrong-schema", Damage::WrongSchema, &[], "a required key is missing"),
    damage("wrong-type", Damage::WrongType, &[], "an integer is sent as a string"),
    damage("extra-key", Damage::ExtraKey, &[], "a key the schema does not know"),
    damage("enum-miss", Damage::EnumMiss, &[], "a value outside its enum"),
    damage("invented-quote", Damage::InventedQuote, &[], "the quote is not in the message"),
    damage("urgent-no-review", Damage::UrgentNoReview, &[], "priority 1 with needs_human false"),
    damage("wrong-category", Damage::WrongCategory, &[], "valid JSON, another category"),
    damage("refusal", Damage::Refusal, &[], "a refusal in the dialect's own form"),
    damage("quiet-refusal", Damage::QuietRefusal, &[], "a refusal in plain text, normal finish"),
    damage("content-filter", Damage::ContentFilter, &[], "cut by the provider's filter"),
    damage("truncated", Damage::Truncated, &[], "cut at half, finish length, whatever the cap"),
    damage(
        "truncated-by-cap",
        Damage::TruncatedByCap,
        &["need=TOKENS (default 400)"],
        "cut at half when the cap asked for is below `need`",
    ),
    damage(
        "right-on-second",
        Damage::RightOnSecond,
        &[],
        "an enum miss, then right; counted per first user message",
    ),
    damage("right-after", Damage::RightAfter, &["k=N (default 2)"], "k enum misses, then right"),
    damage("unknown-finish", Damage::UnknownFinish, &[], "a finish value nobody has documented"),
    damage("null-finish", Damage::NullFinish, &[], "no finish value at all"),
    damage("empty-200", Damage::EmptyBody, &[], "status 200 and no body"),
    damage("empty-content", Damage::EmptyContent, &[], "a valid envelope around empty text"),
    damage("html-200", Damage::Page, &[], "an HTML page with status 200"),
    damage("json-array-200", Damage::JsonArray, &[], "a JSON array with status 200"),
    damage("error-in-200", Damage::ErrorIn200, &[], "an error object with status 200"),
    damage("think-tags", Damage::ThinkTags, &[], "reasoning in <think> tags before the answer"),
    damage("unclosed", Damage::Unclosed, &[], "the last brace is missing, normal finish"),
    snag("stream-cut", Snag::Cut, "the connection closes in the middle, uncleanly"),
    snag("stream-end-early", Snag::EndEarly, "a clean end of body, no finish, no terminator"),
    snag("stream-stall", Snag::Stall, "stops sending and keeps the connection open"),
    snag("malformed-chunk", Snag::MalformedChunk, "one event is half a JSON text"),
    snag("no-done", Snag::NoDone, "finish is sent, [DONE] or message_stop is not"),
    snag("held-open", Snag::HeldOpen, "as no-done, and the connection stays open"),
    snag("no-finish", Snag::NoFinish, "the terminator without a finish"),
    snag("error-event", Snag::ErrorEvent, "an error event after some content, status 200"),
    snag("byte-drip", Snag::ByteDrip, "one byte a write"),
    snag("split-utf8", Snag::SplitUtf8, "writes end inside characters of several bytes"),
    snag("crlf", Snag::Crlf, "lines end in CR LF"),
    snag("double-terminal", Snag::DoubleTerminal, "the terminator twice"),
    snag("content-after-finish", Snag::ContentAfterFinish, "content between finish and end"),
    snag("keepalive-forever", Snag::KeepaliveForever, "comments or pings and never content"),
    snag("json-not-stream", Snag::JsonNotStream, "a JSON body where a stream was asked for"),
    snag("html-stream", Snag::PageStream, "an HTML page where a stream was asked for"),
    snag("loop", Snag::Loop, "one phrase again and again, n times (default 200)"),
    play("tool-call", Play::Call, "calls the first tool of the request"),
    play("parallel-tools", Play::Parallel, "two tool calls in one reply"),
    play("tool-args-truncated", Play::ArgsTruncated, "arguments cut at half, finish length"),
    play("tool-args-invalid", Play::ArgsInvalid, "arguments that are not JSON, normal finish"),
];

/// Every behaviour, grouped by family, `healthy` first.
pub fn behaviours() -> &'static [Behaviour] {
    ALL
}

/// The behaviour of that exact name.
pub(crate) fn named(name: &str) -> Option<&'static Behaviour> {
    ALL.iter().find(|b| b.name == name)
}

/// The behaviour whose name is nearest to `name` by edit distance.
pub(crate) fn nearest(name: &str) -> &'static str {
    let wanted: Vec<char> = name.chars().take(64).collect();
    ALL.iter().map(|b| b.name).min_by_key(|known| distance(&wanted, known)).unwrap_or("healthy")
}

/// Levenshtein distance, by one row.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (b, cell) in to.iter().zip(row.iter_mut().skip(1)) {
            let swap = corner + usize::from(a != b);
            corner = *cell;
            left = swap.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit_a_model_name() {
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|b| b.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(names.iter().all(|n| n.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')));
    }

    #[test]
    fn the_nearest_name_is_found_for_a_slip() {
        assert_eq!(nearest("helthy"), "healthy");
        assert_eq!(nearest("status-430"), "status-400");
        assert_eq!(nearest("stream-cutt"), "stream-cut");
        assert_eq!(nearest("two-objekts"), "two-objects");
    }
}
