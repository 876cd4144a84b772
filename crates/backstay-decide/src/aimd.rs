//! How many calls, and how many bytes, a target carries at once: more while it answers well, fewer
//! as soon as it strains.
//!
//! Additive increase, multiplicative decrease (resilience.md section 4). Rules that follow the round
//! trip time do not fit here: how long a reply takes depends on its length. The time to the first
//! token does say something, and counts as a strain once it doubles.
//!
//! * A clean first token adds `1 / limit`, so one more for each full round, and only while at least
//!   half of the limit is used: an idle target proves nothing.
//! * A strain takes a fifth, at most once in the time of a usual first token: calls that strain
//!   together are one strain.
//! * A minute without a strain, and each clean token adds a whole place: the load doubles a round. An
//!   outage must not hold back for long what comes after it.
//! * Without a ceiling there is no limit until the first strain, which sets one from what was in
//!   flight, but never below [`LEAST_GUESS`]: whoever knows better sets a ceiling.

use std::fmt;
use std::time::Duration;

use crate::time::Moment;

/// Thousandths in one place.
const WHOLE: u64 = 1000;

/// What a strain leaves, in thousandths.
const KEPT: u64 = 800;

/// The least that is guessed where no ceiling is known: an outage met by two calls does not mean that
/// two are too many.
pub const LEAST_GUESS: u32 = 10;

/// How long after the last strain the limit grows a place a token.
const CALM: Duration = Duration::from_mins(1);

/// What a target may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Never fewer places than this, unless `ceiling` is lower; at least 1, and at least
    /// [`LEAST_GUESS`] without a ceiling.
    pub floor: u32,
    /// Never more places than this. 0: no ceiling.
    pub ceiling: u32,
    /// Bytes of request bodies in flight. 0: no limit.
    pub bytes: u64,
}

impl Default for Bounds {
    /// Two places at least: with one, a single slow call looks like an outage.
    fn default() -> Self {
        Self { floor: 2, ceiling: 0, bytes: 0 }
    }
}

impl Bounds {
    fn floor(&self) -> u64 {
        let least = if self.ceiling == 0 { LEAST_GUESS } else { 1 };
        let floor = u64::from(self.floor.max(least)) * WHOLE;
        floor.min(self.ceiling())
    }

    fn ceiling(&self) -> u64 {
        if self.ceiling == 0 { u64::MAX } else { u64::from(self.ceiling) * WHOLE }
    }
}

/// How an attempt speaks for the load on its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Its first token came in good time.
    Clean,
    /// The target has too much to do.
    Strained,
    /// It says nothing of the load.
    Neutral,
}

/// What an attempt met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// Its first token, after so long.
    FirstToken {
        /// From sending to the first content.
        took: Duration,
        /// What is usual there; `None`: not known.
        usual: Option<Duration>,
    },
    /// A 429 although our own pacing had room.
    ThrottledInRoom,
    /// A 529, a 503 or a provider's word for it.
    Overloaded,
    /// No connection.
    Unreachable,
    /// Anything else: a caller's fault, a cancellation, a 429 that our pacing had expected.
    Other,
}

impl Met {
    /// What it says of the load.
    pub fn sign(self) -> Sign {
        match self {
            Self::FirstToken { took, usual: Some(usual) } if took > usual.saturating_mul(2) => {
                Sign::Strained
            }
            Self::FirstToken { .. } => Sign::Clean,
            Self::ThrottledInRoom | Self::Overloaded | Self::Unreachable => Sign::Strained,
            Self::Other => Sign::Neutral,
        }
    }
}

/// A place held by one call. Give it back by [`Places::give`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Place {
    bytes: u64,
}

/// The places of one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// In thousandths; `None` until the first strain of a target without a ceiling.
    limit: Option<u64>,
    in_flight: u32,
    bytes: u64,
    /// Until when further strains are the same one.
    strained_until: Moment,
}

impl Places {
    /// An idle target: its limit is the ceiling, if there is one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls it may carry now; `None`: any number.
    pub fn limit(&self, bounds: &Bounds) -> Option<u32> {
        let ceiling = (bounds.ceiling > 0).then(|| bounds.ceiling());
        let limit = match (self.limit, ceiling) {
            (Some(limit), Some(ceiling)) => limit.min(ceiling),
            (Some(limit), None) | (None, Some(limit)) => limit,
            (None, None) => return None,
        };
        Some(u32::try_from(limit.max(bounds.floor()) / WHOLE).unwrap_or(u32::MAX))
    }

    /// Calls it carries.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Bytes of request bodies it carries.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// As it will be once `calls` more have come, whose bodies are `bytes` in all.
    #[must_use]
    pub const fn with(self, calls: u32, bytes: u64) -> Self {
        Self {
            in_flight: self.in_flight.saturating_add(calls),
            bytes: self.bytes.saturating_add(bytes),
            ..self
        }
    }

    /// Whether a call with a body of `bytes` would get a place, without taking it.
    ///
    /// # Errors
    /// [`Full`] with its numbers.
    pub fn check(&self, bytes: u64, bounds: &Bounds) -> Result<(), Full> {
        if bounds.bytes > 0 {
            let (held, most) = (self.bytes, bounds.bytes);
            if bytes > most {
                return Err(Full::TooLarge { bytes, most });
            }
            if held.saturating_add(bytes) > most {
                return Err(Full::Bytes { bytes, held, most });
            }
        }
        match self.limit(bounds) {
            Some(limit) if self.in_flight >= limit => {
                Err(Full::Places { in_flight: self.in_flight, limit, ceiling: bounds.ceiling })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Takes a place for a call with a body of `bytes`.
    ///
    /// # Errors
    /// [`Full`] with its numbers.
    pub fn take(&mut self, bytes: u64, bounds: &Bounds) -> Result<Place, Full> {
        self.check(bytes, bounds)?;
        self.in_flight = self.in_flight.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(Place { bytes })
    }

    /// Gives a place back.
    #[expect(clippy::needless_pass_by_value, reason = "given back once, by its type")]
    pub const fn give(&mut self, place: Place) {
        let Place { bytes } = place;
        self.in_flight = self.in_flight.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Learns from an attempt, while its place is still held. `usual` is a usual time to the first
    /// token: the next strain counts only after that.
    pub fn note(&mut self, sign: Sign, usual: Duration, bounds: &Bounds, now: Moment) {
        match sign {
            Sign::Neutral => {}
            Sign::Clean => self.grow(bounds, now),
            Sign::Strained if now < self.strained_until => {}
            Sign::Strained => {
                let from = self.thousandths(bounds).unwrap_or(u64::from(self.in_flight) * WHOLE);
                self.limit = Some((from / WHOLE * KEPT).max(bounds.floor()));
                self.strained_until = now.plus(usual);
            }
        }
    }

    fn grow(&mut self, bounds: &Bounds, now: Moment) {
        let Some(limit) = self.thousandths(bounds) else { return };
        if u64::from(self.in_flight) * 2 * WHOLE >= limit {
            let calm = now.since(self.strained_until) >= CALM;
            let step = if calm { WHOLE } else { (WHOLE * WHOLE / limit.max(1)).max(1) };
            self.limit = Some(limit.saturating_add(step).min(bounds.ceiling()));
        }
    }

    /// The limit in thousandths, within its bounds.
    fn thousandths(&self, bounds: &Bounds) -> Option<u64> {
        let ceiling = (bounds.ceiling > 0).then(|| bounds.ceiling());
        let limit = self.limit.or(ceiling)?;
        Some(limit.clamp(bounds.floor(), bounds.ceiling()))
    }
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// All are taken.
    Places {
        /// Calls it carries.
        in_flight: u32,
        /// Calls it may carry now.
        limit: u32,
        /// Calls it may carry at most; 0: no ceiling.
        ceiling: u32,
    },
    /// The bodies in flight leave no room for this one.
    Bytes {
        /// This body.
        bytes: u64,
        /// The bodies in flight.
        held: u64,
        /// What they may be together.
        most: u64,
    },
    /// The body is over the limit by itself: waiting is no use.
    TooLarge {
        /// This body.
        bytes: u64,
        /// What all bodies may be together.
        most: u64,
    },
}

impl Full {
    /// A stable name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Places { .. } => "full_places",
            Self::Bytes { .. } => "full_bytes",
            Self::TooLarge { .. } => "full_too_large",
        }
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Places { in_flight, limit, ceiling } => {
                write!(f, "{in_flight} calls in flight, {limit} allowed now")?;
                if *ceiling > *limit { write!(f, " (at most {ceiling})") } else { Ok(()) }
            }
            Self::Bytes { bytes, held, most } => {
                write!(f, "{held} bytes in flight + {bytes} of this call is over {most}")
            }
            Self::TooLarge { bytes, most } => {
                write!(f, "a body of {bytes} bytes is over the {most} of all calls together")
            }
        }
    }
}

impl std::error::Error for Full {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at(millis: u64) -> Moment {
        Moment::at(Duration::from_millis(millis))
    }

    const SECOND: Duration = Duration::from_secs(1);
    const TEN: Bounds = Bounds { floor: 2, ceiling: 10, bytes: 0 };

    fn hold(places: &mut Places, bounds: &Bounds, calls: u32) -> Vec<Place> {
        (0..calls).map(|_| places.take(0, bounds).expect("there is room")).collect()
    }

    #[test]
    fn a_strain_takes_a_fifth_once_and_clean_rounds_bring_it_back_one_by_one() {
        let mut places = Places::new();
        let held = hold(&mut places, &TEN, 10);
        assert_eq!(
            places.take(0, &TEN).unwrap_err().to_string(),
            "10 calls in flight, 10 allowed now"
        );
        for _ in 0..10 {
            places.note(Sign::Strained, SECOND, &TEN, at(0));
        }
        assert_eq!(places.limit(&TEN), Some(8));
        let full = places.take(0, &TEN).unwrap_err();
        assert_eq!(
            (full.name(), full.to_string().as_str()),
            ("full_places", "10 calls in flight, 8 allowed now (at most 10)")
        );
        places.note(Sign::Strained, SECOND, &TEN, at(999));
        assert_eq!(places.limit(&TEN), Some(8));
        places.note(Sign::Strained, SECOND, &TEN, at(1000));
        assert_eq!(places.limit(&TEN), Some(6), "6.4");
        let rounds = (0..100).take_while(|_| {
            places.note(Sign::Clean, SECOND, &TEN, at(1000));
            places.limit(&TEN) < Some(10)
        });
        assert_eq!(rounds.count(), 29, "from 6.4 to 10 with one step of 1 / limit a token");
        for place in held {
            places.give(place);
        }
        assert_eq!(places.in_flight(), 0);
    }

    #[test]
    fn a_strain_with_few_calls_in_flight_takes_from_the_ceiling_not_from_the_few() {
        let mut places = Places::new();
        let _held = hold(&mut places, &TEN, 1);
        places.note(Sign::Strained, SECOND, &TEN, at(0));
        assert_eq!(places.limit(&TEN), Some(8));
    }

    #[test]
    fn those_who_will_come_count_as_if_they_had() {
        let (places, bounds) = (Places::new(), Bounds { bytes: 1000, ..TEN });
        assert!(places.with(9, 900).check(100, &bounds).is_ok());
        let full = places.with(10, 0).check(0, &bounds).unwrap_err();
        assert_eq!(full.to_string(), "10 calls in flight, 10 allowed now");
        assert_eq!(places.with(1, 901).check(100, &bounds).unwrap_err().name(), "full_bytes");
        assert_eq!((places.in_flight(), places.bytes()), (0, 0));
    }

    #[test]
    fn an_idle_target_proves_nothing() {
        let mut places = Places::new();
        let held = hold(&mut places, &TEN, 10);
        places.note(Sign::Strained, SECOND, &TEN, at(0));
        for place in held {
            places.give(place);
        }
        let _few = hold(&mut places, &TEN, 3);
        for _ in 0..100 {
            places.note(Sign::Clean, SECOND, &TEN, at(0));
            places.note(Sign::Neutral, SECOND, &TEN, at(5000));
        }
        assert_eq!(places.limit(&TEN), Some(8));
        let _half = hold(&mut places, &TEN, 1);
        for _ in 0..9 {
            places.note(Sign::Clean, SECOND, &TEN, at(0));
        }
        assert_eq!(places.limit(&TEN), Some(8), "half of what it is now, and not of what it was");
        let _more = hold(&mut places, &TEN, 1);
        for _ in 0..100 {
            places.note(Sign::Clean, SECOND, &TEN, at(0));
        }
        assert_eq!(places.limit(&TEN), Some(10));
    }

    #[test]
    fn without_a_ceiling_the_first_strain_sets_the_limit() {
        let free = Bounds::default();
        let mut places = Places::new();
        assert_eq!(places.limit(&free), None);
        places.note(Sign::Clean, SECOND, &free, at(0));
        assert_eq!(places.limit(&free), None);
        let held = hold(&mut places, &free, 100);
        places.note(Sign::Strained, SECOND, &free, at(0));
        assert_eq!(places.limit(&free), Some(80));
        for _ in 0..50_000 {
            places.note(Sign::Clean, SECOND, &free, at(0));
        }
        assert_eq!(places.limit(&free), Some(200), "no further than twice of what is used");
        for place in held {
            places.give(place);
        }
    }

    #[test]
    fn an_outage_does_not_hold_back_for_long_what_comes_after_it() {
        let free = Bounds::default();
        let mut places = Places::new();
        let _two = hold(&mut places, &free, 2);
        for second in 0..10 {
            places.note(Sign::Strained, SECOND, &free, at(second * 1000));
        }
        assert_eq!(places.limit(&free), Some(LEAST_GUESS), "two calls met it: that says little");
        let _ten = hold(&mut places, &free, 8);
        let mut clean = |count, second: u64| {
            for _ in 0..count {
                places.note(Sign::Clean, SECOND, &free, at(second * 1000));
            }
            places.limit(&free)
        };
        assert_eq!(clean(10, 69), Some(10), "one in a round, nearly");
        assert_eq!(clean(5, 70), Some(15), "a minute after the last strain: one each");
        assert_eq!(clean(50, 71), Some(20), "ten in flight are half of twenty");
    }

    #[test]
    fn the_floor_holds_and_never_lies_over_the_ceiling() {
        let mut places = Places::new();
        for second in 0..50 {
            places.note(Sign::Strained, SECOND, &TEN, at(second * 1000));
        }
        assert_eq!(places.limit(&TEN), Some(2));
        let one = Bounds { floor: 5, ceiling: 1, bytes: 0 };
        assert_eq!(places.limit(&one), Some(1));
        let none = Bounds { floor: 0, ..TEN };
        for second in 50..90 {
            places.note(Sign::Strained, SECOND, &none, at(second * 1000));
        }
        assert_eq!(places.limit(&none), Some(1));
    }

    #[test]
    fn bytes_in_flight_are_a_limit_of_their_own() {
        let bounds = Bounds { bytes: 1000, ..Bounds::default() };
        let mut places = Places::new();
        let first = places.take(700, &bounds).unwrap();
        let full = places.take(301, &bounds).unwrap_err();
        assert_eq!(
            (full.name(), full.to_string().as_str()),
            ("full_bytes", "700 bytes in flight + 301 of this call is over 1000")
        );
        let _second = places.take(300, &bounds).unwrap();
        places.give(first);
        assert_eq!((places.bytes(), places.in_flight()), (300, 1));
        let full = places.take(1001, &bounds).unwrap_err();
        assert_eq!(
            (full.name(), full.to_string().as_str()),
            ("full_too_large", "a body of 1001 bytes is over the 1000 of all calls together")
        );
        assert!(Places::new().take(1000, &bounds).is_ok(), "all of it, in an idle target");
        assert!(places.take(u64::MAX, &Bounds::default()).is_ok());
    }

    #[test]
    fn what_an_attempt_met_is_read_as_a_sign() {
        let first = |took, usual: Option<u64>| Met::FirstToken {
            took: Duration::from_millis(took),
            usual: usual.map(Duration::from_millis),
        };
        let rows = [
            (first(400, Some(200)), Sign::Clean),
            (first(401, Some(200)), Sign::Strained),
            (first(90_000, None), Sign::Clean),
            (Met::ThrottledInRoom, Sign::Strained),
            (Met::Overloaded, Sign::Strained),
            (Met::Unreachable, Sign::Strained),
            (Met::Other, Sign::Neutral),
        ];
        for (met, sign) in rows {
            assert_eq!(met.sign(), sign, "{met:?}");
        }
    }

    proptest! {
        /// Invariants 5 and 19: places and bytes are conserved and never over their limits.
        #[test]
        fn places_are_conserved_and_bounded(
            floor in 0_u32..5, ceiling in 0_u32..8, most in 0_u64..50,
            steps in prop::collection::vec((0_u8..5, 0_u64..30), 0..200),
        ) {
            let bounds = Bounds { floor, ceiling, bytes: most };
            let mut places = Places::new();
            let mut held: Vec<Place> = Vec::new();
            for (ix, (step, bytes)) in steps.into_iter().enumerate() {
                let now = at(ix as u64 * 400);
                match step {
                    0 | 1 => match places.take(bytes, &bounds) {
                        Ok(place) => held.push(place),
                        Err(Full::Places { in_flight, limit, .. }) => prop_assert!(in_flight >= limit && limit >= 1),
                        Err(Full::Bytes { .. } | Full::TooLarge { .. }) => prop_assert!(most > 0),
                    },
                    2 => held.pop().into_iter().for_each(|place| places.give(place)),
                    3 => places.note(Sign::Strained, SECOND, &bounds, now),
                    _ => places.note(Sign::Clean, SECOND, &bounds, now),
                }
                prop_assert_eq!(places.in_flight() as usize, held.len());
                prop_assert_eq!(places.bytes(), held.iter().map(|place| place.bytes).sum::<u64>());
                prop_assert!(most == 0 || places.bytes() <= most);
                if let Some(limit) = places.limit(&bounds) {
                    prop_assert!(limit >= 1 && (ceiling == 0 || limit <= ceiling));
                    let least =
                        if ceiling == 0 { floor.max(LEAST_GUESS) } else { floor.max(1).min(ceiling) };
                    prop_assert!(limit >= least);
                }
            }
        }
    }
}
