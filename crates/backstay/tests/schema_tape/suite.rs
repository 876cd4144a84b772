//! JSON-Schema-Test-Suite, draft 2020-12: each instance as text, read by `jsonmend`, checked on its
//! tape. What schemas refer to at `http://localhost:1234` is given as documents; nothing is fetched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use backstay::validate::Schema;
use backstay::validate::schema::{Documents, Formats};
use serde_json::Value;

use crate::checked;
use crate::schema_files::{json_files, suite};

/// The required tests. The other one compares what no `f64` can tell apart, or the like.
const REQUIRED: usize = 1299;

/// How one folder went.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// The documents of the suite by the URI they are to be found at.
fn remotes(suite: &Path) -> BTreeMap<String, Value> {
    let root = suite.join("remotes");
    let mut found = BTreeMap::new();
    let mut folders =
        vec![root.join("draft2020-12"), root.join("draft2019-09"), root.join("draft7")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                found.insert(format!("http://localhost:1234/{name}"), read(&path));
            }
        }
    }
    found
}

fn run(files: &[PathBuf], documents: &Documents, formats: Formats) -> Tally {
    let mut tally = Tally::default();
    for file in files {
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        for group in read(file).as_array().unwrap() {
            let tests = group["tests"].as_array().unwrap();
            let name = format!("{stem}: {}", group["description"].as_str().unwrap());
            match Schema::compile_under(&group["schema"], documents, formats) {
                Ok(schema) => run_group(&name, &schema, tests, &mut tally),
                Err(fault) => {
                    tally.failed.extend(tests.iter().map(|_| format!("{name}: {fault}")));
                }
            }
        }
    }
    tally
}

fn run_group(name: &str, schema: &Schema, tests: &[Value], tally: &mut Tally) {
    for test in tests {
        let verdict = checked(schema, &test["data"].to_string());
        if let Err(unfit) = &verdict {
            assert!(!unfit.errors.is_empty() && !unfit.violations.is_empty(), "{name}: {unfit:?}");
        }
        if verdict.is_ok() == (test["valid"] == true) {
            tally.passed += 1;
        } else {
            tally.failed.push(format!("{name}: {}: {verdict:?}", test["description"]));
        }
    }
}

#[test]
fn the_required_tests_of_the_official_suite_pass_on_the_tape() {
    let Some(suite) = suite() else { return };
    let mut documents = Documents::new();
    for (uri, document) in remotes(&suite) {
        documents.add(&uri, document);
    }
    let folder = suite.join("tests/draft2020-12");
    let required = run(&json_files(&folder), &documents, Formats::Noted);
    println!("{} of {REQUIRED} required tests pass", required.passed);
    println!("{}", required.failed.join("\n"));
    let optional = run(&json_files(&folder.join("optional")), &documents, Formats::Noted);
    println!("optional: {} pass, {} do not", optional.passed, optional.failed.len());
    assert_eq!(required.passed + required.failed.len(), REQUIRED, "the suite has another size");
    assert!(required.passed >= REQUIRED - 1, "{:#?}", required.failed);
}

/// The formats that are checked.
const CHECKED: [&str; 10] =
    ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"];

#[test]
fn the_formats_that_providers_enforce_are_checked_and_the_others_assert_nothing() {
    let Some(suite) = suite() else { return };
    let folder = suite.join("tests/draft2020-12/optional/format");
    let files = json_files(&folder);
    let is_checked = |file: &&PathBuf| {
        file.file_stem().is_some_and(|stem| CHECKED.contains(&&*stem.to_string_lossy()))
    };
    let (checked, others): (Vec<&PathBuf>, Vec<&PathBuf>) = files.iter().partition(is_checked);
    let run = |files: Vec<&PathBuf>| {
        let files: Vec<PathBuf> = files.into_iter().cloned().collect();
        run(&files, &Documents::new(), Formats::Checked)
    };
    let (checked, others) = (run(checked), run(others));
    println!("checked: {} pass, {} do not", checked.passed, checked.failed.len());
    println!("{}", checked.failed.join("\n"));
    println!("others: {} pass, {} do not", others.passed, others.failed.len());
    assert!(checked.failed.len() * 50 <= checked.passed, "{:#?}", checked.failed);
    let strict = others.failed.iter().filter(|line| line.contains("Err("));
    assert_eq!(strict.count(), 0, "{:#?}", others.failed);
}
