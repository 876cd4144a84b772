//! `backstay drill`: the drills that come with it, its exit codes, and another gateway.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn drill(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut backstay = Command::new(env!("CARGO_BIN_EXE_backstay"));
    backstay.arg("drill").args(arguments).current_dir(root).output().unwrap()
}

/// The card of a drill played with short waits.
fn card(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = drill(&[arguments, &["--fast", "--format", "json"]].concat());
    let card = serde_json::from_slice(&output.stdout);
    let card = card.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), card)
}

/// `row: case: verdict, what is broken` for every case that does not hold.
fn not_held(card: &Value) -> Vec<(String, String)> {
    let rows = card["rows"].as_array().unwrap();
    let cases = rows.iter().flat_map(|row| {
        let cases = row["cases"].as_array().unwrap().iter();
        cases.map(move |case| (row["name"].as_str().unwrap(), case))
    });
    cases
        .filter(|(_, case)| case["held"] == false)
        .map(|(row, case)| {
            let calls = &case["calls"][0]["outcome"];
            let told = format!("{row}: {} {calls} {}", case["verdict"], case["broken"]);
            (case["name"].as_str().unwrap().to_owned(), told)
        })
        .collect()
}

fn written(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("backstay-drill-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_sixteen_faults_are_all_rescued_when_buffered_and_none_is_false_by_default() {
    let (code, card) = card(&["drills/public16.toml"]);
    assert_eq!(not_held(&card), []);
    assert_eq!(code, Some(0));
    let totals = |row: usize| card["rows"][row]["totals"].clone();
    assert_eq!(totals(0)["fail"], 0);
    assert_eq!((&totals(1)["pass"], &totals(1)["partial"]), (&16.into(), &0.into()));
}

#[test]
fn structural_faults_are_rescued_or_typed() {
    let (code, card) = card(&["drills/structural.toml"]);
    assert_eq!(not_held(&card), []);
    assert_eq!(code, Some(0));
}

#[test]
fn the_same_holds_for_an_anthropic_caller_of_anthropic_providers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drills");
    for name in ["public16.toml", "structural.toml"] {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        let other = "dialect = \"anthropic\"";
        let text = ["stream = true", "name = \"primary\"", "name = \"fallback\""]
            .iter()
            .fold(text, |text, line| {
                text.replace(&format!("\n{line}\n"), &format!("\n{line}\n{other}\n"))
            });
        let file = written(&format!("other-{name}"), &text);
        let (_, card) = card(&[file.to_str().unwrap(), "--row", "buffered"]);
        assert_eq!(not_held(&card), [], "{name}");
    }
}

const SMALL: &str = r#"
title = "small"
[ask]
deadline = "2s"
answer = "yes"
[[fleet]]
name = "only"
[[row]]
name = "defaults"
allow = ["pass"]
[[case]]
name = "fine"
[[case]]
name = "not fine"
play = { only = "status-400" }
"#;

#[test]
fn the_exit_code_says_whether_all_holds_something_does_not_or_nothing_ran() {
    let file = written("codes.toml", SMALL);
    let file = file.to_str().unwrap();
    let broken = written("broken.toml", &SMALL.replace("status-400", "status-40"));
    for (arguments, code, words) in [
        (&[file, "--case", "fine", "--case", "not"][..], 1, "safe     not fine"),
        (&[file, "--case", "no such"], 2, "no case has that in its name"),
        (&[file, "--row", "other"], 2, "no row has that name"),
        (&["no such file"], 2, "no such file"),
        (&[file, "--against", "127.0.0.1:1"], 2, "does not begin with http:// or https://"),
        (&[broken.to_str().unwrap()], 2, "no behaviour is called `status-40`"),
    ] {
        let output = drill(arguments);
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
    let all_hold = written("holds.toml", &SMALL.replace("status-400", "healthy"));
    assert_eq!(drill(&[all_hold.to_str().unwrap()]).status.code(), Some(0));
}

#[test]
fn a_gateway_that_is_not_there_is_no_result() {
    let file = written("against.toml", SMALL);
    let nowhere = ["--against", "http://127.0.0.1:1/v1", "--wait", "0", "--listen", "127.0.0.1:0"];
    let output = drill(&[&[file.to_str().unwrap()], &nowhere[..]].concat());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("model `drill` of the gateway must lead, in this order, to"), "{told}");
    assert!(told.contains("did not answer a healthy call: no status"), "{told}");
}

/// One case, of which everything but the cost can be told from the reply.
const PAID: &str = r#"
title = "paid"
[ask]
deadline = "2s"
answer = "yes"
[[fleet]]
name = "first"
model = { input_price = 2, output_price = 8 }
[[fleet]]
name = "second"
dialect = "anthropic"
model = { input_price = 3, output_price = 15 }
[[row]]
name = "defaults"
allow = ["pass"]
[[case]]
name = "paid"
play = { first = "context-exceeded", second = "healthy+prompt_tokens=1000+completion_tokens=100" }
[case.expect]
attempts = { first = [1, 1], second = [1, 1] }
answered_by = "second"
usage = [1000, 100]
cost = 0.0045
"#;

#[test]
fn usage_model_and_cost_of_an_answer_are_those_of_who_gave_it() {
    let file = written("paid.toml", PAID);
    let (code, right) = card(&[file.to_str().unwrap()]);
    assert_eq!((code, not_held(&right)), (Some(0), vec![]));
    let wrong = PAID.replace("cost = 0.0045", "cost = 0.0065").replace("[1000, 100]", "[1000, 99]");
    let file = written("wrongly-paid.toml", &wrong);
    let (code, card) = card(&[file.to_str().unwrap()]);
    let told = not_held(&card);
    assert_eq!((code, told.len()), (Some(1), 1));
    for words in ["the cost is Some(0.0045), not 0.0065", "the usage told is"] {
        assert!(told[0].1.contains(words), "{told:?}");
    }
}
