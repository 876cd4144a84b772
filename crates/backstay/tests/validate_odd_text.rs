//! Whatever a model writes, it is judged: no panic, no endless check, no error without words.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use backstay::policy::{Mending, Syntax};
use backstay::validate::{Asked, Checks, MAX_ERROR_BYTES, MAX_ERRORS, Rule, Schema, Shape, judge};
use backstay_wire::chat::{Choice, Finish, Part};
use jsonmend::{Kind, KindSet};
use serde_json::{Value, json};

/// xorshift64: the same texts on every run with one seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit).unwrap()).unwrap()
    }

    fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }

    /// A text with up to eight edits made to it.
    fn damaged(&mut self, text: &str) -> String {
        let pieces = [
            "{", "}", "[", "]", "\"", ":", ",", "\\", "\\u", "```", "json", "\n", " ", "0", "-",
            ".", "e9", "null", "tru", "'", "é", "\u{0}", "\u{feff}", "<think>", "1e999", "\\ud800",
            "/*",
        ];
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..=self.below(8) {
            let at = self.below(letters.len() + 1);
            match self.below(4) {
                0 => letters.truncate(at),
                1 if at < letters.len() => drop(letters.remove(at)),
                _ => drop(letters.splice(at..at, self.pick(&pieces).chars())),
            }
        }
        letters.into_iter().collect()
    }
}

fn checks() -> Vec<Checks> {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 4},
            "s": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
            "l": {"type": "array", "items": {"$ref": "#"}, "uniqueItems": true}
        },
        "required": ["n"],
        "additionalProperties": false
    });
    let schema = Arc::new(Schema::compile(&schema).unwrap());
    let rules: Arc<[Rule]> = Arc::from([
        Rule::compile("n", "reply.n != 1 || has(reply.s)", None, None).unwrap(),
        Rule::compile("s", "!has(reply.s) || input.contains(reply.s)", None, None).unwrap(),
    ]);
    let only_fence = Mending { syntax: Syntax::only(&[Kind::Fence]), ..Mending::default() };
    let mendings = [Arc::new(only_fence), Arc::default()];
    let shapes = [Shape::Text, Shape::Json, Shape::Schema(schema)];
    let all = mendings
        .iter()
        .flat_map(|mending| shapes.iter().map(|shape| (shape.clone(), Arc::clone(mending))));
    all.map(|(shape, mending)| Checks { shape, rules: Arc::clone(&rules), mending }).collect()
}

#[test]
fn any_text_is_judged_and_only_strict_json_comes_out_of_it() {
    let seeds = [
        r#"{"n": 1, "s": "abc", "l": [{"n": 2}, {"n": 3, "s": null}]}"#,
        "```json\n{\"n\": 2}\n```",
        "{\"n\": \"2\", \"x\": [1, 2.5e3, -0, true, \"\\u00e9\"]}",
        "I can't help with that.",
    ];
    let finishes = [Finish::Complete, Finish::ToolUse];
    let all = checks();
    let asked = Asked { input: &|_| "abc".to_owned(), ..Asked::nothing() };
    let mut dice = Dice(0x5EED_1234_ABCD_0001);
    for _ in 0..8_000 {
        let seed = dice.pick(&seeds);
        let text = dice.damaged(seed);
        let call = (dice.below(8) == 0).then(|| Part::ToolCall {
            id: String::new(),
            name: "t".to_owned(),
            arguments: dice.damaged("{\"a\": [1]}"),
        });
        let parts = std::iter::once(Part::Text(text.clone())).chain(call).collect();
        let choice = Choice { parts, finish: finishes[dice.below(2)], finish_word: None };
        for checks in &all {
            match judge(&choice, checks, &asked) {
                Ok(checked) => {
                    if let Some(value) = checked.value() {
                        // Numbers out of a double's range are JSON, and not for `serde_json`.
                        let again = serde_json::from_str::<Value>(&checked.text);
                        assert!(
                            again.is_err_and(|fault| fault.to_string().contains("range"))
                                || serde_json::from_str::<Value>(&checked.text).unwrap() == value
                        );
                        let fence = checked.edits.iter().all(|edit| edit.kind.name() == "fence");
                        assert!(!fence || text.contains(&checked.text), "made up: {text}");
                        let is_strict = checks.mending.syntax.policy.allow != KindSet::ALL;
                        assert!(fence || !is_strict, "not allowed: {text}");
                    }
                }
                Err(unfit) => {
                    assert!(!unfit.errors.is_empty(), "{text}");
                    assert!(unfit.errors.len() <= MAX_ERRORS);
                    assert!(unfit.errors.iter().all(|error| error.len() <= MAX_ERROR_BYTES));
                }
            }
        }
    }
}

#[test]
fn a_hundred_thousand_brackets_are_refused_and_not_followed() {
    let asked = Asked { input: &|_| String::new(), ..Asked::nothing() };
    for text in
        ["[".repeat(100_000), "{\"n\":".repeat(100_000), "[".repeat(100_000) + &"]".repeat(100_000)]
    {
        for arguments in [false, true] {
            let part = if arguments {
                let (id, name) = (String::new(), "t".to_owned());
                Part::ToolCall { id, name, arguments: text.clone() }
            } else {
                Part::Text(text.clone())
            };
            let choice = Choice { parts: vec![part], finish: Finish::Complete, finish_word: None };
            let unfit = judge(&choice, &checks()[2], &asked).unwrap_err();
            assert!(unfit.errors[0].contains("Nested too deeply at char "), "{:?}", unfit.errors);
        }
    }
}
