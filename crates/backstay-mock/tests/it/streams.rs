//! The family `stream`.

use backstay_mock::{End, Family, behaviours};
use serde_json::{Value, json};

use crate::case::{Form, body_case, case, gold, knowing, object};
use crate::client::{BOTH, Dialect, Ended, ask, data, fold, newest, plain, reply, request};

#[tokio::test]
async fn streams_break_where_they_say() {
    let mock = knowing().await;
    let begun = |text: &str| !text.is_empty() && gold().to_string().starts_with(text);
    for dialect in BOTH {
        for (name, ended, end) in [
            ("stream-cut", Ended::Closed, End::Cut),
            ("stream-end-early", Ended::Clean, End::Complete),
            ("stream-stall", Ended::Quiet, End::ClientGone),
        ] {
            let case = case(&mock, dialect, Form::Stream, &format!("{name}+n=8+at=3")).await;
            case.ended(ended, end);
            let (text, finish, done) = fold(dialect, &case.seen.text());
            assert!(begun(&text), "{}", case.name());
            assert_eq!((finish, done), (Value::Null, false));
            let before = if dialect == Dialect::OpenAi { 1 } else { 3 };
            assert_eq!((case.entry.events_sent, case.events()), (before + 3, before + 3));
            // Nothing but the opening when the fault strikes at 0.
            let early = format!("{name}+n=8+at=0+hold=50ms");
            let early = body_case(&mock, dialect, Form::Stream, request(dialect, &early)).await;
            assert_eq!(fold(dialect, &early.seen.text()).0, "");
        }
        let late = case(&mock, dialect, Form::Stream, "error-event+at=2+n=8").await;
        late.ended(Ended::Clean, End::Complete);
        let (text, finish, done) = fold(dialect, &late.seen.text());
        assert!(begun(&text) && finish.is_null() && !done);
        let last = object(data(&late.seen.text()).last().expect("an event"));
        assert!(last["error"]["type"].is_string(), "{last}");

        let bad = case(&mock, dialect, Form::Stream, "malformed-chunk+n=8").await;
        bad.ended(Ended::Clean, End::Complete);
        let broken = data(&bad.seen.text())
            .iter()
            .filter(|d| *d != "[DONE]" && serde_json::from_str::<Value>(d).is_err())
            .count();
        assert_eq!(broken, 1);
        assert!(fold(dialect, &bad.seen.text()).2);
    }
}

#[tokio::test]
async fn streams_end_wrongly_as_they_say() {
    let mock = knowing().await;
    for dialect in BOTH {
        let no_done = case(&mock, dialect, Form::Stream, "no-done").await;
        no_done.ended(Ended::Clean, End::Complete);
        let folded = fold(dialect, &no_done.seen.text());
        assert_eq!(folded, (gold().to_string(), no_done.normal(), false));

        let no_finish = case(&mock, dialect, Form::Stream, "no-finish").await;
        assert_eq!(no_finish.said(), (gold().to_string(), Value::Null));

        let twice = case(&mock, dialect, Form::Stream, "double-terminal").await;
        assert_eq!(twice.said(), (gold().to_string(), twice.normal()));
        let terminal = if dialect == Dialect::OpenAi { "[DONE]" } else { "event: message_stop" };
        assert_eq!(twice.seen.text().matches(terminal).count(), 2);

        let after = case(&mock, dialect, Form::Stream, "content-after-finish+n=8").await;
        let (text, finish) = after.said();
        assert_eq!(finish, after.normal());
        assert!(text.starts_with(&gold().to_string()) && text.len() > gold().to_string().len());

        let json = case(&mock, dialect, Form::Stream, "json-not-stream").await;
        assert_eq!(json.seen.header("content-type"), "application/json");
        assert_eq!(reply(dialect, &json.seen.json()), (gold().to_string(), json.normal()));
        let page = case(&mock, dialect, Form::Stream, "html-stream").await;
        assert!(page.seen.header("content-type").starts_with("text/html"));
        assert!(page.seen.text().starts_with("<!DOCTYPE html>"));
    }
}

#[tokio::test]
async fn streams_in_odd_writes_still_say_the_same() {
    let mock = knowing().await;
    for dialect in BOTH {
        let drip = case(&mock, dialect, Form::Stream, "byte-drip+n=4").await;
        assert_eq!(drip.said(), (gold().to_string(), drip.normal()));
        assert!(drip.seen.reads > 50, "{} reads", drip.seen.reads);
        assert_eq!(drip.entry.events_sent, drip.events());

        let crlf = case(&mock, dialect, Form::Stream, "crlf").await;
        assert_eq!(crlf.said(), (gold().to_string(), crlf.normal()));
        let text = crlf.seen.text();
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());

        let mut body = plain(dialect, "split-utf8+size=300+n=10");
        body["messages"][0]["content"] = json!("Write me a poem");
        let split = body_case(&mock, dialect, Form::Stream, body).await;
        let (text, _) = split.said();
        let wide = text.chars().filter(|c| c.len_utf8() > 1).count();
        assert!(wide > 10, "{text}");
        assert_eq!(split.entry.events_sent, split.events());
        // A write a piece: more reads than there are events.
        assert!(u64::try_from(split.seen.reads).expect("a count") > split.entry.events_sent);

        let round = case(&mock, dialect, Form::Stream, "loop+n=12").await;
        let text = round.said().0;
        let phrase = text.split_inclusive(". ").next().expect("a phrase");
        assert_eq!(text, phrase.repeat(12));

        let mut alive = request(dialect, "keepalive-forever+gap=10ms+hold=400ms");
        alive["stream"] = json!(true);
        let seen = ask(&mock, dialect, &alive).await;
        let entry = newest(&mock).await;
        assert_eq!((seen.ended, entry.end), (Ended::Closed, End::Cut));
        assert_eq!(fold(dialect, &seen.text()), (String::new(), Value::Null, false));
        assert!(entry.events_sent > 20, "{}", entry.events_sent);
    }
}

/// What the stream family does where no stream was asked for.
#[tokio::test]
async fn stream_faults_of_a_plain_reply_are_the_nearest_thing() {
    let mock = knowing().await;
    for dialect in BOTH {
        for behaviour in behaviours().iter().filter(|b| b.family == Family::Stream) {
            let model = format!("{}+hold=60ms", behaviour.name);
            let case = case(&mock, dialect, Form::Whole, &model).await;
            let (seen, end) = (&case.seen, case.entry.end);
            assert_eq!((seen.status, case.entry.events_sent), (200, 0), "{}", case.name());
            match behaviour.name {
                "stream-cut" | "stream-stall" => case.ended(Ended::Closed, End::Cut),
                "keepalive-forever" => {
                    assert!(end == End::Cut && seen.body.iter().all(|b| *b == b'\n'));
                }
                "stream-end-early" | "malformed-chunk" => {
                    case.ended(Ended::Clean, End::Complete);
                    assert!(serde_json::from_slice::<Value>(&seen.body).is_err());
                }
                "error-event" => assert!(seen.json()["error"].is_object()),
                "html-stream" => assert!(seen.text().starts_with("<!DOCTYPE html>")),
                "no-finish" => assert_eq!(case.said(), (gold().to_string(), Value::Null)),
                "loop" => assert!(case.said().0.len() > 1_000),
                _ => assert_eq!(case.said(), (gold().to_string(), case.normal())),
            }
        }
    }
}
