//! What becomes of a value that does not fit, row by row; and that nothing else ever changes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::policy::{Coercion, Encoded, Enums, Extra, FieldPath, Missing, OnFail};
use crate::validate::Edit;
use crate::validate::unfit::Extent;

mod alternatives;

fn parsed(text: &str) -> Parsed {
    Parsed::strict(text.to_owned()).unwrap_or_else(|| panic!("{text}"))
}

fn all() -> Align {
    Align {
        coerce: Coercion::ALL.to_vec(),
        enums: Enums::Fold,
        extra: Extra::Drop,
        missing: Missing::SchemaDefault,
        encoded: Encoded::Decode,
    }
}

/// The aligned text and the kinds of its edits with their paths, or the errors.
fn aligned(
    schema: &Value,
    text: &str,
    align: &Align,
) -> Result<(String, Vec<String>), Vec<String>> {
    let schema = Schema::compile(schema).unwrap();
    let fitted = fitted(parsed(text), &schema, Wants { align, fields: &[] });
    let told = |edit: &Edit| format!("{} {}", edit.kind.name(), edit.path);
    fitted
        .map(|parsed| (parsed.text, parsed.edits.iter().map(told).collect()))
        .map_err(|unfit| unfit.errors)
}

/// A schema, a text, and the text and the edit that come of it; `None`: it does not fit.
type Row<'a> = (&'a Value, &'a str, Option<(&'a str, &'a str)>);

#[test]
fn each_value_takes_the_form_its_schema_wants_to_the_letter_or_none() {
    let int = json!({"type": "integer"});
    let num = json!({"type": "number"});
    let text = json!({"type": "string"});
    let yes = json!({"type": "boolean"});
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let object = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let word = json!({"enum": ["ON_HOLD", "DONE"]});
    let rows: &[Row<'_>] = &[
        (&int, r#""2""#, Some(("2", "coerce_str_int "))),
        (
            &int,
            r#""-12345678901234567890123""#,
            Some(("-12345678901234567890123", "coerce_str_int ")),
        ),
        (&int, r#""2.5""#, None),
        (&int, r#""2.0""#, None),
        (&int, r#""02""#, None),
        (&int, r#"" 2""#, None),
        (&int, r#""two""#, None),
        (&int, "null", None),
        (&num, r#""2.50""#, Some(("2.50", "coerce_str_num "))),
        (&num, r#""1e3""#, Some(("1e3", "coerce_str_num "))),
        (&num, r#""1/3""#, None),
        (&yes, r#""true""#, Some(("true", "coerce_str_bool "))),
        (&yes, r#""True""#, None),
        (&yes, "1", None),
        (&text, "1.10", Some((r#""1.10""#, "coerce_num_str "))),
        (&text, "true", None),
        (&text, r#"["a"]"#, Some((r#""a""#, "coerce_array_scalar "))),
        (&text, r#"[ "\u00e9" ]"#, Some((r#""\u00e9""#, "coerce_array_scalar "))),
        (&text, r#"["a", "b"]"#, None),
        (&text, "[]", None),
        (&list, "4", Some(("[4]", "coerce_scalar_array "))),
        (&list, "{}", None),
        (&list, r#""[1, 2]""#, Some(("[1, 2]", "double_encoded "))),
        (&object, r#""{\"a\": 1}""#, Some((r#"{"a": 1}"#, "double_encoded "))),
        (&object, r#""{\"a\": 1""#, None),
        (&word, r#""on hold""#, Some((r#""ON_HOLD""#, "enum_fold "))),
        (&word, r#""pending_review""#, None),
    ];
    for (schema, text, expected) in rows {
        let found = aligned(schema, text, &all());
        let expected = expected.map(|(text, edit)| (text.to_owned(), vec![edit.to_owned()]));
        assert_eq!(found.as_ref().ok(), expected.as_ref(), "{schema} {text}: {found:?}");
        let strict = aligned(schema, text, &Align::default());
        assert!(strict.is_err(), "nothing is on by default: {schema} {text}");
    }
}

#[test]
fn changes_inside_each_other_are_made_together_and_the_rest_keeps_its_spelling() {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["id", "state", "tags", "n"],
        "properties": {
            "id": {"type": "integer"}, "state": {"enum": ["IN_PROGRESS"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "n": {"type": "integer", "default": 7},
            "in": {"type": "object", "additionalProperties": false,
                "properties": {"k": {"type": "integer"}}}
        }
    });
    let text = r#"{ "x": [1, {"y": 2}], "id" : ["123456789012345678901234567890"],
  "z":0, "state": "in progress", "tags": 1.50, "in": "{\"k\": \"4\", \"q\": null}" , "w": "}" }"#;
    // A list of one string that is a number would take two steps; one value takes one.
    let found = aligned(&schema, text, &all());
    assert!(found.is_err(), "{found:?}");
    let text =
        text.replace("[\"123456789012345678901234567890\"]", "\"123456789012345678901234567890\"");
    let text = text.replace("1.50", "\"1.50\"");
    let (made, edits) = aligned(&schema, &text, &all()).unwrap();
    assert_eq!(
        made,
        r#"{ "id" : 123456789012345678901234567890, "state": "IN_PROGRESS", "tags": ["1.50"], "in": {"k": 4}, "n": 7 }"#
    );
    assert_eq!(
        edits,
        [
            "extra_dropped /x",
            "coerce_str_int /id",
            "extra_dropped /z",
            "enum_fold /state",
            "coerce_scalar_array /tags",
            "coerce_json_object /in",
            "coerce_str_int /in/k",
            "extra_dropped /in/q",
            "extra_dropped /w",
            "default_applied /n",
        ]
    );
}

#[test]
fn keys_are_dropped_and_added_wherever_they_stand() {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["d"],
        "properties": {"a": {}, "b": {}, "d": {"default": {"e": [1]}}}});
    for (text, made) in [
        (r#"{"x":1}"#, r#"{"d": {"e":[1]}}"#),
        ("{}", r#"{"d": {"e":[1]}}"#),
        (r#"{"x":1,"y":2,"a":3}"#, r#"{"a":3, "d": {"e":[1]}}"#),
        (r#"{"a":3,"x":1,"y":2}"#, r#"{"a":3, "d": {"e":[1]}}"#),
        (r#"{"a":3,"x":1,"b":2,"y":"\",{"}"#, r#"{"a":3,"b":2, "d": {"e":[1]}}"#),
        (r#"{"x":1,"d":2}"#, r#"{"d":2}"#),
    ] {
        assert_eq!(aligned(&schema, text, &all()).unwrap().0, made, "{text}");
    }
}

fn field(at: &str, on_fail: OnFail, fallback: Option<Value>) -> Field {
    let at = FieldPath::parse(at).unwrap();
    Field { at, on_fail, fallback: fallback.map(std::sync::Arc::new) }
}

#[test]
fn fields_settle_what_is_wrong_with_them_at_once_or_when_the_asking_is_spent() {
    let schema = Schema::compile(&json!({
        "type": "object", "required": ["s", "n"],
        "properties": {"s": {"enum": ["a", "b"], "x-backstay-fallback": "b"},
            "n": {"type": "integer", "minimum": 1},
            "l": {"type": "array", "items": {"type": "object", "properties": {"s": {"enum": ["a"]}}}}}
    }))
    .unwrap();
    let settle = |text: &str, fields: &[Field], asking| {
        let align = Align::default();
        let unfit = fitted(parsed(text), &schema, Wants { align: &align, fields }).unwrap_err();
        settled(unfit, &schema, fields, asking).map(|parsed| {
            let kinds: Vec<&str> = parsed.edits.iter().map(|edit| edit.kind.name()).collect();
            format!("{} {}", parsed.text, kinds.join(","))
        })
    };
    let n = |on_fail, fallback: Option<Value>| vec![field("/n", on_fail, fallback)];
    let (open, spent) = (Asking::Open, Asking::Spent);
    // The schema's own annotation counts when the asking is spent.
    let wrong = r#"{"s": "x", "n": 1}"#;
    assert!(settle(wrong, &[], open).is_err());
    assert_eq!(settle(wrong, &[], spent).unwrap(), r#"{"s": "b", "n": 1} enum_fallback"#);
    // A missing key is put in; a value out of range is replaced.
    let missing = r#"{"s": "a"}"#;
    let at_once = n(OnFail::Fallback, Some(json!(5)));
    assert_eq!(settle(missing, &at_once, open).unwrap(), r#"{"s": "a", "n": 5} field_fallback"#);
    let low = r#"{"s": "a", "n": 0}"#;
    assert_eq!(settle(low, &at_once, open).unwrap(), r#"{"s": "a", "n": 5} field_fallback"#);
    // Flagged passes as it is; rejected never does, whatever is declared.
    assert_eq!(settle(low, &n(OnFail::Flag, None), open).unwrap(), r#"{"s": "a", "n": 0} flagged"#);
    let rejected = settle(low, &n(OnFail::Reject, Some(json!(5))), spent).unwrap_err();
    assert!(!rejected.is_reaskable());
    // A fallback that does not fit either is no answer.
    assert!(settle(low, &n(OnFail::Fallback, Some(json!(-1))), spent).is_err());
    // All problems or none: one without a fallback keeps the others from being taken.
    assert!(settle(r#"{"s": "x", "n": 0}"#, &[], spent).is_err());
    // Any element, by a star; a rule of the list stands for what is inside.
    let inner = r#"{"s": "a", "n": 1, "l": [{"s": "a"}, {"s": "q", "t": 1.0}]}"#;
    let star = [field("/l/*/s", OnFail::Fallback, Some(json!("a")))];
    assert_eq!(
        settle(inner, &star, open).unwrap(),
        r#"{"s": "a", "n": 1, "l": [{"s": "a"}, {"s": "a", "t": 1.0}]} enum_fallback"#
    );
    let whole = [field("/l", OnFail::Fallback, Some(json!([])))];
    assert_eq!(
        settle(inner, &whole, open).unwrap(),
        r#"{"s": "a", "n": 1, "l": []} field_fallback"#
    );
}

/// A reply of `count` words, none of them a member of an enum of `members`, and its schema.
fn unknown_words(count: usize, members: usize) -> (Schema, String) {
    let members: Vec<String> = (0..members).map(|n| format!("member_{n}")).collect();
    let schema = Schema::compile(&json!({"type": "array", "items": {"enum": members}})).unwrap();
    let words: Vec<String> = (0..count).map(|n| format!("word {n}")).collect();
    (schema, Value::from(words).to_string())
}

fn seconds(work: impl FnOnce()) -> f64 {
    let clock = crate::clock::Clock::start();
    let start = clock.now();
    work();
    clock.now().since(start).as_secs_f64()
}

#[test]
fn twenty_thousand_unknown_words_against_a_large_enum_end_soon_whatever_is_allowed() {
    let (schema, text) = unknown_words(20_000, 8_000);
    for enums in [Enums::Exact, Enums::Fold, Enums::Fallback] {
        let align = Align { enums, ..Align::default() };
        let fields = [field("/*", OnFail::Fallback, Some(json!("member_1")))];
        let took = seconds(|| {
            let wants = Wants { align: &align, fields: &fields };
            let unfit = fitted(parsed(&text), &schema, wants).unwrap_err();
            assert_eq!(unfit.extent, Extent::Cut, "nothing may be said of each");
            settled(unfit, &schema, &fields, Asking::Spent).unwrap_err();
        });
        // 3 s: a hundred times what an optimised build takes; before it was minutes.
        assert!(took < 3.0, "{enums:?} took {took} s");
    }
}

#[test]
fn a_document_that_costs_too_much_to_align_is_refused_as_that() {
    let keys: Vec<String> = (0..3_000).map(|n| format!("k{n}")).collect();
    let schema = json!({"type": "array", "items": {"type": "object", "required": keys}});
    let schema = Schema::compile(&schema).unwrap();
    let text = Value::from(vec![json!({}); 2_000]).to_string();
    let align = Align { missing: Missing::SchemaDefault, ..Align::default() };
    let unfit = fitted(parsed(&text), &schema, Wants { align: &align, fields: &[] }).unwrap_err();
    assert_eq!(unfit.errors.last().unwrap(), "too costly to align");
    assert!(unfit.errors.len() > 1 && unfit.errors.len() <= crate::validate::MAX_ERRORS);
    assert_eq!(unfit.extent, Extent::Cut);
}

/// What a route that flags, rejects or replaces makes of a reply: its edits, or its problems.
fn told(schema: &Value, text: &str, fields: &[Field]) -> Result<Vec<String>, Unfit> {
    let schema = Schema::compile(schema).unwrap();
    let align = Align::default();
    let unfit = fitted(parsed(text), &schema, Wants { align: &align, fields }).unwrap_err();
    let parsed = settled(unfit, &schema, fields, Asking::Open)?;
    Ok(parsed.edits.iter().map(|edit| format!("{} {}", edit.kind.name(), edit.path)).collect())
}

#[test]
fn a_field_that_nobody_flagged_never_passes_behind_twenty_that_somebody_did() {
    let schema = json!({"type": "object", "properties": {"o": {"anyOf": [
        {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}},
            "total": {"type": "integer"}}},
        {"type": "null"}]}}});
    let flag = |at: &str| field(at, OnFail::Flag, None);
    let tags: Vec<u32> = (0..21).collect();
    let text = json!({"o": {"tags": tags, "total": "lots"}}).to_string();
    told(&schema, &text, &[flag("/o/tags/*")]).unwrap_err();
    let edits = told(&schema, &text, &[flag("/o/tags/*"), flag("/o/total")]).unwrap();
    assert_eq!(edits.len(), 22);
    assert!(edits.contains(&"flagged /o/tags/20".to_owned()));
    assert!(edits.contains(&"flagged /o/total".to_owned()));
    // Nor behind more than are ever listed.
    let tags: Vec<u32> = (0..20_000).collect();
    let text = json!({"o": {"tags": tags, "total": 1}}).to_string();
    let unfit = told(&schema, &text, &[flag("/o/tags/*")]).unwrap_err();
    assert_eq!(unfit.extent, Extent::Cut);
    // Nor behind keys that nobody knows, nor behind a name that is cut short in its sentence.
    let closed = json!({"type": "object", "additionalProperties": false, "properties": {}});
    let keys: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("k{n}"), json!(n))).collect();
    let text = Value::from(keys).to_string();
    let flags: Vec<Field> = (0..59).map(|n| flag(&format!("/k{n}"))).collect();
    told(&closed, &text, &flags).unwrap_err();
    let long = "k".repeat(80);
    let types = json!({"additionalProperties": {"type": "string"}});
    let text = format!(r#"{{"{long}1": 1, "{long}2": 2}}"#);
    told(&types, &text, &[flag(&format!("/{long}1"))]).unwrap_err();
}

#[test]
fn a_field_that_is_rejected_is_so_behind_any_number_of_others() {
    let properties = json!({"secret": {"enum": ["s"]}, "n": {"items": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": properties});
    let fields = [field("/secret", OnFail::Reject, None), field("", OnFail::Flag, None)];
    for count in [3, 25, 4_000] {
        let text = json!({"secret": "x", "n": vec!["y"; count]}).to_string();
        let unfit = told(&schema, &text, &fields).unwrap_err();
        assert!(!unfit.is_reaskable(), "{count}");
        assert!(unfit.errors.len() <= crate::validate::MAX_ERRORS);
    }
    let edits = told(&schema, &json!({"n": vec!["y"; 25]}).to_string(), &fields).unwrap();
    assert_eq!(edits.len(), 25, "each of them is flagged");
}

#[test]
fn many_fallbacks_are_put_in_place_together() {
    let schema = json!({"type": "object", "required": ["a", "b", "c"], "properties": {
        "n": {"items": {"type": "integer"}}, "c": {"type": "object", "required": ["x", "y"]}}});
    let fallback = |at: &str| field(at, OnFail::Fallback, Some(json!(7)));
    let compiled = Schema::compile(&schema).unwrap();
    let settle = |text: &str, fields: &[Field]| {
        let align = Align::default();
        let unfit = fitted(parsed(text), &compiled, Wants { align: &align, fields }).unwrap_err();
        settled(unfit, &compiled, fields, Asking::Open).unwrap()
    };
    let fields = ["/n/*", "/a", "/b", "/c/x", "/c/y"].map(fallback);
    let made = settle(r#"{"c": {}}"#, &fields);
    assert_eq!(made.text, r#"{"c": {"x": 7, "y": 7}, "a": 7, "b": 7}"#);
    let text = json!({"a": 1, "b": 1, "c": {"x": 1, "y": 1}, "n": vec!["q"; 500]}).to_string();
    let made = settle(&text, &fields);
    assert_eq!((made.edits.len(), made.text.matches('7').count()), (500, 500));
}

#[test]
fn an_exponent_is_whole_or_not_and_never_touched() {
    let schema = json!({"type": "object", "required": ["x"],
        "properties": {"n": {"type": ["integer", "string"]}, "x": {"default": 1}}});
    let (made, edits) = aligned(&schema, r#"{"n": 1e3}"#, &all()).unwrap();
    assert_eq!((made.as_str(), edits.len()), (r#"{"n": 1e3, "x": 1}"#, 1));
}

/// Values of the kinds that a schema of the property test asks for, right and nearly right.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[0-9]{1,3}|[0-9]\\.[0-9]|on hold|DONE|true|\\PC{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-e]", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The scalars of a text, as they are written.
fn scalars(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| scalars(item, into)),
        Value::Object(members) => members.values().for_each(|member| scalars(member, into)),
        Value::String(text) => into.push(text.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) => into.push(value.to_string()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// With everything on, what comes out fits; what fitted is not touched; and no scalar is there
    /// that was not in the reply or in the schema.
    #[test]
    fn what_is_aligned_fits_and_holds_nothing_new(value in values()) {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["a"],
            "properties": {
                "a": {"type": "integer", "default": 3},
                "b": {"type": "array", "items": {"type": ["number", "boolean"]}},
                "c": {"enum": ["ON_HOLD", "DONE"]},
                "d": {"anyOf": [{"type": "string"}, {"type": "null"}]}
            }
        });
        let schema = Schema::compile(&schema).unwrap();
        let text = value.to_string();
        let before = parsed(&text);
        let align = all();
        let fits = check(&before, &schema).is_ok();
        match fitted(before, &schema, Wants { align: &align, fields: &[] }) {
            Ok(after) => {
                prop_assert!(check(&after, &schema).is_ok());
                prop_assert_eq!(after.text == text, after.edits.is_empty());
                prop_assert!(!fits || after.edits.is_empty());
                let (mut had, mut has) = (Vec::new(), Vec::new());
                scalars(&value, &mut had);
                scalars(&after.root().unwrap().to_value(), &mut has);
                let known = |scalar: &String| had.contains(scalar)
                    || ["3", "ON_HOLD", "DONE"].contains(&scalar.as_str())
                    || had.iter().any(|whole| whole.contains(scalar.as_str()));
                prop_assert!(has.iter().all(known), "{} {:?}", text, has);
                // Once more changes nothing.
                let again = fitted(parsed(&after.text), &schema, Wants { align: &align, fields: &[] });
                prop_assert!(again.unwrap().edits.is_empty());
            }
            Err(unfit) => prop_assert!(!fits && !unfit.errors.is_empty()),
        }
    }
}
