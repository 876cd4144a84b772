//! The twelve replies of the validation table, as a triage service would judge them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::sync::Arc;

use backstay::validate::{Asked, Checks, Rule, Schema, Shape, judge};
use backstay_decide::fault::Fault;
use backstay_wire::chat::{Choice, Finish, Part};
use serde_json::{Value, json};

const TICKET: &str = "I was charged twice for order 1182. Please refund one charge.";

const TABLE: &str = "\
case                     status          detail
valid                    ok              
fenced valid             ok              
cut off by max tokens    truncated       
refusal                  refused         
prose around JSON        not_json        Expecting value at char 0
missing field            schema_error    missing 'needs_human'
enum miss                schema_error    category 'payments' not in enum
priority as string       schema_error    'priority' should be int
extra key                schema_error    unexpected 'confidence'
evidence not in text     semantic_error  evidence is not a quote from the ticket
urgent, no review        semantic_error  priority 1 requires needs_human
valid, wrong category    ok              
";

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "category": { "enum": ["billing", "shipping", "technical", "other"] },
            "priority": { "type": "integer", "minimum": 1, "maximum": 4 },
            "summary": { "type": "string", "maxLength": 200 },
            "evidence": { "type": "string" },
            "needs_human": { "type": "boolean" }
        },
        "required": ["category", "priority", "summary", "evidence", "needs_human"],
        "additionalProperties": false
    })
}

fn rules() -> Vec<Rule> {
    let evidence = "evidence is not a quote from the ticket";
    let urgent = "priority 1 requires needs_human";
    let quote = Rule::compile("quote", "input.contains(reply.evidence)", Some(evidence), None);
    let review = "reply.priority != 1 || reply.needs_human";
    vec![quote.unwrap(), Rule::compile("review", review, Some(urgent), None).unwrap()]
}

/// A valid reply with one thing changed; `None` leaves the key out.
fn variant(key: &str, value: Option<Value>) -> String {
    let mut reply = json!({
        "category": "billing", "priority": 2, "summary": "Duplicate charge",
        "evidence": "charged twice for order 1182", "needs_human": true
    });
    let members = reply.as_object_mut().unwrap();
    match value {
        Some(value) => members.insert(key.to_owned(), value),
        None => members.shift_remove(key),
    };
    reply.to_string()
}

fn word(fault: Fault) -> &'static str {
    match fault {
        Fault::Truncated => "truncated",
        Fault::Refused => "refused",
        Fault::NotJson => "not_json",
        Fault::SchemaError => "schema_error",
        Fault::SemanticError => "semantic_error",
        other => panic!("{other:?} is not in the table"),
    }
}

#[test]
fn the_twelve_replies_are_judged_as_printed() {
    let good = variant("priority", Some(json!(2)));
    let cut: String = good.chars().take(60).collect();
    let unreviewed = variant("priority", Some(json!(1))).replace("true", "false");
    let cases = [
        ("valid", good.clone(), Finish::Complete),
        ("fenced valid", format!("```json\n{good}\n```"), Finish::Complete),
        ("cut off by max tokens", cut, Finish::Truncated),
        ("refusal", "I can't help with that.".to_owned(), Finish::Refused),
        ("prose around JSON", format!("Sure! Here is the result: {good}"), Finish::Complete),
        ("missing field", variant("needs_human", None), Finish::Complete),
        ("enum miss", variant("category", Some(json!("payments"))), Finish::Complete),
        ("priority as string", variant("priority", Some(json!("2"))), Finish::Complete),
        ("extra key", variant("confidence", Some(json!(0.93))), Finish::Complete),
        (
            "evidence not in text",
            variant("evidence", Some(json!("charged three times"))),
            Finish::Complete,
        ),
        ("urgent, no review", unreviewed, Finish::Complete),
        ("valid, wrong category", variant("category", Some(json!("shipping"))), Finish::Complete),
    ];
    let checks = Checks {
        shape: Shape::Schema(Arc::new(Schema::compile(&schema()).unwrap())),
        rules: Arc::from(rules()),
    };
    let asked = Asked { input: &|_| TICKET.to_owned() };
    let mut table = format!("{:24} {:15} {}\n", "case", "status", "detail");
    for (case, text, finish) in cases {
        let choice = Choice { parts: vec![Part::Text(text)], finish, finish_word: None };
        let (status, detail) = match judge(&choice, &checks, &asked) {
            Ok(_) => ("ok", String::new()),
            Err(unfit) => (word(unfit.fault), unfit.errors.join("; ")),
        };
        writeln!(table, "{case:24} {status:15} {detail}").unwrap();
    }
    println!("{table}");
    assert_eq!(table, TABLE);
}
