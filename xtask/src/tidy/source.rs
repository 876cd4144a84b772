//! One Rust file, parsed, with its test code marked.

use std::ops::RangeInclusive;

use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Meta, Token};

use super::offence::Offence;

/// What a rule is given.
pub(crate) struct Source {
    /// From the repository's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
    tests: Tests,
}

enum Tests {
    /// The file as a whole is test code: in a `tests` folder, or named `tests.rs`.
    All,
    /// The lines of each `#[cfg(test)] mod`.
    Within(Vec<RangeInclusive<usize>>),
}

impl Source {
    /// # Errors
    /// An offence at the place where the text stops being Rust.
    pub(crate) fn parse(path: &str, text: String) -> Result<Self, Offence> {
        let syntax = syn::parse_file(&text).map_err(|error| Offence {
            path: path.to_owned(),
            line: error.span().start().line,
            what: format!("does not parse ({error})"),
            mend: "make it compile first".to_owned(),
        })?;
        let tests = if is_test_path(path) {
            Tests::All
        } else {
            let mut found = TestModules { spans: Vec::new() };
            found.visit_file(&syntax);
            Tests::Within(found.spans)
        };
        Ok(Self { path: path.to_owned(), text, syntax, tests })
    }

    /// Says whether a line, counted from 1, belongs to test code.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        match &self.tests {
            Tests::All => true,
            Tests::Within(spans) => spans.iter().any(|span| span.contains(&line)),
        }
    }

    /// Makes an offence in this file.
    pub(crate) fn offence(&self, line: usize, what: String, mend: &str) -> Offence {
        Offence { path: self.path.clone(), line, what, mend: mend.to_owned() }
    }
}

fn is_test_path(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    parts.next() == Some("tests.rs") || parts.any(|folder| folder == "tests")
}

struct TestModules {
    spans: Vec<RangeInclusive<usize>>,
}

impl Visit<'_> for TestModules {
    fn visit_item_mod(&mut self, module: &syn::ItemMod) {
        if module.attrs.iter().any(is_test_only) {
            let span = module.span();
            self.spans.push(span.start().line..=span.end().line);
            return;
        }
        visit::visit_item_mod(self, module);
    }
}

/// Says whether an attribute is a `cfg` that only test builds meet.
fn is_test_only(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
}

fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        // `any(test, …)` and `not(test)` hold outside tests too.
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|inner| inner.iter().any(needs_test)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_lines(path: &str, text: &str) -> Vec<usize> {
        let source = Source::parse(path, text.to_owned()).unwrap();
        (1..=text.lines().count()).filter(|&line| source.is_test(line)).collect()
    }

    #[test]
    fn a_test_module_is_marked_from_its_attribute_to_its_brace() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        assert_eq!(test_lines("crates/x/src/a.rs", text), [3, 4, 5, 6]);
    }

    #[test]
    fn only_conditions_that_need_test_count() {
        for (condition, lines) in [
            ("all(test, unix)", 1),
            ("all(unix, all(test))", 1),
            ("any(test, unix)", 0),
            ("not(test)", 0),
            ("feature = \"test\"", 0),
        ] {
            let text = format!("#[cfg({condition})] mod x {{}}\n");
            assert_eq!(test_lines("crates/x/src/a.rs", &text).len(), lines, "{condition}");
        }
    }

    #[test]
    fn a_tests_folder_and_a_tests_file_are_test_code_throughout() {
        for path in ["crates/x/tests/it/main.rs", "crates/x/src/a/tests.rs"] {
            assert_eq!(test_lines(path, "fn a() {}\n"), [1], "{path}");
        }
        assert_eq!(test_lines("crates/tests_of_x/src/contests.rs", "fn a() {}\n").len(), 0);
    }

    #[test]
    fn text_that_is_not_rust_is_an_offence_with_its_line() {
        let offence = Source::parse("crates/x/src/a.rs", "fn a() {}\nfn (\n".to_owned()).err();
        let offence = offence.expect("the text is broken");
        assert_eq!((offence.line, offence.path.as_str()), (2, "crates/x/src/a.rs"));
    }
}
