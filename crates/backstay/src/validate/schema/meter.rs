//! Bounds a computation of another crate that cannot be bounded from outside.
//!
//! The computation looks at values that we hand to it, and each look comes by here. When the looks
//! or the stack run out, the next look unwinds out of the computation, up to [`run`], which says so.
//! That is no panic: no hook is run and nothing is printed. It takes a program that unwinds; one
//! built to abort on panics aborts.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The most stack that one computation may use, out of the 2 MiB of a worker thread.
const MAX_STACK: usize = 1024 * 1024;

/// What ran out before a computation was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    Looks,
    Stack,
    /// Nothing did: the computation panicked.
    Failed,
}

impl Spent {
    /// What is told of the reply.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Looks | Self::Stack => "too costly to check against its schema",
            Self::Failed => "could not be checked against its schema",
        }
    }
}

/// What is left of one computation, in parts: each look touches two of them.
struct Meter {
    running: Cell<bool>,
    left: Cell<u64>,
    /// The lowest address the stack may have: [`MAX_STACK`] below where the computation began.
    floor: Cell<usize>,
    a_key: Cell<u64>,
    /// What the long keys seen so far come to, in looks.
    long_keys: Cell<u64>,
}

thread_local! {
    // `jsonschema` builds some nodes itself, from a name alone; so the meter cannot go with a node.
    static METER: Meter = const {
        Meter {
            running: Cell::new(false),
            left: Cell::new(0),
            floor: Cell::new(0),
            a_key: Cell::new(1),
            long_keys: Cell::new(0),
        }
    };
}

/// Runs `work` with at most `looks` looks; one at a key of an object costs `a_key` of them for each
/// 32 bytes. Not to be nested.
pub(super) fn run<T>(looks: u64, a_key: u64, work: impl FnOnce() -> T) -> Result<T, Spent> {
    let here = 0_u8;
    METER.with(|meter| {
        meter.running.set(true);
        meter.left.set(looks);
        meter.floor.set(std::ptr::from_ref(&here).addr().wrapping_sub(MAX_STACK));
        meter.a_key.set(a_key);
        meter.long_keys.set(0);
    });
    let outcome = catch_unwind(AssertUnwindSafe(work));
    METER.with(|meter| meter.running.set(false));
    outcome.map_err(|payload| payload.downcast::<Spent>().map_or(Spent::Failed, |spent| *spent))
}

/// Takes `cost` looks off the meter, if one runs; unwinds when it is empty, or when the stack is.
#[inline]
pub(super) fn look(cost: u64) {
    let here = 0_u8;
    METER.with(|meter| {
        let left = meter.left.get();
        // One comparison for both sides of where it began, whichever way the stack grows.
        let above_floor = std::ptr::from_ref(&here).addr().wrapping_sub(meter.floor.get());
        if cost > left || above_floor > 2 * MAX_STACK {
            return stop(meter, above_floor);
        }
        meter.left.set(left - cost);
    });
}

/// As [`look`], where whatever goes deeper looks there itself: the stack is not measured.
#[inline]
pub(super) fn charge(cost: u64) {
    METER.with(|meter| {
        let left = meter.left.get();
        if cost > left {
            return stop(meter, 0);
        }
        meter.left.set(left - cost);
    });
}

#[cold]
fn stop(meter: &Meter, above_floor: usize) {
    if meter.running.get() {
        let is_deep = above_floor > 2 * MAX_STACK;
        resume_unwind(Box::new(if is_deep { Spent::Stack } else { Spent::Looks }));
    }
}

/// Takes the looks for one key off the meter: every pattern may be tried on it.
#[inline]
pub(super) fn look_at_key(key: &str) {
    let a_key = METER.with(|meter| meter.a_key.get());
    if key.len() < BYTES_A_LOOK {
        return charge(a_key);
    }
    look_at_long_key(key, a_key);
}

fn look_at_long_key(key: &str, a_key: u64) {
    if key.len() > LONG_KEY {
        METER.with(|meter| meter.long_keys.set(meter.long_keys.get().saturating_add(length(key))));
    }
    charge(length(key).saturating_mul(a_key));
}

/// Keys of more bytes are long. Each error keeps the path to its value, keys and all.
const LONG_KEY: usize = 256;

/// What an error may cost for its path: every long key seen may be in it.
pub(super) fn long_keys() -> u64 {
    METER.with(|meter| meter.long_keys.get())
}

/// Bytes of a text that one look goes over, once or twice.
const BYTES_A_LOOK: usize = 32;

/// The cost of going over a text once or twice.
#[inline]
pub(super) fn length(text: &str) -> u64 {
    1 + u64::try_from(text.len() / BYTES_A_LOOK).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_within_its_looks_comes_back_and_work_beyond_them_does_not() {
        assert_eq!(run(3, 1, || (0..3).for_each(|_| look(1))), Ok(()));
        assert_eq!(run(3, 1, || (0..4).for_each(|_| look(1))), Err(Spent::Looks));
        assert_eq!(run(3, 1, || look(4)), Err(Spent::Looks));
        assert_eq!(run(14, 7, || (0..2).for_each(|_| look_at_key("a"))), Ok(()));
        assert_eq!(run(13, 7, || (0..2).for_each(|_| look_at_key("a"))), Err(Spent::Looks));
        look(u64::MAX); // no meter runs any more
    }

    #[test]
    fn long_keys_are_summed_for_one_computation() {
        let long = "k".repeat(3_200);
        let sum = run(1_000, 1, || {
            look_at_key("short");
            look_at_key(&long);
            long_keys()
        });
        assert_eq!(sum, Ok(101));
        assert_eq!(run(1, 1, long_keys), Ok(0));
    }

    #[test]
    fn work_that_goes_too_deep_is_cut_off() {
        fn down(levels: u32) -> u64 {
            look(0);
            let frame = std::hint::black_box([levels; 64]);
            if levels == 0 { 0 } else { down(levels - 1) + u64::from(frame[7]) }
        }
        assert!(run(1, 1, || down(100)).is_ok());
        assert_eq!(run(1, 1, || down(1_000_000)), Err(Spent::Stack));
    }

    #[test]
    fn a_panic_is_told_apart() {
        assert_eq!(run(1, 1, || resume_unwind(Box::new("other"))), Err::<(), _>(Spent::Failed));
    }
}
