//! What the load on a model is kept within.

use backstay::policy::{Limits, Provider};
use backstay_decide::aimd::Bounds;
use backstay_decide::extra;
use backstay_decide::pacing::{Counting, Dimension, Rate, Share};
use backstay_wire::Dialect;

use super::Loading;
use crate::config::file::ModelTable;
use crate::config::limit_words::{CachedWord, RatesTable, ReserveWord, RetriesTable};

impl Loading<'_> {
    /// The limits of a model at `provider`.
    pub(super) fn limits(
        &mut self,
        name: &str,
        table: &ModelTable,
        provider: &Provider,
        retries_of_all: &RetriesTable,
    ) -> Limits {
        let places = table.places;
        self.in_range(&["models", name, "places", "floor"], places.floor, 1..=1_000_000);
        self.rate_parts(name, &table.rates);
        self.part(&["models", name, "places", "kept"], places.kept, "0.1 is 10 %");
        self.retry_parts(&["models", name, "retries"], &table.retries);
        Limits {
            places: Bounds {
                floor: u32::try_from(places.floor).unwrap_or(u32::MAX),
                ceiling: table.max_concurrency,
                bytes: places.bytes,
            },
            rates: rates(&table.rates),
            share: share(&table.rates),
            counting: counting(&table.rates, provider.dialect),
            retries: retries(&table.retries.over(retries_of_all)),
            kept: thousandths(places.kept),
        }
    }

    fn rate_parts(&mut self, name: &str, table: &RatesTable) {
        self.some_part(&["models", name, "rates", "share"], table.share, "0.8 is 80 %");
        let path = ["models", name, "rates", "burst"];
        self.part(&path, table.burst.unwrap_or(0.0), "0.2 is 20 % of a minute's rate");
    }

    /// Notes what is out of range in the table of retries at `path`.
    pub(super) fn retry_parts(&mut self, path: &[&str], table: &RetriesTable) {
        for (key, part) in [("earned", table.earned), ("at_once_share", table.at_once_share)] {
            self.part(&[path, &[key]].concat(), part.unwrap_or(0.0), "0.1 is 10 %");
        }
    }

    /// Notes a part of something that is none of it, or more than all.
    pub(super) fn some_part(&mut self, path: &[&str], part: Option<f64>, help: &str) {
        let Some(part) = part.filter(|part| !(*part > 0.0 && *part <= 1.0)) else { return };
        let key = path.last().copied().unwrap_or_default();
        let message = format!("`{key}` is {part}; above 0 and at most 1 is allowed");
        self.wrong(path, "out-of-range", message, help);
    }

    /// Notes a part of something that is not 0 to 1.
    fn part(&mut self, path: &[&str], part: f64, help: &str) {
        if !(0.0..=1.0).contains(&part) {
            let key = path.last().copied().unwrap_or_default();
            let message = format!("`{key}` is {part}; 0 to 1 is allowed");
            self.wrong(path, "out-of-range", message, help);
        }
    }
}

fn rates(table: &RatesTable) -> Vec<Rate> {
    let rate = |dimension| Some(Rate { dimension, limit: table.published(dimension)? });
    Dimension::ALL.into_iter().filter_map(rate).collect()
}

fn retries(table: &RetriesTable) -> extra::Limits {
    let usual = extra::Limits::default();
    extra::Limits {
        earned: table.earned.map_or(usual.earned, thousandths),
        floor: table.floor.map_or(usual.floor, |floor| floor.0),
        start: table.start.unwrap_or(usual.start),
        cap: table.cap.unwrap_or(usual.cap),
        at_once: table.at_once.unwrap_or(usual.at_once),
        at_once_share: table.at_once_share.map_or(usual.at_once_share, thousandths),
    }
}

fn share(table: &RatesTable) -> Share {
    let share = table.share.map_or_else(Share::default, |part| Share::per_mille(thousandths(part)));
    table.burst.map_or(share, |part| share.burst(thousandths(part)))
}

/// A part of 0 to 1 in thousandths.
fn thousandths(part: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 1000: what is out of range was noted"
    )]
    let whole = (part.clamp(0.0, 1.0) * 1000.0).round() as u32;
    whole
}

fn counting(table: &RatesTable, dialect: Dialect) -> Counting {
    let usual = Limits::usual(dialect).counting;
    Counting {
        upfront: table.reserve.map_or(usual.upfront, ReserveWord::upfront),
        cached: table.cached_input.map_or(usual.cached, CachedWord::cached),
    }
}

#[cfg(test)]
mod tests {
    use backstay_decide::pacing::{Per, Unit, Upfront};

    use super::*;

    #[test]
    fn a_table_without_keys_publishes_nothing_and_each_key_goes_where_it_belongs() {
        let empty = RatesTable::default();
        assert_eq!((rates(&empty), share(&empty)), (Vec::new(), Share::default()));
        let table = RatesTable {
            requests_per_minute: Some(600),
            tokens_per_day: Some(1_000_000),
            share: Some(0.5),
            burst: Some(0.1),
            cached_input: Some(CachedWord::Counted),
            ..empty
        };
        let rate = |unit, per, limit| Rate { dimension: Dimension { unit, per }, limit };
        let expected =
            [rate(Unit::Requests, Per::Minute, 600), rate(Unit::Total, Per::Day, 1_000_000)];
        assert_eq!(rates(&table), expected);
        assert_eq!(share(&table), Share::per_mille(500).burst(100));
        let upfront = |table, dialect| counting(table, dialect).upfront;
        assert_eq!(upfront(&table, Dialect::Anthropic), Upfront::Expected);
        assert_eq!(upfront(&table, Dialect::OpenaiChat), Upfront::Cap);
        let own = RatesTable { reserve: Some(ReserveWord::Cap), ..table };
        assert_eq!(upfront(&own, Dialect::Anthropic), Upfront::Cap);
        let every = Dimension::ALL.map(Dimension::name);
        let written = every.map(|name| format!("{name} = 7")).join("\n");
        let read: RatesTable = toml::from_str(&written).unwrap();
        assert_eq!(rates(&read).len(), every.len(), "each dimension has the key of its name");
    }
}
