//! Stops calling a target that keeps failing, tests it with a few calls, and brings its load back in
//! steps.
//!
//! ```text
//!          surely over the rate,
//!          or failures in a row              the rest is over
//!  Closed ──────────────────────▶ Open ─────────────────────────▶ Half-open
//!    ▲                            ▲  ▲                              │    │
//!    │                            │  └────────── a test failed ─────┘    │ enough tests brought
//!    │ its time is up             │                                      │ content, one ended well
//!    └────────── Probation ───────┘ (a tighter rule, or a late test)     │
//!                    ▲                                                   │
//!                    └───────────────────────────────────────────────────┘
//! ```
//!
//! Every admission carries the epoch it was made in, and every change of the circuit begins a new
//! one. An outcome from another epoch changes nothing: a call that began before the circuit opened
//! can neither close nor reopen it. Tests are leases by number: one that never reports blocks nobody
//! for long, all end with the epoch when the circuit opens, and those still in flight when it closes
//! are carried over, since a test may bring content and still end badly.
//!
//! A target that said when to come back rests until then by [`Breaker::rest_until`], whatever the
//! circuit's state. [`Planes`] holds the breakers of one target: one for each thing that can be
//! wrong with it.

mod cool_off;
mod judge;
mod keys;
mod limits;
mod look;
mod order;
mod pace;
mod pass;
mod planes;
mod report;
mod suits;
mod transition;
mod view;
mod wilson;
mod window;

use std::time::Duration;

use crate::dice::Dice;
use crate::time::Moment;
use cool_off::cool_off;
use pace::Pace;
use pass::{Kind, Slot};
use window::{Ended, Window};

pub use keys::{KeyRest, Keys};
pub use limits::{Canary, Limits, Mode, Probation};
pub use order::{Order, in_force};
pub use pass::{Ask, Denial, Denied, Elsewhere, Pass};
pub use planes::{Admitted, Passes, Plane, Planes, Refused, Rules, Separation, Turn};
pub use report::{Cut, Paced, Report, Seen, Shape};
pub use suits::{Prospect, Suits, Unfit};
pub use transition::{Ending, Rest, Transition, Why};
pub use view::View;
pub use wilson::lower_bound;
pub use window::{MAX_RECENT, Tally};

/// Most tests in flight that are kept count of, whatever the config.
pub const MAX_CANARIES: usize = 256;

/// What one outcome says about the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It did its part.
    Success,
    /// It did not, and it was its own doing.
    Failure,
    /// It did less than it should: counts in the rate and not in a row.
    Soft,
    /// Neither: cancelled, refused, or the caller's own mistake.
    Neutral,
}

/// Where the circuit stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// Calls go through.
    Closed {
        /// Hard failures in a row so far.
        failures: u32,
    },
    /// Calls go through in the share given, and less is forgiven.
    Probation {
        /// Share of the calls offered that go through, 0 to 1.
        share: f64,
        /// When it ends, if nothing happens.
        until: Moment,
    },
    /// No call goes through.
    Open {
        /// The end of the rest.
        until: Moment,
    },
    /// A few calls test the target.
    HalfOpen {
        /// Tests that brought content.
        started: u32,
        /// Tests that ended well.
        finished: u32,
        /// Tests in flight.
        in_flight: u32,
    },
}

/// One thing that can be wrong with one target, as far as its last calls show.
#[derive(Clone, Debug, PartialEq)]
pub struct Breaker {
    /// Tells it from others that stood in its place before: their passes are none of its own.
    number: u32,
    phase: Phase,
    /// Counts changes of the circuit.
    epoch: u32,
    /// When the phase began.
    changed: Moment,
    /// What began it. `None`: it is the first.
    last: Option<Transition>,
    /// Hard failures in a row.
    row: u32,
    window: Window,
    /// The first opening since the circuit was last closed and past its probation.
    first_opened: Moment,
    /// Until when the target asked to be left alone.
    asked: Moment,
    /// Tests in flight, and those carried into a closed circuit.
    slots: Vec<Slot>,
    /// Tests ever made.
    tests: u64,
    pace: Pace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    Probation { began: Moment },
    Open { until: Moment },
    HalfOpen { began: Moment, started: u32, finished: u32 },
}

/// What [`Breaker::admit`] answers.
#[derive(Debug, PartialEq)]
pub struct Admission {
    /// Leave to call, or why there is none.
    pub pass: Result<Pass, Denied>,
    /// What the passing of time did to the circuit.
    pub change: Option<Transition>,
}

impl Default for Breaker {
    fn default() -> Self {
        Self::new()
    }
}

impl Breaker {
    /// A closed circuit without history.
    pub fn new() -> Self {
        Self::numbered(0)
    }

    /// The same, with a number of its own among those that stand in one place after another.
    pub(super) fn numbered(number: u32) -> Self {
        Self {
            number,
            phase: Phase::Closed,
            epoch: 0,
            changed: Moment::ORIGIN,
            last: None,
            row: 0,
            window: Window::default(),
            first_opened: Moment::ORIGIN,
            asked: Moment::ORIGIN,
            slots: Vec::new(),
            tests: 0,
            pace: Pace::begun(Moment::ORIGIN),
        }
    }

    /// A call came that would go here if it could. Once a call, before [`Self::admit`]: the shares of
    /// a test and of a probation are shares of these.
    pub fn offer(&mut self, now: Moment, limits: &Limits) {
        match self.phase {
            Phase::Closed | Phase::Open { .. } => {}
            Phase::HalfOpen { .. } => self.pace.offer(limits.canary.share),
            Phase::Probation { began } => {
                self.pace.offer(limits.probation.share_after(now.since(began)));
            }
        }
    }

    /// Leave to call, or why there is none, and what the passing of time did to the circuit.
    pub fn admit(&mut self, ask: &Ask, limits: &Limits) -> Admission {
        let change = self.turn(ask.now, limits);
        let denied = self.look(ask, limits).err();
        let pass = match (denied, limits.mode) {
            (Some(denied), _) => Err(denied),
            (None, Mode::Automatic) => Ok(self.take(ask)),
            (None, Mode::MetricsOnly) if self.passes(ask, limits).is_ok() => Ok(self.take(ask)),
            (None, Mode::MetricsOnly | Mode::ForcedClosed | Mode::ForcedOpen) => {
                Ok(self.pass(Kind::Bystander))
            }
        };
        Admission { pass, change }
    }

    /// Leave to call whatever the circuit says: where every target rests, one call is let through
    /// rather than none. Its success ends a rest early, its failure says nothing new.
    pub fn force(&mut self, ask: &Ask, limits: &Limits) -> Admission {
        let change = self.turn(ask.now, limits);
        let is_acting = matches!(limits.mode, Mode::Automatic | Mode::MetricsOnly);
        let pass = match self.phase {
            _ if !is_acting => self.pass(Kind::Bystander),
            Phase::Open { .. } => self.pass(Kind::Forced),
            Phase::Closed | Phase::Probation { .. } | Phase::HalfOpen { .. } => self.take(ask),
        };
        Admission { pass: Ok(pass), change }
    }

    /// Lets a call through a circuit that is not open.
    fn take(&mut self, ask: &Ask) -> Pass {
        if !matches!(self.phase, Phase::HalfOpen { .. }) {
            self.pace.take(ask.now);
            return self.pass(Kind::Ordinary);
        }
        self.slots.retain(|slot| ask.now < slot.lease);
        if self.slots.len() >= MAX_CANARIES {
            return self.pass(Kind::Bystander);
        }
        self.pace.take(ask.now);
        self.tests += 1;
        let lease = ask.now.plus(ask.lease);
        self.slots.push(Slot { number: self.tests, lease, started: false });
        self.pass(Kind::Canary(self.tests))
    }

    fn pass(&self, kind: Kind) -> Pass {
        Pass { breaker: self.number, epoch: self.epoch, kind }
    }

    /// Does what is due by the passing of time.
    pub(super) fn turn(&mut self, now: Moment, limits: &Limits) -> Option<Transition> {
        let is_acting = matches!(limits.mode, Mode::Automatic | Mode::MetricsOnly);
        let next = self.phase_at(now, limits);
        if next == self.phase || !is_acting {
            return None;
        }
        // When it was due, which may be long before somebody came to see.
        let due = self.since(now, limits);
        let change = match (self.phase, next) {
            (Phase::Open { .. }, _) => self.half_open(now, Ending::Time),
            (Phase::HalfOpen { started, finished, .. }, _) => {
                self.close(now, limits, (started, finished))
            }
            (Phase::Probation { .. } | Phase::Closed, _) => {
                self.phase = Phase::Closed;
                let seen = self.tally(now, limits);
                self.became(Transition::Restored { seen })
            }
        };
        self.changed = due;
        Some(change)
    }

    /// Keeps what changed the circuit last, to be shown.
    fn became(&mut self, change: Transition) -> Transition {
        self.last = Some(change);
        change
    }

    fn half_open(&mut self, now: Moment, by: Ending) -> Transition {
        (self.epoch, self.changed) = (self.epoch + 1, now);
        self.phase = Phase::HalfOpen { began: now, started: 0, finished: 0 };
        self.pace = Pace::begun(now);
        self.became(Transition::HalfOpened { after: now.since(self.first_opened), by })
    }

    fn close(
        &mut self,
        now: Moment,
        limits: &Limits,
        (started, finished): (u32, u32),
    ) -> Transition {
        (self.epoch, self.changed) = (self.epoch + 1, now);
        self.phase = after_test(now, limits);
        self.pace = Pace::begun(now);
        self.row = 0;
        self.window.clear();
        let (probation, after) = (limits.probation.lasts, now.since(self.first_opened));
        self.became(Transition::Closed { started, finished, probation, after })
    }

    fn open(&mut self, why: Why, now: Moment, limits: &Limits, dice: &mut dyn Dice) -> Transition {
        let is_first = self.is_whole(now, limits);
        if is_first {
            self.first_opened = now;
        }
        let mut rest = cool_off(now.since(self.first_opened), limits, dice);
        rest.asked = Some(now.until(self.asked)).filter(|asked| *asked > rest.thrown);
        let until = now.plus(rest.length());
        (self.epoch, self.changed) = (self.epoch + 1, now);
        self.phase = Phase::Open { until };
        self.row = 0;
        self.slots.clear();
        self.window.clear();
        self.became(if is_first {
            Transition::Opened { until, why, rest }
        } else {
            Transition::Reopened { until, why, rest }
        })
    }

    /// The call brought its first content: the first half of a test.
    pub fn started(&mut self, pass: &Pass, now: Moment, limits: &Limits) -> Option<Transition> {
        let Kind::Canary(number) = pass.kind else { return None };
        if pass.breaker != self.number {
            return None;
        }
        let live = |slot: &&mut Slot| slot.number == number && now < slot.lease;
        let slot = self.slots.iter_mut().find(live).filter(|slot| !slot.started)?;
        slot.started = true;
        let Phase::HalfOpen { began, started, finished } = self.phase else { return None };
        self.phase = Phase::HalfOpen { began, started: started.saturating_add(1), finished };
        self.close_if_passed(now, limits)
    }

    /// Takes note of how an admitted call ended. A report from another epoch or breaker is ignored, and
    /// one that comes after its lease.
    #[expect(
        clippy::too_many_arguments,
        reason = "state, event, now, rule, dice: the shape of every decision"
    )]
    pub fn note(
        &mut self,
        pass: Pass,
        verdict: Verdict,
        now: Moment,
        limits: &Limits,
        dice: &mut dyn Dice,
    ) -> Option<Transition> {
        if matches!(limits.mode, Mode::ForcedOpen | Mode::ForcedClosed) {
            self.release(pass);
            return None;
        }
        match pass.kind {
            _ if pass.breaker != self.number => None,
            Kind::Bystander => None,
            Kind::Canary(number) => {
                let slot = self.give_back(number).filter(|slot| now < slot.lease)?;
                self.tested(slot, verdict, now, limits, dice)
            }
            Kind::Ordinary | Kind::Forced if pass.epoch != self.epoch => None,
            Kind::Forced => (verdict == Verdict::Success).then(|| self.forced_well(now, limits)),
            Kind::Ordinary => self.count(verdict, now, limits, dice),
        }
    }

    /// Gives a pass back without a verdict: the call was dropped or cancelled.
    #[expect(clippy::needless_pass_by_value, reason = "what was given back is gone")]
    pub fn release(&mut self, pass: Pass) {
        let Kind::Canary(number) = pass.kind else { return };
        if pass.breaker == self.number && self.give_back(number).is_some() {
            self.pace.give_back();
        }
    }

    fn give_back(&mut self, number: u64) -> Option<Slot> {
        let place = self.slots.iter().position(|slot| slot.number == number)?;
        Some(self.slots.swap_remove(place))
    }

    /// A test ended.
    #[expect(
        clippy::too_many_arguments,
        reason = "state, event, now, rule, dice: the shape of every decision"
    )]
    fn tested(
        &mut self,
        slot: Slot,
        verdict: Verdict,
        now: Moment,
        limits: &Limits,
        dice: &mut dyn Dice,
    ) -> Option<Transition> {
        let passes = limits.canary.passes.max(1);
        match (self.phase, verdict) {
            (Phase::Open { .. }, _) => None,
            (Phase::HalfOpen { .. }, Verdict::Neutral) => {
                // It tested nothing: the next call may.
                self.pace.give_back();
                None
            }
            (Phase::HalfOpen { began, started, finished }, Verdict::Success) => {
                let started = started.saturating_add(u32::from(!slot.started));
                let finished = finished.saturating_add(1);
                self.phase = Phase::HalfOpen { began, started, finished };
                self.close_if_passed(now, limits)
            }
            (Phase::HalfOpen { started, .. }, Verdict::Failure | Verdict::Soft) => {
                Some(self.open(Why::Canary { started, passes }, now, limits, dice))
            }
            // It was carried over.
            (Phase::Probation { .. }, Verdict::Failure | Verdict::Soft)
                if !self.is_whole(now, limits) =>
            {
                let why = if slot.started { Why::Late } else { Why::Leftover };
                Some(self.open(why, now, limits, dice))
            }
            (Phase::Probation { .. } | Phase::Closed, _) => self.count(verdict, now, limits, dice),
        }
    }

    fn close_if_passed(&mut self, now: Moment, limits: &Limits) -> Option<Transition> {
        let Phase::HalfOpen { started, finished, .. } = self.phase else { return None };
        let is_passed = started >= limits.canary.passes.max(1) && finished > 0;
        is_passed.then(|| self.close(now, limits, (started, finished)))
    }

    /// A forced call through an open circuit succeeded: that is as good as a test.
    fn forced_well(&mut self, now: Moment, limits: &Limits) -> Transition {
        let change = self.half_open(now, Ending::ForcedCall);
        self.phase = Phase::HalfOpen { began: now, started: 1, finished: 1 };
        self.close_if_passed(now, limits).unwrap_or(change)
    }

    /// Counts the end of a call through a closed circuit, and judges.
    fn count(
        &mut self,
        verdict: Verdict,
        now: Moment,
        limits: &Limits,
        dice: &mut dyn Dice,
    ) -> Option<Transition> {
        let ended = match verdict {
            Verdict::Neutral => return None,
            Verdict::Success => Ended::Well,
            Verdict::Failure | Verdict::Soft => Ended::Badly,
        };
        self.window.count(ended, now, limits.window, limits.keep());
        match verdict {
            Verdict::Success => self.row = 0,
            Verdict::Failure => self.row = self.row.saturating_add(1),
            Verdict::Soft | Verdict::Neutral => {}
        }
        if ended == Ended::Well {
            return None;
        }
        self.judge(now, limits).map(|why| self.open(why, now, limits, dice))
    }

    /// Leaves the target alone until `until`, as it asked: a Retry-After, or a quota's reset. Never
    /// shortens a rest that was asked for before.
    pub fn rest_until(&mut self, until: Moment) {
        self.asked = self.asked.max(until);
    }

    /// Until when the target asked to be left alone; past if it did not.
    pub fn asked_until(&self) -> Moment {
        self.asked
    }
}

/// What follows a test that was passed.
fn after_test(now: Moment, limits: &Limits) -> Phase {
    if limits.probation.lasts.is_zero() {
        return Phase::Closed;
    }
    Phase::Probation { began: now }
}

/// Whether `patience` is over. None never is.
fn outlasted(patience: Duration, began: Moment, now: Moment) -> bool {
    !patience.is_zero() && now.since(began) >= patience
}

#[cfg(test)]
mod tests;
