//! The reply and its schema.

use serde_json::{Value, json};

/// The triage of a batch of support tickets: what structured replies look like.
pub(crate) fn reply(tickets: u32) -> String {
    let categories = ["billing", "outage", "account", "other"];
    let ticket = |number: u32| {
        let category = categories[number as usize % categories.len()];
        json!({
            "ticket": format!("T-{:05}", 10_000 + number),
            "category": category,
            "priority": 1 + number % 4,
            "needs_human": number % 3 == 0,
            "summary": format!("Customer {number} cannot open the invoice of \"May\"; it ends in an error."),
            "quote": "It says the page is gone\nand I was charged twice.",
            "confidence": 0.875,
            "customer": {"id": 9_000_000_000_u64 + u64::from(number), "mail": "ana@example.test", "plan": null},
            "tags": ["invoice", "double charge", "urgent"],
        })
    };
    json!({"tickets": (0..tickets).map(ticket).collect::<Vec<_>>(), "language": "en"}).to_string()
}

/// Types, members, ranges, lengths, patterns, references and a closed set of keys.
pub(crate) fn schema() -> Value {
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let customer = object(
        json!({
            "id": {"type": "integer", "minimum": 1},
            "mail": {"type": "string", "pattern": "^[^@ ]+@[^@ ]+$"},
            "plan": {"anyOf": [{"type": "string", "maxLength": 40}, {"type": "null"}]},
        }),
        json!(["id", "mail", "plan"]),
    );
    let ticket = object(
        json!({
            "ticket": {"type": "string", "pattern": "^T-[0-9]{5}$"},
            "category": {"enum": ["billing", "outage", "account", "other"]},
            "priority": {"type": "integer", "minimum": 1, "maximum": 4},
            "needs_human": {"type": "boolean"},
            "summary": {"type": "string", "minLength": 1, "maxLength": 200},
            "quote": {"type": "string", "maxLength": 500},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "customer": {"$ref": "#/$defs/customer"},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 30}, "maxItems": 5, "uniqueItems": true},
        }),
        json!([
            "ticket",
            "category",
            "priority",
            "needs_human",
            "summary",
            "quote",
            "confidence",
            "customer",
            "tags"
        ]),
    );
    let mut whole = object(
        json!({"tickets": {"type": "array", "items": {"$ref": "#/$defs/ticket"}}, "language": {"enum": ["en", "de", "es"]}}),
        json!(["tickets", "language"]),
    );
    whole["$defs"] = json!({"ticket": ticket, "customer": customer});
    whole
}
