//! Builds a whole reply from the deltas of a stream, and judges whether it is whole.
//!
//! Parts stand in the order in which they began. Text joins the text before it, reasoning the
//! reasoning before it that has no signature yet; a tool call is found by its index. Counters
//! overwrite. What comes after the protocol's end is noted as unknown and left out.
//!
//! Some servers send all arguments so far in each fragment, or the whole arguments again at the
//! end. That shows only in the end: where the fragments in a row are no JSON, but the last one is
//! and each one begins with the one before, or where they are one JSON value several times, that
//! value is taken and the quirk noted. Anything else stays as it came, for a validator to refuse:
//! two values that differ, or a resending that was cut.

use std::collections::{BTreeMap, HashMap};

use serde::de::IgnoredAny;

use super::Delta;
use super::error::ProviderError;
use super::quirk::Quirk;
use super::reply::{Choice, Finish, Reply, Usage};
use super::request::Part;

/// Collects deltas; [`Fold::into_reply`] gives what they add up to, [`Fold::outcome`] whether that
/// is an answer.
#[derive(Clone, Debug)]
pub struct Fold {
    id: String,
    model: String,
    parts: Vec<Part>,
    /// Tool index -> the call that it names now.
    tools: HashMap<u32, Slot>,
    finish: Option<(Finish, Option<String>)>,
    /// Choice -> what it adds up to, for those after the first.
    others: BTreeMap<u32, Self>,
    usage: Usage,
    unknown: Vec<String>,
    quirks: Vec<Quirk>,
    error: Option<ProviderError>,
    content: bool,
    ended: bool,
    bytes: usize,
    limit: usize,
    fault: Option<FoldFault>,
}

/// Where a call stands among the parts, and where its fragments end.
#[derive(Clone, Debug)]
struct Slot {
    place: usize,
    ends: Vec<usize>,
}

/// How a fold ended, as far as the deltas show. How the body ended is for the caller to add: after
/// a reset connection a `Whole` with a missing terminator is not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoldEnd {
    /// A finish that is known was given, and no error. It may be `truncated` or `refused`.
    Whole {
        /// Whether the protocol's own end came too.
        terminator: Terminator,
    },
    /// The protocol's end came, but no finish or one that is not known: fail closed. Some servers
    /// send `[DONE]` after an abort.
    NoFinish,
    /// Neither a finish nor the protocol's end: the stream was cut.
    NoEnd,
    /// The provider reported a failure inside the stream.
    Failed(ProviderError),
    /// The reply broke the bound; it is cut there.
    TooLarge(FoldFault),
}

/// Whether the protocol's own end was seen: `[DONE]`, `message_stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminator {
    /// It came.
    Seen,
    /// The stream stopped after its finish without it; some servers do that.
    Missing,
}

/// A reply that is larger than the fold may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the streamed reply is larger than {limit} bytes")]
pub struct FoldFault {
    /// The bound, in bytes of text, reasoning, refusal and tool calls together; a part and a
    /// fragment of arguments cost a few bytes beside their text.
    pub limit: usize,
}

/// What one reply may hold: at 4 bytes a token about 4 million tokens, far over any model's
/// output, and small beside a gateway's memory.
const MAX_BYTES: usize = 16 << 20;
/// What a part costs beside its text, so that empty parts are bounded too.
const PART_COST: usize = 64;
/// Distinct unknown elements that are kept; one alert needs no more.
const MAX_UNKNOWN: usize = 64;
/// The longest name of one, in bytes.
const MAX_UNKNOWN_NAME: usize = 200;

impl Default for Fold {
    fn default() -> Self {
        Self::new(MAX_BYTES)
    }
}

impl Fold {
    /// A fold that holds at most `limit` bytes of text, reasoning, refusal and tool calls.
    /// [`Fold::default`] takes 16 MiB.
    pub fn new(limit: usize) -> Self {
        Self {
            id: String::new(),
            model: String::new(),
            parts: Vec::new(),
            tools: HashMap::new(),
            finish: None,
            others: BTreeMap::new(),
            usage: Usage::default(),
            unknown: Vec::new(),
            quirks: Vec::new(),
            error: None,
            content: false,
            ended: false,
            bytes: 0,
            limit,
            fault: None,
        }
    }

    /// Adds one delta. After [`Fold::fault`] nothing more is kept.
    pub fn push(&mut self, delta: &Delta) {
        if self.ended {
            if !matches!(delta, Delta::Alive | Delta::End) {
                self.odd(Quirk::AfterEnd);
            }
            return;
        }
        if !self.afford(delta) {
            return;
        }
        self.content |= delta.is_content();
        match delta {
            Delta::Start { id, model } => {
                keep_first(&mut self.id, id);
                keep_first(&mut self.model, model);
            }
            Delta::Text(piece) => self.text(piece),
            Delta::Reasoning(piece) => self.reasoning(piece),
            Delta::Signature(signature) => self.signature(signature),
            Delta::Refusal(piece) => self.refusal(piece),
            Delta::ToolStart { index, id, name } => self.tool_start(*index, id, name),
            Delta::ToolArguments { index, fragment } => self.tool_arguments(*index, fragment),
            Delta::Finish { finish, word } => self.finish(*finish, word.as_deref()),
            Delta::Usage(usage) => self.usage.overwrite(*usage),
            Delta::Error(error) => {
                self.error.get_or_insert_with(|| error.clone());
            }
            Delta::End => {
                self.ended = true;
                self.infer_finish();
            }
            Delta::Alive | Delta::Logprobs(_) => {}
            Delta::Quirk(quirk) => self.odd(*quirk),
            // The whole bound is kept here.
            Delta::OtherChoice { choice, delta } => {
                self.others.entry(*choice).or_insert_with(|| Self::new(usize::MAX)).push(delta);
            }
            Delta::Untold(what) | Delta::Unknown(what) => self.note(what),
        }
    }

    /// Whether any text, reasoning, refusal or tool call came.
    pub fn has_content(&self) -> bool {
        self.content
    }

    /// How the model stopped in the first choice. `None`: not said yet.
    pub fn finish_seen(&self) -> Option<Finish> {
        self.finish.as_ref().map(|(finish, _)| *finish)
    }

    /// How each choice stopped, the first one first. `None`: it has not said.
    pub fn finishes(&self) -> impl Iterator<Item = Option<Finish>> {
        let others = self.others.values().map(Self::finish_seen);
        std::iter::once(self.finish_seen()).chain(others)
    }

    /// Whether the model has said why it stopped, in a word that is known, for every choice that
    /// began.
    pub fn is_finished(&self) -> bool {
        self.finishes().all(|finish| finish.is_some_and(|finish| finish != Finish::Unknown))
    }

    /// Whether the protocol's own end came.
    pub fn end_seen(&self) -> bool {
        self.ended
    }

    /// The first failure the provider reported.
    pub fn error_seen(&self) -> Option<&ProviderError> {
        self.error.as_ref()
    }

    /// Tokens used, as far as the provider said.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The bound that was broken, if it was: nothing is kept since, and the call should end.
    pub fn fault(&self) -> Option<FoldFault> {
        self.fault
    }

    /// What the deltas so far amount to if no more come.
    ///
    /// An answer needs a finish that is known. The terminator alone is not one; a missing
    /// terminator after a known finish is forgiven and flagged.
    pub fn outcome(&self) -> FoldEnd {
        if let Some(error) = &self.error {
            return FoldEnd::Failed(error.clone());
        }
        if let Some(fault) = self.fault {
            return FoldEnd::TooLarge(fault);
        }
        match (self.is_finished(), self.ended) {
            (true, true) => FoldEnd::Whole { terminator: Terminator::Seen },
            (true, false) => FoldEnd::Whole { terminator: Terminator::Missing },
            (false, true) => FoldEnd::NoFinish,
            (false, false) => FoldEnd::NoEnd,
        }
    }

    /// The reply so far, with every choice that said anything. `created` stays 0: deltas do not carry it. A refusal
    /// without words of its own is an empty refusal part, as in a whole reply.
    pub fn into_reply(mut self) -> Reply {
        self.settle_calls();
        let (finish, finish_word) = self.finish.unwrap_or_default();
        if finish == Finish::Refused && !self.parts.iter().any(|p| matches!(p, Part::Refusal(_))) {
            self.parts.push(Part::Refusal(String::new()));
        }
        let mut choices = vec![Choice { parts: self.parts, finish, finish_word }];
        for other in self.others.into_values() {
            let other = other.into_reply();
            choices.extend(other.choices);
            self.unknown.extend(other.unknown);
            for quirk in other.quirks {
                if !self.quirks.contains(&quirk) {
                    self.quirks.push(quirk);
                }
            }
        }
        Reply {
            id: self.id,
            model: self.model,
            created: 0,
            choices,
            usage: self.usage,
            unknown: self.unknown,
            quirks: self.quirks,
            logprobs: Vec::new(),
        }
    }

    /// Books what `delta` costs; `false` when the bound is broken.
    fn afford(&mut self, delta: &Delta) -> bool {
        let is_new = match delta {
            Delta::OtherChoice { choice, .. } => !self.others.contains_key(choice),
            _ => false,
        };
        let cost = cost(delta) + if is_new { PART_COST } else { 0 };
        if cost == 0 {
            return true;
        }
        if self.fault.is_some() {
            return false;
        }
        if cost > self.limit - self.bytes {
            self.fault = Some(FoldFault { limit: self.limit });
            return false;
        }
        self.bytes += cost;
        true
    }

    fn text(&mut self, piece: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(text)) => text.push_str(piece),
            _ => self.parts.push(Part::Text(piece.to_owned())),
        }
    }

    fn reasoning(&mut self, piece: &str) {
        match self.parts.last_mut() {
            Some(Part::Thinking { text, signature: None }) => text.push_str(piece),
            _ => self.parts.push(Part::Thinking { text: piece.to_owned(), signature: None }),
        }
    }

    fn signature(&mut self, words: &str) {
        match self.parts.last_mut() {
            Some(Part::Thinking { signature: signature @ None, .. }) => {
                *signature = Some(words.to_owned());
            }
            _ => self
                .parts
                .push(Part::Thinking { text: String::new(), signature: Some(words.to_owned()) }),
        }
    }

    fn refusal(&mut self, piece: &str) {
        let open = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Refusal(words) => Some(words),
            _ => None,
        });
        match open {
            Some(words) => words.push_str(piece),
            None => self.parts.push(Part::Refusal(piece.to_owned())),
        }
    }

    /// Name and id are set once; the same index with another id is another call.
    fn tool_start(&mut self, index: u32, id: &str, name: &str) {
        let place = self.tools.get(&index).map(|slot| slot.place);
        if let Some(Part::ToolCall { id: known, name: called, .. }) =
            place.and_then(|place| self.parts.get_mut(place))
        {
            if id.is_empty() || known.is_empty() || known == id {
                keep_first(known, id);
                keep_first(called, name);
                return;
            }
            self.odd(Quirk::IndexShared);
        }
        self.tools.insert(index, Slot { place: self.parts.len(), ends: Vec::new() });
        let (id, name) = (id.to_owned(), name.to_owned());
        self.parts.push(Part::ToolCall { id, name, arguments: String::new() });
    }

    fn tool_arguments(&mut self, index: u32, fragment: &str) {
        if !self.tools.contains_key(&index) {
            self.odd(Quirk::ArgumentsFirst);
            self.tool_start(index, "", "");
        }
        if let Some(slot) = self.tools.get_mut(&index)
            && let Some(Part::ToolCall { arguments, .. }) = self.parts.get_mut(slot.place)
        {
            arguments.push_str(fragment);
            slot.ends.push(arguments.len());
        }
    }

    /// Takes arguments that were sent again for what they are.
    fn settle_calls(&mut self) {
        for slot in std::mem::take(&mut self.tools).into_values() {
            let Some(Part::ToolCall { arguments, .. }) = self.parts.get_mut(slot.place) else {
                continue;
            };
            if slot.ends.len() > 1
                && let Some(once) = sent_again(arguments, &slot.ends)
            {
                *arguments = once.to_owned();
                self.odd(Quirk::ArgumentsAgain);
            }
        }
    }

    /// A stream that came to its end without a reason to stop, but with tool calls that are whole
    /// each, waits for its tools: half a call is never whole JSON. Text alone shows no such thing.
    fn infer_finish(&mut self) {
        if self.finish.is_some() || self.error.is_some() || self.fault.is_some() {
            return;
        }
        self.settle_calls();
        let mut calls = self.parts.iter().filter_map(|part| match part {
            Part::ToolCall { name, arguments, .. } => Some((name, arguments)),
            _ => None,
        });
        let is_whole = |(name, arguments): (&String, &String)| {
            !name.is_empty() && arguments.trim_start().starts_with('{') && is_json(arguments)
        };
        if calls.clone().next().is_some() && calls.all(is_whole) {
            self.finish = Some((Finish::ToolUse, None));
            self.odd(Quirk::FinishMissing);
        }
    }

    /// The last word counts, but null takes nothing back.
    fn finish(&mut self, finish: Finish, word: Option<&str>) {
        if self.finish.is_some() && finish == Finish::Unknown && word.is_none() {
            return;
        }
        self.finish = Some((finish, word.map(str::to_owned)));
    }

    fn odd(&mut self, quirk: Quirk) {
        if !self.quirks.contains(&quirk) {
            self.quirks.push(quirk);
        }
    }

    fn note(&mut self, what: &str) {
        let what = what.get(..what.floor_char_boundary(MAX_UNKNOWN_NAME)).unwrap_or_default();
        if self.unknown.len() < MAX_UNKNOWN && !self.unknown.iter().any(|known| known == what) {
            self.unknown.push(what.to_owned());
        }
    }
}

/// What a delta costs of the bound.
fn cost(delta: &Delta) -> usize {
    match delta {
        Delta::Text(piece) | Delta::Reasoning(piece) | Delta::Refusal(piece) => piece.len(),
        Delta::Signature(piece) => piece.len() + PART_COST,
        Delta::ToolStart { id, name, .. } => id.len() + name.len() + PART_COST,
        Delta::ToolArguments { fragment, .. } => fragment.len() + size_of::<usize>(),
        Delta::OtherChoice { delta, .. } => cost(delta),
        Delta::Start { .. }
        | Delta::Finish { .. }
        | Delta::Usage(_)
        | Delta::Error(_)
        | Delta::End
        | Delta::Alive
        | Delta::Logprobs(_)
        | Delta::Quirk(_)
        | Delta::Untold(_)
        | Delta::Unknown(_) => 0,
    }
}

fn keep_first(known: &mut String, new: &str) {
    if known.is_empty() {
        new.clone_into(known);
    }
}

/// The one value that `arguments`, whose fragments end at `ends`, was meant to be; `None` where
/// they are valid as they stand, or no resending explains them.
fn sent_again<'a>(arguments: &'a str, ends: &[usize]) -> Option<&'a str> {
    if is_json(arguments) {
        return None;
    }
    let mut begin = 0;
    let mut last = "";
    let mut grows = true;
    for end in ends {
        let piece = arguments.get(begin..*end)?;
        grows = grows && piece.starts_with(last);
        (begin, last) = (*end, piece);
    }
    if grows && is_json(last) {
        return Some(last);
    }
    let mut values = serde_json::Deserializer::from_str(arguments).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let (once, mut rest) = arguments.split_at_checked(values.byte_offset())?;
    let blank = |c| matches!(c, ' ' | '\n' | '\r' | '\t');
    let once = once.trim_matches(blank);
    while let Some(after) = rest.trim_start_matches(blank).strip_prefix(once) {
        rest = after;
    }
    rest.trim_start_matches(blank).is_empty().then_some(once)
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}
