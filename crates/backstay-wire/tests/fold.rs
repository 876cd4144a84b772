//! The fold of a stream: what it adds up to, how it ends, its bound, and that in every dialect a
//! streamed reply folds to the whole one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

mod folding;

use backstay_wire::chat::{
    Choice, Delta, ErrorClass, Finish, Fold, FoldEnd, FoldFault, Part, ProviderError, Quirk, Reply,
    Terminator, Usage,
};
use backstay_wire::dialect::{Dialect, UsageEvent};
use proptest::prelude::*;

fn folded(deltas: &[Delta]) -> Fold {
    let mut fold = Fold::default();
    for delta in deltas {
        fold.push(delta);
    }
    fold
}

fn parts(deltas: &[Delta]) -> Vec<Part> {
    folded(deltas).into_reply().choices.remove(0).parts
}

fn text(words: &str) -> Delta {
    Delta::Text(words.into())
}

fn finish(finish: Finish, word: Option<&str>) -> Delta {
    Delta::Finish { finish, word: word.map(str::to_owned) }
}

fn start(index: u32, id: &str, name: &str) -> Delta {
    Delta::ToolStart { index, id: id.into(), name: name.into() }
}

fn piece(index: u32, fragment: &str) -> Delta {
    Delta::ToolArguments { index, fragment: fragment.into() }
}

fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn error(message: &str) -> ProviderError {
    ProviderError {
        class: ErrorClass::Overloaded,
        status: None,
        kind: None,
        code: None,
        param: None,
        message: message.into(),
        delay: None,
    }
}

#[test]
fn parts_stand_in_the_order_in_which_they_began() {
    let thinking = |text: &str, signature: Option<&str>| Part::Thinking {
        text: text.into(),
        signature: signature.map(str::to_owned),
    };
    let deltas = [
        Delta::Reasoning("h".into()),
        Delta::Reasoning("m".into()),
        Delta::Signature("s1".into()),
        Delta::Reasoning("more".into()),
        text("a"),
        text("b"),
        start(0, "c0", "f"),
        start(1, "c1", "g"),
        piece(1, "{\"b\""),
        piece(0, "{}"),
        piece(1, ":1}"),
        text("c"),
        Delta::Refusal("n".into()),
        Delta::Refusal("o".into()),
        Delta::Signature("s2".into()),
    ];
    assert_eq!(
        parts(&deltas),
        [
            thinking("hm", Some("s1")),
            thinking("more", None),
            Part::Text("ab".into()),
            call("c0", "f", "{}"),
            call("c1", "g", "{\"b\":1}"),
            Part::Text("c".into()),
            Part::Refusal("no".into()),
            thinking("", Some("s2")),
        ]
    );
}

#[test]
fn a_name_and_an_id_are_set_once() {
    let deltas =
        [start(0, "", "find"), start(0, "c0", "find"), start(0, "c0", "find"), piece(0, "{}")];
    assert_eq!(parts(&deltas), [call("c0", "find", "{}")]);
    let two = [start(0, "c0", "f"), piece(0, "{}"), start(0, "c9", "g"), piece(0, "[]")];
    let reply = folded(&two).into_reply();
    assert_eq!(reply.choices[0].parts, [call("c0", "f", "{}"), call("c9", "g", "[]")]);
    assert_eq!(reply.quirks, [Quirk::IndexShared]);
    let orphan = folded(&[piece(3, "{}")]).into_reply();
    assert_eq!(orphan.choices[0].parts, [call("", "", "{}")]);
    assert_eq!(orphan.quirks, [Quirk::ArgumentsFirst]);
}

#[test]
fn arguments_that_are_sent_again_are_taken_once_and_the_quirk_is_noted() {
    let fold = |fragments: &[&str]| {
        let mut deltas = vec![start(0, "c0", "f")];
        deltas.extend(fragments.iter().map(|fragment| piece(0, fragment)));
        let reply = folded(&deltas).into_reply();
        let Part::ToolCall { arguments, .. } = &reply.choices[0].parts[0] else { panic!() };
        (arguments.clone(), reply.quirks == [Quirk::ArgumentsAgain])
    };
    for (fragments, expected, noted) in [
        (&["{\"q\":", "{\"q\":\"ab", "{\"q\":\"ab\"}"][..], "{\"q\":\"ab\"}", true),
        (&["{\"a\":1}", "{\"a\":1}"][..], "{\"a\":1}", true),
        (&["{\"a\":", "1}", "{\"a\":1}", "{\"a\":1}"][..], "{\"a\":1}", true),
        (&["{\"a\":1}\n", "{\"a\":1} "][..], "{\"a\":1}", true),
        // A resending that was cut is no value.
        (&["{\"q\":", "{\"q\":\"ab"][..], "{\"q\":{\"q\":\"ab", false),
        // An object inside an object of the same beginning is no repetition.
        (&["{\"q\":", "{\"q\":\"ab\"}", "}"][..], "{\"q\":{\"q\":\"ab\"}}", false),
        // Two values that differ are ambiguous; half of one is cut.
        (&["{\"a\":1}", "{\"a\":2}"][..], "{\"a\":1}{\"a\":2}", false),
        (&["{\"a\":1}", "{\"a\":"][..], "{\"a\":1}{\"a\":", false),
        (&["{\"a\":", "1"][..], "{\"a\":1", false),
    ] {
        assert_eq!(fold(fragments), (expected.to_owned(), noted), "{fragments:?}");
    }
}

#[test]
fn counters_overwrite_and_the_first_names_stay() {
    let usage = |input, output| Delta::Usage(Usage { input, output, ..Usage::default() });
    let named = |id: &str| Delta::Start { id: id.into(), model: id.into() };
    let reply = folded(&[
        named(""),
        named("a"),
        named("b"),
        usage(Some(25), Some(1)),
        usage(None, Some(15)),
    ])
    .into_reply();
    assert_eq!((reply.usage.input, reply.usage.output), (Some(25), Some(15)));
    assert_eq!((reply.id.as_str(), reply.model.as_str()), ("a", "a"));
}

#[test]
fn the_outcome_needs_a_known_finish() {
    let stop = finish(Finish::Complete, Some("stop"));
    let odd = finish(Finish::Unknown, Some("tired"));
    let null = finish(Finish::Unknown, None);
    let whole = |terminator| FoldEnd::Whole { terminator };
    for (deltas, expected) in [
        (vec![], FoldEnd::NoEnd),
        (vec![text("a")], FoldEnd::NoEnd),
        (vec![text("a"), Delta::End], FoldEnd::NoFinish),
        (vec![null.clone(), Delta::End], FoldEnd::NoFinish),
        (vec![odd.clone(), Delta::End], FoldEnd::NoFinish),
        (vec![odd.clone()], FoldEnd::NoEnd),
        (vec![stop.clone()], whole(Terminator::Missing)),
        (vec![stop.clone(), Delta::End], whole(Terminator::Seen)),
        (vec![stop.clone(), null, Delta::End], whole(Terminator::Seen)),
        (vec![stop.clone(), odd, Delta::End], FoldEnd::NoFinish),
        (vec![Delta::Error(error("a")), Delta::Error(error("b"))], FoldEnd::Failed(error("a"))),
        (vec![stop, Delta::Error(error("a")), Delta::End], FoldEnd::Failed(error("a"))),
        (vec![finish(Finish::Truncated, None), Delta::End], whole(Terminator::Seen)),
    ] {
        assert_eq!(folded(&deltas).outcome(), expected, "{deltas:?}");
    }
}

#[test]
fn only_whole_tool_calls_and_the_end_stand_in_for_a_finish() {
    let folded = |fragment: &str, name: &str, rest: &[Delta]| {
        let mut deltas = vec![text("a"), start(0, "c", name), piece(0, fragment)];
        deltas.extend_from_slice(rest);
        folded(&deltas)
    };
    let whole = folded("{\"a\":1}", "f", &[Delta::End]);
    assert_eq!(whole.outcome(), FoldEnd::Whole { terminator: Terminator::Seen });
    let reply = whole.into_reply();
    assert_eq!(reply.choices[0].finish, Finish::ToolUse);
    assert_eq!(reply.quirks, [Quirk::FinishMissing]);
    let again = folded("{\"a\":", "f", &[piece(0, "{\"a\":1}"), Delta::End]);
    assert_eq!(again.into_reply().quirks, [Quirk::ArgumentsAgain, Quirk::FinishMissing]);
    for (fragment, name) in [("{\"a\":1", "f"), ("{}", ""), ("[]", "f"), ("", "f"), ("{}{}1", "f")]
    {
        let end = folded(fragment, name, &[Delta::End]).outcome();
        assert_eq!(end, FoldEnd::NoFinish, "{fragment}");
    }
    assert_eq!(folded("{}", "f", &[]).outcome(), FoldEnd::NoEnd);
    let second = [start(1, "d", "g"), piece(1, "{"), Delta::End];
    assert_eq!(folded("{}", "f", &second).outcome(), FoldEnd::NoFinish);
    let odd = [finish(Finish::Unknown, Some("tired")), Delta::End];
    assert_eq!(folded("{}", "f", &odd).outcome(), FoldEnd::NoFinish);
}

#[test]
fn what_comes_after_the_end_is_left_out_and_noted() {
    let stop = finish(Finish::Complete, Some("stop"));
    let fold = folded(&[text("a"), stop, Delta::End, Delta::Alive, text("b")]);
    assert!(fold.end_seen() && fold.has_content());
    let reply = fold.into_reply();
    assert_eq!(reply.choices[0].text(), "a");
    assert_eq!(reply.quirks, [Quirk::AfterEnd]);
}

#[test]
fn only_content_is_content() {
    let nothing =
        [Delta::Alive, Delta::of_choice(1, Delta::Alive), Delta::Unknown("x".into()), Delta::End];
    assert!(!folded(&nothing).has_content());
    for delta in [text("a"), Delta::Reasoning("a".into()), start(0, "a", "b")] {
        assert!(folded(&[delta]).has_content());
    }
}

#[test]
fn a_reply_over_the_bound_is_cut_and_told() {
    let mut fold = Fold::new(10);
    fold.push(&text("0123456789"));
    assert_eq!(fold.fault(), None);
    fold.push(&text("x"));
    fold.push(&Delta::Signature(String::new()));
    let fault = FoldFault { limit: 10 };
    assert_eq!(fold.fault(), Some(fault));
    fold.push(&finish(Finish::Complete, None));
    fold.push(&Delta::End);
    assert_eq!(fold.outcome(), FoldEnd::TooLarge(fault));
    assert_eq!(fold.into_reply().choices[0].text(), "0123456789");
}

#[test]
fn parts_without_text_and_unknown_elements_are_bounded_too() {
    let mut fold = Fold::new(1_000);
    for index in 0..100_000 {
        fold.push(&start(index, "", ""));
        fold.push(&Delta::Unknown(format!("{index}{}", "x".repeat(1_000))));
    }
    assert!(fold.fault().is_some());
    let reply = fold.into_reply();
    assert!(reply.choices[0].parts.len() < 20);
    assert!(reply.unknown.len() <= 64 && reply.unknown.iter().all(|what| what.len() <= 200));
}

#[test]
fn a_refusal_without_words_is_still_a_refusal_part() {
    let fold = folded(&[finish(Finish::Refused, None), Delta::End]);
    assert_eq!(fold.into_reply().choices[0].refusal(), Some(""));
}

// --- folded deltas equal the whole reply ---

/// Reads a stream of `dialect` that arrives in pieces of `step` bytes, and folds it.
fn fold_stream(dialect: Dialect, body: &[u8], step: usize) -> Fold {
    folding::fold(dialect, body.chunks(step))
}

/// What two ways of reading one reply may differ in, taken away: neighbouring texts are one (a
/// stream knows no border between them), an empty text is none, blank arguments are `{}`, `created`
/// is not in the deltas, and a count that is not known is 0 where the dialect demands a number.
fn plain(mut reply: Reply) -> Reply {
    reply.created = 0;
    reply.usage.input.get_or_insert(0);
    reply.usage.output.get_or_insert(0);
    for choice in &mut reply.choices {
        let mut parts: Vec<Part> = Vec::new();
        for part in std::mem::take(&mut choice.parts) {
            match (parts.last_mut(), part) {
                (Some(Part::Text(text)), Part::Text(more)) => text.push_str(&more),
                (_, Part::Text(text)) if text.is_empty() => {}
                (_, Part::ToolCall { id, name, arguments }) if arguments.trim().is_empty() => {
                    parts.push(Part::ToolCall { id, name, arguments: "{}".into() });
                }
                (_, part) => parts.push(part),
            }
        }
        choice.parts = parts;
    }
    reply
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z ]{1,12}",
        2 => "\\PC{1,8}",
        1 => Just("data: {\"x\"}\n\n\r\nevent: error\r".to_owned()),
        1 => Just("\u{2028}\u{0}\"\\🎈".to_owned()),
    ]
}

fn objects() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{}".to_owned()),
        Just("{\"a\": {\"b\":[1,{}]}, \"n\":12345678901234567890123}".to_owned()),
        words().prop_map(|text| serde_json::json!({ "t": text }).to_string()),
    ]
}

/// A reply that every dialect can say: reasoning, text, tool calls, in this order.
fn replies() -> impl Strategy<Value = Reply> {
    let usage = (0..9_999_u64, 0..9_999_u64, prop::option::of(0..99_u64)).prop_map(
        |(input, output, cached)| Usage {
            input: Some(input + 100),
            output: Some(output),
            cached,
            ..Usage::default()
        },
    );
    let finish = prop_oneof![
        Just(Finish::Complete),
        Just(Finish::Truncated),
        Just(Finish::ToolUse),
        Just(Finish::Refused),
    ];
    let text = prop::collection::vec(words(), 0..3);
    let calls = prop::collection::vec(("[a-z_]{1,8}", objects()), 0..4);
    (prop::option::of(words()), text, calls, finish, usage).prop_map(
        |(reasoning, text, calls, finish, usage)| {
            let thinking = |text| Part::Thinking { text, signature: None };
            let mut parts: Vec<Part> = reasoning.map(thinking).into_iter().collect();
            parts.extend(text.into_iter().map(Part::Text));
            for (at, (name, arguments)) in calls.into_iter().enumerate() {
                parts.push(call(&format!("call_{at}"), &name, &arguments));
            }
            if finish == Finish::Refused {
                parts.retain(|part| !matches!(part, Part::ToolCall { .. }));
                parts.push(Part::Refusal("not that".into()));
            }
            let choices = vec![Choice { parts, finish, finish_word: None }];
            let (id, model) = ("r1".into(), "m".into());
            Reply { id, model, choices, usage, ..Reply::default() }
        },
    )
}

/// The deltas of `reply`, each text and each argument text cut in several.
fn torn(reply: &Reply, at: usize) -> Vec<Delta> {
    let mut torn = Vec::new();
    for delta in reply.deltas() {
        let halves = |text: &str| {
            let middle = text.floor_char_boundary(at % (text.len() + 1));
            let (a, b) = text.split_at(middle);
            [a.to_owned(), b.to_owned()].into_iter().filter(|half| !half.is_empty())
        };
        match delta {
            Delta::Text(text) => torn.extend(halves(&text).map(Delta::Text)),
            Delta::Reasoning(text) => torn.extend(halves(&text).map(Delta::Reasoning)),
            Delta::ToolArguments { index, fragment } => torn
                .extend(halves(&fragment).map(|fragment| Delta::ToolArguments { index, fragment })),
            other => torn.push(other),
        }
    }
    torn
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn folded_deltas_equal_the_whole_reply(
        reply in replies(), at in 0..40_usize, step in 1..90_usize
    ) {
        for dialect in [Dialect::OpenaiChat, Dialect::Anthropic] {
            let mut writer = dialect.stream_writer("m", UsageEvent::Send);
            let mut body = Vec::new();
            for delta in &torn(&reply, at) {
                writer.write(delta, &mut body);
            }
            let fold = fold_stream(dialect, &body, step);
            let whole = FoldEnd::Whole { terminator: Terminator::Seen };
            prop_assert_eq!(fold.outcome(), whole, "{:?}", dialect);
            let streamed = plain(fold.into_reply());
            let at_once = dialect.read_reply(&dialect.write_reply(&reply).bytes).unwrap();
            prop_assert_eq!(&streamed, &plain(at_once), "{:?}", dialect);
        }
    }

    #[test]
    fn a_stream_told_in_the_other_dialect_says_the_same(reply in replies(), step in 1..90_usize) {
        for (from, to) in [
            (Dialect::OpenaiChat, Dialect::Anthropic), (Dialect::Anthropic, Dialect::OpenaiChat),
        ] {
            let mut body = Vec::new();
            let mut writer = from.stream_writer("m", UsageEvent::Send);
            for delta in &reply.deltas() {
                writer.write(delta, &mut body);
            }
            let first = fold_stream(from, &body, step).into_reply();
            let mut body = Vec::new();
            let mut writer = to.stream_writer("m", UsageEvent::Send);
            for delta in &first.deltas() {
                writer.write(delta, &mut body);
            }
            let mut second = plain(fold_stream(to, &body, step).into_reply());
            let mut first = plain(first);
            first.choices[0].finish_word = None;
            second.choices[0].finish_word = None;
            prop_assert_eq!(&second, &first);
        }
    }

    #[test]
    fn calls_whose_fragments_are_mixed_fold_to_the_same_calls(
        objects in prop::collection::vec(objects(), 1..4),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        step in 1..9_usize,
    ) {
        let begin = |at: usize| start(u32::try_from(at).unwrap(), &format!("c{at}"), "f");
        let mut left: Vec<&str> = objects.iter().map(String::as_str).collect();
        let mut deltas: Vec<Delta> = (0..left.len()).map(begin).collect();
        for next in order {
            let at = next.index(left.len());
            let end = left[at].ceil_char_boundary(step.min(left[at].len()));
            let (fragment, rest) = left[at].split_at(end);
            left[at] = rest;
            if !fragment.is_empty() {
                deltas.push(piece(u32::try_from(at).unwrap(), fragment));
            }
        }
        for (at, rest) in left.iter().enumerate().filter(|(_, rest)| !rest.is_empty()) {
            deltas.push(piece(u32::try_from(at).unwrap(), rest));
        }
        deltas.extend([finish(Finish::ToolUse, None), Delta::End]);
        let mut writer = Dialect::Anthropic.stream_writer("m", UsageEvent::Omit);
        let mut body = Vec::new();
        for delta in &deltas {
            writer.write(delta, &mut body);
        }
        let fold = fold_stream(Dialect::Anthropic, &body, 1_000);
        prop_assert_eq!(fold.outcome(), FoldEnd::Whole { terminator: Terminator::Seen });
        let calls: Vec<Part> = objects
            .iter()
            .enumerate()
            .map(|(at, arguments)| call(&format!("c{at}"), "f", arguments))
            .collect();
        prop_assert_eq!(fold.into_reply().choices.remove(0).parts, calls);
    }
}
