//! What the guards are fed with beside the text of one answer: how sure the model was, its calls, its pace, other
//! answers, the prompt's size. And where what they find goes: metrics, and the breaker of quality.

use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::choices::{chunk, response};
use crate::client::Seen;
use crate::fixed::Fixed;
use crate::streams::{not_broken, not_whole};
use crate::told::{self, Told};
use crate::world::{HELLO, Setup, World, pairs, provider, request, short, streamed};

const OPENAI: Dialect = Dialect::OpenaiChat;

const ROUTE: &str = "deadline = \"6s\"\nmax_attempts = 1\nmax_output_tokens = 2000";

/// How often guards found `kind` in replies of `target`, as sure as `level`.
async fn found_at(world: &World, (target, kind, level): (&str, &str, &str)) -> usize {
    let metrics = world.get("/metrics").await.text();
    let labels = format!("target=\"{target}\",kind=\"{kind}\",level=\"{level}\"");
    let name = format!("backstay_guard_signals_total{{{labels}}} ");
    let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
    count.map_or(0, |count| count.parse().expect("a count"))
}

/// The same for soft signals of `r-1`.
async fn found(world: &World, kind: &str) -> usize {
    found_at(world, ("r-1", kind, "soft")).await
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

/// A message of the caller.
fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// What an agent adds to its conversation after this call: the call, its result, and a prompt.
fn gone_on(caller: Dialect, (tool, arguments): &(String, String)) -> Vec<Value> {
    let (call, result) = match caller {
        Dialect::OpenaiChat => (
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1",
                "type": "function", "function": {"name": tool, "arguments": arguments}}]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "nothing found"}),
        ),
        Dialect::Anthropic => {
            let input: Value = serde_json::from_str(arguments).expect("JSON");
            (
                json!({"role": "assistant", "content": [
                    {"type": "tool_use", "id": "c1", "name": tool, "input": input}]}),
                json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "nothing found"}]}),
            )
        }
    };
    // Without words between them, a result and a prompt become one message, which the mock answers in words.
    let words = json!({"role": "assistant", "content": "Nothing yet."});
    vec![call, result, words, user("go on")]
}

async fn called(world: &World, caller: Dialect, body: &Value, mode: Option<&str>) -> Told {
    let Some(mode) = mode else {
        let seen = world.ask(caller, body).await;
        assert_eq!(seen.status, 200, "{}", seen.text());
        return told::plain(caller, &seen.json());
    };
    let headers = [("x-backstay-stream", mode)];
    let seen = world.ask_with(caller, &headers, &streamed(body.clone())).await;
    let told = told::stream(caller, &seen);
    assert_eq!((seen.status, &told.errors), (200, &Vec::new()), "{}", seen.text());
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_makes_the_same_call_again_and_again_is_told_of_at_the_fifth() {
    for (caller, target) in pairs() {
        let setup = Setup::new();
        let world = setup.alone("r", provider(target), &["tool-call"], ROUTE).start().await;
        let mut body = request(caller, "r", "go on");
        body["tools"] = crate::pairs::tools(caller);
        for (round, mode) in [None, Some("gate"), Some("buffered"), None].into_iter().enumerate() {
            let told = called(&world, caller, &body, mode).await;
            assert_eq!(found(&world, "same_call").await, 0, "round {round}");
            let messages = body["messages"].as_array_mut().expect("messages");
            messages.extend(gone_on(caller, &told.calls[0]));
        }
        let modes = [None, Some("passthrough"), Some("gate"), Some("windowed"), Some("buffered")];
        for (before, mode) in modes.into_iter().enumerate() {
            called(&world, caller, &body, mode).await;
            let pair = format!("{}{} {mode:?}", short(caller), short(target));
            assert_eq!(found(&world, "same_call").await, before + 1, "{pair}");
        }
        // Another call before it ends the row.
        let messages = body["messages"].as_array_mut().expect("messages");
        messages.extend(gone_on(caller, &("weather".to_owned(), "{\"city\":\"Bern\"}".to_owned())));
        called(&world, caller, &body, None).await;
        assert_eq!(found(&world, "same_call").await, modes.len());
        world.stop().await;
    }
}

/// Events of a stream that say `words`.
fn events(words: impl Iterator<Item = String>) -> String {
    let event = |word| format!("data: {}\n\n", chunk(0, &json!({"content": word}), None));
    words.map(event).collect::<Vec<_>>().concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_grows_slow_behind_the_gate_is_told_and_goes_on() {
    let gate = "gate = { tokens = 8, min_tokens_per_second = 20 }";
    let letter = |n: u8| char::from(b'a' + n % 26);
    let word = |n: u8| format!("{}{}w ", letter(n), letter(n / 26));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let end = format!("data: {}\n\ndata: [DONE]\n\n", chunk(0, &json!({}), Some("stop")));
    // 100 ms between two pieces: 12 words in 1.2 s, or 120.
    for (more, slow) in [(1, 1), (10, 0)] {
        let mut pieces = vec![format!("{head}{}", events((0..10).map(word)))];
        pieces.extend((0..12).map(|piece| events((0..more).map(|n| word(10 + piece * more + n)))));
        pieces.push(end.clone());
        let fixed = Fixed::raw(pieces).await;
        let setup = Setup::new().tables(&fixed.provider("fixed"));
        let route = format!("{ROUTE}\n{gate}");
        let world = setup.alone("r", "fixed", &["healthy"], &route).start().await;
        let seen = ask_streamed(&world).await;
        let told = told::stream(OPENAI, &seen);
        assert_eq!((told.terminals, told.errors.len()), (1, 0), "{}", seen.text());
        assert_eq!(found(&world, "slow").await, slow, "{more} words at once");
        world.stop().await;
    }
}

/// A reply of these choices: whole, or as a stream whose choices come by turns.
fn choices(texts: &[String], form: &str) -> String {
    if form == "whole" {
        let choice = |(at, text): (usize, &String)| {
            json!({"index": at, "message": {"role": "assistant", "content": text},
                "finish_reason": "stop"})
        };
        let choices: Vec<Value> = texts.iter().enumerate().map(choice).collect();
        let body = json!({"id": "x", "object": "chat.completion", "created": 7, "model": "m",
            "choices": choices})
        .to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
        return format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    }
    let mut words: Vec<_> = texts.iter().map(|text| text.split_inclusive(' ')).collect();
    let mut chunks = Vec::new();
    loop {
        let before = chunks.len();
        for (at, words) in (0..).zip(&mut words) {
            chunks.extend(words.next().map(|word| chunk(at, &json!({"content": word}), None)));
        }
        if chunks.len() == before {
            break;
        }
    }
    let places = (0..).zip(texts);
    chunks.extend(places.map(|(at, _)| chunk(at, &json!({}), Some("stop"))));
    response(&chunks)
}

/// What a caller gets who asks for as many answers as there are `texts`.
async fn several(texts: &[String], form: &str) -> (World, Seen) {
    let (world, _fixed) = world(choices(texts, form)).await;
    let mut body = request(OPENAI, "r", HELLO);
    body["n"] = json!(texts.len());
    body["max_tokens"] = json!(500);
    let seen = match form {
        "whole" => world.ask(OPENAI, &body).await,
        mode => world.ask_with(OPENAI, &[("x-backstay-stream", mode)], &streamed(body)).await,
    };
    (world, seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_is_cut_off_when_each_of_its_choices_loops_and_told_when_one_does() {
    let fine = || (0..200).map(|n| format!("word{} ", n * n)).collect::<Vec<_>>().concat();
    let looping = || "The cat sat on the mat and looked at me. ".repeat(30);
    for form in ["whole", "passthrough", "gate", "windowed", "buffered"] {
        for place in [0, 2] {
            let mut texts = vec![fine(), fine(), fine()];
            texts[place] = looping();
            let (world, seen) = several(&texts, form).await;
            assert_eq!(seen.status, 200, "{form}: {}", seen.text());
            if form != "whole" {
                let told = told::stream(OPENAI, &seen);
                assert_eq!((told.terminals, told.errors), (1, vec![]), "{form}");
            }
            assert_eq!(found_at(&world, ("r-1", "loop", "hard")).await, 1, "{form}");
            world.stop().await;
        }
        let (world, seen) = several(&[looping(), looping()], form).await;
        if matches!(form, "passthrough" | "gate") {
            let told = told::stream(OPENAI, &seen);
            assert_eq!(not_broken(OPENAI, &seen, &told, "reply_looping"), [""; 0], "{form}");
        } else {
            assert_eq!(told::not_typed(OPENAI, &seen, 502, "reply_looping"), [""; 0], "{form}");
        }
        // A stream that is given up before its release tells what for, and nothing else.
        let told = if form == "windowed" { 1 } else { 2 };
        assert_eq!(found_at(&world, ("r-1", "loop", "hard")).await, told, "{form}");
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_beyond_the_eighth_are_not_watched_and_that_is_told() {
    let looping = || "The cat sat on the mat and looked at me. ".repeat(30);
    for form in ["whole", "gate", "buffered"] {
        for (count, told) in [(8, 0), (9, 1)] {
            let texts: Vec<String> = (0..count).map(|_| looping()).collect();
            let (world, seen) = several(&texts, form).await;
            // With one that is not watched nobody can say that all of it is worthless.
            let is_cut = seen.text().contains("reply_looping");
            assert_eq!(is_cut, told == 0, "{form} {count}: {}", seen.text());
            assert_eq!(found(&world, "unwatched").await, told, "{form} {count}");
            world.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loops_open_the_breaker_of_quality_and_no_other_streamed_or_whole() {
    let patient = "deadline = \"20s\"\nmax_attempts = 2\nmax_output_tokens = 60000";
    for mode in ["buffered", "windowed", "passthrough", "whole"] {
        let route = format!("{patient}\nupstream = \"as_asked\"");
        let setup = Setup::new().backed("r", "openai", &["loop+n=400"], &route);
        let world = setup.start().await;
        let ask = async || {
            let body = request(OPENAI, "r", HELLO);
            match mode {
                "whole" => world.ask(OPENAI, &body).await,
                mode => {
                    let headers = [("x-backstay-stream", mode)];
                    world.ask_with(OPENAI, &headers, &streamed(body)).await
                }
            }
        };
        for _ in 0..10 {
            ask().await;
        }
        let seen = ask().await;
        assert_eq!((seen.attempts(), seen.header("x-backstay-tier")), (1, "2"), "{mode}");
        if mode != "whole" {
            assert_eq!(not_whole(&seen, &told::stream(OPENAI, &seen)), [""; 0], "{mode}");
        }
        assert_eq!(found_at(&world, ("r-1", "loop", "hard")).await, 10, "{mode}");
        let metrics = world.get("/metrics").await.text();
        let open =
            |plane: &str| metrics.contains(&format!("open{{target=\"r-1\",plane=\"{plane}\"}} 1"));
        let opened = ["quality", "availability", "throttling"].map(open);
        assert_eq!(opened, [true, false, false], "{mode}: {metrics}");
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_that_a_provider_counts_too_few_tokens_of_is_told_each_time() {
    let mut steps = vec!["healthy"; 80];
    steps.extend(["healthy+prompt_tokens=50"; 3]);
    let world = Setup::new().alone("r", "openai", &steps, ROUTE).start().await;
    let long = "A prompt of some length, of which all is to be read. ".repeat(80);
    for _ in 0..80 {
        assert_eq!(world.ask(OPENAI, &request(OPENAI, "r", &long)).await.status, 200);
    }
    assert_eq!(found(&world, "unread").await, 0);
    let seen = world.ask(OPENAI, &request(OPENAI, "r", &long)).await;
    let notes = seen.header("x-backstay-notes");
    assert!(notes.contains("guard unread: 50 prompt tokens reported"), "{notes}");
    for told in [2, 3] {
        let seen = world.ask(OPENAI, &streamed(request(OPENAI, "r", &long))).await;
        assert_eq!(not_whole(&seen, &told::stream(OPENAI, &seen)), [""; 0]);
        assert_eq!(found(&world, "unread").await, told);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_that_was_not_seen_is_told_and_one_that_was_not_sent_is_not() {
    let said = json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant",
            "content": "I don't see any image in your message."}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 9, "total_tokens": 10}});
    let fixed = Fixed::start(&said.to_string()).await;
    let setup = Setup::new().tables(&fixed.provider("fixed"));
    let world = setup.alone("r", "fixed", &["healthy"], ROUTE).start().await;
    let mut body = request(OPENAI, "r", HELLO);
    assert_eq!(world.ask(OPENAI, &body).await.status, 200);
    assert_eq!(found(&world, "misses_attachment").await, 0);
    let url = json!({"url": "data:image/png;base64,iVBORw0KGgo="});
    body["messages"][0]["content"] =
        json!([{"type": "text", "text": HELLO}, {"type": "image_url", "image_url": url}]);
    assert_eq!(world.ask(OPENAI, &body).await.status, 200);
    assert_eq!(found(&world, "misses_attachment").await, 1);
    world.stop().await;
}
