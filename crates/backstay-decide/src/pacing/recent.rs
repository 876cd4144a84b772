//! What was reserved in the last minute, for the guess at a limit that nobody told.

use std::time::Duration;

use super::Cost;
use super::rate::Unit;
use crate::time::Moment;

const MINUTE: Duration = Duration::from_mins(1);

/// This minute and the one before. The older one counts by the part of it that is within the last
/// sixty seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recent {
    began: Moment,
    current: Cost,
    before: Cost,
}

impl Recent {
    pub(super) const fn new(now: Moment) -> Self {
        Self { began: now, current: Cost::NOTHING, before: Cost::NOTHING }
    }

    fn turn(&mut self, now: Moment) {
        let since = now.since(self.began);
        if since < MINUTE {
            return;
        }
        self.before = if since < MINUTE * 2 { self.current } else { Cost::NOTHING };
        self.current = Cost::NOTHING;
        self.began = if since < MINUTE * 2 { self.began.plus(MINUTE) } else { now };
    }

    pub(super) fn note(&mut self, cost: Cost, now: Moment) {
        self.turn(now);
        let Cost { requests, input, output } = &mut self.current;
        *requests = requests.saturating_add(cost.requests);
        *input = input.saturating_add(cost.input);
        *output = output.saturating_add(cost.output);
    }

    /// Units in the last minute, about.
    pub(super) fn a_minute(&mut self, unit: Unit, now: Moment) -> u64 {
        self.turn(now);
        let left = MINUTE.saturating_sub(now.since(self.began)).as_millis();
        let before = u128::from(self.before.of(unit)) * left / MINUTE.as_millis();
        self.current.of(unit).saturating_add(u64::try_from(before).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    #[test]
    fn the_last_minute_slides() {
        let mut recent = Recent::new(at(0));
        recent.note(Cost::request(100, 20), at(10));
        recent.note(Cost::request(50, 10), at(50));
        let seen = |recent: &mut Recent, now| {
            [Unit::Requests, Unit::Input, Unit::Output, Unit::Total]
                .map(|unit| recent.a_minute(unit, at(now)))
        };
        assert_eq!(seen(&mut recent, 59), [2, 150, 30, 180]);
        assert_eq!(seen(&mut recent, 90), [1, 75, 15, 90]);
        recent.note(Cost::request(8, 0), at(90));
        assert_eq!(seen(&mut recent, 119), [1, 10, 0, 11]);
        assert_eq!(seen(&mut recent, 120), [1, 8, 0, 8]);
        assert_eq!(seen(&mut recent, 240), [0, 0, 0, 0]);
    }

    #[test]
    fn what_comes_with_a_new_minute_belongs_to_it() {
        for minute in [60, 120, 180] {
            let mut recent = Recent::new(at(0));
            recent.note(Cost::request(100, 0), at(10));
            recent.note(Cost::request(8, 0), at(minute));
            let before = if minute == 60 { 100 } else { 0 };
            assert_eq!(recent.a_minute(Unit::Input, at(minute)), 8 + before, "{minute}");
            assert_eq!(recent.a_minute(Unit::Input, at(minute + 59)), 8 + before / 60, "{minute}");
        }
    }
}
