//! `[breaker]` and `[models.NAME.breaker]`.

use std::time::Duration;

use backstay_decide::breaker::{Canary, Limits, MAX_CANARIES, Mode, Probation, Rules, Separation};

use super::Loading;
use crate::config::breaker_words::{BreakerTable, ModeWord, PlanesWord};
use crate::config::file::{File, ModelTable};
use crate::config::return_words::{CanaryTable, ProbationTable};
use crate::config::words::Length;

/// The narrowest window: a twelfth of it is what is counted by.
const LEAST_WINDOW: Duration = Duration::from_secs(1);

impl Loading<'_> {
    /// Notes what is out of range in the table at `path`; what it does not say is as in `base`.
    pub(super) fn breaker_ranges(
        &mut self,
        path: &[&str],
        table: &BreakerTable,
        base: &BreakerTable,
    ) {
        let at = |key| [path, &[key]].concat();
        self.failure_rate(&at("failure_rate"), table.failure_rate);
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
        self.rests(path, table, &table.over(base));
        self.canary_ranges(&at("canary"), &table.canary);
        self.probation_ranges(&at("probation"), &table.probation);
    }

    /// Notes rests of the table at `path` that do not fit each other; `whole` has those it leaves out.
    fn rests(&mut self, path: &[&str], table: &BreakerTable, whole: &BreakerTable) {
        // Left out everywhere, the longest is never below the shortest.
        let Some(longest) = whole.longest_rest else { return };
        let usual = Length(Limits::AVAILABILITY.shortest_rest);
        let shortest = whole.shortest_rest.unwrap_or(usual);
        let key = match (table.longest_rest, table.shortest_rest) {
            (Some(_), _) => "longest_rest",
            (None, Some(_)) => "shortest_rest",
            (None, None) => return,
        };
        if longest.0 < shortest.0 {
            let message =
                format!("`longest_rest` ({longest}) is shorter than `shortest_rest` ({shortest})");
            self.wrong(&[path, &[key]].concat(), "out-of-range", message, "");
        }
    }

    /// Notes keys that mean nothing to combined breakers. What holds for all models may still be meant
    /// for one that has its breakers apart.
    pub(super) fn lint_combined(&mut self, file: &File) {
        let of = |model: &ModelTable| model.breaker.over(&file.breaker);
        let (combined, apart): (Vec<_>, Vec<_>) =
            file.models.iter().partition(|(_, model)| of(model).is_combined());
        if file.breaker.is_combined() && apart.is_empty() {
            self.idle_if_combined(&["breaker"]);
        }
        for (name, _) in combined {
            self.idle_if_combined(&["models", name, "breaker"]);
        }
    }

    fn idle_if_combined(&mut self, path: &[&str]) {
        for key in ["min_calls", "failures_in_a_row", "longest_rest", "canary", "probation"] {
            let path = [path, &[key]].concat();
            if self.tree.has(&path) {
                let message = format!("`{key}` means nothing with `planes = \"combined\"`");
                self.doubt(&path, "idle-key", message, "take it out");
            }
        }
    }

    fn canary_ranges(&mut self, path: &[&str], table: &CanaryTable) {
        let at = |key| [path, &[key]].concat();
        self.some_part(&at("share"), table.share, "0.05 is one call in 20");
        self.in_range(&at("at_once"), table.at_once.unwrap_or(1), 1..=MAX_CANARIES as u64);
        self.in_range(&at("passes"), table.passes.unwrap_or(1), 1..=1000);
    }

    fn probation_ranges(&mut self, path: &[&str], table: &ProbationTable) {
        let at = |key| [path, &[key]].concat();
        self.failure_rate(&at("failure_rate"), table.failure_rate);
        self.in_range(&at("min_calls"), table.min_calls.unwrap_or(1), 1..=1000);
        self.in_range(&at("failures_in_a_row"), table.failures_in_a_row.unwrap_or(0), 0..=1000);
        self.some_part(&at("share"), table.share, "0.25 is a quarter");
    }

    fn failure_rate(&mut self, path: &[&str], rate: Option<f64>) {
        let Some(rate) = rate.filter(|rate| !(*rate > 0.0 && *rate < 1.0)) else { return };
        let message = format!("`failure_rate` is {rate}; above 0 and below 1 is allowed");
        self.wrong(path, "out-of-range", message, "0.15 is 15 %");
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
        let row = whole(row);
        in_a_row(&mut rules.availability, row);
        in_a_row(&mut rules.quality, row.saturating_mul(2));
    }
    for limits in [&mut rules.availability, &mut rules.combined] {
        limits.slow.least = table.slow_first_token.map_or(limits.slow.least, |least| least.0);
        limits.slow.times = table.slow_factor.unwrap_or(limits.slow.times);
    }
    if let Some(row) = table.probation.failures_in_a_row {
        let row = whole(row);
        rules.availability.probation.failures = row;
        rules.quality.probation.failures = row.saturating_mul(2);
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
    if let Some(rate) = table.failure_rate {
        (limits.rate, limits.probation.rate) = (rate, rate);
    }
    if let Some(least) = table.min_calls {
        limits.min_calls = whole(least);
        limits.probation.min_calls = limits.probation.min_calls.min(limits.min_calls);
    }
    limits.window = table.window.map_or(limits.window, |window| window.0);
    limits.shortest_rest = table.shortest_rest.map_or(limits.shortest_rest, |rest| rest.0);
    let longest = table.longest_rest.map_or(limits.longest_rest, |rest| rest.0);
    limits.longest_rest = longest.max(limits.shortest_rest);
    limits.canary = canary(&table.canary, limits.canary);
    limits.probation = probation(&table.probation, limits.probation);
}

fn canary(table: &CanaryTable, usual: Canary) -> Canary {
    Canary {
        share: table.share.unwrap_or(usual.share),
        every: table.every.map_or(usual.every, |every| every.0),
        at_once: table.at_once.map_or(usual.at_once, whole),
        passes: table.passes.map_or(usual.passes, whole),
        patience: table.patience.map_or(usual.patience, |patience| patience.0),
        short: table.short_tokens.unwrap_or(usual.short),
    }
}

/// All but the failures in a row, which are not the same for every plane.
fn probation(table: &ProbationTable, usual: Probation) -> Probation {
    Probation {
        lasts: table.lasts.map_or(usual.lasts, |lasts| lasts.0),
        rate: table.failure_rate.unwrap_or(usual.rate),
        min_calls: table.min_calls.map_or(usual.min_calls, whole),
        share: table.share.unwrap_or(usual.share),
        step: table.step.map_or(usual.step, |step| step.0),
        ..usual
    }
}

/// A number whose range was checked.
fn whole(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// On probation no more than usual is forgiven.
fn in_a_row(limits: &mut Limits, row: u32) {
    limits.failures = row;
    limits.probation.failures = limits.probation.failures.min(row);
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ..BreakerTable::default()
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
    fn how_a_target_comes_back_is_set_for_each_plane_and_never_for_combined() {
        let length = |seconds| Some(Length::seconds(seconds));
        let table = BreakerTable {
            failure_rate: Some(0.3),
            canary: CanaryTable {
                share: Some(0.5),
                every: length(2),
                at_once: Some(7),
                passes: Some(2),
                patience: length(9),
                short_tokens: Some(64),
            },
            probation: ProbationTable {
                lasts: length(40),
                failure_rate: None,
                min_calls: Some(4),
                failures_in_a_row: Some(6),
                share: Some(0.1),
                step: length(5),
            },
            ..BreakerTable::default()
        };
        let [five, six, forty] = [5, 6, 40].map(Duration::from_secs);
        let probation = |failures| Probation {
            lasts: forty,
            rate: 0.3,
            min_calls: 4,
            failures,
            share: 0.1,
            step: five,
        };
        let rules = rules(&table);
        for (limits, failures) in
            [(rules.availability, 6), (rules.throttling, 0), (rules.quality, 12)]
        {
            let Canary { share, every, at_once, passes, patience, short } = limits.canary;
            assert_eq!((share, at_once, passes, short), (0.5, 7, 2, 64));
            assert_eq!((every, patience), (Duration::from_secs(2), six + Duration::from_secs(3)));
            assert_eq!(limits.probation, probation(failures));
        }
        assert_eq!(rules.combined.canary, Limits::COMBINED.canary);
        assert_eq!(rules.combined.probation, Limits::COMBINED.probation);
        let own = BreakerTable {
            probation: ProbationTable { failure_rate: Some(0.2), ..ProbationTable::default() },
            canary: CanaryTable { passes: Some(1), ..CanaryTable::default() },
            ..BreakerTable::default()
        };
        let both = own.over(&table);
        assert_eq!((both.canary.passes, both.canary.at_once), (Some(1), Some(7)));
        assert!((super::rules(&both).availability.probation.rate - 0.2).abs() < f64::EPSILON);
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
