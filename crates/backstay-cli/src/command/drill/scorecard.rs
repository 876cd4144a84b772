//! The scorecard: verdict by fault, what the caller saw and what each provider saw, and the sums.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::judge::Verdict;
use super::plan::Case;
use super::rules::{self, Call, Hit, Seen};

/// Everything a drill found.
#[derive(Debug, Serialize)]
pub(super) struct Card {
    pub title: String,
    /// The gateway that was drilled: `embedded`, or its URL.
    pub against: String,
    /// Whether the short waits were taken.
    pub fast: bool,
    /// Whether all holds.
    pub held: bool,
    pub rows: Vec<RowCard>,
}

/// One way the gateway was set up.
#[derive(Debug, Serialize)]
pub(super) struct RowCard {
    pub name: String,
    /// `verdict -> cases`.
    pub totals: BTreeMap<&'static str, usize>,
    pub held: bool,
    pub cases: Vec<CaseCard>,
}

/// One fault.
#[derive(Debug, Serialize)]
pub(super) struct CaseCard {
    pub name: String,
    /// The worst of its calls.
    pub verdict: Verdict,
    /// Whether the verdict is one that holds, and nothing is broken.
    pub held: bool,
    /// What does not hold beside the verdict, a sentence each.
    pub broken: Vec<String>,
    /// The caller's view.
    pub calls: Vec<Call>,
    /// The providers' view, in the order of the fleet.
    pub providers: Vec<MemberCard>,
}

/// What a provider saw.
#[derive(Debug, Serialize)]
pub(super) struct MemberCard {
    pub name: String,
    pub requests: usize,
    /// Requests on which the gateway hung up.
    pub severed: usize,
    /// Waits between an answer and the next request.
    pub spacing_ms: Vec<f64>,
    pub hits: Vec<Hit>,
}

impl Card {
    pub(super) fn new(title: &str, against: &str, fast: bool, rows: Vec<RowCard>) -> Self {
        let held = rows.iter().all(|row| row.held);
        Self { title: title.to_owned(), against: against.to_owned(), fast, held, rows }
    }
}

impl RowCard {
    pub(super) fn new(name: &str, cases: Vec<CaseCard>) -> Self {
        let mut totals: BTreeMap<&'static str, usize> =
            Verdict::ALL.into_iter().map(|verdict| (verdict.word(), 0)).collect();
        for case in &cases {
            *totals.entry(case.verdict.word()).or_default() += 1;
        }
        let held = cases.iter().all(|case| case.held);
        Self { name: name.to_owned(), totals, held, cases }
    }
}

impl CaseCard {
    pub(super) fn new(case: &Case, allowed: &[Verdict], calls: Vec<Call>, seen: Seen) -> Self {
        let verdict = calls.iter().map(|call| call.verdict).max().unwrap_or(Verdict::Fail);
        let broken = rules::broken(&case.rules, &calls, &seen);
        let held = broken.is_empty() && allowed.contains(&verdict);
        let providers = seen.into_iter().map(|(name, hits)| MemberCard::new(name, hits)).collect();
        Self { name: case.name.clone(), verdict, held, broken, calls, providers }
    }
}

impl MemberCard {
    fn new(name: String, hits: Vec<Hit>) -> Self {
        Self {
            name,
            requests: hits.len(),
            severed: hits.iter().filter(|hit| hit.severed).count(),
            spacing_ms: rules::spacing(&hits),
            hits,
        }
    }
}

// --- as text ---

impl Card {
    /// The card for people, without a line break at its end.
    pub(super) fn text(&self) -> String {
        let waits = if self.fast { "fast waits" } else { "real waits" };
        let mut out = format!("{} ({}, {waits})\n", self.title, self.against);
        for row in &self.rows {
            row.write(&mut out);
        }
        out.push_str(if self.held { "\nall holds" } else { "\nNOT all holds" });
        out
    }
}

impl RowCard {
    fn write(&self, out: &mut String) {
        let _ = writeln!(out, "\n{}", self.name);
        let width = self.cases.iter().map(|case| case.name.chars().count()).max().unwrap_or(0);
        for case in &self.cases {
            let mark = if case.held { ' ' } else { '!' };
            let word = case.verdict.word();
            let _ = writeln!(
                out,
                "{mark} {word:<8} {:<width$}  {:<44}  {}",
                case.name,
                case.caller(),
                case.provider()
            );
            for sentence in &case.broken {
                let _ = writeln!(out, "           {sentence}");
            }
        }
        let totals = Verdict::ALL.map(|v| format!("{} {}", self.totals[v.word()], v.word()));
        let held = self.cases.iter().filter(|case| case.held).count();
        let _ = writeln!(out, "  {}; {held} of {} hold", totals.join(", "), self.cases.len());
    }
}

impl CaseCard {
    /// The caller's view in a line: each outcome once, and the longest time.
    fn caller(&self) -> String {
        let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
        for call in &self.calls {
            let status = call.status.map_or_else(|| "no status".to_owned(), |s| s.to_string());
            *outcomes.entry(format!("{status} {}", call.outcome)).or_default() += 1;
        }
        let told = outcomes.iter().map(|(outcome, count)| match count {
            1 if self.calls.len() == 1 => outcome.clone(),
            count => format!("{count} × {outcome}"),
        });
        let longest = self.calls.iter().map(|call| call.took_ms).fold(0.0, f64::max);
        format!("{}, {}", told.collect::<Vec<_>>().join(", "), seconds(longest))
    }

    /// The providers' view in a line.
    fn provider(&self) -> String {
        let told = self.providers.iter().map(|member| {
            let mut told = format!("{} {}", member.name, member.requests);
            if !member.spacing_ms.is_empty() && member.spacing_ms.len() <= 3 {
                let waits = member.spacing_ms.iter().map(|wait| seconds(*wait));
                let _ = write!(told, " ({} apart)", waits.collect::<Vec<_>>().join(", "));
            }
            if member.severed > 0 {
                let _ = write!(told, ", hung up on {}", member.severed);
            }
            told
        });
        told.collect::<Vec<_>>().join("; ")
    }
}

/// Milliseconds for people.
fn seconds(millis: f64) -> String {
    let time = Duration::from_secs_f64(millis.max(0.0) / 1e3);
    format!("{:.2} s", time.as_secs_f64())
}
