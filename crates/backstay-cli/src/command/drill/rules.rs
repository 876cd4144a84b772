//! What must hold of a case beside its verdict: requests, spacing, time, and who is named.

use std::collections::BTreeMap;
use std::time::Duration;

use backstay_mock::{End, Entry};
use serde::Serialize;

use super::told::Usage;

/// What must hold. Names of members are those of the fleet.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// `member -> [least, most]` requests, over the whole case.
    pub attempts: BTreeMap<String, [usize; 2]>,
    /// Who plays the fault, and must be asked at all for the case to say anything.
    pub faulty: Option<String>,
    /// `member ->` the wait between an answer and the next request.
    pub spacing: BTreeMap<String, Duration>,
    /// Longest time a request may take.
    pub within: Option<Duration>,
    /// The member whose model each answer must name.
    pub answered_by: Option<String>,
    /// What each answer must report.
    pub usage: Option<Usage>,
    /// What each call must have cost.
    pub cost: Option<f64>,
    /// Members on which the gateway must hang up.
    pub severed: Vec<String>,
}

/// One request as its caller saw it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Call {
    pub verdict: super::judge::Verdict,
    /// None: no head came.
    pub status: Option<u16>,
    pub outcome: String,
    /// Milliseconds from the request to the end.
    pub took_ms: f64,
    /// Milliseconds to the first byte of the body. None: none came.
    pub first_byte_ms: Option<f64>,
    pub model: Option<String>,
    pub usage: Option<Usage>,
    /// `x-backstay-cost`.
    pub cost: Option<f64>,
    /// Whether it is a valid answer.
    pub answered: bool,
}

/// One request as a provider saw it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Hit {
    /// Milliseconds since the provider started.
    pub at_ms: f64,
    pub ended_at_ms: Option<f64>,
    pub behaviour: String,
    pub model: String,
    pub status: Option<u16>,
    /// The gateway hung up.
    pub severed: bool,
}

impl From<Entry> for Hit {
    fn from(entry: Entry) -> Self {
        Self {
            at_ms: entry.at_ms,
            ended_at_ms: entry.ended_at_ms,
            behaviour: entry.behaviour,
            model: entry.model,
            status: entry.status,
            severed: entry.end == End::ClientGone,
        }
    }
}

/// What each member of the fleet saw of a case, in order of arrival.
pub(super) type Seen = Vec<(String, Vec<Hit>)>;

/// What `member` saw.
fn hits<'a>(seen: &'a Seen, member: &str) -> &'a [Hit] {
    seen.iter().find(|(name, _)| name == member).map_or(&[], |(_, hits)| hits)
}

/// Waits between an answer and the next request, in milliseconds. A request that came before the one
/// ahead of it was answered has none.
pub(super) fn spacing(hits: &[Hit]) -> Vec<f64> {
    let pairs = hits.iter().zip(hits.iter().skip(1));
    pairs
        .filter_map(|(hit, next)| Some(next.at_ms - hit.ended_at_ms?).filter(|wait| *wait >= 0.0))
        .collect()
}

/// A millisecond less than asked for is a clock's rounding.
const ROUNDING: f64 = 1.0;

/// Everything that does not hold, a sentence each. Empty: all does.
pub(super) fn broken(rules: &Rules, calls: &[Call], seen: &Seen) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(member) = rules.faulty.as_ref().filter(|member| hits(seen, member).is_empty()) {
        // What else the case expects was not put to the test.
        return vec![format!("{member}, who plays the fault, was not asked")];
    }
    for (member, [least, most]) in &rules.attempts {
        let count = hits(seen, member).len();
        if count < *least || count > *most {
            let allowed =
                if least == most { least.to_string() } else { format!("{least} to {most}") };
            told.push(format!("{member} saw {count} requests, not {allowed}"));
        }
    }
    for (member, wait) in &rules.spacing {
        told.extend(badly_spaced(member, *wait, hits(seen, member)));
    }
    for member in &rules.severed {
        if !hits(seen, member).iter().any(|hit| hit.severed) {
            told.push(format!("nobody hung up on {member}"));
        }
    }
    for call in calls {
        told.extend(badly_told(rules, call, seen));
    }
    told.dedup();
    told
}

fn badly_spaced(member: &str, wait: Duration, hits: &[Hit]) -> Vec<String> {
    let least = wait.as_secs_f64() * 1e3;
    let waits = spacing(hits);
    if waits.is_empty() {
        return vec![format!("{member} was not asked again")];
    }
    let wrong = waits.iter().filter(|seen| **seen < least - ROUNDING || **seen > least * 1.1);
    wrong
        .map(|seen| format!("{member} was asked again after {seen:.0} ms, not {least:.0} ms"))
        .collect()
}

fn badly_told(rules: &Rules, call: &Call, seen: &Seen) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(within) = rules.within
        && call.took_ms > within.as_secs_f64() * 1e3
    {
        told.push(format!("it took {:.0} ms, over {within:?}", call.took_ms));
    }
    if let Some(cost) = rules.cost
        // Costs are told with at most nine decimals.
        && call.cost.is_none_or(|seen| (seen - cost).abs() > 5e-10)
    {
        told.push(format!("the cost is {:?}, not {cost}", call.cost));
    }
    if !call.answered {
        return told;
    }
    if let Some(member) = &rules.answered_by {
        let named = call.model.as_deref().unwrap_or("none");
        if !hits(seen, member).iter().any(|hit| hit.model == named) {
            told.push(format!("the model told is {named}, none that {member} was asked for"));
        }
    }
    if rules.usage.is_some() && call.usage != rules.usage {
        told.push(format!("the usage told is {:?}, not {:?}", call.usage, rules.usage));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::super::judge::Verdict;
    use super::*;

    fn hit(at_ms: f64, ended: f64) -> Hit {
        Hit {
            at_ms,
            ended_at_ms: Some(ended),
            behaviour: "healthy".into(),
            model: "m".into(),
            status: Some(200),
            severed: false,
        }
    }

    fn call() -> Call {
        Call {
            verdict: Verdict::Pass,
            status: Some(200),
            outcome: "answer".into(),
            took_ms: 100.0,
            first_byte_ms: None,
            model: Some("m".into()),
            usage: Some(Usage { input: 3, output: 4 }),
            cost: Some(0.25),
            answered: true,
        }
    }

    fn all_hold() -> Rules {
        Rules {
            attempts: [("a".to_owned(), [2, 2]), ("b".to_owned(), [0, 0])].into(),
            faulty: Some("a".into()),
            spacing: [("a".to_owned(), Duration::from_secs(1))].into(),
            within: Some(Duration::from_millis(100)),
            answered_by: Some("a".into()),
            usage: Some(Usage { input: 3, output: 4 }),
            cost: Some(0.25),
            severed: Vec::new(),
        }
    }

    fn seen() -> Seen {
        vec![("a".to_owned(), vec![hit(0.0, 50.0), hit(1100.0, 1200.0)])]
    }

    #[test]
    fn what_holds_is_not_told() {
        assert_eq!(broken(&all_hold(), &[call()], &seen()), Vec::<String>::new());
        assert_eq!(broken(&Rules::default(), &[call()], &seen()), Vec::<String>::new());
    }

    #[test]
    fn each_rule_that_does_not_hold_is_told_by_itself() {
        type Change = fn(&mut Rules, &mut Call, &mut Vec<Hit>);
        let rows: [(Change, &str); 9] = [
            (
                |rules, _, _| _ = rules.attempts.insert("a".into(), [3, 4]),
                "a saw 2 requests, not 3 to 4",
            ),
            (|_, _, hits| hits[1].at_ms = 1040.0, "asked again after 990 ms, not 1000 ms"),
            (|_, _, hits| hits[1].at_ms = 1160.0, "asked again after 1110 ms, not 1000 ms"),
            (|rules, _, _| rules.severed.push("a".into()), "nobody hung up on a"),
            (|_, call, _| call.took_ms = 101.0, "it took 101 ms"),
            (|_, call, _| call.cost = Some(0.26), "the cost is Some(0.26)"),
            (|_, call, _| call.cost = None, "the cost is None"),
            (|_, call, _| call.model = Some("other".into()), "the model told is other"),
            (|_, call, _| call.usage = None, "the usage told is None"),
        ];
        for (change, words) in rows {
            let (mut rules, mut call, mut seen) = (all_hold(), call(), seen());
            change(&mut rules, &mut call, &mut seen[0].1);
            let told = broken(&rules, &[call], &seen);
            assert!(told.len() == 1 && told[0].contains(words), "{words}: {told:?}");
        }
    }

    #[test]
    fn a_fault_that_nobody_met_is_told_before_all_else() {
        let told = broken(&all_hold(), &[call()], &Vec::new());
        assert_eq!(told, ["a, who plays the fault, was not asked"]);
    }

    #[test]
    fn a_wait_that_never_was_is_not_honoured() {
        let mut seen = seen();
        seen[0].1.truncate(1);
        let rules = Rules { attempts: BTreeMap::new(), ..all_hold() };
        assert_eq!(broken(&rules, &[call()], &seen), ["a was not asked again"]);
    }

    #[test]
    fn requests_that_overlap_have_no_spacing() {
        assert_eq!(spacing(&[hit(0.0, 500.0), hit(100.0, 200.0), hit(300.0, 400.0)]), [100.0]);
    }
}
