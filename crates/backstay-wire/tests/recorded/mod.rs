//! The recorded streams of `../shared/cassettes`, for the tests that cut them.

#[path = "../../../../tests/shared.rs"]
mod shared;

use serde_json::Value;

/// Id and body of every recorded stream of an API that `wanted` names, sorted. `None`: there are no
/// recordings here.
pub(crate) fn streams(wanted: impl Fn(&str) -> bool) -> Option<Vec<(String, String)>> {
    let mut bodies = Vec::new();
    for file in std::fs::read_dir(shared::shared("cassettes")?).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let response = &row["response"];
            if response["body_kind"] == "sse"
                && let Some(body) = response["body"].as_str()
                && wanted(row["api"].as_str().unwrap_or_default())
            {
                bodies.push((row["id"].to_string(), body.to_owned()));
            }
        }
    }
    bodies.sort_unstable();
    Some(bodies)
}
