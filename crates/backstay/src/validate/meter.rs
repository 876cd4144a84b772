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

#[derive(Clone, Copy, Debug)]
struct Meter {
    left: u64,
    a_key: u64,
    /// An address in the stack where the computation began.
    stack: usize,
}

thread_local! {
    // `jsonschema` builds some nodes itself, from a name alone; so the meter cannot go with a node.
    static METER: Cell<Option<Meter>> = const { Cell::new(None) };
}

/// Runs `work` with at most `looks` looks; one at a key of an object costs `a_key` of them for each
/// 32 bytes. Not to be nested.
pub(super) fn run<T>(looks: u64, a_key: u64, work: impl FnOnce() -> T) -> Result<T, Spent> {
    let here = 0_u8;
    METER.set(Some(Meter { left: looks, a_key, stack: std::ptr::from_ref(&here).addr() }));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    METER.set(None);
    outcome.map_err(|payload| payload.downcast::<Spent>().map_or(Spent::Failed, |spent| *spent))
}

/// Takes `cost` looks off the meter, if one runs; unwinds when it is empty.
pub(super) fn look(cost: u64) {
    let Some(mut meter) = METER.get() else { return };
    let here = 0_u8;
    if std::ptr::from_ref(&here).addr().abs_diff(meter.stack) > MAX_STACK {
        resume_unwind(Box::new(Spent::Stack));
    }
    let Some(left) = meter.left.checked_sub(cost) else { resume_unwind(Box::new(Spent::Looks)) };
    meter.left = left;
    METER.set(Some(meter));
}

/// The cost of going over a text once or twice.
pub(super) fn length(text: &str) -> u64 {
    1 + u64::try_from(text.len() / 32).unwrap_or(u64::MAX)
}

/// What a key costs on the meter that runs: every pattern may be tried on it.
pub(super) fn a_key() -> u64 {
    METER.get().map_or(1, |meter| meter.a_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_within_its_looks_comes_back_and_work_beyond_them_does_not() {
        assert_eq!(run(3, 1, || (0..3).for_each(|_| look(1))), Ok(()));
        assert_eq!(run(3, 1, || (0..4).for_each(|_| look(1))), Err(Spent::Looks));
        assert_eq!(run(3, 1, || look(4)), Err(Spent::Looks));
        assert_eq!(run(3, 7, a_key), Ok(7));
        look(u64::MAX); // no meter runs any more
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
