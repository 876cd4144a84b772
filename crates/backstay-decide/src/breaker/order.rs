//! An operator's word over the config: a mode that holds for one target until its time is up or it
//! is taken back.
//!
//! Nothing else about the target changes: what its breakers learned stays, and when the order is over
//! they go on from where they stood.

use std::borrow::Cow;

use super::{Mode, Rules, Separation};
use crate::time::Moment;

/// A mode ordered for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The mode, whatever the config says.
    pub mode: Mode,
    /// When it was given.
    pub since: Moment,
    /// When it ends by itself. `None`: when it is taken back.
    pub until: Option<Moment>,
}

impl Order {
    /// Whether it holds at `now`.
    pub fn holds(&self, now: Moment) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl Rules {
    /// Whether its breakers act. All of them have one mode.
    pub const fn mode(&self) -> Mode {
        match self.separation {
            Separation::Separate => self.availability.mode,
            Separation::Combined => self.combined.mode,
        }
    }
}

/// The rules in force at `now`: those given, in the mode of an order that holds.
pub fn in_force<'r>(order: Option<&Order>, rules: &'r Rules, now: Moment) -> Cow<'r, Rules> {
    match order.filter(|order| order.holds(now)) {
        Some(order) => Cow::Owned(rules.in_mode(order.mode)),
        None => Cow::Borrowed(rules),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    fn mode(order: Option<&Order>, rules: &Rules, seconds: u64) -> [Mode; 4] {
        let rules = in_force(order, rules, at(seconds));
        [rules.availability, rules.throttling, rules.quality, rules.combined].map(|l| l.mode)
    }

    #[test]
    fn an_order_holds_over_any_config_until_its_time_is_up_and_then_the_config_does() {
        let order = Order { mode: Mode::ForcedClosed, since: at(5), until: Some(at(10)) };
        let out = Rules::DEFAULT.in_mode(Mode::ForcedOpen);
        assert_eq!(mode(Some(&order), &out, 9), [Mode::ForcedClosed; 4]);
        assert_eq!(mode(Some(&order), &out, 10), [Mode::ForcedOpen; 4]);
        assert_eq!(mode(None, &out, 9), [Mode::ForcedOpen; 4]);
        let endless = Order { until: None, ..order };
        assert_eq!(mode(Some(&endless), &out, u64::MAX / 2), [Mode::ForcedClosed; 4]);
        // Nothing but the mode is the order's.
        let changed = in_force(Some(&endless), &out, at(9)).into_owned();
        assert_eq!(changed, out.in_mode(Mode::ForcedClosed));
        assert_eq!([changed.mode(), out.mode()], [Mode::ForcedClosed, Mode::ForcedOpen]);
    }
}
