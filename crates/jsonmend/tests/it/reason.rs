//! What an ambiguous or rejected reply says of the place and the reason.

use jsonmend::{Ambiguity, Doubtful, Mender, Outcome, Policy, Refusal, Status};

fn mend(raw: &str) -> Outcome {
    Mender::new(Policy::standard()).mend(raw, Status::Stopped)
}

fn ambiguity(raw: &str) -> Ambiguity {
    match mend(raw) {
        Outcome::Ambiguous(ambiguity) => ambiguity,
        other => panic!("{raw} is {}", other.name()),
    }
}

fn readings(raw: &str, ambiguity: &Ambiguity) -> Vec<String> {
    let readings = ambiguity.readings.iter();
    readings.map(|reading| reading.root(raw).unwrap().to_value().to_string()).collect()
}

#[test]
fn a_key_with_two_values_is_two_readings_at_its_place() {
    let raw = r#"{"x": {"a": 1, "b": 0, "a": 2}}"#;
    let doubt = ambiguity(raw);
    assert_eq!(doubt.reason, Doubtful::DuplicateKey);
    assert_eq!(readings(raw, &doubt), [r#"{"x":{"a":1,"b":0}}"#, r#"{"x":{"b":0,"a":2}}"#]);
    assert_eq!(doubt.more, 0);
    let spot = doubt.spot.unwrap();
    assert_eq!((spot.line, spot.path.as_str()), (1, "/x/a"));
    assert!(raw[spot.span].starts_with("\"a\": 2"));
}

#[test]
fn of_a_key_with_many_values_two_are_shown_and_the_others_counted() {
    let raw = format!("{{{}\"a\": 0}}", "\"a\": 1, \"a\": 2, ".repeat(50));
    let doubt = ambiguity(&raw);
    assert_eq!(readings(&raw, &doubt), [r#"{"a":1}"#, r#"{"a":0}"#]);
    assert_eq!(doubt.more, 50);
}

#[test]
fn a_doubtful_value_is_shown_with_its_other_reading_and_place() {
    let raw = "{\"ok\": true,\n \"a\": nul}";
    let doubt = ambiguity(raw);
    assert_eq!(readings(raw, &doubt), [r#"{"ok":true,"a":"nul"}"#, r#"{"ok":true,"a":null}"#]);
    let spot = doubt.spot.unwrap();
    assert_eq!((spot.line, spot.column, spot.path.as_str()), (2, 7, "/a"));

    let colon = r#"{"a": "x": "y"}"#;
    let doubt = ambiguity(colon);
    assert_eq!(doubt.spot.unwrap().path, "/a");
}

#[test]
fn a_value_that_json_has_not_is_one_reading_with_its_place() {
    for (raw, path, column) in
        [("{\"a\": 0x1F}", "/a", 7), ("{\"a\": [1, NaN]}", "/a/1", 11), ("{\"a\": 12", "/a", 7)]
    {
        let doubt = ambiguity(raw);
        assert_eq!(doubt.readings.len(), 1, "{raw}");
        assert_eq!(doubt.reason, Doubtful::Value);
        let spot = doubt.spot.unwrap();
        assert_eq!((spot.path.as_str(), spot.column), (path, column), "{raw}");
    }
}

#[test]
fn a_rejected_reply_says_where_and_why() {
    for (raw, words) in [
        (
            "{\"a\":1,000}",
            "line 1, column 8: after the value 1 and a comma a key was expected, found 000",
        ),
        ("{\"a\": }", "line 1, column 7: after a key and its colon a value was expected, found }"),
        (
            "[1,\n <x>]",
            "line 2, column 2: after the value 1 and a comma a value was expected, found <x>",
        ),
        (
            "{\"a\": \"x, y",
            "line 1, column 12: in the string that begins with \"x, y its closing quote was \
             expected, found the end of the text",
        ),
        ("{\"a\" x: 1}", "line 1, column 6: after the key \"a\" a colon was expected, found x"),
        ("I cannot.", "line 1, column 1: a JSON document was expected, found I"),
        (
            "{\"a\": 1,",
            "line 1, column 9: after the value 1 and a comma a key was expected, found the end of the text",
        ),
    ] {
        let Outcome::Rejected(refusal) = mend(raw) else { panic!("{raw} is {}", mend(raw).name()) };
        assert_eq!(refusal.name(), "no_document");
        assert_eq!(refusal.to_string(), format!("no JSON document can be read: {words}"), "{raw}");
        let Refusal::NoDocument(halt) = refusal else { panic!("{raw}") };
        assert!(halt.offset <= raw.len());
    }
}
