//! What a target can take of the load that falls back on it, and keep for its own.
//!
//! A fallback costs the target that failed nothing: it costs the one that receives it. So it is not
//! paid from a budget of retries; it is given where the receiver has room, and the last part of that
//! room stays with the calls that have the receiver as their first choice. A receiver without any
//! known limit has room: a full outage of the first tier must reach the second whole.

use std::fmt;

/// How the receiving target stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Calls it may carry at once; 0: no limit is known.
    pub places: u32,
    /// Calls it carries, of all kinds.
    pub in_flight: u32,
    /// Of these, the ones that fell back on it.
    pub fallbacks: u32,
    /// How full its fullest rate is, in thousandths; 0 where nothing is paced. See
    /// [`crate::pacing::Pacer::filled`].
    pub filled: u32,
    /// What it keeps for its own calls, in thousandths of its places and rates; 0 to 1000.
    pub kept: u32,
}

/// A tenth is kept: enough for a target's own calls to go on while a neighbour's outage arrives.
pub const KEPT: u32 = 100;

impl Receiver {
    /// Places that fallbacks may hold together. Fewer than `1000 / kept` places keep none back:
    /// the only place of a small server is worth more used. `None`: any number.
    pub const fn open_places(&self) -> Option<u32> {
        if self.places == 0 {
            return None;
        }
        let open = (self.places as u64 * self.open_rate() as u64).div_ceil(1000);
        #[expect(clippy::cast_possible_truncation, reason = "never over `places`, a u32")]
        let open = open as u32;
        Some(open)
    }

    /// How full fallbacks may make its rates, in thousandths.
    pub const fn open_rate(&self) -> u32 {
        1000_u32.saturating_sub(self.kept)
    }

    /// Whether one more fallback may come.
    ///
    /// # Errors
    /// [`Refusal`] with its arithmetic: try the next tier, or wait.
    pub const fn take(&self) -> Result<(), Refusal> {
        if let Some(open) = self.open_places()
            && (self.in_flight >= self.places || self.fallbacks >= open)
        {
            let Self { places, in_flight, fallbacks, .. } = *self;
            return Err(Refusal::Places { places, in_flight, fallbacks, open });
        }
        let open = self.open_rate();
        if self.filled > open {
            return Err(Refusal::Rate { filled: self.filled, open });
        }
        Ok(())
    }
}

/// Why a fallback may not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its places are taken, or those that fallbacks may hold.
    Places {
        /// Calls it may carry at once.
        places: u32,
        /// Calls it carries.
        in_flight: u32,
        /// Of these, fallbacks.
        fallbacks: u32,
        /// Fallbacks it may carry.
        open: u32,
    },
    /// Its rate is nearly used up. In thousandths.
    Rate {
        /// How full it is.
        filled: u32,
        /// How full fallbacks may make it.
        open: u32,
    },
}

impl Refusal {
    /// A stable name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Places { .. } => "headroom_places",
            Self::Rate { .. } => "headroom_rate",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Places { places, in_flight, fallbacks, open } => write!(
                f,
                "no room for a fallback: {in_flight} of {places} places taken, {fallbacks} of the \
                 {open} that fallbacks may hold"
            ),
            Self::Rate { filled, open } => write!(
                f,
                "no room for a fallback: the rate is {}.{} % used, fallbacks may use {}.{} %",
                filled / 10,
                filled % 10,
                open / 10,
                open % 10
            ),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IDLE: Receiver =
        Receiver { places: 20, in_flight: 0, fallbacks: 0, filled: 0, kept: KEPT };

    #[test]
    fn the_last_tenth_is_kept_for_the_targets_own_calls() {
        let at = |in_flight, fallbacks| Receiver { in_flight, fallbacks, ..IDLE };
        assert_eq!(at(17, 17).take(), Ok(()));
        assert_eq!(at(18, 18).take().unwrap_err().name(), "headroom_places");
        assert_eq!(Receiver { filled: 950, ..IDLE }.take().unwrap_err().name(), "headroom_rate");
        assert_eq!(
            at(18, 18).take().unwrap_err().to_string(),
            "no room for a fallback: 18 of 20 places taken, 18 of the 18 that fallbacks may hold"
        );
        assert_eq!(at(19, 5).take(), Ok(()));
        assert!(at(20, 5).take().is_err());
    }

    #[test]
    fn a_rate_keeps_its_last_tenth_too() {
        assert_eq!(Receiver { filled: 900, ..IDLE }.take(), Ok(()));
        let full = Receiver { filled: 915, ..IDLE };
        assert_eq!(
            full.take().unwrap_err().to_string(),
            "no room for a fallback: the rate is 91.5 % used, fallbacks may use 90.0 %"
        );
    }

    #[test]
    fn a_small_target_keeps_nothing_back_and_an_unknown_one_takes_all() {
        assert_eq!(Receiver { places: 1, ..IDLE }.take(), Ok(()));
        let unknown = Receiver { places: 0, in_flight: 9000, fallbacks: 9000, ..IDLE };
        assert_eq!(unknown.take(), Ok(()));
        assert!(Receiver { kept: 5000, ..IDLE }.take().is_err());
    }

    proptest! {
        /// Invariant 14: what falls back on a target never exceeds what it opened for fallbacks, and
        /// its own calls find the rest.
        #[test]
        fn fallbacks_never_hold_more_than_is_open_to_them(
            places in 1_u32..50, kept in 0_u32..=1000, steps in prop::collection::vec(0_u8..4, 0..200),
        ) {
            let mut target = Receiver { places, kept, ..IDLE };
            let held_back = places * kept / 1000;
            for step in steps {
                match step {
                    0 | 1 if target.take().is_ok() => {
                        target.in_flight += 1;
                        target.fallbacks += 1;
                    }
                    2 if target.in_flight < places => target.in_flight += 1,
                    3 if target.fallbacks > 0 => {
                        target.in_flight -= 1;
                        target.fallbacks -= 1;
                    }
                    _ => {}
                }
                prop_assert!(target.fallbacks <= places - held_back);
                prop_assert!(target.in_flight <= places);
            }
        }
    }
}
