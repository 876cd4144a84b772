//! Who plays in the demo: three tiers, and what goes wrong at each.

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use backstay::policy::Route;
use backstay_gateway::config::Settings;
use backstay_mock::Mock;

use super::tickets::SCHEMA;
use crate::settings;

/// Steps scripted for each model; after the last one it stays healthy.
pub(super) const STEPS: usize = 120;

/// What the first tier does, by weight: three calls of four are good, as in a bad hour.
const MAIN: [(&str, u32); 16] = [
    ("healthy+delay=20ms", 62),
    ("fenced", 5),
    ("enum-miss", 5),
    ("wrong-type", 3),
    ("invented-quote", 3),
    ("urgent-no-review", 2),
    ("prose-around", 2),
    ("extra-key", 2),
    ("truncated-by-cap", 2),
    ("status-429+after=ms:300", 3),
    ("status-503", 3),
    ("status-500", 2),
    ("reset", 2),
    ("silence", 2),
    ("html-200", 1),
    ("refusal", 1),
];

/// What the second tier does.
const MIRROR: [(&str, u32); 4] =
    [("healthy+delay=30ms", 85), ("status-529", 5), ("fenced", 5), ("unclosed", 5)];

/// The config of the demo; addresses are filled in.
const CONFIG: &str = include_str!("demo.toml");

/// Writes the scripts: the same seed gives the same faults in the same order.
pub(super) fn script(mock: &Mock, seed: u64) {
    for (model, mix, salt) in [("main-2026-01-15", &MAIN[..], 1), ("mirror-20260115", &MIRROR, 2)] {
        let mut steps = draw(mix, seed.wrapping_mul(31).wrapping_add(salt));
        steps.push("healthy");
        mock.script(model, &steps);
    }
    mock.script("local-2026-01", &["healthy+delay=60ms"]);
}

fn draw(mix: &[(&'static str, u32)], seed: u64) -> Vec<&'static str> {
    use backstay_decide::{Dice, Seeded};
    let total: u32 = mix.iter().map(|(_, weight)| weight).sum();
    let mut dice = Seeded::new(seed);
    let mut one = || {
        let mut at = dice.unit() * f64::from(total);
        for (name, weight) in mix {
            at -= f64::from(*weight);
            if at < 0.0 {
                return *name;
            }
        }
        "healthy"
    };
    (0..STEPS).map(|_| one()).collect()
}

/// The settings: the config as a user would write it, with the mock's addresses.
pub(super) fn settings(mock: &Mock) -> anyhow::Result<Settings> {
    let text = CONFIG
        .replace("OPENAI_BASE", &mock.openai_base())
        .replace("ANTHROPIC_BASE", &mock.anthropic_base());
    let mut settings = settings::from_text(&text, Path::new(".")).map_err(|problems| {
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow!("the demo's own config is wrong:\n{}", told.join("\n"))
    })?;
    // The schema is built in; a config would name its file.
    let schema: serde_json::Value = serde_json::from_str(SCHEMA)?;
    let schema = Arc::new(schema);
    settings.policy.routes = settings
        .policy
        .routes
        .iter()
        .map(|route| {
            let mut route = Route::clone(route);
            route.schema = Some(Arc::clone(&schema));
            Arc::new(route)
        })
        .collect();
    Ok(settings)
}
