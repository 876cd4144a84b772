//! What `[keys.NAME]` may use and spend.

use backstay::admit::spend::Allowance;
use backstay::contract::Reach;

use super::{Loading, Section};
use crate::config::file::{File, KeyTable};
use crate::config::words::Tier;

impl Loading<'_> {
    /// What a key opens.
    pub(super) fn reach(&mut self, name: &str, table: &KeyTable, file: &File) -> Reach {
        let path = ["keys", name, "routes"];
        for route in table.routes.iter().flatten() {
            if !file.routes.contains_key(route) {
                self.unknown(&path, Section::Routes, route, &file.routes);
            }
        }
        if table.routes.as_ref().is_some_and(Vec::is_empty) {
            let message = "`routes` is empty, so the key opens nothing".into();
            self.wrong(&path, "out-of-range", message, "name a route, or leave the key out");
        }
        let limited = table.spend_per_day.is_some() || table.tokens_per_day.is_some();
        if table.direct == Some(true) && (limited || table.routes.is_some()) {
            let message = "`direct` opens what neither `routes` nor a limit a day holds for".into();
            let help = "leave out `direct`, or `routes` and the limits";
            self.wrong(&["keys", name, "direct"], "not-allowed", message, help);
        }
        match &table.routes {
            Some(routes) => Reach::These(routes.clone()),
            None if table.direct.unwrap_or(!limited) => Reach::Everything,
            None => Reach::Routes,
        }
    }

    /// What a key may spend in a day.
    pub(super) fn allowance(&mut self, name: &str, table: &KeyTable, file: &File) -> Allowance {
        let path = ["keys", name, "spend_per_day"];
        let money = table.spend_per_day.and_then(|units| self.money(&path, units, ""));
        if money.is_some() {
            self.lint_prices(name, table, file);
        }
        Allowance { money, tokens: table.tokens_per_day }
    }

    /// A limit on money needs to know what everything costs that the key can reach.
    fn lint_prices(&mut self, name: &str, table: &KeyTable, file: &File) {
        let is_open = |route: &str| {
            table.routes.as_ref().is_none_or(|routes| routes.iter().any(|open| open == route))
        };
        let routes = file.routes.iter().filter(|(route, _)| is_open(route));
        let tiers = routes.flat_map(|(_, route)| route.tiers.iter().flatten());
        let is_free = |model: &&String| {
            file.models
                .get(*model)
                .is_some_and(|table| table.input_price.is_none() && table.output_price.is_none())
        };
        if let Some(model) = tiers.flat_map(Tier::names).find(is_free) {
            let message = format!("`spend_per_day` is set, and `{model}` has no prices");
            let help = format!(
                "set `input_price` and `output_price` of [models.{model}], 0 for what is free, or \
                 bound `tokens_per_day`"
            );
            self.wrong(&["keys", name, "spend_per_day"], "no-price", message, &help);
        }
    }
}
