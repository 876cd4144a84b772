//! Several answers at once: each of them has to be whole before a stream ends like something whole.

use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::fixed::Fixed;
use crate::told;
use crate::world::{HELLO, Setup, World, request, streamed};

const DIALECT: Dialect = Dialect::OpenaiChat;

/// A stream of the Chat Completions API with these chunks, as a response.
pub(crate) fn response(chunks: &[Value]) -> String {
    let events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let events = events.concat();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         {events}data: [DONE]\n\n"
    )
}

pub(crate) fn chunk(index: u32, delta: &Value, finish: Option<&str>) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "created": 7, "model": "m",
        "choices": [{"index": index, "delta": delta, "finish_reason": finish}]})
}

/// The content of each choice of a streamed reply, and how many finished.
fn choices(seen: &Seen) -> (Vec<String>, usize) {
    let (mut texts, mut finished) = (Vec::new(), 0);
    for line in seen.text().lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(line).unwrap_or_default();
        for choice in event["choices"].as_array().into_iter().flatten() {
            let at = usize::try_from(choice["index"].as_u64().unwrap_or(9)).unwrap_or(9);
            texts.resize(texts.len().max(at + 1), String::new());
            texts[at].push_str(choice["delta"]["content"].as_str().unwrap_or_default());
            finished += usize::from(choice["finish_reason"].is_string());
        }
    }
    (texts, finished)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_second_choice_of_a_streamed_answer_is_not_let_through_and_good_ones_are_all_told() {
    let schema =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
    let good = r#"{"a": 1}"#;
    let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}});
    for (second, n, route, ok) in [
        (Some(r#"{"a": 2}"#), json!(2), "", true),
        (Some(r#"{"a": "bad"}"#), json!(2), "", false),
        (Some(r#"{"a": "#), json!(2), "", false),
        (Some(r#"{"a": "bad"}"#), json!(2), "stream = \"gate\"", false),
        // Without its finish.
        (None, json!(2), "", false),
        // The first one bad, whatever `n` is written like.
        (Some("-"), json!(1.0), "", false),
        (Some("-"), json!("1"), "", false),
    ] {
        let (first, second) = match second {
            Some("-") => (r#"{"a": "bad"}"#, None),
            second => (good, Some(second)),
        };
        let mut chunks = vec![chunk(0, &json!({"content": first}), None)];
        if let Some(second) = second {
            let finish = second.map(|_| "stop");
            chunks.push(chunk(1, &json!({"content": second.unwrap_or(good)}), finish));
        }
        chunks.push(chunk(0, &json!({}), Some("stop")));
        let fixed = Fixed::raw(vec![response(&chunks)]).await;
        let route = format!("deadline = \"4s\"\nmax_attempts = 1\n{route}");
        let setup = Setup::new().tables(&fixed.provider("fixed"));
        let world = setup.alone("r", "fixed", &["healthy"], &route).start().await;
        let mut body = streamed(request(Dialect::OpenaiChat, "r", HELLO));
        body["n"] = n;
        body["response_format"] = format.clone();
        let seen = world.ask(Dialect::OpenaiChat, &body).await;
        assert_eq!(seen.status, if ok { 200 } else { 502 }, "{second:?}: {}", seen.text());
        if ok {
            assert_eq!(
                choices(&seen),
                (vec![good.to_owned(), second.unwrap().unwrap().to_owned()], 2)
            );
        }
        world.stop().await;
    }
}

/// A world whose one provider says `chunks`, then `end`.
async fn world(chunks: &[Value], end: &str) -> (World, Fixed) {
    let said = response(chunks).replace("data: [DONE]\n\n", end);
    let fixed = Fixed::raw(vec![said]).await;
    let route = "deadline = \"4s\"\nmax_attempts = 1\nstream = \"gate\"\n\
        timeouts = { gap = \"300ms\" }";
    let setup = Setup::new().tables(&fixed.provider("fixed"));
    (setup.alone("r", "fixed", &["healthy"], route).start().await, fixed)
}

/// What of a stream of two choices a caller got, and how the call ended in the log.
async fn two(chunks: &[Value], end: &str) -> (u16, told::Told, (Vec<String>, usize), String) {
    let (world, _fixed) = world(chunks, end).await;
    let mut body = streamed(request(DIALECT, "r", HELLO));
    body["n"] = json!(2);
    let seen = world.ask(DIALECT, &body).await;
    let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
    let row = row.expect("a log").expect("a row");
    let outcome = row.outcome.as_ref().to_owned();
    world.stop().await;
    (seen.status, told::stream(DIALECT, &seen), choices(&seen), outcome)
}

/// A streamed choice with this text, refusal and finish.
fn choice(index: u32, said: &Value, finish: Option<&str>) -> Vec<Value> {
    let mut chunks = vec![chunk(index, said, None)];
    chunks.extend(finish.map(|finish| chunk(index, &json!({}), Some(finish))));
    chunks
}

const DONE: &str = "data: [DONE]\n\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_choice_that_is_not_whole_ends_a_released_stream_with_one_error() {
    let good = || choice(0, &json!({"content": "One."}), Some("stop"));
    let text = json!({"content": "Two"});
    for (second, end, code) in [
        (choice(1, &text, Some("frobnicated")), DONE, "reply_unknown_finish"),
        (choice(1, &text, None), DONE, "provider_stream_cut"),
        (choice(1, &text, None), "", "provider_stream_stalled"),
        (choice(1, &json!({}), Some("stop")), DONE, "reply_empty"),
        // It may still have been to come.
        (vec![], "", "provider_stream_stalled"),
    ] {
        for first_last in [false, true] {
            let chunks = if first_last {
                [second.clone(), good()].concat()
            } else {
                [good(), second.clone()].concat()
            };
            let (status, told, _, outcome) = two(&chunks, end).await;
            let case = format!("{second:?} {end}: {told:?}");
            if status == 200 {
                assert_eq!((told.terminals, told.late, told.errors.len()), (0, 0, 1), "{case}");
                assert_eq!(told::not_an_error(DIALECT, &told.errors[0], code), [""; 0], "{case}");
            } else {
                // Nothing was out yet.
                assert!(first_last && second.len() == 2, "{status} {case}");
            }
            assert_eq!(outcome, "failed", "{case}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_several_choices_ends_as_the_worst_of_them() {
    let first = || choice(0, &json!({"content": "One."}), Some("stop"));
    let text = json!({"content": "Two"});
    for (second, end, outcome) in [
        (choice(1, &text, Some("stop")), DONE, "answered"),
        // Each has finished: only the end was not said.
        (choice(1, &text, Some("stop")), "", "answered"),
        (choice(1, &text, Some("length")), DONE, "truncated"),
        (choice(1, &json!({"refusal": "No."}), Some("stop")), DONE, "refused"),
        (choice(1, &text, Some("content_filter")), DONE, "refused"),
        // The provider says that this is all.
        (vec![], DONE, "answered"),
    ] {
        let finished = 1 + usize::from(!second.is_empty());
        let chunks = [first(), second].concat();
        let (status, told, (texts, ends), ended) = two(&chunks, end).await;
        assert_eq!((status, ended.as_str()), (200, outcome), "{chunks:?}");
        assert_eq!((told.terminals, told.late, told.errors.len()), (1, 0, 0), "{chunks:?}");
        assert_eq!((texts[0].as_str(), ends), ("One.", finished));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buffered_stream_without_its_end_is_not_whole_before_every_choice_is() {
    let schema = json!({"type": "json_object"});
    let one = choice(0, &json!({"content": "{}"}), Some("stop"));
    let both = [one.clone(), choice(1, &json!({"content": "{}"}), Some("stop"))].concat();
    for (chunks, end, is_whole) in
        [(&both, "", true), (&both, DONE, true), (&one, DONE, true), (&one, "", false)]
    {
        let (world, _fixed) = world(chunks, end).await;
        let mut body = streamed(request(DIALECT, "r", HELLO));
        body["n"] = json!(2);
        body["response_format"] = schema.clone();
        let seen = world.ask(DIALECT, &body).await;
        assert_eq!(seen.status == 200, is_whole, "{end}: {}", seen.text());
        world.stop().await;
    }
}
