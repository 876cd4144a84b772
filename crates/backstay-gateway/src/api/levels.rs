//! `/admin/limits`: how far every limit is used up, of targets and of callers' keys.

use std::time::Duration;

use backstay::admit::spend::Spending;
use backstay::route::Snapshot;
use backstay_decide::extra;
use backstay_decide::extra::headroom::Receiver;
use backstay_decide::pacing;
use backstay_decide::spend::{Amount, Day, Level};
use serde_json::{Value, json};

use crate::server::Gateway;

/// What each target that was called bears now, and what each key with a limit spent today.
pub(super) fn limits(gateway: &Gateway) -> Value {
    let (engine, clock) = (gateway.engine(), gateway.engine().clock());
    let mut standings = engine.standings();
    standings.sort_by(|one, other| one.target.cmp(&other.target));
    let keys = gateway.callers().limited();
    let spent = keys.flat_map(|(key, allowed)| spending(&engine.spending(key, allowed)));
    let millis = |unix: Duration| u64::try_from(unix.as_millis()).unwrap_or(u64::MAX);
    let wall = clock.wall();
    json!({"at_ms": millis(wall), "day_ends_ms": millis(wall.saturating_add(Day::left(wall))),
        "targets": standings.iter().map(target).collect::<Vec<_>>(),
        "spend": spent.collect::<Vec<_>>()})
}

fn target(standing: &Snapshot) -> Value {
    let usual = standing.usual_first_token.map(|usual| usual.as_secs_f64() * 1_000.0);
    json!({"target": standing.target, "in_flight": standing.in_flight, "places": standing.places,
        "bytes_in_flight": standing.bytes, "usual_first_token_ms": usual,
        "rates": standing.rates.iter().map(rate).collect::<Vec<_>>(),
        "retries": retries(&standing.retries), "fallbacks": fallbacks(&standing.headroom)})
}

/// A rate of one key.
fn rate((key, level): &(usize, pacing::Level)) -> Value {
    json!({"key": key, "rate": level.dimension.to_string(), "limit": level.limit,
        "steady": level.rate, "at_once": level.burst, "taken": level.used,
        "slowed_to": share(level.factor)})
}

fn retries(level: &extra::Level) -> Value {
    json!({"balance": level.balance.wholes(), "cap": level.cap, "in_flight": level.in_flight,
        "may_be_in_flight": level.allowed})
}

fn fallbacks(receiver: &Receiver) -> Value {
    json!({"in_flight": receiver.fallbacks, "may_be_in_flight": receiver.open_places(),
        "rate_filled": share(receiver.filled), "rate_may_be_filled": share(receiver.open_rate()),
        "refused": receiver.take().err().map(|refusal| refusal.name())})
}

/// A row for each limit of a key.
fn spending(spending: &Spending) -> impl Iterator<Item = Value> + use<> {
    let key = spending.key.as_str();
    let money = spending.money.map(|level| row(key, &level, |money| json!(money.units())));
    let tokens = spending.tokens.map(|level| row(key, &level, |tokens| json!(tokens)));
    money.into_iter().chain(tokens)
}

fn row<A: Amount>(key: &str, level: &Level<A>, told: fn(A) -> Value) -> Value {
    let total = &level.total;
    json!({"key": key, "unit": A::UNIT, "used": told(total.at_least), "limit": told(level.limit),
        "share": level.share(), "reserved": told(total.held), "at_least": total.unknown > 0,
        "estimated": told(total.estimated), "alert_told": level.alerted})
}

fn share(thousandths: u32) -> f64 {
    f64::from(thousandths) / 1_000.0
}
