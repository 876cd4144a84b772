//! What the config tests give the loader in place of the machine and the engine.

use backstay::policy::RuleText;
use backstay_gateway::config::{Checks, Outside};
use serde_json::Value;

/// The environment, the day and the checks of every test.
pub(crate) fn outside() -> Outside<'static> {
    Outside {
        env: &variable,
        today: jiff::civil::date(2026, 11, 29),
        checks: Checks { schema: &schema, rule: &rule, fits: &fits, template: &template },
    }
}

fn variable(name: &str) -> Option<String> {
    let value = match name {
        "OPENAI_API_KEY" | "ANTHROPIC_API_KEY" | "APP_KEY" => name.to_lowercase(),
        "EMPTY" => String::new(),
        "TORN" => "sk-torn\n".to_owned(),
        _ => return None,
    };
    Some(value)
}

/// Stands for the compiler of schemas: `type` must be a text.
fn schema(schema: &Value) -> Result<(), String> {
    match schema.get("type") {
        None | Some(Value::String(_)) => Ok(()),
        Some(_) => Err("/type: not a text".to_owned()),
    }
}

/// Stands for the compiler of rules: brackets must be even.
fn rule(rule: &RuleText) -> Result<(), String> {
    let count = |bracket| rule.check.matches(bracket).count();
    if count('(') == count(')') { Ok(()) } else { Err("a bracket is not closed".to_owned()) }
}

/// Stands for the compiler of templates: braces must be even.
fn template(source: &str) -> Result<(), String> {
    let count = |brace| source.matches(brace).count();
    if count('{') == count('}') { Ok(()) } else { Err("a brace is not closed".to_owned()) }
}

/// Stands for the validator: what is `required` must be there.
fn fits(schema: &Value, value: &Value) -> Result<(), String> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    match required.filter_map(Value::as_str).find(|key| value.get(key).is_none()) {
        Some(key) => Err(format!("`{key}` is missing")),
        None => Ok(()),
    }
}
