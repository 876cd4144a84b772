//! The scanner against `serde_json`: the same bodies accepted, the same spans, edits that parse to
//! the edited value.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

#[path = "../../../tests/shared.rs"]
mod shared;

use std::collections::BTreeMap;

use backstay_wire::scan::{Edit, MAX_DEPTH, scan};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use shared::shared;

/// What `serde_json` says: the object, if it is one.
fn oracle(body: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(map)) => Some(map),
        _ => None,
    }
}

/// The scanner and the oracle agree on `body`, on its keys and on every value.
fn assert_agrees(body: &[u8]) {
    let shown = String::from_utf8_lossy(&body[..body.len().min(200)]);
    let scanned = scan(body, MAX_DEPTH);
    let want = oracle(body);
    assert_eq!(scanned.is_ok(), want.is_some(), "{shown}: {scanned:?}");
    let (Ok(scanned), Some(want)) = (scanned, want) else { return };
    let raw: BTreeMap<String, &RawValue> = serde_json::from_slice(body).unwrap();
    assert_eq!(
        scanned.keys().map(|(k, _)| k).collect::<std::collections::BTreeSet<_>>().len(),
        want.len()
    );
    for (key, value) in &want {
        let span = scanned.span(key).unwrap();
        assert_eq!(&body[span.clone()], raw[key].get().as_bytes(), "{shown}: {key}");
        assert_eq!(&serde_json::from_slice::<Value>(&body[span]).unwrap(), value);
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Eighths: `serde_json` rounds some other doubles when it reads them back.
        any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            any_object(inner).prop_map(Value::Object),
        ]
    })
}

fn any_object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof!["[a-c]", "model", "\\PC{0,4}", any::<String>()];
    prop::collection::vec((key, value), 0..6).prop_map(|pairs| pairs.into_iter().collect())
}

/// Text that is nearly JSON.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        5 => prop::sample::select(vec!["{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a\":1", " ", "\n"]).prop_map(|s| s.as_bytes().to_vec()),
        3 => prop::sample::select(vec!["0", "-", "1.5", "1e5", "1E+400", "-0", "01", "true", "false", "null", "tru", "1e-400"]).prop_map(|s| s.as_bytes().to_vec()),
        3 => prop::sample::select(vec!["\\", "\\n", "\\u", "\\u0041", "\\ud83d\\ude00", "\\ud800", "\\udc00", "\\x", "\\\""]).prop_map(|s| s.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|b| vec![b]),
        1 => any::<char>().prop_map(|c| c.to_string().into_bytes()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_judged_alike(body in prop::collection::vec(any::<u8>(), 0..64)) {
        assert_agrees(&body);
        assert_agrees(&[b"{\"k\":", &body[..], b"}"].concat());
    }

    #[test]
    fn nearly_json_is_judged_alike(body in nearly_json()) {
        assert_agrees(&body);
        assert_agrees(&[b"{\"k\":", &body[..], b"}"].concat());
        assert_agrees(&[b"{\"k\":\"", &body[..], b"\"}"].concat());
    }

    #[test]
    fn valid_objects_have_the_same_spans(map in any_object(any_value()), pretty in any::<bool>()) {
        let value = Value::Object(map);
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        assert_agrees(text.unwrap().as_bytes());
    }

    #[test]
    fn one_changed_byte_is_judged_alike(map in any_object(any_value()), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = Value::Object(map).to_string().into_bytes();
        let place = at.index(body.len());
        body[place] = byte;
        assert_agrees(&body);
    }

    #[test]
    fn an_edited_body_parses_to_the_edited_value(
        map in any_object(any_value()),
        twice in any::<bool>(),
        edits in prop::collection::vec((0..4_usize, prop::option::of(any_value())), 0..4),
    ) {
        const KEYS: [&str; 4] = ["a", "b", "model", "stream"];
        let mut body = Value::Object(map.clone()).to_string();
        let mut want = map;
        if twice && !want.is_empty() {
            // The first key again at the end, with another value: the last one counts.
            let key = want.keys().next().unwrap().clone();
            body.truncate(body.len() - 1);
            body = format!("{body},{}:\"again\"}}", Value::from(key.clone()));
            want.insert(key, Value::from("again"));
        }
        let edits: Vec<Edit> = edits
            .into_iter()
            .map(|(key, value)| match value {
                Some(value) => Edit::Set(KEYS[key], value.to_string()),
                None => Edit::Remove(KEYS[key]),
            })
            .collect();
        for edit in &edits {
            match edit {
                Edit::Set(key, json) => {
                    want.insert((*key).to_owned(), serde_json::from_str(json).unwrap());
                }
                Edit::Remove(key) => {
                    want.remove(*key);
                }
            }
        }
        let scanned = scan(body.as_bytes(), MAX_DEPTH).unwrap();
        let out = scanned.edit(body.as_bytes(), &edits);
        prop_assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), Value::Object(want));
        for edit in &edits {
            let (Edit::Set(key, _) | Edit::Remove(key)) = edit;
            let count = scan(&out, MAX_DEPTH).unwrap().keys().filter(|(k, _)| k == key).count();
            prop_assert!(count <= 1);
        }
    }
}

#[test]
fn the_json_test_suite_is_judged_alike() {
    let Some(folder) = shared("suites/JSONTestSuite/test_parsing") else { return };
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let body = std::fs::read(file.unwrap().path()).unwrap();
        assert_agrees(&body);
        assert_agrees(&[b"{\"k\":", &body[..], b"}"].concat());
        assert_agrees(&[b"{\"k\":[\"x\",", &body[..], b"],\"l\":0}"].concat());
        count += 1;
    }
    assert!(count > 300, "{count} files");
}
