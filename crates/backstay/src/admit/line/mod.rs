//! A line: calls that wait until they may go, in the order of `backstay_decide::queue`.
//!
//! What they wait for is a [`Gate`]: the seats of the gateway, or the rates and places of one target.
//!
//! ```text
//!            ┌─▶ refused: too late, or no room
//! ask ─enter─┼─▶ Going ────────────────────────────────▶ dropped: the next may go
//!            └─▶ Place ─┬─ its turn ─▶ Going
//!                       ├─ left: shed, or its time is over
//!                       └─ dropped: its caller gave up
//! ```
//!
//! Nobody runs the line: who enters, ends, gives up or is woken sees to it that whoever may go now is
//! told, each by its own waker and nobody else. A call that waits sets one timer, for its own last
//! moment; the call that is next sets it for the moment at which the gate may open, when that is
//! sooner. A call that is next and is not polled then holds up the others until any of them moves.

mod going;
mod place;

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use backstay_decide::Moment;
use backstay_decide::queue::{
    Ask, Drain, Gone, Next, OtherClasses, Queue, Refusal, Rules, Running, Standing, Ticket,
};
use backstay_decide::time::Secs;

use crate::clock::Clock;
use crate::sync::Mutex;
pub use going::Going;
pub use place::Place;

/// The shortest time between two looks at a gate that is shut.
const LOOK: Duration = Duration::from_millis(1);

/// What the calls of a line wait for. It is asked under the line's lock: it must be quick, and must
/// not come back to the line.
pub trait Gate: Debug + Send + Sync + 'static {
    /// What a call asks of it, beside what the order of the line goes by.
    type Want: Debug + Send + 'static;

    /// What a call that goes has of it. It is dropped when the call is over, before the next is let
    /// through.
    type Pass: Debug + Send + 'static;

    /// Seats that are free while `running` calls of this line run. Of them, classes keep some.
    fn free(&self, running: u32) -> u32;

    /// Lets `next`, which asks for `want`, through at `now`.
    ///
    /// # Errors
    /// It is shut for this call.
    fn pass(&self, next: &Next, want: &Self::Want, now: Moment) -> Result<Self::Pass, Shut>;
}

/// When to ask again at a gate that is shut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shut {
    /// At this moment, and whenever a call of the line is over.
    Until(Moment),
    /// When a call of the line is over, or somebody says so by [`Line::look`].
    UntilTold,
}

/// What came of an arrival.
#[derive(Debug)]
pub enum Entry<G: Gate> {
    /// It goes.
    Going(Going<G>),
    /// It waits.
    Waits(Place<G>),
}

/// How a call stood when it entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stood {
    /// Calls that waited already, of all classes.
    pub count: usize,
    /// The cost that went before it in its class.
    pub ahead: u64,
    /// The cost that left in a second, of all classes. `None`: not known.
    pub drain: Option<u64>,
    /// How long the wait was going to be by that.
    pub wait: Option<Duration>,
}

impl fmt::Display for Stood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, ahead, drain, wait } = self;
        write!(f, "{count} waiting, cost {ahead} before it")?;
        match (drain, wait) {
            (Some(drain), Some(wait)) => {
                write!(f, ", {drain} of it leave in a second: {}", Secs(*wait))
            }
            _ => Ok(()),
        }
    }
}

/// Why a call may not enter, and when it may come again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// How long it would have had to wait. `None`: not known.
    pub wait: Option<Duration>,
}

/// How a line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its classes, the highest first.
    pub classes: Vec<Standing>,
    /// Calls that wait, and may.
    pub count: [usize; 2],
    /// Bytes that wait, and may.
    pub bytes: [u64; 2],
    /// Calls that run.
    pub running: u32,
    /// The cost that leaves in a second. `None`: not known.
    pub drain: Option<u64>,
}

/// A line. Cheap to clone; all clones are one.
#[derive(Debug)]
pub struct Line<G: Gate> {
    shared: Arc<Shared<G>>,
}

#[derive(Debug)]
struct Shared<G: Gate> {
    gate: G,
    clock: Clock,
    state: Mutex<State<G>>,
}

struct State<G: Gate> {
    queue: Queue,
    slots: HashMap<Ticket, Slot<G>>,
    running: u32,
    drain: Drain,
    /// The call that is next though the gate is shut, and when to ask again.
    waits: Option<(Ticket, Option<Moment>)>,
}

impl<G: Gate> Debug for State<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State({} waiting, {} running)", self.slots.len(), self.running)
    }
}

/// What the line has to say to one call.
enum Slot<G: Gate> {
    /// Nothing yet. Without a waker it was not polled.
    Waits(Option<Waker>, G::Want),
    /// It may go.
    Goes(Running, G::Pass),
    /// It left.
    Left(Gone),
}

impl<G: Gate> Clone for Line<G> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<G: Gate> Line<G> {
    /// An empty line to `gate`.
    pub fn new(rules: Rules, gate: G, clock: Clock) -> Self {
        let state = State {
            queue: Queue::new(rules),
            slots: HashMap::new(),
            running: 0,
            drain: Drain::default(),
            waits: None,
        };
        Self { shared: Arc::new(Shared { gate, clock, state: Mutex::new(state) }) }
    }

    /// What it leads to.
    pub fn gate(&self) -> &G {
        &self.shared.gate
    }

    /// Lets a call go, or has it wait. `want` is what it asks of the gate, `now` the time of its
    /// arrival here.
    ///
    /// # Errors
    /// It would come too late, or there is no room.
    pub fn enter(&self, ask: &Ask, want: G::Want, now: Moment) -> Result<Entry<G>, Refused> {
        let shared = &*self.shared;
        let mut state = shared.state.lock();
        if let Some(running) = state.goes_at_once(ask, (&shared.gate, &want), now) {
            drop(state);
            return Ok(Entry::Going(running.of(self.clone())));
        }
        let mut woken = Vec::new();
        if state.slots.is_empty() {
            state.drain.begin(now);
        }
        let drain = state.drain.rate(now);
        let (ahead, wait) = state.queue.ahead(ask, drain.unwrap_or(0), now);
        let wait = drain.map(|_| wait);
        let stood = Stood { count: state.slots.len(), ahead, drain, wait };
        let entry = state.queue.enter(ask, drain, now);
        state.tell(entry.gone, &mut woken);
        let ticket = entry.ticket.map_err(|refusal| Refused { refusal, wait });
        if let Ok(ticket) = ticket {
            state.slots.insert(ticket, Slot::Waits(None, want));
        }
        state.see(&shared.gate, now, &mut woken);
        drop(state);
        wake(woken);
        let last = Moment::at(ask.deadline.since_origin().saturating_sub(ask.needs));
        ticket.map(|ticket| Entry::Waits(Place::new(self.clone(), ticket, last, stood)))
    }

    /// Looks whether somebody may go now: for a gate that opened by itself.
    pub fn look(&self) {
        self.change(|_, _| ());
    }

    /// Sets new bounds, shares and kept seats.
    ///
    /// # Errors
    /// The classes are others: begin a new line.
    pub fn reload(&self, rules: Rules) -> Result<(), OtherClasses> {
        if *self.shared.state.lock().queue.rules() == rules {
            return Ok(());
        }
        self.change(|state, _| state.queue.reload(rules))
    }

    /// How it stands.
    pub fn report(&self) -> Report {
        let now = self.shared.clock.now();
        let mut state = self.shared.state.lock();
        let drain = if state.slots.is_empty() { None } else { state.drain.rate(now) };
        let queue = &state.queue;
        Report {
            classes: queue.standing(now),
            count: [queue.count(), queue.rules().count],
            bytes: [queue.bytes(), queue.rules().bytes],
            running: state.running,
            drain,
        }
    }

    /// Changes something, and tells everybody whom that concerns.
    fn change<T>(&self, change: impl FnOnce(&mut State<G>, Moment) -> T) -> T {
        let shared = &*self.shared;
        let now = shared.clock.now();
        let mut woken = Vec::new();
        let mut state = shared.state.lock();
        let made = change(&mut state, now);
        state.see(&shared.gate, now, &mut woken);
        drop(state);
        wake(woken);
        made
    }
}

/// A call that goes, before it knows its line.
struct Started<P>(Running, P);

impl<P: Send + 'static> Started<P> {
    fn of<G: Gate<Pass = P>>(self, line: Line<G>) -> Going<G> {
        Going::new(line, self.0, self.1)
    }
}

impl<G: Gate> State<G> {
    /// A call that finds nobody waiting and the gate open.
    fn goes_at_once(
        &mut self,
        ask: &Ask,
        (gate, want): (&G, &G::Want),
        now: Moment,
    ) -> Option<Started<G::Pass>> {
        if !self.slots.is_empty() {
            return None;
        }
        let running = self.queue.go(ask, gate.free(self.running), now)?;
        let next = Next { ticket: running.ticket, cost: running.cost(), bytes: ask.bytes };
        let Ok(pass) = gate.pass(&next, want, now) else {
            self.queue.done(running, 0);
            return None;
        };
        self.running += 1;
        Some(Started(running, pass))
    }

    /// Lets go whoever may, and tells everybody whom that concerns.
    fn see(&mut self, gate: &G, now: Moment, woken: &mut Vec<Waker>) {
        let gone = self.queue.expire(now);
        self.tell(gone, woken);
        let before = self.waits.take();
        loop {
            let free = gate.free(self.running);
            let Some(next) = self.queue.peek(free) else { return };
            let Some(Slot::Waits(_, want)) = self.slots.get(&next.ticket) else { return };
            let pass = match gate.pass(&next, want, now) {
                Ok(pass) => pass,
                Err(Shut::UntilTold) => {
                    self.waits = Some((next.ticket, None));
                    return;
                }
                Err(Shut::Until(at)) => {
                    let at = at.max(now.plus(LOOK));
                    // A timer that is set and rings before is as good: the gate is asked anew then.
                    let set = before.filter(|(ticket, rings)| {
                        *ticket == next.ticket && rings.is_some_and(|it| now < it && it <= at)
                    });
                    self.waits = set.or(Some((next.ticket, Some(at))));
                    break;
                }
            };
            let turn = self.queue.next(free, now);
            self.tell(turn.gone, woken);
            let Some(running) = turn.call else { return };
            self.running += 1;
            self.put(running.ticket, Slot::Goes(running, pass), woken);
        }
        // The one who is next has to set its timer, unless it has.
        if before != self.waits
            && let Some((ticket, _)) = self.waits
            && let Some(Slot::Waits(waker, _)) = self.slots.get_mut(&ticket)
        {
            woken.extend(waker.take());
        }
    }

    fn tell(&mut self, gone: Vec<Gone>, woken: &mut Vec<Waker>) {
        for gone in gone {
            self.put(gone.ticket, Slot::Left(gone), woken);
        }
    }

    fn put(&mut self, ticket: Ticket, told: Slot<G>, woken: &mut Vec<Waker>) {
        if let Some(slot) = self.slots.get_mut(&ticket)
            && let Slot::Waits(waker, _) = std::mem::replace(slot, told)
        {
            woken.extend(waker);
        }
    }

    /// When the call is to look again, for it is the next and the gate is shut until then.
    fn looks_at(&self, ticket: Ticket) -> Option<Moment> {
        self.waits.filter(|(next, _)| *next == ticket).and_then(|(_, at)| at)
    }
}

/// Wakes them, with no lock held.
fn wake(woken: Vec<Waker>) {
    woken.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests;
