//! The front of a line, without calls: who is let through, and for what room.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use backstay_decide::aimd::Bounds;
use backstay_decide::pacing::{Dimension, Per, Rate, Unit};
use backstay_wire::Dialect;
use backstay_wire::tokens::Ratio;

use super::super::guard::Held;
use super::super::paces::Prompt;
use super::super::wish::{Whose, Wish};
use super::*;
use crate::policy::{CredentialSource, Policy, Provider, Secret, Target};
use crate::route::Health;
use crate::route::direct::direct;

/// A prompt of no tokens.
#[derive(Debug)]
struct Nothing;

impl Prompt for Nothing {
    fn effect(&self) -> Option<&'static str> {
        None
    }

    fn input(&self, _: u64, _: &Ratio) -> u64 {
        0
    }
}

/// Twelve requests at once, and 48 a minute.
const SIXTY: Rate =
    Rate { dimension: Dimension { unit: Unit::Requests, per: Per::Minute }, limit: 60 };

fn health(clock: Clock, rates: &[Rate], places: u32) -> Arc<TargetHealth> {
    health_of(clock, (rates, places), CredentialSource::Nobody)
}

fn health_of(
    clock: Clock,
    (rates, places): (&[Rate], u32),
    credentials: CredentialSource,
) -> Arc<TargetHealth> {
    let base = http::Uri::from_static("http://localhost/v1");
    let provider = Provider::at("p", Dialect::OpenaiChat, base, None);
    let policy = Policy::of([Provider { credentials, ..provider }]);
    let mut target = Target::clone(&direct(&policy, "p/m").unwrap().tiers[0][0]);
    target.limits.rates = rates.to_vec();
    target.limits.places = Bounds { ceiling: places, ..Bounds::default() };
    target.limits.kept = 500;
    Health::default().of(&Arc::new(target), "m", &clock)
}

fn wish(now: Moment) -> Wish<'static> {
    let lease = Duration::from_mins(1);
    Wish {
        now,
        lease,
        elsewhere: Elsewhere::Nobody,
        left: lease,
        min_attempt: Duration::from_secs(1),
        schema: None,
        bytes: 0,
        prompt: &Nothing,
        cap: Some(1),
        whose: Whose::Own,
        arrival: None,
    }
}

fn comes(health: &Arc<TargetHealth>, class: usize, clock: Clock) -> InLine {
    enters(health, &Queueing::default(), (class, Whose::Own), clock)
}

fn enters(
    health: &Arc<TargetHealth>,
    queue: &Queueing,
    (class, whose): (usize, Whose),
    clock: Clock,
) -> InLine {
    let deadline = clock.now().plus(Duration::from_hours(1));
    let ask = Ask { class, cost: 1, bytes: 0, deadline, needs: Duration::ZERO };
    let wanted = health.wanted(&Wish { whose, ..wish(clock.now()) });
    enter(health, queue, (&ask, wanted), clock).unwrap()
}

/// Whether its turn has come.
fn is_told(line: &mut InLine) -> bool {
    let InLine::Waits(place, _) = line else { return true };
    let Poll::Ready(told) = Pin::new(place).poll(&mut Context::from_waker(Waker::noop())) else {
        return false;
    };
    let elsewhere = Counted::new(Arc::default());
    *line = InLine::Front(told.unwrap(), elsewhere);
    true
}

/// A call at the front takes what it was promised, and leaves the line.
fn goes(health: &Arc<TargetHealth>, line: InLine, clock: Clock) -> Held {
    let held = health.take(&wish(clock.now())).0.expect("it was promised room").held;
    drop(line);
    held
}

fn nothing_is_promised(health: &TargetHealth) -> bool {
    *health.line.promised.lock() == Promised::default()
}

#[tokio::test(start_paused = true)]
async fn all_that_the_rates_have_room_for_are_let_through_together_however_late() {
    let clock = Clock::start();
    let health = health(clock, &[SIXTY], 0);
    let through: Vec<InLine> = (0..12).map(|_| comes(&health, 1, clock)).collect();
    assert!(through.iter().all(|line| matches!(line, InLine::Front(..))), "the burst");
    let mut waiting: Vec<InLine> = (0..9).map(|_| comes(&health, 1, clock)).collect();
    assert!(!waiting.iter_mut().any(is_told), "what is promised is taken");
    let held: Vec<Held> = through.into_iter().map(|line| goes(&health, line, clock)).collect();
    // Nobody was woken for five seconds.
    tokio::time::advance(Duration::from_secs(5)).await;
    health.line.freed();
    let mut told = waiting.iter_mut().map(is_told);
    assert!(told.by_ref().take(4).all(|it| it) && !told.any(|it| it), "0.8 a second");
    for line in waiting.drain(..4) {
        drop(goes(&health, line, clock));
    }
    drop((waiting, held));
    assert!(nothing_is_promised(&health) && health.line.count() == 0);
}

#[tokio::test(start_paused = true)]
async fn several_keys_let_as_many_through_together_as_all_of_them_take() {
    let clock = Clock::start();
    let keys = ["one", "two", "three"].map(|key| Secret::new(key.to_owned()));
    let health = health_of(clock, (&[SIXTY], 0), CredentialSource::Own(keys.to_vec()));
    let mut through: Vec<InLine> = (0..40).map(|_| comes(&health, 1, clock)).collect();
    let told = through.iter_mut().filter_map(|line| is_told(line).then_some(())).count();
    assert_eq!(told, 36, "the burst of each");
}

#[tokio::test(start_paused = true)]
async fn who_is_more_urgent_goes_before_all_that_wait_for_the_rate() {
    let clock = Clock::start();
    let health = health(clock, &[SIXTY], 0);
    let mut batch: Vec<InLine> = (0..14).map(|_| comes(&health, 1, clock)).collect();
    for line in batch.drain(..12) {
        drop(goes(&health, line, clock));
    }
    let mut person = comes(&health, 0, clock);
    tokio::time::advance(Duration::from_millis(1300)).await;
    health.line.freed();
    assert!(is_told(&mut person) && !batch.iter_mut().any(is_told));
}

#[tokio::test(start_paused = true)]
async fn a_promise_that_is_dropped_is_the_next_one_s() {
    let clock = Clock::start();
    let health = health(clock, &[], 1);
    let first = comes(&health, 1, clock);
    let mut others = [comes(&health, 1, clock), comes(&health, 1, clock)];
    assert!(!is_told(&mut others[0]));
    drop(first);
    assert!(is_told(&mut others[0]) && !is_told(&mut others[1]), "one place");
    let [second, mut third] = others;
    let held = goes(&health, second, clock);
    assert!(!is_told(&mut third), "it is taken");
    drop(held);
    assert!(is_told(&mut third));
}

#[tokio::test(start_paused = true)]
async fn what_a_target_keeps_for_its_own_calls_is_not_behind_one_that_falls_back() {
    let clock = Clock::start();
    let health = health(clock, &[], 2);
    let queue = Queueing::default();
    let falls_back = || enters(&health, &queue, (0, Whose::Fallback), clock);
    // Of two places it keeps one.
    let mut others = [falls_back(), falls_back()];
    assert!(is_told(&mut others[0]) && !is_told(&mut others[1]));
    assert_eq!([Whose::Own, Whose::Fallback].map(|whose| health.line.before(whose)), [0, 2]);
    let own = comes(&health, 1, clock);
    assert!(matches!(own, InLine::Front(..)), "the place that is kept");
    assert_eq!(health.line.count(), 3);
    drop(own);
    assert!(!is_told(&mut others[1]));
    let [first, mut second] = others;
    drop(first);
    assert!(is_told(&mut second));
    drop(second);
    assert!(nothing_is_promised(&health) && health.line.count() == 0);
}

#[tokio::test(start_paused = true)]
async fn seats_that_are_kept_for_a_class_are_no_places_of_a_target() {
    let clock = Clock::start();
    let health = health(clock, &[], 1);
    let mut queue = Queueing::default();
    queue.rules.classes[0].kept = 100;
    let mut lines = [(); 2].map(|()| enters(&health, &queue, (1, Whose::Own), clock));
    assert!(is_told(&mut lines[0]) && !is_told(&mut lines[1]));
    let [first, mut second] = lines;
    drop(first);
    assert!(is_told(&mut second));
}

#[cfg(shuttle)]
#[test]
fn shuttled_threads_take_no_place_twice_and_miss_no_turn() {
    crate::sync::tried(|| {
        let clock = Clock::start();
        let health = health(clock, &[], 2);
        let threads = [0, 1, 2, 3].map(|way| {
            let health = Arc::clone(&health);
            shuttle::thread::spawn(move || {
                let line = match comes(&health, way % 2, clock) {
                    InLine::Waits(..) if way == 3 => return,
                    // Nobody's timer rings here: who is not woken for its turn waits for ever.
                    InLine::Waits(place, counted) => {
                        InLine::Front(shuttle::future::block_on(place).unwrap(), counted)
                    }
                    line => line,
                };
                let held = goes(&health, line, clock);
                assert!(health.snapshot("m", clock.now()).in_flight <= 2);
                shuttle::thread::yield_now();
                drop(held);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(health.snapshot("m", clock.now()).in_flight, 0);
        assert!(nothing_is_promised(&health) && health.line.count() == 0);
    });
}
