//! One call of a behaviour, with the gold answer as its healthy reply.

use backstay_mock::{Answer, End, Entry, Mock, Settings};
use serde_json::{Value, json};

use crate::client::{Dialect, Ended, Seen, ask, data, fold, newest, reply, request, streamed};

pub(crate) const FORMS: [Form; 2] = [Form::Whole, Form::Stream];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Stream,
}

/// One call of a behaviour.
pub(crate) struct Case {
    pub(crate) dialect: Dialect,
    pub(crate) form: Form,
    pub(crate) model: String,
    pub(crate) seen: Seen,
    pub(crate) entry: Entry,
}

pub(crate) fn gold() -> Value {
    json!({"category": "billing", "priority": 2, "summary": "Duplicate charge",
        "evidence": "charged twice for order 1182", "needs_human": true})
}

/// A mock that knows the right answer to [`TICKET`].
pub(crate) async fn knowing() -> Mock {
    let answers = vec![Answer { contains: "order 1182".into(), reply: gold(), text: None }];
    Mock::start(Settings { answers, ..Settings::default() }).await.expect("a mock")
}

pub(crate) async fn case(mock: &Mock, dialect: Dialect, form: Form, model: &str) -> Case {
    body_case(mock, dialect, form, request(dialect, model)).await
}

pub(crate) async fn body_case(mock: &Mock, dialect: Dialect, form: Form, body: Value) -> Case {
    let model = body["model"].as_str().expect("a model").to_owned();
    let body = if form == Form::Stream { streamed(body) } else { body };
    let seen = ask(mock, dialect, &body).await;
    Case { dialect, form, seen, entry: newest(mock).await, model }
}

impl Case {
    pub(crate) fn name(&self) -> String {
        format!("{} {:?} {:?}: {:?}", self.model, self.dialect, self.form, self.seen)
    }

    /// The reply's text and finish, and that nothing else is wrong with it.
    pub(crate) fn said(&self) -> (String, Value) {
        assert_eq!((self.seen.status, self.seen.ended), (200, Ended::Clean), "{}", self.name());
        assert_eq!(self.entry.end, End::Complete, "{}", self.name());
        match self.form {
            Form::Whole => reply(self.dialect, &self.seen.json()),
            Form::Stream => {
                let (text, finish, done) = fold(self.dialect, &self.seen.text());
                assert!(done, "{}", self.name());
                (text, finish)
            }
        }
    }

    pub(crate) fn finish(&self, openai: &str, anthropic: &str) -> Value {
        json!(if self.dialect == Dialect::OpenAi { openai } else { anthropic })
    }

    pub(crate) fn normal(&self) -> Value {
        self.finish("stop", "end_turn")
    }

    pub(crate) fn ended(&self, ended: Ended, end: End) {
        assert_eq!(self.seen.ended, ended, "{}", self.name());
        assert_eq!(self.entry.end, end, "{}", self.name());
    }

    pub(crate) fn events(&self) -> u64 {
        let text = self.seen.text();
        let comments = text.matches(": keep-alive\n\n").count();
        u64::try_from(data(&text).len() + comments).expect("a count")
    }
}

pub(crate) fn object(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The first half of the gold answer.
pub(crate) fn half() -> String {
    let all = gold().to_string();
    all.chars().take(all.len() / 2).collect()
}

/// The gold answer with one field replaced.
pub(crate) fn with(key: &str, value: Value) -> Value {
    let mut made = gold();
    made[key] = value;
    made
}
