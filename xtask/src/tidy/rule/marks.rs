//! Unfinished work that a comment admits to has an issue number.

use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};

use crate::tidy::offence::Offence;
use crate::tidy::source::Source;

const MARKS: [&str; 2] = ["TODO", "FIXME"];
const MEND: &str = "name its issue, as in (#12), or do it now";

pub(super) fn check(source: &Source) -> Vec<Offence> {
    let mut offences = Vec::new();
    for span in comments(&source.text) {
        let text = source.text.get(span.clone()).unwrap_or_default();
        let first = source.text.get(..span.start).unwrap_or_default().matches('\n').count() + 1;
        for (offset, line) in text.split('\n').enumerate() {
            if let Some(mark) = MARKS.into_iter().find(|mark| has_bare_mark(line, mark)) {
                let what = format!("{mark} without an issue");
                offences.push(source.offence(first + offset, what, MEND));
            }
        }
    }
    offences
}

/// Says whether a line holds the mark as a word, and no issue number after it.
fn has_bare_mark(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        let after = line.get(at + mark.len()..).unwrap_or_default();
        !before.ends_with(is_word) && !after.starts_with(is_word) && !has_issue(after)
    })
}

fn has_issue(text: &str) -> bool {
    text.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where the text is comment or space, in order: all that lies between two tokens, and the
/// documentation, which the parser reads as a token of its own.
fn comments(text: &str) -> Vec<Range<usize>> {
    let Ok(tokens) = text.parse::<TokenStream>() else { return Vec::new() };
    let mut spans = BTreeSet::new();
    collect(tokens, &mut spans);
    let mut found = Vec::new();
    let mut end = 0;
    for (from, to) in spans {
        found.push(end..from.max(end));
        let token = text.get(from..to).unwrap_or_default();
        if token.starts_with("//") || token.starts_with("/*") {
            found.push(from..to);
        }
        end = to.max(end);
    }
    found.push(end..text.len());
    found
}

fn collect(tokens: TokenStream, spans: &mut BTreeSet<(usize, usize)>) {
    let mut note = |span: proc_macro2::Span| {
        let bytes = span.byte_range();
        spans.insert((bytes.start, bytes.end));
    };
    let mut inner = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                note(group.span_open());
                note(group.span_close());
                inner.push(group.stream());
            }
            leaf => note(leaf.span()),
        }
    }
    for stream in inner {
        collect(stream, spans);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rule::sample;

    fn lines(text: &str) -> Vec<usize> {
        sample::lines(check, "crates/x/src/a.rs", text)
    }

    #[test]
    fn a_bare_mark_fails_in_every_kind_of_comment() {
        let text = "//! TODO\n/// FIXME: later\nfn a() { // TODO(me)\n    /* a\n TODO */\n}\n";
        assert_eq!(lines(text), [1, 2, 3, 5]);
        assert_eq!(lines("fn a() {}\n// ends in TODO"), [2]);
    }

    #[test]
    fn a_mark_with_its_issue_passes() {
        assert_eq!(lines("// TODO(#12): hedge\n// FIXME see #7\nfn a() {}\n"), [0; 0]);
        assert_eq!(lines("// #12: TODO\n// TODO # later\n"), [1, 2]);
    }

    #[test]
    fn a_mark_in_a_string_or_inside_a_word_passes() {
        assert_eq!(lines("fn a() { let _ = (\"// TODO\", r#\"TODO\"#, TODO, mTODO); }\n"), [0; 0]);
        assert_eq!(lines("// TODOS and MYTODO and TODO_LIST\n"), [0; 0]);
    }

    #[test]
    fn lines_are_counted_in_text_with_wide_letters() {
        assert_eq!(lines("fn a() { let _ = \"äöü漢字\"; }\n\n// é TODO\n"), [3]);
    }
}
