//! The story of one call, step by step, as `backstay explain` tells it.
//!
//! Steps hold numbers and names, never a prompt, a reply or a key. A trail is bounded: by the call's own
//! bounds, at most six attempts with a handful of steps each, and by [`MOST`].

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A word of a closed vocabulary: borrowed when written, owned when read back.
pub type Word = Cow<'static, str>;

/// Steps after which only the end is added: a call that waits for long is looked at often.
pub const MOST: usize = 256;

/// The steps of a call in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Trail {
    /// The steps; the first is the contract.
    pub notes: Vec<Note>,
}

/// One step and when it was taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Note {
    /// Milliseconds since the call arrived.
    pub at_ms: f64,
    /// What happened.
    pub step: Step,
}

/// A step of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// The contract was settled.
    Settled {
        /// The route that serves the call.
        route: String,
        /// From arrival to the last byte, and where it comes from.
        deadline_ms: u64,
        /// `route`, or the header that shortened it.
        deadline_from: Word,
        /// The request's size in bytes.
        bytes: u64,
        /// Whose the output cap is: `caller`, `route`, `nobody`.
        cap_of: Word,
        /// The output cap and who set it. `None`: the provider's default.
        cap: Option<u64>,
        /// The contract's fingerprint.
        fingerprint: String,
    },
    /// A target was passed over.
    Skipped {
        /// Which.
        target: String,
        /// Why, with its numbers.
        why: String,
    },
    /// A request was sent.
    Sent {
        /// From 1.
        attempt: u32,
        /// To whom.
        target: String,
        /// From 1.
        tier: u32,
        /// `plain` or `stream`.
        form: Word,
        /// The attempt's fingerprint: bytes sent, target, cap.
        fingerprint: String,
        /// The limits in force in milliseconds: connect, first token, gap, total.
        limits_ms: [u32; 4],
        /// Where first token, gap and total come from before they are cut to the deadline: `set`,
        /// `static` or `derived`. Empty in rows of earlier versions.
        #[serde(default)]
        limits_from: [Word; 3],
        /// The token budget check: prompt at most, output cap, allowed. `None`: the target's
        /// window is not known.
        budget: Option<[u64; 3]>,
        /// What could not be said in the provider's dialect.
        losses: Vec<String>,
        /// What was changed in the schemas it carries, without a value of theirs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lowered: Vec<String>,
    },
    /// The attempt ended.
    Came {
        /// From 1.
        attempt: u32,
        /// HTTP status. `None`: no response.
        status: Option<u16>,
        /// The fault's code. `None`: a reply worth judging.
        fault: Option<Word>,
        /// One sentence, in the provider's or our words.
        note: String,
        /// How long the attempt took.
        took_ms: f64,
        /// From sending to the first content. `None`: not streamed, or none came.
        first_token_ms: Option<f64>,
        /// The provider's id of the request.
        provider_request_id: Option<String>,
        /// How the reply ended, in our word.
        finish: Option<Word>,
        /// Tokens in and out, as the provider says.
        usage: Option<(Option<u64>, Option<u64>)>,
    },
    /// The reply was judged.
    Judged {
        /// `ok`, or the status of a reply that failed, such as `schema_error`.
        verdict: Word,
        /// What is wrong, as told to the model.
        errors: Vec<String>,
    },
    /// What was decided after a fault.
    Decided {
        /// Such as `again`, `elsewhere`.
        next: Word,
        /// The rule and its arithmetic.
        why: String,
    },
    /// The call waited.
    Waited {
        /// How long.
        ms: f64,
        /// For what.
        why: Word,
    },
    /// A breaker of a target changed by what this call saw.
    Turned {
        /// Whose.
        target: String,
        /// Which plane, what it did, and the numbers it did it by.
        change: String,
    },
    /// The call ended.
    Ended {
        /// The outcome's word.
        outcome: Word,
        /// The failure's code. `None`: an answer.
        code: Option<Word>,
        /// One sentence.
        note: String,
    },
}

impl Trail {
    /// An empty trail with room for an uneventful call's steps.
    pub fn with_room() -> Self {
        Self { notes: Vec::with_capacity(5) }
    }

    /// Adds a step taken `at` after the call's arrival. Waits for one and the same thing are one
    /// step, with the numbers of the first: a busy target is looked at many times a second.
    pub fn add(&mut self, at: Duration, step: Step) {
        if let Step::Waited { ms: more, why } = &step
            && let Some(Note { step: Step::Waited { ms, why: same }, .. }) = self.notes.last_mut()
            && is_same_but_for_numbers(same, why)
        {
            *ms += more;
            return;
        }
        if self.notes.len() < MOST || matches!(step, Step::Ended { .. }) {
            self.notes.push(Note { at_ms: milliseconds(at), step });
        }
    }
}

fn is_same_but_for_numbers(one: &str, other: &str) -> bool {
    let letters = |byte: &u8| !byte.is_ascii_digit() && *byte != b'.';
    one.bytes().filter(letters).eq(other.bytes().filter(letters))
}

/// Milliseconds with three digits after the point.
pub fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(why: String) -> Step {
        Step::Waited { ms: 20.0, why: why.into() }
    }

    #[test]
    fn a_call_that_waits_for_ten_minutes_tells_it_in_one_step() {
        let mut trail = Trail::with_room();
        for look in 0..30_000 {
            let left = f64::from(60_000 - look) / 100.0;
            trail
                .add(Duration::ZERO, waited(format!("m: 3 of 3 tests at once, for {left} s more")));
        }
        assert_eq!(trail.notes.len(), 1);
        assert!(matches!(&trail.notes[0].step, Step::Waited { ms, .. } if *ms > 599_000.0));
    }

    #[test]
    fn steps_are_bounded_and_the_end_is_always_told() {
        let mut trail = Trail::with_room();
        for look in 0..1000 {
            let why = ["for a", "for b"][look % 2].to_owned();
            trail.add(Duration::ZERO, waited(why));
        }
        let ended = || Step::Ended { outcome: "failed".into(), code: None, note: String::new() };
        trail.add(Duration::ZERO, ended());
        assert_eq!(trail.notes.len(), MOST + 1);
        assert!(matches!(trail.notes[MOST].step, Step::Ended { .. }));
    }
}
