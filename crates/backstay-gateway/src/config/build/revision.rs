//! A route's revision: a digest of everything in it that can change an answer.

use backstay::policy::{AfterRelease, Route, Structured, Target};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Bytes of the digest that are kept: enough that two revisions of one route never meet.
const KEPT: usize = 6;

/// The revision of `route`, as 12 hex digits. Limits of time, attempts and size are not in it, nor
/// is the last resort: they change whether an answer comes, not which.
pub(super) fn revision(route: &Route) -> String {
    let tiers: Vec<Vec<Value>> =
        route.tiers.iter().map(|tier| tier.iter().map(|target| asked(target)).collect()).collect();
    let rules: Vec<Value> = route
        .rules
        .iter()
        .map(|rule| json!([rule.name, rule.check, rule.message, rule.input]))
        .collect();
    // The schema keeps the order of its keys: some models write their answer in that order.
    let mut whole = json!({
        "tiers": tiers,
        "schema": route.schema.as_deref(),
        "rules": rules,
        "mending": format!("{:?}", route.mending),
        "prompt_version": route.prompt_version,
        "cap": [route.max_output_tokens, route.max_output_tokens_ceiling],
        "stop": route.stop,
        "reask": route.reask.template.as_deref(),
    });
    // A continuation is another answer than any of its models gives alone.
    if route.after_release == AfterRelease::Continue {
        whole["after_release"] = json!("continue");
    }
    let digest = Sha256::digest(whole.to_string().as_bytes());
    let start = digest.iter().take(KEPT).fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    format!("{start:012x}")
}

/// What makes a target answer as it does.
fn asked(target: &Target) -> Value {
    let structured = match target.structured {
        Structured::JsonSchema => "json_schema",
        Structured::JsonObject => "json_object",
        Structured::Nothing => "none",
    };
    let provider = &target.provider;
    let subset = target.subset().name();
    let base_url = provider.base_url.to_string();
    json!([provider.dialect.name(), base_url, target.model, structured, subset])
}
