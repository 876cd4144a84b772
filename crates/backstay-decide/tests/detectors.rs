//! The guards on real replies: loops of a small model, texts that repeat themselves rightly, refusals.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "../../../tests/shared.rs"]
mod shared;

use backstay_decide::detectors::{Channel, Finding, Guards, Level, Limits, Signal};
use serde_json::Value;
use shared::shared;

/// Rows of a file of `../shared/detectors`.
fn rows(file: &str) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(shared(&format!("detectors/{file}"))?).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_else(|| panic!("no {field} in {row}"))
}

/// All signals of `reply`, weighed against `prompt`.
fn signals(reply: &str, prompt: &str) -> Vec<Signal> {
    let mut guards = Guards::new(Limits::default());
    guards.feed(Channel::Text, reply);
    guards.finish();
    guards.signals().iter().map(|signal| guards.weigh(*signal, [prompt])).collect()
}

fn hard(reply: &str, prompt: &str) -> Option<Signal> {
    signals(reply, prompt).into_iter().find(|signal| signal.level == Level::Hard)
}

#[test]
fn nothing_that_repeats_itself_rightly_is_cut() {
    for row in rows("legit_repetition.jsonl").unwrap_or_default() {
        let found = hard(text(&row, "text"), "");
        assert_eq!(found, None, "{}: {}", text(&row, "kind"), text(&row, "text"));
    }
}

/// The text of case `id` of the bug reports.
fn case(id: &str) -> Option<String> {
    let all = std::fs::read_to_string(shared("cases/bug_reports.jsonl")?).unwrap();
    let mut cases = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let case = cases.find(|case| case["id"] == id)?;
    Some(text(&case["input"], "text").to_owned())
}

#[test]
fn texts_that_guards_of_others_took_for_loops_pass_in_every_channel() {
    // A table, encoded audio, an array of zeros.
    for id in ["B133", "B134", "B135"] {
        let Some(text) = case(id) else { continue };
        for channel in [Channel::Text, Channel::Reasoning, Channel::Call(0)] {
            let mut guards = Guards::new(Limits::default());
            guards.feed(channel, &text);
            guards.finish();
            let hard = guards.signals().iter().find(|signal| signal.level == Level::Hard);
            assert_eq!(hard, None, "{id} in {channel:?}");
        }
    }
}

// https://github.com/ggml-org/llama.cpp/pull/26039: a block of 92 lines stood there dozens of times.
#[test]
fn a_block_of_92_lines_is_known_in_its_fourth_copy() {
    use std::fmt::Write as _;
    let mut block = String::new();
    for line in 0..92 {
        writeln!(block, "    let value_{line} = compute(value_{}, {});", line + 7, line * 31)
            .unwrap();
    }
    let mut guards = Guards::new(Limits::default());
    let lines = guards.feed(Channel::Text, &block.repeat(3)).unwrap();
    assert_eq!(lines.level, Level::Soft, "{lines}: lines of one kind are likely, and no more");
    guards.feed(Channel::Text, &block);
    // The last token is known when no more comes.
    let signal = guards.finish().unwrap();
    assert_eq!(signal.level, Level::Hard, "{signal}");
}

#[test]
fn loops_of_a_real_model_are_caught_and_nothing_else_is() {
    let Some(rows) = rows("degenerate_smollm2.jsonl") else { return };
    let (mut loops, mut caught) = (0, 0);
    for row in &rows {
        let found = signals(text(row, "text"), text(row, "prompt"));
        let hard = found.iter().find(|signal| signal.level == Level::Hard);
        match text(row, "label") {
            "loop" => {
                loops += 1;
                caught += usize::from(hard.is_some());
            }
            "normal" | "legit_repetition" => assert_eq!(hard, None, "{row}"),
            _ => {}
        }
    }
    // The others are too short for the copies asked, or change from copy to copy.
    assert!(caught * 100 >= loops * 85, "{caught} of {loops}");
}

#[test]
fn refusals_in_words_are_told_from_answers() {
    let Some(rows) = rows("refusals_xstest.jsonl") else { return };
    let (mut refusals, mut told, mut right) = (0, 0, 0);
    for row in &rows {
        let is = text(row, "label") != "full_compliance";
        let found = signals(text(row, "completion"), text(row, "prompt"))
            .iter()
            .any(|signal| signal.finding == Finding::Refusal);
        refusals += usize::from(is);
        told += usize::from(found);
        right += usize::from(is && found);
    }
    println!("{refusals} refusals, {told} told, {right} rightly");
    assert!(right * 100 >= told * 95, "precision: {right} of {told}");
    assert!(right * 100 >= refusals * 55, "recall: {right} of {refusals}");
}
