//! The recovery table, made by asking [`decide`] about every fault until the call ends.

use std::fmt::Write as _;
use std::time::Duration;

use super::reask::{Budget, SAME_ERRORS};
use super::{
    Cap, Facts, Fallback, LastResort, Next, OnRefusal, OnSemantic, OtherKey, Schema, Veto, decide,
};
use crate::backoff::Backoff;
use crate::dice::Scripted;
use crate::fault::{Fault, Side};

/// One row: a fault, possibly under a condition, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The fault.
    pub fault: Fault,
    /// Its stable code.
    pub code: &'static str,
    /// Who has to act.
    pub side: Side,
    /// What else has to hold for this row; empty for the usual case.
    pub when: &'static str,
    /// What is done with one target and no last resort.
    pub alone: String,
    /// What is done while one more tier is live.
    pub with_live_tier: String,
    /// Where the call ends with one target and a last resort.
    pub with_last_resort: String,
}

/// The usual case: early in a call of 30 s, four attempts, two re-asks, the route's own cap.
const USUAL: Facts = Facts {
    fault: Fault::ServerError,
    server_delay: None,
    veto: Veto::Absent,
    left: Duration::from_secs(29),
    attempts: 1,
    max_attempts: 4,
    tries_here: 1,
    retry: Ok(()),
    other_key: OtherKey::Nobody,
    reask: Budget::of(2),
    fallback: Fallback::HasNot,
    cap: Cap::Raisable,
    schema: Schema::Asked,
    live_elsewhere: 0,
    on_semantic: OnSemantic::Reask,
    on_refusal: OnRefusal::LastResort,
    last_resort: LastResort::HasNot,
    backoff: Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30) },
    min_attempt: Duration::from_secs(1),
};

/// The condition under which the best reply can be used after all.
const FALLBACK: &str = "a declared fallback stands in";

/// Every fault in the usual case, followed by the cases in which a fault is treated differently.
pub fn table() -> Vec<Row> {
    Fault::ALL
        .into_iter()
        .flat_map(|fault| cases(fault))
        .map(|(when, facts)| row(when, &facts))
        .collect()
}

/// The usual case of a fault, and its special ones.
fn cases(fault: Fault) -> Vec<(&'static str, Facts)> {
    let usual = Facts { fault, ..USUAL };
    let mut cases = vec![("", usual)];
    let mut when = |condition, facts| cases.push((condition, facts));
    match fault {
        Fault::RateLimited => {
            let late = Facts { server_delay: Some(Duration::from_secs(20)), ..usual };
            when("the server asks for over 25 % of the time left", late);
            when("`x-should-retry: false`", Facts { veto: Veto::Given, ..usual });
        }
        Fault::ContentPolicy | Fault::Refused | Fault::ContentFiltered => {
            when(
                "`on_refusal = \"next_tier\"`",
                Facts { on_refusal: OnRefusal::NextTier, ..usual },
            );
        }
        Fault::Truncated => {
            let own = Facts { cap: Cap::CallersOwn, ..usual };
            when("the caller's cap, a schema", own);
            when("the caller's cap, no schema", Facts { schema: Schema::None, ..own });
        }
        Fault::SchemaError => {
            when(FALLBACK, Facts { fallback: Fallback::Has, ..usual });
            let same = Budget { seen: SAME_ERRORS, ..usual.reask };
            when("the same errors for the third time", Facts { reask: same, ..usual });
        }
        Fault::SemanticError => {
            when(FALLBACK, Facts { fallback: Fallback::Has, ..usual });
            when("`on_semantic = \"reject\"`", Facts { on_semantic: OnSemantic::Reject, ..usual });
            when("`on_semantic = \"human\"`", Facts { on_semantic: OnSemantic::Human, ..usual });
        }
        Fault::ConnectFailed
        | Fault::ConnectionLost
        | Fault::NoFirstToken
        | Fault::Stalled
        | Fault::TooSlow
        | Fault::TotalTimeout
        | Fault::Overloaded
        | Fault::ServerError
        | Fault::ProviderTimeout
        | Fault::QuotaExhausted
        | Fault::Auth
        | Fault::BadRequest
        | Fault::NotFound
        | Fault::TooLarge
        | Fault::ContextExceeded
        | Fault::Paused
        | Fault::UnknownFinish
        | Fault::Empty
        | Fault::MalformedReply
        | Fault::StreamCut
        | Fault::Looping
        | Fault::NotJson => {}
    }
    cases
}

fn row(when: &'static str, facts: &Facts) -> Row {
    let last_resort = steps(Facts { last_resort: LastResort::Has, ..*facts });
    Row {
        fault: facts.fault,
        code: facts.fault.code(),
        side: facts.fault.side(),
        when,
        alone: steps(*facts).join(", "),
        with_live_tier: steps(Facts { live_elsewhere: 1, ..*facts }).join(", "),
        with_last_resort: last_resort.last().cloned().unwrap_or_default(),
    }
}

/// What is done at one target while the same fault comes again and again, up to the step that
/// leaves it. Repeated steps are counted.
fn steps(mut facts: Facts) -> Vec<String> {
    let mut dice = Scripted(Vec::new());
    let mut counted: Vec<(&str, u32)> = Vec::new();
    loop {
        let next = decide(&facts, &mut dice).next;
        match counted.last_mut() {
            Some((word, times)) if *word == word_for(next) => *times += 1,
            Some(_) | None => counted.push((word_for(next), 1)),
        }
        facts.left = facts.left.saturating_sub(Duration::from_secs(1));
        facts.attempts += 1;
        facts.tries_here += 1;
        match next {
            Next::Again { after } => facts.left = facts.left.saturating_sub(after),
            Next::Reask => facts.reask.made += 1,
            Next::RaiseCap => facts.cap = Cap::Spent,
            Next::Elsewhere | Next::Fallback | Next::Hand | Next::LastResort | Next::Fail => break,
        }
    }
    let said = |(word, times): (&str, u32)| match times {
        1 => word.to_owned(),
        _ => format!("{word} ×{times}"),
    };
    counted.into_iter().map(said).collect()
}

fn word_for(next: Next) -> &'static str {
    match next {
        Next::Again { .. } => "again",
        Next::Elsewhere => "elsewhere",
        Next::Reask => "re-ask",
        Next::RaiseCap => "raise the cap",
        Next::Fallback => "fallback",
        Next::Hand => "hand on",
        Next::LastResort => "last resort",
        Next::Fail => "fail",
    }
}

/// The table in Markdown, one line a row, with a final line break.
pub fn markdown() -> String {
    let mut out = String::from(
        "| fault | code | side | alone | another tier live | alone, with a last resort |\n\
         |---|---|---|---|---|---|\n",
    );
    for row in table() {
        let when = if row.when.is_empty() { String::new() } else { format!(", {}", row.when) };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "| {:?}{when} | `{}` | {} | {} | {} | {} |",
            row.fault, row.code, row.side, row.alone, row.with_live_tier, row.with_last_resort,
        );
    }
    out
}
