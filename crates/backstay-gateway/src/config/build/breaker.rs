//! `[breaker]` and `[models.NAME.breaker]`.

use std::time::Duration;

use backstay_decide::breaker::{Limits, Mode, Rules, Separation};

use super::Loading;
use crate::config::breaker_words::{BreakerTable, ModeWord, PlanesWord};

/// The narrowest window: a twelfth of it is what is counted by.
const LEAST_WINDOW: Duration = Duration::from_secs(1);

impl Loading<'_> {
    /// Notes what is out of range in the table at `path`.
    pub(super) fn breaker_ranges(&mut self, path: &[&str], table: &BreakerTable) {
        let at = |key| [path, &[key]].concat();
        let rate = table.failure_rate.unwrap_or(0.5);
        if !(rate > 0.0 && rate < 1.0) {
            let message = format!("`failure_rate` is {rate}; above 0 and below 1 is allowed");
            self.wrong(&at("failure_rate"), "out-of-range", message, "0.15 is 15 %");
        }
        self.in_range(&at("min_calls"), table.min_calls.unwrap_or(1), 1..=1000);
        self.in_range(&at("failures_in_a_row"), table.failures_in_a_row.unwrap_or(0), 0..=1000);
        if table.window.is_some_and(|window| window.0 < LEAST_WINDOW) {
            let message = "`window` must be at least 1s".into();
            self.wrong(&at("window"), "out-of-range", message, "");
        }
        let factor = table.slow_factor.unwrap_or(1.0);
        if !(1.0..=1000.0).contains(&factor) {
            let message = format!("`slow_factor` is {factor}; 1 to 1000 is allowed");
            self.wrong(&at("slow_factor"), "out-of-range", message, "");
        }
        if let (Some(least), Some(most)) = (table.shortest_rest, table.longest_rest)
            && least.0 > most.0
        {
            let message = "`longest_rest` is shorter than `shortest_rest`".into();
            self.wrong(&at("longest_rest"), "out-of-range", message, "");
        }
    }
}

/// What a model's breakers go by.
pub(super) fn rules(table: &BreakerTable) -> Rules {
    let mut rules = Rules::DEFAULT.in_mode(match table.mode {
        None | Some(ModeWord::Automatic) => Mode::Automatic,
        Some(ModeWord::ForcedOpen) => Mode::ForcedOpen,
        Some(ModeWord::ForcedClosed) => Mode::ForcedClosed,
        Some(ModeWord::MetricsOnly) => Mode::MetricsOnly,
    });
    rules.separation = match table.planes {
        None | Some(PlanesWord::Separate) => Separation::Separate,
        Some(PlanesWord::Combined) => Separation::Combined,
    };
    for limits in [&mut rules.availability, &mut rules.throttling, &mut rules.quality] {
        adjust(limits, table);
    }
    if let Some(row) = table.failures_in_a_row {
        let row = u32::try_from(row).unwrap_or(u32::MAX);
        in_a_row(&mut rules.availability, row);
        in_a_row(&mut rules.quality, row.saturating_mul(2));
    }
    for limits in [&mut rules.availability, &mut rules.combined] {
        limits.slow.least = table.slow_first_token.map_or(limits.slow.least, |least| least.0);
        limits.slow.times = table.slow_factor.unwrap_or(limits.slow.times);
    }
    let combined = &mut rules.combined;
    combined.rate = table.failure_rate.unwrap_or(combined.rate);
    combined.window = table.window.map_or(combined.window, |window| window.0);
    if let Some(rest) = table.shortest_rest {
        (combined.shortest_rest, combined.longest_rest) = (rest.0, rest.0);
    }
    rules
}

fn adjust(limits: &mut Limits, table: &BreakerTable) {
    limits.rate = table.failure_rate.unwrap_or(limits.rate);
    if let Some(least) = table.min_calls {
        limits.min_calls = u32::try_from(least).unwrap_or(u32::MAX);
        limits.probation.min_calls = limits.probation.min_calls.min(limits.min_calls);
    }
    limits.window = table.window.map_or(limits.window, |window| window.0);
    limits.shortest_rest = table.shortest_rest.map_or(limits.shortest_rest, |rest| rest.0);
    let longest = table.longest_rest.map_or(limits.longest_rest, |rest| rest.0);
    limits.longest_rest = longest.max(limits.shortest_rest);
}

/// On probation no more than usual is forgiven.
fn in_a_row(limits: &mut Limits, row: u32) {
    limits.failures = row;
    limits.probation.failures = limits.probation.failures.min(row);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::words::Length;

    #[test]
    fn a_table_without_keys_is_the_default_and_each_key_goes_where_it_belongs() {
        assert_eq!(rules(&BreakerTable::default()), Rules::DEFAULT);
        let table = BreakerTable {
            mode: Some(ModeWord::MetricsOnly),
            planes: Some(PlanesWord::Combined),
            failure_rate: Some(0.3),
            min_calls: Some(5),
            failures_in_a_row: Some(2),
            window: Some(Length::seconds(20)),
            slow_first_token: Some(Length::seconds(9)),
            slow_factor: Some(1.5),
            shortest_rest: Some(Length::seconds(400)),
            longest_rest: None,
        };
        let rules = rules(&table);
        assert_eq!(rules.separation, Separation::Combined);
        for limits in [rules.availability, rules.throttling, rules.quality, rules.combined] {
            assert_eq!(limits.mode, Mode::MetricsOnly);
            assert_eq!((limits.rate, limits.window), (0.3, Duration::from_secs(20)));
            assert_eq!(limits.shortest_rest, Duration::from_secs(400));
            assert_eq!(limits.longest_rest, limits.shortest_rest, "never below the shortest");
        }
        for limits in [rules.availability, rules.combined] {
            assert_eq!((limits.slow.least, limits.slow.times), (Duration::from_secs(9), 1.5));
        }
        let rows =
            [rules.availability, rules.throttling, rules.quality].map(|limits| limits.failures);
        assert_eq!(rows, [2, 0, 4]);
        let rows = [rules.availability, rules.quality].map(|limits| limits.probation.failures);
        assert_eq!(rows, [2, 4]);
        let least = (rules.quality.min_calls, rules.quality.probation.min_calls);
        assert_eq!((least, rules.combined.min_calls), ((5, 5), 1));
    }

    #[test]
    fn what_a_model_says_wins_over_what_holds_for_all() {
        let all =
            BreakerTable { failure_rate: Some(0.3), min_calls: Some(9), ..BreakerTable::default() };
        let own = BreakerTable { failure_rate: Some(0.4), ..BreakerTable::default() };
        let both = own.over(&all);
        assert_eq!((both.failure_rate, both.min_calls), (Some(0.4), Some(9)));
    }
}
