//! The only place that reads time or rolls dice.
//!
//! Time is tokio's, so a test may stop it; decisions get it as a [`Moment`], a plain value.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backstay_decide::Dice;
use backstay_decide::Moment;
use tokio::time::Instant;

/// Later than anything here goes on for.
const FAR: Duration = Duration::from_hours(30 * 365 * 24);

/// Time since the engine began, and the wall clock beside it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Now, as the decisions see it.
    pub fn now(&self) -> Moment {
        Moment::at(self.origin.elapsed())
    }

    /// Sleeps until `moment`; returns at once when it is past.
    pub async fn sleep_until(&self, moment: Moment) {
        tokio::time::sleep_until(self.instant(moment)).await;
    }

    /// `moment` as tokio's timers want it; what is beyond their time is in thirty years.
    pub fn instant(&self, moment: Moment) -> Instant {
        let since = moment.since(Moment::ORIGIN);
        self.origin.checked_add(since).unwrap_or_else(|| self.origin + FAR)
    }

    /// Wall time since the Unix epoch.
    pub fn wall(&self) -> Duration {
        #[expect(clippy::disallowed_methods, reason = "this is the clock")]
        let now = SystemTime::now();
        now.duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    /// Milliseconds since 1970 UTC.
    pub fn wall_ms(&self) -> u64 {
        u64::try_from(self.wall().as_millis()).unwrap_or(u64::MAX)
    }

    /// Bytes by chance: for names, never for secrets.
    pub fn scatter<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        fastrand::fill(&mut bytes);
        bytes
    }

    /// Today, in UTC.
    pub fn today(&self) -> jiff::civil::Date {
        let seconds = i64::try_from(self.wall().as_secs()).unwrap_or(i64::MAX);
        let stamp = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        jiff::tz::Offset::UTC.to_datetime(stamp).date()
    }
}

/// The dice of production: a fast generator, one a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadDice;

impl Dice for ThreadDice {
    fn unit(&mut self) -> f64 {
        fastrand::f64()
    }
}
