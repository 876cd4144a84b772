//! A file holds at most 500 lines without its tests, and a function at most 80.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::tidy::offence::Offence;
use crate::tidy::source::Source;

/// What one sitting reads.
const MAX_FILE_LINES: usize = 500;
/// The 99th percentile of a well-kept proxy is 79; clippy.toml has the same number.
const MAX_FUNCTION_LINES: usize = 80;

pub(super) fn check(source: &Source) -> Vec<Offence> {
    let mut functions = Functions { source, offences: Vec::new() };
    functions.visit_file(&source.syntax);
    functions.offences.extend(file(source));
    functions.offences
}

fn file(source: &Source) -> Option<Offence> {
    let lines = (1..=source.text.lines().count()).filter(|&line| !source.is_test(line)).count();
    (lines > MAX_FILE_LINES).then(|| {
        source.offence(
            1,
            format!("{lines} lines without tests, {MAX_FILE_LINES} allowed"),
            "move one idea into a file of its own",
        )
    })
}

struct Functions<'a> {
    source: &'a Source,
    offences: Vec<Offence>,
}

impl Functions<'_> {
    /// Measures from the signature to the closing brace; comments and attributes above are free.
    fn measure(&mut self, signature: &syn::Signature, end: Span) {
        let first = signature.span().start().line;
        let lines = end.end().line + 1 - first;
        if lines > MAX_FUNCTION_LINES {
            self.offences.push(self.source.offence(
                first,
                format!("fn {} has {lines} lines, {MAX_FUNCTION_LINES} allowed", signature.ident),
                "name its steps and make each a function",
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, function.block.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, function.block.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.measure(&function.sig, function.span());
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rule::sample;

    fn function_of(lines: usize) -> String {
        format!("/// Says.\nfn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    fn lines(path: &str, text: &str) -> Vec<usize> {
        sample::lines(check, path, text)
    }

    #[test]
    fn a_function_of_80_lines_passes_and_one_of_81_fails_at_its_signature() {
        assert_eq!(lines("crates/x/src/a.rs", &function_of(80)), [0; 0]);
        assert_eq!(lines("crates/x/src/a.rs", &function_of(81)), [2]);
    }

    #[test]
    fn methods_trait_defaults_and_inner_functions_are_measured() {
        let long = function_of(81);
        for (open, close) in
            [("impl A {", "}"), ("trait A {", "}"), ("mod a {", "}"), ("fn o() {", "}")]
        {
            let text = format!("{open}\n{long}{close}\n");
            assert!(lines("crates/x/src/a.rs", &text).contains(&3), "{open}");
        }
    }

    #[test]
    fn braces_in_strings_and_comments_do_not_end_a_function() {
        let text = format!("fn a() {{ // }}\n    let _ = (\"}}\", '}}');\n}}\n{}", function_of(81));
        assert_eq!(lines("crates/x/src/a.rs", &text), [5]);
    }

    #[test]
    fn a_file_of_501_lines_fails_and_one_of_500_passes() {
        assert_eq!(lines("crates/x/src/a.rs", &"const _: u8 = 0;\n".repeat(500)), [0; 0]);
        assert_eq!(lines("crates/x/src/a.rs", &"const _: u8 = 0;\n".repeat(501)), [1]);
    }

    #[test]
    fn tests_do_not_count_towards_the_file() {
        let body = "const _: u8 = 0;\n".repeat(400);
        let text = format!("{body}#[cfg(test)]\nmod tests {{\n{body}}}\n");
        assert_eq!(lines("crates/x/src/a.rs", &text), [0; 0]);
        assert_eq!(lines("crates/x/src/a.rs", &text.replace("(test)", "(unix)")), [1]);
        assert_eq!(lines("crates/x/tests/it/a.rs", &body.repeat(3)), [0; 0]);
    }
}
