//! What becomes of a stream that breaks after its release: another reply takes its place.
//!
//! There is no retry here: what was sent stays sent, and the only way on is a [`Join`], which lets out
//! of another reply what comes after it.
//!
//! ```text
//!  Telling ──breaks──▶ Rescuing ──a stream or a reply──▶ Telling, behind a Join
//!     ▲                    │                                 │ differs, or breaks too
//!     └────────────────────┼─────────────────────────────────┘
//!                          └──nobody──▶ the fault that broke the first one, told once
//! ```

mod join;
mod seam;
mod sent;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use backstay_decide::recover::rescue::Way;
use backstay_wire::Delta;

use super::passing::Passing;
use crate::call::{Anew, Call};
pub(super) use join::Differs;
use join::Skip;
use seam::Seam;
pub(super) use sent::Sent;

/// Lets out of a reply what comes after what was sent.
#[derive(Debug)]
pub(super) enum Join {
    /// It is another one, which has to begin with the same.
    Skip(Skip),
    /// It goes on from there.
    Seam(Seam),
}

/// Whether a reply has come as far as what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    Not,
    Past,
}

impl Join {
    /// How a reply asked for in this way goes on with `sent`.
    pub(super) fn of(way: Way, sent: &Sent) -> Self {
        match (way, sent.prose()) {
            (Way::Continue, Some(text)) => Self::Seam(Seam::behind(text)),
            (Way::Continue | Way::Restart, _) => Self::Skip(Skip::default()),
        }
    }

    /// What of `deltas` goes on to the caller, and whether all that follows does.
    ///
    /// # Errors
    /// The reply is another one than the caller has begun to read.
    pub(super) fn take(
        &mut self,
        sent: &Sent,
        deltas: Vec<Delta>,
    ) -> Result<(Vec<Delta>, Reached), Differs> {
        let mut out = Vec::with_capacity(deltas.len());
        let mut reached = Reached::Not;
        for delta in deltas {
            if reached == Reached::Past {
                out.push(delta);
                continue;
            }
            reached = match self {
                Self::Skip(skip) => {
                    skip.take(sent, delta, &mut out)?;
                    if skip.is_past(sent) { Reached::Past } else { Reached::Not }
                }
                Self::Seam(seam) => continued(seam, delta, &mut out)?,
            };
        }
        Ok((out, reached))
    }
}

/// As [`Join::take`], for one delta of a continuation.
fn continued(seam: &mut Seam, delta: Delta, out: &mut Vec<Delta>) -> Result<Reached, Differs> {
    match delta {
        Delta::Text(text) => {
            let Some(rest) = seam.take(&text) else { return Ok(Reached::Not) };
            out.extend((!rest.is_empty()).then_some(Delta::Text(rest)));
            Ok(Reached::Past)
        }
        Delta::Finish { .. } | Delta::End => {
            let rest = seam.found();
            out.extend((!rest.is_empty()).then_some(Delta::Text(rest)));
            out.push(delta);
            Ok(Reached::Past)
        }
        Delta::Start { .. } | Delta::Logprobs(_) => Ok(Reached::Not),
        Delta::Usage(_) | Delta::Alive | Delta::Error(_) | Delta::Quirk(_) | Delta::Unknown(_) => {
            out.push(delta);
            Ok(Reached::Not)
        }
        // It was to go on with prose.
        Delta::Reasoning(_)
        | Delta::Signature(_)
        | Delta::Refusal(_)
        | Delta::ToolStart { .. }
        | Delta::ToolArguments { .. }
        | Delta::OtherChoice { .. }
        | Delta::Untold(_) => Err(Differs { same: 0 }),
    }
}

/// What a search for another reply brings.
pub(super) struct Found {
    pub(super) call: Box<Call>,
    /// `None`: nobody has one.
    pub(super) anew: Option<Anew>,
    /// How the rest is to be told.
    pub(super) passing: Passing,
}

/// A stream that broke, while another reply is sought. Dropping it gives up the call.
pub(super) struct Rescuing(Pin<Box<dyn Future<Output = Found> + Send>>);

impl fmt::Debug for Rescuing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rescuing")
    }
}

impl Rescuing {
    /// Seeks another reply for `call`, of which `passing` has told the beginning.
    pub(super) fn new(mut call: Box<Call>, passing: Passing) -> Self {
        Self(Box::pin(async move {
            let anew = call.seek_anew().await;
            Found { call, anew, passing }
        }))
    }

    /// What was found. Not to be polled again after that.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Found> {
        self.0.as_mut().poll(cx)
    }
}
