//! How a streamed call is handed on, and how much of it is held on the way.

use std::time::Duration;

/// How a streamed call is handed on, from the least held to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamMode {
    /// Everything leaves as it comes, the head first; nothing can be rerouted.
    Passthrough,
    /// Nothing is sent before the first content; a failure before it is rerouted.
    Gate,
    /// The newest part is always held back; a failure before the first release is rerouted, and
    /// what is held when one comes later is never shown.
    Windowed,
    /// Nothing is sent before the whole reply is checked. The default where there is a schema.
    Buffered,
}

impl StreamMode {
    /// All of them, from the least held to the most.
    pub const ALL: [Self; 4] = [Self::Passthrough, Self::Gate, Self::Windowed, Self::Buffered];

    /// Its word in config, headers, metrics and the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passthrough => "passthrough",
            Self::Gate => "gate",
            Self::Windowed => "windowed",
            Self::Buffered => "buffered",
        }
    }

    /// The mode of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// How much of a stream is held before and while it is handed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// The pace a stream has to show at the gate. `None`: its first content opens it.
    pub pace: Option<Pace>,
    /// What the mode `windowed` holds back.
    pub window: Window,
}

/// A pace: so many tokens within so long, from the first content on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// At least 1.
    pub tokens: Tokens,
    /// Not zero.
    pub within: Duration,
}

/// The newest part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// So much of it is held back. At least 1.
    pub tokens: Tokens,
    /// The longest that any of it is. `None`: until enough has followed.
    pub time: Option<Duration>,
}

impl Default for Window {
    /// 512 tokens: a loop of few words is known for one after some 200 words, which have at most nine
    /// bytes each for the guards, so it is never shown.
    fn default() -> Self {
        Self { tokens: Tokens(512), time: None }
    }
}

/// A length of text in tokens of four bytes each: no tokenizer is asked for a stream's pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens(pub u32);

impl Tokens {
    /// So many bytes of text, rounded up.
    pub fn of(bytes: usize) -> Self {
        Self(u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX))
    }

    /// The same in bytes of text.
    pub const fn bytes(self) -> usize {
        4 * self.0 as usize
    }
}
