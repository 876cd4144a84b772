//! What the mock remembers between calls: how often each model was called, and the scripts.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::dice::digest;

/// Names, asks and scripts remembered; beyond that the counts start anew.
const MAX_KEPT: usize = 50_000;
/// Steps in one script.
pub(crate) const MAX_STEPS: usize = 1_000;

/// The name of the script for models that have none of their own.
const ANY: &str = "*";

/// Counts since the last reset.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    calls: HashMap<String, u32>,
    asks: HashMap<u64, u32, BuildHasherDefault<Same>>,
    scripts: HashMap<String, Script>,
}

#[derive(Debug)]
struct Script {
    steps: Vec<String>,
    played: usize,
}

/// The place of one call among its like.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Which call for that model name; the first is 1.
    pub(crate) call: u32,
    /// Which call for that model and first user message; the first is 1.
    pub(crate) ask: u32,
    /// The step of a script that is to be played instead of the model's name.
    pub(crate) step: Option<String>,
}

impl Memory {
    /// Counts one call for `model` whose first user message has this digest.
    pub(crate) fn take(&mut self, model: &str, first_user: u64) -> Turn {
        let call = if let Some(count) = self.calls.get_mut(model) {
            *count = count.saturating_add(1);
            *count
        } else {
            forget_if_full(&mut self.calls);
            self.calls.insert(model.to_owned(), 1);
            1
        };
        forget_if_full(&mut self.asks);
        let key = digest(model.as_bytes()).rotate_left(1) ^ first_user;
        let ask = self.asks.entry(key).or_insert(0);
        *ask = ask.saturating_add(1);
        let part = if self.scripts.contains_key(model) { model } else { ANY };
        let step = self.scripts.get_mut(part).and_then(Script::play);
        Turn { call, ask: *ask, step }
    }

    /// Registers a script, or replaces it; at most [`MAX_STEPS`] steps are kept.
    pub(crate) fn script(&mut self, model: String, mut steps: Vec<String>) {
        forget_if_full(&mut self.scripts);
        steps.truncate(MAX_STEPS);
        self.scripts.insert(model, Script { steps, played: 0 });
    }

    /// Forgets every count. Scripts stay and begin again.
    pub(crate) fn reset(&mut self) {
        self.calls.clear();
        self.asks.clear();
        for script in self.scripts.values_mut() {
            script.played = 0;
        }
    }
}

impl Script {
    fn play(&mut self) -> Option<String> {
        let step = self.steps.get(self.played).or_else(|| self.steps.last())?;
        self.played += 1;
        Some(step.clone())
    }
}

fn forget_if_full<K, V, S>(map: &mut HashMap<K, V, S>) {
    if map.len() >= MAX_KEPT {
        map.clear();
    }
}

/// For keys that are digests already.
#[derive(Debug, Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = digest(bytes);
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_model_and_asks_by_first_message() {
        let mut memory = Memory::default();
        memory.take("a", 1);
        memory.take("a", 2);
        let turn = memory.take("a", 1);
        assert_eq!((turn.call, turn.ask), (3, 2));
        assert_eq!(memory.take("b", 1).call, 1);
        memory.reset();
        assert_eq!(memory.take("a", 1).call, 1);
    }

    #[test]
    fn a_script_plays_in_order_and_repeats_its_last_step() {
        let mut memory = Memory::default();
        memory.script("s".into(), vec!["one".into(), "two".into()]);
        let mut play = || memory.take("s", 0).step;
        assert_eq!([play(), play(), play()].map(Option::unwrap), ["one", "two", "two"]);
        memory.reset();
        assert_eq!(memory.take("s", 0).step.as_deref(), Some("one"));
        memory.script("e".into(), Vec::new());
        assert_eq!(memory.take("e", 0).step, None);
    }

    #[test]
    fn a_model_without_a_script_plays_the_one_for_any() {
        let mut memory = Memory::default();
        memory.script(ANY.into(), vec!["any".into()]);
        memory.script("s".into(), vec!["own".into()]);
        let mut play = |model: &str| memory.take(model, 0).step;
        assert_eq!([play("s"), play("other")].map(Option::unwrap), ["own", "any"]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut memory = Memory::default();
        for at in 0..MAX_KEPT + 10 {
            memory.take(&at.to_string(), u64::try_from(at).unwrap());
        }
        assert!(memory.calls.len() <= MAX_KEPT && memory.asks.len() <= MAX_KEPT);
    }
}
