//! `serde_json` and `jsonschema`, each as its readme shows it.

use std::hint::black_box;

use jsonschema::Validator;
use serde_json::Value;

use crate::{WINDOWS, best, median, reply, rounds, time};

pub(crate) fn validator() -> Validator {
    jsonschema::validator_for(&reply::schema()).expect("a schema")
}

/// From the text to the verdict.
pub(crate) fn run(text: &str, schema: &Validator) {
    let value: Value = serde_json::from_str(black_box(text)).expect("JSON");
    black_box(schema.is_valid(&value));
}

pub(crate) fn measure(text: &str) {
    let schema = validator();
    let value: Value = serde_json::from_str(text).expect("JSON");
    assert!(schema.is_valid(&value), "the reply must fit");
    let rounds = rounds(text);
    let whole = median((0..WINDOWS).map(|_| time(rounds, || run(text, &schema))).collect());
    let parse = best(rounds, || {
        black_box(serde_json::from_str::<Value>(black_box(text)).is_ok());
    });
    let check = best(rounds, || {
        black_box(schema.is_valid(black_box(&value)));
    });
    let bytes = text.len();
    println!("{bytes:>6} bytes  peers {whole:>8.2} µs ({parse:.2} + {check:.2})");
}
