//! The queue: order, fairness, room and time.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const fn at(millis: u64) -> Moment {
    Moment::at(Duration::from_millis(millis))
}

const LATER: Moment = at(3_600_000);

fn class(name: &str, share: u32, kept: u32) -> Class {
    Class { name: name.into(), share, kept }
}

fn rules(count: usize, bytes: u64) -> Rules {
    Rules { count, bytes, ..Rules::default() }
}

const fn ask(class: usize, cost: u64) -> Ask {
    Ask { class, cost, bytes: 1, deadline: LATER, needs: Duration::ZERO }
}

/// Enters at once, into a queue with room.
fn put(queue: &mut Queue, ask: Ask) -> Ticket {
    let entry = queue.enter(&ask, None, at(0));
    assert_eq!(entry.gone, []);
    entry.ticket.expect("there is room and time")
}

/// Classes in the order they go, each call being over at once.
fn order(queue: &mut Queue, calls: usize) -> Vec<usize> {
    (0..calls)
        .map_while(|_| {
            let running = queue.next(1, at(0)).call?;
            let class = running.ticket.class();
            let cost = running.cost;
            queue.done(running, cost);
            Some(class)
        })
        .collect()
}

#[test]
fn four_in_five_are_interactive_while_both_wait_and_all_of_either_alone() {
    let mut queue = Queue::new(Rules::default());
    for _ in 0..20 {
        put(&mut queue, ask(0, 100));
        put(&mut queue, ask(1, 100));
    }
    let first = order(&mut queue, 20);
    assert_eq!(first.iter().filter(|class| **class == 0).count(), 16);
    assert_eq!(first[..6], [0, 1, 0, 0, 0, 0]);
    let rest = order(&mut queue, 40);
    assert_eq!(rest.len(), 20);
    assert_eq!(rest[5..], [1; 15], "no more interactive ones: the batch has it all");
}

#[test]
fn a_class_that_was_idle_has_no_claim_on_the_past() {
    let mut queue = Queue::new(Rules::default());
    for _ in 0..100 {
        put(&mut queue, ask(0, 100));
    }
    order(&mut queue, 50);
    for _ in 0..50 {
        put(&mut queue, ask(1, 100));
    }
    let next = order(&mut queue, 10);
    assert_eq!(next.iter().filter(|class| **class == 1).count(), 2, "{next:?}");
}

#[test]
fn dear_calls_count_for_more() {
    let mut queue =
        Queue::new(Rules { classes: vec![class("a", 1, 0), class("b", 1, 0)], ..Rules::default() });
    for _ in 0..30 {
        put(&mut queue, ask(0, 900));
        put(&mut queue, ask(1, 100));
    }
    let first = order(&mut queue, 20);
    assert_eq!(first.iter().filter(|class| **class == 0).count(), 2, "{first:?}");
}

#[test]
fn what_a_call_took_is_charged_in_the_end() {
    let mut queue =
        Queue::new(Rules { classes: vec![class("a", 1, 0), class("b", 1, 0)], ..Rules::default() });
    for _ in 0..20 {
        put(&mut queue, ask(0, 100));
        put(&mut queue, ask(1, 100));
    }
    let first = queue.next(1, at(0)).call.unwrap();
    assert_eq!(first.ticket.class(), 0);
    queue.done(first, 500);
    assert_eq!(order(&mut queue, 6), [1, 1, 1, 1, 1, 0], "four more than its one");
    let next = queue.next(1, at(0)).call.unwrap();
    assert_eq!(next.ticket.class(), 1);
    queue.done(next, 0);
    assert_eq!(order(&mut queue, 2), [1, 0], "and nothing for what took nothing");
}

#[test]
fn inside_a_class_the_most_urgent_goes_first() {
    let mut queue = Queue::new(Rules::default());
    let with = |seconds: u64, needs: u64| Ask {
        deadline: at(seconds * 1000),
        needs: Duration::from_secs(needs),
        ..ask(0, 1)
    };
    let slack = put(&mut queue, with(100, 0));
    let urgent = put(&mut queue, with(50, 0));
    let long = put(&mut queue, with(60, 20));
    let same = put(&mut queue, with(100, 0));
    let mut went = Vec::new();
    while let Some(running) = queue.next(1, at(0)).call {
        went.push(running.ticket);
        queue.done(running, 1);
    }
    assert_eq!(went, [long, urgent, slack, same], "of two alike the older");
}

#[test]
fn a_call_that_cannot_be_served_in_time_is_refused_on_entry() {
    let mut queue = Queue::new(Rules::default());
    let in_ten = Ask { deadline: at(10_000), needs: Duration::from_secs(2), ..ask(0, 100) };
    put(&mut queue, Ask { cost: 700, ..in_ten });
    put(&mut queue, Ask { cost: 5000, deadline: at(60_000), ..in_ten });
    assert!(queue.enter(&in_ten, Some(100), at(0)).ticket.is_ok(), "7 s for what is before it");
    let late = queue.enter(&Ask { cost: 1, ..in_ten }, Some(100), at(1)).ticket;
    assert!(late.is_err(), "now 8 s are before it, and 8 s less a millisecond are left");
    let refused = queue.enter(&in_ten, Some(80), at(0)).ticket.unwrap_err();
    assert_eq!(
        (refused.name(), refused.to_string().as_str()),
        (
            "queue_too_late",
            "too late: a wait of 10 s for 800 ahead + 2 s to serve is over the 10 s left"
        )
    );
    assert_eq!(refused.retry_after(), Duration::from_secs(10));
    // What another class waits for takes its share of the drain: a fifth is left for this one.
    let mut shared = Queue::new(Rules::default());
    put(&mut shared, ask(0, 1));
    put(&mut shared, ask(1, 100));
    let batch = |seconds: u64| Ask { deadline: at(seconds * 1000), ..ask(1, 1) };
    put(&mut shared, batch(5));
    assert!(shared.enter(&batch(4), Some(1), at(0)).ticket.is_ok());
    assert_eq!(
        shared.enter(&batch(5), Some(1), at(0)).ticket.unwrap_err().retry_after(),
        Duration::from_secs(10)
    );
    let unknown = shared.enter(&batch(5), Some(0), at(0)).ticket;
    assert!(unknown.is_ok(), "a drain of nothing says nothing");
}

#[test]
fn a_deadline_that_is_over_is_refused_without_any_drain() {
    let mut queue = Queue::new(Rules::default());
    let past = Ask { deadline: at(999), ..ask(0, 1) };
    assert!(queue.enter(&past, None, at(1000)).ticket.is_err());
    let exact = Ask { deadline: at(3000), needs: Duration::from_secs(2), ..ask(0, 1) };
    assert!(queue.enter(&exact, None, at(1001)).ticket.is_err());
    assert!(queue.enter(&exact, None, at(1000)).ticket.is_ok());
}

#[test]
fn a_call_whose_time_is_over_leaves_instead_of_going() {
    let mut queue = Queue::new(Rules::default());
    let soon = Ask { deadline: at(5000), needs: Duration::from_secs(2), ..ask(1, 1) };
    let ticket = put(&mut queue, soon);
    let other = put(&mut queue, ask(1, 1));
    let turn = queue.next(1, at(3001));
    assert_eq!(turn.call.unwrap().ticket, other);
    assert_eq!(turn.gone.len(), 1);
    assert_eq!((turn.gone[0].ticket, turn.gone[0].left.name()), (ticket, "queue_expired"));
    assert_eq!(turn.gone[0].to_string(), "batch #1 left after 3.001 s: 1.999 s left, it takes 2 s");
    assert_eq!(queue.count(), 0);
}

#[test]
fn the_lowest_class_makes_room_its_newest_call_first_and_by_name() {
    let mut queue = Queue::new(rules(10, 1000));
    let batch: Vec<Ticket> = (0..8).map(|_| put(&mut queue, ask(1, 1))).collect();
    put(&mut queue, ask(0, 1));
    put(&mut queue, ask(0, 1));
    let entry = queue.enter(&ask(0, 1), None, at(250));
    assert!(entry.ticket.is_ok());
    assert_eq!(entry.gone.len(), 1);
    assert_eq!(entry.gone[0].ticket, batch[7]);
    assert_eq!(
        entry.gone[0].to_string(),
        "batch #8 left after 0.25 s: the queue was full and a call of interactive came: 10 of 10 calls, 10 of 1000 bytes"
    );
    let refused = queue.enter(&ask(1, 1), None, at(250)).ticket.unwrap_err();
    assert_eq!(
        (refused.name(), refused.to_string().as_str()),
        (
            "queue_full",
            "the queue is full for batch: 10 of 10 calls, 10 of 1000 bytes, and no lower class \
             over its share"
        )
    );
}

#[test]
fn no_flood_empties_another_classs_part_of_the_queue() {
    let mut queue = Queue::new(rules(10, 1000));
    for _ in 0..10 {
        put(&mut queue, ask(1, 1));
    }
    let mut shed = 0;
    for _ in 0..50 {
        shed += queue.enter(&ask(0, 1), None, at(0)).gone.len();
    }
    let counts: Vec<usize> = queue.standing(at(0)).iter().map(|class| class.count).collect();
    assert_eq!((shed, counts), (8, vec![8, 2]), "a fifth stays");
    // A class below its share takes it back from a higher one.
    let batch = queue.next(1, at(0)).call.and_then(|_first| queue.next(1, at(0)).call).unwrap();
    assert_eq!(batch.ticket.class(), 1);
    for _ in 0..5 {
        queue.enter(&ask(0, 1), None, at(0));
    }
    let counts = |queue: &Queue| queue.standing(at(0)).iter().map(|c| c.count).collect::<Vec<_>>();
    assert_eq!(counts(&queue), [9, 1]);
    let entry = queue.enter(&ask(1, 1), None, at(0));
    assert!(entry.ticket.is_ok());
    assert_eq!((&*entry.gone[0].class, counts(&queue)), ("interactive", vec![8, 2]));
}

#[test]
fn bytes_are_room_too_and_nobody_leaves_in_vain() {
    let mut queue = Queue::new(rules(100, 100));
    let sized = |class, bytes| Ask { bytes, ..ask(class, 1) };
    for _ in 0..10 {
        put(&mut queue, sized(1, 8));
    }
    let refused = queue.enter(&sized(0, 90), None, at(0));
    assert_eq!(refused.ticket.unwrap_err().name(), "queue_full");
    assert_eq!((refused.gone, queue.count()), (vec![], 10), "it would not have been enough");
    let entry = queue.enter(&sized(0, 70), None, at(0));
    assert!(entry.ticket.is_ok());
    assert_eq!((entry.gone.len(), queue.bytes()), (7, 94));
    let never = queue.enter(&sized(0, 101), None, at(0)).ticket.unwrap_err();
    assert_eq!(
        (never.name(), never.to_string().as_str(), never.retry_after()),
        (
            "queue_never_fits",
            "101 bytes do not fit a queue of 100 calls and 100 bytes",
            Duration::MAX
        )
    );
    let mut off = Queue::new(rules(0, 100));
    assert_eq!(off.enter(&ask(0, 1), None, at(0)).ticket.unwrap_err().name(), "queue_never_fits");
}

#[test]
fn what_fills_the_queue_to_the_byte_still_fits_it() {
    let mut queue = Queue::new(rules(1, 100));
    assert!(queue.enter(&Ask { bytes: 100, ..ask(0, 1) }, None, at(0)).ticket.is_ok());
}

#[test]
fn a_call_over_its_classs_bytes_takes_places_of_lower_classes_only() {
    for (class, others, pushed_out) in [(0, 1, 1), (1, 0, 0)] {
        let mut queue = Queue::new(rules(10, 1000));
        for _ in 0..10 {
            put(&mut queue, ask(others, 1));
        }
        let entry = queue.enter(&Ask { bytes: 900, ..ask(class, 1) }, None, at(0));
        assert_eq!((entry.ticket.is_ok(), entry.gone.len()), (pushed_out == 1, pushed_out));
    }
}

#[test]
fn a_class_with_few_calls_is_not_shed_for_bytes_that_it_does_not_take_from_others() {
    for (bytes, arrival) in [(20, 821), (40, 801)] {
        let mut queue = Queue::new(rules(10, 1000));
        let waiting = if bytes == 20 { 9 } else { 5 };
        for _ in 0..waiting {
            put(&mut queue, Ask { bytes, ..ask(1, 1) });
        }
        let entry = queue.enter(&Ask { bytes: arrival, ..ask(0, 1) }, None, at(0));
        assert_eq!((entry.ticket.is_ok(), entry.gone.len()), (false, 0), "{bytes}");
    }
}

#[test]
fn a_class_that_has_its_share_takes_none_from_a_higher_one() {
    // Shares of 8.8 and 2.2 of 11 leave one to whoever comes first.
    let mut queue = Queue::new(rules(11, 1000));
    for class in [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1] {
        put(&mut queue, ask(class, 1));
    }
    let entry = queue.enter(&ask(1, 1), None, at(0));
    assert_eq!((entry.ticket.is_ok(), entry.gone.len()), (false, 0));
}

#[test]
fn under_narrower_bounds_a_class_keeps_its_share_of_them() {
    for (first, goes) in [(1, 3), (2, 0)] {
        let even = vec![class("a", 1, 0), class("b", 1, 0)];
        let wide = Rules { classes: even, count: 10, bytes: 1000 };
        let mut queue = Queue::new(wide.clone());
        for class in std::iter::repeat_n(0, first).chain([1; 5]) {
            put(&mut queue, ask(class, 1));
        }
        queue.reload(Rules { count: 4, ..wide }).unwrap();
        let entry = queue.enter(&ask(0, 1), None, at(0));
        assert_eq!((entry.ticket.is_ok(), entry.gone.len()), (goes > 0, goes), "{first}");
    }
}

#[test]
fn a_class_is_told_how_long_its_oldest_call_waits_if_it_has_one() {
    let mut queue = Queue::new(Rules::default());
    assert!(queue.enter(&ask(1, 1), None, at(1000)).ticket.is_ok());
    let oldest: Vec<_> = queue.standing(at(3000)).iter().map(|class| class.oldest).collect();
    assert_eq!(oldest, [Duration::ZERO, Duration::from_secs(2)]);
}

#[test]
fn a_class_that_is_not_there_waits_with_the_last() {
    let mut queue = Queue::new(Rules::default());
    put(&mut queue, ask(1, 30));
    let ahead = |class| queue.ahead(&ask(class, 1), 10, at(0));
    assert_eq!((ahead(9), ahead(0).0), (ahead(1), 0));
    assert_eq!(ahead(1), (30, Duration::from_secs(3)));
}

#[test]
fn one_arrival_pushes_out_a_bounded_number() {
    let mut queue = Queue::new(rules(1000, 1000));
    for _ in 0..1000 {
        put(&mut queue, ask(1, 1));
    }
    let large = Ask { bytes: 65, ..ask(0, 1) };
    assert!(queue.enter(&large, None, at(0)).ticket.is_err());
    let entry = queue.enter(&Ask { bytes: 64, ..large }, None, at(0));
    assert_eq!((entry.ticket.is_ok(), entry.gone.len()), (true, MOST_SHED));
}

#[test]
fn kept_seats_are_taken_by_nobody_else() {
    let mut queue =
        Queue::new(Rules { classes: vec![class("i", 1, 2), class("b", 1, 0)], ..Rules::default() });
    for _ in 0..10 {
        put(&mut queue, ask(1, 1));
    }
    let mut running = Vec::new();
    for free in (1..=6).rev() {
        running.extend(queue.next(free, at(0)).call);
    }
    assert_eq!(running.len(), 4, "two of six seats are kept");
    put(&mut queue, ask(0, 1));
    let call = queue.next(2, at(0)).call.unwrap();
    assert_eq!(call.ticket.class(), 0);
    assert_eq!(queue.next(1, at(0)).call, None, "the second is still kept");
    queue.done(call, 1);
    assert_eq!(queue.standing(at(0))[0].running, 0);
    assert_eq!(queue.next(0, at(0)).call, None);
}

#[test]
fn a_caller_that_gives_up_leaves_its_place() {
    let mut queue = Queue::new(Rules::default());
    let ticket = put(&mut queue, ask(0, 7));
    let gone = queue.leave(ticket, at(1500)).unwrap();
    assert_eq!(gone.to_string(), "interactive #1 left after 1.5 s: its caller gave up");
    assert_eq!((queue.leave(ticket, at(1500)), queue.count(), queue.bytes()), (None, 0, 0));
    assert_eq!(queue.next(1, at(1500)).call, None);
}

#[test]
fn a_reload_changes_bounds_and_shares_and_keeps_who_waits() {
    let mut queue = Queue::new(rules(10, 1000));
    for _ in 0..5 {
        put(&mut queue, ask(0, 1));
        put(&mut queue, ask(1, 1));
    }
    let even = vec![class("interactive", 1, 0), class("batch", 1, 0)];
    assert_eq!(queue.reload(Rules { classes: even, count: 4, bytes: 1000 }), Ok(()));
    assert_eq!((queue.count(), queue.rules().count), (10, 4));
    assert!(queue.enter(&ask(1, 1), None, at(0)).ticket.is_err());
    assert_eq!(order(&mut queue, 4), [0, 1, 0, 1]);
    let refused = queue.reload(Rules { classes: vec![class("batch", 1, 0)], ..rules(4, 10) });
    assert_eq!(refused, Err(OtherClasses));
    assert!(OtherClasses.to_string().contains("bounds"));
}

#[test]
fn odd_rules_are_mended() {
    let mut queue = Queue::new(Rules { classes: vec![], ..Rules::default() });
    let ticket = put(&mut queue, ask(9, 0));
    assert_eq!((ticket.class(), queue.standing(at(0))[0].cost), (0, 1));
    assert_eq!(
        queue.standing(at(2000))[0].to_string(),
        "default: 1 waiting (1 bytes, cost 1), 0 running, the oldest for 2 s"
    );
    let many = vec![class("c", 0, 0); 40];
    assert_eq!(Queue::new(Rules { classes: many, ..Rules::default() }).lanes.len(), MOST_CLASSES);
}

#[test]
fn a_hundred_thousand_calls_go_through_in_logarithmic_steps() {
    // With linear steps this would be ten billion of them.
    let mut queue = Queue::new(rules(100_000, u64::MAX));
    for ix in 0..100_000_u64 {
        let deadline = at(3_600_000 + ix * 7919 % 100_000);
        put(&mut queue, Ask { deadline, ..ask(usize::from(ix % 3 == 0), 1 + ix % 50) });
    }
    for _ in 0..50_000 {
        assert!(queue.enter(&ask(0, 1), Some(1_000_000), at(0)).ticket.is_ok());
        let running = queue.next(1, at(0)).call.expect("many wait");
        queue.done(running, 1);
    }
    assert!(queue.count() > 50_000);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Enter { class: usize, cost: u64, bytes: u64, life: u64, needs: u64 },
    Next { free: u32 },
    Done { took: u64 },
    Leave,
    Sleep(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_usize..4, 0_u64..50, 0_u64..30, 0_u64..4000, 0_u64..1000)
            .prop_map(|(class, cost, bytes, life, needs)| Step::Enter { class, cost, bytes, life, needs }),
        5 => (0_u32..4).prop_map(|free| Step::Next { free }),
        2 => (0_u64..80).prop_map(|took| Step::Done { took }),
        1 => Just(Step::Leave),
        2 => (0_u64..500).prop_map(Step::Sleep),
    ]
}

#[test]
fn a_call_goes_at_once_only_where_it_would_be_the_next() {
    let classes = vec![class("a", 1, 0), class("b", 1, 2)];
    let mut queue = Queue::new(Rules { classes, ..Rules::default() });
    assert_eq!(queue.go(&ask(0, 1), 2, at(0)), None, "two seats are kept for the other class");
    let going = queue.go(&ask(0, 0), 3, at(0)).unwrap();
    assert_eq!((going.cost(), going.waited, going.ticket.class()), (1, Duration::ZERO, 0));
    let late = Ask { deadline: at(1000), needs: Duration::from_secs(1), ..ask(1, 1) };
    assert_eq!(queue.go(&late, 3, at(1)), None);
    let kept = queue.go(&late, 1, at(0)).unwrap();
    let next = put(&mut queue, ask(0, 7));
    assert_eq!(kept.cost(), 1);
    assert_eq!(queue.go(&ask(1, 1), 3, at(0)), None, "somebody waits");
    assert_eq!(queue.peek(1), None);
    assert_eq!(queue.peek(2), Some(Next { ticket: next, cost: 7, bytes: 1 }));
    queue.done(kept, 1);
    assert_eq!(queue.peek(2), None, "its seat is kept again");
    assert_eq!(queue.next(3, at(0)).call.unwrap().cost(), 7);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn to_go_at_once_is_to_enter_and_be_the_next(
        calls in prop::collection::vec((0_usize..3, 0_u64..100, any::<bool>()), 1..40),
    ) {
        let mut direct = Queue::new(Rules::default());
        let mut through = Queue::new(Rules::default());
        for (class, cost, runs_on) in calls {
            let going = direct.go(&ask(class, cost), 1000, at(0)).unwrap();
            put(&mut through, ask(class, cost));
            let next = through.next(1000, at(0)).call.unwrap();
            prop_assert_eq!(&going, &next);
            if !runs_on {
                direct.done(going, cost / 2);
                through.done(next, cost / 2);
            }
            let tags = |queue: &Queue| queue.lanes.iter().map(Lane::tag).collect::<Vec<_>>();
            prop_assert_eq!(tags(&direct), tags(&through));
            prop_assert_eq!(direct.virtual_now, through.virtual_now);
            prop_assert_eq!(direct.standing(at(0)), through.standing(at(0)));
        }
    }

    /// Invariants 5, 7, 19: every call that enters goes, leaves or waits, exactly once; none goes
    /// after its time; count and bytes stay within their bounds; shares of the room are kept.
    #[test]
    fn every_call_is_accounted_for_and_none_goes_too_late(
        count in 1_usize..12, bytes in 1_u64..150, drain in prop::option::of(1_u64..200),
        shares in prop::array::uniform3(1_u32..5), steps in prop::collection::vec(step(), 0..200),
    ) {
        let classes = shares.iter().map(|share| class("c", *share, 0)).collect();
        let mut queue = Queue::new(Rules { classes, count, bytes });
        let mut now = 0;
        let mut waiting: BTreeMap<Ticket, Ask> = BTreeMap::new();
        let mut running: Vec<Running> = Vec::new();
        for step in steps {
            let before: Vec<usize> = queue.standing(at(now)).iter().map(|class| class.count).collect();
            match step {
                Step::Sleep(millis) => now += millis,
                Step::Enter { class, cost, bytes, life, needs } => {
                    let ask = Ask { class, cost, bytes, deadline: at(now + life), needs: Duration::from_millis(needs) };
                    let entry = queue.enter(&ask, drain, at(now));
                    let mut last_shed = BTreeMap::new();
                    for gone in &entry.gone {
                        let ask = waiting.remove(&gone.ticket).expect("it waited");
                        if let Left::Shed { .. } = gone.left {
                            prop_assert!(entry.ticket.is_ok(), "nobody leaves in vain");
                            prop_assert!(gone.ticket.class() != class.min(2));
                            last_shed.insert(gone.ticket.class(), ask.bytes);
                        }
                    }
                    for (class, bytes) in last_shed {
                        // It held more than its share until the last one left.
                        let lane = &queue.lanes[class];
                        let over = lane.count() + 1 > queue.kept_count(class);
                        prop_assert!(over || lane.bytes + bytes > queue.kept_bytes(class));
                    }
                    if let Ok(ticket) = entry.ticket {
                        prop_assert!(needs <= life);
                        prop_assert!(waiting.insert(ticket, ask).is_none());
                    } else if needs <= life && bytes == 0 && drain.is_none() && before.iter().sum::<usize>() < count {
                        prop_assert!(false, "there was room and time");
                    }
                }
                Step::Next { free } => {
                    let turn = queue.next(free, at(now));
                    for gone in turn.gone {
                        let ask = waiting.remove(&gone.ticket).expect("it waited");
                        prop_assert!(at(now).plus(ask.needs) > ask.deadline);
                    }
                    match turn.call {
                        Some(call) => {
                            let ask = waiting.remove(&call.ticket).expect("it waited");
                            prop_assert!(free > 0 && at(now).plus(ask.needs) <= ask.deadline);
                            running.push(call);
                        }
                        None => prop_assert!(free == 0 || waiting.is_empty()),
                    }
                }
                Step::Done { took } => running.pop().into_iter().for_each(|call| queue.done(call, took)),
                Step::Leave => if let Some((ticket, _)) = waiting.pop_first() {
                    prop_assert!(queue.leave(ticket, at(now)).is_some());
                    prop_assert!(queue.leave(ticket, at(now)).is_none());
                }
            }
            prop_assert_eq!(queue.count(), waiting.len());
            prop_assert_eq!(queue.bytes(), waiting.values().map(|ask| ask.bytes).sum::<u64>());
            prop_assert!(queue.count() <= count && queue.bytes() <= bytes);
            let standing = queue.standing(at(now));
            prop_assert_eq!(standing.iter().map(|c| c.running as usize).sum::<usize>(), running.len());
            prop_assert_eq!(
                standing.iter().map(|c| c.cost).sum::<u64>(),
                waiting.values().map(|ask| ask.cost.max(1)).sum::<u64>()
            );
        }
    }

    /// Invariant 10: while two classes wait, what they get for their share differs by no more than
    /// one call each; so nobody starves.
    #[test]
    fn classes_that_wait_get_their_shares_within_one_call_each(
        shares in prop::array::uniform3(1_u32..20),
        costs in prop::array::uniform3(prop::collection::vec(1_u64..100, 40)),
        steps in 1_usize..40,
    ) {
        let classes = shares.iter().map(|share| class("c", *share, 0)).collect();
        let mut queue = Queue::new(Rules { classes, count: 1000, bytes: 1000 });
        for (class, costs) in costs.iter().enumerate() {
            for cost in costs {
                put(&mut queue, ask(class, *cost));
            }
        }
        let mut got = [0_u64; 3];
        for _ in 0..steps {
            let running = queue.next(1, at(0)).call.expect("all wait");
            got[running.ticket.class()] += running.cost;
            let cost = running.cost;
            queue.done(running, cost);
            for one in 0..3 {
                for other in 0..3 {
                    let (mine, theirs) = (u64::from(shares[one]), u64::from(shares[other]));
                    // got / share apart by at most 99 / share each, in whole numbers.
                    prop_assert!(
                        got[one] * theirs <= got[other] * mine + 99 * (mine + theirs) + 1,
                        "{got:?} at {shares:?}"
                    );
                }
            }
        }
    }
}
