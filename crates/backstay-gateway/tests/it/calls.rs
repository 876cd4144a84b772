//! Tool calls in streams that are released at once: text goes on as it comes, a call waits until it
//! is whole and was judged.

use std::fmt::Write as _;

use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::fixed::Fixed;
use crate::told::{self, Told};
use crate::world::{HELLO, Setup, World, pairs, request, streamed};

/// The events of a provider's stream that says `text`, if any, and calls `weather`.
fn events(dialect: Dialect, text: &str, fragments: &[&str]) -> String {
    let mut out = String::new();
    match dialect {
        Dialect::OpenaiChat => {
            let mut put = |delta: Value, finish: Option<&str>| {
                let chunk = json!({"id": "x", "object": "chat.completion.chunk", "created": 7,
                    "model": "m", "odd": 1.50,
                    "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
                let _ = write!(out, "data: {chunk}\n\n");
            };
            put(json!({"role": "assistant", "content": null}), None);
            if !text.is_empty() {
                put(json!({"content": text}), None);
            }
            let start = json!({"name": "weather", "arguments": ""});
            put(
                json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": start}]}),
                None,
            );
            for fragment in fragments {
                let more = json!({"arguments": fragment});
                put(json!({"tool_calls": [{"index": 0, "function": more}]}), None);
            }
            put(json!({}), Some("tool_calls"));
            out.push_str("data: [DONE]\n\n");
        }
        Dialect::Anthropic => {
            let mut put = |event: Value| {
                let kind = event["type"].as_str().unwrap_or_default();
                let _ = write!(out, "event: {kind}\ndata: {event}\n\n");
            };
            put(json!({"type": "message_start", "message": {"id": "x", "type": "message",
                "role": "assistant", "model": "m", "content": [], "stop_reason": null,
                "stop_sequence": null, "odd": 1.50, "usage": {"input_tokens": 3, "output_tokens": 1}}}));
            let at = usize::from(!text.is_empty());
            if at == 1 {
                put(json!({"type": "content_block_start", "index": 0,
                    "content_block": {"type": "text", "text": ""}}));
                put(json!({"type": "content_block_delta", "index": 0,
                    "delta": {"type": "text_delta", "text": text}}));
                put(json!({"type": "content_block_stop", "index": 0}));
            }
            put(json!({"type": "content_block_start", "index": at,
                "content_block": {"type": "tool_use", "id": "c1", "name": "weather", "input": {}}}));
            for fragment in fragments {
                put(json!({"type": "content_block_delta", "index": at,
                    "delta": {"type": "input_json_delta", "partial_json": fragment}}));
            }
            put(json!({"type": "content_block_stop", "index": at}));
            put(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use",
                "stop_sequence": null}, "usage": {"output_tokens": 9}}));
            put(json!({"type": "message_stop"}));
        }
    }
    out
}

/// A route whose first target says `pieces` and whose second is healthy.
async fn world(dialect: Dialect, pieces: &[&str]) -> (World, Fixed) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let mut pieces: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
    pieces.insert(0, head.to_owned());
    let fixed = Fixed::raw(pieces).await;
    let world = Setup::new()
        .tables(&fixed.provider_in("fixed", dialect))
        .target("first", "fixed", &["healthy"])
        .target("second", "openai", &["healthy"])
        .route("r", &["first", "second"], "deadline = \"8s\"\nreasks = 0")
        .start()
        .await;
    (world, fixed)
}

async fn ask(world: &World, caller: Dialect) -> (Seen, Told) {
    let mut body = streamed(request(caller, "r", HELLO));
    body["tools"] = crate::pairs::tools(caller);
    let seen = world.ask(caller, &body).await;
    let told = told::stream(caller, &seen);
    (seen, told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streamed_call_with_cut_or_wrong_arguments_never_gets_out() {
    for (fragments, code) in [
        (&["{\"city\": ", "\"Be"][..], "reply_not_json"),
        (&["{\"city\": ", "3}"][..], "reply_schema_error"),
        (&[][..], "reply_schema_error"),
    ] {
        for (caller, target) in pairs() {
            // Nothing is out yet: another target is asked.
            let (fresh, _fixed) = world(target, &[&events(target, "", fragments)]).await;
            let (seen, told) = ask(&fresh, caller).await;
            assert_eq!(
                (seen.status, seen.header("x-backstay-tier")),
                (200, "2"),
                "{}",
                seen.text()
            );
            assert_eq!((told.terminals, told.errors.len(), told.calls.len()), (1, 0, 0));
            fresh.stop().await;
            // Text is out: one error in the stream.
            let (spoken, _fixed) = world(target, &[&events(target, "Well.", fragments)]).await;
            let (seen, told) = ask(&spoken, caller).await;
            assert_eq!((seen.status, told.text.as_str()), (200, "Well."), "{}", seen.text());
            assert_eq!((told.terminals, told.errors.len(), told.calls.len()), (0, 1, 0));
            assert_eq!(told::not_an_error(caller, &told.errors[0], code), [""; 0]);
            let row = spoken.engine().call_log().find(seen.header("x-backstay-call-id"));
            assert_eq!(row.unwrap().unwrap().outcome.as_ref(), "failed");
            spoken.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streamed_call_is_mended_before_it_gets_out() {
    let call = ("weather".to_owned(), "{\"city\": \"Bern\"}".to_owned());
    for (caller, target) in pairs() {
        for text in ["", "Well."] {
            let said = events(target, text, &["{'city':", " 'Bern',}"]);
            let (world, _fixed) = world(target, &[&said]).await;
            let (seen, told) = ask(&world, caller).await;
            assert_eq!((seen.status, told.text.as_str()), (200, text), "{}", seen.text());
            assert_eq!(told.calls, std::slice::from_ref(&call), "{}", seen.text());
            assert_eq!(told.ends(), told::WHOLE, "{}", seen.text());
            assert!(told.finish.is_some_and(|word| word.starts_with("tool")), "{}", seen.text());
            let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
            assert_eq!(row.unwrap().unwrap().outcome.as_ref(), "mended");
            world.stop().await;
        }
    }
}

/// A stream without its date, which is that of the call where it is written anew.
fn undated(stream: &str) -> String {
    let mut pieces = stream.split("\"created\":");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces
        .fold(first, |whole, piece| whole + piece.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_streamed_call_goes_on_byte_for_byte_however_the_bytes_are_split() {
    for (caller, target) in pairs() {
        for text in ["", "Well."] {
            let said = events(target, text, &["{\"city\":", " \"Bern\"}"]);
            let at = said.find("weather").unwrap();
            let splits: [&[usize]; 3] = [&[], &[at], &[40, at - 3, at + 90]];
            let mut heard = Vec::new();
            for split in splits {
                let (mut pieces, mut rest) = (Vec::new(), said.as_str());
                for end in split {
                    let (piece, after) = rest.split_at(end - (said.len() - rest.len()));
                    pieces.push(piece);
                    rest = after;
                }
                pieces.push(rest);
                let (world, _fixed) = world(target, &pieces).await;
                let (seen, told) = ask(&world, caller).await;
                assert_eq!(told.calls, [("weather".to_owned(), "{\"city\": \"Bern\"}".to_owned())]);
                assert_eq!((told.terminals, told.text.as_str()), (1, text), "{}", seen.text());
                assert_eq!(seen.header("x-backstay-outcome"), "answered");
                let text = seen.text();
                heard.push(if caller == target { text } else { undated(&text) });
                world.stop().await;
            }
            if caller == target {
                assert_eq!(heard[0], said);
            }
            assert!(heard.windows(2).all(|pair| pair[0] == pair[1]), "{heard:#?}");
        }
    }
}
