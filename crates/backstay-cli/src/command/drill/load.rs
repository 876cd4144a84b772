//! Plays one case: the weather changes while requests are sent, and then everybody is asked what was.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::caller::Caller;
use super::fleet::Fleet;
use super::plan::Case;
use super::rules::Call;

/// Sends what `case` sends, in order of arrival.
pub(super) async fn play(
    case: &Arc<Case>,
    caller: &Arc<Caller>,
    fleet: &Fleet,
    bar: &ProgressBar,
) -> Vec<Call> {
    fleet.begin(case);
    // The weather never ends by itself; dropping it loses nothing.
    tokio::select! {
        calls = send(case, caller, bar) => calls,
        never = weather(case, fleet) => match never {},
    }
}

async fn weather(case: &Case, fleet: &Fleet) -> std::convert::Infallible {
    let mut began = Instant::now();
    loop {
        for turn in &case.weather {
            tokio::time::sleep_until(began + turn.at).await;
            fleet.play(case, &turn.play);
        }
        match case.every {
            Some(every) => began += every,
            None => return std::future::pending().await,
        }
        tokio::time::sleep_until(began).await;
    }
}

async fn send(case: &Arc<Case>, caller: &Arc<Caller>, bar: &ProgressBar) -> Vec<Call> {
    let began = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..case.ask.at_once.min(case.ask.requests) {
        let (case, caller, next, bar) =
            (Arc::clone(case), Arc::clone(caller), Arc::clone(&next), bar.clone());
        workers.spawn(async move {
            let mut calls = Vec::new();
            loop {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                if nth >= case.ask.requests {
                    return calls;
                }
                tokio::time::sleep_until(began + due(case.ask.apart, nth)).await;
                calls.push((nth, caller.ask(&case).await));
                bar.inc(1);
            }
        });
    }
    let mut calls: Vec<(usize, Call)> = workers.join_all().await.into_iter().flatten().collect();
    calls.sort_by_key(|(nth, _)| *nth);
    calls.into_iter().map(|(_, call)| call).collect()
}

/// When the `nth` request is due, from 0.
fn due(apart: Duration, nth: usize) -> Duration {
    apart.saturating_mul(u32::try_from(nth).unwrap_or(u32::MAX))
}
