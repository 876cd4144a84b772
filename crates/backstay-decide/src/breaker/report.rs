//! What the end of one call says about its target, thing by thing.

use super::Verdict;
use crate::fault::Fault;

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Text: its quality is not judged.
    #[default]
    Free,
    /// Text that is watched for loops while it comes.
    Watched,
    /// An answer of a given shape.
    Structured,
}

/// What our own pacing believed when the call was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Paced {
    /// There was room: a 429 is news.
    #[default]
    HadRoom,
    /// There was none: a 429 is what we asked for.
    WasFull,
}

/// Whose limit cut the wait, if one did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cut {
    /// The route's.
    #[default]
    Route,
    /// The caller's own, shorter deadline: that says nothing about the target.
    Caller,
}

/// How a call ended, and under which circumstances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// What went wrong; `None`: nothing.
    pub fault: Option<Fault>,
    /// What was asked for.
    pub shape: Shape,
    /// What our own pacing believed.
    pub paced: Paced,
    /// Whose limit cut the wait.
    pub cut: Cut,
}

/// One verdict for each thing that can be wrong with a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether it is up.
    pub availability: Verdict,
    /// Whether it takes as many calls as it is given.
    pub throttling: Verdict,
    /// Whether its answers have the shape that was asked for.
    pub quality: Verdict,
    /// All three as one, for [`Separation::Combined`](super::Separation::Combined).
    pub combined: Verdict,
}

impl Report {
    /// Nothing is known: the caller left.
    pub const NEUTRAL: Self = Self {
        availability: Verdict::Neutral,
        throttling: Verdict::Neutral,
        quality: Verdict::Neutral,
        combined: Verdict::Neutral,
    };

    /// What `seen` says.
    pub fn of(seen: Seen) -> Self {
        if seen.cut == Cut::Caller && seen.fault.is_some_and(is_timeout) {
            return Self::NEUTRAL;
        }
        let availability = seen.fault.map_or(Verdict::Success, Fault::availability);
        let throttling = throttling(seen);
        let quality = quality(seen);
        Self { availability, throttling, quality, combined: combined(seen, availability, quality) }
    }

    /// The same of a call whose first content came late, by the target's own past.
    #[must_use]
    pub fn slowed(self) -> Self {
        let or = |verdict, late| if verdict == Verdict::Success { late } else { verdict };
        Self {
            availability: or(self.availability, Verdict::Soft),
            combined: or(self.combined, Verdict::Failure),
            ..self
        }
    }
}

fn is_timeout(fault: Fault) -> bool {
    matches!(fault, Fault::NoFirstToken | Fault::Stalled | Fault::TotalTimeout)
}

/// A 429 counts only if it is news; 503 and 529 are load shed before any limit of ours.
fn throttling(seen: Seen) -> Verdict {
    match (seen.fault, seen.paced) {
        (Some(Fault::RateLimited), Paced::WasFull) => Verdict::Neutral,
        (Some(Fault::RateLimited | Fault::Overloaded), _) => Verdict::Soft,
        (None, _) => Verdict::Success,
        (Some(fault), _) if fault.availability() == Verdict::Success => Verdict::Success,
        (Some(_), _) => Verdict::Neutral,
    }
}

/// Only a whole answer can have a bad shape: one that was refused, filtered or cut has none. A loop is
/// bad whatever was asked for.
fn quality(seen: Seen) -> Verdict {
    match (seen.shape, seen.fault) {
        (_, Some(Fault::Looping)) => Verdict::Failure,
        (Shape::Structured | Shape::Watched, None) => Verdict::Success,
        (Shape::Structured, Some(Fault::NotJson | Fault::SchemaError | Fault::SemanticError)) => {
            Verdict::Failure
        }
        _ => Verdict::Neutral,
    }
}

/// Seed S1: "combining HTTP 429/503 errors, P99 latency exceptions, and structural parse failures".
fn combined(seen: Seen, availability: Verdict, quality: Verdict) -> Verdict {
    if seen.fault == Some(Fault::RateLimited) || quality == Verdict::Failure {
        return Verdict::Failure;
    }
    availability
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(seen: Seen) -> [char; 4] {
        told(Report::of(seen))
    }

    fn told(report: Report) -> [char; 4] {
        [report.availability, report.throttling, report.quality, report.combined].map(|verdict| {
            match verdict {
                Verdict::Success => '+',
                Verdict::Failure => '-',
                Verdict::Soft => '~',
                Verdict::Neutral => '.',
            }
        })
    }

    /// availability, throttling, quality, combined; for a call that asked for a shape.
    #[test]
    fn each_fault_speaks_of_the_things_it_is_about() {
        let row = |fault| match fault {
            Fault::ConnectFailed
            | Fault::ConnectionLost
            | Fault::NoFirstToken
            | Fault::Stalled
            | Fault::TotalTimeout
            | Fault::ServerError
            | Fault::ProviderTimeout
            | Fault::Empty
            | Fault::MalformedReply
            | Fault::StreamCut => "-..-",
            Fault::Overloaded => "-~.-",
            Fault::RateLimited => ".~.-",
            Fault::QuotaExhausted
            | Fault::Auth
            | Fault::BadRequest
            | Fault::NotFound
            | Fault::TooLarge
            | Fault::ContextExceeded
            | Fault::ContentPolicy => "....",
            Fault::Refused
            | Fault::ContentFiltered
            | Fault::Truncated
            | Fault::Paused
            | Fault::UnknownFinish => "++.+",
            Fault::TooSlow => "~..~",
            Fault::Looping | Fault::NotJson | Fault::SchemaError | Fault::SemanticError => "++--",
        };
        for fault in Fault::ALL {
            let seen = Seen { fault: Some(fault), shape: Shape::Structured, ..Seen::default() };
            assert_eq!(String::from_iter(verdicts(seen)), row(fault), "{fault}");
        }
    }

    #[test]
    fn circumstances_change_what_an_end_says() {
        let base = Seen::default();
        let rows = [
            (base, "++.+"),
            (Seen { shape: Shape::Structured, ..base }, "++++"),
            (Seen { shape: Shape::Watched, ..base }, "++++"),
            (Seen { shape: Shape::Watched, fault: Some(Fault::NotJson), ..base }, "++.+"),
            (Seen { fault: Some(Fault::NotJson), ..base }, "++.+"),
            (Seen { fault: Some(Fault::RateLimited), paced: Paced::WasFull, ..base }, "...-"),
            (Seen { fault: Some(Fault::Overloaded), paced: Paced::WasFull, ..base }, "-~.-"),
            (Seen { fault: Some(Fault::NoFirstToken), cut: Cut::Caller, ..base }, "...."),
            (Seen { fault: Some(Fault::Stalled), cut: Cut::Caller, ..base }, "...."),
            (Seen { fault: Some(Fault::TotalTimeout), cut: Cut::Caller, ..base }, "...."),
            (Seen { fault: Some(Fault::ServerError), cut: Cut::Caller, ..base }, "-..-"),
            (Seen { cut: Cut::Caller, ..base }, "++.+"),
        ];
        for (seen, says) in rows {
            assert_eq!(String::from_iter(verdicts(seen)), says, "{seen:?}");
        }
    }

    #[test]
    fn a_late_first_content_counts_once_and_makes_nothing_better() {
        let base = Seen::default();
        let rows = [
            (base, "~+.-"),
            (Seen { shape: Shape::Structured, ..base }, "~++-"),
            (Seen { shape: Shape::Structured, fault: Some(Fault::SchemaError), ..base }, "~+--"),
            (Seen { fault: Some(Fault::StreamCut), ..base }, "-..-"),
            (Seen { fault: Some(Fault::NoFirstToken), cut: Cut::Caller, ..base }, "...."),
        ];
        for (seen, says) in rows {
            assert_eq!(String::from_iter(told(Report::of(seen).slowed())), says, "{seen:?}");
        }
    }
}
