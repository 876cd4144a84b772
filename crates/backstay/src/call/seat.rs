//! Gets a call its seat: at once, after a wait, or not at all.

use std::time::Duration;

use backstay_decide::Local;
use backstay_decide::queue::Left;

use super::Call;
use crate::admit::line::{Entry, Going, Place, Refused};
use crate::admit::{self, Seats, Unseated};

/// When to come again where nobody knows.
const AGAIN: Duration = Duration::from_secs(1);

/// What a call without a seat holds of the line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Queued {
    /// Nothing: it did not wait, or does not any more.
    #[default]
    Not,
    /// A place.
    Waits,
}

impl Call {
    /// Waits for a seat. A call that gets none has its end planned: the last resort, or a failure.
    pub(super) async fn sit(&mut self) {
        match admit::enter(&self.engine, &self.contract) {
            Ok(Entry::Going(seat)) => self.seat = Some(seat),
            Ok(Entry::Waits(place)) => self.queue(place).await,
            Err(Unseated::Late) => {
                let total = self.contract.deadline.total;
                let why =
                    format!("the deadline of {total:?} passed before the request had arrived");
                self.stands(Local::DeadlineExceeded, why, None);
            }
            Err(Unseated::Refused(Refused { refusal, wait })) => {
                self.engine.metrics().left_queue(&self.class_name(), refusal.name());
                let seats = self.engine.line().gate().count();
                self.stands(Local::Busy, format!("all {seats} seats are taken; {refusal}"), wait);
            }
        }
    }

    async fn queue(&mut self, place: Place<Seats>) {
        let stood = place.stood();
        self.queued = Queued::Waits;
        let told = place.await;
        self.queued = Queued::Not;
        let class = self.class_name();
        let waited = told.as_ref().map_or_else(|gone| gone.waited, Going::waited);
        self.engine.metrics().waited_in_queue(&class, waited);
        self.waits(format!("for a seat as {class}: {stood}"), waited);
        match told {
            Ok(seat) => self.seat = Some(seat),
            Err(gone) => {
                self.engine.metrics().left_queue(&class, gone.left.name());
                let cause = match gone.left {
                    Left::Expired { .. } => Local::DeadlineExceeded,
                    Left::Shed { .. } | Left::GaveUp => Local::Busy,
                };
                self.stands(cause, format!("no seat came free: {gone}"), stood.wait);
            }
        }
    }

    /// No seat, so the end. `wait` is how long one would take, where that is known.
    fn stands(&mut self, cause: Local, why: String, wait: Option<Duration>) {
        let again = (cause == Local::Busy).then(|| wait.unwrap_or(AGAIN));
        self.ends_here(cause, why, again);
    }

    fn class_name(&self) -> String {
        self.engine.plan().policy().queue.name(self.contract.class).to_owned()
    }

    /// Notes that the caller left while it waited, if it did.
    pub(super) fn gave_up(&self) -> bool {
        let gave_up = self.queued == Queued::Waits;
        if gave_up {
            self.engine.metrics().left_queue(&self.class_name(), Left::GaveUp.name());
        }
        gave_up
    }

    /// Charges the class what the call took, as far as that is known.
    pub(super) fn charge_seat(&mut self) {
        let Some(seat) = &mut self.seat else { return };
        let spent = self.usage.input.unwrap_or(0).saturating_add(self.usage.output.unwrap_or(0));
        if self.attempts == 0 || (spent > 0 && !self.at_least) {
            seat.took(spent);
        }
    }
}
