//! The part of a reply that is sent back to its model: all of a short one, and of a long one the
//! surroundings of what is wrong.
//!
//! A model that sees its whole answer again pays for it twice; one that sees only the wrong place
//! finds it at once. Short replies are sent whole all the same, since they cost little and leave
//! nothing to guess.

use std::fmt::Write as _;
use std::ops::Range;

use backstay_wire::pointer;
use serde::de::IgnoredAny;

/// Up to this many bytes a reply is sent back whole, and this is the most that is sent of a longer
/// one, but for the marks of what is left out. 4 KiB: about a thousand tokens.
pub(super) const MOST: usize = 4 * 1024;

/// Bytes shown on either side of a place: a few members of an object.
const AROUND: usize = 200;

/// The most places that are looked for.
const MAX_PLACES: usize = 20;

/// What is sent back of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// The text; marks in brackets stand for what is left out.
    pub(super) text: String,
    /// Whether something was left out.
    pub(super) shortened: bool,
}

/// What to send back of `reply`, where `pointers` say what is wrong. Pointers that lead nowhere are
/// passed over; where none leads anywhere in the reply they are tried in what was `mended` of it, and
/// that is shown; else it is the place where strict JSON ends, and where there is
/// none of it the beginning and the end.
pub(super) fn of(reply: &str, mended: Option<&str>, pointers: &[&str]) -> Excerpt {
    let reply = reply.trim_end();
    if reply.len() <= MOST {
        return Excerpt { text: reply.to_owned(), shortened: false };
    }
    let found = |text: &str| -> Vec<Range<usize>> {
        let places = pointers.iter().take(MAX_PLACES);
        let places = places.filter_map(|pointer| locate(text, pointer));
        places.flat_map(|place| surroundings(text, &place)).collect()
    };
    let mut shown = found(reply);
    if let Some(mended) = mended.filter(|_| shown.is_empty()) {
        let shown = found(mended);
        if !shown.is_empty() {
            return Excerpt { text: cut_out(mended, merged(shown)), shortened: true };
        }
    }
    if let Some(place) = shown.is_empty().then(|| break_of(reply)).flatten() {
        shown = surroundings(reply, &(place..place));
    }
    if shown.is_empty() {
        shown = vec![0..MOST / 2, reply.len() - MOST / 2..reply.len()];
    }
    Excerpt { text: cut_out(reply, merged(shown)), shortened: true }
}

/// What is shown of a place: all of a small one, else its beginning and its end.
fn surroundings(reply: &str, place: &Range<usize>) -> Vec<Range<usize>> {
    let around = |range: Range<usize>| {
        range.start.saturating_sub(AROUND)..range.end.saturating_add(AROUND).min(reply.len())
    };
    if place.len() <= 2 * AROUND {
        return vec![around(place.clone())];
    }
    vec![around(place.start..place.start), around(place.end..place.end)]
}

/// Ranges in order, those that touch as one.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            // A gap shorter than its mark is not worth one.
            Some(last) if range.start <= last.end + 40 => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The ranges of `reply`, at most [`MOST`] bytes of them, with marks for what stands between.
fn cut_out(reply: &str, ranges: Vec<Range<usize>>) -> String {
    let mut text = String::new();
    let (mut told, mut room) = (0, MOST);
    for range in ranges {
        let start = reply.ceil_char_boundary(range.start).max(told);
        let end = reply.floor_char_boundary(range.end.min(start.saturating_add(room)));
        let Some(piece) = reply.get(start..end).filter(|piece| !piece.is_empty()) else { continue };
        left_out(&mut text, start - told);
        text.push_str(piece);
        room -= piece.len();
        told = end;
    }
    left_out(&mut text, reply.len() - told);
    text
}

fn left_out(text: &mut String, bytes: usize) {
    if bytes > 0 {
        let (before, after) = if text.is_empty() { ("", "\n") } else { ("\n", "\n") };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{before}[{bytes} bytes left out]{after}");
    }
}

/// Where `text`, from its first bracket on, stops being one JSON value. `None`: it does not, or
/// holds no bracket.
fn break_of(text: &str) -> Option<usize> {
    let start = text.find(['{', '['])?;
    let rest = text.get(start..)?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
    let place = match values.next()? {
        Err(error) => {
            // Lines from 1, columns in bytes from 1; 0 stands for the end of the line before.
            let before: usize =
                rest.split('\n').take(error.line().saturating_sub(1)).map(|l| l.len() + 1).sum();
            before + error.column().saturating_sub(1)
        }
        Ok(_) => values.byte_offset(),
    };
    (place < rest.len()).then_some(start + place)
}

/// Where the value at `pointer` stands in `text`, which may have something before its JSON. `None`:
/// there is no such value, or what comes before it is broken.
fn locate(text: &str, pointer: &str) -> Option<Range<usize>> {
    let mut reader = Reader { bytes: text.as_bytes(), at: text.find(['{', '['])? };
    for step in pointer.split('/').skip(1) {
        reader.enter(&pointer::unescape(step))?;
    }
    let start = reader.at;
    reader.skip()?;
    Some(start..reader.at)
}

/// Walks over JSON without building it. Depth is counted, not gone down.
struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    /// Goes from a container to the value at `step`.
    fn enter(&mut self, step: &str) -> Option<()> {
        let is_object = match self.peek()? {
            b'{' => true,
            b'[' => false,
            _ => return None,
        };
        self.at += 1;
        let mut index = 0_usize;
        loop {
            self.space();
            let found = if is_object {
                let key = self.key()?;
                self.space();
                (self.peek()? == b':').then(|| self.at += 1)?;
                self.space();
                key == step
            } else {
                index.to_string() == step
            };
            if matches!(self.peek()?, b'}' | b']') {
                return None;
            }
            if found {
                return Some(());
            }
            self.skip()?;
            self.space();
            (self.peek()? == b',').then(|| self.at += 1)?;
            index += 1;
        }
    }

    fn key(&mut self) -> Option<String> {
        let start = self.at;
        (self.peek()? == b'"').then(|| self.string())??;
        serde_json::from_slice(self.bytes.get(start..self.at)?).ok()
    }

    /// Passes over one value.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                b',' | b':' => return None,
                _ => self.word(),
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Passes over a number or a literal.
    fn word(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let ends = |b: &u8| b"{}[],:\" \n\r\t".contains(b);
        self.at += rest.iter().position(ends).unwrap_or(rest.len()).max(1);
    }

    /// Passes over a string from its opening quote on.
    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(())
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn found(text: &str, pointer: &str) -> Option<Value> {
        let range = locate(text, pointer)?;
        Some(serde_json::from_str(text.get(range).unwrap()).unwrap())
    }

    #[test]
    fn a_pointer_finds_the_value_that_serde_finds() {
        let value =
            json!({"a": [1, {"b/c": "x,}\\\"]"}, [], {}], "é~": -1.5e3, "": null, "t": true});
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            for pointer in
                ["", "/a", "/a/0", "/a/1", "/a/1/b~1c", "/a/2", "/a/3", "/é~0", "/", "/t"]
            {
                assert_eq!(found(&text, pointer).as_ref(), value.pointer(pointer), "{pointer}");
            }
            for pointer in ["/b", "/a/4", "/a/x", "/a/2/0", "/t/0", "/a/1/b"] {
                assert_eq!(found(&text, pointer), None, "{pointer}");
            }
        }
        assert_eq!(found("```json\n{\"a\": 2}\n```", "/a"), Some(json!(2)));
    }

    #[test]
    fn a_short_reply_is_sent_whole() {
        let text = "x".repeat(MOST);
        let excerpt = of(&text, None, &["/a"]);
        assert_eq!(excerpt, Excerpt { text, shortened: false });
    }

    #[test]
    fn of_a_long_reply_the_surroundings_of_what_is_wrong_are_sent() {
        let filler = "lorem ipsum ".repeat(500);
        let text =
            format!("{{\"before\":\"{filler}\",\"kind\":\"wrong one\",\"after\":\"{filler}\"}}");
        let excerpt = of(&text, None, &["/kind", "/nowhere"]);
        assert!(excerpt.shortened);
        assert!(excerpt.text.contains("\"kind\":\"wrong one\""), "{}", excerpt.text);
        assert!(excerpt.text.len() < 600, "{}", excerpt.text.len());
        assert!(excerpt.text.starts_with('[') && excerpt.text.ends_with(" bytes left out]\n"));
    }

    #[test]
    fn a_place_that_only_the_mended_reply_has_is_shown_as_mended() {
        let filler = "lorem ipsum ".repeat(500);
        let raw = format!("{{'before':'{filler}','kind':7}}");
        let mended = raw.replace('\'', "\"");
        let excerpt = of(&raw, Some(&mended), &["/kind"]);
        assert!(excerpt.text.ends_with("\"kind\":7}"), "{}", excerpt.text);
    }

    #[test]
    fn where_no_place_is_known_the_beginning_and_the_end_are_sent() {
        let text = format!("BEGIN {} END", "é".repeat(10_000));
        let excerpt = of(&text, None, &[]);
        assert!(excerpt.text.starts_with("BEGIN") && excerpt.text.ends_with("END"));
        assert!(excerpt.text.len() < MOST + 60);
    }

    #[test]
    fn of_long_broken_json_the_break_is_sent() {
        let filler = "lorem ipsum\",\n\"é".repeat(500);
        for (broken, there) in [
            (format!("[\"{filler}\", oops, \"{filler}\"]"), "oops"),
            (format!("Sure: {{\"a\": [\"{filler}\"], 'b': 2, \"c\": \"{filler}\"}}"), "'b'"),
            (format!("[\"{filler}\"] and so on: {filler}"), "and so on"),
        ] {
            let excerpt = of(&broken, None, &[]);
            assert!(excerpt.text.contains(there), "{}", excerpt.text);
            assert!(excerpt.text.len() < 600, "{}", excerpt.text.len());
        }
    }

    proptest! {
        #[test]
        fn never_more_than_the_bound_is_sent_and_nothing_panics(
            text in "(\\PC|[{}\\[\\]\",:\\\\]){0,3000}",
            pointers in prop::collection::vec("(/[a-z0-9é~]{0,3}){0,4}", 0..30),
        ) {
            let text = format!("{text}{{\"a\": [{}]}}", text.repeat(2));
            let pointers: Vec<&str> = pointers.iter().map(String::as_str).collect();
            let excerpt = of(&text, None, &pointers);
            let marks = (2 * MAX_PLACES + 1) * 40;
            prop_assert!(excerpt.text.len() <= MOST + marks);
            prop_assert_eq!(excerpt.shortened, text.trim_end().len() > MOST);
        }
    }
}
