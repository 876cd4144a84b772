//! The line at one target: calls that wait for its rates or places come to the front in the order of
//! `backstay_decide::queue`, once the target has room for them, and as many at once as it has room
//! for. So a call that is woken late holds up nobody, and one that is more urgent goes before all that
//! still wait. Calls that fall back on the target have a line of their own: for what it keeps for its own
//! calls these do not stand behind them. Who is at the front asks the target itself: what it was let through for is only
//! promised to it, so that two are not let through for the same room.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use backstay_decide::Moment;
use backstay_decide::breaker::Elsewhere;
use backstay_decide::queue::{Ask, Gone, Next};
use tokio::sync::Notify;

use super::health::TargetHealth;
use super::next::{Limit, is_front, wish};
use super::promised::{Promise, Promised, Wanted};
use super::wish::Whose;
use crate::admit;
use crate::admit::line::{Entry, Gate, Going, Line, Place, Refused, Shut};
use crate::call::Call;
use crate::clock::Clock;
use crate::policy::Queueing;
use crate::sync::Mutex;

/// The most calls at the front of one line. They are there for the time of a wake-up, or until a
/// target that rests may be called again.
const MOST_AT_FRONT: u32 = 64;

/// Lets those to the front that their target has room for.
#[derive(Debug)]
pub(crate) struct Front {
    /// The line is the target's own.
    target: Weak<TargetHealth>,
    promised: Arc<Mutex<Promised>>,
}

impl Gate for Front {
    type Want = Wanted;
    type Pass = Promise;

    fn free(&self, running: u32) -> u32 {
        MOST_AT_FRONT.saturating_sub(running)
    }

    fn pass(&self, _next: &Next, want: &Wanted, now: Moment) -> Result<Promise, Shut> {
        let mut promised = self.promised.lock();
        if let Some(target) = self.target.upgrade() {
            target.has_room(want, &promised, now).map_err(Shut::Until)?;
        }
        promised.add(want);
        drop(promised);
        Ok(Promise::new(Arc::clone(&self.promised), *want))
    }
}

/// The lines at one target.
#[derive(Debug, Default)]
pub(super) struct TargetLine {
    own: Waiting,
    fallbacks: Waiting,
    /// Tells a call at the front that the target has a place.
    freed: Arc<Notify>,
    /// What those at the fronts were let through for.
    promised: Arc<Mutex<Promised>>,
}

/// One line.
#[derive(Debug, Default)]
struct Waiting {
    /// Calls in it, those at the front included: a look at it costs less than a lock.
    count: Arc<AtomicU32>,
    /// Begun when the first call has to wait.
    line: Mutex<Option<Line<Front>>>,
}

impl TargetLine {
    /// Calls that wait here.
    pub(super) fn count(&self) -> u32 {
        self.own.count().saturating_add(self.fallbacks.count())
    }

    /// Calls behind which one would stand.
    pub(super) fn before(&self, whose: Whose) -> u32 {
        match whose {
            Whose::Own => self.own.count(),
            // Room that is promised to the target's own calls is none for it.
            Whose::Fallback => self.count(),
        }
    }

    /// A call gave its place at the target back.
    pub(super) fn freed(&self) {
        if self.count() == 0 {
            return;
        }
        self.freed.notify_one();
        self.own.look();
        self.fallbacks.look();
    }

    fn of(&self, whose: Whose) -> &Waiting {
        match whose {
            Whose::Own => &self.own,
            Whose::Fallback => &self.fallbacks,
        }
    }
}

impl Waiting {
    fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    fn look(&self) {
        if self.count() == 0 {
            return;
        }
        let line = self.line.lock().clone();
        if let Some(line) = line {
            line.look();
        }
    }

    /// The line with the rules of `queue` in force; `front` where it begins.
    fn with(&self, queue: &Queueing, front: Front, clock: Clock) -> Line<Front> {
        // Whoever has a seat may wait: the room is the seats', which are bounded.
        let mut rules = queue.rules.clone();
        rules.count = rules.count.max(usize::try_from(queue.seats).unwrap_or(usize::MAX));
        rules.bytes = u64::MAX;
        for class in &mut rules.classes {
            // Seats, of which a target has none.
            class.kept = 0;
        }
        let mut line = self.line.lock();
        let is_other = line.as_ref().is_some_and(|line| line.reload(rules.clone()).is_err());
        if is_other {
            // Other classes: those that wait go on in the old order.
            *line = None;
        }
        line.get_or_insert_with(|| Line::new(rules, front, clock)).clone()
    }
}

/// Puts a call that asks for `wanted` into the line of `target`.
///
/// # Errors
/// It would come too late, or there is no room.
fn enter(
    target: &Arc<TargetHealth>,
    queue: &Queueing,
    (ask, wanted): (&Ask, Wanted),
    clock: Clock,
) -> Result<InLine, Refused> {
    let own = &target.line;
    let promised = Arc::clone(&own.promised);
    let waiting = own.of(wanted.whose);
    let line = waiting.with(queue, Front { target: Arc::downgrade(target), promised }, clock);
    // Before it looks whether there is room: who makes some then tells the line.
    let counted = Counted::new(Arc::clone(&waiting.count));
    Ok(match line.enter(ask, wanted, clock.now())? {
        Entry::Going(going) => InLine::Front(going, counted),
        Entry::Waits(place) => InLine::Waits(place, counted),
    })
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
    /// At the front: it goes as soon as the target lets it.
    Front(#[expect(dead_code, reason = "held, and dropped")] Going<Front>, Counted),
}

/// How long a call waits in a line before it looks at its other targets.
const LOOK_AROUND: Duration = Duration::from_secs(1);

/// Has `call` stand in the line of its target at `index`, until it is at the front, must leave, or
/// should look at its other targets. One that is at the front waits until `until`, or until the target
/// has a place. `limit`: what it waits for.
pub(crate) async fn stand(call: &mut Call, index: usize, until: Moment, limit: Limit) {
    let clock = *call.engine.clock();
    let front = is_front(call, index).then(|| call.stops.get(index)).flatten();
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
    let stood = place.stood();
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
    let waited = clock.now().since(began);
    if stood.count > 0 {
        call.waits_behind(index, stood, waited);
    } else {
        call.waits_for_limit(index, &limit, waited);
    }
}

/// Whether the call has to wait for its turn, after it took its place.
fn enters(call: &mut Call, index: usize) -> bool {
    let Some(stop) = call.stops.get(index) else { return false };
    if stop.line.is_none() {
        let (clock, plan) = (*call.engine.clock(), call.engine.plan());
        let wanted = stop.health.wanted(&wish(call, stop, clock.now(), Elsewhere::Live));
        let asked = (&admit::ask(&call.contract), wanted);
        match enter(&stop.health, &plan.policy().queue, asked, clock) {
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

#[cfg(test)]
mod tests;
