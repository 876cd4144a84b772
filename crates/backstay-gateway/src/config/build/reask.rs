//! What bounds a route's re-asks, and how they are worded.

use std::path::Path;
use std::sync::Arc;

use backstay::policy::{Money, ReaskPolicy, Target};

use super::Loading;
use crate::config::file::RouteTable;
use crate::config::read_at_most;
use crate::config::words::TemplateText;

/// The largest template file that is read, in bytes; the engine takes far smaller ones.
const MAX_FILE: u64 = 1 << 20;

impl Loading<'_> {
    /// The bounds and the wording of the route `name`.
    pub(super) fn reask(
        &mut self,
        name: &str,
        table: &RouteTable,
        tiers: &[Vec<Arc<Target>>],
    ) -> ReaskPolicy {
        let path = ["routes", name, "reask_tokens"];
        self.in_range(&path, table.reask_tokens.unwrap_or(1), 1..=u64::MAX);
        let written = table.reask_template.as_ref();
        let policy = ReaskPolicy {
            tokens: table.reask_tokens,
            cost: table.reask_cost.and_then(|units| self.reask_cost(name, units, tiers)),
            template: written.and_then(|written| self.template(name, written)),
        };
        self.lint_idle(name, table);
        policy
    }

    /// A bound on money needs to know what things cost.
    fn reask_cost(&mut self, name: &str, units: f64, tiers: &[Vec<Arc<Target>>]) -> Option<Money> {
        let path = ["routes", name, "reask_cost"];
        let cost = self.money(&path, units, "what all re-asks of a call may cost")?;
        let unpriced = tiers.iter().flatten().find(|target| target.prices.is_none());
        if let Some(target) = unpriced {
            let message = format!("`reask_cost` is set, and `{}` has no price", target.id);
            let help = "add `input_price` and `output_price` to the model; it is not re-asked else";
            self.doubt(&path, "no-price", message, help);
        }
        Some(cost)
    }

    /// The source of the template, if it can be used.
    fn template(&mut self, name: &str, written: &TemplateText) -> Option<Arc<str>> {
        let path = ["routes", name, "reask_template"];
        let (source, shown) = match written {
            TemplateText::Inline(table) => (table.inline.clone(), "this".to_owned()),
            TemplateText::Path(file) => {
                let shown = format!("`{file}`");
                match read_text(&self.folder.join(Path::new(file))) {
                    Ok(source) => (source, shown),
                    Err(why) => {
                        let message = format!("{shown} cannot be used as a template: {why}");
                        let help = "the path is relative to the config file; for text in place \
                                    write `{ inline = \"…\" }`";
                        self.wrong(&path, "bad-template", message, help);
                        return None;
                    }
                }
            }
        };
        if let Err(why) = (self.outside.checks.template)(&source) {
            let message = format!("{shown} cannot be used as a template: {why}");
            self.wrong(&path, "bad-template", message, "");
            return None;
        }
        Some(Arc::from(source))
    }

    /// Notes bounds and wordings of re-asks that are never made.
    fn lint_idle(&mut self, name: &str, table: &RouteTable) {
        if table.reasks > 0 {
            return;
        }
        for key in ["reask_tokens", "reask_cost", "reask_template"] {
            if self.tree.has(&["routes", name, key]) {
                let message = format!("`{key}` is set, and `reasks` is 0");
                let help = "take it out, or allow re-asks";
                self.doubt(&["routes", name, key], "idle-key", message, help);
            }
        }
    }
}

/// The text of a file, or why there is none.
fn read_text(path: &Path) -> Result<String, String> {
    let bytes = read_at_most(path, MAX_FILE).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".into())
}
