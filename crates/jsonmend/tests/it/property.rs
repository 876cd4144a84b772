//! What holds for every text: the edits lead to the value, valid text is left alone, a mended text
//! is whole, and a stricter policy only refuses more.

use crate::generate::{broken, broken_under_a_schema, compact, json, soup};
use crate::schema::Schema;
use jsonmend::{Mender, Outcome, Policy, Status, apply};
use proptest::prelude::*;
use serde_json::Value;

const STATUSES: [Status; 3] = [Status::Unknown, Status::Stopped, Status::Cut];

fn value(outcome: &Outcome, raw: &str) -> Option<Value> {
    outcome.document().map(|document| document.root(raw).unwrap().to_value())
}

/// The strongest claim: replaying the edits on the raw text gives strict JSON of the same value.
fn edits_lead_to_the_value(raw: &str, mender: Mender<'_>, status: Status) {
    let outcome = mender.mend(raw, status);
    let Some(document) = outcome.document() else { return };
    let edits = document.edits(raw);
    let text = apply(&edits, raw).unwrap();
    let strict: Value = serde_json::from_str(&text).unwrap();
    let ours = document.root(raw).unwrap().to_value();
    assert_eq!(ours, strict);
    if edits.is_empty() {
        assert_eq!(text, raw);
        assert!(matches!(outcome, Outcome::Valid(_)));
    }
    for edit in &edits {
        assert_eq!(raw.get(edit.span.clone()), Some(edit.before.as_str()));
        assert!(edit.line >= 1 && edit.column >= 1);
        assert!(!edit.path.is_empty() || document.root(raw).unwrap().pointer("").is_some());
    }
    // Mending again finds nothing to mend.
    let again = mender.mend(&text, status);
    assert!(matches!(again, Outcome::Valid(_)), "{text}");
}

/// A mender under a schema, or under none.
fn mender(policy: Policy, schema: Option<&Schema>) -> Mender<'_> {
    schema.map_or(Mender::new(policy), |schema| Mender::guided(policy, schema))
}

fn policies_are_monotone(raw: &str, status: Status, schema: Option<&Schema>) {
    let strict = mender(Policy::strict(), schema).mend(raw, status);
    let standard = mender(Policy::standard(), schema).mend(raw, status);
    let lenient = mender(Policy::lenient(), schema).mend(raw, status);
    if let Some(accepted) = value(&strict, raw) {
        assert_eq!(value(&standard, raw), Some(accepted));
    }
    if let Some(accepted) = value(&standard, raw) {
        assert_eq!(value(&lenient, raw), Some(accepted));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn valid_text_is_left_alone(tree in json()) {
        for raw in [compact(&tree), serde_json::to_string_pretty(&tree).unwrap()] {
            for status in STATUSES {
                let outcome = Mender::new(Policy::strict()).mend(&raw, status);
                prop_assert!(matches!(outcome, Outcome::Valid(_)));
                prop_assert_eq!(value(&outcome, &raw), Some(tree.clone()));
            }
        }
    }

    #[test]
    fn edits_of_damaged_json_lead_to_its_value(raw in broken()) {
        for status in STATUSES {
            for policy in [Policy::strict(), Policy::standard(), Policy::lenient()] {
                edits_lead_to_the_value(&raw, Mender::new(policy), status);
            }
        }
    }

    #[test]
    fn edits_of_any_soup_of_marks_lead_to_its_value(raw in soup()) {
        for status in STATUSES {
            for policy in [Policy::standard(), Policy::lenient()] {
                edits_lead_to_the_value(&raw, Mender::new(policy), status);
            }
        }
    }

    #[test]
    fn what_strict_accepts_all_accept_alike(raw in broken(), other in soup()) {
        for status in STATUSES {
            policies_are_monotone(&raw, status, None);
            policies_are_monotone(&other, status, None);
        }
    }

    #[test]
    fn a_schema_adds_nothing_to_a_text((raw, schema) in broken_under_a_schema()) {
        let schema = Schema::new(&schema);
        for status in STATUSES {
            policies_are_monotone(&raw, status, Some(&schema));
            for policy in [Policy::strict(), Policy::standard(), Policy::lenient()] {
                edits_lead_to_the_value(&raw, mender(policy, Some(&schema)), status);
            }
        }
    }

    #[test]
    fn nothing_that_serde_refuses_passes_without_an_edit(raw in soup()) {
        let outcome = Mender::new(Policy::lenient()).mend(&raw, Status::Unknown);
        if let Outcome::Valid(_) = outcome {
            prop_assert!(serde_json::from_str::<Value>(&raw).is_ok());
        }
    }

    #[test]
    fn bytes_of_any_kind_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        Mender::new(Policy::lenient()).mend_bytes(&bytes, Status::Unknown);
    }
}
