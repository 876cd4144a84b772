//! The line at one target: calls that wait for its rates or places come to the front one by one, in
//! the order of `backstay_decide::queue`. The one at the front waits for the target itself, so that
//! however many stand behind it sleep, and a large request is not overtaken for ever by small ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use backstay_decide::Moment;
use backstay_decide::queue::{Gone, Next};
use tokio::sync::Notify;

use crate::admit;
use crate::admit::line::{Entry, Gate, Going, Line, Place, Refused, Shut};
use crate::call::Call;
use crate::clock::Clock;
use crate::policy::Queueing;
use crate::sync::Mutex;

/// Lets one call at a time to the front.
#[derive(Debug)]
pub(crate) struct Front;

impl Gate for Front {
    type Pass = ();

    fn free(&self, running: u32) -> u32 {
        1_u32.saturating_sub(running)
    }

    fn pass(&self, _next: &Next, _now: Moment) -> Result<(), Shut> {
        Ok(())
    }
}

/// The line at one target.
#[derive(Debug, Default)]
pub(super) struct TargetLine {
    /// Calls in it, the one at the front included: a look at it costs less than a lock.
    count: Arc<AtomicU32>,
    /// Begun when the first call has to wait.
    line: Mutex<Option<Line<Front>>>,
    /// Tells the call at the front that the target has a place.
    freed: Arc<Notify>,
}

impl TargetLine {
    /// Calls that wait here.
    pub(super) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// A call gave its place at the target back.
    pub(super) fn freed(&self) {
        if self.count() > 0 {
            self.freed.notify_one();
        }
    }

    /// Puts a call into the line.
    ///
    /// # Errors
    /// It would come too late, or there is no room.
    fn enter(&self, call: &Call, queue: &Queueing, clock: Clock) -> Result<InLine, Refused> {
        // Whoever has a seat may wait: the room is the seats', which are bounded.
        let mut rules = queue.rules.clone();
        rules.count = rules.count.max(usize::try_from(queue.seats).unwrap_or(usize::MAX));
        rules.bytes = u64::MAX;
        let mut line = self.line.lock();
        let is_other = line.as_ref().is_some_and(|line| line.reload(rules.clone()).is_err());
        if is_other {
            // Other classes: those that wait go on in the old order.
            *line = None;
        }
        let line = line.get_or_insert_with(|| Line::new(rules, Front, clock)).clone();
        let entry = line.enter(&admit::ask(&call.contract), clock.now())?;
        let counted = Counted::new(Arc::clone(&self.count));
        Ok(match entry {
            Entry::Going(going) => InLine::Front(going, counted),
            Entry::Waits(place) => InLine::Waits(place, counted),
        })
    }
}

/// One of the calls of a line; not any more when dropped.
#[derive(Debug)]
pub(crate) struct Counted(Arc<AtomicU32>);

impl Counted {
    fn new(count: Arc<AtomicU32>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call's place in the line of a target. Dropping it leaves the line.
#[derive(Debug)]
pub(crate) enum InLine {
    /// Behind others.
    Waits(Place<Front>, Counted),
    /// At the front: the next to go.
    Front(#[expect(dead_code, reason = "held, and dropped")] Going<Front>, Counted),
}

/// How long a call waits in a line before it looks at its other targets.
const LOOK_AROUND: std::time::Duration = std::time::Duration::from_secs(1);

/// Has `call` stand in the line of its target at `index`, until it is at the front, must leave, or
/// should look at its other targets. One that is at the front waits until `until`, or until the target
/// has a place.
pub(crate) async fn stand(call: &mut Call, index: usize, until: Moment) {
    let clock = *call.engine.clock();
    let front = call.stops.get(index).filter(|stop| matches!(stop.line, Some(InLine::Front(..))));
    if let Some(stop) = front {
        let freed = Arc::clone(&stop.health.line.freed);
        // Of a dropped `notified` nothing is lost but a look, which the other branch leads to.
        tokio::select! {
            () = freed.notified() => {}
            () = clock.sleep_until(until) => {}
        }
        return;
    }
    if !enters(call, index) {
        return;
    }
    let looks = call.stops.len() > 1;
    let began = clock.now();
    let Some(stop) = call.stops.get_mut(index) else { return };
    let Some(InLine::Waits(place, _)) = &mut stop.line else { return };
    let told = if looks {
        // A dropped `select!` keeps the place: only the look at it is lost.
        tokio::select! {
            told = place => Some(told),
            () = clock.sleep_until(began.plus(LOOK_AROUND)) => None,
        }
    } else {
        Some(place.await)
    };
    match told {
        None => {}
        Some(Ok(going)) => comes_forward(call, index, going),
        Some(Err(gone)) => leaves(call, index, &gone),
    }
    call.waits_behind(index, clock.now().since(began));
}

/// Whether the call has to wait for its turn, after it took its place.
fn enters(call: &mut Call, index: usize) -> bool {
    let Some(stop) = call.stops.get(index) else { return false };
    if stop.line.is_none() {
        let plan = call.engine.plan();
        let entered = stop.health.line.enter(call, &plan.policy().queue, *call.engine.clock());
        match entered {
            Ok(line) => {
                if let Some(stop) = call.stops.get_mut(index) {
                    stop.line = Some(line);
                }
            }
            Err(refused) => {
                let why = refused.refusal.to_string();
                call.turned_away(index, (refused.refusal.name(), why));
            }
        }
    }
    call.stops.get(index).is_some_and(|stop| matches!(stop.line, Some(InLine::Waits(..))))
}

fn comes_forward(call: &mut Call, index: usize, going: Going<Front>) {
    let Some(stop) = call.stops.get_mut(index) else { return };
    stop.line = match stop.line.take() {
        Some(InLine::Waits(_, counted) | InLine::Front(_, counted)) => {
            Some(InLine::Front(going, counted))
        }
        None => None,
    };
}

fn leaves(call: &mut Call, index: usize, gone: &Gone) {
    if let Some(stop) = call.stops.get_mut(index) {
        stop.line = None;
    }
    call.turned_away(index, (gone.left.name(), gone.to_string()));
}
