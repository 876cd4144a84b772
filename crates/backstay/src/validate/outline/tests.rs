//! What an outline says, schema by schema.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::validate::Schema;

fn at<'o>(outline: &'o Outline, pointer: &str) -> &'o Spot {
    let places = outline.along(None, pointer);
    outline.spot(*places.last().unwrap())
}

/// Whether `"on"`, `"off"`, `null` and `1` are members of the enum there.
fn lists(outline: &Outline, pointer: &str) -> [bool; 4] {
    let listed = at(outline, pointer).listed.as_ref().unwrap();
    [json!("on"), json!("off"), json!(null), json!(1)].map(|value| listed.has(&value))
}

#[test]
fn types_members_and_enums_are_read_through_references_and_the_one_alternative_beside_null() {
    let outline = Outline::of(&json!({
        "$defs": {
            "state": {"enum": ["on", "off"], "x-backstay-fallback": "off"},
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}
        },
        "type": "object",
        "properties": {
            "s": {"$ref": "#/$defs/state"},
            "maybe": {"anyOf": [{"$ref": "#/$defs/state"}, {"type": "null"}]},
            "either": {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"x": {"type": "string"}}}]},
            "list": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
            "node": {"$ref": "#/$defs/node"}
        },
        "required": ["s"],
        "additionalProperties": false
    }));
    assert_eq!(at(&outline, "").kinds, Kinds::OBJECT);
    assert_eq!(lists(&outline, "/s"), [true, true, false, false]);
    assert_eq!(at(&outline, "/s").fallback, Some(json!("off")));
    assert_eq!(at(&outline, "/maybe").kinds, Kinds::STRING.or(Kinds::NULL));
    assert_eq!(lists(&outline, "/maybe"), [true, true, true, false]);
    assert_eq!(at(&outline, "/either").kinds, Kinds::STRING.or(Kinds::OBJECT));
    assert_eq!(at(&outline, "/either/x").kinds, Kinds::ANY, "only one alternative says so");
    assert_eq!(at(&outline, "/list/0").kinds, Kinds::STRING);
    assert_eq!(at(&outline, "/list/7").kinds, Kinds::INTEGER);
    assert_eq!(at(&outline, "/node/next/next/n").kinds, Kinds::INTEGER);
    assert_eq!(outline.member(outline.root(), "t"), Member::Forbidden);
    assert_eq!(outline.required(outline.root()), ["s"]);
}

#[test]
fn what_applies_together_is_joined() {
    let outline = Outline::of(&json!({
        "allOf": [
            {"properties": {"a": {"type": ["integer", "string"]}}, "required": ["a"]},
            {"properties": {"a": {"type": "integer"}, "b": {"const": 1}}, "required": ["b", "a"]}
        ],
        "type": "object"
    }));
    assert_eq!(at(&outline, "/a").kinds, Kinds::INTEGER);
    assert_eq!(lists(&outline, "/b"), [false, false, false, true]);
    assert_eq!(outline.required(outline.root()), ["a", "b"]);
    assert_eq!(outline.member(outline.root(), "z"), Member::Open);
}

#[test]
fn schemas_that_turn_in_circles_or_fan_out_have_an_outline_all_the_same() {
    let circle = json!({"$ref": "#", "allOf": [{"$ref": "#"}, {"$ref": "#"}]});
    assert_eq!(at(&Outline::of(&circle), "").kinds, Kinds::ANY);
    let twice = json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}},
        "$ref": "#/$defs/a"});
    assert_eq!(at(&Outline::of(&twice), "").kinds, Kinds::ANY);
    assert_eq!(at(&Outline::of(&json!(false)), "").kinds, Kinds::NONE);
    assert_eq!(at(&Outline::of(&json!({"$ref": "#/nowhere"})), "/x/0").kinds, Kinds::ANY);
}

const DRAFTS: [&str; 6] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema#",
    "",
];

/// `schema` under a draft of [`DRAFTS`].
fn under(draft: usize, mut schema: Value) -> Value {
    if !DRAFTS[draft].is_empty() {
        schema["$schema"] = Value::from(DRAFTS[draft]);
    }
    schema
}

#[test]
fn what_stands_beside_a_reference_counts_since_2019_09_only() {
    for (draft, uri) in DRAFTS.iter().enumerate() {
        let outline = Outline::of(&under(
            draft,
            json!({"definitions": {"s": {"type": "string"}},
                "properties": {"s": {"$ref": "#/definitions/s", "enum": ["AB"], "default": "AB"}}}),
        ));
        let counts = !(2..=4).contains(&draft);
        assert_eq!(at(&outline, "/s").listed.is_some(), counts, "{uri}");
        assert_eq!(at(&outline, "/s").kinds, Kinds::STRING);
        assert_eq!(at(&outline, "/s").default, Some(json!("AB")));
    }
}

#[test]
fn keywords_that_a_draft_does_not_have_say_nothing() {
    let outline = |draft| {
        Outline::of(&under(
            draft,
            json!({"properties": {
        "c": {"const": 1}, "l": {"prefixItems": [{"type": "string"}]}}}),
        ))
    };
    let says = |draft| {
        let outline = outline(draft);
        (at(&outline, "/c").listed.is_some(), at(&outline, "/l/0").kinds == Kinds::STRING)
    };
    let found: Vec<_> = (0..DRAFTS.len()).map(says).collect();
    let (both, only_const, none) = ((true, true), (true, false), (false, false));
    assert_eq!(found, [both, only_const, only_const, only_const, none, both]);
}

#[test]
fn a_part_with_an_id_or_a_draft_of_its_own_is_not_read_by_the_rules_of_the_whole() {
    let inner = json!({"$id": "https://example.com/inner", "$ref": "#/$defs/s",
        "$defs": {"s": {"type": "integer"}}});
    let outline = Outline::of(&json!({"$defs": {"s": {"type": "string"}},
        "properties": {"a": inner}}));
    assert_eq!(at(&outline, "/a").kinds, Kinds::ANY, "an integer, in truth");
    let inner = json!({"$schema": DRAFTS[2], "$ref": "#/x", "type": "string"});
    let outline = Outline::of(&json!({"x": true, "properties": {"a": inner}}));
    assert_eq!(at(&outline, "/a").kinds, Kinds::ANY);
    let strange = json!({"$schema": "https://example.com/meta", "type": "string"});
    assert_eq!(at(&Outline::of(&strange), "").kinds, Kinds::ANY);
}

#[test]
fn numbers_are_compared_by_what_they_come_to() {
    let outline = Outline::of(&json!({"allOf": [{"enum": [1, 2]}, {"enum": [1.0, 3]}]}));
    assert!(at(&outline, "").listed.as_ref().unwrap().has(&json!(1)));
    let schema = Schema::compile(&json!({"type": "integer"})).unwrap();
    for number in ["1e3", "10e-1", "1.0"] {
        let document = crate::validate::Parsed::strict(number.to_owned()).unwrap();
        assert!(schema.check_node(document.root().unwrap()).is_ok(), "{number}");
        assert!(Kinds::INTEGER.meets(Kinds::of(document.root().unwrap())), "{number}");
    }
}

#[test]
fn an_enum_that_many_places_refer_to_is_kept_once() {
    let words: Vec<String> = (0..20_000).map(|n| format!("w{n}")).collect();
    let reference = json!({"anyOf": [{"$ref": "#/$defs/big"}, {"type": "null"}]});
    let properties: serde_json::Map<String, Value> =
        (0..2_000).map(|n| (format!("p{n}"), reference.clone())).collect();
    let schema = json!({"$defs": {"big": {"enum": words}}, "properties": properties});
    let outline = Outline::of(&schema);
    let (one, two) = (at(&outline, "/p0"), at(&outline, "/p1999"));
    let (Some(one), Some(two)) = (&one.listed, &two.listed) else { panic!("both have an enum") };
    assert!(Arc::ptr_eq(one, two));
    assert!(one.has(&json!("w7")) && one.has(&json!(null)) && !one.has(&json!("x")));
}

/// The first place where an outline forbids what stands in `value`.
fn forbidden(outline: &Outline, value: &Value, at: Place, pointer: &str) -> Option<String> {
    let spot = outline.spot(at);
    let kind = match value {
        Value::Null => Kinds::NULL,
        Value::Bool(_) => Kinds::BOOLEAN,
        Value::Number(number) => of_number(&number.to_string()),
        Value::String(_) => Kinds::STRING,
        Value::Array(_) => Kinds::ARRAY,
        Value::Object(_) => Kinds::OBJECT,
    };
    if !spot.kinds.meets(kind) || spot.listed.as_ref().is_some_and(|listed| !listed.has(value)) {
        return Some(format!("type or enum at '{pointer}'"));
    }
    match value {
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let place = outline.element(at, index).unwrap_or(Place(0));
            forbidden(outline, item, place, &format!("{pointer}/{index}"))
        }),
        Value::Object(members) => {
            let missing = spot.required.iter().find(|key| !members.contains_key(*key));
            if let Some(key) = missing {
                return Some(format!("'{key}' is missing at '{pointer}'"));
            }
            members.iter().find_map(|(key, member)| match outline.member(at, key) {
                Member::Forbidden => Some(format!("key '{key}' at '{pointer}'")),
                Member::Open => None,
                Member::Known(place) => {
                    forbidden(outline, member, place, &format!("{pointer}/{key}"))
                }
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Scalars that schemas and values share, so that enums are met.
fn scalars() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(1)),
        Just(json!(1.0)),
        Just(json!(1.5)),
        Just(json!("a")),
        Just(json!("b")),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    scalars().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[abc]", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Schemas of the keywords that an outline reads, with references among them.
fn schemas() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(vec![
        "null", "boolean", "integer", "number", "string", "array", "object",
    ]);
    let keyword = prop_oneof![
        types.prop_map(|name| ("type", json!(name))),
        prop::collection::vec(scalars(), 1..4).prop_map(|mut all| {
            all.dedup();
            ("enum", Value::from(all))
        }),
        scalars().prop_map(|value| ("const", value)),
        Just(("required", json!(["a"]))),
        Just(("additionalProperties", json!(false))),
        Just(("patternProperties", json!({"b": {}}))),
        prop::sample::select(vec!["#/definitions/x", "#/definitions/y"])
            .prop_map(|target| ("$ref", json!(target))),
    ];
    let leaf = prop::collection::vec(keyword, 0..3).prop_map(object);
    leaf.prop_recursive(3, 24, 3, |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..3);
        let members = prop::collection::vec(("[abc]", inner.clone()), 1..3)
            .prop_map(|members| Value::Object(members.into_iter().collect()));
        let keyword = prop_oneof![
            members.prop_map(|members| ("properties", members)),
            some().prop_map(|all| ("allOf", Value::from(all))),
            some().prop_map(|all| ("anyOf", Value::from(all))),
            some().prop_map(|all| ("oneOf", Value::from(all))),
            some().prop_map(|all| ("prefixItems", Value::from(all))),
            inner.clone().prop_map(|one| ("items", one)),
            inner.clone().prop_map(|one| ("additionalProperties", one)),
        ];
        (inner.clone(), prop::collection::vec(keyword, 1..4)).prop_map(|(own, words)| {
            let mut whole = object(words);
            for (key, value) in own.as_object().into_iter().flatten() {
                whole[key.as_str()] = value.clone();
            }
            whole
        })
    })
}

fn object(words: Vec<(&'static str, Value)>) -> Value {
    Value::Object(words.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The outline is weaker than the schema, never stronger, in every draft.
    #[test]
    fn an_outline_forbids_nothing_that_its_schema_allows(
        draft in 0..DRAFTS.len(),
        schema in schemas(), x in schemas(), y in schemas(),
        tries in prop::collection::vec(values(), 8),
    ) {
        let mut schema = under(draft, schema);
        schema["definitions"] = json!({"x": x, "y": y});
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(()) };
        let outline = compiled.outline();
        for value in tries.iter().filter(|value| compiled.check(value).is_ok()) {
            let stronger = forbidden(outline, value, outline.root(), "");
            prop_assert_eq!(stronger, None, "{} {}", schema, value);
        }
    }
}
