//! What a breaker looks like to somebody who only looks: nothing here changes it.

use std::time::Duration;

use super::pass::{Ask, Denial, Denied, Elsewhere};
use super::suits::Suits;
use super::{Breaker, Limits, Mode, Pace, Phase, State, Tally, Transition, after_test, outlasted};
use crate::time::Moment;

impl Breaker {
    /// Where the circuit stands.
    pub fn state(&self, now: Moment, limits: &Limits) -> State {
        match self.phase_at(now, limits) {
            Phase::Closed => State::Closed { failures: self.row },
            Phase::Probation { began } => State::Probation {
                share: limits.probation.share_after(now.since(began)),
                until: began.plus(limits.probation.lasts),
            },
            Phase::Open { until } => State::Open { until },
            Phase::HalfOpen { started, finished, .. } => {
                State::HalfOpen { started, finished, in_flight: self.in_flight(now) }
            }
        }
    }

    /// What the last window holds.
    pub fn tally(&self, now: Moment, limits: &Limits) -> Tally {
        self.window.in_window(now, limits.window)
    }

    /// Whether nothing is known against it: then it may be forgotten.
    pub fn is_untroubled(&self) -> bool {
        self.phase == Phase::Closed && self.row == 0
    }

    /// Changes of the circuit so far.
    pub fn epoch(&self) -> u64 {
        self.epoch.into()
    }

    /// The last change of the circuit. `None`: there was none.
    pub fn last_change(&self) -> Option<Transition> {
        self.last
    }

    /// The phase, with what the passing of time makes of it.
    pub(super) fn phase_at(&self, now: Moment, limits: &Limits) -> Phase {
        match self.phase {
            Phase::Open { until } if now >= until => {
                Phase::HalfOpen { began: now, started: 0, finished: 0 }
            }
            Phase::HalfOpen { began, finished, .. }
                if finished > 0 && outlasted(limits.canary.patience, began, now) =>
            {
                after_test(now, limits)
            }
            Phase::Probation { .. } if self.is_whole(now, limits) => Phase::Closed,
            phase => phase,
        }
    }

    /// Whether calls test it.
    pub(super) fn is_half_open(&self, now: Moment, limits: &Limits) -> bool {
        matches!(self.phase_at(now, limits), Phase::HalfOpen { .. })
    }

    /// Whether it is closed, and past its probation.
    pub fn is_whole(&self, now: Moment, limits: &Limits) -> bool {
        match self.phase {
            Phase::Closed => true,
            Phase::Probation { began } => now.since(began) >= limits.probation.lasts,
            Phase::Open { .. } | Phase::HalfOpen { .. } => false,
        }
    }

    pub(super) fn in_flight(&self, now: Moment) -> u32 {
        u32::try_from(self.leases(now).count()).unwrap_or(u32::MAX)
    }

    /// When each test in flight counts as lost.
    fn leases(&self, now: Moment) -> impl Iterator<Item = Moment> {
        self.slots.iter().map(|slot| slot.lease).filter(move |lease| now < *lease)
    }

    /// Whether a call may go through, without letting it.
    ///
    /// # Errors
    /// [`Denied`]: why not, and until when.
    pub fn look(&self, ask: &Ask, limits: &Limits) -> Result<(), Denied> {
        let circuit = match limits.mode {
            Mode::ForcedOpen => return Err(Denied { until: None, why: Denial::Forced }),
            Mode::ForcedClosed | Mode::MetricsOnly => Ok(()),
            Mode::Automatic => self.passes(ask, limits),
        };
        if self.asked <= ask.now {
            return circuit;
        }
        match circuit {
            Ok(()) => Err(Denied { until: Some(self.asked), why: Denial::Asked }),
            Err(denied) => Err(Denied { until: denied.until.max(Some(self.asked)), ..denied }),
        }
    }

    /// What the circuit itself says to a call.
    pub(super) fn passes(&self, ask: &Ask, limits: &Limits) -> Result<(), Denied> {
        match self.phase_at(ask.now, limits) {
            Phase::Closed => Ok(()),
            Phase::Open { until } => Err(Denied { until: Some(until), why: Denial::Open }),
            Phase::Probation { began } => self.in_share(began, ask, limits),
            Phase::HalfOpen { .. } => self.may_test(ask, limits),
        }
    }

    fn may_test(&self, ask: &Ask, limits: &Limits) -> Result<(), Denied> {
        let (tests, most) = (self.in_flight(ask.now), limits.canary.at_once.max(1));
        if tests >= most {
            let until = self.leases(ask.now).min();
            return Err(Denied { until, why: Denial::Testing { tests, most } });
        }
        if ask.elsewhere == Elsewhere::Nobody {
            return Ok(());
        }
        let is_fresh = !matches!(self.phase, Phase::HalfOpen { .. });
        let is_due = is_fresh || self.pace.is_due(ask.now, limits.canary.every);
        let last = if is_fresh { Pace::begun(ask.now) } else { self.pace };
        let why = match ask.suits {
            _ if !is_due => last.denial(limits.canary.share),
            Suits::Test => return Ok(()),
            // Where no call suits, one that does not is better than none for ever.
            Suits::HealthyOnly(_) if last.idle_for(limits.canary.patience, ask.now) => {
                return Ok(());
            }
            Suits::HealthyOnly(unfit) => Denial::Unfit(unfit),
        };
        let due = last.due_at(limits.canary.every);
        Err(Denied { until: Some(due.max(ask.now)), why })
    }

    fn in_share(&self, began: Moment, ask: &Ask, limits: &Limits) -> Result<(), Denied> {
        let is_fresh = !matches!(self.phase, Phase::Probation { .. });
        let share = limits.probation.share_after(ask.now.since(began));
        let is_due = share >= 1.0 || is_fresh || self.pace.is_due(ask.now, Duration::ZERO);
        if is_due || ask.elsewhere == Elsewhere::Nobody {
            return Ok(());
        }
        Err(Denied { until: Some(ask.now), why: self.pace.denial(share) })
    }
}
