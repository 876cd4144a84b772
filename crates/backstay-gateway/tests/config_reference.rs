//! The reference page and the editors' schema say what the types say.
//!
//! `BACKSTAY_UPDATE=1` writes both anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

const OPENING: &str = "# backstay.toml

<!-- Made from the types in crates/backstay-gateway/src/config; a test keeps it so. -->

`backstay serve -c FILE` reads this file, `backstay check -c FILE` tells what is wrong or doubtful
in it. Unknown keys are errors. Editors that understand JSON Schema help with it when its first line
is `#:schema https://…/config.schema.json` (the file of that name beside this page).

A length of time is text with a unit: `\"1500ms\"`, `\"30s\"`, `\"2m\"`, `\"1h\"`; at most `\"24h\"`. A secret
is `{ env = \"NAME\" }`, the value of an environment variable. Paths are relative to the file.
A whole file: [examples/triage/backstay.toml](../../examples/triage/backstay.toml).
";

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name)
}

/// Compares a committed file with what it should hold, or writes it when asked to.
fn keep(name: &str, text: &str) {
    let path = docs(name);
    if std::env::var_os("BACKSTAY_UPDATE").is_some_and(|value| value == "1") {
        fs::write(&path, text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "{name} is not what the types say; run with BACKSTAY_UPDATE=1");
}

#[test]
fn the_schema_for_editors_is_that_of_the_types() {
    let schema = backstay_gateway::config::json_schema();
    keep("config.schema.json", &format!("{schema:#}\n"));
}

#[test]
fn the_reference_page_is_that_of_the_types() {
    let schema = backstay_gateway::config::json_schema();
    let mut page = String::from(OPENING);
    for (name, section) in schema["properties"].as_object().unwrap() {
        let (header, table) = match section.get("additionalProperties") {
            Some(entry) => (format!("[{name}.NAME]"), entry),
            None => (format!("[{name}]"), section),
        };
        let table = table_of(&schema, resolved(&schema, table));
        let about = text(section);
        write!(page, "\n## `{header}`\n\n{about}\n\n").unwrap();
        rows(&mut page, &schema, resolved(&schema, table));
        for (key, property) in resolved(&schema, table)["properties"].as_object().unwrap() {
            let many = property.get("items").is_some();
            let inner = property.get("items").unwrap_or(property);
            let inner = table_of(&schema, resolved(&schema, inner));
            if inner.get("properties").is_some() {
                let (open, shut) = if many { ("[{", "}]") } else { ("{", "}") };
                write!(page, "\n### `{key} = {open} … {shut}` in `{header}`\n\n").unwrap();
                write!(page, "{}\n\n", text(inner)).unwrap();
                rows(&mut page, &schema, inner);
            }
        }
    }
    keep("config.md", &page);
}

/// The rows of one table's keys.
fn rows(page: &mut String, schema: &Value, table: &Value) {
    page.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
    let required = table.get("required").and_then(Value::as_array);
    for (key, property) in table["properties"].as_object().unwrap() {
        let about = text(property);
        let (meaning, default) = about.split_once(" Default: ").unwrap_or((&about, ""));
        let default = match property.get("default") {
            _ if required.is_some_and(|keys| keys.iter().any(|k| k == key)) => "required".into(),
            Some(value) if default.is_empty() => shown(value),
            _ => default.trim_end_matches('.').to_owned(),
        };
        assert!(!default.is_empty(), "`{key}` says nothing of its default");
        assert!(!meaning.is_empty(), "`{key}` says nothing of its meaning");
        writeln!(page, "| `{key}` | {} | {default} | {meaning} |", kind(schema, property)).unwrap();
    }
}

/// The table among the forms that `value` may have, or itself.
fn table_of<'v>(schema: &'v Value, value: &'v Value) -> &'v Value {
    let forms = value.get("anyOf").and_then(Value::as_array);
    let forms = forms.into_iter().flatten().map(|form| resolved(schema, form));
    let mut tables =
        forms.filter(|form| form.get("additionalProperties") == Some(&Value::Bool(false)));
    tables.next().filter(|table| table["properties"].get("env").is_none()).unwrap_or(value)
}

/// A description as one line.
fn text(value: &Value) -> String {
    let text = value.get("description").and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// What `value` refers to, or itself.
fn resolved<'v>(schema: &'v Value, value: &'v Value) -> &'v Value {
    let inner = value.get("allOf").and_then(|all| all.get(0)).unwrap_or(value);
    match inner.get("$ref").and_then(Value::as_str) {
        Some(name) => schema.pointer(name.trim_start_matches('#')).unwrap(),
        None => inner,
    }
}

/// A default as it is written in TOML.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) if items.is_empty() => "none".into(),
        Value::Object(map) if map.is_empty() => "none".into(),
        other => format!("`{other}`"),
    }
}

/// The type in a word or two.
fn kind(schema: &Value, property: &Value) -> String {
    let property = resolved(schema, property);
    if let Some(kind) = property.get("x-type").and_then(Value::as_str) {
        return kind.into();
    }
    if let Some(items) = property.get("items") {
        return format!("list of {}", kind(schema, items));
    }
    if let Some(choices) = property.get("oneOf").or_else(|| property.get("anyOf")) {
        let kinds: Vec<String> = choices
            .as_array()
            .unwrap()
            .iter()
            .map(|choice| match choice.get("const") {
                Some(word) => format!("`{word}`"),
                None => kind(schema, choice),
            })
            .collect();
        return kinds.join(" or ");
    }
    if let Some(entry) = property.get("additionalProperties").filter(|entry| entry.is_object()) {
        return format!("table of {}", kind(schema, entry));
    }
    match property.get("type").and_then(Value::as_str) {
        Some("string") => "text",
        Some("integer") => "number",
        Some("boolean") => "`true` or `false`",
        Some("object") if property.get("properties").is_some_and(|p| p.get("env").is_some()) => {
            "`{ env = \"NAME\" }`"
        }
        Some("object") => "table, below",
        _ => "any value",
    }
    .into()
}
