//! Healthy replies: shape, usage, cap, schema.

use serde_json::{Value, json};

use crate::case::{FORMS, Form, body_case, case, gold, knowing};
use crate::client::{BOTH, Dialect, TICKET, ask, data, plain, streamed};

#[tokio::test]
async fn healthy_replies_have_the_true_shape_of_their_dialect() {
    let mock = knowing().await;
    for dialect in BOTH {
        let whole = case(&mock, dialect, Form::Whole, "healthy+prompt_tokens=11").await;
        assert_eq!(whole.said(), (gold().to_string(), whole.normal()));
        let body = whole.seen.json();
        let tokens = gold().to_string().len().div_ceil(4);
        match dialect {
            Dialect::OpenAi => {
                assert_eq!(body["object"], "chat.completion");
                assert!(body["id"].as_str().is_some_and(|id| id.starts_with("chatcmpl-")));
                assert_eq!(body["usage"]["completion_tokens"], tokens);
                assert_eq!(body["usage"]["prompt_tokens"], 11);
                assert_eq!(body["usage"]["total_tokens"], tokens + 11);
                assert_eq!(body["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
                assert!(whole.seen.header("x-request-id").starts_with("req_"));
            }
            Dialect::Anthropic => {
                assert_eq!(body["type"], "message");
                assert!(body["id"].as_str().is_some_and(|id| id.starts_with("msg_01")));
                assert_eq!(body["usage"]["output_tokens"], tokens);
                assert_eq!(body["usage"]["input_tokens"], 11);
                assert!(whole.seen.header("request-id").starts_with("req_01"));
            }
        }
        let stream = case(&mock, dialect, Form::Stream, "healthy+n=5").await;
        assert_eq!(stream.said(), (gold().to_string(), stream.normal()));
        assert!(stream.seen.header("content-type").starts_with("text/event-stream"));
        assert_eq!(stream.entry.events_sent, stream.events());
        let data = data(&stream.seen.text());
        let all: Vec<Value> = data.iter().filter_map(|d| serde_json::from_str(d).ok()).collect();
        match dialect {
            Dialect::OpenAi => {
                // Role, five pieces, finish, usage; then [DONE].
                assert_eq!((all.len(), data.len()), (8, 9));
                assert_eq!(all[0]["choices"][0]["delta"]["role"], "assistant");
                assert_eq!(all[7]["choices"], json!([]));
                assert_eq!(all[7]["usage"]["completion_tokens"], tokens);
                assert!(all[..7].iter().all(|chunk| chunk["usage"].is_null()));
                assert!(all.iter().all(|c| c["object"] == "chat.completion.chunk"));
            }
            Dialect::Anthropic => {
                let kinds: Vec<&str> = all.iter().filter_map(|e| e["type"].as_str()).collect();
                assert_eq!(kinds[..3], ["message_start", "content_block_start", "ping"]);
                assert_eq!(kinds[3..8], ["content_block_delta"; 5]);
                assert_eq!(kinds[8..], ["content_block_stop", "message_delta", "message_stop"]);
                assert_eq!(all[9]["usage"]["output_tokens"], tokens);
                assert!(stream.seen.text().starts_with("event: message_start\ndata: {"));
            }
        }
    }
}

#[tokio::test]
async fn usage_comes_in_a_stream_only_when_asked_for() {
    let mock = knowing().await;
    let mut body = streamed(plain(Dialect::OpenAi, "healthy"));
    body["stream_options"] = json!({});
    let seen = ask(&mock, Dialect::OpenAi, &body).await;
    assert!(!seen.text().contains("usage"));
}

#[tokio::test]
async fn a_cap_is_honoured_and_said() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            let mut body = plain(dialect, "healthy+size=900");
            body["messages"][0]["content"] = json!("Tell me something");
            body.as_object_mut().expect("an object").remove("max_completion_tokens");
            body["max_tokens"] = json!(10);
            let case = body_case(&mock, dialect, form, body).await;
            let (text, finish) = case.said();
            assert_eq!(text.len(), 40, "{}", case.name());
            assert_eq!(finish, case.finish("length", "max_tokens"));
        }
    }
}

#[tokio::test]
async fn every_schema_without_a_known_answer_gets_a_valid_instance() {
    let mock = crate::client::mock().await;
    let check = jsonschema::validator_for(&crate::client::schema()).expect("a schema");
    for dialect in BOTH {
        for form in FORMS {
            let case = case(&mock, dialect, form, "healthy").await;
            let made: Value = serde_json::from_str(&case.said().0).expect("JSON");
            assert!(check.is_valid(&made), "{made}");
            let evidence = made["evidence"].as_str().expect("a string");
            assert!(!evidence.is_empty() && TICKET.contains(evidence), "{evidence}");
        }
    }
}
