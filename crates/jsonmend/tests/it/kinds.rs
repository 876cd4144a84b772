//! Every kind of repair on at least five texts of its own, with what must come of each.
//!
//! `kinds.jsonl` has a line for each: the kind it is about, how the reply ended, the text, and the
//! value or `refuse`; where it matters, also a schema, and all readings of an ambiguous text. Its
//! texts are none of the shared cases.

use std::collections::BTreeMap;

use crate::schema::Schema;
use jsonmend::{Kind, Mender, Outcome, Policy, Status};
use serde_json::Value;

#[test]
fn every_kind_is_mended_or_refused_as_its_cases_say() {
    let mut wrong = Vec::new();
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for line in include_str!("kinds.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let raw = case["input"].as_str().unwrap();
        let kind = case["kind"].as_str().unwrap();
        let status = match case["status"].as_str().unwrap() {
            "stopped" => Status::Stopped,
            "cut" => Status::Cut,
            _ => Status::Unknown,
        };
        let schema = case.get("schema").map(Schema::new);
        let mender = match &schema {
            Some(schema) => Mender::guided(Policy::standard(), schema),
            None => Mender::new(Policy::standard()),
        };
        let outcome = mender.mend(raw, status);
        let readings = match &outcome {
            Outcome::Ambiguous(ambiguity) => {
                let readings = ambiguity.readings.iter();
                readings.map(|reading| reading.root(raw).unwrap().to_value()).collect()
            }
            _ => Value::Null,
        };
        if case.get("readings").is_some_and(|wanted| *wanted != readings) {
            wrong.push(format!(
                "{kind}: {raw:?}\n    gave {} with {readings}\n    not  {}",
                outcome.name(),
                case["readings"]
            ));
        }
        let value = outcome.document().map(|document| document.root(raw).unwrap().to_value());
        let wanted = Some(&case["want"]).filter(|wanted| **wanted != "refuse");
        let count = counts.entry(kind.to_owned()).or_default();
        count.0 += usize::from(wanted.is_some());
        count.1 += usize::from(wanted.is_none());
        if value.as_ref() != wanted {
            let kinds: Vec<Kind> =
                outcome.document().map(|document| document.kinds().collect()).unwrap_or_default();
            wrong.push(format!(
                "{kind}: {raw:?}\n    gave {} {} {kinds:?}\n    not  {}",
                outcome.name(),
                value.map_or_else(String::new, |value| value.to_string()),
                case["want"]
            ));
        }
    }
    for kind in Kind::ALL {
        // Only knobs of the policy make these, and the policy's tests have them.
        if ["elided_item", "dup_key", "other_candidate"].contains(&kind.name()) {
            continue;
        }
        let (values, refusals) = counts.get(kind.name()).copied().unwrap_or_default();
        assert!(values + refusals >= 5, "{kind} has {} cases", values + refusals);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
