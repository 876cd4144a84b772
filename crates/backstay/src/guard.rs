//! Guards a stream of one's own: limits on its waits and on what it says, for a client that Backstay knows
//! nothing of.
//!
//! [`guard`] takes any stream of any items, and a function that says what text an item brings. It
//! hands the items on as they come, and ends with one typed error when a limit is passed; the stream
//! below is dropped at that moment, which is how most clients cancel.
//!
//! ```
//! use std::time::Duration;
//! use backstay::guard::{Limits, guard};
//! use futures_util::{StreamExt as _, stream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! struct Chunk { text: String }
//! let chunks = stream::iter(["Light", "house"]).map(|text| Chunk { text: text.into() });
//!
//! let limits = Limits {
//!     first_token: Duration::from_millis(1500),
//!     gap: Duration::from_millis(150),
//!     ..Limits::default()
//! };
//! let mut guarded = guard(chunks, limits, |chunk| &chunk.text);
//! while let Some(item) = guarded.next().await {
//!     match item {
//!         Ok(chunk) => print!("{}", chunk.text),
//!         Err(passed) => eprintln!("{}: {passed}", passed.code()),
//!     }
//! }
//! # }
//! ```
//!
//! Only text is progress: items without any keep nothing alive. Only the wait for the stream is timed,
//! not that of whoever reads it.

use std::fmt;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backstay_decide::detectors::{self, Channel, Guards, Level, Signal};
use backstay_decide::fault::Fault;
use futures_core::Stream;
use tokio::time::{Instant, Sleep};

/// What a stream is held to. Each limit counts by itself; [`Duration::MAX`] is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the first poll to the first text.
    pub first_token: Duration,
    /// Between two pieces of text.
    pub gap: Duration,
    /// From the first poll to the end.
    pub total: Duration,
    /// What its text is held to: what a guard is sure of ends it. `None`: nothing.
    pub guards: Option<detectors::Limits>,
}

impl Default for Limits {
    /// What the gateway holds streams to by default: 120 s, 60 s, ten minutes, and no loops.
    fn default() -> Self {
        Self {
            first_token: Duration::from_mins(2),
            gap: Duration::from_mins(1),
            total: Duration::from_mins(10),
            guards: Some(detectors::Limits::default()),
        }
    }
}

/// A limit that a stream has passed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Passed {
    /// No text came at all.
    #[error("no token within {limit:?}")]
    FirstToken {
        /// The limit.
        limit: Duration,
    },
    /// Text came, then none.
    #[error("no token for {limit:?} after {pieces} pieces of text")]
    Gap {
        /// The limit.
        limit: Duration,
        /// Pieces of text that had come.
        pieces: u64,
    },
    /// The stream was not over in time.
    #[error("not over within {limit:?}, after {pieces} pieces of text")]
    Total {
        /// The limit.
        limit: Duration,
        /// Pieces of text that had come.
        pieces: u64,
    },
    /// Nothing of worth comes any more.
    #[error("the text is not worth reading on: {signal}")]
    Worthless {
        /// What was found.
        signal: Signal,
    },
}

impl Passed {
    /// The fault it is in the engine's own words.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::FirstToken { .. } => Fault::NoFirstToken,
            Self::Gap { .. } => Fault::Stalled,
            Self::Total { .. } => Fault::TotalTimeout,
            Self::Worthless { .. } => Fault::Looping,
        }
    }

    /// Its stable name.
    pub const fn code(&self) -> &'static str {
        self.fault().code()
    }
}

/// Holds `stream` to `limits`. `text` says what text an item brings; empty: none.
///
/// Needs a tokio runtime with its timers on when it is polled.
pub fn guard<S, F>(stream: S, limits: Limits, text: F) -> Guarded<S, F>
where
    S: Stream,
    F: Fn(&S::Item) -> &str,
{
    Guarded {
        stream: Some(Box::pin(stream)),
        text,
        limits,
        guards: limits.guards.map(|limits| Box::new(Guards::new(limits))),
        began: None,
        waiting: None,
        first_token: None,
        pieces: 0,
        alarm: None,
    }
}

/// A stream that is held to its limits; see [`guard`].
pub struct Guarded<S, F> {
    /// `None`: it is over, or has passed a limit.
    stream: Option<Pin<Box<S>>>,
    text: F,
    limits: Limits,
    guards: Option<Box<Guards>>,
    /// When it was polled first.
    began: Option<Instant>,
    /// When the present wait for text began. `None`: not waiting.
    waiting: Option<Instant>,
    first_token: Option<Duration>,
    pieces: u64,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<S, F> fmt::Debug for Guarded<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("limits", &self.limits)
            .field("pieces", &self.pieces)
            .finish_non_exhaustive()
    }
}

impl<S, F> Guarded<S, F> {
    /// From the first poll to the first text. `None`: none has come.
    pub fn first_token(&self) -> Option<Duration> {
        self.first_token
    }

    /// Pieces of text so far.
    pub fn pieces(&self) -> u64 {
        self.pieces
    }

    /// `text` came. Ready with the limit that has been passed all the same.
    fn progress(&mut self, began: Instant, text: &str) -> Poll<Passed> {
        let now = Instant::now();
        self.pieces += 1;
        self.first_token.get_or_insert(now - began);
        self.waiting = None;
        let found = self.guards.as_mut().and_then(|guards| guards.feed(Channel::Text, text));
        if let Some(signal) = found.filter(|signal| signal.level == Level::Hard) {
            return Poll::Ready(Passed::Worthless { signal });
        }
        let limit = self.limits.total;
        if now - began < limit {
            return Poll::Pending;
        }
        Poll::Ready(Passed::Total { limit, pieces: self.pieces })
    }

    /// Ready with the limit that has been passed. The alarm is set lazily: it may ring early.
    fn poll_limits(&mut self, began: Instant, cx: &mut Context<'_>) -> Poll<Passed> {
        let waiting = match self.first_token {
            None => began,
            Some(_) => *self.waiting.get_or_insert_with(Instant::now),
        };
        let Limits { first_token, gap, total, .. } = self.limits;
        let pieces = self.pieces;
        let (limit, passed) = match self.first_token {
            None => (first_token, Passed::FirstToken { limit: first_token }),
            Some(_) => (gap, Passed::Gap { limit: gap, pieces }),
        };
        let ends = [
            (waiting.checked_add(limit), passed),
            (began.checked_add(total), Passed::Total { limit: total, pieces }),
        ];
        let ends = ends.into_iter().filter_map(|(at, passed)| Some((at?, passed)));
        let Some((due, passed)) = ends.min_by_key(|(at, _)| *at) else { return Poll::Pending };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if alarm.deadline() != due {
            alarm.as_mut().reset(due);
        }
        ready!(alarm.as_mut().poll(cx));
        Poll::Ready(passed)
    }
}

impl<S, F> Stream for Guarded<S, F>
where
    S: Stream,
    F: Fn(&S::Item) -> &str + Unpin,
{
    type Item = Result<S::Item, Passed>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(stream) = &mut this.stream else { return Poll::Ready(None) };
        let began = *this.began.get_or_insert_with(Instant::now);
        let item = match stream.as_mut().poll_next(cx) {
            Poll::Ready(Some(item)) => Some(item),
            Poll::Ready(None) => {
                this.stream = None;
                return Poll::Ready(None);
            }
            Poll::Pending => None,
        };
        // Looked at also when an item has come: a stream of nothing but signs of life is never found
        // waiting, and one that is read slowly neither.
        let text = item.as_ref().map_or("", |item| (this.text)(item));
        let passed = match text {
            "" => this.poll_limits(began, cx),
            text => this.progress(began, text),
        };
        if let Poll::Ready(passed) = passed {
            // The client cancels when it is dropped, so not a moment later than this.
            this.stream = None;
            return Poll::Ready(Some(Err(passed)));
        }
        item.map_or(Poll::Pending, |item| Poll::Ready(Some(Ok(item))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::{StreamExt as _, stream};
    use tokio::time::sleep;

    use super::*;

    /// What a client gives out; an empty text is a sign of life.
    type Chunk = (&'static str, Arc<()>);

    /// Items after so many milliseconds each, then nothing more, for ever.
    fn timed(items: &'static [(u64, &'static str)], held: &Arc<()>) -> impl Stream<Item = Chunk> {
        let held = Arc::clone(held);
        let timed = stream::iter(items).then(move |(after, text)| {
            let held = Arc::clone(&held);
            async move {
                sleep(Duration::from_millis(*after)).await;
                (*text, held)
            }
        });
        timed.chain(stream::pending())
    }

    fn limits() -> Limits {
        let [first_token, gap, total] = [1500, 150, 5000].map(Duration::from_millis);
        Limits { first_token, gap, total, ..Limits::default() }
    }

    /// The texts that came, and the limit that was passed.
    async fn seen(items: &'static [(u64, &'static str)]) -> (String, Option<Passed>) {
        let held = Arc::new(());
        let mut guarded = guard(timed(items, &held), limits(), |(text, _)| *text);
        let mut texts = String::new();
        let mut passed = None;
        while let Some(item) = guarded.next().await {
            match item {
                Ok((text, _)) => texts.push_str(text),
                Err(error) => passed = Some(error),
            }
        }
        assert_eq!(Arc::strong_count(&held), 1, "the stream below was kept");
        (texts, passed)
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_says_nothing_ends_at_its_first_token_limit() {
        let limit = Duration::from_millis(1500);
        let passed = Some(Passed::FirstToken { limit });
        assert_eq!(seen(&[]).await, (String::new(), passed));
        assert_eq!(seen(&[(1600, "late")]).await, (String::new(), passed));
        let pings = &[(700, ""), (700, ""), (700, ""), (0, "late")];
        assert_eq!(seen(pings).await, (String::new(), passed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_gap_ends_a_stream_after_what_had_come() {
        let limit = Duration::from_millis(150);
        let items = &[(1400, "a"), (149, "b"), (100, ""), (100, ""), (0, "c")];
        let (texts, passed) = seen(items).await;
        assert_eq!(texts, "ab");
        assert_eq!(passed, Some(Passed::Gap { limit, pieces: 2 }));
        assert_eq!(passed.map(|passed| passed.code()), Some("provider_stream_stalled"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_end_ends_at_its_total() {
        let limit = Duration::from_secs(5);
        let endless = stream::repeat("x").then(|text| async move {
            sleep(Duration::from_millis(100)).await;
            text
        });
        let all: Vec<_> = guard(endless, limits(), |text| *text).collect().await;
        assert_eq!(all.last(), Some(&Err(Passed::Total { limit, pieces: 50 })));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_not_taken_for_a_silent_stream() {
        let mut guarded = guard(stream::iter(["a", "b", "c"]), limits(), |text| *text);
        for _ in 0..3 {
            assert!(guarded.next().await.is_some_and(|item| item.is_ok()));
            sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(guarded.next().await, None);
        assert_eq!((guarded.pieces(), guarded.first_token()), (3, Some(Duration::ZERO)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_ends_a_stream_unless_nothing_is_looked_for() {
        let looped = || stream::iter(vec!["and so on, again and again. "; 200]);
        let guarded = guard(looped(), limits(), |text| *text);
        let items: Vec<_> = guarded.collect().await;
        assert!(items.len() < 60, "{}", items.len());
        assert!(matches!(items.last(), Some(Err(Passed::Worthless { .. }))));
        let unguarded = guard(looped(), Limits { guards: None, ..limits() }, |text| *text);
        assert_eq!(unguarded.count().await, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn no_limit_is_as_long_as_it_takes() {
        let most = Duration::MAX;
        let limits = Limits { first_token: most, gap: most, total: most, guards: None };
        let held = Arc::new(());
        let slow = timed(&[(3_600_000, "a"), (7_200_000, "b")], &held);
        let guarded = guard(slow, limits, |(text, _)| *text);
        assert_eq!(
            guarded.take(2).filter(|item| std::future::ready(item.is_ok())).count().await,
            2
        );
    }
}
