//! What the load on a model is kept within.

use backstay::policy::{Limits, Provider};
use backstay_decide::aimd::Bounds;
use backstay_decide::pacing::{Counting, Dimension, Rate, Share};
use backstay_wire::Dialect;

use super::Loading;
use crate::config::file::ModelTable;
use crate::config::limit_words::{CachedWord, RatesTable, ReserveWord};

impl Loading<'_> {
    /// The limits of a model at `provider`.
    pub(super) fn limits(&mut self, name: &str, table: &ModelTable, provider: &Provider) -> Limits {
        let places = table.places;
        self.in_range(&["models", name, "places", "floor"], places.floor, 1..=1_000_000);
        self.rate_parts(name, &table.rates);
        Limits {
            places: Bounds {
                floor: u32::try_from(places.floor).unwrap_or(u32::MAX),
                ceiling: table.max_concurrency,
                bytes: places.bytes,
            },
            rates: rates(&table.rates),
            share: share(&table.rates),
            counting: counting(&table.rates, provider.dialect),
        }
    }

    fn rate_parts(&mut self, name: &str, table: &RatesTable) {
        let share = table.share.unwrap_or(1.0);
        if !(share > 0.0 && share <= 1.0) {
            let message = format!("`share` is {share}; above 0 and at most 1 is allowed");
            let path = ["models", name, "rates", "share"];
            self.wrong(&path, "out-of-range", message, "0.8 is 80 %");
        }
        let burst = table.burst.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&burst) {
            let message = format!("`burst` is {burst}; 0 to 1 is allowed");
            let path = ["models", name, "rates", "burst"];
            self.wrong(&path, "out-of-range", message, "0.2 is 20 % of a minute's rate");
        }
    }
}

fn rates(table: &RatesTable) -> Vec<Rate> {
    let rate = |dimension| Some(Rate { dimension, limit: table.published(dimension)? });
    Dimension::ALL.into_iter().filter_map(rate).collect()
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
