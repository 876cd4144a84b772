//! The twelve replies of the validation table, as a triage service would judge them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::sync::Arc;

use backstay::policy::{Mending, Syntax};
use backstay::validate::{Asked, Checks, Rule, Schema, Shape, judge};
use backstay_decide::fault::Fault;
use backstay_wire::chat::{Choice, Finish, Part};
use jsonmend::Kind;
use serde_json::{Value, json};

const TICKET: &str = "I was charged twice for order 1182. Please refund one charge.";

/// S2's table: strict, but for a fence.
const FENCE: &str = "\
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

/// The same under `standard`: one row is another one.
const STANDARD: (&str, &str) = (
    "prose around JSON        not_json        Expecting value at char 0\n",
    "prose around JSON        ok              prose_before\n",
);

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

/// The twelve replies, how each ended, and what the ticket's service is told.
fn cases() -> Vec<(&'static str, String, Finish)> {
    let good = variant("priority", Some(json!(2)));
    let cut: String = good.chars().take(60).collect();
    let unreviewed = variant("priority", Some(json!(1))).replace("true", "false");
    let miss = variant("category", Some(json!("payments")));
    let invented = variant("evidence", Some(json!("charged three times")));
    let whole = Finish::Complete;
    vec![
        ("valid", good.clone(), whole),
        ("fenced valid", format!("```json\n{good}\n```"), whole),
        ("cut off by max tokens", cut, Finish::Truncated),
        ("refusal", "I can't help with that.".to_owned(), Finish::Refused),
        ("prose around JSON", format!("Sure! Here is the result: {good}"), whole),
        ("missing field", variant("needs_human", None), whole),
        ("enum miss", miss, whole),
        ("priority as string", variant("priority", Some(json!("2"))), whole),
        ("extra key", variant("confidence", Some(json!(0.93))), whole),
        ("evidence not in text", invented, whole),
        ("urgent, no review", unreviewed, whole),
        ("valid, wrong category", variant("category", Some(json!("shipping"))), whole),
    ]
}

/// The table under a policy. A change of the text is told, but for the fence, which S2 does not
/// print.
fn table(syntax: Syntax) -> String {
    let checks = Checks {
        shape: Shape::Schema(Arc::new(Schema::compile(&schema()).unwrap())),
        rules: Arc::from(rules()),
        mending: Arc::new(Mending { syntax, ..Mending::default() }),
    };
    let asked = Asked { input: &|_| TICKET.to_owned(), ..Asked::nothing() };
    let mut table = format!("{:24} {:15} {}\n", "case", "status", "detail");
    for (case, text, finish) in cases() {
        let choice = Choice { parts: vec![Part::Text(text)], finish, finish_word: None };
        let (status, detail) = match judge(&choice, &checks, &asked) {
            Ok(checked) => {
                let kinds = checked.edits.iter().map(|edit| edit.kind.name());
                let told: Vec<&str> = kinds.filter(|kind| *kind != "fence").collect();
                ("ok", told.join(", "))
            }
            Err(unfit) => (word(unfit.fault), unfit.errors.join("; ")),
        };
        writeln!(table, "{case:24} {status:15} {detail}").unwrap();
    }
    table
}

#[test]
fn the_twelve_replies_are_judged_as_printed_where_only_a_fence_is_taken_off() {
    assert_eq!(table(Syntax::only(&[Kind::Fence])), FENCE);
}

#[test]
fn the_standard_policy_changes_the_row_with_prose_and_no_other() {
    let (strict, mended) = STANDARD;
    assert!(FENCE.contains(strict));
    assert_eq!(table(Syntax::default()), FENCE.replace(strict, mended));
}
