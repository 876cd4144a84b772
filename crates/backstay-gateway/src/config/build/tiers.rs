//! `tiers` of a route: the targets behind the names, in their order.

use std::collections::BTreeSet;
use std::sync::Arc;

use backstay::policy::Target;

use super::{Loading, Named, Section};
use crate::config::file::{File, RouteTable};
use crate::config::words::Tier;

/// The tiers of one route on their way.
struct Building<'a> {
    route: &'a str,
    file: &'a File,
    targets: &'a Named<Target>,
    /// The names so far.
    seen: BTreeSet<&'a str>,
}

impl Loading<'_> {
    /// The targets behind `tiers`. `None`: something is wrong with it, and noted.
    pub(super) fn tiers(
        &mut self,
        route: &str,
        table: &RouteTable,
        file: &File,
        targets: &Named<Target>,
    ) -> Option<Vec<Vec<Arc<Target>>>> {
        let path = ["routes", route, "tiers"];
        let Some(written) = &table.tiers else {
            self.missing(&path, "tiers = [\"MODEL\"]");
            return None;
        };
        if written.is_empty() {
            self.wrong(&path, "empty-tier", "`tiers` is empty".into(), "name at least one model");
            return None;
        }
        let mut building = Building { route, file, targets, seen: BTreeSet::new() };
        let tiers = written.iter().enumerate();
        // Every one is looked at, also behind one that is wrong.
        let tiers: Vec<_> = tiers.map(|(at, tier)| self.tier(&mut building, at, tier)).collect();
        tiers.into_iter().collect()
    }

    /// The targets of one tier.
    fn tier<'a>(
        &mut self,
        building: &mut Building<'a>,
        at: usize,
        tier: &'a Tier,
    ) -> Option<Vec<Arc<Target>>> {
        let at = at.to_string();
        let path = ["routes", building.route, "tiers", &at];
        let names = tier.names();
        if names.is_empty() {
            self.wrong(&path, "empty-tier", "this tier is empty".into(), "take it out");
            return None;
        }
        let each = names.iter().enumerate().map(|(index, name)| {
            let index = index.to_string();
            match tier {
                Tier::One(_) => self.tier_target(building, &path, name),
                Tier::Any(_) => {
                    let [routes, route, tiers, at] = path;
                    self.tier_target(building, &[routes, route, tiers, at, &index], name)
                }
            }
        });
        let targets: Vec<_> = each.collect();
        targets.into_iter().collect()
    }

    /// The target of a name in `tiers`, which stands at `path`.
    fn tier_target<'a>(
        &mut self,
        building: &mut Building<'a>,
        path: &[&str],
        name: &'a str,
    ) -> Option<Arc<Target>> {
        if !building.seen.insert(name) {
            let message = format!("`{name}` stands in `tiers` twice");
            self.doubt(path, "same-model", message, "name each model once");
        }
        let Some(target) = building.targets.get(name) else {
            if !self.tree.has(&["models", name]) {
                self.unknown(path, Section::Models, name, &building.file.models);
            }
            return None;
        };
        if target.model.is_none() && !building.route.contains('*') {
            let route = building.route;
            let message = format!("`{name}` will be asked for a model `{route}`");
            let help = "`model = \"*\"` sends on the name the caller gave: the route's";
            self.doubt(path, "route-as-model", message, help);
        }
        Some(Arc::clone(target))
    }
}
