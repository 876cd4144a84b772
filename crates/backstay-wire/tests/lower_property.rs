//! Properties of the lowering: what is sent holds only what the subset takes, lowering twice changes
//! nothing, no schema breaks it, and a reply in the lowered form comes back as it was meant.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use backstay_wire::lower::{Rule, Subset, lower};
use jsonmend::{Mender, Policy, Status};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

// --- what each subset takes, written from the table and not from the code ---

const PLAIN: &[&str] =
    &["type", "properties", "required", "items", "enum", "anyOf", "description", "title"];

const OPENAI: &str = "additionalProperties const $ref $defs minimum maximum exclusiveMinimum \
    exclusiveMaximum multipleOf pattern format minItems maxItems $schema";
const ANTHROPIC: &str = "additionalProperties const $ref $defs pattern format minItems default";
const GEMINI_JSON: &str = "additionalProperties oneOf $ref $defs minimum maximum format minItems \
    maxItems prefixItems";
const GEMINI_OPEN_API: &str =
    "nullable minimum maximum format minItems maxItems propertyOrdering default";
const XGRAMMAR: &str = "additionalProperties oneOf const $ref $defs minimum maximum \
    exclusiveMinimum exclusiveMaximum minLength maxLength pattern format minItems maxItems \
    prefixItems patternProperties propertyNames minProperties maxProperties default $schema $id \
    $comment examples";
const LLAMA: &str = "additionalProperties oneOf const minimum maximum exclusiveMinimum \
    exclusiveMaximum minLength maxLength pattern format minItems maxItems default $schema $id \
    $comment examples";

fn takes(subset: Subset) -> Vec<&'static str> {
    let more = match subset {
        Subset::OpenaiStrict => OPENAI,
        Subset::Anthropic => ANTHROPIC,
        Subset::GeminiJsonSchema => GEMINI_JSON,
        Subset::GeminiResponseSchema => GEMINI_OPEN_API,
        Subset::Xgrammar => XGRAMMAR,
        Subset::LlamaCpp | Subset::Ollama => LLAMA,
        Subset::Whole => panic!("nothing is lowered"),
    };
    PLAIN.iter().copied().chain(more.split_whitespace()).collect()
}

/// Why `schema` is not of the subset; empty when it is.
fn misfits(schema: &Value, subset: Subset, root: bool, out: &mut Vec<String>) {
    let Value::Object(map) = schema else {
        if !(schema.is_boolean() && subset != Subset::OpenaiStrict && subset != Subset::Anthropic) {
            out.push(format!("{schema} is no schema"));
        }
        return;
    };
    let mut wrong = |bad: bool, what: &str| {
        if bad {
            out.push(format!("{what}: {schema}"));
        }
    };
    let taken = takes(subset);
    for key in map.keys() {
        wrong(!taken.contains(&key.as_str()), key);
    }
    let has = |key: &str| map.contains_key(key);
    let is_strict = matches!(subset, Subset::OpenaiStrict | Subset::Anthropic);
    let typed = is_strict || subset == Subset::GeminiResponseSchema;
    wrong(typed && !has("type") && !has("anyOf") && !has("$ref"), "no type");
    wrong(root && is_strict && map.get("type") != Some(&json!("object")), "root");
    wrong(root && is_strict && has("anyOf"), "a union at the root");
    let is_object = map.get("type").is_some_and(|t| t.to_string().contains("object"));
    wrong(is_strict && is_object && map.get("additionalProperties") != Some(&json!(false)), "open");
    let names = map.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let required: Vec<&str> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let all = names.keys().all(|name| required.contains(&name.as_str()));
    wrong(subset == Subset::OpenaiStrict && !all, "not all required");
    wrong(
        subset == Subset::GeminiJsonSchema
            && has("$ref")
            && map.keys().any(|key| !key.starts_with('$')),
        "beside $ref",
    );
    misfits_of(map, subset, &mut wrong);
    inside(map, subset, out);
}

/// What is wrong by a rule of one subset.
fn misfits_of(map: &Map<String, Value>, subset: Subset, wrong: &mut dyn FnMut(bool, &str)) {
    let has = |key: &str| map.contains_key(key);
    if subset == Subset::GeminiResponseSchema {
        let shouts = map
            .get("type")
            .is_none_or(|t| t.as_str().is_some_and(|t| t.chars().all(|c| c.is_ascii_uppercase())));
        wrong(!shouts, "type");
        let strings = map
            .get("enum")
            .and_then(Value::as_array)
            .is_none_or(|v| v.iter().all(Value::is_string));
        wrong(!strings, "enum of more than strings");
    }
    if subset == Subset::Xgrammar {
        let length = has("minLength") || has("maxLength");
        wrong(length && (has("pattern") || has("format")), "length beside pattern");
        wrong(has("patternProperties") && has("properties"), "patternProperties");
    }
    if matches!(subset, Subset::LlamaCpp | Subset::Ollama) {
        let anchored = map
            .get("pattern")
            .and_then(Value::as_str)
            .is_none_or(|p| p.starts_with('^') && p.ends_with('$'));
        wrong(!anchored, "pattern not anchored");
        wrong(has("anyOf") && has("properties"), "anyOf beside properties");
    }
    let few = map.get("minItems").is_none_or(|n| *n == json!(0) || *n == json!(1));
    wrong(subset == Subset::Anthropic && !few, "minItems");
    let formats: &[&str] = match subset {
        Subset::LlamaCpp | Subset::Ollama => &["date", "time", "date-time", "uuid"],
        Subset::GeminiResponseSchema => &["enum", "date-time"],
        Subset::GeminiJsonSchema => &["date", "time", "date-time"],
        _ => &["date", "email", "uri", "uuid"],
    };
    let format = map.get("format").and_then(Value::as_str);
    wrong(format.is_some_and(|f| !formats.contains(&f)), "format");
    wrong(subset == Subset::OpenaiStrict && format == Some("uri"), "format uri");
}

fn inside(map: &Map<String, Value>, subset: Subset, out: &mut Vec<String>) {
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "patternProperties", Value::Object(named)) => {
                named.values().for_each(|schema| misfits(schema, subset, false, out));
            }
            ("items" | "propertyNames", value) => misfits(value, subset, false, out),
            ("additionalProperties", value @ Value::Object(_)) => {
                misfits(value, subset, false, out);
            }
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                for schema in list {
                    misfits(schema, subset, false, out);
                }
            }
            _ => {}
        }
    }
}

const LOWERED: [Subset; 7] = [
    Subset::OpenaiStrict,
    Subset::Anthropic,
    Subset::GeminiJsonSchema,
    Subset::GeminiResponseSchema,
    Subset::Xgrammar,
    Subset::LlamaCpp,
    Subset::Ollama,
];

// --- schemas of any kind ---

fn keyword(inner: BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    let named = |inner: BoxedStrategy<Value>| {
        proptest::collection::btree_map("[a-c]", inner, 0..3)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    };
    let pair = |key: &'static str, value: BoxedStrategy<Value>| {
        value.prop_map(move |value| (key.to_owned(), value)).boxed()
    };
    let of = |values: &'static [&'static str]| {
        proptest::sample::select(values).prop_map(Value::from).boxed()
    };
    let json = |text: &'static [&'static str]| {
        proptest::sample::select(text).prop_map(|v| serde_json::from_str(v).unwrap()).boxed()
    };
    let list = vec(inner.clone(), 1..3).prop_map(Value::Array).boxed();
    let number = (0..4_i64).prop_map(Value::from).boxed();
    prop_oneof![
        4 => pair("type", json(&["\"string\"", "\"integer\"", "\"object\"", "\"array\"", "\"null\"",
                "[\"string\",\"null\"]", "[\"object\",\"array\"]", "\"number\"", "\"boolean\""])),
        4 => pair("properties", named(inner.clone()).boxed()),
        2 => pair("required", json(&["[]", "[\"a\"]", "[\"a\",\"b\"]", "[\"z\"]"])),
        2 => pair("additionalProperties", prop_oneof![json(&["true", "false", "{}"]), inner.clone()].boxed()),
        2 => pair("items", prop_oneof![json(&["true", "false"]), inner.clone(), list.clone()].boxed()),
        2 => pair("anyOf", list.clone()),
        1 => pair("oneOf", list.clone()),
        1 => pair("allOf", list.clone()),
        1 => pair("prefixItems", list),
        1 => pair("not", inner.clone()),
        1 => pair("patternProperties", named(inner.clone()).boxed()),
        1 => pair("propertyNames", inner.clone()),
        1 => pair("contains", inner),
        2 => pair("$ref", of(&["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/gone", "http://x/y"])),
        2 => pair("enum", json(&["[\"x\",\"y\"]", "[1,null]", "[true,\"x\"]", "[]", "[[1],{}]", "[null]"])),
        1 => pair("const", json(&["1", "\"x\"", "null", "[1]", "true"])),
        2 => pair("format", of(&["date", "uri", "email", "odd", "uuid"])),
        2 => pair("pattern", of(&["a", "^a$", "^(?=b)", "a\\b", "^a|b$", "\\S+", "[", "a$"])),
        1 => pair("minimum", number.clone()),
        1 => pair("maximum", number.clone()),
        1 => pair("multipleOf", number.clone()),
        1 => pair("minLength", number.clone()),
        1 => pair("minItems", number.clone()),
        1 => pair("maxItems", number.clone()),
        1 => pair("uniqueItems", json(&["true", "false"])),
        1 => pair("minProperties", number),
        1 => pair("description", of(&["words", ""])),
        1 => pair("default", json(&["1", "null"])),
        1 => pair("unevaluatedProperties", json(&["true", "false", "{\"type\":\"string\"}"])),
        1 => pair("if", json(&["{}", "true"])),
        1 => pair("nullable", json(&["true"])),
        1 => pair("\u{1}backstay map", json(&["true"])),
    ]
    .boxed()
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": "null"})),
        Just(json!({"$ref": "#/$defs/a"})),
        Just(json!({})),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!(7)),
    ];
    let schema = leaf.prop_recursive(4, 40, 4, |inner| {
        vec(keyword(inner.boxed()), 0..6)
            .prop_map(|pairs| Value::Object(pairs.into_iter().collect()))
    });
    (schema.clone(), schema.clone(), schema).prop_map(|(root, a, b)| match root {
        Value::Object(mut map) => {
            map.insert("$defs".into(), json!({ "a": a, "b": b }));
            Value::Object(map)
        }
        other => other,
    })
}

// --- schemas with replies ---

/// A schema whose instances are known, and so is how each subset wants them.
#[derive(Clone, Debug)]
enum Kind {
    Text,
    Count,
    Maybe,
    List(Box<Self>),
    Keyed(Box<Self>),
    Object(Vec<(String, Self, bool)>),
    /// Objects told apart by a constant.
    Tagged(Vec<Self>),
    /// An object with further keys.
    Further(Vec<(String, Self, bool)>, Box<Self>),
    /// An object said in two parts of an `allOf`.
    Parts(Vec<(String, Self, bool)>, Vec<(String, Self, bool)>),
    Tuple(Vec<Self>),
    /// A definition, by way of another one.
    Named(Box<Self>),
    /// That or a text, told apart by their types.
    OrText(Box<Self>),
    OrNull(Box<Self>),
    /// A recursion.
    Tree,
}

/// How a subset wants what it changes.
#[derive(Clone, Copy)]
struct How {
    /// Optional members that are left out are `null`.
    nulls: bool,
    /// Maps are lists of entries.
    entries: bool,
}

fn kind() -> impl Strategy<Value = Kind> {
    let leaf = prop_oneof![
        3 => Just(Kind::Text),
        3 => Just(Kind::Count),
        3 => Just(Kind::Maybe),
        1 => Just(Kind::Tree),
        // Two that only the undoing tells apart.
        1 => Just(Kind::Object(vec![("a".into(), Kind::Text, false)])),
        1 => Just(Kind::Object(vec![("a".into(), Kind::Maybe, false)])),
    ];
    let of = |names: &'static str, inner: BoxedStrategy<Kind>| {
        proptest::collection::btree_map(names, (inner, any::<bool>()), 0..4).prop_map(|map| {
            map.into_iter().map(|(name, (kind, must))| (name, kind, must)).collect::<Vec<_>>()
        })
    };
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let boxed = inner.clone().prop_map(Box::new).boxed();
        let members = of("[a-d]", inner.clone().boxed());
        prop_oneof![
            boxed.clone().prop_map(Kind::List),
            boxed.clone().prop_map(Kind::Keyed),
            members.clone().prop_map(Kind::Object),
            vec(inner.clone(), 1..3).prop_map(Kind::Tagged),
            (members.clone(), boxed.clone()).prop_map(|(named, rest)| Kind::Further(named, rest)),
            (members, of("[e-g]", inner.clone().boxed()))
                .prop_map(|(one, two)| Kind::Parts(one, two)),
            vec(inner, 1..4).prop_map(Kind::Tuple),
            boxed.clone().prop_map(Kind::Named),
            boxed.clone().prop_map(Kind::OrText),
            boxed.prop_map(Kind::OrNull),
        ]
    })
}

impl Kind {
    fn schema(&self) -> Value {
        let mut defs = Map::new();
        let mut schema = self.inner(&mut defs);
        if !defs.is_empty() {
            schema["$defs"] = defs.into();
        }
        schema
    }

    fn inner(&self, defs: &mut Map<String, Value>) -> Value {
        match self {
            Self::Text => json!({"type": "string", "maxLength": 40}),
            Self::Count => json!({"type": "integer"}),
            Self::Maybe => json!({"type": ["string", "null"]}),
            Self::List(kind) => json!({"type": "array", "items": kind.inner(defs)}),
            Self::Keyed(kind) => {
                json!({"type": "object", "additionalProperties": kind.inner(defs)})
            }
            Self::Object(members) => {
                let mut object = named(members, defs);
                object["additionalProperties"] = json!(false);
                object
            }
            Self::Tagged(kinds) => {
                let mut branch = |(at, kind): (usize, &Self)| {
                    json!({"type": "object",
                        "properties": {"tag": {"const": format!("t{at}")}, "of": kind.inner(defs)},
                        "required": ["tag", "of"], "additionalProperties": false})
                };
                json!({ "oneOf": kinds.iter().enumerate().map(&mut branch).collect::<Vec<_>>() })
            }
            Self::Further(members, rest) => {
                let mut object = named(members, defs);
                object["additionalProperties"] = rest.inner(defs);
                object
            }
            Self::Parts(one, two) => {
                let of_two = named(two, defs);
                let mut object = named(one, defs);
                object["allOf"] = json!([of_two, {}]);
                object
            }
            Self::Tuple(kinds) => {
                let items: Vec<Value> = kinds.iter().map(|kind| kind.inner(defs)).collect();
                json!({"type": "array", "prefixItems": items, "items": false,
                       "minItems": kinds.len()})
            }
            Self::Named(kind) => {
                let body = kind.inner(defs);
                let name = format!("d{}", defs.len());
                defs.insert(name.clone(), body);
                defs.insert(format!("{name}_"), json!({"$ref": format!("#/$defs/{name}")}));
                json!({"$ref": format!("#/$defs/{name}_")})
            }
            Self::OrText(kind) => json!({"anyOf": [{"type": "string"}, kind.inner(defs)]}),
            Self::OrNull(kind) => json!({"anyOf": [kind.inner(defs), {"type": "null"}]}),
            Self::Tree => {
                let to = json!({"$ref": "#/$defs/tree"});
                let tree = json!({"type": "object", "required": ["v", "kids"],
                    "properties": {"v": {"type": "integer"}, "next": to,
                                   "kids": {"type": "array", "items": to}},
                    "additionalProperties": false});
                defs.insert("tree".into(), tree);
                to
            }
        }
    }

    fn allows_null(&self) -> bool {
        match self {
            Self::Maybe | Self::OrNull(_) => true,
            Self::Named(kind) | Self::OrText(kind) => kind.allows_null(),
            _ => false,
        }
    }

    /// An instance, and the same as a provider held to the lowered schema writes it.
    fn reply(&self, dice: &mut Dice, how: How) -> (Value, Value) {
        match self {
            Self::Text => same(json!(format!("s{}", dice.roll(9)))),
            Self::Count => same(json!(dice.roll(1_000))),
            Self::Maybe if dice.roll(2) == 0 => same(Value::Null),
            Self::Maybe => same(json!("m")),
            Self::List(kind) => {
                let items: Vec<_> = (0..dice.roll(3)).map(|_| kind.reply(dice, how)).collect();
                let (meant, sent): (Vec<_>, Vec<_>) = items.into_iter().unzip();
                (meant.into(), sent.into())
            }
            Self::Keyed(kind) => {
                let (meant, sent) = entries(kind, dice, how);
                (meant.into(), if how.entries { sent.into() } else { unlisted(sent) })
            }
            Self::Object(members) => {
                let (meant, sent) = filled(members, dice, how);
                (meant.into(), sent.into())
            }
            Self::Tagged(kinds) => {
                let at = dice.roll(kinds.len());
                let (inner, lowered) = kinds[at].reply(dice, how);
                let of = |value: Value| json!({"tag": format!("t{at}"), "of": value});
                (of(inner), of(lowered))
            }
            Self::Further(members, rest) => {
                let (mut meant, mut sent) = filled(members, dice, how);
                let (more, listed) = entries(rest, dice, how);
                meant.extend(more);
                match (how.entries, unlisted(listed.clone())) {
                    (false, Value::Object(more)) => sent.extend(more),
                    // An object without a name of its own is a map.
                    _ if members.is_empty() => return (meant.into(), listed.into()),
                    _ => {
                        sent.insert("additional_properties".into(), listed.into());
                    }
                }
                (meant.into(), sent.into())
            }
            Self::Parts(one, two) => {
                let (mut meant, mut sent) = filled(one, dice, how);
                let (more, lowered) = filled(two, dice, how);
                meant.extend(more);
                sent.extend(lowered);
                (meant.into(), sent.into())
            }
            Self::Tuple(kinds) => {
                let items = kinds.iter().map(|kind| kind.reply(dice, how));
                let (meant, sent): (Vec<_>, Vec<_>) = items.unzip();
                (meant.into(), sent.into())
            }
            Self::OrText(_) if dice.roll(3) == 0 => same(json!("text")),
            Self::OrNull(_) if dice.roll(3) == 0 => same(Value::Null),
            Self::Named(kind) | Self::OrText(kind) | Self::OrNull(kind) => kind.reply(dice, how),
            Self::Tree => tree(dice, how, 0),
        }
    }
}

/// The names and schemas of an object's members.
fn named(members: &[(String, Kind, bool)], defs: &mut Map<String, Value>) -> Value {
    let named: Map<String, Value> =
        members.iter().map(|(name, kind, _)| (name.clone(), kind.inner(defs))).collect();
    let required: Vec<&str> = members.iter().filter(|m| m.2).map(|m| m.0.as_str()).collect();
    json!({"type": "object", "properties": named, "required": required})
}

fn filled(
    members: &[(String, Kind, bool)],
    dice: &mut Dice,
    how: How,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut meant, mut sent) = (Map::new(), Map::new());
    for (name, kind, must) in members {
        // Where `null` is a value of its own, a missing member and `null` are one.
        if *must || kind.allows_null() || dice.roll(2) == 0 {
            let (inner, lowered) = kind.reply(dice, how);
            meant.insert(name.clone(), inner);
            sent.insert(name.clone(), lowered);
        } else if how.nulls {
            sent.insert(name.clone(), Value::Null);
        }
    }
    (meant, sent)
}

/// The members of a map, and its entries.
fn entries(kind: &Kind, dice: &mut Dice, how: How) -> (Map<String, Value>, Vec<Value>) {
    let (mut meant, mut sent) = (Map::new(), Vec::new());
    for at in 0..dice.roll(3) {
        let (inner, lowered) = kind.reply(dice, how);
        meant.insert(format!("k/{at}"), inner);
        sent.push(json!({"key": format!("k/{at}"), "value": lowered}));
    }
    (meant, sent)
}

fn unlisted(entries: Vec<Value>) -> Value {
    let member = |entry: Value| (entry["key"].as_str().unwrap().to_owned(), entry["value"].clone());
    Value::Object(entries.into_iter().map(member).collect())
}

fn tree(dice: &mut Dice, how: How, depth: usize) -> (Value, Value) {
    let (mut meant, mut sent) = (json!({"v": dice.roll(9)}), json!({}));
    sent["v"] = meant["v"].clone();
    let count = if depth < 2 { dice.roll(3) } else { 0 };
    let kids: Vec<_> = (0..count).map(|_| tree(dice, how, depth + 1)).collect();
    let (one, two): (Vec<_>, Vec<_>) = kids.into_iter().unzip();
    (meant["kids"], sent["kids"]) = (one.into(), two.into());
    if depth < 2 && dice.roll(2) == 0 {
        (meant["next"], sent["next"]) = tree(dice, how, depth + 1);
    } else if how.nulls {
        sent["next"] = Value::Null;
    }
    (meant, sent)
}

fn same(value: Value) -> (Value, Value) {
    (value.clone(), value)
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

#[test]
fn a_circle_through_a_pattern_is_unrolled_where_patterns_are_not_known() {
    let schema = json!({"unevaluatedProperties": false, "patternProperties": {"a": {"$ref": "#"}}});
    let lowered = lower(&schema, Subset::GeminiJsonSchema).unwrap();
    let again = lower(&lowered.schema, Subset::GeminiJsonSchema).unwrap();
    assert_eq!(again.schema, lowered.schema);
}

proptest! {
    #![proptest_config(ProptestConfig { ..ProptestConfig::default() })]

    #[test]
    fn a_lowered_schema_holds_only_what_the_subset_takes_and_stays_as_it_is(schema in any_schema()) {
        for subset in LOWERED {
            let Ok(lowered) = lower(&schema, subset) else { continue };
            let mut wrong = Vec::new();
            misfits(&lowered.schema, subset, true, &mut wrong);
            prop_assert!(wrong.is_empty(), "{}: {wrong:?} in {}", subset.name(), lowered.schema);
            let again = lower(&lowered.schema, subset);
            let again = again.map_err(|fault| TestCaseError::fail(
                format!("{}: {fault}: {}", subset.name(), lowered.schema)))?;
            prop_assert_eq!(&again.schema, &lowered.schema, "{}", subset.name());
            prop_assert!(again.lowering.is_empty(), "{}: {:?} of {}", subset.name(),
                again.lowering.changes(), lowered.schema);
            let twice = lower(&schema, subset).unwrap();
            prop_assert_eq!(&twice.schema, &lowered.schema);
            prop_assert_eq!(twice.lowering.changes(), lowered.lowering.changes());
        }
    }

    #[test]
    fn a_reply_in_the_lowered_form_comes_back_as_it_was_meant(kind in kind(), seed: u64) {
        for subset in LOWERED {
            let Ok(lowered) = lower(&kind.schema(), subset) else { continue };
            // Past its limit even that subset makes optional members required.
            if subset == Subset::Anthropic && lowered.tally.optional >= 24 {
                continue;
            }
            let nulls = subset == Subset::OpenaiStrict;
            let entries = nulls
                || matches!(subset, Subset::Anthropic | Subset::GeminiResponseSchema);
            let (meant, mut sent) = kind.reply(&mut Dice(seed), How { nulls, entries });
            if lowered.lowering.changes().iter().any(|change| change.rule == Rule::RootWrapped) {
                sent = json!({ "value": sent });
            }
            let text = serde_json::to_string_pretty(&sent).unwrap();
            let outcome = Mender::new(Policy::strict()).mend(&text, Status::Stopped);
            let root = outcome.document().unwrap().root(&text).unwrap();
            let undone = lowered.lowering.undo(root).unwrap();
            let raised = undone.map_or_else(|| text.clone(), |undone| undone.text);
            let raised: Value = serde_json::from_str(&raised).unwrap();
            prop_assert_eq!(raised, meant, "{} of {}", text, lowered.schema);
        }
    }

    #[test]
    fn no_reply_breaks_the_undo(kind in kind(), reply in any_schema()) {
        let text = reply.to_string();
        let outcome = Mender::new(Policy::strict()).mend(&text, Status::Stopped);
        let Some(document) = outcome.document() else { return Ok(()) };
        for subset in LOWERED {
            let Ok(lowered) = lower(&kind.schema(), subset) else { continue };
            if let Ok(Some(undone)) = lowered.lowering.undo(document.root(&text).unwrap()) {
                prop_assert!(serde_json::from_str::<Value>(&undone.text).is_ok(), "{}", undone.text);
            }
        }
    }
}

#[test]
fn hostile_schemas_come_to_an_end() {
    // Each definition is twice the next.
    let mut defs = Map::new();
    for at in 0..40 {
        let next = format!("#/$defs/d{}", at + 1);
        defs.insert(
            format!("d{at}"),
            json!({"type": "object", "properties": {"a": {"$ref": next}, "b": {"$ref": next}},
                   "required": ["a", "b"], "additionalProperties": false}),
        );
    }
    defs.insert("d40".into(), json!({"type": "string"}));
    let doubling = json!({"$ref": "#/$defs/d0", "$defs": defs});
    let mut deep = json!({"type": "string"});
    for _ in 0..5_000 {
        deep = Value::Object(Map::from_iter([("items".to_owned(), deep)]));
    }
    let parts: Vec<Value> = (0..3_000)
        .map(|at| json!({"properties": {format!("p{at}"): {"type": "string"}}}))
        .collect();
    let wide = json!({"type": "object", "allOf": parts});
    let mut knot = Map::new();
    for at in 0..30 {
        let all: Vec<Value> = (0..30).map(|to| json!({"$ref": format!("#/$defs/k{to}")})).collect();
        knot.insert(format!("k{at}"), json!({ "anyOf": all }));
    }
    let knot = json!({"$ref": "#/$defs/k0", "$defs": knot});
    let many: Map<String, Value> =
        (0..6_000).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
    let many = json!({"type": "object", "properties": many, "additionalProperties": false});
    for schema in [&doubling, &deep, &wide, &knot, &many] {
        for subset in Subset::ALL {
            let _ = lower(schema, subset);
        }
    }
    assert!(lower(&deep, Subset::LlamaCpp).is_err());
    assert!(lower(&doubling, Subset::LlamaCpp).is_err());
    assert!(lower(&many, Subset::OpenaiStrict).is_err());
    // Deep values are dropped level by level, not by the stack.
    let mut rest = deep;
    while let Some(inner) = rest.get_mut("items").map(Value::take) {
        rest = inner;
    }
}

#[test]
fn the_limits_of_a_request_are_kept() {
    let optional: Map<String, Value> =
        (0..30).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": optional, "additionalProperties": false});
    let lowered = lower(&schema, Subset::Anthropic).unwrap();
    // 24 stay optional; six are made nullable.
    assert_eq!(lowered.schema["required"].as_array().unwrap().len(), 6);
    assert_eq!((lowered.tally.optional, lowered.tally.unions), (24, 6));
    let unions: Map<String, Value> =
        (0..17).map(|at| (format!("p{at}"), json!({"type": ["string", "null"]}))).collect();
    let names: Vec<&String> = unions.keys().collect();
    let schema = json!({"type": "object", "required": names, "properties": unions});
    assert!(lower(&schema, Subset::Anthropic).is_err());
    assert!(lower(&schema, Subset::OpenaiStrict).is_ok());
    let long: Vec<String> = (0..300).map(|at| format!("{at:0100}")).collect();
    let schema = json!({"type": "object", "properties": {"a": {"enum": long}}, "required": ["a"]});
    let lowered = lower(&schema, Subset::OpenaiStrict).unwrap();
    let property = &lowered.schema["properties"]["a"];
    assert!(property.get("enum").is_none() && property["type"] == "string");
    assert!(property["description"].as_str().unwrap().starts_with("one of \"0"));
    let nested = (0..11).fold(
        json!({"type": "string"}),
        |inner, _| json!({"type": "object", "properties": {"a": inner}, "required": ["a"]}),
    );
    let Err(fault) = lower(&nested, Subset::OpenaiStrict) else { panic!("11 levels were taken") };
    assert!(fault.to_string().contains("10 levels"));
}
