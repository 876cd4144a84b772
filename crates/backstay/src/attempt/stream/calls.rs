//! Keeps the tool calls of a stream back until the stream is over and they can be judged.
//!
//! A call is an effect: half of one, or one with wrong arguments, must not get out. Text that
//! needs no call to stand before it goes on as it comes; what waits is bounded.
//!
//! ```text
//!  text text call… call… text finish end
//!   out  out  └──── wait ──┬──────────┘
//!                  Chat: out; Messages: waits, its blocks are told in order
//! ```

use std::collections::{BTreeMap, BTreeSet};

use backstay_decide::fault::Fault;
use backstay_decide::recover::rescue::Way;
use backstay_wire::chat::{Fold, Part, Quirk};
use backstay_wire::{Delta, Dialect, Finish, Reply};
use bytes::Bytes;

use super::{Piece, recast};
use crate::attempt::{Failure, Whole, classify, fold};

/// Most bytes that wait. A stream takes some 250 bytes for a token of arguments, so this is half a
/// megabyte of them: more than any tool is called with.
const MAX_WAITING: usize = 32 << 20;

/// The events from the first call on, and what they add up to.
#[derive(Debug)]
pub(crate) struct Waiting {
    fold: Fold,
    /// [call, in the order begun] -> its index in the stream and its fragments joined.
    said: Vec<(u32, String)>,
    pieces: Vec<Piece>,
    bytes: usize,
    /// Whether all that follows waits as well, because its place in the order counts.
    in_order: bool,
    /// How many choices the stream has to bring.
    choices: usize,
}

/// Calls whose stream is over.
#[derive(Debug)]
pub(crate) struct Over {
    /// What the stream adds up to, as far as it waited.
    pub(crate) reply: Reply,
    said: Vec<(u32, String)>,
    pieces: Vec<Piece>,
    has_end: bool,
}

impl Waiting {
    /// Nothing waits yet. What `caller` is told decides what has to wait for a call.
    pub(crate) fn new(caller: Dialect) -> Self {
        Self {
            fold: Fold::default(),
            said: Vec::new(),
            pieces: Vec::new(),
            bytes: 0,
            in_order: caller == Dialect::Anthropic,
            choices: 1,
        }
    }

    /// The same, for a stream that has to bring so many choices.
    pub(crate) fn of_choices(self, choices: usize) -> Self {
        Self { choices, ..self }
    }

    /// Whether anything waits.
    pub(crate) fn has_begun(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Whether there is a call in what waits.
    pub(crate) fn has_call(&self) -> bool {
        !self.said.is_empty()
    }

    /// Whether the model has said why it stopped, in a word that is known, for every choice.
    pub(crate) fn is_finished(&self) -> bool {
        fold::is_finished(&self.fold, self.choices)
    }

    /// Whether no more can come.
    pub(crate) fn is_over(&self) -> bool {
        self.fold.end_seen()
    }

    /// Whether `piece` has to wait. A comment never has.
    pub(crate) fn takes(&self, piece: &Piece) -> bool {
        if piece.deltas.iter().any(is_any_call) {
            return true;
        }
        self.has_begun() && !piece.deltas.is_empty() && (self.in_order || !is_text(piece))
    }

    /// Keeps `piece`.
    ///
    /// # Errors
    /// The stream failed, or more waits than may.
    pub(crate) fn push(&mut self, piece: Piece) -> Result<(), Failure> {
        let calls = piece.deltas.iter().any(Delta::is_call);
        let beside = |delta: &Delta| {
            !delta.is_call()
                && !is_aside(delta)
                && !matches!(delta, Delta::Usage(_) | Delta::Unknown(_))
        };
        self.in_order |= calls && piece.deltas.iter().any(beside);
        for delta in &piece.deltas {
            self.fold.push(delta);
            match delta {
                Delta::ToolStart { index, .. } => self.say(*index, ""),
                Delta::ToolArguments { index, fragment } => self.say(*index, fragment),
                Delta::Error(error) => return Err(classify::in_stream(error.clone())),
                Delta::OtherChoice { delta, .. } if delta.is_call() => {
                    return Err(broken("a tool call in a second choice, which was not asked for"));
                }
                _ => {}
            }
        }
        // A piece costs more than its bytes, so that empty ones are bounded too.
        self.bytes += piece.raw.len() + size_of::<Piece>();
        self.pieces.push(piece);
        if self.bytes > MAX_WAITING || self.fold.fault().is_some() {
            return Err(broken(&format!("tool calls of over {MAX_WAITING} bytes of stream")));
        }
        Ok(())
    }

    /// Joins a fragment to the call of this index.
    fn say(&mut self, index: u32, fragment: &str) {
        match self.said.iter_mut().find(|(known, _)| *known == index) {
            Some((_, said)) => said.push_str(fragment),
            None => self.said.push((index, fragment.to_owned())),
        }
    }

    /// All that waits, given back.
    pub(crate) fn into_pieces(self) -> Vec<Piece> {
        self.pieces
    }

    /// What there is, now that no more comes.
    ///
    /// # Errors
    /// The stream is not whole.
    pub(crate) fn over(self) -> Result<Over, Failure> {
        let has_end = self.fold.end_seen();
        let reply = fold::ended(self.fold, self.choices)?;
        Ok(Over { reply, said: self.said, pieces: self.pieces, has_end })
    }
}

impl Over {
    /// A whole reply, of which nothing is out yet. It keeps its events where the caller may get
    /// them as they are.
    pub(crate) fn whole(self, dialect: Dialect, told: Told) -> Result<Whole, Failure> {
        let changed = self.changed(&self.final_calls(&[])?);
        let as_they_are = changed.is_empty() && self.reply.quirks.is_empty();
        let events = (dialect == told.caller && as_they_are).then(|| {
            let wanted = |piece: &&Piece| told.usage || !piece.is_usage();
            let mut raw: Vec<u8> = Vec::new();
            for piece in self.pieces.iter().filter(wanted) {
                raw.extend_from_slice(&piece.raw);
            }
            if !self.has_end {
                raw.extend_from_slice(dialect.terminal_event());
            }
            Bytes::from(raw)
        });
        Ok(Whole { reply: self.reply, raw: None, events, dialect })
    }

    /// The pieces in the provider's own form, with these arguments for the calls (by their place
    /// among the calls). Where nothing changed they are as they came.
    pub(crate) fn in_own_form(
        self,
        dialect: Dialect,
        new: &[(usize, String)],
    ) -> Result<Vec<Piece>, Failure> {
        let mut calls = self.final_calls(new)?;
        let changed = self.changed(&calls);
        let quirks = &self.reply.quirks;
        if changed.is_empty() && quirks.is_empty() {
            return Ok(self.pieces);
        }
        // Blocks of this dialect are known by their index alone.
        if dialect == Dialect::Anthropic && quirks.contains(&Quirk::IndexShared) {
            return Err(broken("two tool calls of the stream have the same index"));
        }
        calls.retain(|call| dialect == Dialect::OpenaiChat || changed.contains(&call.index));
        let is_finish_missing = quirks.contains(&Quirk::FinishMissing);
        let recast = recast::pieces(dialect, self.pieces, &calls);
        let mut pieces = recast
            .ok_or_else(|| broken("mended tool calls have no place in the stream's events"))?;
        if is_finish_missing {
            let raw = recast::finish(dialect, &pieces, self.reply.usage.output);
            finish(&mut pieces, raw);
        }
        Ok(pieces)
    }

    /// The pieces as deltas in which every call is said at once.
    pub(crate) fn anew(mut self, new: &[(usize, String)]) -> Result<Vec<Piece>, Failure> {
        let mut calls: BTreeMap<u32, String> =
            self.final_calls(new)?.into_iter().map(|call| (call.index, call.arguments)).collect();
        for piece in &mut self.pieces {
            let mut told = Vec::with_capacity(piece.deltas.len());
            for delta in std::mem::take(&mut piece.deltas) {
                let Delta::ToolStart { index, .. } = delta else {
                    if !delta.is_call() {
                        told.push(delta);
                    }
                    continue;
                };
                let Some(fragment) = calls.remove(&index) else { continue };
                told.push(delta);
                if !fragment.is_empty() {
                    told.push(Delta::ToolArguments { index, fragment });
                }
            }
            // Empty, it would be a comment.
            if told.is_empty() {
                told.push(Delta::Alive);
            }
            piece.deltas = told;
        }
        if self.reply.quirks.contains(&Quirk::FinishMissing) {
            finish(&mut self.pieces, Bytes::new());
        }
        Ok(self.pieces)
    }

    /// The indices of those of `calls`, all in the order begun, whose arguments are not what their
    /// fragments say.
    fn changed(&self, calls: &[recast::Call]) -> BTreeSet<u32> {
        let told = calls.iter().zip(&self.said);
        let changed = told.filter(|(call, (_, said))| call.arguments != *said);
        changed.map(|(call, _)| call.index).collect()
    }

    /// Every call as it is to be told, in the order begun.
    fn final_calls(&self, new: &[(usize, String)]) -> Result<Vec<recast::Call>, Failure> {
        let parts = self.reply.choices.first().map(|choice| choice.parts.as_slice());
        let parts = parts.unwrap_or_default().iter();
        let mut calls = Vec::new();
        for part in parts {
            let Part::ToolCall { id, name, arguments } = part else { continue };
            let place = calls.len();
            let amended = new.iter().find(|(call, _)| *call == place).map(|(_, text)| text);
            let Some((index, _)) = self.said.get(place) else { break };
            calls.push(recast::Call {
                index: *index,
                id: id.clone(),
                name: name.clone(),
                arguments: amended.unwrap_or(arguments).clone(),
            });
        }
        if calls.len() == self.said.len() {
            return Ok(calls);
        }
        Err(broken("the tool calls of the stream cannot be told apart"))
    }
}

/// Puts the finish that the provider left out before the end; `raw` says it.
fn finish(pieces: &mut Vec<Piece>, raw: Bytes) {
    let is_end = |piece: &Piece| piece.deltas.contains(&Delta::End);
    let at = pieces.iter().position(is_end).unwrap_or(pieces.len());
    let deltas = vec![Delta::Finish { finish: Finish::ToolUse, word: None }];
    pieces.insert(at, Piece { raw, deltas });
}

/// What the caller is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// In which dialect.
    pub(crate) caller: Dialect,
    /// Whether with a usage event.
    pub(crate) usage: bool,
    /// How many choices of it there may be.
    pub(crate) choices: usize,
    /// Whether the reply goes on with what the caller has: then it may have nothing to add.
    pub(crate) way: Way,
}

fn broken(note: &str) -> Failure {
    Failure::new(Fault::MalformedReply, note)
}

/// Whether `delta` is a piece of a tool call of any choice.
fn is_any_call(delta: &Delta) -> bool {
    match delta {
        Delta::OtherChoice { delta, .. } => delta.is_call(),
        delta => delta.is_call(),
    }
}

/// Whether `delta` adds nothing to what is told.
fn is_aside(delta: &Delta) -> bool {
    matches!(delta, Delta::Alive | Delta::Logprobs(_))
}

/// Whether `piece` is text or reasoning and nothing else that counts.
fn is_text(piece: &Piece) -> bool {
    let passes = |delta: &Delta| {
        is_aside(delta)
            || matches!(delta, Delta::Text(_) | Delta::Reasoning(_) | Delta::OtherChoice { .. })
    };
    piece.deltas.iter().all(passes) && piece.deltas.iter().any(Delta::is_content)
}
