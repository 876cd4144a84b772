//! Whether a request fits a model's window: a sure bound first, a better count only near the limit.
//!
//! The bound takes every byte for a token, so what passes it fits for certain and nothing has to
//! be counted. Only when the bound comes near the window is there a better count: by the bytes a
//! token took in this target's past calls, else by the text itself, four characters a token.
//! Pictures are counted by the piece, never by the length of their base64.

use backstay_decide::budget::{self, Fits, Margin, OverBudget};
use backstay_wire::chat::Part;
use backstay_wire::tokens::Ratio;
use backstay_wire::{Chat, tokens};

use super::Contract;
use crate::route::Prompt;

/// Tokens taken for one picture: the most a large one costs at the two big providers is near this.
const PICTURE: u64 = 1_600;

/// What the request for a target has beside the caller's body: schemas as the target takes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Bytes the body grows by, at most. 0: it goes as it is.
    pub bytes: u64,
    /// Bytes of schemas that the model reads and that no message of the caller's holds, its own
    /// response format among them; of a tool's parameters what they grow by.
    pub read: u64,
}

impl Contract {
    /// Checks that prompt and output cap fit `window` with a tenth to spare, with what is `added`
    /// for the target. `learned` says what this target's past calls tell of a body of this size, the
    /// addition included, and is asked only near the limit; `None`: too little is known.
    ///
    /// # Errors
    /// The sum that does not fit.
    pub fn fits(
        &self,
        window: u64,
        added: Added,
        learned: impl FnOnce() -> Option<u64>,
    ) -> Result<Fits, OverBudget> {
        let cap = self.cap.tokens.unwrap_or_default();
        let bound = tokens::upper_bound(self.ask.body.len() as u64 + added.bytes);
        if !budget::wants_better_count(bound.saturating_add(cap), window) {
            return budget::check(bound, cap, window, Margin::TENTH);
        }
        let learned = learned().filter(|_| !self.may_hold_pictures());
        let counted = || Some(self.counted()?.saturating_add(added.read.div_ceil(tokens::ROUGH)));
        let prompt = learned.or_else(counted).unwrap_or(bound);
        budget::check(prompt.min(bound), cap, window, Margin::TENTH)
    }

    /// Whether the body may hold pictures or files, whose bytes say nothing of their tokens.
    pub(crate) fn may_hold_pictures(&self) -> bool {
        *self.pictures.get_or_init(|| may_hold_pictures(&self.ask.body))
    }

    /// The estimated tokens of the request, counted when first needed. `None`: it cannot be read.
    fn counted(&self) -> Option<u64> {
        *self.counted.get_or_init(|| self.neutral().ok().map(count))
    }
}

/// As [`Contract::may_hold_pictures`]. Costs a pass over `body` for each of four words.
pub(crate) fn may_hold_pictures(body: &[u8]) -> bool {
    let words = [&b"\"image"[..], b"\"file", b"\"document", b"\"input_audio"];
    words.iter().any(|word| memchr::memmem::find(body, word).is_some())
}

/// Bodies from this size on may be mostly pictures, whose bytes say nothing of their tokens.
const MAY_BE_PICTURES: usize = 32 << 10;

impl Prompt for Contract {
    fn effect(&self) -> Option<&'static str> {
        self.effect()
    }

    fn input(&self, bytes: u64, learned: &Ratio) -> u64 {
        if self.ask.body.len() >= MAY_BE_PICTURES && self.may_hold_pictures() {
            return self.counted().unwrap_or(bytes / 4).min(bytes);
        }
        learned.estimate(bytes).unwrap_or(bytes / 4)
    }
}

/// The estimated tokens of everything a model reads in `chat`: four characters a token, as S2 and
/// OpenAI's own rule of thumb have it. The tenth held back of the window is for its error.
fn count(chat: &Chat) -> u64 {
    let system: u64 = chat.system.iter().map(part).sum();
    let turns: u64 = chat.turns.iter().flat_map(|turn| &turn.parts).map(part).sum();
    let tools = chat
        .tools
        .iter()
        .map(|tool| tokens::rough(&tool.parameters.to_string()) + tokens::rough(&tool.description));
    system + turns + tools.sum::<u64>()
}

fn part(part: &Part) -> u64 {
    match part {
        Part::Text(text) | Part::Refusal(text) | Part::Thinking { text, .. } => tokens::rough(text),
        Part::Image { .. } => PICTURE,
        Part::ToolCall { name, arguments, .. } => tokens::rough(name) + tokens::rough(arguments),
        Part::ToolResult { parts, .. } => parts.iter().map(self::part).sum(),
        Part::Other(value) => tokens::rough(&value.to_string()),
    }
}
