//! The keys of a route that say how its streams are handed on: `stream`, `gate` and `window`.

use backstay::policy::{StreamMode, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::Length;

/// How a streamed call is handed on.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StreamWord {
    /// As it comes.
    Passthrough,
    /// From the first content on.
    Gate,
    /// With the newest part held back.
    Windowed,
    /// When the whole answer is checked.
    Buffered,
}

impl StreamWord {
    pub(super) fn mode(self) -> StreamMode {
        match self {
            Self::Passthrough => StreamMode::Passthrough,
            Self::Gate => StreamMode::Gate,
            Self::Windowed => StreamMode::Windowed,
            Self::Buffered => StreamMode::Buffered,
        }
    }
}

/// What opens the gate besides the first content: so many tokens at a pace. A stream that is slower
/// goes to another model, or on to the caller if no other is live.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GateTable {
    /// Tokens (of four bytes) that are held until they are there. 1 to 100000. Default: the first
    /// content opens the gate.
    #[schemars(range(min = 1, max = 100_000))]
    pub(super) tokens: Option<u32>,
    /// The slowest pace at which they may come, from the first content on. Over 0, at most 100000.
    /// Goes with `tokens`. Default: the first content opens the gate.
    #[schemars(range(min = 0, max = 100_000), extend("x-type" = "number"))]
    pub(super) min_tokens_per_second: Option<f64>,
}

/// What the mode `"windowed"` holds back.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WindowTable {
    /// Tokens (of four bytes) that are held back. 1 to 100000.
    #[schemars(range(min = 1, max = 100_000))]
    pub(super) tokens: u32,
    /// The longest that any of them is. `"1ms"` to `"24h"`. Default: until enough has followed.
    pub(super) time: Option<Length>,
}

impl Default for WindowTable {
    fn default() -> Self {
        let window = Window::default();
        Self { tokens: window.tokens.0, time: window.time.map(Length) }
    }
}
