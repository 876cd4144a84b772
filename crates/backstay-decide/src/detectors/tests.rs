//! Tests of all guards together.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// What `line` gives for each number below `count`, joined.
fn lines(count: u32, line: impl Fn(u32) -> String) -> String {
    (0..count).map(line).collect()
}

fn fed(limits: Limits, channel: Channel, text: &str) -> Vec<Signal> {
    let mut guards = Guards::new(limits);
    guards.feed(channel, text);
    guards.finish();
    guards.signals().to_vec()
}

fn hard(channel: Channel, text: &str) -> Option<String> {
    let signals = fed(Limits::default(), channel, text);
    signals.iter().find(|signal| signal.level == Level::Hard).map(ToString::to_string)
}

#[test]
fn a_sentence_that_comes_again_and_again_is_told_with_its_arithmetic() {
    let text = "The cat sat on the mat and looked at me. ".repeat(30);
    assert_eq!(
        hard(Channel::Text, &text).as_deref(),
        Some("period of 11 tokens, 11 copies, 128 tokens")
    );
    assert_eq!(
        hard(Channel::Reasoning, &text).as_deref(),
        Some("period of 11 tokens, 11 copies, 128 tokens, in the reasoning")
    );
    assert_eq!(
        hard(Channel::Call(2), &text).as_deref(),
        Some("period of 11 tokens, 23 copies, 256 tokens, in the arguments of call 2")
    );
}

#[test]
fn prose_that_does_not_repeat_itself_passes() {
    let text = lines(400, |n| format!("word{} and {} make a line\n", n * n, n * 7));
    assert_eq!(hard(Channel::Text, &text), None);
}

#[test]
fn the_copies_asked_are_exact() {
    let sentence = "one two three four five six seven eight nine. ";
    // 10 tokens with the full stop; the space after it goes with the next word.
    let (enough, short) = (sentence.repeat(13), sentence.repeat(12));
    assert!(hard(Channel::Text, &enough).is_some());
    assert_eq!(hard(Channel::Text, &short), None);
    // A block of 1,800 tokens is known in its fourth copy.
    let block = lines(600, |n| format!(" w{} x", n * 7919 % 1000));
    assert!(hard(Channel::Text, &block.repeat(4)).is_some());
    assert_eq!(hard(Channel::Text, &block.repeat(3)), None);
}

#[test]
fn a_list_of_the_same_item_is_a_loop_although_its_numbers_rise() {
    let same = lines(80, |n| format!("{n}. Dubai\n"));
    assert!(hard(Channel::Text, &same).is_some());
    let others = lines(80, |n| format!("{n}. City {}\n", n * n));
    assert_eq!(hard(Channel::Text, &others), None);
}

#[test]
fn what_is_uniform_by_nature_passes() {
    let zeros = format!("[{}]", "0, ".repeat(1000));
    let matrix = "[0.5,0.5,0.5],".repeat(250);
    let spaced = format!("[{}]", "[0, 0, 0, 0], ".repeat(60));
    let hex = "00000010  00 00 00 00 ff ff ff ff\n".repeat(80);
    let base64 = format!("data:audio/mp3;base64,AAAA{}==", "V".repeat(6000));
    let table = format!("| a | b |\n|---|---|\n{}", "| x | y |\n".repeat(20));
    let rule = "-".repeat(1500);
    for text in [zeros, matrix, spaced, hex, base64, table, rule] {
        assert_eq!(hard(Channel::Text, &text), None, "{text}");
    }
}

#[test]
fn values_of_json_may_be_alike() {
    let row = format!("[{}]", ["null"; 8].join(", "));
    let board = format!("{{\"board\": [{}]}}", [row.as_str(); 20].join(", "));
    let cells = format!("\n[{}]", ["{\"x\": 0, \"state\": \"free\"}"; 12].join(","));
    let table = format!("<table><tr>{}</tr></table>", "<td>none</td>".repeat(24));
    for text in [board, cells, table] {
        assert_eq!(hard(Channel::Text, &text), None, "{text}");
    }
    assert!(hard(Channel::Text, &"{\"x\": 0, \"state\": \"free\"},".repeat(40)).is_some());
}

#[test]
fn blanks_and_digits_without_an_end_are_loops() {
    assert!(hard(Channel::Text, &format!("{{\"a\": 1{}", "\n".repeat(600))).is_some());
    assert!(hard(Channel::Call(0), &format!("{{\"a\": {}", " ".repeat(2100))).is_some());
    assert!(hard(Channel::Call(0), &format!("{{\"a\": 0.1{}", "0".repeat(3000))).is_some());
    assert!(hard(Channel::Text, &"!".repeat(3000)).is_some());
}

#[test]
fn a_fence_asks_for_twice_as_many_copies() {
    let line = "let total = total + price * count;\n";
    assert_eq!(hard(Channel::Text, &format!("```rust\n{}", line.repeat(14))), None);
    assert!(hard(Channel::Text, &line.repeat(14)).is_some());
    assert!(hard(Channel::Text, &format!("```rust\n{}", line.repeat(40))).is_some());
    assert!(hard(Channel::Text, &format!("```\nx\n```\n{}", line.repeat(14))).is_some());
}

#[test]
fn a_request_for_repetition_softens_a_loop() {
    let mut guards = Guards::new(Limits::default());
    let signal = guards.feed(Channel::Text, &"I shall not talk in class. ".repeat(30)).unwrap();
    assert_eq!(signal.level, Level::Hard);
    let level = |texts: &[&str]| guards.weigh(signal, texts.iter().copied()).level;
    assert_eq!(level(&["Write about school."]), Level::Hard);
    assert_eq!(level(&["Repeat a sentence."]), Level::Soft);
    assert_eq!(level(&["Write it a hundred, no, 120 times."]), Level::Soft);
    assert_eq!(level(&["Three times a day I eat."]), Level::Hard);
    let shown =
        "I shall not talk in class. I shall not talk in class. I shall not talk in class. Go on";
    assert_eq!(level(&[shown, "Please."]), Level::Soft);
    assert_eq!(level(&["I shall not talk in class. Why?"]), Level::Hard);
}

#[test]
fn a_policy_may_have_loops_told_only_or_not_at_all() {
    let text = "again and again ".repeat(100);
    let told = Limits { repetition: Reaction::Tell, ..Limits::default() };
    assert!(fed(told, Channel::Text, &text).iter().all(|signal| signal.level == Level::Soft));
    let off = Limits { repetition: Reaction::Off, ..Limits::default() };
    assert_eq!(fed(off, Channel::Text, &text), []);
}

#[test]
fn length_and_pace_are_held_to_their_limits() {
    let length = Length { expected: Some(10), most: Some(30) };
    let pace = Some(Floor { tokens_per_kilosecond: 10_000, over: Duration::from_secs(2) });
    let mut guards = Guards::new(Limits { length, pace, ..Limits::default() });
    assert_eq!(guards.feed(Channel::Text, &"word ".repeat(20)), None);
    let soft = guards.feed(Channel::Text, "one two three ").unwrap();
    assert_eq!((soft.level, soft.to_string()), (Level::Soft, "over 20 tokens".to_owned()));
    assert_eq!(guards.pace(guards.tokens(), Duration::from_secs(1)), None);
    assert_eq!(guards.pace(guards.tokens(), Duration::from_secs(2)), None);
    let slow = guards.pace(guards.tokens(), Duration::from_secs(4)).unwrap();
    assert_eq!(
        (slow.level, slow.to_string()),
        (Level::Soft, "23 tokens in 4.0 s, at least 10.00 a second asked".to_owned())
    );
    let hard = guards.feed(Channel::Reasoning, &"word ".repeat(20)).unwrap();
    assert_eq!((hard.level, hard.to_string()), (Level::Hard, "over 30 tokens".to_owned()));
    assert_eq!(guards.pace(guards.tokens(), Duration::from_secs(40)), None, "it was told already");
    assert_eq!(guards.signals(), [soft, slow, hard]);
}

#[test]
fn a_refusal_is_looked_for_in_the_words_of_an_answer_that_calls_no_tool() {
    let words = "I'm sorry, but I can't help with that request.";
    let channel = Some(Channel::Text);
    let refusal = Signal { finding: Finding::Refusal, level: Level::Soft, channel, choice: 0 };
    assert_eq!(fed(Limits::default(), Channel::Text, words), [refusal]);
    assert_eq!(fed(Limits::default(), Channel::Reasoning, words), []);
    assert_eq!(fed(Limits::default(), Channel::Call(0), words), []);
    let off = Limits { refusal: Reaction::Off, ..Limits::default() };
    assert_eq!(fed(off, Channel::Text, words), []);
    let mut calls = [Guards::new(Limits::default()), Guards::new(Limits::default())];
    calls[0].begin_call(0, "search");
    calls[1].feed(Channel::Call(0), "{}");
    for mut guards in calls {
        guards.feed(Channel::Text, words);
        assert_eq!(guards.finish(), None);
    }
}

#[test]
fn a_reply_that_misses_a_document_is_told_where_one_was_sent() {
    let words = "No document was attached. Please upload the file.";
    let sent = Limits { attachments: Attachments::Sent, ..Limits::default() };
    let told = fed(sent, Channel::Text, words);
    assert_eq!(
        told.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["the reply misses a document that was sent"]
    );
    assert_eq!(fed(Limits::default(), Channel::Text, words), []);
    assert_eq!(fed(sent, Channel::Text, "The document says that prices rose."), []);
    assert_eq!(fed(sent, Channel::Text, "Bread was provided by the baker."), []);
}

#[test]
fn tokens_of_every_channel_and_of_every_call_count() {
    let mut guards = Guards::new(Limits::default());
    // The blank at the end of each has yet to show what it belongs to.
    guards.feed(Channel::Text, "one two three ");
    guards.feed(Channel::Reasoning, "one two three four five ");
    assert_eq!(guards.tokens(), 8);
    for (number, words, tokens) in [(7, "a b ", 10), (8, "a b c ", 13), (8, "d ", 14), (9, "", 14)]
    {
        guards.feed(Channel::Call(number), words);
        assert_eq!(guards.tokens(), tokens, "call {number}");
    }
}

#[test]
fn a_request_softens_a_loop_in_the_arguments_of_the_call_that_comes() {
    let mut guards = Guards::new(Limits::default());
    let line = "I shall not talk in class. ";
    let signal = guards.feed(Channel::Call(3), &line.repeat(60)).unwrap();
    assert_eq!((signal.level, signal.channel), (Level::Hard, Some(Channel::Call(3))));
    assert_eq!(guards.weigh(signal, [line.repeat(3).as_str(), ""]).level, Level::Soft);
    guards.feed(Channel::Call(4), "{}");
    let of_another = guards.weigh(signal, [line.repeat(3).as_str(), ""]);
    assert_eq!(of_another.level, Level::Hard, "what was repeated is not known any more");
}

#[test]
fn signals_are_told_once_a_channel_and_bounded() {
    let mut guards = Guards::new(Limits::default());
    for call in 0..100 {
        guards.feed(Channel::Call(call), &"\n".repeat(600));
    }
    let key = |signal: &Signal| (signal.finding.code(), signal.level, signal.channel);
    let told: HashSet<_> = guards.signals().iter().map(key).collect();
    assert_eq!(told.len(), guards.signals().len());
    assert_eq!(guards.signals().len(), MOST_SIGNALS);
}

#[test]
fn two_signs_of_a_loop_near_the_expected_end_are_degenerate() {
    let length = Length { expected: Some(1000), most: None };
    let limits = Limits { length, ..Limits::default() };
    let alike = lines(40, |n| format!("The train number {} goes at {} from here\n", n * n, n * 7));
    let told = |channels: &[Channel], calls: u32, words: usize| {
        let mut guards = Guards::new(limits);
        for number in 0..calls {
            guards.begin_call(10 + number, "search");
        }
        for channel in channels {
            guards.feed(*channel, &alike);
        }
        let rest = words.saturating_sub(guards.tokens());
        guards.feed(Channel::Call(0), &lines(u32::try_from(rest).unwrap(), |n| format!("x{n}\n")));
        guards.finish();
        let degenerate = |signal: &&Signal| matches!(signal.finding, Finding::Degenerate { .. });
        guards.signals().iter().find(degenerate).map(ToString::to_string)
    };
    let degenerate = "two signs of a loop, and over 75 % of 1000 expected tokens";
    assert_eq!(told(&[Channel::Text], 5, 800).as_deref(), Some(degenerate));
    assert_eq!(told(&[Channel::Text], 4, 800), None, "one sign");
    assert_eq!(told(&[Channel::Text, Channel::Reasoning], 0, 800), None, "one sign twice");
    assert_eq!(told(&[Channel::Text], 5, 0), None, "much is to come");
}

/// What is found where the conversation made `before` calls, and the reply makes `calls`.
fn same_calls(before: &[&str], calls: &[&[&str]]) -> Option<String> {
    let mut guards = Guards::new(Limits::default());
    for (number, pieces) in (0..).zip(calls) {
        guards.begin_call(number, "search");
        for piece in *pieces {
            guards.feed(Channel::Call(number), piece);
        }
    }
    for arguments in before {
        guards.called_before("search", arguments);
    }
    let signal = guards.finish()?;
    assert_eq!(signal.level, Level::Soft);
    Some(signal.to_string())
}

#[test]
fn the_same_call_five_times_in_a_row_is_told_where_the_reply_makes_it_again() {
    let (same, other) = ("{\"q\": 1}", "{\"q\": 2}");
    let told = Some("the same tool call 5 times".to_owned());
    assert_eq!(same_calls(&[same; 4], &[&["{\"q\"", ":1}"]]), told);
    assert_eq!(same_calls(&[same; 3], &[&[same]]), None);
    assert_eq!(same_calls(&[same; 4], &[&[other]]), None, "it has left the row");
    assert_eq!(same_calls(&[same, other, same, same, same], &[&[same]]), None);
    assert_eq!(same_calls(&[same; 5], &[]), None, "the reply calls nothing");
    assert_eq!(same_calls(&[], &[&[same][..]; 5]), told);
    assert_eq!(same_calls(&[same; 3], &[&[same], &[same], &[other]]), told);
    assert_eq!(same_calls(&["{}"; 4], &[&[]]), told, "no arguments are empty ones");
    assert_eq!(CALLS_BEFORE, 4);
}

#[test]
fn calls_are_the_same_by_tool_and_arguments_however_their_pieces_mix() {
    let mut guards = Guards::new(Limits::default());
    for number in 0..5 {
        guards.begin_call(number, if number == 2 { "fetch" } else { "search" });
    }
    for piece in ["{\"q\":", "1}"] {
        for number in 0..5 {
            guards.feed(Channel::Call(number), piece);
        }
    }
    assert!(guards.has_calls());
    assert_eq!(guards.finish(), None, "another tool is between them");
}

#[test]
fn a_signal_names_its_answer_unless_that_is_the_first() {
    let text = "The cat sat on the mat and looked at me. ".repeat(30);
    let told = |choice| {
        let mut guards = Guards::new(Limits::default()).of_choice(choice);
        guards.feed(Channel::Reasoning, &text).unwrap().to_string()
    };
    let first = "period of 11 tokens, 11 copies, 128 tokens, in the reasoning";
    assert_eq!(told(0), first);
    assert_eq!(told(3), format!("{first}, in choice 3"));
}

/// A text of few words in no order: it says little, and repeats nothing.
fn murmur(words: u32) -> String {
    lines(words, |n| {
        ["one ", "two ", "ten ", "six "][(n * n * 31 + n / 3 * 7) as usize / 5 % 4].into()
    })
}

fn says_little(guards: &Guards) -> Vec<Option<Channel>> {
    let low = |signal: &&Signal| matches!(signal.finding, Finding::LowEntropy { .. });
    guards.signals().iter().filter(low).map(|signal| signal.channel).collect()
}

#[test]
fn a_model_that_is_sure_of_every_token_is_told_by_channel() {
    let mut guards = Guards::new(Limits::default());
    for _ in 0..200 {
        guards.logprobs(Channel::Reasoning, [-0.0001]);
        guards.logprobs(Channel::Text, [-0.7, -0.8]);
        guards.logprobs(Channel::Call(0), [-0.0001]);
    }
    assert_eq!(says_little(&guards), [Some(Channel::Reasoning)]);
}

#[test]
fn a_text_that_says_little_is_told_only_where_the_model_does_not_say_how_sure_it_was() {
    let text = murmur(600);
    let mut guards = Guards::new(Limits::default());
    guards.feed(Channel::Text, &text);
    guards.feed(Channel::Reasoning, &text);
    assert_eq!(says_little(&guards), [Some(Channel::Text), Some(Channel::Reasoning)]);
    let mut guards = Guards::new(Limits::default());
    guards.logprobs(Channel::Text, [-0.7, -0.8]);
    guards.feed(Channel::Text, &text);
    guards.feed(Channel::Reasoning, &text);
    assert_eq!(says_little(&guards), [Some(Channel::Reasoning)]);
}

#[test]
fn prompt_tokens_far_below_the_estimate_are_told() {
    assert_eq!(unread(6000, 10_000), None);
    assert_eq!(unread(10, 511), None);
    assert!(unread(10, 512).is_some());
    let told = unread(5999, 10_000).unwrap();
    assert_eq!(
        (told.level, told.to_string()),
        (Level::Soft, "5999 prompt tokens reported, about 10000 sent".to_owned())
    );
}

#[test]
fn a_short_reply_takes_no_memory() {
    let mut guards = Guards::new(Limits::default());
    guards.feed(
        Channel::Text,
        "Thirty tokens and fewer need nothing of the heap, whatever they say.",
    );
    assert_eq!(guards.text.memory(), 0);
    guards.feed(
        Channel::Text,
        &"Long replies may have more of it, but never too much. ".repeat(2000),
    );
    assert!(guards.text.memory() <= 52 << 10, "{} bytes", guards.text.memory());
}

/// What a glance at `text`, and reading it where the glance says so, finds for sure.
fn glanced(channel: Channel, text: &str) -> Vec<Signal> {
    let mut guards = Guards::new(Limits::default());
    guards.whole(channel, text);
    guards.finish();
    guards.signals().iter().filter(|signal| signal.level == Level::Hard).copied().collect()
}

#[test]
fn a_glance_sees_a_loop_whatever_it_is_made_of() {
    let prose = lines(300, |n| format!("word{} and {} make a line\n", n * n, n * 7));
    for text in [
        lines(80, |n| format!("{n}. a\n")),
        lines(80, |n| format!("{}) Dubai\r\n", n * 1013)),
        "ha ".repeat(130),
        "1, 2,3, ".repeat(300),
        "0".repeat(3000),
        "!".repeat(3000),
        "\n".repeat(600),
        "    ".repeat(600),
        format!("{prose}{}{prose}", "The end of it. ".repeat(40)),
        lines(90, |n| format!("word{} and {} make a line\n", n * n, n * 7)).repeat(4),
    ] {
        assert!(hard(Channel::Text, &text).is_some(), "{text}");
        assert!(!glanced(Channel::Text, &text).is_empty(), "{text}");
    }
}

#[test]
fn a_text_that_says_nothing_twice_is_not_read_token_by_token() {
    let mut state = 7_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b"abcdefghijklmnopqrstuvwxyz   "[state as usize / 256 % 29])
    };
    let prose: String = (0..2000).map(|_| letter()).collect();
    let mut guards = Guards::new(Limits::default());
    for (channel, text) in [(Channel::Text, prose.as_str()), (Channel::Call(0), "{\"a\": 1}")] {
        assert_eq!(guards.whole(channel, text), None);
    }
    assert_eq!(guards.tokens(), 0);
    let length = Length { expected: None, most: Some(100) };
    let mut guards = Guards::new(Limits { length, ..Limits::default() });
    assert!(guards.whole(Channel::Text, &prose).is_some(), "its length matters");
}

proptest! {
    /// Any loop that a stream of the same text would be cut for, with good text before and after.
    #[test]
    fn a_glance_misses_no_loop(
        block in "[a-c 0-9\n|`.日é😀-]{1,40}",
        copies in 4_usize..300,
        before in "[a-z ,.\n]{0,200}",
        after in "[a-z ,.\n]{0,200}",
        numbered in any::<bool>(),
    ) {
        let copy = |n| if numbered { format!("{n}. {block}\n") } else { block.clone() };
        let text = format!("{before}{}{after}", (0..copies).map(copy).collect::<String>());
        for channel in [Channel::Text, Channel::Call(0)] {
            let mut sure = fed(Limits::default(), channel, &text);
            sure.retain(|signal| signal.level == Level::Hard);
            prop_assert_eq!(glanced(channel, &text), sure);
        }
    }

    /// Words, signs, blanks, wide characters; repeated, so that there is something to be found.
    #[test]
    fn any_cut_finds_the_same(
        block in "[a-c 0-9\n|`.日é😀-]{1,40}",
        copies in 1_usize..200,
        cuts in prop::collection::vec(1_usize..90, 1..8),
    ) {
        let text = block.repeat(copies);
        let whole = fed(Limits::default(), Channel::Text, &text);
        let mut guards = Guards::new(Limits::default());
        let mut letters = text.chars().peekable();
        for size in cuts.iter().cycle() {
            if letters.peek().is_none() {
                break;
            }
            let piece: String = letters.by_ref().take(*size).collect();
            guards.feed(Channel::Text, &piece);
        }
        guards.finish();
        prop_assert_eq!(guards.signals(), whole.as_slice());
    }
}
