//! The one place where the mock reads time.

use std::time::Duration;

use tokio::time::Instant;

/// Time since the mock started. Stops when the runtime's clock is stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that reads zero now.
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Microseconds since the start. Never 0, so that 0 can mean "not yet".
    pub(crate) fn micros(self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }
}

/// The wall-clock time `ahead` of now as an HTTP-date (RFC 9110 5.6.7), whole seconds.
pub(crate) fn http_date(ahead: Duration) -> String {
    #[expect(clippy::disallowed_methods, reason = "an HTTP-date names wall-clock time")]
    let now = std::time::SystemTime::now();
    httpdate::fmt_http_date(now + ahead)
}
