//! What may follow when a stream breaks whose beginning a caller has read.
//!
//! Nothing that is out is taken back, so there are two ways on: a new reply is read beside what was
//! sent, and told from there on as long as it is the same (restart); or a model is given what was sent
//! as the beginning of its own reply (continuation). Whatever a route does not allow, or cannot work
//! for what was sent, ends the stream with the fault that broke it.

use super::{Decision, Facts, Next, Why};
use crate::dice::Dice;
use crate::fault::{Fault, Side};

/// A route's rule for streams that break after their release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterRelease {
    /// The fault is told in the stream.
    #[default]
    Error,
    /// A new reply is told from where the old one broke off, as long as it begins with the same words.
    Restart,
    /// A target that takes the beginning of its reply from the request goes on with it; any other
    /// target as [`AfterRelease::Restart`].
    Continue,
}

/// What the caller got before the stream broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// Plain prose, and nothing but prose was asked for.
    Prose,
    /// Text and reasoning that another reply can be compared with.
    Comparable,
    /// What no reply can be compared with, for this reason.
    Beyond(&'static str),
}

/// How a target goes on with what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// It answers anew, and what is the same is skipped.
    Restart,
    /// It goes on from the last word.
    Continue,
}

impl Way {
    /// The word in receipts, logs and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Continue => "continue",
        }
    }
}

/// Whether a target takes the beginning of its reply from the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefill {
    /// It does.
    Taken,
    /// It does not, or it was not declared.
    Refused,
    /// Some target of this call was given one before: once is enough.
    Spent,
}

/// Decides whether `facts` let a released stream be rescued, and where: [`Next::Again`],
/// [`Next::Elsewhere`], or [`Next::Fail`] for the fault in the stream. Draws as [`super::decide`].
pub fn decide(
    policy: AfterRelease,
    released: Released,
    facts: &Facts,
    dice: &mut dyn Dice,
) -> Decision {
    if let Some(rule) = refusal(policy, released, facts.fault) {
        return Decision { next: Next::Fail, why: Why::Rule(rule) };
    }
    let decision = super::decide(facts, dice);
    match decision.next {
        Next::Again { .. } if facts.live_elsewhere > 0 => Decision {
            next: Next::Elsewhere,
            why: Why::Rule("who has begun to read does not wait while another target is live"),
        },
        Next::Again { .. } | Next::Elsewhere => decision,
        Next::Reask
        | Next::RaiseCap
        | Next::Fallback
        | Next::Hand
        | Next::LastResort
        | Next::Fail => Decision { next: Next::Fail, ..decision },
    }
}

/// How a target goes on with what was sent.
pub const fn way(policy: AfterRelease, released: Released, prefill: Prefill) -> Way {
    match (policy, released, prefill) {
        (AfterRelease::Continue, Released::Prose, Prefill::Taken) => Way::Continue,
        _ => Way::Restart,
    }
}

/// Why no attempt may follow; `None`: one may.
fn refusal(policy: AfterRelease, released: Released, fault: Fault) -> Option<&'static str> {
    if policy == AfterRelease::Error {
        return Some("the route ends a stream that breaks");
    }
    if let Released::Beyond(why) = released {
        return Some(why);
    }
    if fault.side() == Side::Caller {
        return Some("the fault is not the provider's, so another reply would not be without it");
    }
    let judged = matches!(
        fault,
        Fault::NotJson | Fault::SchemaError | Fault::SemanticError | Fault::Truncated
    );
    judged.then_some("the reply came whole, and what it says was refused")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{any_facts, facts};
    use super::*;
    use crate::dice::{Scripted, Seeded};

    const POLICIES: [AfterRelease; 3] =
        [AfterRelease::Error, AfterRelease::Restart, AfterRelease::Continue];

    fn next(policy: AfterRelease, released: Released, fault: Fault, live: u32) -> Next {
        let facts = Facts { live_elsewhere: live, ..facts(fault) };
        decide(policy, released, &facts, &mut Scripted(vec![0.25])).next
    }

    #[test]
    fn a_broken_stream_goes_elsewhere_at_once_and_alone_again_after_a_wait() {
        for fault in [Fault::StreamCut, Fault::Stalled, Fault::ServerError, Fault::MalformedReply] {
            for released in [Released::Prose, Released::Comparable] {
                for policy in [AfterRelease::Restart, AfterRelease::Continue] {
                    assert_eq!(next(policy, released, fault, 1), Next::Elsewhere, "{fault:?}");
                    let alone = next(policy, released, fault, 0);
                    assert!(matches!(alone, Next::Again { .. }), "{fault:?} {alone:?}");
                }
            }
        }
    }

    #[test]
    fn what_no_reply_can_be_compared_with_ends_in_the_fault() {
        for policy in POLICIES {
            let beyond = Released::Beyond("too much");
            assert_eq!(next(policy, beyond, Fault::StreamCut, 3), Next::Fail);
        }
    }

    #[test]
    fn a_continuation_takes_prose_a_target_that_can_and_a_route_that_says_so() {
        let mut continued = 0;
        for policy in POLICIES {
            for released in [Released::Prose, Released::Comparable] {
                for prefill in [Prefill::Taken, Prefill::Refused, Prefill::Spent] {
                    let may = policy == AfterRelease::Continue
                        && released == Released::Prose
                        && prefill == Prefill::Taken;
                    assert_eq!(way(policy, released, prefill) == Way::Continue, may);
                    continued += u32::from(may);
                }
            }
        }
        assert_eq!(continued, 1);
        assert_eq!([Way::Restart, Way::Continue].map(Way::word), ["restart", "continue"]);
    }

    proptest! {
        #[test]
        fn only_what_recovery_would_try_again_is_rescued(
            facts in any_facts(), policy in 0..3_usize, seed in any::<u64>()
        ) {
            let policy = POLICIES[policy];
            let rescue = decide(policy, Released::Prose, &facts, &mut Seeded::new(seed)).next;
            let recover = super::super::decide(&facts, &mut Seeded::new(seed)).next;
            match rescue {
                Next::Again { .. } => prop_assert_eq!(rescue, recover),
                Next::Elsewhere => {
                    let goes_on = matches!(recover, Next::Again { .. } | Next::Elsewhere);
                    prop_assert!(goes_on);
                }
                Next::Reask
                | Next::RaiseCap
                | Next::Fallback
                | Next::Hand
                | Next::LastResort
                | Next::Fail => prop_assert_eq!(rescue, Next::Fail),
            }
            if rescue != Next::Fail {
                prop_assert!(policy != AfterRelease::Error);
                prop_assert!(facts.attempts < facts.max_attempts);
                prop_assert!(facts.left >= facts.min_attempt);
                prop_assert!(facts.fault.side() != Side::Caller);
            }
        }
    }
}
