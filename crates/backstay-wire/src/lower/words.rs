//! Says in words what a provider's schema cannot.

use serde_json::Value;

/// The most bytes of one constraint in words. 2,000: a long enum still helps, a schema's worth of
/// text in a description does not.
const MOST: usize = 2_000;

/// A constraint as a model reads it.
pub(super) fn constraint(keyword: &str, value: &Value) -> String {
    let said = match keyword {
        "minimum" => format!("at least {value}"),
        "maximum" => format!("at most {value}"),
        "exclusiveMinimum" => format!("more than {value}"),
        "exclusiveMaximum" => format!("less than {value}"),
        "multipleOf" => format!("a multiple of {value}"),
        "minLength" => format!("at least {value} characters"),
        "maxLength" => format!("at most {value} characters"),
        "minItems" => format!("at least {value} items"),
        "maxItems" => format!("at most {value} items"),
        "minProperties" => format!("at least {value} members"),
        "maxProperties" => format!("at most {value} members"),
        "uniqueItems" => "no item twice".to_owned(),
        "pattern" => format!("matches the pattern {}", bare(value)),
        "format" => format!("in the format {}", bare(value)),
        "enum" => format!("one of {}", listed(value)),
        "const" => format!("always {value}"),
        "default" => format!("default {value}"),
        _ => format!("{keyword} {value}"),
    };
    clipped(said)
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn listed(value: &Value) -> String {
    let Value::Array(values) = value else { return value.to_string() };
    let mut out = String::new();
    for (at, value) in values.iter().enumerate() {
        let word = value.to_string();
        if out.len() + word.len() > MOST - 40 {
            return format!("{out} and {} more", values.len() - at);
        }
        if at > 0 {
            out.push_str(", ");
        }
        out.push_str(&word);
    }
    out
}

fn clipped(mut text: String) -> String {
    if text.len() > MOST {
        text.truncate(text.floor_char_boundary(MOST));
        text.push('…');
    }
    text
}

/// A description with what has to be said behind it.
pub(super) fn described(description: Option<&str>, said: &[String]) -> Option<String> {
    let description = description.filter(|text| !text.is_empty());
    match (description, said) {
        (None, []) => None,
        (Some(text), []) => Some(text.to_owned()),
        (None, said) => Some(said.join("; ")),
        (Some(text), said) => Some(format!("{text} ({})", said.join("; "))),
    }
}
