//! Whole replies from public bug reports. The streams among them are in `sse_cases.rs`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

#[path = "../../../tests/shared.rs"]
mod shared;

use backstay_wire::chat::Part;
use backstay_wire::{Dialect, Finish};
use serde_json::Value;
use shared::shared;

fn cases() -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(shared("cases/bug_reports.jsonl")?).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn reported_replies_show_what_the_judgement_needs() {
    let Some(cases) = cases() else { return };
    let reply = |id: &str| {
        let case = cases.iter().find(|case| case["id"] == id)?;
        let body = case["input"]["exchanges"][0]["body"].to_string();
        Some(Dialect::OpenaiChat.read_reply(body.as_bytes()).unwrap().choices.remove(0))
    };
    let finish = |id: &str| reply(id).map(|choice| choice.finish);
    assert_eq!(finish("B136"), Some(Finish::Refused));
    assert_eq!(finish("B139"), Some(Finish::Refused));
    // Cut at the cap with nothing but reasoning: truncated, and no text.
    let budget = reply("B140").unwrap();
    assert_eq!((budget.finish, budget.text().as_str()), (Finish::Truncated, ""));
    assert!(matches!(&budget.parts[..], [Part::Thinking { .. }]));
    assert_eq!(finish("B141"), Some(Finish::Truncated));
    assert_eq!(finish("B143"), Some(Finish::Truncated));
    // Complete, and yet no answer: reasoning only.
    let silent = reply("B142").unwrap();
    assert_eq!((silent.finish, silent.text().as_str()), (Finish::Complete, ""));
    assert_eq!(reply("B205").unwrap().text(), "");
}
