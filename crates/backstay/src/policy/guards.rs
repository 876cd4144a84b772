//! What the guards of a route look for in a reply, and what is done about it.

/// What is done about what a guard finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFinding {
    /// It is not looked for.
    Off,
    /// It is told, in notes, the log and the metrics.
    Tag,
    /// What is sure cuts the reply off; the rest is told.
    Cut,
}

/// What the guards of a route do. A caller may turn them off for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardPolicy {
    /// Loops: exact ones are sure.
    pub repetition: OnFinding,
    /// Signs of a loop: text that nearly repeats itself, or says little. Two of them near the expected
    /// end are taken for sure.
    pub entropy: OnFinding,
    /// Length against what is expected: over [`GuardPolicy::most_tokens`] is sure.
    pub length: OnFinding,
    /// Refusals in words. Nothing of them is sure.
    pub refusal: OnFinding,
    /// Prompts that were not read. Nothing of them is sure.
    pub context: OnFinding,
    /// Tokens that replies have at most, nearly always. `None`: not known.
    pub expected_tokens: Option<u32>,
    /// Tokens from which on a reply is worthless. `None`: no such number.
    pub most_tokens: Option<u32>,
    /// What a refusal in words leads to.
    pub on_quiet_refusal: QuietRefusal,
    /// How far a reply is read that is to be one JSON value.
    pub early_stop: EarlyStop,
}

/// How far a streamed reply is read that is to be one JSON value, where nothing of it is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyStop {
    /// To its end: a model may take back what it said.
    #[default]
    Never,
    /// To the end of its first complete value; then the provider is hung up on. Not where the request
    /// offers tools or asks for several answers, or where another value than the first would count.
    BehindValue,
}

/// What a refusal in words leads to, where nothing of the reply is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuietRefusal {
    /// It is told.
    #[default]
    Tag,
    /// The next tier is asked, if one is live.
    NextTier,
}

impl GuardPolicy {
    /// Nothing is looked for.
    pub const OFF: Self = Self {
        repetition: OnFinding::Off,
        entropy: OnFinding::Off,
        length: OnFinding::Off,
        refusal: OnFinding::Off,
        context: OnFinding::Off,
        expected_tokens: None,
        most_tokens: None,
        on_quiet_refusal: QuietRefusal::Tag,
        early_stop: EarlyStop::Never,
    };

    /// Whether a reply may be cut off for what it says.
    pub(crate) fn cuts(&self) -> bool {
        [self.repetition, self.entropy, self.length].contains(&OnFinding::Cut)
    }

    /// Whether anything is looked for in what the model writes.
    pub(crate) fn reads(&self) -> bool {
        let read = [self.repetition, self.entropy, self.length, self.refusal];
        read.iter().any(|on| *on != OnFinding::Off)
    }
}

impl Default for GuardPolicy {
    /// Exact loops are cut, everything else is told.
    fn default() -> Self {
        Self {
            repetition: OnFinding::Cut,
            entropy: OnFinding::Tag,
            length: OnFinding::Cut,
            refusal: OnFinding::Tag,
            context: OnFinding::Tag,
            ..Self::OFF
        }
    }
}
