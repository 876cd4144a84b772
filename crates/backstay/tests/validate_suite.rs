//! The official JSON Schema test suite, draft 2020-12, through the judge of replies.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod schema_files;

use std::path::Path;
use std::sync::Arc;

use backstay::validate::schema::{Documents, Formats};
use backstay::validate::{Asked, Checks, Schema, SchemaFault, Shape, judge};
use backstay_decide::fault::Fault;
use backstay_wire::chat::{Choice, Finish, Part};
use serde_json::Value;

use schema_files::{json_files, suite};

/// Counts of tests, not of groups.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    /// In groups whose schema refers to `http://localhost:1234`, which nothing fetches.
    remote: usize,
    failed: Vec<String>,
}

fn run(file: &Path, tally: &mut Tally) {
    let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let file = file.file_stem().unwrap().to_string_lossy();
    for group in &groups {
        let (source, tests) = (&group["schema"], group["tests"].as_array().unwrap());
        let name = format!("{file}: {}", group["description"].as_str().unwrap());
        // The suite has `format` as draft 2020-12 has it by default: it asserts nothing.
        match Schema::compile_under(source, &Documents::new(), Formats::Noted) {
            Ok(schema) => run_group(&name, schema, tests, tally),
            Err(SchemaFault::ForeignReference { .. } | SchemaFault::UnknownDraft { .. })
                if source.to_string().contains("localhost:1234") =>
            {
                tally.remote += tests.len();
            }
            Err(fault) => tally.failed.extend(tests.iter().map(|_| format!("{name}: {fault}"))),
        }
    }
}

fn run_group(name: &str, schema: Schema, tests: &[Value], tally: &mut Tally) {
    let checks = Checks {
        shape: Shape::Schema(Arc::new(schema)),
        rules: Arc::from([]),
        mending: Arc::default(),
    };
    for test in tests {
        let parts = vec![Part::Text(test["data"].to_string())];
        let choice = Choice { parts, finish: Finish::Complete, finish_word: None };
        let outcome = judge(&choice, &checks, &Asked::nothing());
        let right = match &outcome {
            Ok(checked) => test["valid"] == true && checked.value().as_ref() == Some(&test["data"]),
            Err(unfit) => {
                test["valid"] == false
                    && unfit.fault == Fault::SchemaError
                    && !unfit.errors.is_empty()
            }
        };
        if right {
            tally.passed += 1;
        } else {
            tally.failed.push(format!("{name}: {}: {outcome:?}", test["description"]));
        }
    }
}

#[test]
fn the_official_suite_passes_but_for_what_would_have_to_be_fetched() {
    let Some(suite) = suite() else { return };
    let files = json_files(&suite.join("tests/draft2020-12"));
    let mut tally = Tally::default();
    for file in &files {
        run(file, &mut tally);
    }
    let (passed, remote, failed) = (tally.passed, tally.remote, tally.failed.len());
    println!("{passed} passed, {remote} left out for a remote reference, {failed} failed");
    println!("{}", tally.failed.join("\n"));
    assert_eq!(passed + remote + failed, 1299, "the suite has another size");
    assert_eq!(failed, 0);
}
