//! Whether a request fits a model's window: a sure bound first, a better count only near the limit.
//!
//! The bound takes every byte for a token, so what passes it fits for certain and nothing has to
//! be counted. Only when the bound comes near the window is the request read and its text counted,
//! by the bytes a token took in this target's past replies (4 characters when nothing is known).
//! Pictures are counted by the piece, never by the length of their base64.

use backstay_decide::budget::{self, Fits, Margin, OverBudget};
use backstay_wire::chat::Part;
use backstay_wire::{Chat, tokens};

use super::Contract;

/// Tokens taken for one picture: the most a large one costs at the two big providers is near this.
const PICTURE: u64 = 1_600;

/// Tokens taken for the frame of one message.
const FRAME: u64 = 4;

/// How large a request is, as far as it had to be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Bytes of the body.
    pub bytes: u64,
}

impl Contract {
    /// Checks that prompt and output cap fit `window` with a tenth to spare.
    ///
    /// # Errors
    /// The sum that does not fit.
    pub fn fits(&self, window: u64) -> Result<Fits, OverBudget> {
        let cap = self.cap.tokens.unwrap_or_default();
        let bound = tokens::upper_bound(self.ask.body.len() as u64);
        if !budget::wants_better_count(bound.saturating_add(cap), window) {
            return budget::check(bound, cap, window, Margin::TENTH);
        }
        let prompt = self.neutral().map_or(bound, |chat| count(chat).min(bound));
        budget::check(prompt, cap, window, Margin::TENTH)
    }
}

/// The estimated tokens of everything a model reads in `chat`. S2 and OpenAI's own rule of thumb:
/// four characters a token.
fn count(chat: &Chat) -> u64 {
    let system: u64 = chat.system.iter().map(part).sum();
    let turns: u64 =
        chat.turns.iter().map(|turn| FRAME + turn.parts.iter().map(part).sum::<u64>()).sum();
    let tools: u64 = chat
        .tools
        .iter()
        .map(|tool| {
            tokens::rough(&tool.parameters.to_string()) + tokens::rough(&tool.description) + FRAME
        })
        .sum();
    system + turns + tools
}

fn part(part: &Part) -> u64 {
    match part {
        Part::Text(text) | Part::Refusal(text) | Part::Thinking { text, .. } => tokens::rough(text),
        Part::Image { .. } => PICTURE,
        Part::ToolCall { name, arguments, .. } => {
            FRAME + tokens::rough(name) + tokens::rough(arguments)
        }
        Part::ToolResult { parts, .. } => FRAME + parts.iter().map(self::part).sum::<u64>(),
        Part::Other(value) => tokens::rough(&value.to_string()),
    }
}
