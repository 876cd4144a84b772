//! What an attempt tells of its target's speed.

use std::time::Duration;

use backstay_decide::breaker::Report;
use backstay_decide::latency::{Gaps, Measure, Present, PromptSize, Took, per_token};
use backstay_decide::{Fault, Moment};

use super::ending::{Brought, Ending};

/// How an attempt that goes out is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// As a stream that goes to the caller from its first content on.
    Released,
    /// As a stream, to its end.
    Folded,
    /// In one piece.
    Plain,
}

/// What a clock saw of an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timed {
    /// From sending to the end.
    pub took: Duration,
    /// From sending to the first content of a stream. `None`: no stream, or none came.
    pub first_token: Option<Duration>,
    /// The pauses of a stream.
    pub gaps: Gaps,
}

/// One attempt, as far as its target's speed is concerned.
#[derive(Debug)]
pub(super) struct Course {
    /// How long its prompt is.
    pub(super) size: PromptSize,
    /// The longest that its first content may take without being late, by what was known of the target
    /// when it began. `None`: any.
    late_after: Option<Duration>,
    began: Moment,
    /// `None`: it did not go out, or nobody looks at the clock. Nothing is measured of it.
    pub(super) going: Option<Going>,
    start: Start,
}

/// How the first content came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Not yet.
    Awaited,
    /// As it usually does.
    Usual,
    /// Later than that.
    Late,
}

impl Course {
    pub(super) fn new(size: PromptSize, late_after: Option<Duration>, began: Moment) -> Self {
        Self { size, late_after, began, going: None, start: Start::Awaited }
    }

    /// Whether its first content came late.
    pub(super) fn is_late(&self) -> bool {
        self.start == Start::Late
    }

    /// The first content came after `first`, and the attempt goes on.
    pub(super) fn started(&mut self, first: Duration, present: &mut Present<'_>) {
        self.judge(first);
        if self.going.is_some() {
            present.note(self.size, Measure::FirstToken, Took::Done(first));
        }
    }

    fn judge(&mut self, first: Duration) {
        let is_late = self.late_after.is_some_and(|most| first > most);
        self.start = if is_late { Start::Late } else { Start::Usual };
    }

    /// The attempt ended: what its breakers hear.
    pub(super) fn ended(mut self, ending: &Ending, present: &mut Present<'_>) -> Report {
        if let Brought::Content(Some(first)) = ending.brought {
            self.judge(first);
        }
        if let Some(going) = self.going {
            let size = self.size;
            measured(going, ending, |measure, took| present.note(size, measure, took));
        }
        if self.is_late() { ending.report.slowed() } else { ending.report }
    }

    /// The attempt was given up: its caller left.
    pub(super) fn given_up(&self, now: Moment, present: &mut Present<'_>) {
        let measure = match self.going {
            Some(Going::Released) if self.start == Start::Awaited => Measure::FirstToken,
            Some(Going::Folded | Going::Plain) => Measure::Whole,
            Some(Going::Released) | None => return,
        };
        present.note(self.size, measure, Took::Cut(now.since(self.began)));
    }
}

/// Everything that an attempt which ended so tells, but what was told at its start.
fn measured(going: Going, ending: &Ending, mut note: impl FnMut(Measure, Took)) {
    let Timed { took, first_token, gaps } = ending.timed;
    let is_whole = going != Going::Released;
    let is_written = match ending.brought {
        Brought::Content(first) => {
            if let Some(first) = first {
                note(Measure::FirstToken, Took::Done(first));
            }
            if is_whole {
                note(Measure::Whole, Took::Done(took));
            }
            is_whole
        }
        Brought::Nothing => !is_held_up(&ending.timed),
        Brought::Fault(Fault::NoFirstToken | Fault::TotalTimeout) => {
            if first_token.is_none() && going != Going::Plain {
                note(Measure::FirstToken, Took::Cut(took));
            }
            if is_whole {
                note(Measure::Whole, Took::Cut(took));
            }
            false
        }
        // How fast it failed says nothing of how fast it is.
        Brought::Fault(_) => false,
    };
    let output = ending.usage.output.filter(|_| is_written);
    if let Some(time) = output.and_then(|output| per_token(took, first_token, output)) {
        note(Measure::PerToken, Took::Done(time));
    }
    for gap in gaps.iter() {
        note(Measure::Gap, gap);
    }
}

/// Whether less than half of a stream's time was spent waiting for the provider: then its reader held
/// it up, and how long it took says nothing of how fast it was written.
fn is_held_up(timed: &Timed) -> bool {
    let after_first = timed.took.saturating_sub(timed.first_token.unwrap_or_default());
    timed.gaps.sum() < after_first / 2
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use backstay_decide::breaker::{Cut, Seen};
    use backstay_decide::latency::Known;
    use backstay_wire::Usage;

    use super::*;
    use crate::clock::Clock;
    use crate::route::guard::tests::{take, target};
    use crate::route::{Health, Held, TargetHealth};

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn at(n: u64) -> Moment {
        Moment::at(secs(n))
    }

    fn health() -> Arc<TargetHealth> {
        Health::default().of(&Arc::new(target(0)), "m", &Clock::start())
    }

    /// An attempt that goes out so at `now`.
    fn going(health: &Arc<TargetHealth>, going: Going, now: Moment) -> Held {
        let mut held = take(health, now).unwrap();
        held.goes(going);
        held
    }

    /// A whole reply of 101 tokens after `took`, whose first content came after `first`.
    fn whole(first: Option<Duration>, took: Duration) -> Ending {
        Ending {
            report: Report::of(Seen::default()),
            brought: Brought::Content(first),
            usage: Usage { output: Some(101), ..Usage::default() },
            timed: Timed { took, first_token: first, gaps: Gaps::default() },
            leaves: None,
        }
    }

    fn failed(fault: Fault, cut: Cut, took: Duration) -> Ending {
        let report = Report::of(Seen { fault: Some(fault), cut, ..Seen::default() });
        let timed = Timed { took, ..Timed::default() };
        let (brought, usage) = (Brought::Fault(fault), Usage::default());
        Ending { report, brought, usage, timed, leaves: None }
    }

    /// Fifty streams whose first content came after `first`, at `now`.
    fn usual(health: &Arc<TargetHealth>, first: Duration, now: Moment) {
        for _ in 0..50 {
            let ending = whole(Some(first), first + secs(1));
            assert!(going(health, Going::Folded, now).settle(ending, now).is_empty());
        }
    }

    fn known(health: &Arc<TargetHealth>, now: Moment) -> Known {
        health.known(PromptSize::default(), now)
    }

    fn is_near(told: Option<Duration>, took: Duration) -> bool {
        told.is_some_and(|told| told.abs_diff(took) <= took / 40)
    }

    #[test]
    fn fifty_replies_make_it_known_and_those_that_did_not_go_out_say_nothing() {
        let health = health();
        for _ in 0..100 {
            take(&health, at(1)).unwrap().settle(whole(Some(secs(9)), secs(10)), at(1));
        }
        assert_eq!(known(&health, at(1)), Known::default());
        usual(&health, secs(2), at(1));
        let known = known(&health, at(1));
        assert!(is_near(known.first_token, secs(2)), "{known:?}");
        assert!(is_near(known.usual_whole, secs(3)), "{known:?}");
        assert!(is_near(known.per_token, Duration::from_millis(10)), "{known:?}");
    }

    #[test]
    fn a_reply_in_one_piece_tells_its_whole_time_and_nothing_of_a_first_token() {
        let health = health();
        for _ in 0..50 {
            going(&health, Going::Plain, at(1))
                .settle(whole(None, Duration::from_millis(1010)), at(1));
        }
        let known = known(&health, at(1));
        assert_eq!(known.first_token, None);
        assert!(is_near(known.usual_whole, Duration::from_millis(1010)), "{known:?}");
        assert!(is_near(known.per_token, Duration::from_millis(10)), "{known:?}");
    }

    #[test]
    fn a_released_stream_tells_how_fast_it_is_written_unless_its_reader_held_it_up() {
        let health = health();
        let streamed = |pause: Duration, took: Duration| {
            let mut held = going(&health, Going::Released, at(1));
            assert!(held.started(Brought::Content(Some(secs(1))), at(1)).is_empty());
            let mut gaps = Gaps::default();
            for _ in 0..100 {
                if gaps.is_due() {
                    gaps.note(pause);
                }
            }
            let ending = whole(Some(secs(1)), secs(1) + took);
            let timed = Timed { gaps, ..ending.timed };
            held.settle(Ending { brought: Brought::Nothing, timed, ..ending }, at(1));
        };
        // 100 tokens in 1 s, waited for; then read in a minute by somebody slow.
        for _ in 0..50 {
            streamed(Duration::from_millis(10), secs(1));
            streamed(Duration::from_millis(1), secs(60));
        }
        let per_token = known(&health, at(1)).per_token;
        assert!(is_near(per_token, Duration::from_millis(10)), "{per_token:?}");
    }

    #[test]
    fn a_first_content_far_later_than_usual_counts_among_the_failures() {
        let health = health();
        usual(&health, secs(4), at(1));
        let late = |brought: u64| {
            let mut held = going(&health, Going::Released, at(2));
            let content = Brought::Content(Some(secs(brought)));
            assert!(held.started(content, at(2)).is_empty());
            let ending = whole(None, secs(brought + 1));
            held.settle(Ending { brought: Brought::Nothing, ..ending }, at(2))
        };
        assert!((0..100).all(|_| late(7).is_empty()), "within twice the usual");
        let opened = (1..=60).find(|_| !late(9).is_empty());
        assert!(opened.is_some_and(|calls| calls > 20), "by its rate, not in a row: {opened:?}");
        assert_eq!(health.shut("availability", at(2)), 1);
    }

    #[test]
    fn a_wait_that_the_caller_cut_short_is_no_failure() {
        let health = health();
        usual(&health, secs(1), at(1));
        for _ in 0..100 {
            let held = going(&health, Going::Released, at(2));
            let ending = failed(Fault::NoFirstToken, Cut::Caller, Duration::from_millis(200));
            assert!(held.settle(ending, at(2)).is_empty());
        }
        assert!(is_near(known(&health, at(60)).first_token, secs(1)), "and makes it no quicker");
    }

    #[test]
    fn what_was_given_up_makes_a_timer_longer_and_what_failed_fast_does_not_touch_it() {
        let health = health();
        usual(&health, secs(4), at(1));
        for _ in 0..3 {
            let failed = failed(Fault::NoFirstToken, Cut::Route, secs(6));
            going(&health, Going::Released, at(2)).settle(failed, at(2));
            let failed = self::failed(Fault::ServerError, Cut::Route, Duration::from_millis(5));
            going(&health, Going::Released, at(2)).settle(failed, at(2));
            usual(&health, Duration::from_millis(3900), at(2));
        }
        let known = known(&health, at(60)).first_token;
        assert!(known > Some(Duration::from_millis(4800)), "one in fifty was cut: {known:?}");
    }

    #[test]
    fn a_sick_target_does_not_become_the_yardstick_for_itself() {
        let health = health();
        usual(&health, secs(1), at(1));
        for _ in 0..5 {
            let failed = failed(Fault::ServerError, Cut::Route, secs(1));
            going(&health, Going::Folded, at(2)).settle(failed, at(2));
        }
        assert_eq!(health.shut("availability", at(2)), 1);
        assert!(is_near(known(&health, at(30)).first_token, secs(1)));
        assert!(is_near(known(&health, at(3000)).first_token, secs(1)), "an hour of rest");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_leaves_before_the_first_content_waited_at_least_so_long() {
        let health = health();
        usual(&health, secs(1), health.now());
        for _ in 0..2 {
            let held = going(&health, Going::Released, health.now());
            tokio::time::advance(secs(15)).await;
            drop(held);
            let mut held = going(&health, Going::Released, health.now());
            held.started(Brought::Content(Some(secs(1))), health.now());
            tokio::time::advance(secs(10)).await;
            drop(held);
        }
        tokio::time::advance(secs(10)).await;
        let told = known(&health, health.now()).first_token;
        assert!(
            is_near(told, Duration::from_millis(1250)),
            "a quarter more, a minute on: {told:?}"
        );
    }
}
