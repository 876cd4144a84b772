//! Types are read from the tape as `serde_json` reads them from the text.

use jsonmend::{Mender, Policy, Status};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::generate::{compact, json};

#[derive(Debug, PartialEq, Deserialize)]
struct Ticket<'a> {
    id: u128,
    title: &'a str,
    #[serde(default)]
    tags: Vec<String>,
    state: State,
    score: Option<f64>,
    place: (i8, char),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Open,
    Waiting { on: String },
    Closed(u8),
    Split(u8, bool),
}

#[test]
fn a_mended_reply_is_read_as_a_type_with_all_its_digits() {
    let raw = "{'id': 123456789012345678901234567890, title: \"Printer\", \"tags\": [\"a\\n\",], \
               \"state\": {\"waiting\": {\"on\": \"parts\"}}, \"score\": None, \"place\": [-1, \"x\"]}";
    let outcome = Mender::new(Policy::standard()).mend(raw, Status::Stopped);
    let document = outcome.document().unwrap();
    let ticket: Ticket<'_> = document.root(raw).unwrap().read().unwrap();
    assert_eq!(ticket.id, 123_456_789_012_345_678_901_234_567_890);
    assert_eq!((ticket.title, ticket.tags), ("Printer", vec!["a\n".to_owned()]));
    assert_eq!(ticket.state, State::Waiting { on: "parts".to_owned() });
    assert_eq!((ticket.score, ticket.place), (None, (-1, 'x')));
}

#[test]
fn all_kinds_of_variants_are_read_and_what_does_not_fit_is_an_error() {
    let read = |raw: &str| {
        let outcome = Mender::new(Policy::strict()).mend(raw, Status::Stopped);
        let document = outcome.document().unwrap();
        document.root(raw).unwrap().read::<Vec<State>>()
    };
    let all = read("[\"open\", {\"closed\": 3}, {\"split\": [1, true]}]").unwrap();
    assert_eq!(all, [State::Open, State::Closed(3), State::Split(1, true)]);
    for wrong in ["[\"shut\"]", "[{\"closed\": 300}]", "[{\"closed\": 1.5}]", "[1]", "[{}]", "{}"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn any_value_is_the_one_serde_json_reads(tree in json()) {
        let raw = compact(&tree);
        let outcome = Mender::new(Policy::strict()).mend(&raw, Status::Stopped);
        let root = outcome.document().unwrap().root(&raw).unwrap();
        prop_assert_eq!(root.read::<Value>().unwrap(), tree);
    }
}
