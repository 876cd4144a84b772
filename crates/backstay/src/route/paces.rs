//! The rates of one target: a pacer for each of its keys, and what its replies usually take.

use backstay_decide::Moment;
use backstay_decide::breaker::Planes;
use backstay_decide::pacing::{
    Cost, Counting, Dimension, Estimate, Level, Pacer, Reservation, Seen, Slowed, Usage, Wait,
};
use backstay_decide::usual::Outputs;
use backstay_wire::tokens::Ratio;

use crate::policy::Limits;

/// Output tokens expected of a target that nothing is known of.
const OUTPUT: u64 = 500;

/// Bytes taken for one token where nobody has counted.
const BYTES_A_TOKEN: u64 = 4;

/// What a call's prompt takes and asks for, worked out only where it matters.
pub(crate) trait Prompt: std::fmt::Debug {
    /// The part of the request that has effects at the provider. `None`: it only wants an answer.
    fn effect(&self) -> Option<&'static str>;

    /// Input tokens of a body of so many bytes, as far as they can be told before sending.
    /// `learned`: what a token takes of a body's bytes at this target.
    fn input(&self, bytes: u64, learned: &Ratio) -> u64;
}

/// The rates of one target.
#[derive(Debug)]
pub(super) struct Paces {
    /// By key. Never empty.
    pacers: Vec<Pacer>,
    /// Changes of the keys: what was reserved before one is settled at none.
    changes: u32,
    outputs: Outputs,
    /// Whether some key was told to wait for its rates at the last look.
    told: bool,
}

/// What a call asks of the rates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub prompt: &'a dyn Prompt,
    /// The size of its body.
    pub bytes: u64,
    /// Its output cap.
    pub cap: Option<u64>,
    pub now: Moment,
}

/// What one call has reserved.
#[derive(Debug)]
pub(super) struct Paced {
    reservation: Reservation,
    /// Changes of the keys when it was made.
    changes: u32,
    /// Whether the rates had room for it.
    pub had_room: bool,
}

impl Paces {
    pub(super) fn new(keys: usize, limits: &Limits, now: Moment) -> Self {
        let new = || Pacer::new(&limits.rates, limits.share, now);
        let pacers = std::iter::repeat_with(new).take(keys.max(1)).collect();
        Self { pacers, changes: 0, outputs: Outputs::default(), told: false }
    }

    /// Takes over other limits; what stands in the rates stays.
    pub(super) fn rerate(&mut self, limits: &Limits, now: Moment) {
        for pacer in &mut self.pacers {
            pacer.rerate(&limits.rates, limits.share, now);
        }
    }

    /// Takes over other keys, each by its place so far; `None`: a new one. Never none at all.
    pub(super) fn set_keys(&mut self, places: &[Option<usize>], limits: &Limits, now: Moment) {
        let mut known: Vec<Option<Pacer>> = self.pacers.drain(..).map(Some).collect();
        let mut kept = |place: &Option<usize>| known.get_mut((*place)?)?.take();
        let new = || Pacer::new(&limits.rates, limits.share, now);
        self.pacers.extend(places.iter().map(|place| kept(place).unwrap_or_else(new)));
        self.changes = self.changes.wrapping_add(1);
    }

    /// The pacer of a key, if it is the one that reserved this.
    fn pacer(&mut self, key: usize, paced: &Paced) -> Option<&mut Pacer> {
        self.pacers.get_mut(key).filter(|_| paced.changes == self.changes)
    }

    /// Tells `planes` which keys the rates leave no room at. The wait that is over first, if all wait.
    pub(super) fn tell(
        &mut self,
        asked: &Asked<'_>,
        by: (Counting, &Ratio),
        planes: &mut Planes,
    ) -> Option<Wait> {
        let now = asked.now;
        if self.pacers.iter().all(|pacer| pacer.is_free(now)) {
            if std::mem::take(&mut self.told) {
                for key in 0..self.pacers.len() {
                    planes.pace_key(key, None);
                }
            }
            return None;
        }
        self.told = true;
        let cost = self.cost(asked, by);
        let mut shortest: Option<Wait> = None;
        let mut room = false;
        for (key, pacer) in self.pacers.iter_mut().enumerate() {
            let wait = pacer.check(pacer.fitting(cost), now).err();
            planes.pace_key(key, wait.map(|wait| now.plus(wait.wait())));
            room |= wait.is_none();
            if let Some(wait) = wait
                && shortest.is_none_or(|other| wait.wait() < other.wait())
            {
                shortest = Some(wait);
            }
        }
        shortest.filter(|_| !room)
    }

    /// Why a call of this cost has to wait though nothing else is reserved but what is `promised`, by all keys
    /// in turn: the wait that is over first. `None`: some key has room.
    pub(super) fn wait(&mut self, cost: Cost, promised: Cost, now: Moment) -> Option<Wait> {
        let promised = promised.shared_by(self.pacers.len());
        let mut shortest: Option<Wait> = None;
        for pacer in &mut self.pacers {
            let wait = pacer.check_after(promised, pacer.fitting(cost), now).err()?;
            if shortest.is_none_or(|other| wait.wait() < other.wait()) {
                shortest = Some(wait);
            }
        }
        shortest
    }

    /// Reserves at `key` what the call may take, whatever the rates say.
    pub(super) fn book(
        &mut self,
        key: usize,
        asked: &Asked<'_>,
        by: (Counting, &Ratio),
    ) -> Option<Paced> {
        let now = asked.now;
        let is_free = self.pacers.get(key)?.is_free(now);
        // Where no rates are kept calls are only counted, and a rough count will do.
        let cost = if is_free {
            Cost::request(asked.bytes / BYTES_A_TOKEN, asked.cap.unwrap_or(OUTPUT))
        } else {
            self.cost(asked, by)
        };
        let pacer = self.pacers.get_mut(key)?;
        let cost = pacer.fitting(cost);
        let had_room = is_free || pacer.check(cost, now).is_ok();
        Some(Paced { reservation: pacer.book(cost, now), changes: self.changes, had_room })
    }

    /// What a call may take.
    pub(super) fn cost(&self, asked: &Asked<'_>, (counting, learned): (Counting, &Ratio)) -> Cost {
        let input = asked.prompt.input(asked.bytes, learned);
        let expected = self.outputs.likely().unwrap_or(OUTPUT);
        counting.reserve(Estimate { input, cap: asked.cap, expected })
    }

    /// Settles what the call took. `None`: not known, so what was reserved stays booked.
    pub(super) fn settle(&mut self, key: usize, paced: Paced, used: Option<Cost>, now: Moment) {
        if let Some((pacer, used)) = self.pacer(key, &paced).zip(used) {
            pacer.settle(paced.reservation, used, now);
        }
    }

    /// Learns from what a reply took: what to expect of the next.
    pub(super) fn took(&mut self, output: Option<u64>) {
        if let Some(output) = output {
            self.outputs.note(output);
        }
    }

    /// Obeys the limits that a reply stated.
    pub(super) fn observe(&mut self, key: usize, paced: &Paced, seen: &[Seen], now: Moment) {
        let Some(pacer) = self.pacer(key, paced) else { return };
        for seen in seen {
            pacer.observe(seen, Some(&paced.reservation), now);
        }
    }

    /// Takes note of a 429.
    pub(super) fn throttled(
        &mut self,
        key: usize,
        paced: &Paced,
        about: Option<Dimension>,
        now: Moment,
    ) -> Option<Slowed> {
        let pacer = self.pacer(key, paced)?;
        // The key rests for as long as the provider asked: that pause is not kept twice.
        Some(pacer.throttled(about, Some(&paced.reservation), None, now))
    }

    /// How full the fullest rate of the emptiest key is, in thousandths.
    pub(super) fn filled(&mut self, now: Moment) -> u32 {
        self.pacers.iter_mut().map(|pacer| pacer.filled(now)).min().unwrap_or(0)
    }

    /// Every known limit, by key.
    pub(super) fn levels(&mut self, now: Moment) -> Vec<(usize, Level)> {
        let pacers = self.pacers.iter_mut().enumerate();
        pacers
            .flat_map(|(key, p)| p.levels(now).into_iter().map(move |level| (key, level)))
            .collect()
    }
}

/// What a reply took, as the provider counts; `None`: it did not say.
pub(super) fn used(counting: Counting, usage: backstay_wire::Usage) -> Option<Cost> {
    let (input, output) = (usage.input?, usage.output?);
    let cached = usage.cached.unwrap_or(0);
    Some(counting.settle(Usage { input, cached, output }))
}
