//! Every behaviour, in both dialects, whole and streamed.

use std::collections::BTreeSet;

use backstay_mock::{End, Family, behaviours};

use crate::case::{FORMS, Form, case, knowing};
use crate::client::BOTH;

/// Every behaviour there is, in both dialects and forms: the status and the end that its family has.
#[tokio::test]
async fn every_behaviour_ends_as_its_family_does() {
    let mock = knowing().await;
    for behaviour in behaviours() {
        for dialect in BOTH {
            for form in FORMS {
                let wait = if behaviour.name.starts_with("slow") { "+wait=10ms" } else { "" };
                let model = format!("mock/{}+hold=60ms{wait}", behaviour.name);
                let case = case(&mock, dialect, form, &model).await;
                let (status, end) = match (behaviour.family, behaviour.name) {
                    (Family::Status, _) => (Some(case.seen.status), End::Complete),
                    (_, "reset") => (None, End::Reset),
                    (_, "silence") => (None, End::Cut),
                    (_, "reset-after-headers") => (Some(200), End::Reset),
                    (_, "short-body" | "hang-body") => (Some(200), End::Cut),
                    (_, "stream-cut" | "stream-stall" | "keepalive-forever") => {
                        (Some(200), End::Cut)
                    }
                    (_, "held-open") if form == Form::Stream => (Some(200), End::Cut),
                    _ => (Some(200), End::Complete),
                };
                assert_eq!(case.entry.behaviour, behaviour.name);
                assert_eq!((case.entry.status, case.entry.end), (status, end), "{}", case.name());
                let error = behaviour.family == Family::Status;
                assert_eq!(error, case.seen.status >= 400, "{}", case.name());
                assert_eq!(case.entry.stream, form == Form::Stream);
                assert!(case.entry.ended_at_ms >= Some(case.entry.at_ms));
            }
        }
    }
}

/// No behaviour goes without a test of its own, and none is tested that does not exist.
#[test]
fn every_behaviour_is_in_a_table() {
    let mut tested: BTreeSet<&str> = ["healthy", "status-503-html", "rejects-prefill"].into();
    tested.extend(crate::failures::STATUSES.iter().map(|row| row.0));
    tested
        .extend(crate::damages::DAMAGES.iter().map(|row| row.0.split('+').next().expect("a name")));
    tested.extend([
        "refusal",
        "empty-200",
        "html-200",
        "json-array-200",
        "error-in-200",
        "null-finish",
    ]);
    tested.extend(["reset", "reset-after-headers", "silence", "slow-first", "slow-headers"]);
    tested.extend(["short-body", "hang-body"]);
    tested.extend(["stream-cut", "stream-end-early", "stream-stall", "malformed-chunk", "no-done"]);
    tested.extend([
        "no-finish",
        "held-open",
        "error-event",
        "byte-drip",
        "split-utf8",
        "crlf",
        "double-terminal",
    ]);
    tested.extend(["content-after-finish", "keepalive-forever", "json-not-stream", "html-stream"]);
    tested.extend([
        "loop",
        "tool-call",
        "parallel-tools",
        "tool-args-truncated",
        "tool-args-invalid",
    ]);
    let known: BTreeSet<&str> = behaviours().iter().map(|b| b.name).collect();
    assert_eq!(tested, known);
}
