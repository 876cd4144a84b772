//! The JSON Schema of the config file, for editors and for the reference page.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::file::File;

/// The JSON Schema (draft 7, which editors of TOML understand best) of the config file.
pub fn json_schema() -> Value {
    let mut schema =
        SchemaSettings::draft07().into_generator().into_root_schema_for::<File>().to_value();
    plain(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".into(), "backstay.toml".into());
    }
    schema
}

/// Takes out what TOML does not have: a key there has a value or is left out, so `null` is neither
/// a type nor a default. The integer formats of Rust go too.
fn plain(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Object(map) => {
            plain_map(map);
            map.values_mut().for_each(plain);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn plain_map(map: &mut Map<String, Value>) {
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if map.get("format").and_then(Value::as_str).is_some_and(|f| f.starts_with("uint")) {
        map.remove("format");
    }
    if let Some(Value::Array(kinds)) = map.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            map.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [only] = choices.as_slice() {
            let only = only.clone();
            map.remove("anyOf");
            match only {
                // In draft 7, keys beside a `$ref` are ignored, so it stands in a list of one.
                only if only.get("$ref").is_some() => {
                    map.insert("allOf".into(), Value::Array(vec![only]));
                }
                Value::Object(only) => map.extend(only),
                _ => {}
            }
        }
    }
}
