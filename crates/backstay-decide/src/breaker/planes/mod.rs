//! The breakers of one target: one for each thing that can be wrong with it.
//!
//! | plane | kept apart by | opens on |
//! |---|---|---|
//! | availability | target | errors, timeouts, cut streams, slow first content |
//! | throttling | target and key | 429, overload |
//! | quality | target and schema | answers without the shape asked for |
//!
//! So a spent key does not take the others along, and a schema that a model cannot meet closes that
//! model for that schema only. With [`Separation::Combined`] one breaker sees all three.

mod rules;

use std::fmt;

use super::{
    Ask, Breaker, Denied, Elsewhere, KeyRest, Keys, Limits, Pass, Report, State, Transition,
};
use crate::dice::Dice;
use crate::tiers::Proof;
use crate::time::Moment;

pub use rules::{Rules, Separation};

/// Most schemas of one target kept count of; the one not asked for the longest makes way.
const MAX_SCHEMAS: usize = 64;

/// One thing that can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plane {
    /// Whether it is up.
    Availability,
    /// Whether a key is throttled.
    Throttling {
        /// Its number.
        key: usize,
    },
    /// Whether its answers fit a schema.
    Quality {
        /// The schema's hash.
        schema: u64,
    },
    /// All as one.
    Combined,
}

impl Plane {
    /// Its name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Availability => "availability",
            Self::Throttling { .. } => "throttling",
            Self::Quality { .. } => "quality",
            Self::Combined => "combined",
        }
    }
}

impl fmt::Display for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Availability | Self::Combined => Ok(()),
            Self::Throttling { key } => write!(f, " of key {key}"),
            Self::Quality { schema } => write!(f, " of schema {schema:012x}"),
        }
    }
}

/// A change, and where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// The plane.
    pub plane: Plane,
    /// The change.
    pub change: Transition,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.plane, self.change)
    }
}

impl Refused {
    /// Whether the call may go there all the same if nobody else is live.
    pub fn yields(&self) -> bool {
        matches!(self.plane, Plane::Quality { .. }) || self.denied.why.spares()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.plane, self.denied.why)
    }
}

/// Why a call may not go to the target now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The plane that says so; the first, if several do.
    pub plane: Plane,
    /// Its reason, and the moment at which all of them let it.
    pub denied: Denied,
}

/// Leave of every plane. Give it back by [`Planes::note`] or [`Planes::release`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Passes {
    /// The key to use, by number.
    pub key: usize,
    first: Pass,
    throttling: Option<Pass>,
    quality: Option<(u64, Pass)>,
}

impl Passes {
    /// Whether this call tests a target that was resting.
    pub fn is_probe(&self) -> bool {
        self.all().any(Pass::is_probe)
    }

    fn all(&self) -> impl Iterator<Item = &Pass> {
        let quality = self.quality.as_ref().map(|(_, pass)| pass);
        [Some(&self.first), self.throttling.as_ref(), quality].into_iter().flatten()
    }
}

/// What [`Planes::admit`] answers.
#[derive(Debug, PartialEq)]
pub struct Admitted {
    /// Leave to call, or why there is none.
    pub passes: Result<Passes, Refused>,
    /// What the passing of time did.
    pub changes: Vec<Turn>,
}

/// The health of one target.
#[derive(Clone, Debug, PartialEq)]
pub struct Planes {
    /// Availability, or all as one.
    first: Breaker,
    /// The keys, each with its breaker for throttling.
    keys: Keys,
    quality: Vec<OfSchema>,
    /// Calls with a schema so far.
    asked: u64,
    /// Breakers of schemas so far.
    made: u32,
}

/// The breaker of one schema.
#[derive(Clone, Debug, PartialEq)]
struct OfSchema {
    schema: u64,
    /// As of [`Planes::asked`], when it was last asked for.
    asked: u64,
    breaker: Breaker,
}

impl Planes {
    /// A target without history that has `keys` keys.
    pub fn new(keys: usize) -> Self {
        Self {
            first: Breaker::new(),
            keys: Keys::new(keys),
            quality: Vec::new(),
            asked: 0,
            made: 0,
        }
    }

    /// Its keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Makes it these keys, each by its place so far; `None`: a new one.
    pub fn set_keys(&mut self, places: &[Option<usize>]) {
        self.keys.set(places);
    }

    /// The breaker of a plane, if it is kept.
    pub fn breaker(&self, plane: Plane) -> Option<&Breaker> {
        match plane {
            Plane::Availability | Plane::Combined => Some(&self.first),
            Plane::Throttling { key } => self.keys.throttling(key),
            Plane::Quality { schema } => self.of_schema(schema),
        }
    }

    /// Every breaker with its plane: the first, each key's, each schema's.
    pub fn all(&self, rules: &Rules) -> impl Iterator<Item = (Plane, &Breaker)> {
        let keys = (0..self.keys.count())
            .filter_map(|key| Some((Plane::Throttling { key }, self.keys.throttling(key)?)));
        let schemas =
            self.quality.iter().map(|of| (Plane::Quality { schema: of.schema }, &of.breaker));
        std::iter::once((rules.first().1, &self.first)).chain(keys).chain(schemas)
    }

    /// How many breakers of a kind of plane, by its name, keep calls away at `now`.
    pub fn shut(&self, name: &str, now: Moment, rules: &Rules) -> usize {
        let of_kind = self.all(rules).filter(|(plane, _)| plane.name() == name);
        let state = |(plane, breaker): (Plane, &Breaker)| breaker.state(now, rules.limits(plane));
        let is_shut = |state: &State| matches!(state, State::Open { .. } | State::HalfOpen { .. });
        of_kind.map(state).filter(is_shut).count()
    }

    /// Whether nothing is known against it.
    pub fn is_untroubled(&self, rules: &Rules) -> bool {
        self.all(rules).all(|(_, breaker)| breaker.is_untroubled())
    }

    /// Whether nothing is known against it that a call with this schema meets.
    pub fn is_untroubled_for(&self, schema: Option<u64>) -> bool {
        let quality = schema.and_then(|schema| self.of_schema(schema));
        self.first.is_untroubled()
            && quality.is_none_or(Breaker::is_untroubled)
            && self.keys.are_untroubled()
    }

    /// Whether a call with this schema that goes there now is a test, and no other of its keys could
    /// take the call.
    pub fn proof(&self, now: Moment, schema: Option<u64>, rules: &Rules) -> Proof {
        let first = (rules.first().0, Some(&self.first));
        let quality = (&rules.quality, schema.and_then(|schema| self.of_schema(schema)));
        let only_key = self.keys.throttling(0).filter(|_| self.keys.count() == 1);
        let is_half_open = |(limits, breaker): (&Limits, Option<&Breaker>)| {
            breaker.is_some_and(|breaker| breaker.is_half_open(now, limits))
        };
        let mut all = [first, quality, (&rules.throttling, only_key)].into_iter();
        if all.any(is_half_open) { Proof::UnderTest } else { Proof::Proven }
    }

    fn of_schema(&self, schema: u64) -> Option<&Breaker> {
        self.quality.iter().find(|of| of.schema == schema).map(|of| &of.breaker)
    }

    fn of_schema_mut(&mut self, schema: u64) -> Option<&mut Breaker> {
        let of = self.quality.iter_mut().find(|of| of.schema == schema)?;
        Some(&mut of.breaker)
    }

    /// The breaker of a schema that is asked for; a new one if need be, in place of one that has nothing
    /// to tell, or else of the one that was not asked for the longest.
    fn quality_of(&mut self, schema: u64) -> &mut Breaker {
        self.asked += 1;
        let known = self.quality.iter().position(|of| of.schema == schema);
        let place = known.unwrap_or_else(|| self.place_for(schema));
        let of = &mut self.quality[place];
        of.asked = self.asked;
        &mut of.breaker
    }

    fn place_for(&mut self, schema: u64) -> usize {
        self.made = self.made.wrapping_add(1);
        let new = OfSchema { schema, asked: self.asked, breaker: Breaker::numbered(self.made) };
        if self.quality.len() < MAX_SCHEMAS {
            self.quality.push(new);
            return self.quality.len() - 1;
        }
        let worth = |of: &OfSchema| (!of.breaker.is_untroubled(), of.asked);
        let least = self.quality.iter().enumerate().min_by_key(|(_, of)| worth(of));
        let place = least.map_or(0, |(place, _)| place);
        self.quality[place] = new;
        place
    }

    /// Leaves the target alone until `until`, as it asked.
    pub fn rest_until(&mut self, until: Moment) {
        self.first.rest_until(until);
    }

    /// Lets one key rest until `until`.
    pub fn rest_key(&mut self, key: usize, until: Moment, why: KeyRest) {
        self.keys.rest(key, until, why);
    }

    /// Says until when the rates of a key leave no room for the call that looks next; `None`: they do.
    pub fn pace_key(&mut self, key: usize, until: Option<Moment>) {
        self.keys.pace(key, until);
    }

    /// Whether a call with this schema may go there, without letting it.
    ///
    /// # Errors
    /// [`Refused`]: the plane that is against it, and until when.
    pub fn look(&self, ask: &Ask, schema: Option<u64>, rules: &Rules) -> Result<usize, Refused> {
        let (limits, plane) = rules.first();
        let first = self.first.look(ask, limits).map_err(|denied| Refused { plane, denied });
        let throttling = (rules.separation == Separation::Separate).then_some(&rules.throttling);
        let key = self
            .keys
            .look(ask, throttling)
            .map_err(|denied| Refused { plane: Plane::Throttling { key: 0 }, denied });
        // Quality only ever sends a call elsewhere: where there is nobody else, a wait makes no
        // answer better, and a bad one may still be mended.
        let elsewhere = |_: &u64| ask.elsewhere == Elsewhere::Live;
        let quality = match Self::schema_that_counts(schema, rules).filter(elsewhere) {
            Some(schema) => {
                let breaker = self.of_schema(schema);
                breaker
                    .map_or(Ok(()), |breaker| breaker.look(ask, &rules.quality))
                    .map_err(|denied| Refused { plane: Plane::Quality { schema }, denied })
            }
            None => Ok(()),
        };
        let refusals = [first.err(), key.err(), quality.err()];
        match refusals.into_iter().flatten().reduce(worse) {
            Some(refused) => Err(refused),
            None => key,
        }
    }

    fn schema_that_counts(schema: Option<u64>, rules: &Rules) -> Option<u64> {
        schema.filter(|_| rules.separation == Separation::Separate)
    }

    /// A call with this schema came that would go here if it could. Once a call.
    pub fn offer(&mut self, now: Moment, schema: Option<u64>, rules: &Rules) {
        self.first.offer(now, rules.first().0);
        if rules.separation == Separation::Combined {
            return;
        }
        for breaker in self.keys.breakers() {
            breaker.offer(now, &rules.throttling);
        }
        if let Some(breaker) = schema.and_then(|schema| self.of_schema_mut(schema)) {
            breaker.offer(now, &rules.quality);
        }
    }

    /// Leave to call for a call with this schema: of all planes, or of none.
    pub fn admit(&mut self, ask: &Ask, schema: Option<u64>, rules: &Rules) -> Admitted {
        let schema = Self::schema_that_counts(schema, rules);
        let changes = self.turn(ask.now, schema, rules);
        let passes = self
            .look(ask, schema, rules)
            .and_then(|key| self.take(ask, schema, rules, key, Breaker::admit));
        Admitted { passes, changes }
    }

    /// Leave to call whatever the breakers say. A key that rests is used only if all do.
    pub fn force(&mut self, ask: &Ask, schema: Option<u64>, rules: &Rules) -> Admitted {
        let schema = Self::schema_that_counts(schema, rules);
        let changes = self.turn(ask.now, schema, rules);
        let alone = Ask { elsewhere: Elsewhere::Nobody, ..*ask };
        let throttling = (rules.separation == Separation::Separate).then_some(&rules.throttling);
        let key = self.keys.look(&alone, throttling).or_else(|_| self.keys.look(&alone, None));
        let key = key.unwrap_or_else(|_| self.keys.first_back());
        let passes = self.take(ask, schema, rules, key, Breaker::force);
        Admitted { passes, changes }
    }

    /// Does what is due by the passing of time in every plane the call meets.
    fn turn(&mut self, now: Moment, schema: Option<u64>, rules: &Rules) -> Vec<Turn> {
        let (limits, plane) = rules.first();
        let mut changes = Vec::new();
        let mut turned = |plane, change: Option<Transition>| {
            changes.extend(change.map(|change| Turn { plane, change }));
        };
        turned(plane, self.first.turn(now, limits));
        if rules.separation == Separation::Separate {
            for (key, breaker) in self.keys.breakers().enumerate() {
                turned(Plane::Throttling { key }, breaker.turn(now, &rules.throttling));
            }
        }
        if let Some(schema) = schema {
            let breaker = self.quality_of(schema);
            turned(Plane::Quality { schema }, breaker.turn(now, &rules.quality));
        }
        changes
    }

    #[expect(clippy::too_many_arguments, reason = "the two ways in share this")]
    fn take(
        &mut self,
        ask: &Ask,
        schema: Option<u64>,
        rules: &Rules,
        key: usize,
        way: impl Fn(&mut Breaker, &Ask, &Limits) -> super::Admission,
    ) -> Result<Passes, Refused> {
        // Every breaker was asked before: what one of them refuses here costs no pass of another.
        let (limits, plane) = rules.first();
        let refused = |plane| move |denied| Refused { plane, denied };
        let throttling = match self.keys.throttling_mut(key) {
            Some(breaker) if rules.separation == Separation::Separate => {
                let pass = way(breaker, ask, &rules.throttling).pass;
                Some(pass.map_err(refused(Plane::Throttling { key }))?)
            }
            _ => None,
        };
        let first = way(&mut self.first, ask, limits).pass.map_err(refused(plane))?;
        let quality = match schema {
            Some(schema) => {
                let breaker = self.quality_of(schema);
                let pass = way(breaker, ask, &rules.quality).pass;
                let pass = pass.or_else(|_| breaker.force(ask, &rules.quality).pass);
                Some((schema, pass.map_err(refused(Plane::Quality { schema }))?))
            }
            None => None,
        };
        self.keys.used(key);
        Ok(Passes { key, first, throttling, quality })
    }

    /// The call brought its first content.
    pub fn started(&mut self, passes: &Passes, now: Moment, rules: &Rules) -> Vec<Turn> {
        let (limits, plane) = rules.first();
        let first = self.first.started(&passes.first, now, limits);
        let mut changes: Vec<Turn> =
            first.map(|change| Turn { plane, change }).into_iter().collect();
        let breaker = self.keys.throttling_mut(passes.key).zip(passes.throttling.as_ref());
        let change = breaker.and_then(|(b, pass)| b.started(pass, now, &rules.throttling));
        let plane = Plane::Throttling { key: passes.key };
        changes.extend(change.map(|change| Turn { plane, change }));
        // Content says nothing of its shape: the quality plane waits for the end.
        changes
    }

    /// Takes note of how the call ended.
    pub fn note(
        &mut self,
        passes: Passes,
        report: Report,
        now: Moment,
        (rules, dice): (&Rules, &mut dyn Dice),
    ) -> Vec<Turn> {
        let (limits, plane) = rules.first();
        let verdict = match rules.separation {
            Separation::Separate => report.availability,
            Separation::Combined => report.combined,
        };
        let change = self.first.note(passes.first, verdict, now, limits, dice);
        let mut changes: Vec<Turn> =
            change.map(|change| Turn { plane, change }).into_iter().collect();
        let at_key = self.keys.throttling_mut(passes.key).zip(passes.throttling);
        let change = at_key.and_then(|(breaker, pass)| {
            breaker.note(pass, report.throttling, now, &rules.throttling, dice)
        });
        let plane = Plane::Throttling { key: passes.key };
        changes.extend(change.map(|change| Turn { plane, change }));
        if let Some((schema, pass)) = passes.quality {
            let change = self
                .of_schema_mut(schema)
                .and_then(|breaker| breaker.note(pass, report.quality, now, &rules.quality, dice));
            let plane = Plane::Quality { schema };
            changes.extend(change.map(|change| Turn { plane, change }));
        }
        changes
    }

    /// Gives leave back without a verdict: the call was dropped or cancelled.
    pub fn release(&mut self, passes: Passes) {
        self.first.release(passes.first);
        let at_key = self.keys.throttling_mut(passes.key).zip(passes.throttling);
        if let Some((breaker, pass)) = at_key {
            breaker.release(pass);
        }
        if let Some((schema, pass)) = passes.quality
            && let Some(breaker) = self.of_schema_mut(schema)
        {
            breaker.release(pass);
        }
    }
}

/// The first of two refusals, until the later moment of both. A hard refusal stands before a share,
/// which a call may pass over for want of another target.
fn worse(one: Refused, other: Refused) -> Refused {
    let until = match (one.denied.until, other.denied.until) {
        (Some(one), Some(other)) => Some(one.max(other)),
        _ => None,
    };
    let shown = if one.denied.why.spares() { other } else { one };
    Refused { denied: Denied { until, ..shown.denied }, ..shown }
}

#[cfg(test)]
mod tests;
