//! Runs the shared cases and prints, per class, how many come out right, defensible, silently
//! wrong or refused.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::schema::Schema;
use jsonmend::{Mender, Outcome, Policy, Status};
use serde_json::Value;

fn shared(path: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    if root.exists() {
        return Some(root);
    }
    assert!(std::env::var("BACKSTAY_REQUIRE").as_deref() != Ok("all"), "no ../shared/{path}");
    println!("skipped: no ../shared/{path}");
    None
}

fn lines(path: &str) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(shared(path)?).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    cases: usize,
    right: usize,
    defensible: usize,
    wrong: usize,
    refused: usize,
    ambiguous: usize,
    ambiguous_refused: usize,
}

/// What the case set wants.
struct Wanted {
    value: Option<Value>,
    also: Vec<Value>,
    /// A partial result does not count as an answer.
    whole_only: bool,
}

fn count(count: &mut Count, wanted: &Wanted, outcome: &Outcome, raw: &str) -> &'static str {
    count.cases += 1;
    let value = outcome.document().map(|document| document.root(raw).unwrap().to_value());
    let value =
        if wanted.whole_only && matches!(outcome, Outcome::Partial(_)) { None } else { value };
    count.ambiguous += usize::from(wanted.value.is_none());
    match (&wanted.value, value) {
        (None, None) => {
            count.right += 1;
            count.ambiguous_refused += 1;
            "right"
        }
        (Some(wanted), Some(value)) if same(wanted, &value) => {
            count.right += 1;
            "right"
        }
        (_, Some(value)) if wanted.also.iter().any(|other| same(other, &value)) => {
            count.defensible += 1;
            "defensible"
        }
        (_, Some(_)) => {
            count.wrong += 1;
            "WRONG"
        }
        (Some(_), None) => {
            count.refused += 1;
            "refused"
        }
    }
}

/// Numbers by value: `2` and `2.0` are one.
fn same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => one == two || one.as_f64() == two.as_f64(),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one.iter().all(|(key, value)| two.get(key).is_some_and(|two| same(value, two)))
        }
        _ => one == two,
    }
}

fn show(title: &str, counts: &BTreeMap<String, Count>) -> Count {
    println!("\n{title}");
    println!(
        "{:<22} {:>5} {:>6} {:>11} {:>6} {:>8}",
        "class", "cases", "right", "defensible", "wrong", "refused"
    );
    let mut all = Count::default();
    for (class, count) in counts {
        println!(
            "{class:<22} {:>5} {:>6} {:>11} {:>6} {:>8}",
            count.cases, count.right, count.defensible, count.wrong, count.refused
        );
        all.cases += count.cases;
        all.right += count.right;
        all.defensible += count.defensible;
        all.wrong += count.wrong;
        all.refused += count.refused;
        all.ambiguous += count.ambiguous;
        all.ambiguous_refused += count.ambiguous_refused;
    }
    println!(
        "{:<22} {:>5} {:>6} {:>11} {:>6} {:>8}   ambiguous refused {}/{}",
        "all",
        all.cases,
        all.right,
        all.defensible,
        all.wrong,
        all.refused,
        all.ambiguous_refused,
        all.ambiguous
    );
    all
}

fn run(policy: Policy, with_schema: bool, verbose: bool) -> Option<Count> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for case in lines("cases/json_corpus.jsonl")? {
        if case["schema"].is_null() == with_schema || !case["policy"].is_null() {
            continue;
        }
        let raw = case["input"].as_str().unwrap();
        if with_schema && serde_json::from_str::<Value>(raw).is_ok() {
            // Strict JSON is for the check against the schema, which is not this crate's.
            continue;
        }
        let value = (case["expect"] != "reject").then(|| case["expected"].clone());
        let also = case["also_ok"].as_array().unwrap().clone();
        let wanted = Wanted { value, also, whole_only: false };
        let outcome = mend(&case, raw, policy, Status::Unknown);
        let class = case["class"].as_str().unwrap().to_owned();
        let verdict = count(counts.entry(class).or_default(), &wanted, &outcome, raw);
        if verbose && verdict != "right" {
            report(&case, verdict, &outcome, raw);
        }
    }
    let title = format!("corpus, schema {with_schema}, worst {}", policy.worst.name());
    Some(show(&title, &counts))
}

fn mend(case: &Value, raw: &str, policy: Policy, status: Status) -> Outcome {
    if case["schema"].is_null() {
        return Mender::new(policy).mend(raw, status);
    }
    let schema = Schema::new(&case["schema"]);
    Mender::guided(policy, &schema).mend(raw, status)
}

fn report(case: &Value, verdict: &str, outcome: &Outcome, raw: &str) {
    let value = outcome.document().map(|document| document.root(raw).unwrap().to_value());
    let shown: String = raw.chars().take(90).collect();
    let kinds: Vec<_> = outcome.document().map(|d| d.kinds().collect()).unwrap_or_default();
    println!(
        "  {verdict} {}: {shown:?} -> {} {:?} {kinds:?}",
        case["id"],
        outcome.name(),
        value.map(|v| v.to_string())
    );
    match outcome {
        Outcome::Rejected(refusal) => println!("      {refusal}"),
        Outcome::Ambiguous(ambiguity) => {
            println!("      {:?}", ambiguity.reason);
            for reading in &ambiguity.readings {
                println!("      or {}", reading.root(raw).unwrap().to_value());
            }
        }
        _ => {}
    }
}

#[test]
fn the_corpus_is_answered_without_a_silent_error() {
    let Some(all) = run(Policy::standard(), false, true) else { return };
    assert_eq!(all.wrong, 0, "silently wrong or invented");
    assert!(all.right * 100 >= all.cases * 94, "{} of {} right", all.right, all.cases);
    assert!(all.ambiguous_refused * 100 >= all.ambiguous * 94);
}

#[test]
fn strict_refuses_all_that_is_ambiguous() {
    let Some(all) = run(Policy::strict(), false, false) else { return };
    assert_eq!(all.wrong, 0);
    assert_eq!(all.ambiguous_refused, all.ambiguous);
}

#[test]
fn a_schema_decides_between_readings_without_a_silent_error() {
    let Some(all) = run(Policy::standard(), true, true) else { return };
    assert_eq!(all.wrong, 0);
}

#[test]
fn the_bug_reports_are_answered_without_a_silent_error() {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let Some(cases) = lines("cases/bug_reports.jsonl") else { return };
    let areas = ["json_repair", "json_extraction", "repair_robustness", "tool_args_coercion"];
    for case in cases {
        let area = case["area"].as_str().unwrap().to_owned();
        let Some(raw) = case["input"].as_str() else { continue };
        if !areas.contains(&area.as_str()) || case["input_kind"] != "json_text" {
            continue;
        }
        let is_strict =
            serde_json::from_str::<Value>(raw).is_ok_and(|value| value != case["expected"]);
        if (is_strict && !case["schema"].is_null()) || raw.trim().is_empty() {
            // Coercion and blank arguments are for the check against the schema.
            continue;
        }
        let value = (case["expected"] != "reject").then(|| case["expected"].clone());
        let also = case["accept_also"].as_array().cloned().unwrap_or_default();
        let status = match case["finish_reason"].as_str() {
            Some("length") => Status::Cut,
            _ => Status::Unknown,
        };
        let outcome = mend(&case, raw, Policy::standard(), status);
        if let (Outcome::Partial(document), false) = (&outcome, case["expected_partial"].is_null())
        {
            let value = document.root(raw).unwrap().to_value();
            assert!(same(&value, &case["expected_partial"]), "partial of {}: {value}", case["id"]);
        }
        if case["must_not_change"] == true {
            assert!(matches!(outcome, Outcome::Valid(_)), "{}", case["id"]);
        }
        let wanted = Wanted { value, also, whole_only: true };
        let key = format!("{area}{}", if case["schema"].is_null() { "" } else { " (schema)" });
        let verdict = count(counts.entry(key).or_default(), &wanted, &outcome, raw);
        if verdict != "right" {
            report(&case, verdict, &outcome, raw);
        }
    }
    let all = show("bug reports", &counts);
    assert_eq!(all.wrong, 0, "silently wrong or invented");
}
