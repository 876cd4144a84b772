//! A stream is the same reply in pieces: same outcome, and what was committed stays.

use jsonmend::{Edit, Mender, Node, Outcome, Policy, Status, Stream, ValueKind};
use proptest::prelude::*;
use serde_json::Value;

use crate::damage::is_part_of;
use crate::generate::{broken, broken_under_a_schema, compact, json, soup};
use crate::schema::Schema;

/// Everything that can be told of an outcome.
fn told(outcome: &Outcome, raw: &str) -> (String, Option<Value>, Vec<Edit>) {
    let value = outcome.document().map(|document| document.root(raw).unwrap().to_value());
    let edits = outcome.document().map(|document| document.edits(raw)).unwrap_or_default();
    let reason = match outcome {
        Outcome::Rejected(refusal) => refusal.to_string(),
        Outcome::Ambiguous(ambiguity) => format!("{:?}", ambiguity.reason),
        _ => String::new(),
    };
    (outcome.name().to_owned() + &reason, value, edits)
}

fn pieces_equal_the_whole(raw: &str, size: usize) {
    for status in [Status::Unknown, Status::Stopped, Status::Cut] {
        let mender = Mender::new(Policy::standard());
        let whole = mender.mend(raw, status);
        let mut stream = Stream::new(mender);
        for piece in raw.as_bytes().chunks(size.max(1)) {
            stream.feed(piece);
            stream.snapshot();
        }
        let finished = stream.finish(status);
        assert_eq!(finished.text, raw);
        assert_eq!(told(&finished.outcome, raw), told(&whole, raw), "{size} {raw}");
    }
}

/// The committed values of a snapshot, each with its path.
fn committed(stream: &Stream<'_>) -> Vec<(String, String)> {
    let snapshot = stream.snapshot();
    let mut open: Vec<(String, Node<'_>)> =
        snapshot.root().into_iter().map(|root| (String::new(), root)).collect();
    let mut found = Vec::new();
    while let Some((path, node)) = open.pop() {
        match node.kind() {
            ValueKind::Array => {
                let items = node.items().enumerate();
                open.extend(items.map(|(index, item)| (format!("{path}/{index}"), item)));
            }
            ValueKind::Object => open.extend(node.members().map(|(key, value)| {
                (format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), value)
            })),
            _ if snapshot.is_committed(node) => found.push((path, node.to_value().to_string())),
            _ => {}
        }
    }
    found
}

fn what_is_committed_stays(raw: &str, mender: Mender<'_>) {
    for status in [Status::Unknown, Status::Stopped, Status::Cut] {
        let mut stream = Stream::new(mender);
        let mut all: Vec<(String, String)> = Vec::new();
        for byte in raw.as_bytes() {
            stream.feed(&[*byte]);
            all.extend(committed(&stream));
        }
        let finished = stream.finish(status);
        let Some(document) = finished.outcome.document() else { continue };
        let whole = mender.mend(raw, status);
        assert_eq!(told(&finished.outcome, raw), told(&whole, raw), "{raw}");
        let root = document.root(raw).unwrap();
        for (path, value) in all {
            let now = root.pointer(&path).map(|node| node.to_value().to_string());
            assert_eq!(now.as_deref(), Some(value.as_str()), "{path} of {raw}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_split_of_damaged_json_equals_one_shot(raw in broken(), size in 1..9_usize) {
        pieces_equal_the_whole(&raw, size);
    }

    #[test]
    fn any_split_of_any_soup_equals_one_shot(raw in soup(), size in 1..9_usize) {
        pieces_equal_the_whole(&raw, size);
    }

    #[test]
    fn any_split_of_valid_json_equals_one_shot(tree in json(), size in 1..9_usize) {
        pieces_equal_the_whole(&compact(&tree), size);
    }

    #[test]
    fn committed_values_never_change(raw in broken(), tree in json(), other in soup()) {
        what_is_committed_stays(&raw, Mender::new(Policy::standard()));
        what_is_committed_stays(&compact(&tree), Mender::new(Policy::standard()));
        what_is_committed_stays(&other, Mender::new(Policy::standard()));
    }

    #[test]
    fn a_schema_takes_nothing_back_that_was_committed((raw, schema) in broken_under_a_schema()) {
        let schema = Schema::new(&schema);
        what_is_committed_stays(&raw, Mender::guided(Policy::standard(), &schema));
    }
}

#[test]
fn a_snapshot_shows_what_has_arrived_with_closers_put_behind_it() {
    let mut stream = Stream::new(Mender::new(Policy::standard()));
    stream.feed("{\"title\": \"Prin".as_bytes());
    let root = stream.snapshot().root().unwrap();
    assert_eq!(root.to_value().to_string(), "{\"title\":\"Prin\"}");
    stream.feed("ter\", \"tags\": [\"a\", \"b\", \"c".as_bytes());
    let snapshot = stream.snapshot();
    let root = snapshot.root().unwrap();
    assert_eq!(root.to_value().to_string(), "{\"title\":\"Printer\",\"tags\":[\"a\",\"b\",\"c\"]}");
    assert!(snapshot.is_committed(root.get("title").unwrap()));
    assert!(!snapshot.is_committed(root.pointer("/tags/1").unwrap()));
}

#[test]
fn a_damaged_stream_still_has_snapshots() {
    let mut stream = Stream::new(Mender::new(Policy::standard()));
    stream.feed("Sure:\n```json\n{'title': 'Printer',\n".as_bytes());
    stream.feed(
        " 'notes': 'a long text that goes on and on, so that there is something', \n".as_bytes(),
    );
    let root = stream.snapshot().root().unwrap();
    assert_eq!(root.get("title").unwrap().string().unwrap(), "Printer");
}

/// Replies with one kind of damage from beginning to end.
pub(crate) fn damaged_replies(records: usize) -> Vec<(&'static str, String)> {
    let items: Vec<Value> = (0..records)
        .map(|number| {
            serde_json::json!({
                "id": number,
                "title": format!("Ticket {number}: the printer does not answer"),
                "tags": ["urgent", "hardware"],
                "notes": "First line\nsecond with a \"quote\" in it, and no more.",
                "open": true,
            })
        })
        .collect();
    let pretty = serde_json::to_string_pretty(&items).unwrap();
    let python = pretty.replace("\\\"", "\u{1}").replace('"', "'").replace('\u{1}', "\"");
    vec![
        ("fence", format!("Here:\n```json\n{pretty}\n```\n")),
        ("trailing commas", pretty.replace("\n  }", ",\n  }")),
        ("python", python.replace("true", "True")),
        ("missing commas", pretty.replace("\",\n", "\"\n")),
        ("inner quotes", pretty.replace("\\\"", "\"")),
        ("raw newlines", pretty.replace("\\n", "\n")),
        ("comments", pretty.replace("\"open\"", "// is it?\n    \"open\"")),
    ]
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(leaves).sum(),
        Value::Object(members) => members.values().map(leaves).sum(),
        _ => 1,
    }
}

#[test]
fn a_damaged_stream_shows_all_but_its_last_bytes_and_nothing_else() {
    for (name, raw) in damaged_replies(12) {
        let whole = Mender::new(Policy::standard()).mend(&raw, Status::Stopped);
        let whole = whole.document().unwrap().root(&raw).unwrap().to_value();
        let mut stream = Stream::new(Mender::new(Policy::standard()));
        let mut shown = 0;
        for piece in raw.as_bytes().chunks(4) {
            stream.feed(piece);
            let Some(root) = stream.snapshot().root() else { continue };
            let value = root.to_value();
            assert!(is_part_of(&value, &whole), "{name}: {value}\n{whole}");
            // Where the damage begins, the last values are taken back to be read again.
            assert!(leaves(&value) + 6 >= shown, "{name}: less than before");
            shown = shown.max(leaves(&value));
        }
        // The last record has six values.
        assert!(shown + 6 >= leaves(&whole), "{name}: {shown} of {}", leaves(&whole));
    }
}

#[test]
fn a_long_text_in_a_damaged_stream_is_shown_while_it_grows() {
    let mut stream = Stream::new(Mender::new(Policy::standard()));
    stream.feed("{'title': 'Printer', 'notes': '".as_bytes());
    for number in 1..=50 {
        stream.feed("it does not print é ".as_bytes());
        let root = stream.snapshot().root();
        let length = root.and_then(|root| root.get("notes")).map_or(0, |notes| {
            let text = notes.string().unwrap();
            assert!("it does not print é ".repeat(number).starts_with(&*text));
            text.len()
        });
        assert!(length + 90 >= 21 * number, "{length} of {number}");
    }
}

#[test]
fn what_was_committed_before_the_damage_stays_committed() {
    let mut stream = Stream::new(Mender::new(Policy::standard()));
    stream.feed("{\"a\": [1, 2, 3, 4], \"b\": 5, \"c\": 'x', 'd': 6".as_bytes());
    let snapshot = stream.snapshot();
    let root = snapshot.root().unwrap();
    assert!(snapshot.is_committed(root.pointer("/a/1").unwrap()));
    assert!(root.pointer("/c").is_none_or(|c| !snapshot.is_committed(c)));
}

#[test]
fn a_character_cut_in_two_is_joined_and_half_of_one_at_the_end_is_refused() {
    let raw = "{\"a\": \"é😀\"}";
    pieces_equal_the_whole(raw, 1);
    let mut stream = Stream::new(Mender::new(Policy::standard()));
    stream.feed(&raw.as_bytes()[..8]);
    assert_eq!(stream.finish(Status::Cut).outcome.name(), "rejected");
}
