//! How a part stands that works beside the calls: a thread that writes, a task that delivers.
//!
//! No call waits for such a part, so no call shows that it fails or is stuck. It is noted here, and
//! told by `/health/ready` and the metrics.

use std::time::Duration;

use backstay_decide::Moment;
use parking_lot::Mutex;

use crate::clock::Clock;

/// Work that takes longer is stuck: a batch of rows takes milliseconds, a webhook rarely a second.
const STUCK: Duration = Duration::from_secs(2);

/// A part beside the calls that does not do its work, while calls go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Which: a word of [`PARTS`].
    pub part: &'static str,
    /// What is wrong, in one line. No name of a host, no path, no key.
    pub note: String,
}

/// The parts: the call log, the delivery of alerts, the lines of the log.
pub const PARTS: [&str; 3] = ["call_log", "alerts", "log"];

/// The work of one part, as its thread or task notes it.
#[derive(Debug)]
pub(crate) struct Work {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the piece of work under way began.
    since: Option<Moment>,
    /// Why the last try failed. It stays until some work is done.
    failed: Option<String>,
}

/// Whether what is noted differs from what was noted before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    News,
    Known,
}

impl Work {
    /// A piece of work begins.
    pub(crate) fn begin(&self) {
        self.state.lock().since = Some(self.clock.now());
    }

    /// A try failed. It may be tried again; `News` where the one before did not fail.
    pub(crate) fn failed(&self, why: String) -> Note {
        let before = self.state.lock().failed.replace(why);
        if before.is_none() { Note::News } else { Note::Known }
    }

    /// The piece of work is done; `News` where a try before had failed.
    pub(crate) fn done(&self) -> Note {
        let before = std::mem::take(&mut *self.state.lock());
        if before.failed.is_some() { Note::News } else { Note::Known }
    }

    /// The piece of work is not tried again.
    pub(crate) fn given_up(&self) {
        self.state.lock().since = None;
    }

    /// What is wrong now. `None`: nothing.
    pub(crate) fn trouble(&self) -> Option<String> {
        let state = self.state.lock();
        if let Some(why) = &state.failed {
            return Some(why.clone());
        }
        let lasts = self.clock.now().since(state.since?);
        (lasts > STUCK).then(|| format!("no answer for {} s", lasts.as_secs()))
    }
}

impl Default for Work {
    fn default() -> Self {
        Self { clock: Clock::start(), state: Mutex::default() }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_is_in_trouble_once_it_takes_too_long_and_not_after_it() {
        let work = Work::default();
        assert_eq!(work.trouble(), None, "idle");
        work.begin();
        advance(STUCK).await;
        assert_eq!(work.trouble(), None);
        advance(Duration::from_secs(1)).await;
        assert_eq!(work.trouble().as_deref(), Some("no answer for 3 s"));
        assert_eq!(work.done(), Note::Known);
        advance(STUCK * 9).await;
        assert_eq!(work.trouble(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_told_until_some_work_is_done_and_is_news_once() {
        let work = Work::default();
        work.begin();
        assert_eq!(work.failed("locked".into()), Note::News);
        assert_eq!(work.failed("still locked".into()), Note::Known);
        work.given_up();
        assert_eq!(work.trouble().as_deref(), Some("still locked"));
        work.begin();
        assert_eq!(work.trouble().as_deref(), Some("still locked"));
        assert_eq!(work.done(), Note::News);
        assert_eq!((work.trouble(), work.failed("again".into())), (None, Note::News));
    }
}
