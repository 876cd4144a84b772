//! Wall time an operation takes, ours beside other libraries', in alternating rounds of one run.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use backstay_decide::Moment;
use decide_bench::{Breaker, Extra, Limiter, Line, Operation};
use failsafe::CircuitBreaker as _;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tower::{Service, ServiceExt as _};
use tower_resilience_circuitbreaker::CircuitBreakerLayer;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 15;
const EACH: u32 = 100_000;

/// What is measured: its name, and how to run it so many times.
type Row<'a> = (&'a str, &'a str, Box<dyn FnMut(u32) + 'a>);

fn main() {
    let mut rows: Vec<Row<'_>> = vec![
        ("breaker", "backstay-decide", ours::<Breaker>()),
        ("breaker", "failsafe 1.3.0", failsafe()),
        ("breaker", "tower-resilience 0.14.0", tower_resilience()),
        ("limiter", "backstay-decide, two dimensions", ours::<Limiter>()),
        ("limiter", "governor 0.10.4, one dimension", governor()),
        ("queue", "backstay-decide", ours::<Line>()),
        ("budget", "backstay-decide", ours::<Extra>()),
    ];
    let mut best = vec![Duration::MAX; rows.len()];
    for _ in 0..ROUNDS {
        for ((_, _, run), best) in rows.iter_mut().zip(&mut best) {
            let began = Instant::now();
            run(EACH);
            *best = (*best).min(began.elapsed());
        }
    }
    println!("| operation | library | ns, best of {ROUNDS} rounds |\n|---|---|---|");
    for ((operation, library, _), best) in rows.iter().zip(best) {
        println!("| {operation} | {library} | {:.0} |", best.as_secs_f64() * 1e9 / f64::from(EACH));
    }
    threads();
}

/// Ours behind a lock, as the engine has it. A call every five milliseconds of its own time.
fn ours<T: Operation + Default + 'static>() -> Box<dyn FnMut(u32)> {
    let (state, mut step) = (Mutex::new(T::default()), 0_u64);
    Box::new(move |count| {
        for _ in 0..count {
            step += 5;
            state.lock().run(Moment::at(Duration::from_millis(step)));
        }
    })
}

fn failsafe() -> Box<dyn FnMut(u32)> {
    let breaker = failsafe::Config::new().build();
    Box::new(move |count| {
        for _ in 0..count {
            breaker.call(|| Ok::<(), Infallible>(())).expect("closed");
        }
    })
}

fn tower_resilience() -> Box<dyn FnMut(u32)> {
    let layer = CircuitBreakerLayer::builder().build().expect("the defaults");
    let healthy = tower::service_fn(|(): ()| async { Ok::<(), std::io::Error>(()) });
    let mut service = tower::Layer::layer(&layer, healthy);
    Box::new(move |count| {
        for _ in 0..count {
            let ready = service.ready().now_or_never().expect("at once").expect("closed");
            ready.call(()).now_or_never().expect("at once").expect("closed");
        }
    })
}

fn governor() -> Box<dyn FnMut(u32)> {
    let many = std::num::NonZeroU32::MAX;
    let limiter = governor::RateLimiter::direct(governor::Quota::per_second(many));
    Box::new(move |count| {
        for _ in 0..count {
            limiter.check().expect("room");
        }
    })
}

/// What two threads do together on the breaker and the pace of one target each, and on those of one
/// target for both, beside one thread: a route's targets are shared by all runtimes.
fn threads() {
    let one = Mutex::new((Breaker::default(), Limiter::default()));
    let (first, second) = (fresh(), fresh());
    let alone = best(|| turn(&one));
    let apart = best(|| both(&first, &second));
    let together = best(|| both(&one, &one));
    println!("\n| threads | operations a second | to one thread |\n|---|---|---|");
    for (name, threads, took) in
        [("one", 1, alone), ("two, a target each", 2, apart), ("two, one target", 2, together)]
    {
        let rate = f64::from(EACH * threads) / took.as_secs_f64();
        let ratio = rate * alone.as_secs_f64() / f64::from(EACH);
        println!("| {name} | {:.1} million | {ratio:.2} |", rate / 1e6);
    }
}

type Target = Mutex<(Breaker, Limiter)>;

fn fresh() -> Target {
    Mutex::new((Breaker::default(), Limiter::default()))
}

fn best(mut run: impl FnMut()) -> Duration {
    let timed = |_| {
        let began = Instant::now();
        run();
        began.elapsed()
    };
    (0..ROUNDS).map(timed).min().unwrap_or_default()
}

fn both(one: &Target, other: &Target) {
    std::thread::scope(|scope| {
        scope.spawn(|| turn(one));
        turn(other);
    });
}

fn turn(target: &Target) {
    for step in 0..u64::from(EACH) {
        let now = Moment::at(Duration::from_millis(step * 5));
        let mut held = target.lock();
        held.0.run(now);
        held.1.run(now);
    }
}
