//! The line: order, wakers, timers, and what a drop at any point gives back.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};

use backstay_decide::queue::{Class, Left};
use proptest::prelude::*;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::*;

/// So many seats, and at least so long between two calls.
#[derive(Debug)]
struct Paced {
    seats: u32,
    pause: Duration,
    opens: Mutex<Moment>,
    asked: AtomicUsize,
    out: Arc<AtomicU32>,
}

/// What a call has of it; counted.
#[derive(Debug)]
struct Pass(Arc<AtomicU32>);

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gate for Paced {
    type Want = ();
    type Pass = Pass;

    fn free(&self, running: u32) -> u32 {
        self.seats.saturating_sub(running)
    }

    fn pass(&self, _next: &Next, _want: &(), now: Moment) -> Result<Pass, Shut> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut opens = self.opens.lock();
        if now < *opens {
            return Err(Shut::Until(*opens));
        }
        *opens = now.plus(self.pause);
        self.out.fetch_add(1, Ordering::Relaxed);
        Ok(Pass(Arc::clone(&self.out)))
    }
}

fn line(rules: Rules, seats: u32, pause: Duration) -> Line<Paced> {
    let opens = Mutex::new(Moment::ORIGIN);
    let gate = Paced { seats, pause, opens, asked: AtomicUsize::new(0), out: Arc::default() };
    Line::new(rules, gate, Clock::start())
}

fn seats(seats: u32) -> Line<Paced> {
    line(Rules { count: 20_000, ..Rules::default() }, seats, Duration::ZERO)
}

const LATER: Moment = Moment::at(Duration::from_hours(1));

const fn ask(class: usize) -> Ask {
    Ask { class, cost: 1, bytes: 1, deadline: LATER, needs: Duration::ZERO }
}

fn goes(line: &Line<Paced>, ask: &Ask) -> Going<Paced> {
    match line.enter(ask, (), line.shared.clock.now()).unwrap() {
        Entry::Going(going) => going,
        Entry::Waits(_) => panic!("it waits"),
    }
}

fn waits(line: &Line<Paced>, ask: &Ask) -> Place<Paced> {
    match line.enter(ask, (), line.shared.clock.now()).unwrap() {
        Entry::Going(_) => panic!("it goes"),
        Entry::Waits(place) => place,
    }
}

/// Counts how often a call was woken.
#[derive(Debug, Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Bell {
    fn rang(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn poll(place: &mut Place<Paced>, bell: &Arc<Bell>) -> Poll<Result<Going<Paced>, Gone>> {
    let waker = Waker::from(Arc::clone(bell));
    std::pin::Pin::new(place).poll(&mut Context::from_waker(&waker))
}

fn taken(place: &mut Place<Paced>) -> Going<Paced> {
    match poll(place, &Arc::default()) {
        Poll::Ready(Ok(going)) => going,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn of_ten_thousand_exactly_the_one_whose_turn_it_is_is_woken() {
    let line = seats(1);
    let mut going = goes(&line, &ask(0));
    let mut places: Vec<(Place<Paced>, Arc<Bell>)> = Vec::new();
    for number in 0..10_000 {
        let deadline = Moment::at(Duration::from_secs(100_000 - number));
        let mut place = waits(&line, &Ask { deadline, ..ask(0) });
        let bell = Arc::default();
        assert!(poll(&mut place, &bell).is_pending());
        places.push((place, bell));
    }
    // The most urgent is the last that came.
    while let Some((mut place, bell)) = places.pop() {
        assert_eq!(bell.rang(), 0);
        drop(going);
        assert_eq!(bell.rang(), 1);
        going = taken(&mut place);
    }
    assert_eq!(line.report().running, 1);
    // Each entry and each end asks a bounded number of times.
    assert!(line.gate().asked.load(Ordering::Relaxed) <= 10_001);
}

#[tokio::test(start_paused = true)]
async fn classes_share_the_seats_by_weight_and_a_kept_one_is_there_at_once() {
    let kept = |name: &str, share, kept| Class { name: name.into(), share, kept };
    let classes = vec![kept("interactive", 80, 1), kept("batch", 20, 0)];
    let line = line(Rules { classes, ..Rules::default() }, 3, Duration::ZERO);
    let batch = [goes(&line, &ask(1)), goes(&line, &ask(1))];
    let mut third = waits(&line, &ask(1));
    let person = waits(&line, &ask(0)).await.unwrap();
    assert!(poll(&mut third, &Arc::default()).is_pending());
    drop(person);
    assert!(poll(&mut third, &Arc::default()).is_pending());
    drop(batch);
    let _goes = taken(&mut third);
}

#[tokio::test(start_paused = true)]
async fn a_call_leaves_at_its_last_moment_by_its_own_timer() {
    let line = seats(1);
    let _going = goes(&line, &ask(0));
    let began = Instant::now();
    let needs = Duration::from_secs(2);
    let soon = Ask { deadline: Moment::at(Duration::from_secs(5)), needs, ..ask(1) };
    let (gone, other) = tokio::join!(waits(&line, &soon), async {
        let mut place = waits(&line, &ask(0));
        tokio::time::sleep(Duration::from_secs(10)).await;
        poll(&mut place, &Arc::default()).is_pending()
    });
    let gone = gone.unwrap_err();
    assert_eq!(gone.left.name(), "queue_expired");
    assert_eq!(gone.waited, Duration::from_millis(3001));
    assert!(other && began.elapsed() == Duration::from_secs(10));
    assert_eq!(line.report().count, [0, 20_000]);
}

#[tokio::test(start_paused = true)]
async fn a_full_line_sheds_the_lowest_class_which_is_told_at_once() {
    let line = line(Rules { count: 2, ..Rules::default() }, 0, Duration::ZERO);
    let mut first = waits(&line, &ask(1));
    let bells = [Arc::<Bell>::default(), Arc::default()];
    let mut second = waits(&line, &ask(1));
    assert!(poll(&mut first, &bells[0]).is_pending() && poll(&mut second, &bells[1]).is_pending());
    let _person = waits(&line, &ask(0));
    assert_eq!(bells.each_ref().map(|bell| bell.rang()), [0, 1], "the newest of the lowest");
    let gone = second.await.unwrap_err();
    assert!(matches!(&gone.left, Left::Shed { arrived, .. } if &**arrived == "interactive"));
    let refused = line.enter(&ask(1), (), line.shared.clock.now()).unwrap_err();
    assert_eq!((refused.refusal.name(), refused.wait), ("queue_full", None));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_tells_how_long_the_wait_would_have_been() {
    let line = line(Rules { count: 30, ..Rules::default() }, 1, Duration::ZERO);
    let mut going = goes(&line, &ask(0));
    let mut places: Vec<Place<Paced>> = (0..30).map(|_| waits(&line, &ask(0))).collect();
    for mut place in places.drain(..10) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(going);
        going = taken(&mut place);
    }
    assert_eq!(line.report().drain, Some(1));
    // Of the twenty that wait none is as urgent.
    let soon = Ask { deadline: Moment::at(Duration::from_secs(15)), ..ask(0) };
    drop(waits(&line, &soon));
    let mut more: Vec<Place<Paced>> = (0..10).map(|_| waits(&line, &ask(0))).collect();
    let refused = line.enter(&ask(0), (), line.shared.clock.now()).unwrap_err();
    assert_eq!(
        (refused.refusal.name(), refused.wait),
        ("queue_full", Some(Duration::from_secs(30)))
    );
    more.clear();
}

/// As the time a call goes at by a timer may be late by one tick.
fn seconds(times: &[Duration]) -> Vec<u64> {
    times.iter().map(|time| u64::try_from(time.as_millis()).unwrap() / 1000).collect()
}

#[tokio::test(start_paused = true)]
async fn a_paced_gate_lets_one_through_at_a_time_whoever_gives_up() {
    let line = line(Rules::default(), 100, Duration::from_secs(1));
    drop(goes(&line, &ask(0)));
    let began = Instant::now();
    let mut set = JoinSet::new();
    let mut places: Vec<Place<Paced>> = (0..20).map(|_| waits(&line, &ask(0))).collect();
    for (number, place) in places.drain(..).enumerate() {
        set.spawn(async move {
            // Every third gives up just before its turn, when it is the one that is next.
            if number % 3 == 0 {
                let patience = Duration::from_millis(500 + 667 * u64::try_from(number).unwrap());
                let told = tokio::time::timeout(patience, place).await;
                return told.is_ok_and(|told| told.is_ok()).then(|| began.elapsed());
            }
            let going = place.await.unwrap();
            drop(going);
            Some(began.elapsed())
        });
    }
    let times = set.join_all().await;
    let mut times: Vec<Duration> = times.into_iter().flatten().collect();
    times.sort();
    let count = u64::try_from(times.len()).unwrap();
    assert!(count >= 13, "{times:?}");
    assert_eq!(seconds(&times), (1..=count).collect::<Vec<_>>(), "{times:?}");
    let asked = line.gate().asked.load(Ordering::Relaxed);
    assert!(asked < 100, "{asked} looks for 20 calls");
    assert_eq!(line.report().count[0], 0);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_opens_by_itself_is_looked_at_when_told() {
    let line = line(Rules::default(), 9, Duration::ZERO);
    *line.gate().opens.lock() = Moment::at(Duration::from_secs(1000));
    let bell = Arc::default();
    let mut place = waits(&line, &ask(0));
    assert!(poll(&mut place, &bell).is_pending());
    *line.gate().opens.lock() = Moment::ORIGIN;
    line.look();
    assert_eq!(bell.rang(), 1);
    let _goes = taken(&mut place);
}

#[tokio::test(start_paused = true)]
async fn new_bounds_and_seats_hold_for_those_who_wait() {
    let line = line(Rules { count: 2, ..Rules::default() }, 0, Duration::ZERO);
    let _places = [waits(&line, &ask(0)), waits(&line, &ask(1))];
    assert!(line.enter(&ask(1), (), Moment::ORIGIN).is_err());
    line.reload(Rules { count: 3, ..Rules::default() }).unwrap();
    assert!(line.enter(&ask(1), (), Moment::ORIGIN).is_ok());
    let one = vec![Class { name: "only".into(), share: 1, kept: 0 }];
    assert!(line.reload(Rules { classes: one, ..Rules::default() }).is_err());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Enter { class: usize, life: u64 },
    Poll(usize),
    GiveUp(usize),
    End(usize),
    Sleep(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0_usize..3, 0_u64..4000).prop_map(|(class, life)| Step::Enter { class, life }),
        5 => any::<usize>().prop_map(Step::Poll),
        2 => any::<usize>().prop_map(Step::GiveUp),
        4 => any::<usize>().prop_map(Step::End),
        2 => (0_u64..800).prop_map(Step::Sleep),
    ]
}

fn pick<T>(all: &mut Vec<T>, at: usize) -> Option<T> {
    if all.is_empty() { None } else { Some(all.swap_remove(at % all.len())) }
}

/// Plays `steps`. Whoever can go goes, wherever the others are dropped: before they were polled,
/// after, with their turn come and not taken, and while they run.
async fn play(seats: u32, pause: u64, count: usize, steps: &[Step]) {
    let rules = Rules { count, ..Rules::default() };
    let line = line(rules, seats, Duration::from_millis(pause));
    let mut places: Vec<(Place<Paced>, Arc<Bell>)> = Vec::new();
    let mut going = Vec::new();
    for step in steps {
        let now = line.shared.clock.now();
        match *step {
            Step::Enter { class, life } => {
                let deadline = now.plus(Duration::from_millis(life));
                match line.enter(&Ask { deadline, ..ask(class) }, (), now) {
                    Ok(Entry::Going(goes)) => going.push(goes),
                    Ok(Entry::Waits(place)) => places.push((place, Arc::default())),
                    Err(_) => {}
                }
            }
            Step::Poll(at) => {
                if let Some((mut place, bell)) = pick(&mut places, at) {
                    match poll(&mut place, &bell) {
                        Poll::Ready(Ok(goes)) => going.push(goes),
                        Poll::Ready(Err(_)) => {}
                        Poll::Pending => places.push((place, bell)),
                    }
                }
            }
            Step::GiveUp(at) => drop(pick(&mut places, at)),
            Step::End(at) => drop(pick(&mut going, at)),
            Step::Sleep(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
        let report = line.report();
        let out = line.gate().out.load(Ordering::Relaxed);
        assert_eq!(out, report.running, "one pass each");
        assert!(report.running <= seats && report.count[0] <= count);
        let told = usize::try_from(report.running).unwrap() - going.len();
        assert!(report.count[0] + told <= places.len());
        if pause == 0 && !matches!(step, Step::Sleep(_)) {
            assert!(report.running == seats || report.count[0] == 0, "nobody waits for nothing");
        }
    }
    // Every call that was polled is told in time, without a further step.
    places.retain_mut(|(place, bell)| poll(place, bell).is_pending());
    going.clear();
    tokio::time::sleep(Duration::from_mins(1)).await;
    for (mut place, _) in places.drain(..) {
        assert!(poll(&mut place, &Arc::default()).is_ready());
    }
    let report = line.report();
    assert_eq!((report.running, report.count[0]), (0, 0));
    assert_eq!(line.gate().out.load(Ordering::Relaxed), 0);
    assert!(line.shared.state.lock().slots.is_empty());
}

proptest! {
    #[test]
    fn whatever_is_dropped_every_seat_comes_back_and_goes_to_who_waits(
        seats in 0_u32..4, pause in prop_oneof![Just(0_u64), 1_u64..300], count in 1_usize..8,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(seats, pause, count, &steps));
    }
}

/// Enters a line with one seat, and goes, gives up after a look, or gives up at once.
#[cfg(shuttle)]
fn in_turn(line: &Line<Paced>, class: usize, way: usize) {
    match line.enter(&ask(class), (), line.shared.clock.now()).unwrap() {
        Entry::Going(going) => {
            shuttle::thread::yield_now();
            drop(going);
        }
        Entry::Waits(mut place) => match way {
            0 => {
                let _ = poll(&mut place, &Arc::default());
                shuttle::thread::yield_now();
            }
            1 => {}
            // Nobody's timer rings here: who is not woken for its turn waits for ever.
            _ => drop(shuttle::future::block_on(place).unwrap()),
        },
    }
}

#[cfg(shuttle)]
#[test]
fn shuttled_threads_lose_no_seat_and_no_turn() {
    crate::sync::tried(|| {
        let line = seats(1);
        let threads = [0, 1, 2, 3].map(|way| {
            let line = line.clone();
            shuttle::thread::spawn(move || {
                for round in 0..2 {
                    in_turn(&line, (way + round) % 2, way);
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let report = line.report();
        assert_eq!((report.running, report.count[0]), (0, 0));
        assert_eq!(line.gate().out.load(Ordering::Relaxed), 0);
        assert!(line.shared.state.lock().slots.is_empty());
    });
}
