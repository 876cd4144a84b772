//! What the guards are fed with beside text: how sure the model was.

use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::choices::{chunk, response};
use crate::client::Seen;
use crate::fixed::Fixed;
use crate::told;
use crate::world::{HELLO, Setup, World, request, streamed};

const OPENAI: Dialect = Dialect::OpenaiChat;

const ROUTE: &str = "deadline = \"6s\"\nmax_attempts = 1\nmax_output_tokens = 2000";

/// How often guards found `kind` in replies of `r-1`, softly.
async fn found(world: &World, kind: &str) -> usize {
    let metrics = world.get("/metrics").await.text();
    let name =
        format!("backstay_guard_signals_total{{target=\"r-1\",kind=\"{kind}\",level=\"soft\"}} ");
    let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
    count.map_or(0, |count| count.parse().expect("a count"))
}

/// A world whose one provider answers every request with `said`.
async fn world(said: String) -> (World, Fixed) {
    let fixed = Fixed::raw(vec![said]).await;
    let setup = Setup::new().tables(&fixed.provider("fixed"));
    (setup.alone("r", "fixed", &["healthy"], ROUTE).start().await, fixed)
}

async fn ask_streamed(world: &World) -> Seen {
    world.ask(OPENAI, &streamed(request(OPENAI, "r", HELLO))).await
}

/// How likely a token was and the two likeliest were, as Chat Completions say it.
fn odds(likely: f32) -> Value {
    let top = json!([{"token": "a", "logprob": likely}, {"token": "b", "logprob": -19.0 + likely}]);
    json!({"token": "a", "logprob": likely, "bytes": null, "top_logprobs": top})
}

/// The words of a text of few words in no order.
fn words(count: usize) -> impl Iterator<Item = &'static str> {
    (0..count).map(|n| ["one ", "two ", "ten ", "six "][(n * n * 31 + n / 3 * 7) / 5 % 4])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_entropy_of_a_reply_is_the_models_own_word_where_that_comes() {
    // Of the words alone it is low; the model was in doubt, or sure.
    for (likely, told) in [(None, 1), (Some(-1.0), 0), (Some(-0.000_01), 1)] {
        let stream: Vec<Value> = words(400)
            .map(|word| {
                let mut chunk = chunk(0, &json!({"content": word}), None);
                if let Some(likely) = likely {
                    chunk["choices"][0]["logprobs"] = json!({"content": [odds(likely)]});
                }
                chunk
            })
            .chain([chunk(0, &json!({}), Some("stop"))])
            .collect();
        let (streaming, _fixed) = world(response(&stream)).await;
        let seen = ask_streamed(&streaming).await;
        let said = told::stream(OPENAI, &seen);
        assert_eq!((said.text, said.terminals), (words(400).collect(), 1));
        let count = seen.text().matches("top_logprobs").count();
        assert_eq!(count, if likely.is_some() { 400 } else { 0 }, "they go on as they came");
        assert_eq!(found(&streaming, "low_entropy").await, told, "streamed, {likely:?}");
        streaming.stop().await;

        let text: String = words(400).collect();
        let logprobs = likely.map(|likely| json!({"content": vec![odds(likely); 400]}));
        let body = json!({"id": "x", "object": "chat.completion", "created": 7, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
                "logprobs": logprobs, "finish_reason": "stop"}]})
        .to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
        let whole = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        let (plain, _fixed) = world(whole).await;
        let mut asked = request(OPENAI, "r", HELLO);
        asked["max_tokens"] = json!(500);
        let seen = plain.ask(OPENAI, &asked).await;
        assert_eq!((seen.status, seen.text() == body), (200, true), "{}", seen.text());
        assert_eq!(found(&plain, "low_entropy").await, told, "whole, {likely:?}");
        plain.stop().await;
    }
}
