//! Judges one reply: what the caller got, and which of the four verdicts that is.
//!
//! | verdict | meaning |
//! |---|---|
//! | pass | the right end, inside the deadline: a valid answer, or where an error is right that error |
//! | partial | text reached the caller, and then an error in its own format |
//! | safe | a typed failure or a refusal, and nothing false |
//! | fail | a false success, a failure without a type, or no end inside the deadline |

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::told::{self, Told};

/// How good an end is; the worse one is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Pass,
    Partial,
    Safe,
    Fail,
}

impl Verdict {
    pub(super) const ALL: [Self; 4] = [Self::Pass, Self::Partial, Self::Safe, Self::Fail];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Partial => "partial",
            Self::Safe => "safe",
            Self::Fail => "fail",
        }
    }
}

/// A right way to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Right {
    Answer,
    Error,
    Refusal,
}

/// How a response's body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    /// As HTTP ends one.
    Whole,
    /// The connection broke.
    Broken(String),
    /// It was still open when the caller's patience was over.
    Open,
}

/// What of a response the verdict depends on.
#[derive(Clone, Debug)]
pub(super) struct Reply<'a> {
    /// None: no head came.
    pub status: Option<u16>,
    /// The word of `x-backstay-code`, where there is one.
    pub code: Option<&'a str>,
    pub end: &'a BodyEnd,
    pub took: Duration,
    pub told: &'a Told,
}

/// What the caller asked for.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'a> {
    pub deadline: Duration,
    pub answer: &'a Answer,
    pub right: &'a [Right],
    /// Codes a right error may have. Empty: any.
    pub codes: &'a [String],
}

/// The answer that is right.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// This text, to the letter.
    Text(String),
    /// A text that is this JSON value.
    Json(serde_json::Value),
}

/// What the caller got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Answer,
    /// A failure that says which, before any text.
    Error(Vec<String>),
    /// Text, and then a failure that says which.
    Cut(Vec<String>),
    Refused,
    /// Told as a success, and none.
    FalseSuccess(String),
    /// A failure that does not say which.
    Untyped(String),
    /// No end inside the deadline.
    Hung,
}

/// A moment more than the deadline: what a loaded machine takes to hand a reply on.
const SLACK: Duration = Duration::from_millis(250);

/// What `reply` is for a caller who asked for `wanted`.
pub(super) fn outcome(reply: &Reply<'_>, wanted: &Wanted<'_>) -> Outcome {
    if *reply.end == BodyEnd::Open || reply.took > wanted.deadline + SLACK {
        return Outcome::Hung;
    }
    let Some(status) = reply.status else {
        return Outcome::Untyped("the connection broke before an answer".into());
    };
    let told = reply.told;
    if status != 200 {
        return match &told.error {
            Some(error) => Outcome::Error(words(error, reply.code)),
            None => Outcome::Untyped(format!("status {status} without a typed error")),
        };
    }
    match &told.error {
        Some(error) if told.text.is_empty() => Outcome::Error(words(error, reply.code)),
        Some(error) => Outcome::Cut(words(error, reply.code)),
        None => ended(reply, wanted.answer),
    }
}

fn words(error: &told::Error, code: Option<&str>) -> Vec<String> {
    code.map(str::to_owned).into_iter().chain(error.words.iter().cloned()).collect()
}

/// Status 200 without an error in it.
fn ended(reply: &Reply<'_>, answer: &Answer) -> Outcome {
    let told = reply.told;
    if let BodyEnd::Broken(why) = reply.end {
        return Outcome::Untyped(format!("the body broke off: {why}"));
    }
    if let Some(odd) = &told.odd {
        return Outcome::FalseSuccess(odd.clone());
    }
    let Some(finish) = told.finish.as_deref().filter(|_| told.terminators > 0) else {
        return Outcome::FalseSuccess("a clean end without a finish and a terminator".into());
    };
    if told.terminators > 1 {
        return Outcome::FalseSuccess(format!("{} terminal events", told.terminators));
    }
    if told.refusal.is_some() || ["content_filter", "refusal"].contains(&finish) {
        return Outcome::Refused;
    }
    if !["stop", "end_turn"].contains(&finish) {
        return Outcome::FalseSuccess(format!("the finish is `{finish}`"));
    }
    match answer {
        Answer::Text(text) if *text == told.text => Outcome::Answer,
        Answer::Json(value)
            if serde_json::from_str(&told.text).is_ok_and(|v: serde_json::Value| v == *value) =>
        {
            Outcome::Answer
        }
        Answer::Text(_) | Answer::Json(_) => Outcome::FalseSuccess("not the answer".into()),
    }
}

/// The verdict on an outcome.
pub(super) fn verdict(outcome: &Outcome, wanted: &Wanted<'_>) -> Verdict {
    let right = |right| wanted.right.contains(&right);
    match outcome {
        Outcome::Answer if right(Right::Answer) => Verdict::Pass,
        Outcome::Error(words) if right(Right::Error) && known(words, wanted.codes) => Verdict::Pass,
        Outcome::Refused if right(Right::Refusal) => Verdict::Pass,
        Outcome::Error(_) | Outcome::Refused => Verdict::Safe,
        Outcome::Cut(_) => Verdict::Partial,
        Outcome::Answer | Outcome::FalseSuccess(_) | Outcome::Untyped(_) | Outcome::Hung => {
            Verdict::Fail
        }
    }
}

fn known(words: &[String], codes: &[String]) -> bool {
    codes.is_empty() || words.iter().any(|word| codes.contains(word))
}

impl Outcome {
    /// The outcome in a few words.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Answer => "answer".into(),
            Self::Error(words) => format!("error {}", first(words)),
            Self::Cut(words) => format!("text, then error {}", first(words)),
            Self::Refused => "refusal".into(),
            Self::FalseSuccess(why) => format!("FALSE SUCCESS: {why}"),
            Self::Untyped(why) => format!("UNTYPED: {why}"),
            Self::Hung => "HUNG: no end inside the deadline".into(),
        }
    }
}

fn first(words: &[String]) -> &str {
    words.first().map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Told {
        Told {
            text: "all of it".into(),
            finish: Some("stop".into()),
            terminators: 1,
            ..Told::default()
        }
    }

    fn failed(text: &str) -> Told {
        let error = Some(told::Error { words: vec!["c".into()] });
        Told { text: text.into(), error, ..Told::default() }
    }

    fn judged(status: Option<u16>, end: &BodyEnd, took: u64, told: &Told, right: Right) -> Verdict {
        let answer = Answer::Text("all of it".into());
        let codes = ["c".to_owned()];
        let wanted = Wanted {
            deadline: Duration::from_secs(2),
            answer: &answer,
            right: &[right],
            codes: &codes,
        };
        let took = Duration::from_secs(took);
        verdict(&outcome(&Reply { status, code: None, end, took, told }, &wanted), &wanted)
    }

    #[test]
    fn each_end_has_its_verdict() {
        use Right::{Answer, Error, Refusal};
        use Verdict::{Fail, Partial, Pass, Safe};
        let whole = &BodyEnd::Whole;
        let broken = &BodyEnd::Broken("reset".into());
        let half = Told { text: "all".into(), ..good() };
        let no_finish = Told { finish: None, ..good() };
        let no_terminator = Told { terminators: 0, ..good() };
        let twice = Told { terminators: 2, ..good() };
        let length = Told { finish: Some("length".into()), ..good() };
        let odd = Told { odd: Some("half".into()), ..good() };
        let refused = Told { refusal: Some("no".into()), text: String::new(), ..good() };
        let filtered = Told { finish: Some("content_filter".into()), ..half.clone() };
        let other =
            Told { error: Some(told::Error { words: vec!["x".into()] }), ..Told::default() };
        let rows = [
            ("a valid answer", Some(200), whole, 1, &good(), Answer, Pass),
            ("a valid answer, late", Some(200), whole, 3, &good(), Answer, Fail),
            ("an open end", Some(200), &BodyEnd::Open, 1, &good(), Answer, Fail),
            ("an answer where an error is right", Some(200), whole, 1, &good(), Error, Fail),
            ("half of the answer", Some(200), whole, 1, &half, Answer, Fail),
            ("no finish", Some(200), whole, 1, &no_finish, Answer, Fail),
            ("no terminator", Some(200), whole, 1, &no_terminator, Answer, Fail),
            ("two terminators", Some(200), whole, 1, &twice, Answer, Fail),
            ("finish length", Some(200), whole, 1, &length, Answer, Fail),
            ("an event that is half", Some(200), whole, 1, &odd, Answer, Fail),
            ("a broken body", Some(200), broken, 1, &half, Answer, Fail),
            ("no head", None, broken, 1, &Told::default(), Answer, Fail),
            ("a typed error", Some(502), whole, 1, &failed(""), Answer, Safe),
            ("the right error", Some(400), whole, 1, &failed(""), Error, Pass),
            ("another error", Some(400), whole, 1, &other, Error, Safe),
            ("an error in an empty stream", Some(200), whole, 1, &failed(""), Answer, Safe),
            ("text and then an error", Some(200), whole, 1, &failed("all"), Answer, Partial),
            ("an error and a broken body", Some(200), broken, 1, &failed("all"), Answer, Partial),
            ("no word in the error", Some(500), whole, 1, &Told::default(), Answer, Fail),
            ("a refusal", Some(200), whole, 1, &refused, Answer, Safe),
            ("a refusal that is right", Some(200), whole, 1, &refused, Refusal, Pass),
            ("a filter's finish", Some(200), whole, 1, &filtered, Answer, Safe),
        ];
        for (name, status, end, took, told, right, verdict) in rows {
            assert_eq!(judged(status, end, took, told, right), verdict, "{name}");
        }
    }

    #[test]
    fn a_json_answer_is_compared_as_a_value() {
        let answer = Answer::Json(serde_json::json!({"a": 1, "b": 2}));
        for (text, right) in [("{\"b\":2, \"a\":1}", true), ("{\"a\":1}", false), ("{", false)] {
            let told = Told { text: text.into(), ..good() };
            let reply = Reply {
                status: Some(200),
                code: None,
                end: &BodyEnd::Whole,
                took: Duration::ZERO,
                told: &told,
            };
            assert_eq!(ended(&reply, &answer) == Outcome::Answer, right, "{text}");
        }
    }
}
