//! Which of a call's failures is told when there is no answer.
//!
//! The last one, unless it says only that another target does not take the request: where a model had
//! begun to answer before, the request was in order, and what broke that answer is the cause. The other
//! one is told behind it.

use backstay_decide::fault::Fault;

use super::Call;
use crate::attempt::Failure;
use crate::fault::CallError;

/// A reply that began and came to nothing.
#[derive(Debug)]
pub(super) struct Begun {
    /// Whose.
    target: String,
    failure: Failure,
}

impl Call {
    /// Takes note of a failure of the target asked last.
    pub(super) fn failed(&mut self, failure: Failure) {
        if had_begun(failure.fault) {
            let target = self.target_id().to_owned();
            self.begun = Some(Box::new(Begun { target, failure: failure.clone() }));
        }
        self.last = Some(failure);
    }

    /// The failure that stands for the call, where `last` came last.
    pub(super) fn cause<'a>(&'a self, last: &'a Failure) -> &'a Failure {
        self.before(last).map_or(last, |begun| &begun.failure)
    }

    /// The typed failure that stands for `last`.
    pub(super) fn error(&self, last: &Failure) -> CallError {
        let first = self.before(last).map_or_else(String::new, |begun| {
            format!("first: {}: {}; ", begun.target, begun.failure.note)
        });
        let tries = self.attempts;
        let plural = if tries == 1 { "attempt" } else { "attempts" };
        let note = format!(
            "no valid answer after {tries} {plural}; {first}last: {}: {}; see `backstay explain {}`",
            self.target_id(),
            last.note,
            self.contract.call_id
        );
        let cause = self.cause(last);
        CallError::attempt(cause.fault, note)
            .told_by(cause.provider.clone())
            .again_after(cause.server_delay)
    }

    /// The reply that broke at another target before this one did not take the request.
    fn before(&self, last: &Failure) -> Option<&Begun> {
        let begun = self.begun.as_deref()?;
        (does_not_take(last.fault) && begun.target != self.target_id()).then_some(begun)
    }
}

/// Whether this is the fault of a reply that had begun: its target had taken the request.
fn had_begun(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Stalled
            | Fault::TooSlow
            | Fault::StreamCut
            | Fault::MalformedReply
            | Fault::Empty
            | Fault::Truncated
            | Fault::UnknownFinish
            | Fault::Looping
            | Fault::NotJson
            | Fault::SchemaError
            | Fault::SemanticError
    )
}

/// Whether a target says by this that it does not take the request.
fn does_not_take(fault: Fault) -> bool {
    matches!(fault, Fault::BadRequest | Fault::NotFound | Fault::TooLarge | Fault::ContextExceeded)
}
