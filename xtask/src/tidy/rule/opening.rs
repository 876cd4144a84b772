//! A file opens with one `//!` sentence that a stranger understands.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

use crate::tidy::offence::Offence;
use crate::tidy::source::Source;

const MEND: &str = "begin the file with one `//!` sentence that says what it does";

pub(super) fn check(source: &Source) -> Vec<Offence> {
    let opening = first_paragraph(&source.syntax.attrs);
    let what = match opening.as_str() {
        "" => "no opening sentence",
        text if text.ends_with(['.', '!', '?', ':']) => return Vec::new(),
        _ => "the opening is not a sentence: it has no full stop",
    };
    vec![source.offence(1, what.to_owned(), MEND)]
}

/// The first paragraph of the file's own documentation; empty when there is none.
fn first_paragraph(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(doc_text).collect();
    let text = lines.join("\n");
    let trimmed = |line: &str| line.trim().to_owned();
    let paragraph = text.lines().map(trimmed).skip_while(String::is_empty);
    paragraph.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn doc_text(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rule::sample;

    fn is_fine(text: &str) -> bool {
        sample::lines(check, "crates/x/tests/it/a.rs", text).is_empty()
    }

    #[test]
    fn a_sentence_passes_over_several_lines_and_after_other_attributes() {
        assert!(is_fine("//! Opens the circuit.\nfn a() {}\n"));
        assert!(is_fine("//! Opens the circuit\n//! to a target.\n//!\n//! - and a list\n"));
        assert!(is_fine("#![warn(clippy::wildcard_enum_match_arm)]\n//! Opens it.\n"));
        assert!(is_fine("/*! Opens it. */\n"));
    }

    #[test]
    fn no_text_no_stop_and_documentation_of_an_item_fail() {
        assert!(!is_fine(""));
        assert!(!is_fine("// Opens the circuit.\nfn a() {}\n"));
        assert!(!is_fine("/// Opens the circuit.\nfn a() {}\n"));
        assert!(!is_fine("//!\nfn a() {}\n"));
        assert!(!is_fine("//! Circuit breaker\n//!\n//! Opens it.\n"));
    }
}
