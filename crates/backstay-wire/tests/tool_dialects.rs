//! Tool calls of a stream in the ways servers tell them: fragments, all so far in each fragment, the
//! whole again, indices that collide or are missing. However the bytes are cut, the calls are the
//! same.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

mod folding;

use backstay_wire::chat::{Finish, FoldEnd, Part, Quirk, Reply, Terminator};
use backstay_wire::dialect::Dialect;
use proptest::prelude::*;
use serde_json::{Value, json};

/// How the arguments come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Fragments,
    /// Each fragment has all so far.
    SoFar,
    /// The whole arguments, this often.
    Whole(usize),
    /// Fragments, then the whole.
    ThenWhole,
}

/// Which index the calls have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index {
    Own,
    Zero,
    Missing,
}

/// Which fragments of a call name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    First,
    Each,
}

#[derive(Clone, Copy, Debug)]
struct Server {
    told: Told,
    index: Index,
    named: Named,
    /// Fragments in one event.
    packed: usize,
    says_finish: bool,
}

fn servers() -> impl Strategy<Value = Server> {
    let told = prop_oneof![
        3 => Just(Told::Fragments),
        3 => Just(Told::SoFar),
        1 => Just(Told::Whole(1)),
        2 => Just(Told::Whole(2)),
        1 => Just(Told::Whole(3)),
        1 => Just(Told::ThenWhole),
    ];
    let index = prop_oneof![Just(Index::Own), Just(Index::Zero), Just(Index::Missing)];
    let named = prop_oneof![Just(Named::First), Just(Named::Each)];
    (told, index, named, 1..4_usize, any::<bool>()).prop_map(
        |(told, index, named, packed, says_finish)| Server {
            told,
            index,
            named,
            packed,
            says_finish,
        },
    )
}

fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{}".to_owned()),
        "[a-z é漢🎈\"\\\\{}\\[\\]]{0,12}".prop_map(|text| json!({ "q": text }).to_string()),
        (any::<i32>(), "\\PC{0,6}")
            .prop_map(|(n, text)| json!({ "n": n, "list": [text, {"q": {}}] }).to_string()),
    ]
}

/// `text` cut into pieces of `step` characters, at least one.
fn cut(text: &str, step: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(step).map(|piece| piece.iter().collect()).collect()
}

/// The fragments that `server` makes of the call at `at`.
fn fragments(server: Server, at: usize, arguments: &str, step: usize) -> Vec<Value> {
    let pieces = cut(arguments, step);
    let told: Vec<String> = match server.told {
        Told::Fragments => pieces,
        Told::SoFar => (1..=pieces.len()).map(|end| pieces[..end].concat()).collect(),
        Told::Whole(times) => vec![arguments.to_owned(); times],
        Told::ThenWhole => pieces.into_iter().chain([arguments.to_owned()]).collect(),
    };
    let one = |(nth, fragment): (usize, String)| {
        let mut call = json!({ "function": { "arguments": fragment } });
        match server.index {
            Index::Own => call["index"] = json!(at),
            Index::Zero => call["index"] = json!(0),
            Index::Missing => {}
        }
        if nth == 0 || server.named == Named::Each {
            call["id"] = json!(format!("c{at}"));
            call["function"]["name"] = json!("f");
        }
        call
    };
    told.into_iter().enumerate().map(one).collect()
}

fn chunk(delta: &Value, finish: &Value) -> Vec<u8> {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "id": "r", "model": "m", "choices": [choice] })).into_bytes()
}

fn stream(server: Server, calls: &[String], step: usize) -> Vec<u8> {
    let each = calls.iter().enumerate();
    let fragments: Vec<Value> =
        each.flat_map(|(at, arguments)| fragments(server, at, arguments, step)).collect();
    let mut body: Vec<u8> = Vec::new();
    for packed in fragments.chunks(server.packed) {
        body.extend(chunk(&json!({ "tool_calls": packed }), &Value::Null));
    }
    if server.says_finish {
        body.extend(chunk(&json!({}), &json!("tool_calls")));
    }
    body.extend_from_slice(b"data: [DONE]\n\n");
    body
}

/// The reply of a body that arrives in these pieces, and whether it is whole.
fn read<'a>(dialect: Dialect, pieces: impl Iterator<Item = &'a [u8]>) -> (Reply, FoldEnd) {
    let fold = folding::fold(dialect, pieces);
    let end = fold.outcome();
    (fold.into_reply(), end)
}

fn calls_of(reply: &Reply) -> Vec<(String, String, String)> {
    let call = |part: &Part| match part {
        Part::ToolCall { id, name, arguments } => {
            Some((id.clone(), name.clone(), arguments.clone()))
        }
        _ => None,
    };
    reply.choices[0].parts.iter().filter_map(call).collect()
}

const WHOLE: FoldEnd = FoldEnd::Whole { terminator: Terminator::Seen };

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn calls_are_the_same_however_a_server_tells_them_and_the_bytes_are_cut(
        server in servers(),
        calls in prop::collection::vec(arguments(), 1..4),
        (step, size) in (1..9_usize, 1..200_usize),
    ) {
        let body = stream(server, &calls, step);
        let (reply, end) = read(Dialect::OpenaiChat, body.chunks(size));
        prop_assert_eq!(end, WHOLE);
        prop_assert_eq!(reply.choices[0].finish, Finish::ToolUse);
        let numbered = calls.iter().enumerate();
        let wanted: Vec<(String, String, String)> =
            numbered.map(|(at, text)| (format!("c{at}"), "f".to_owned(), text.clone())).collect();
        prop_assert_eq!(calls_of(&reply), wanted);
        let has = |quirk| reply.quirks.contains(&quirk);
        prop_assert_eq!(has(Quirk::FinishMissing), !server.says_finish);
        prop_assert_eq!(has(Quirk::IndexMissing), server.index == Index::Missing);
        prop_assert_eq!(has(Quirk::IndexShared), server.index == Index::Zero && calls.len() > 1);
        prop_assert!(!has(Quirk::ArgumentsAgain) || server.told != Told::Fragments);
        prop_assert_eq!(has(Quirk::ArgumentsAgain), match server.told {
            Told::Fragments | Told::Whole(1) => false,
            Told::SoFar => calls.iter().any(|text| text.chars().count() > step),
            Told::Whole(_) | Told::ThenWhole => true,
        });
    }

    #[test]
    fn whole_arguments_that_differ_are_left_as_they_came(
        first in arguments(), second in arguments(), size in 1..200_usize,
    ) {
        prop_assume!(first != second);
        let call = |text: &String| json!({ "tool_calls": [{ "index": 0, "id": "c0",
            "function": { "name": "f", "arguments": text } }] });
        let mut body = chunk(&call(&first), &Value::Null);
        body.extend(chunk(&call(&second), &json!("tool_calls")));
        let (reply, _) = read(Dialect::OpenaiChat, body.chunks(size));
        prop_assert_eq!(&calls_of(&reply)[0].2, &format!("{first}{second}"));
    }

    #[test]
    fn blocks_that_tell_all_so_far_are_read_in_the_other_dialect_too(
        text in arguments(), (step, size) in (1..9_usize, 1..200_usize), again in any::<bool>(),
    ) {
        let pieces = cut(&text, step);
        let told: Vec<String> = if again {
            vec![text.clone(), text.clone()]
        } else {
            (1..=pieces.len()).map(|end| pieces[..end].concat()).collect()
        };
        let mut events = vec![
            json!({"type": "message_start", "message": {"id": "m", "model": "m", "content": []}}),
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "tool_use", "id": "c0", "name": "f", "input": {}}}),
        ];
        for piece in told {
            events.push(json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": piece}}));
        }
        events.push(json!({"type": "content_block_stop", "index": 0}));
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
        events.push(json!({"type": "message_stop"}));
        let body = events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
        let (reply, end) = read(Dialect::Anthropic, body.as_bytes().chunks(size));
        prop_assert_eq!(end, WHOLE);
        prop_assert_eq!(&calls_of(&reply)[0].2, &text);
    }
}
