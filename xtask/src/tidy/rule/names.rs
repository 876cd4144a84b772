//! Names say what a thing is: none ends in a word that hides a missing idea.

use syn::Ident;
use syn::visit::{self, Visit};

use crate::tidy::offence::Offence;
use crate::tidy::source::Source;

const BANNED: [&str; 14] = [
    "manager",
    "handler",
    "helper",
    "util",
    "common",
    "misc",
    "service",
    "impl",
    "base",
    "data",
    "info",
    "context",
    "wrapper",
    "processor",
];
const MEND: &str = "name the idea it stands for";

pub(super) fn check(source: &Source) -> Vec<Offence> {
    let mut names = Names { source, offences: Vec::new() };
    names.path();
    names.visit_file(&source.syntax);
    names.offences
}

/// The banned word a name ends in, singular or plural; `Database` and `Metadata` are whole words.
fn banned_ending(name: &str) -> Option<&'static str> {
    let last = last_word(name);
    BANNED.into_iter().find(|&word| last == word || last.strip_suffix('s') == Some(word))
}

/// The last word of `CamelCase` or `snake_case`, in lower case. A run of capitals is one word.
fn last_word(name: &str) -> String {
    let tail = name.rsplit('_').find(|part| !part.is_empty()).unwrap_or_default();
    let letters: Vec<char> = tail.chars().collect();
    let start = (1..letters.len()).rev().find(|&at| starts_word(&letters, at)).unwrap_or(0);
    letters.iter().skip(start).collect::<String>().to_lowercase()
}

fn starts_word(letters: &[char], at: usize) -> bool {
    let is = |at: usize, test: fn(&char) -> bool| letters.get(at).is_some_and(test);
    is(at, |c| c.is_uppercase())
        && (is(at - 1, |c| !c.is_uppercase()) || is(at + 1, |c| c.is_lowercase()))
}

struct Names<'a> {
    source: &'a Source,
    offences: Vec<Offence>,
}

impl Names<'_> {
    fn path(&mut self) {
        let path = self.source.path.strip_suffix(".rs").unwrap_or(&self.source.path);
        let mut found = Vec::new();
        for part in path.split('/') {
            let word = if part == "types" { Some("types") } else { banned_ending(part) };
            found.extend(word.map(|word| format!("file or folder {part} is named `{word}`")));
        }
        self.offences.extend(found.into_iter().map(|what| self.source.offence(1, what, MEND)));
    }

    fn item(&mut self, kind: &str, name: &Ident) {
        if let Some(word) = banned_ending(&name.to_string()) {
            self.report(name, format!("{kind} {name} ends in `{word}`"), MEND);
        }
    }

    fn function(&mut self, attributes: &[syn::Attribute], name: &Ident) {
        let text = name.to_string();
        let last = |path: &syn::Path| path.segments.last().is_some_and(|it| it.ident == "test");
        let is_test = attributes.iter().any(|attribute| last(attribute.path()));
        if is_test && text.starts_with("test_") {
            self.report(name, format!("test {text} starts with `test_`"), "make it a sentence");
        } else if !is_test && text.starts_with("get_") {
            self.report(name, format!("fn {text} starts with `get_`"), "use the field's name");
        } else if text.ends_with("_impl") {
            self.report(name, format!("fn {text} ends in `_impl`"), "say what it does");
        }
    }

    fn report(&mut self, name: &Ident, what: String, mend: &str) {
        self.offences.push(self.source.offence(name.span().start().line, what, mend));
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.item("struct", &item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.item("enum", &item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.item("union", &item.ident);
        visit::visit_item_union(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.item("trait", &item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.item("type", &item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // A module with a file of its own is judged by its path.
        if item.content.is_some() {
            self.item("mod", &item.ident);
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // What a trait asks for is the trait's choice: `type Data` of an http body is not ours.
        if item.trait_.is_none() {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig.ident);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig.ident);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.attrs, &item.sig.ident);
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rule::sample;

    fn lines(text: &str) -> Vec<usize> {
        sample::lines(check, "crates/x/src/a.rs", text)
    }

    fn is_fine_path(path: &str) -> bool {
        sample::lines(check, path, "").is_empty()
    }

    #[test]
    fn each_banned_word_is_caught_as_a_name_and_as_an_ending() {
        for word in BANNED {
            let mut letters = word.chars();
            let first = letters.next().unwrap().to_uppercase();
            let capital: String = first.chain(letters).collect();
            for name in [capital.clone(), format!("Retry{capital}"), format!("Retry{capital}s")] {
                assert_eq!(lines(&format!("struct {name};")), [1], "{name}");
            }
        }
    }

    #[test]
    fn a_banned_word_inside_another_or_in_front_passes() {
        for name in ["Database", "Metadata", "ServiceLevel", "DataUrl", "Simple", "Contextual"] {
            assert_eq!(lines(&format!("struct {name};")), [0; 0], "{name}");
        }
    }

    #[test]
    fn a_run_of_capitals_is_one_word() {
        assert_eq!(last_word("HTTPBase"), "base");
        assert_eq!(last_word("BaseHTTP"), "http");
        assert_eq!(last_word("base_url"), "url");
        assert_eq!(last_word("__"), "");
    }

    #[test]
    fn every_kind_of_item_is_judged() {
        let text = "enum RetryKind {}\nenum RetryInfo {}\ntrait Helper {}\ntype Misc = u8;\n\
                    mod util {}\nunion Data { a: u8 }\nmod misc;\n";
        assert_eq!(lines(text), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn an_associated_type_that_a_foreign_trait_asks_for_passes() {
        assert_eq!(lines("impl Body for A { type Data = u8; fn get_ref(&self) {} }"), [0; 0]);
        assert_eq!(lines("impl A { fn get_ref(&self) {} }"), [1]);
    }

    #[test]
    fn files_and_folders_are_judged() {
        for path in ["crates/x/src/types.rs", "crates/x/src/utils.rs", "crates/x/src/a_helper.rs"] {
            assert!(!is_fine_path(path), "{path}");
        }
        assert!(!is_fine_path("crates/x/tests/common/mod.rs"));
        assert!(is_fine_path("crates/x/src/database.rs"));
        assert!(is_fine_path("crates/x/src/content_types.rs"));
    }

    #[test]
    fn a_test_is_a_sentence_and_a_getter_is_the_fields_name() {
        assert_eq!(lines("#[test]\nfn test_a() {}\n#[tokio::test]\nasync fn test_b() {}"), [2, 4]);
        assert_eq!(lines("#[test]\nfn get_models_lists_routes() {}\nfn tested() {}"), [0; 0]);
        assert_eq!(lines("fn get_delay() {}\nfn answer_impl() {}"), [1, 2]);
    }
}
