//! The timers of an attempt from what is known of its target, and when a first content is slow.

use std::time::Duration;

use super::Known;
use crate::timers::Timers;

/// By how much a first token may be later than all but one in a hundred.
const FIRST_TOKEN: f64 = 1.5;

/// By how much a pause may be longer than all but one in a hundred. 8: pauses vary far more than
/// starts do, and a stream that was begun is dear to give up.
const GAP: u32 = 8;

/// By how much a reply may take longer for its tokens than 19 of 20 do.
const TOTAL: f64 = 1.5;

/// How long one phase of an attempt may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// So long: somebody said so.
    Set(Duration),
    /// As measured; at most so long, and just so long where nothing is known.
    Auto(Duration),
}

impl Timer {
    /// The longest it can be.
    pub const fn most(self) -> Duration {
        match self {
            Self::Set(most) | Self::Auto(most) => most,
        }
    }

    /// `derived` within its bounds, and where the timer comes from.
    fn settle(self, least: Duration, derived: Option<Duration>) -> (Duration, Source) {
        match (self, derived) {
            (Self::Set(set), _) => (set, Source::Set),
            (Self::Auto(most), None) => (most, Source::Static),
            (Self::Auto(most), Some(derived)) => (derived.max(least).min(most), Source::Derived),
        }
    }
}

/// Where a timer comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// Somebody set it.
    #[default]
    Set,
    /// The default: nothing is known.
    Static,
    /// What was measured.
    Derived,
}

impl Source {
    /// Its name in the log and in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Static => "static",
            Self::Derived => "derived",
        }
    }
}

/// Limits of one attempt. Each is cut to what is left of the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands. `None`: as each target's provider has it.
    pub connect: Option<Duration>,
    /// Until the first content, from the moment the request is sent.
    pub first_token: Timer,
    /// Between two pieces of content.
    pub gap: Timer,
    /// The whole attempt.
    pub total: Timer,
    /// The shortest that is derived for a first token.
    pub least_first_token: Duration,
    /// The shortest that is derived for a pause.
    pub least_gap: Duration,
}

/// Timers, and where three of them come from; `connect` is never derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Derived {
    /// The timers, before they are cut to the deadline.
    pub timers: Timers,
    /// Where `first_token`, `gap` and `total` come from.
    pub from: [Source; 3],
}

impl Timeouts {
    /// The longest until a first content where nothing is known: a reasoning model may think for
    /// minutes before it.
    pub const FIRST_TOKEN: Duration = Duration::from_mins(2);

    /// The longest pause where nothing is known.
    pub const GAP: Duration = Duration::from_mins(1);

    /// The shortest that is derived for a first token. 5 s: a target that answers in 50 ms now and
    /// then takes a second or two, and nobody is helped by a second request then.
    pub const LEAST_FIRST_TOKEN: Duration = Duration::from_secs(5);

    /// The shortest that is derived for a pause. 20 s: longer pauses than that are seen in streams
    /// that go on, and a stream that was begun is dear to give up.
    pub const LEAST_GAP: Duration = Duration::from_secs(20);

    /// All derived, for calls of which the whole may take `total`.
    pub fn auto(total: Duration) -> Self {
        Self {
            connect: None,
            first_token: Timer::Auto(Self::FIRST_TOKEN.min(total)),
            gap: Timer::Auto(Self::GAP.min(total)),
            total: Timer::Auto(total),
            least_first_token: Self::LEAST_FIRST_TOKEN,
            least_gap: Self::LEAST_GAP,
        }
    }

    /// Until a connection to a target stands, before it is cut to the deadline; `provider` is what its
    /// provider says.
    pub fn connect_at(&self, provider: Duration) -> Duration {
        self.connect.unwrap_or(provider).min(self.total.most())
    }

    /// The timers of an attempt at a target of which that is `known` and whose provider says `connect`,
    /// with an output cap of `cap` tokens.
    ///
    /// The whole is derived only under a cap: a reply may be as long as it likes, and how long others
    /// were is no reason to cut one that is still coming.
    pub fn derive(&self, connect: Duration, known: &Known, cap: Option<u64>) -> Derived {
        let first = known.first_token.map(|usual| usual.mul_f64(FIRST_TOKEN));
        let gap = known.gap.map(|usual| usual.saturating_mul(GAP));
        let (first_token, first_from) = self.first_token.settle(self.least_first_token, first);
        let (gap, gap_from) = self.gap.settle(self.least_gap, gap);
        // Of a target that is never streamed no first token is known; its times a token hold it.
        let begin = if first.is_some() { first_token } else { self.least_first_token };
        let whole = known.per_token.zip(cap).map(|(per_token, cap)| {
            let tokens = u32::try_from(cap).unwrap_or(u32::MAX);
            let writing = per_token.mul_f64(TOTAL).saturating_mul(tokens);
            begin.saturating_add(writing)
        });
        let (total, total_from) = self.total.settle(Duration::ZERO, whole);
        let timers = Timers { connect: self.connect_at(connect), first_token, gap, total };
        Derived { timers, from: [first_from, gap_from, total_from] }
    }
}

/// When a first content counts as slow: later than `least`, and than `times` what all but one in a
/// hundred take. Where that is not known nothing is slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// What is never slow.
    pub least: Duration,
    /// By how much it may be later than usual. At least 0; 0: by `least` alone.
    pub times: f64,
}

impl Slow {
    /// 5 s: what a person waits for without a doubt. Twice: a timer of `auto` strikes at 1.5 times,
    /// so this is about the longer ones that somebody set.
    pub const DEFAULT: Self = Self { least: Duration::from_secs(5), times: 2.0 };

    /// The longest that is not slow, at a target of which that is `known`. `None`: nothing is.
    pub fn threshold(&self, known: &Known) -> Option<Duration> {
        let usual = known.first_token?.as_secs_f64() * self.times;
        Some(Duration::try_from_secs_f64(usual).unwrap_or(Duration::MAX).max(self.least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// First token, gap, total, and where from: `=` set, `.` static, `~` derived.
    fn told(wanted: Timeouts, known: Known, cap: Option<u64>) -> String {
        let Derived { timers, from } = wanted.derive(secs(2), &known, cap);
        let marks = from.map(|from| match from {
            Source::Set => '=',
            Source::Static => '.',
            Source::Derived => '~',
        });
        let times = [timers.first_token, timers.gap, timers.total].map(|time| time.as_millis());
        let all = times.iter().zip(marks).map(|(time, mark)| format!("{time}{mark}"));
        all.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_timer_comes_from_who_knows_most_about_it() {
        let (nothing, auto) = (Known::default(), Timeouts::auto(secs(600)));
        let first = |first| Known { first_token: Some(first), ..nothing };
        let gap = |gap| Known { gap: Some(gap), ..nothing };
        let writes = |per_token| Known { per_token: Some(per_token), ..nothing };
        let quick = Known { per_token: Some(ms(20)), ..first(secs(8)) };
        let by_hand = Timeouts {
            first_token: Timer::Set(secs(8)),
            gap: Timer::Set(secs(5)),
            total: Timer::Set(secs(20)),
            ..auto
        };
        let rows = [
            (auto, nothing, None, "120000. 60000. 600000."),
            (auto, first(ms(400)), None, "5000~ 60000. 600000."),
            (auto, first(secs(8)), None, "12000~ 60000. 600000."),
            (auto, first(secs(300)), None, "120000~ 60000. 600000."),
            (auto, gap(ms(40)), None, "120000. 20000~ 600000."),
            (auto, gap(secs(3)), None, "120000. 24000~ 600000."),
            (auto, gap(secs(30)), None, "120000. 60000~ 600000."),
            (auto, writes(ms(20)), None, "120000. 60000. 600000."),
            (auto, writes(ms(20)), Some(1000), "120000. 60000. 35000~"),
            (auto, quick, Some(1000), "12000~ 60000. 42000~"),
            (auto, quick, Some(u64::MAX), "12000~ 60000. 600000~"),
            (by_hand, quick, Some(1000), "8000= 5000= 20000="),
            (Timeouts { gap: auto.gap, ..by_hand }, gap(ms(40)), None, "8000= 20000~ 20000="),
        ];
        for (wanted, known, cap, want) in rows {
            assert_eq!(told(wanted, known, cap), want, "{known:?}, {cap:?}");
        }
        assert_eq!([auto.gap, by_hand.gap].map(Timer::most), [secs(60), secs(5)]);
        let names = [Source::Set, Source::Static, Source::Derived].map(Source::name);
        assert_eq!(names, ["set", "static", "derived"]);
        // What a caller may shorten stays shorter than what is derived at least.
        let short = Timeouts { first_token: Timer::Auto(secs(3)), ..auto };
        assert_eq!(told(short, first(ms(400)), None), "3000~ 60000. 600000.");
    }

    #[test]
    fn a_connection_may_take_what_the_route_says_or_else_what_the_provider_says() {
        let auto = Timeouts::auto(secs(30));
        let connect = |wanted: Timeouts, provider| {
            wanted.derive(provider, &Known::default(), None).timers.connect
        };
        assert_eq!(connect(auto, secs(3)), secs(3));
        assert_eq!(connect(auto, secs(9)), secs(9));
        assert_eq!(connect(auto, secs(90)), secs(30), "no longer than the attempt");
        assert_eq!(connect(Timeouts { connect: Some(secs(1)), ..auto }, secs(9)), secs(1));
    }

    #[test]
    fn a_first_content_is_slow_by_what_is_usual_and_never_below_the_least() {
        let threshold =
            |slow: Slow, usual| slow.threshold(&Known { first_token: usual, ..Known::default() });
        assert_eq!(threshold(Slow::DEFAULT, None), None);
        assert_eq!(threshold(Slow::DEFAULT, Some(ms(100))), Some(secs(5)));
        assert_eq!(threshold(Slow::DEFAULT, Some(secs(4))), Some(secs(8)));
        let never = Slow { times: f64::INFINITY, ..Slow::DEFAULT };
        assert_eq!(threshold(never, Some(secs(4))), Some(Duration::MAX));
        assert_eq!(threshold(Slow { times: 0.0, ..Slow::DEFAULT }, Some(secs(4))), Some(secs(5)));
    }
}
