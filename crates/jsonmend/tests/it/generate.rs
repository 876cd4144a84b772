//! Makes texts for the property tests: JSON, JSON with damage, and soups of its marks.

use proptest::prelude::*;
use serde_json::{Map, Value, json as value};

/// Any JSON value of modest size, with strings that hold what JSON is made of.
pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1000_i64..1000).prop_map(Value::from),
        (-1000_i32..1000).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        text().prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    });
    // Roots are containers, as replies are.
    prop_oneof![
        proptest::collection::vec(tree.clone(), 0..4).prop_map(Value::from),
        proptest::collection::vec((key(), tree), 0..4)
            .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z]{1,6}", 1 => "[a-z]{1,4}[ _-][a-z]{1,4}"]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{0,8}",
        3 => "[A-Z][a-z]{0,5}( [a-z]{1,6}){0,4}[.!?]?",
        1 => "[a-z]{1,4}, [a-z]{1,4}",
        1 => "[a-z]{1,4}: [a-z0-9]{1,4}",
        1 => "[0-9]{1,4}",
        1 => "[a-z \\{\\}\\[\\],:'\"\\\\/\n\té“”]{0,12}",
    ]
}

pub(crate) fn compact(tree: &Value) -> String {
    serde_json::to_string(tree).unwrap()
}

/// JSON with up to three small damages at random places.
pub(crate) fn broken() -> impl Strategy<Value = String> {
    broken_json().prop_map(|(raw, _)| raw)
}

/// As [`broken`], with a schema that the JSON would have been asked for with.
pub(crate) fn broken_under_a_schema() -> impl Strategy<Value = (String, Value)> {
    let under = prop_oneof![Just(Under::Exact), Just(Under::Open), Just(Under::Other)];
    (broken_json(), under).prop_map(|((raw, tree), under)| (raw, under.schema(&tree)))
}

/// The schema that replies are mended under, made of what the reply was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Under {
    Nothing,
    /// Every key of the original is declared, required and no other allowed, every scalar of its
    /// type. Lists have one schema for all their elements, or none.
    Exact,
    /// Keys and types are declared, none is required, and others are allowed.
    Open,
    /// As the exact one, but the model was asked for something else: the first key of each object
    /// is not declared.
    Other,
}

impl Under {
    pub(crate) fn schema(self, value: &Value) -> Value {
        match value {
            Value::Null => value!({"type": "null"}),
            Value::Bool(_) => value!({"type": "boolean"}),
            Value::Number(number) if number.is_f64() => value!({"type": "number"}),
            Value::Number(_) => value!({"type": "integer"}),
            Value::String(_) => value!({"type": "string"}),
            Value::Array(items) => {
                let mut all: Vec<Value> = items.iter().map(|item| self.schema(item)).collect();
                all.dedup();
                match all.as_slice() {
                    [only] => value!({"type": "array", "items": only}),
                    _ => value!({"type": "array"}),
                }
            }
            Value::Object(members) => self.schema_of_members(members),
        }
    }

    fn schema_of_members(self, members: &Map<String, Value>) -> Value {
        let declared = members.iter().skip(usize::from(self == Self::Other));
        let properties: Map<String, Value> =
            declared.map(|(key, value)| (key.clone(), self.schema(value))).collect();
        if self == Self::Open {
            return value!({"type": "object", "properties": properties});
        }
        let required: Vec<String> = properties.keys().cloned().collect();
        value!({"type": "object", "properties": properties, "required": required,
            "additionalProperties": false})
    }
}

fn broken_json() -> impl Strategy<Value = (String, Value)> {
    let damage = (any::<prop::sample::Index>(), 0..4_u8, "[\"',:\\[\\]{}\\\\ \na1tn-]");
    (json(), any::<bool>(), proptest::collection::vec(damage, 1..4)).prop_map(
        |(tree, pretty, damages)| {
            let mut text =
                if pretty { serde_json::to_string_pretty(&tree).unwrap() } else { compact(&tree) };
            for (place, what, mark) in damages {
                let letters: Vec<char> = text.chars().collect();
                let at = place.index(letters.len().max(1));
                let (before, rest) = letters.split_at(at.min(letters.len()));
                let behind = rest.get(1..).unwrap_or_default();
                let before: String = before.iter().collect();
                let behind: String = behind.iter().collect();
                let here: String = rest.first().into_iter().collect();
                text = match what {
                    0 => format!("{before}{behind}"),
                    1 => format!("{before}{mark}{here}{behind}"),
                    2 => format!("{before}{mark}{behind}"),
                    _ => before + &here,
                };
            }
            (text, tree)
        },
    )
}

/// Marks and words in any order.
pub(crate) fn soup() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\"a\"",
        "\"b\": ",
        "1",
        "-",
        "0.5",
        "true",
        "nul",
        "None",
        " ",
        "\n",
        "'",
        "'x'",
        "a",
        "word",
        "\\",
        "\\\"",
        "\\n",
        "\\u12",
        "```json\n",
        "```",
        "//",
        "/* */",
        "# c\n",
        "(",
        ")",
        "“",
        "”",
        "{{",
        "}}",
        "...",
        "NaN",
        "<think>",
        "</think>",
        "+",
        ";",
        "=",
        "：",
        "，",
        "\u{a0}",
        "\u{feff}",
        "007",
        "1e",
        "é",
        "\"\"",
        "\"\"\"",
        "ObjectId(",
        "{\"a\": 1}",
        "[1, 2]",
        "{\"a\": \"b",
    ]);
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}
