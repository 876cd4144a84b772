//! `[models.NAME]`.

use std::sync::Arc;

use backstay::policy::{
    CredentialSource, Pinning, Prefill, Price, Prices, Provider, Target, Tariff,
};
use backstay_wire::Dialect;
use jiff::civil::Date;

use super::{Loading, Named, Section};
use crate::config::file::{File, ModelTable};
use crate::config::words::{PrefillWord, SubsetWord};

/// How long before a model's retirement a warning begins, in days.
const NOTICE_DAYS: i64 = 60;

/// What a provider is asked for.
enum ModelName {
    /// Its own name of a model.
    This(String),
    /// The name the caller gave.
    Callers,
}

impl Loading<'_> {
    /// One target. `None`: something is wrong, and noted.
    pub(super) fn target(
        &mut self,
        name: &str,
        table: &ModelTable,
        file: &File,
        providers: &Named<Provider>,
    ) -> Option<Target> {
        self.plain_name("models", name);
        for (key, count) in [
            ("context_tokens", table.context_tokens),
            ("max_output_tokens", table.max_output_tokens),
        ] {
            self.in_range(&["models", name, key], count.unwrap_or(1), 1..=u64::MAX);
        }
        self.breaker_ranges(&["models", name, "breaker"], &table.breaker, &file.breaker);
        let model = self.model_name(name, table);
        self.lint_retirement(name, table);
        let provider = self.provider_of(name, table, file, providers)?;
        let model = match model? {
            ModelName::This(name) => Some(name),
            ModelName::Callers => None,
        };
        let pinning = pinning(table.pinned, model.as_deref(), provider);
        self.lint_alias(name, model.as_deref(), pinning);
        Some(Target {
            id: name.into(),
            provider: provider.clone(),
            model,
            pinning,
            retires: table.retires.map(|day| day.0),
            context_tokens: table.context_tokens,
            max_output_tokens: table.max_output_tokens,
            prices: self.prices(name, table),
            structured: table.structured.structured(),
            subset: table.schema_subset.map(SubsetWord::subset),
            streams: table.streams,
            prefill: self.prefill(name, table, provider),
            max_request_bytes: table.max_request_bytes,
            limits: self.limits(name, table, provider, &file.retries),
            breaker: super::breaker::rules(&table.breaker.over(&file.breaker)),
        })
    }

    /// The provider it is asked of. `None`: it is wrong, and noted.
    fn provider_of<'p>(
        &mut self,
        name: &str,
        table: &ModelTable,
        file: &File,
        providers: &'p Named<Provider>,
    ) -> Option<&'p Arc<Provider>> {
        let path = ["models", name, "provider"];
        let Some(wanted) = &table.provider else {
            self.missing(&path, "provider = \"NAME\"");
            return None;
        };
        if !file.providers.contains_key(wanted) && !self.tree.has(&["providers", wanted]) {
            self.unknown(&path, Section::Providers, wanted, &file.providers);
        }
        providers.get(wanted)
    }

    /// What the provider is asked for. `None`: it is wrong, and noted.
    fn model_name(&mut self, name: &str, table: &ModelTable) -> Option<ModelName> {
        let path = ["models", name, "model"];
        let Some(model) = &table.model else {
            self.missing(&path, "model = \"…\"");
            return None;
        };
        if model == "*" {
            return Some(ModelName::Callers);
        }
        if model.is_empty() || model.contains('*') || model.chars().any(char::is_control) {
            let message = "`model` is not the name of a model".into();
            let help = "the provider's own name, or \"*\" alone for the name the caller gave";
            self.wrong(&path, "bad-name", message, help);
            return None;
        }
        Some(ModelName::This(model.clone()))
    }

    /// How it is given the beginning of its reply; a form that its dialect does not have is noted.
    fn prefill(&mut self, name: &str, table: &ModelTable, provider: &Provider) -> Option<Prefill> {
        let form = match table.prefill? {
            PrefillWord::Assistant => Prefill::Assistant,
            PrefillWord::Prefix => Prefill::Prefix,
            PrefillWord::ContinueFinalMessage => Prefill::ContinueFinalMessage,
        };
        if provider.dialect == Dialect::Anthropic && form != Prefill::Assistant {
            let message = "the Messages API has no such form".into();
            let help = "write `prefill = \"assistant\"`";
            self.wrong(&["models", name, "prefill"], "prefill-form", message, help);
        }
        Some(form)
    }

    /// What its tokens cost, where both prices are given.
    fn prices(&mut self, name: &str, table: &ModelTable) -> Option<Tariff> {
        let keys = [
            ("input_price", table.input_price),
            ("output_price", table.output_price),
            ("cached_input_price", table.cached_input_price),
            ("cache_write_price", table.cache_write_price),
        ];
        let mut found = [None; 4];
        for (slot, (key, units)) in found.iter_mut().zip(keys) {
            let path = ["models", name, key];
            let Some(units) = units else { continue };
            *slot = Price::per_million(units);
            if slot.is_none() {
                let message = format!("`{key}` is {units}; 0 to 1000000 is allowed");
                self.wrong(&path, "out-of-range", message, "what a million tokens cost");
            }
        }
        match keys.map(|(_, units)| units.is_some()) {
            [true, false, ..] => self.half_priced(name, "input_price", "output_price"),
            [false, true, ..] => self.half_priced(name, "output_price", "input_price"),
            [false, false, true, _] => self.half_priced(name, "cached_input_price", "input_price"),
            [false, false, false, true] => {
                self.half_priced(name, "cache_write_price", "input_price");
            }
            [true, true, ..] | [false, false, false, false] => {}
        }
        let [input, output, cached, cache_write] = found;
        let prices = Prices { input: input?, output: output? };
        Some(Tariff { prices, cached, cache_write })
    }

    fn half_priced(&mut self, name: &str, has: &str, lacks: &str) {
        if !self.tree.has(&["models", name, lacks]) {
            let message = format!("`{has}` is set, and `{lacks}` is not");
            let help = "set both, 0 for what is free, or neither";
            self.wrong(&["models", name, has], "half-priced", message, help);
        }
    }

    fn lint_retirement(&mut self, name: &str, table: &ModelTable) {
        let Some(day) = table.retires.map(|day| day.0) else { return };
        let path = ["models", name, "retires"];
        let left = days(self.outside.today, day);
        let help = "move its routes to the model that follows it";
        if left < 0 {
            let message = format!("`{name}` was retired on {day}");
            self.doubt(&path, "retired", message, help);
        } else if left <= NOTICE_DAYS {
            let message = format!("`{name}` is retired on {day}, days left: {left}");
            self.doubt(&path, "retires", message, help);
        }
    }

    fn lint_alias(&mut self, name: &str, model: Option<&str>, pinning: Pinning) {
        let (Pinning::Alias, Some(model)) = (pinning, model) else { return };
        let message = format!("`{model}` seems to be an alias, which can change under you");
        let help = "name a dated snapshot, or write `pinned = true` if it never changes";
        self.doubt(&["models", name, "model"], "alias", message, help);
    }
}

/// Days from `from` to `to`; negative when `to` is the earlier.
fn days(from: Date, to: Date) -> i64 {
    from.until(to).map_or(0, |span| i64::from(span.get_days()))
}

/// Whether the name always means the same weights: as the file says, else by the look of it.
fn pinning(said: Option<bool>, model: Option<&str>, provider: &Provider) -> Pinning {
    let local = matches!(provider.credentials, CredentialSource::Nobody)
        || provider.base_url.host().is_some_and(super::lint::is_loopback);
    if said.unwrap_or(local || model.is_some_and(dated)) { Pinning::Pinned } else { Pinning::Alias }
}

/// Whether a model's name has a date in it: `2026-01-15`, `20260115`, or `0613` at the end.
fn dated(model: &str) -> bool {
    let numbers: Vec<&str> = model.split(|c: char| !c.is_ascii_digit()).collect();
    let number = |text: &str, range: std::ops::RangeInclusive<u32>| {
        text.parse().is_ok_and(|n: u32| range.contains(&n))
    };
    let (year, month, day) = (2020..=2099, 1..=12, 1..=31);
    let spread = numbers.windows(3).any(|window| match window {
        [y, m, d] => {
            (y.len(), m.len(), d.len()) == (4, 2, 2)
                && number(y, year.clone())
                && number(m, month.clone())
                && number(d, day.clone())
        }
        _ => false,
    });
    let solid = numbers.iter().any(|text| {
        let parts = (text.get(..4), text.get(4..6), text.get(6..8));
        let (Some(y), Some(m), Some(d)) = parts else { return false };
        text.len() == 8
            && number(y, year.clone())
            && number(m, month.clone())
            && number(d, day.clone())
    });
    // Month and day (`gpt-4-0613`) or year and month (`mistral-large-2411`), by custom at the end.
    let short = model.rsplit('-').next().is_some_and(|end| {
        let (Some(a), Some(b)) = (end.get(..2), end.get(2..4)) else { return false };
        end.len() == 4
            && (number(a, month.clone()) && number(b, day.clone())
                || number(a, 23..=40) && number(b, month.clone()))
    });
    spread || solid || short
}

#[cfg(test)]
mod tests {
    use super::dated;

    #[test]
    fn a_date_in_a_name_is_seen_and_a_version_is_not_one() {
        for (name, expected) in [
            ("gpt-x-2026-01-15", true),
            ("claude-x-20260115", true),
            ("gpt-4-0613", true),
            ("mistral-large-2411", true),
            ("gpt-5", false),
            ("claude-sonnet-4-5", false),
            ("llama-3.1-405b", false),
            ("model-1234", false),
            ("x-2026-13-15", false),
            ("x-20261501", false),
            ("é-01", false),
            ("", false),
        ] {
            assert_eq!(dated(name), expected, "{name}");
        }
    }
}
