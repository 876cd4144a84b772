//! Says in a config author's words what the TOML and serde crates say in a Rust author's.

use super::nearest::nearest;
use super::problem::Problem;

/// What a parser's `message` about `token`, a piece of the text, means.
pub(super) fn syntax(message: &str, token: &str) -> Problem {
    let problem = Problem::error("syntax", format!("this is not TOML: {message}"));
    if message.contains("duplicate key") {
        return Problem::error(
            "duplicate-key",
            format!("`{token}` stands here for the second time"),
        )
        .help("keep one of the two; a table is opened once, by one [header]");
    }
    if message.contains("recursion") {
        return problem.help("nest tables and lists less deeply");
    }
    problem
}

/// What serde's `message` about a value means.
pub(super) fn unfit(message: &str) -> Problem {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (first, others) = names.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
    let near =
        || nearest(first, others.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    let list = || others.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if message.starts_with("unknown field") {
        return Problem::error("unknown-key", format!("unknown key `{first}`"))
            .label(near().unwrap_or_else(|| "not a key of this table".into()))
            .help(format!("the keys here are {}", list()));
    }
    if message.starts_with("unknown variant") {
        return Problem::error("unknown-word", format!("`{first}` is not one of the choices"))
            .label(near().unwrap_or_else(|| "not a choice".into()))
            .help(format!("choose one of {}", list()));
    }
    if message.starts_with("missing field") {
        return Problem::error("missing-key", format!("the key `{first}` is missing here"))
            .help(format!("add `{first} = …`"));
    }
    let pair = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.rsplit_once(", expected "));
    let Some((found, expected)) = pair else {
        return Problem::error("wrong-type", message.to_owned());
    };
    let (found, expected) = (found_words(found), expected_words(expected));
    Problem::error("wrong-type", format!("expected {expected}, found {found}"))
}

/// What was found, without its Rust type. Text is not repeated: the line shows it.
fn found_words(found: &str) -> String {
    let quoted = || found.split('`').nth(1).unwrap_or_default();
    match found.split(' ').next() {
        Some("string") => "text".into(),
        Some("integer" | "floating") => format!("the number {}", quoted()),
        Some("boolean") => quoted().into(),
        Some("sequence") => "a list".into(),
        Some("map") => "a table".into(),
        _ => found.into(),
    }
}

/// What was expected, without its Rust type.
fn expected_words(expected: &str) -> String {
    match expected {
        "u64" => "a whole number, 0 or more".into(),
        "u32" => "a whole number from 0 to 4294967295".into(),
        "a string" | "string or table" => "text in quotes".into(),
        "a boolean" => "true or false".into(),
        "a sequence" => "a list".into(),
        "a map" => "a table".into(),
        _ if expected.starts_with("struct ") => "a table".into(),
        _ if expected.starts_with("enum ") => "one word in quotes".into(),
        _ => expected.into(),
    }
}
