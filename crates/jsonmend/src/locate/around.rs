//! Names what stands before and behind a document, and says whether it may be left out.

use super::{Fence, Site};
use crate::edit::{Change, Kind};
use crate::lex::space;

/// Blocks before a document and marks behind it that are told apart; what comes after them is
/// prose.
const MARKS: usize = 32;

/// What is left out before the document that starts at a site.
pub(crate) fn before(raw: &str, site: &Site, thought: &[(usize, usize)]) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut at = 0;
    if raw.starts_with('\u{feff}') {
        changes.push(Change::new(Kind::Bom, 0..3, ""));
        at = 3;
    }
    let blocks = thought.iter().take_while(|(start, _)| *start < site.start);
    for (start, end) in blocks.take(MARKS) {
        let start = at.max(*start);
        prose_before(raw, at, start, &mut changes);
        changes.push(Change::new(Kind::ThinkBlock, start..*end, ""));
        at = *end;
    }
    if let Some(fence) = &site.fence {
        prose_before(raw, at, fence.start, &mut changes);
        changes.push(Change::new(Kind::Fence, fence.start..fence.inside, ""));
        at = fence.inside;
    }
    prose_before(raw, at, site.start, &mut changes);
    changes
}

/// The white space of JSON, which needs no change.
const SPACES: [char; 4] = [' ', '\n', '\r', '\t'];

fn prose_before(raw: &str, start: usize, end: usize, changes: &mut Vec<Change>) {
    let text = raw.get(start..end).unwrap_or_default();
    let shown = text.trim_matches(SPACES);
    if shown.is_empty() {
        return;
    }
    let start = start + (text.len() - text.trim_start_matches(SPACES).len());
    let end = start + shown.len();
    // Closers before the root close nothing.
    let is_comment = ["//", "/*", "# ", "<!--"].iter().any(|mark| shown.starts_with(mark));
    let kind = if is_comment {
        Kind::Comment
    } else if shown.bytes().all(|byte| matches!(byte, b'}' | b']' | b')')) {
        Kind::ExtraCloser
    } else if shown.trim().is_empty() {
        Kind::OddSpace
    } else if is_wrapper(shown) {
        Kind::Wrapper
    } else {
        Kind::ProseBefore
    };
    changes.push(Change::new(kind, start..end, ""));
}

/// `callback(`, `return`, `const x =`, `<json>`, `'`.
fn is_wrapper(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|letter| letter.is_alphanumeric() || "_$.".contains(letter))
    };
    if text == "return" || text == "'" || (text.starts_with('<') && text.ends_with('>')) {
        return true;
    }
    if let Some(name) = text.strip_suffix('(') {
        return name.is_empty() || is_name(name.trim());
    }
    text.strip_suffix('=').is_some_and(|left| {
        let words: Vec<&str> = left.split_whitespace().collect();
        words.len() <= 3 && words.iter().all(|word| is_name(word.trim_end_matches(':')))
    })
}

/// What is left out behind the document that ends at `end`.
pub(crate) fn after(raw: &str, end: usize, fence: Option<&Fence>) -> Vec<Change> {
    let bytes = raw.as_bytes();
    let mut changes = Vec::new();
    let mut at = end;
    loop {
        at = space::skip(bytes, at);
        let kind = match bytes.get(at) {
            None => return changes,
            Some(b',') => Kind::TrailingComma,
            Some(b';') => Kind::Semicolon,
            Some(b'}' | b']') => Kind::ExtraCloser,
            Some(b')' | b'\'') => Kind::Wrapper,
            Some(b'`' | b'~') => match fence.and_then(|fence| fence.close(bytes, at)) {
                Some(close) => {
                    changes.push(Change::new(Kind::Fence, at..close, ""));
                    at = close;
                    break;
                }
                None => break,
            },
            Some(b'<') => {
                let rest = raw.get(at..).unwrap_or_default();
                match rest.find('>') {
                    Some(length) if rest.starts_with("</") => {
                        changes.push(Change::new(Kind::Wrapper, at..at + length + 1, ""));
                        at += length + 1;
                        continue;
                    }
                    _ => break,
                }
            }
            Some(_) => break,
        };
        let is_full = changes.len() >= MARKS;
        match changes.last_mut() {
            // A run of the same mark is one thing left out.
            Some(last) if last.kind == kind && last.end() == at => {
                *last = Change::new(kind, last.start()..at + 1, "");
            }
            _ if is_full => break,
            _ => changes.push(Change::new(kind, at..at + 1, "")),
        }
        at += 1;
    }
    let rest = raw.get(at..).unwrap_or_default();
    let shown = rest.trim_matches(SPACES);
    if !shown.is_empty() {
        let start = at + (rest.len() - rest.trim_start_matches(SPACES).len());
        let kind = match bytes.get(start..).unwrap_or_default() {
            [b'/', b'/' | b'*', ..] | [b'#', b' ', ..] | [b'<', b'!', ..] => Kind::Comment,
            _ if shown.trim().is_empty() => Kind::OddSpace,
            _ => Kind::ProseAfter,
        };
        changes.push(Change::new(kind, start..start + shown.len(), ""));
    }
    changes
}

/// Braces and brackets opened in a text less those closed.
pub(crate) fn depth_of(text: &str) -> (isize, isize) {
    text.bytes().fold((0, 0), |(braces, brackets), byte| match byte {
        b'{' => (braces + 1, brackets),
        b'}' => (braces - 1, brackets),
        b'[' => (braces, brackets + 1),
        b']' => (braces, brackets - 1),
        _ => (braces, brackets),
    })
}

/// Says whether text around a document holds a key with its colon, or goes on like a list: then
/// it is no prose, and leaving it out would lose data.
pub(crate) fn holds_members(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'"', bytes).any(|quote| {
        let at = space::skip(bytes, quote + 1);
        bytes.get(at) == Some(&b':')
    })
}
