//! What is written reads back with the same meaning, whatever is said.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use backstay_wire::chat::{
    Chat, Choice, Delta, Fold, Format, ImageSource, Part, Reply, Role, Tool, ToolChoice, Turn,
    Usage,
};
use backstay_wire::dialect::{Dialect, UsageEvent};
use backstay_wire::frame::sse::{Decoder, Frame};
use backstay_wire::{Finish, Loss};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

fn words() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z \\n\\\\\"{}]{1,12}", Just("[DONE]".to_owned())]
}

fn some_words() -> impl Strategy<Value = String> {
    words().prop_filter("not empty", |text| !text.is_empty())
}

// --- requests ---

fn said_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        4 => some_words().prop_map(Part::Text),
        1 => some_words().prop_map(|word| Part::Image {
            media_type: None,
            source: ImageSource::Url(format!("https://x/{word}")),
        }),
        1 => "[A-Za-z0-9+/]{0,12}".prop_map(|bytes| Part::Image {
            media_type: Some("image/png".to_owned()),
            source: ImageSource::Base64(bytes),
        }),
        1 => some_words().prop_map(|word| Part::Other(json!({ "type": "file", "file": word }))),
    ]
}

fn call() -> impl Strategy<Value = Part> {
    (some_words(), some_words(), words()).prop_map(|(id, name, arguments)| Part::ToolCall {
        id,
        name,
        arguments,
    })
}

fn turn() -> impl Strategy<Value = Turn> {
    let texts = || vec(some_words().prop_map(Part::Text), 0..3);
    prop_oneof![
        vec(said_part(), 0..4).prop_map(|parts| Turn { role: Role::User, parts }),
        (option::of(some_words()), texts(), option::of(some_words()), vec(call(), 0..3)).prop_map(
            |(thought, texts, refusal, calls)| {
                let thinking = thought.map(|text| Part::Thinking { text, signature: None });
                let refusal = refusal.map(Part::Refusal);
                let parts = thinking.into_iter().chain(texts).chain(refusal).chain(calls).collect();
                Turn { role: Role::Assistant, parts }
            }
        ),
        (some_words(), texts()).prop_map(|(id, parts)| Turn {
            role: Role::Tool,
            parts: vec![Part::ToolResult { id, parts, failed: false }],
        }),
    ]
}

fn format() -> impl Strategy<Value = Format> {
    prop_oneof![
        Just(Format::JsonObject),
        (some_words(), option::of(any::<bool>())).prop_map(|(name, strict)| Format::JsonSchema {
            name,
            schema: json!({ "type": "object" }),
            strict,
        }),
    ]
}

fn tool() -> impl Strategy<Value = Tool> {
    (some_words(), words(), option::of(any::<bool>())).prop_map(|(name, description, strict)| {
        Tool {
            name,
            description,
            parameters: json!({ "type": "object" }),
            strict,
            extra: Map::new(),
        }
    })
}

fn tool_choice() -> impl Strategy<Value = ToolChoice> {
    prop_oneof![
        Just(ToolChoice::Auto),
        Just(ToolChoice::Never),
        Just(ToolChoice::Required),
        some_words().prop_map(ToolChoice::Named),
    ]
}

fn chat() -> impl Strategy<Value = Chat> {
    let talk = (
        words(),
        vec(some_words().prop_map(Part::Text), 0..3),
        vec(turn(), 0..5),
        vec(tool(), 0..3),
        option::of(tool_choice()),
        option::of(format()),
    );
    let options = (
        option::of(any::<bool>()),
        option::of(any::<u64>()),
        vec(words(), 0..4),
        option::of(0..200_u32),
        any::<bool>(),
        any::<bool>(),
        option::of(words()),
        option::of(any::<i64>()),
    );
    (talk, options).prop_map(|(talk, options)| {
        let (model, system, turns, tools, tool_choice, format) = talk;
        let (
            parallel_tools,
            max_output_tokens,
            stop,
            hundredths,
            stream,
            include_usage,
            user,
            seed,
        ) = options;
        Chat {
            source: Some(Dialect::OpenaiChat),
            model,
            system,
            turns,
            tools,
            tool_choice,
            parallel_tools,
            max_output_tokens,
            stop,
            temperature: hundredths.and_then(|n| Number::from_f64(f64::from(n) / 100.0)),
            top_p: None,
            format,
            stream,
            include_usage,
            user,
            extra: seed.map(|seed| ("seed".to_owned(), Value::from(seed))).into_iter().collect(),
        }
    })
}

// --- replies ---

fn finish() -> impl Strategy<Value = (Finish, Option<String>)> {
    prop_oneof![
        Just((Finish::Complete, Some("stop".to_owned()))),
        Just((Finish::Truncated, Some("length".to_owned()))),
        Just((Finish::ToolUse, Some("tool_calls".to_owned()))),
        Just((Finish::ContentFiltered, Some("content_filter".to_owned()))),
        Just((Finish::Unknown, Some("a new word".to_owned()))),
        Just((Finish::Unknown, None)),
    ]
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || option::of(any::<u32>().prop_map(u64::from));
    (count(), count(), count(), count(), count()).prop_map(
        |(input, output, cached, cache_write, reasoning)| Usage {
            input,
            output,
            cached,
            cache_write,
            reasoning,
        },
    )
}

fn choice() -> impl Strategy<Value = Choice> {
    let parts = (option::of(some_words()), option::of(some_words()), vec(call(), 0..3));
    (parts, finish()).prop_map(|((thought, text, calls), (finish, finish_word))| Choice {
        parts: thought
            .map(|text| Part::Thinking { text, signature: None })
            .into_iter()
            .chain(text.map(Part::Text))
            .chain(calls)
            .collect(),
        finish,
        finish_word,
    })
}

fn reply() -> impl Strategy<Value = Reply> {
    (words(), words(), any::<u64>(), vec(choice(), 1..3), usage()).prop_map(
        |(id, model, created, choices, usage)| {
            let unknown = choices
                .iter()
                .filter(|c| c.finish == Finish::Unknown)
                .filter_map(|c| c.finish_word.as_ref().map(|w| format!("finish reason: {w}")))
                .collect();
            Reply { id, model, created, choices, usage, unknown, ..Reply::default() }
        },
    )
}

// --- streams ---

fn said() -> impl Strategy<Value = Vec<Delta>> {
    let content = prop_oneof![
        4 => some_words().prop_map(Delta::Text),
        2 => some_words().prop_map(Delta::Reasoning),
        1 => some_words().prop_map(Delta::Refusal),
    ];
    (vec(content, 0..8), vec((some_words(), some_words(), vec(some_words(), 0..4)), 0..3)).prop_map(
        |(mut deltas, calls)| {
            for (place, (id, name, fragments)) in calls.into_iter().enumerate() {
                let index = u32::try_from(place).unwrap();
                // Two calls with one id would be one call.
                deltas.push(Delta::ToolStart { index, id: format!("{place}{id}"), name });
                deltas.extend(
                    fragments.into_iter().map(|fragment| Delta::ToolArguments { index, fragment }),
                );
            }
            deltas
        },
    )
}

fn decode(bytes: &[u8], size: usize) -> Vec<Delta> {
    let mut decoder = Decoder::default();
    let mut reader = Dialect::OpenaiChat.stream_reader();
    let mut deltas = vec![];
    for piece in bytes.chunks(size) {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(frame) = decoder.next_frame().unwrap() {
            if let Frame::Event(event) = frame {
                reader.read(&event, &mut deltas).unwrap();
            }
        }
    }
    deltas.retain(|delta| *delta != Delta::Alive);
    deltas
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_written_request_reads_back_the_same(chat in chat()) {
        let written = Dialect::OpenaiChat.write_request(&chat);
        prop_assert_eq!(&written.losses, &Vec::<Loss>::new());
        prop_assert_eq!(Dialect::OpenaiChat.read_request(&written.bytes).unwrap(), chat);
    }

    #[test]
    fn a_written_reply_reads_back_the_same(reply in reply()) {
        let written = Dialect::OpenaiChat.write_reply(&reply);
        prop_assert_eq!(&written.losses, &Vec::<Loss>::new());
        prop_assert_eq!(Dialect::OpenaiChat.read_reply(&written.bytes).unwrap(), reply);
    }

    #[test]
    fn a_written_stream_reads_back_the_same(said in said(), end in finish(), usage in usage(), size in 1..200_usize) {
        let refused = said.iter().any(|d| matches!(d, Delta::Refusal(_)));
        let (mut finish, word) = end;
        if refused && finish == Finish::Complete {
            finish = Finish::Refused;
        }
        let mut want = vec![Delta::Start { id: "c".to_owned(), model: "m".to_owned() }];
        want.extend(said);
        if word.is_some() {
            want.push(Delta::Finish { finish, word });
        }
        if usage != Usage::default() {
            want.push(Delta::Usage(usage));
        }
        want.push(Delta::End);
        let mut writer = Dialect::OpenaiChat.stream_writer("m", UsageEvent::Send);
        let mut bytes = vec![];
        for delta in &want {
            writer.write(delta, &mut bytes);
        }
        prop_assert_eq!(decode(&bytes, size), want.clone());
        // The fold of a stream says what the whole reply says.
        let mut fold = Fold::default();
        for delta in &want {
            fold.push(delta);
        }
        let reply = fold.into_reply();
        let whole = Dialect::OpenaiChat.write_reply(&reply).bytes;
        let again = Dialect::OpenaiChat.read_reply(&whole).unwrap();
        prop_assert_eq!(again.choices[0].text(), reply.choices[0].text());
        prop_assert_eq!(again.choices[0].finish, reply.choices[0].finish);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(body in vec(any::<u8>(), 0..200), status in 0..700_u16) {
        let _ = Dialect::OpenaiChat.read_request(&body);
        let _ = Dialect::OpenaiChat.read_reply(&body);
        let error = Dialect::OpenaiChat.read_error(status, &body);
        prop_assert!(error.message.len() <= 2_000);
    }

    #[test]
    fn a_damaged_chunk_makes_no_reader_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut data = br#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a","tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{}"}}]},"finish_reason":null}],"usage":{"prompt_tokens":1}}"#.to_vec();
        let place = at.index(data.len());
        data[place] = byte;
        let event = backstay_wire::frame::sse::Event { data: data.clone().into(), ..Default::default() };
        let _ = Dialect::OpenaiChat.stream_reader().read(&event, &mut vec![]);
        let _ = Dialect::OpenaiChat.read_reply(&data);
        let _ = Dialect::OpenaiChat.read_request(&data);
    }
}
