//! Makes texts for the property tests: JSON, JSON with damage, and soups of its marks.

use proptest::prelude::*;
use serde_json::{Map, Value};

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
            text
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
