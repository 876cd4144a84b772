//! The JSON parsing suite of Nicolas Seriot: what it calls JSON stays untouched, and what it calls
//! broken is never accepted in silence.

use std::path::PathBuf;

use jsonmend::{Doubtful, Mender, Outcome, Policy, Status};
use serde_json::Value;

fn files() -> Vec<(String, Vec<u8>)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/suites/JSONTestSuite/test_parsing");
    let Ok(list) = std::fs::read_dir(&root) else {
        assert!(std::env::var("BACKSTAY_REQUIRE").as_deref() != Ok("all"), "no ../shared/suites");
        println!("skipped: no ../shared/suites");
        return Vec::new();
    };
    let mut files: Vec<(String, Vec<u8>)> = list
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn every_valid_file_is_identical_and_untouched() {
    let mut count = 0;
    for (name, bytes) in files().into_iter().filter(|(name, _)| name.starts_with("y_")) {
        let raw = std::str::from_utf8(&bytes).unwrap();
        let outcome = Mender::new(Policy::standard()).mend(raw, Status::Unknown);
        count += 1;
        match (name.as_str(), &outcome) {
            ("y_object_duplicated_key.json", Outcome::Ambiguous(ambiguity)) => {
                assert_eq!(ambiguity.reason, Doubtful::DuplicateKey);
                continue;
            }
            // The same member twice is one: the only other file that is touched.
            ("y_object_duplicated_key_and_value.json", Outcome::Mended(document)) => {
                assert_eq!(document.edit_count(), 1);
            }
            (_, Outcome::Valid(document)) => {
                assert_eq!(document.edit_count(), 0, "{name}");
                assert_eq!(document.text(raw), raw, "{name}");
            }
            _ => panic!("{name}: {outcome:?}"),
        }
        let theirs: Value = serde_json::from_str(raw).unwrap();
        let ours = outcome.document().unwrap().root(raw).unwrap().to_value();
        assert_eq!(ours, theirs, "{name}");
    }
    println!("{count} files that must be accepted");
}

#[test]
fn no_broken_file_is_accepted_without_an_edit() {
    let mut accepted = Vec::new();
    let mut count = 0;
    for (name, bytes) in files().into_iter().filter(|(name, _)| name.starts_with("n_")) {
        count += 1;
        for policy in [Policy::strict(), Policy::standard(), Policy::lenient()] {
            for status in [Status::Unknown, Status::Stopped, Status::Cut] {
                let outcome = Mender::new(policy).mend_bytes(&bytes, status);
                let Some(document) = outcome.document() else { continue };
                assert!(document.edit_count() > 0, "{name}");
                accepted.push(name.clone());
            }
        }
    }
    accepted.dedup();
    println!("{count} files that must not pass in silence; {} mended", accepted.len());
}

#[test]
fn a_file_that_may_be_either_gives_an_answer_and_no_panic() {
    for (name, bytes) in files().into_iter().filter(|(name, _)| name.starts_with("i_")) {
        let outcome = Mender::new(Policy::standard()).mend_bytes(&bytes, Status::Unknown);
        if let Outcome::Valid(document) = &outcome {
            assert_eq!(document.edit_count(), 0, "{name}");
        }
    }
}
