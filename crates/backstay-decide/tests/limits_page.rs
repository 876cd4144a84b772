//! Keeps the page on limits true to the code: its defaults, its names and its sums.
#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::time::Duration;

use backstay_decide::Money;
use backstay_decide::aimd::{Bounds, Full};
use backstay_decide::extra::{self, Kind, headroom};
use backstay_decide::pacing::{Cost, Dimension, LONGEST_PAUSE, Pacer, Per, Rate, Share, Unit};
use backstay_decide::queue::{Left, MOST_CLASSES, MOST_SHED, Refusal, Rules};
use backstay_decide::timers::{RESERVE, TooLate};
use backstay_decide::{Moment, spend};

fn page() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/limits.md"))
        .unwrap()
}

/// The second cell of the row whose first cell is `name` in code.
fn default_of(page: &str, name: &str) -> String {
    let head = format!("| `{name}` | ");
    let row = page.lines().find_map(|line| line.strip_prefix(&head));
    let cells = row.map(|rest| rest.split(" | ").next().unwrap_or_default().to_owned());
    cells.unwrap_or_default()
}

#[test]
fn the_defaults_on_the_page_are_those_of_the_code() {
    let page = page();
    let extra = extra::Limits::default();
    let bounds = Bounds::default();
    let rules = Rules::default();
    let rows = [
        ("earned", extra.earned.to_string()),
        ("floor", format!("{} s", extra.floor.as_secs())),
        ("start", extra.start.to_string()),
        ("cap", extra.cap.to_string()),
        ("at_once", extra.at_once.to_string()),
        ("at_once_share", extra.at_once_share.to_string()),
        ("kept (fallbacks)", headroom::KEPT.to_string()),
        ("share", Share::default().thousandths().to_string()),
        ("LONGEST_PAUSE", format!("{} s", LONGEST_PAUSE.as_secs())),
        ("places.floor", bounds.floor.to_string()),
        ("places.ceiling", bounds.ceiling.to_string()),
        ("places.bytes", bounds.bytes.to_string()),
        ("ALERT", spend::ALERT.to_string()),
        ("count", rules.count.to_string()),
        ("bytes", rules.bytes.to_string()),
        ("MOST_SHED", MOST_SHED.to_string()),
        ("MOST_CLASSES", MOST_CLASSES.to_string()),
        ("RESERVE", format!("{} ms", RESERVE.as_millis())),
    ];
    for (name, value) in rows {
        assert_eq!(default_of(&page, name), value, "the row of `{name}`");
    }
    for class in &rules.classes {
        assert!(page.contains(&format!("`{}` {}", class.name, class.share)), "{}", class.name);
    }
}

#[test]
fn every_name_of_a_refusal_is_on_the_page() {
    let page = page();
    let (some, none) = (Duration::from_secs(1), Duration::ZERO);
    let kind = Kind::Retry;
    let balance = extra::Thousandths(0);
    let names = [
        extra::Refusal::Off.name(),
        extra::Refusal::CallerRepeats { kind, times: 1 }.name(),
        extra::Refusal::AtOnce { kind, extra: 0, allowed: 0, calls: 0 }.name(),
        extra::Refusal::Empty { kind, balance, earned: 0, wait: none }.name(),
        Full::Places { in_flight: 0, limit: 0, ceiling: 0 }.name(),
        Full::Bytes { bytes: 0, held: 0, most: 0 }.name(),
        Full::TooLarge { bytes: 0, most: 0 }.name(),
        TooLate::Short { left: none, wait: none, min_attempt: some }.name(),
        TooLate::Slow { left: none, wait: none, usual: some }.name(),
        Refusal::TooLate { wait: none, ahead: 0, needs: none, left: none }.name(),
        Refusal::NeverFits { bytes: 0, most: 0, count: 0 }.name(),
        Left::GaveUp.name(),
        Left::Expired { left: none, needs: none }.name(),
        Left::Shed { arrived: "interactive".into(), count: [2; 2], bytes: [0; 2] }.name(),
        "queue_full",
        "pace_paused",
        "pace_rate",
        "pace_too_large",
    ];
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn the_sum_on_the_page_is_what_the_code_prints() {
    let page = page();
    let rate = |unit, limit| Rate { dimension: Dimension { unit, per: Per::Minute }, limit };
    let now = Moment::ORIGIN;
    let limits = [rate(Unit::Requests, 600), rate(Unit::Total, 90_000)];
    let mut pacer = Pacer::new(&limits, Share::default(), now);
    let ticket = Cost::request(900, 150);
    let wait = loop {
        match pacer.reserve(ticket, now) {
            Ok(_kept) => {}
            Err(wait) => break wait,
        }
    };
    assert!(page.contains(&wait.to_string()), "{wait}");
    let money = |units| Money::of(units).unwrap();
    let over = spend::Overspent {
        total: spend::Total {
            at_least: money(9.5),
            estimated: Money::ZERO,
            unknown: 0,
            held: Money::ZERO,
        },
        estimate: money(0.51),
        limit: money(10.0),
    };
    assert!(page.contains(&over.to_string()), "{over}");
}
