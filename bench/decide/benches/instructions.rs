//! Instructions an operation takes, counted by Callgrind: the same on a busy machine.

use std::hint::black_box;
use std::time::Duration;

use backstay_decide::Moment;
use decide_bench::{Breaker, Extra, Limiter, Line, Operation};
use gungraun::{library_benchmark, library_benchmark_group, main};

/// Runs before the count begins: what is measured is the steady state.
const WARM: u64 = 2_000;
/// Operations counted; the figure is their sum.
const COUNTED: u64 = 1_000;

fn warm<T: Operation + Default>() -> T {
    let mut state = T::default();
    (0..WARM).for_each(|step| state.run(at(step)));
    state
}

/// Five milliseconds an operation: 200 calls a second.
fn at(step: u64) -> Moment {
    Moment::at(Duration::from_millis(step * 5))
}

fn thousand(state: &mut impl Operation) {
    (WARM..WARM + COUNTED).for_each(|step| state.run(black_box(at(step))));
}

#[library_benchmark]
#[bench::thousand(setup = warm::<Breaker>)]
fn breaker(mut state: Breaker) {
    thousand(&mut state);
}

#[library_benchmark]
#[bench::thousand(setup = warm::<Limiter>)]
fn limiter(mut state: Limiter) {
    thousand(&mut state);
}

#[library_benchmark]
#[bench::thousand(setup = warm::<Line>)]
fn queue(mut state: Line) {
    thousand(&mut state);
}

#[library_benchmark]
#[bench::thousand(setup = warm::<Extra>)]
fn budget(mut state: Extra) {
    thousand(&mut state);
}

library_benchmark_group!(name = decisions; benchmarks = breaker, limiter, queue, budget);
main!(library_benchmark_groups = decisions);
