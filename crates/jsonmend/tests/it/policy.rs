//! What each knob of a policy accepts, and that the strictest of them accept nothing else.

use jsonmend::{
    AtCut, BareNumber, DupKeys, Kind, Limits, Mender, Nan, Outcome, Policy, Refusal, Several,
    Status,
};

fn mended(policy: Policy, raw: &str) -> String {
    let outcome = Mender::new(policy).mend(raw, Status::Unknown);
    match outcome.document() {
        Some(document) => document.root(raw).unwrap().to_value().to_string(),
        None => outcome.name().to_owned(),
    }
}

#[test]
fn allowing_a_fence_alone_mends_nothing_else() {
    let policy = Policy::strict().allowing(&[Kind::Fence]);
    for (raw, result) in [
        ("{\"a\": 1}", "{\"a\":1}"),
        ("```json\n{\"a\": 1}\n```", "{\"a\":1}"),
        ("```\n[1]\n```", "[1]"),
        ("Here: {\"a\": 1}", "rejected"),
        ("Here:\n```json\n{\"a\": 1}\n```", "rejected"),
        ("```json\n{\"a\": 1,}\n```", "rejected"),
        ("{'a': 1}", "rejected"),
        ("{\"a\": 1", "rejected"),
        ("{\"a\": 1, \"a\": 2}", "ambiguous"),
    ] {
        assert_eq!(mended(policy, raw), result, "{raw}");
    }
    let outcome = Mender::new(policy).mend("{'a': 1}", Status::Unknown);
    assert!(matches!(outcome, Outcome::Rejected(Refusal::NotAllowed(Kind::SingleQuotes))));
}

#[test]
fn a_key_given_twice_is_decided_by_its_knob() {
    let standard = Policy::standard();
    let other = "{\"a\": 1, \"b\": 0, \"a\": {\"x\": [2]}}";
    for (knob, result) in [
        (DupKeys::SameOnly, "ambiguous"),
        (DupKeys::Reject, "ambiguous"),
        (DupKeys::First, "{\"a\":1,\"b\":0}"),
        (DupKeys::Last, "{\"b\":0,\"a\":{\"x\":[2]}}"),
    ] {
        assert_eq!(mended(Policy { dup_keys: knob, ..standard }, other), result, "{knob:?}");
    }
    let same = "{\"a\": [1, {\"x\": 2}], \"b\": 0, \"a\": [1, {\"x\": 2}]}";
    assert_eq!(mended(standard, same), "{\"a\":[1,{\"x\":2}],\"b\":0}");
    assert_eq!(mended(Policy { dup_keys: DupKeys::Reject, ..standard }, same), "ambiguous");
    let thrice = "{'a': 1, 'a': 1, c: {\"d\": 1, \"d\": 1}, \"a\": 1,}";
    assert_eq!(mended(standard, thrice), "{\"a\":1,\"c\":{\"d\":1}}");
}

#[test]
fn what_json_cannot_say_is_decided_by_its_knob() {
    let raw = "{\"a\": NaN, \"b\": -Infinity}";
    for (nan, result) in [
        (Nan::Reject, "ambiguous"),
        (Nan::Null, "{\"a\":null,\"b\":null}"),
        (Nan::Text, "{\"a\":\"NaN\",\"b\":\"-Infinity\"}"),
    ] {
        assert_eq!(mended(Policy { nan, ..Policy::standard() }, raw), result, "{nan:?}");
    }
    let raw = "{\"zip\": 02139, \"part\": 1/3}";
    for (bare_number, result) in [
        (BareNumber::Reject, "ambiguous"),
        (BareNumber::Text, "{\"zip\":\"02139\",\"part\":\"1/3\"}"),
    ] {
        let policy = Policy { bare_number, ..Policy::standard() };
        assert_eq!(mended(policy, raw), result, "{bare_number:?}");
    }
}

#[test]
fn several_documents_are_decided_by_their_knob() {
    let raw = "{\"a\": 1}\n{\"a\": 2, \"b\": 3}\n{'a': 3}\n";
    for (several, result) in [
        (Several::Only, "ambiguous"),
        (Several::First, "{\"a\":1}"),
        (Several::Last, "{\"a\":3}"),
        (Several::Largest, "{\"a\":2,\"b\":3}"),
        (Several::Array, "[{\"a\":1},{\"a\":2,\"b\":3},{\"a\":3}]"),
    ] {
        assert_eq!(mended(Policy { several, ..Policy::standard() }, raw), result, "{several:?}");
    }
}

#[test]
fn what_stands_at_the_cut_is_decided_by_its_knob() {
    let number = "{\"a\": 1, \"b\": 12";
    let text = "{\"a\": 1, \"b\": \"x";
    let standard = Policy::standard();
    assert_eq!(mended(standard, number), "{\"a\":1}");
    assert_eq!(mended(standard, text), "{\"a\":1,\"b\":\"x\"}");
    let keep = Policy { cut_number: AtCut::Keep, ..standard };
    assert_eq!(mended(keep, number), "{\"a\":1,\"b\":12}");
    let drop = Policy { cut_string: AtCut::Drop, ..standard };
    assert_eq!(mended(drop, text), "{\"a\":1}");
    assert_eq!(mended(Policy::strict(), text), "rejected");
}

#[test]
fn a_cut_is_not_damage() {
    let mender = Mender::new(Policy::standard());
    let cut = "{\"a\": [1, 2 ";
    for (status, name) in
        [(Status::Unknown, "partial"), (Status::Cut, "partial"), (Status::Stopped, "mended")]
    {
        assert_eq!(mender.mend(cut, status).name(), name, "{status:?}");
    }
    // A number at the very end may lack digits.
    assert_eq!(mender.mend(cut.trim_end(), Status::Stopped).name(), "ambiguous");
    // An open string after a normal end: nobody knows what is missing.
    assert_eq!(mender.mend("{\"a\": \"x, y", Status::Stopped).name(), "rejected");
    // A closer that could have stood in two places.
    let two = "{\"a\": {\"b\": 1, \"c\": 2}";
    assert_eq!(mender.mend(two, Status::Stopped).name(), "ambiguous");
}

#[test]
fn limits_are_refusals() {
    let limits = Limits { depth: 3, input: 100, candidates: 2, edits: 4 };
    let mender = Mender::new(Policy { limits, ..Policy::standard() });
    let refusal = |raw: &str| match mender.mend(raw, Status::Unknown) {
        Outcome::Rejected(refusal) => refusal.name(),
        other => other.name(),
    };
    assert_eq!(refusal("[[[[]]]]"), "too_deep");
    assert_eq!(refusal("[[[[],]]]"), "too_deep");
    assert_eq!(refusal(&" ".repeat(101)), "too_large");
    assert_eq!(refusal("[a, b, c]"), "too_many_edits");
    assert_eq!(refusal("{x} {y} {z} {\"a\": 1}"), "mended");
    assert_eq!(refusal("[1] {\"a\": 1} {\"b\": 2}"), "too_many_candidates");
    assert_eq!(refusal(" \n"), "empty");
}

#[test]
fn an_edit_names_kind_place_path_and_both_texts() {
    let raw = "{\n  \"é\": [1, True],\n  \"b/c\": {'d': 2}\n}";
    let outcome = Mender::new(Policy::strict()).mend(raw, Status::Stopped);
    let edits = outcome.document().unwrap().edits(raw);
    let first = edits.first().unwrap();
    assert_eq!((first.kind, first.line, first.column), (Kind::PythonLiteral, 2, 12));
    assert_eq!((first.path.as_str(), first.before.as_str()), ("/é/1", "True"));
    assert_eq!((first.after.as_str(), first.span.clone()), ("true", 14..18));
    let second = edits.get(1).unwrap();
    assert_eq!(
        (second.kind, second.line, second.path.as_str()),
        (Kind::SingleQuotes, 3, "/b~1c/d")
    );
    assert_eq!(edits.len(), 3);
}
