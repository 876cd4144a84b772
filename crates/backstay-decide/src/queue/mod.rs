//! Who waits, who goes next, and who has to leave when there is no room.
//!
//! Several classes share what a target or the gateway can carry. Between classes the queue is fair by
//! weight: start-time fair queueing over the cost of calls, so a class that waits gets its share
//! whatever the others send, and what nobody wants goes to whoever waits. Inside a class the most
//! urgent call goes first: the one with the earliest deadline, less the time it needs.
//!
//! | event | what it does |
//! |---|---|
//! | [`Queue::go`] | lets a call go that finds nobody waiting and a free seat |
//! | [`Queue::enter`] | takes a call in, unless it cannot be served in time or there is no room; the lowest class leaves first |
//! | [`Queue::next`] | names the call that goes now, and those whose time is over |
//! | [`Queue::leave`] | a caller gave up |
//! | [`Queue::done`] | a call is over: its class is charged what it took |
//!
//! **Room.** Calls and bytes are bounded. Each class is kept its share of both: it is shed only while
//! it holds more than that, the lowest class first and its newest call first. So a flood of one class
//! can empty nobody's part of the queue.
//!
//! **Time.** Every call has a deadline. One that would come too late is refused on entry, and one that
//! has become too late leaves instead of being made; so nobody waits for ever.
//!
//! All operations take `O(log n)`, besides what they shed or expire.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::time::{Moment, Secs};

mod ahead;
mod drain;
mod gone;
mod lane;
mod room;

pub use drain::Drain;
pub use gone::{Gone, Left, Refusal};
use lane::{Lane, latest_start};
use room::Room;

/// The most calls that one arrival may push out; one that would need more is refused.
pub const MOST_SHED: usize = 64;

/// The most classes; those beyond are the last one.
pub const MOST_CLASSES: usize = 16;

/// A class of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name, as config and the header have it.
    pub name: Arc<str>,
    /// Its weight against the other classes; at least 1, 0 counts as 1. With weights that sum to 100
    /// it is a percentage.
    pub share: u32,
    /// Seats that no other class takes while this one has fewer running. 0: none.
    pub kept: u32,
}

/// What a queue is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The highest class first. Never empty: without one there is one class `default`.
    pub classes: Vec<Class>,
    /// Calls that may wait. 0: none.
    pub count: usize,
    /// Bytes of request bodies that may wait. 0: none but empty ones.
    pub bytes: u64,
}

impl Default for Rules {
    /// Interactive calls before batches, at four to one; a thousand calls and 256 MiB.
    fn default() -> Self {
        let class = |name: &str, share| Class { name: name.into(), share, kept: 0 };
        Self {
            classes: vec![class("interactive", 80), class("batch", 20)],
            count: 1000,
            bytes: 256 << 20,
        }
    }
}

/// A call that wants to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its class, by its place in [`Rules::classes`]; one that is not there is the last.
    pub class: usize,
    /// What it costs, such as estimated tokens; 0 counts as 1.
    pub cost: u64,
    /// Bytes it keeps in memory.
    pub bytes: u64,
    /// When it has to be over.
    pub deadline: Moment,
    /// How long it takes once it goes, such as the usual time to the first token.
    pub needs: Duration,
}

/// A place in the queue. Tickets of one queue are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    class: usize,
    number: u64,
}

impl Ticket {
    /// Its class, by its place in [`Rules::classes`].
    pub const fn class(self) -> usize {
        self.class
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.number)
    }
}

/// What came of an arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place, or why it has none.
    pub ticket: Result<Ticket, Refusal>,
    /// Calls that left the queue for it, or because their time was over.
    pub gone: Vec<Gone>,
}

/// A call that goes now. Give it back through [`Queue::done`] when it is over.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Running {
    /// Which call.
    pub ticket: Ticket,
    /// How long it waited.
    pub waited: Duration,
    cost: u64,
}

impl Running {
    /// What its class was charged when it went.
    pub const fn cost(&self) -> u64 {
        self.cost
    }
}

/// The call that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Which call.
    pub ticket: Ticket,
    /// What it costs, as it said on entry; at least 1.
    pub cost: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// Who goes now.
#[derive(Debug, PartialEq, Eq)]
pub struct Turn {
    /// The call, if one may go.
    pub call: Option<Running>,
    /// Calls that left because their time was over.
    pub gone: Vec<Gone>,
}

/// How one class stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its name.
    pub name: Arc<str>,
    /// Calls that wait.
    pub count: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Their cost.
    pub cost: u64,
    /// Calls that go.
    pub running: u32,
    /// How long its oldest call has waited.
    pub oldest: Duration,
}

/// The classes of a queue cannot be changed while calls wait in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherClasses;

impl fmt::Display for OtherClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the classes of a queue stay as they are; only bounds, shares and seats change")
    }
}

impl std::error::Error for OtherClasses {}

/// A bounded queue of classes. It holds tickets and numbers, and no calls.
#[derive(Clone, Debug)]
pub struct Queue {
    rules: Rules,
    lanes: Vec<Lane>,
    shares: u64,
    /// The virtual time of the call that went last.
    virtual_now: u128,
    tickets: u64,
}

impl Queue {
    /// An empty queue.
    pub fn new(mut rules: Rules) -> Self {
        rules.classes.truncate(MOST_CLASSES);
        if rules.classes.is_empty() {
            rules.classes.push(Class { name: "default".into(), share: 1, kept: 0 });
        }
        for class in &mut rules.classes {
            class.share = class.share.max(1);
        }
        let lanes = rules.classes.iter().map(|_| Lane::new()).collect();
        let shares = rules.classes.iter().map(|class| u64::from(class.share)).sum();
        Self { rules, lanes, shares, virtual_now: 0, tickets: 0 }
    }

    /// Sets new bounds, shares and kept seats, as after a reload. Who waits stays, also where the
    /// new bounds are narrower; then nobody enters until there is room again.
    ///
    /// # Errors
    /// [`OtherClasses`] where the names of the classes or their order differ: begin a new queue and
    /// work this one off.
    pub fn reload(&mut self, rules: Rules) -> Result<(), OtherClasses> {
        let Self { rules, shares, .. } = Self::new(rules);
        let names =
            |rules: &Rules| rules.classes.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        if names(&rules) != names(&self.rules) {
            return Err(OtherClasses);
        }
        self.rules = rules;
        self.shares = shares;
        Ok(())
    }

    /// What it is made of.
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Calls that wait.
    pub fn count(&self) -> usize {
        self.lanes.iter().map(Lane::count).sum()
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.lanes.iter().fold(0, |sum, lane| sum.saturating_add(lane.bytes))
    }

    /// Every class, the highest first.
    pub fn standing(&self, now: Moment) -> Vec<Standing> {
        let classes = self.rules.classes.iter().zip(&self.lanes);
        classes
            .map(|(class, lane)| Standing {
                name: Arc::clone(&class.name),
                count: lane.count(),
                bytes: lane.bytes,
                cost: lane.ahead.total(),
                running: lane.running,
                oldest: lane.oldest().map_or(Duration::ZERO, |entered| now.since(entered)),
            })
            .collect()
    }

    /// Lets a call go that finds nobody waiting, with `free` seats: the same as to enter and to be
    /// the next, and cheaper. `None`: it has to enter.
    pub fn go(&mut self, ask: &Ask, free: u32, now: Moment) -> Option<Running> {
        let class = ask.class.min(self.lanes.len() - 1);
        let in_time = latest_start(ask.deadline, ask.needs) >= now;
        if !in_time || !self.is_open(class, free) || self.lanes.iter().any(|lane| !lane.is_empty())
        {
            return None;
        }
        self.tickets += 1;
        let ticket = Ticket { class, number: self.tickets };
        self.lanes[class].wake(self.virtual_now);
        Some(self.start(ticket, ask.cost.max(1), Duration::ZERO))
    }

    /// Takes a call in. `drain` is the cost that leaves in a second, of all classes; `None`: not
    /// known, and then only the call's own time counts.
    pub fn enter(&mut self, ask: &Ask, drain: Option<u64>, now: Moment) -> Entry {
        let mut gone = self.expire(now);
        let class = ask.class.min(self.lanes.len() - 1);
        let ask = Ask { class, cost: ask.cost.max(1), ..*ask };
        let shed = match self.too_late(&ask, drain, now).map_or_else(|| self.make_room(&ask), Err) {
            Ok(shed) => shed,
            Err(refusal) => return Entry { ticket: Err(refusal), gone },
        };
        let (count, bytes) = ([self.count(), self.rules.count], [self.bytes(), self.rules.bytes]);
        for ticket in shed {
            let arrived = Arc::clone(&self.rules.classes[class].name);
            gone.extend(self.remove(ticket, now, |_| Left::Shed { arrived, count, bytes }));
        }
        self.tickets += 1;
        let ticket = Ticket { class, number: self.tickets };
        self.lanes[class].put(ticket.number, &ask, self.virtual_now, now);
        Entry { ticket: Ok(ticket), gone }
    }

    /// Who would go now, with `free` seats, if nobody's time is over; see [`Queue::expire`].
    pub fn peek(&self, free: u32) -> Option<Next> {
        let class = self.choose(free)?;
        let (_, number) = self.lanes[class].first()?;
        let waiting = self.lanes[class].at(number)?;
        let ticket = Ticket { class, number };
        Some(Next { ticket, cost: waiting.cost, bytes: waiting.bytes })
    }

    /// Who goes now, with `free` seats. Ask again until nobody may.
    pub fn next(&mut self, free: u32, now: Moment) -> Turn {
        let gone = self.expire(now);
        let call = self.peek(free).and_then(|Next { ticket, .. }| {
            let waiting = self.lanes[ticket.class].take(ticket)?;
            Some(self.start(ticket, waiting.cost, now.since(waiting.entered)))
        });
        Turn { call, gone }
    }

    /// A caller gave up: its place is free. `None`: it was not there any more.
    pub fn leave(&mut self, ticket: Ticket, now: Moment) -> Option<Gone> {
        self.remove(ticket, now, |_| Left::GaveUp)
    }

    /// A call is over. Its class is charged `took` instead of the estimate it entered with.
    #[expect(clippy::needless_pass_by_value, reason = "given back once, by its type")]
    pub fn done(&mut self, running: Running, took: u64) {
        let Running { ticket, cost, waited: _ } = running;
        let lane = &mut self.lanes[ticket.class];
        lane.running = lane.running.saturating_sub(1);
        lane.correct(cost, took, self.rules.classes[ticket.class].share);
    }

    /// Charges a call's class, and moves the virtual time on to where that stood.
    fn start(&mut self, ticket: Ticket, cost: u64, waited: Duration) -> Running {
        let lane = &mut self.lanes[ticket.class];
        let started = lane.charge(cost, self.rules.classes[ticket.class].share);
        lane.running = lane.running.saturating_add(1);
        self.virtual_now = self.virtual_now.max(started);
        Running { ticket, waited, cost }
    }

    /// Seats that are kept for a class and not taken by it.
    fn missing(&self, class: usize) -> u32 {
        self.rules.classes[class].kept.saturating_sub(self.lanes[class].running)
    }

    /// Whether a class may go with `free` seats: the others' kept ones are left to them.
    fn is_open(&self, class: usize, free: u32) -> bool {
        let others = (0..self.lanes.len()).filter(|other| *other != class);
        free > others.map(|other| self.missing(other)).fold(0, u32::saturating_add)
    }

    /// The class that goes next: of those that wait and leave others their kept seats, the one that
    /// is furthest behind.
    fn choose(&self, free: u32) -> Option<usize> {
        (0..self.lanes.len())
            .filter(|class| !self.lanes[*class].is_empty() && self.is_open(*class, free))
            .min_by_key(|class| self.lanes[*class].tag())
    }

    /// Removes all calls whose time is over.
    pub fn expire(&mut self, now: Moment) -> Vec<Gone> {
        let mut gone = Vec::new();
        for class in 0..self.lanes.len() {
            while let Some((start, number)) = self.lanes[class].first() {
                if start >= now {
                    break;
                }
                let expired = |waiting: &lane::Waiting| Left::Expired {
                    left: now.until(waiting.deadline),
                    needs: waiting.needs,
                };
                gone.extend(self.remove(Ticket { class, number }, now, expired));
            }
        }
        gone
    }

    fn remove(
        &mut self,
        ticket: Ticket,
        now: Moment,
        left: impl FnOnce(&lane::Waiting) -> Left,
    ) -> Option<Gone> {
        let waiting = self.lanes.get_mut(ticket.class)?.take(ticket)?;
        let class = Arc::clone(&self.rules.classes[ticket.class].name);
        Some(Gone { ticket, class, waited: now.since(waiting.entered), left: left(&waiting) })
    }

    /// What would go before a call in its class, and how long that takes at `drain` a second, of all
    /// classes. A drain of nothing says nothing: then the wait is zero.
    pub fn ahead(&self, ask: &Ask, drain: u64, now: Moment) -> (u64, Duration) {
        let class = ask.class.min(self.lanes.len() - 1);
        let ahead = self.lanes[class].ahead.until(latest_start(ask.deadline, ask.needs), now);
        // A pause is likely to end.
        let wait = if drain == 0 { Duration::ZERO } else { self.wait_for(class, ahead, drain) };
        (ahead, wait)
    }

    /// Why a call would come too late.
    fn too_late(&self, ask: &Ask, drain: Option<u64>, now: Moment) -> Option<Refusal> {
        let (left, needs) = (now.until(ask.deadline), ask.needs);
        let (ahead, wait) = drain.map_or((0, Duration::ZERO), |drain| self.ahead(ask, drain, now));
        let late = now.plus(wait).plus(needs) > ask.deadline;
        late.then_some(Refusal::TooLate { wait, ahead, needs, left })
    }

    /// How long a class takes to work off `ahead`, while every class that waits gets its share of
    /// `drain` a second.
    fn wait_for(&self, class: usize, ahead: u64, drain: u64) -> Duration {
        let share = u128::from(self.rules.classes[class].share);
        let others = self.rules.classes.iter().zip(&self.lanes).enumerate();
        let shares: u128 = others
            .filter(|(ix, (_, lane))| *ix == class || !lane.is_empty())
            .map(|(_, (class, _))| u128::from(class.share))
            .sum();
        let nanos = (u128::from(ahead) * 1_000_000_000).saturating_mul(shares)
            / (u128::from(drain) * share);
        u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos)
    }

    /// Who has to leave so that `ask` fits; nobody leaves unless that makes the room.
    fn make_room(&self, ask: &Ask) -> Result<Vec<Ticket>, Refusal> {
        if self.rules.count == 0 || ask.bytes > self.rules.bytes {
            let (bytes, most) = (ask.bytes, self.rules.bytes);
            return Err(Refusal::NeverFits { bytes, most, count: self.rules.count });
        }
        let mut room = Room::of(self, ask);
        let lower = (ask.class + 1..self.lanes.len()).rev();
        // From a higher class it only takes back what is kept for its own.
        let under_its_share = room.under_its_share;
        let higher = (0..ask.class).rev().filter(|_| under_its_share);
        lower.chain(higher).for_each(|class| room.shed(class));
        if room.fits() {
            return Ok(room.shed);
        }
        let (count, bytes) = (self.count(), self.bytes());
        let class = Arc::clone(&self.rules.classes[ask.class].name);
        Err(Refusal::Full {
            class,
            count,
            most: self.rules.count,
            bytes,
            most_bytes: self.rules.bytes,
        })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, count, bytes, cost, running, oldest } = self;
        write!(
            f,
            "{name}: {count} waiting ({bytes} bytes, cost {cost}), {running} running, the oldest \
             for {}",
            Secs(*oldest)
        )
    }
}

#[cfg(test)]
mod tests;
