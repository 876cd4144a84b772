//! What a guard found, how sure it is, and the numbers it comes from.

use std::fmt;
use std::time::Duration;

/// Where in a reply a piece stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// The text of the answer.
    Text,
    /// The model's reasoning.
    Reasoning,
    /// The arguments of the tool call with this number.
    Call(u32),
}

/// What a signal is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Worth telling: alone it proves nothing.
    Soft,
    /// The reply is worthless from here on: the provider need not be listened to any more.
    Hard,
}

/// Something that is wrong with a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal {
    /// What it is, with its numbers.
    pub finding: Finding,
    /// How sure it is.
    pub level: Level,
    /// Where it was found. `None`: in the reply as a whole.
    pub channel: Option<Channel>,
    /// In which answer, of several to one request. 0 is the first.
    pub choice: u32,
}

/// What was found. Tokens are those of the guard: about as many as the model's own.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// The end of the text repeats itself exactly.
    Loop {
        /// Tokens of what is repeated. At least 1.
        period: u32,
        /// How often it stands there. At least 4.
        copies: u32,
        /// Tokens of all copies.
        tokens: u32,
    },
    /// Nothing but blanks and line ends any more.
    Blank {
        /// How many tokens of them in a row.
        tokens: u32,
    },
    /// The end of the text repeats itself but for a few tokens, or for its numbers.
    NearLoop {
        /// Tokens after which it comes again.
        period: u32,
        /// Tokens that were as expected, less what the others count.
        score: u32,
    },
    /// Most of the last tokens stand in phrases of eight that were there before.
    Phrases {
        /// Thousandths of the tokens. 0 to 1000.
        share: u32,
    },
    /// The last tokens are few different ones, or the model was sure of each of them.
    LowEntropy {
        /// Thousandths of a bit a token.
        millibits: u32,
        /// For how many tokens.
        tokens: u32,
    },
    /// Two different soft signals, and most of the expected output is used up.
    Degenerate {
        /// Tokens that were expected.
        expected: u32,
    },
    /// The reply refuses, in words.
    Refusal,
    /// The reply is longer than replies of its kind are.
    Runaway {
        /// Tokens that are allowed.
        limit: u32,
    },
    /// The reply comes too slowly.
    Slow {
        /// Tokens so far.
        tokens: u32,
        /// In how much time.
        elapsed: Duration,
        /// Tokens in a thousand seconds that are asked.
        floor: u32,
    },
    /// The model read much less than was sent.
    Unread {
        /// Prompt tokens that the provider reports.
        reported: u64,
        /// Prompt tokens that were sent, as far as is known.
        estimated: u64,
    },
    /// The reply says that there is no document, where one was sent.
    MissesAttachment,
    /// The same call of a tool, with the same arguments.
    SameCall {
        /// How often in a row.
        times: u32,
    },
    /// The reply has more answers than are looked at.
    Unwatched {
        /// How many are.
        watched: u32,
    },
}

impl Finding {
    /// Names of all findings, in the order of [`code`](Self::code)'s cases.
    pub const CODES: [&'static str; 13] = [
        "loop",
        "blank",
        "near_loop",
        "phrases",
        "low_entropy",
        "degenerate",
        "refusal",
        "runaway",
        "slow",
        "unread",
        "misses_attachment",
        "same_call",
        "unwatched",
    ];

    /// The stable name, for logs and metrics.
    pub const fn code(&self) -> &'static str {
        Self::CODES[self.place()]
    }

    /// Whether it is a sign of a loop, and no proof of one.
    pub(super) const fn is_sign_of_loop(&self) -> bool {
        matches!(
            self,
            Self::NearLoop { .. }
                | Self::Phrases { .. }
                | Self::LowEntropy { .. }
                | Self::SameCall { .. }
        )
    }

    /// Its place among [`CODES`](Self::CODES).
    pub(super) const fn place(&self) -> usize {
        match self {
            Self::Loop { .. } => 0,
            Self::Blank { .. } => 1,
            Self::NearLoop { .. } => 2,
            Self::Phrases { .. } => 3,
            Self::LowEntropy { .. } => 4,
            Self::Degenerate { .. } => 5,
            Self::Refusal => 6,
            Self::Runaway { .. } => 7,
            Self::Slow { .. } => 8,
            Self::Unread { .. } => 9,
            Self::MissesAttachment => 10,
            Self::SameCall { .. } => 11,
            Self::Unwatched { .. } => 12,
        }
    }
}

/// The arithmetic, such as `period of 12 tokens, 9 copies, 131 tokens`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Loop { period, copies, tokens } => write!(
                f,
                "period of {period} token{}, {copies} copies, {tokens} tokens",
                if period == 1 { "" } else { "s" }
            ),
            Self::Blank { tokens } => write!(f, "{tokens} tokens of nothing but blanks"),
            Self::NearLoop { period, score } => {
                write!(f, "about the same again every {period} tokens, score {score}")
            }
            Self::Phrases { share } => {
                write!(f, "{} % of the last tokens in phrases that were there before", share / 10)
            }
            Self::LowEntropy { millibits, tokens } => {
                write!(f, "{} bits a token for {tokens} tokens", thousandths(millibits))
            }
            Self::Degenerate { expected } => {
                write!(f, "two signs of a loop, and over 75 % of {expected} expected tokens")
            }
            Self::Refusal => f.write_str("the reply refuses"),
            Self::Runaway { limit } => write!(f, "over {limit} tokens"),
            Self::Slow { tokens, elapsed, floor } => write!(
                f,
                "{tokens} tokens in {:.1} s, at least {} a second asked",
                elapsed.as_secs_f64(),
                thousandths(floor)
            ),
            Self::Unread { reported, estimated } => {
                write!(f, "{reported} prompt tokens reported, about {estimated} sent")
            }
            Self::MissesAttachment => f.write_str("the reply misses a document that was sent"),
            Self::SameCall { times } => write!(f, "the same tool call {times} times"),
            Self::Unwatched { watched } => {
                write!(f, "of the reply's answers only the first {watched} are watched")
            }
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.finding)?;
        match self.channel {
            None | Some(Channel::Text) => {}
            Some(Channel::Reasoning) => f.write_str(", in the reasoning")?,
            Some(Channel::Call(number)) => write!(f, ", in the arguments of call {number}")?,
        }
        match self.choice {
            0 => Ok(()),
            choice => write!(f, ", in choice {choice}"),
        }
    }
}

fn thousandths(number: u32) -> String {
    format!("{}.{:02}", number / 1000, number % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_has_its_code_and_says_its_arithmetic() {
        let rows = [
            (
                Finding::Loop { period: 1, copies: 9, tokens: 9 },
                "loop",
                "period of 1 token, 9 copies, 9 tokens",
            ),
            (Finding::Blank { tokens: 512 }, "blank", "512 tokens of nothing but blanks"),
            (
                Finding::NearLoop { period: 7, score: 256 },
                "near_loop",
                "about the same again every 7 tokens, score 256",
            ),
            (
                Finding::Phrases { share: 879 },
                "phrases",
                "87 % of the last tokens in phrases that were there before",
            ),
            (
                Finding::LowEntropy { millibits: 2_048, tokens: 256 },
                "low_entropy",
                "2.04 bits a token for 256 tokens",
            ),
            (
                Finding::Degenerate { expected: 90 },
                "degenerate",
                "two signs of a loop, and over 75 % of 90 expected tokens",
            ),
            (Finding::Refusal, "refusal", "the reply refuses"),
            (Finding::Runaway { limit: 30 }, "runaway", "over 30 tokens"),
            (
                Finding::Slow { tokens: 9, elapsed: Duration::from_millis(2040), floor: 12_345 },
                "slow",
                "9 tokens in 2.0 s, at least 12.34 a second asked",
            ),
            (
                Finding::Unread { reported: 5, estimated: 512 },
                "unread",
                "5 prompt tokens reported, about 512 sent",
            ),
            (
                Finding::MissesAttachment,
                "misses_attachment",
                "the reply misses a document that was sent",
            ),
            (Finding::SameCall { times: 5 }, "same_call", "the same tool call 5 times"),
            (
                Finding::Unwatched { watched: 8 },
                "unwatched",
                "of the reply's answers only the first 8 are watched",
            ),
        ];
        assert_eq!(rows.map(|(finding, ..)| finding.code()), Finding::CODES);
        for (finding, code, words) in rows {
            assert_eq!((finding.code(), finding.to_string().as_str()), (code, words));
        }
    }
}
