//! A dependency that we may want to change is named in one file or folder only.
//!
//! Tests and the mock provider are free: they stand at the other end of the wire, or read what we
//! wrote as a stranger would, and prove nothing if they share our code.

use proc_macro2::{TokenStream, TokenTree};
use syn::UseTree;
use syn::visit::{self, Visit};

use crate::tidy::offence::Offence;
use crate::tidy::source::Source;

struct Wrapped {
    name: &'static str,
    /// Paths that reach it.
    roots: &'static [&'static [&'static str]],
    /// The one file, or the one folder with a slash behind it.
    home: &'static str,
}

const ALL: [Wrapped; 5] = [
    Wrapped {
        name: "the hyper client",
        roots: &[&["hyper", "client"], &["hyper_util", "client"]],
        home: "crates/backstay/src/attempt/transport/",
    },
    Wrapped {
        name: "jsonschema",
        roots: &[&["jsonschema"]],
        home: "crates/backstay/src/validate/schema/",
    },
    Wrapped { name: "cel", roots: &[&["cel"]], home: "crates/backstay/src/validate/rules.rs" },
    Wrapped {
        name: "rusqlite",
        roots: &[&["rusqlite"]],
        home: "crates/backstay/src/record/store/sqlite/",
    },
    Wrapped {
        name: "prometheus-client",
        roots: &[&["prometheus_client"]],
        home: "crates/backstay/src/record/metrics/",
    },
];

pub(super) fn check(source: &Source) -> Vec<Offence> {
    let mut paths = Paths { found: Vec::new() };
    paths.visit_file(&source.syntax);
    let mut offences = Vec::new();
    for wrapped in &ALL {
        let mut used: Vec<usize> = paths
            .found
            .iter()
            .filter(|path| wrapped.roots.iter().any(|root| path.reaches(root)))
            .map(|path| path.line)
            .filter(|&line| !wrapped.allows(source, line))
            .collect();
        used.sort_unstable();
        used.dedup();
        let what = format!("{} is used outside its one place", wrapped.name);
        let mend = format!("go through {}", wrapped.home);
        offences.extend(used.into_iter().map(|line| source.offence(line, what.clone(), &mend)));
    }
    offences
}

impl Wrapped {
    fn allows(&self, source: &Source, line: usize) -> bool {
        let is_other_end = source.is_test(line) || source.path.starts_with("crates/backstay-mock/");
        let is_home = source.path == self.home
            || self.home.ends_with('/') && source.path.starts_with(self.home);
        is_home || is_other_end
    }
}

/// A path as written, `*` at the end for a glob.
struct Written {
    segments: Vec<String>,
    line: usize,
}

impl Written {
    fn reaches(&self, root: &[&str]) -> bool {
        let mut words = self.segments.iter().map(String::as_str);
        for wanted in root {
            match words.next() {
                Some("*") => return true,
                Some(word) if word == *wanted => {}
                _ => return false,
            }
        }
        true
    }
}

struct Paths {
    found: Vec<Written>,
}

impl Paths {
    /// Spells out one `use` as the list of paths it brings in.
    fn spell(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| {
            let mut segments = before.to_vec();
            segments.push(name.to_string());
            segments
        };
        let (segments, line) = match tree {
            UseTree::Path(path) => return self.spell(&with(&path.ident), &path.tree),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.spell(before, tree));
            }
            UseTree::Name(name) => (with(&name.ident), name.ident.span()),
            UseTree::Rename(name) => (with(&name.ident), name.ident.span()),
            UseTree::Glob(glob) => {
                let star = [before, &["*".to_owned()]].concat();
                (star, glob.star_token.spans[0])
            }
        };
        self.found.push(Written { segments, line: line.start().line });
    }

    /// Finds `a::b` in the tokens of a macro or an attribute, which have no syntax of their own.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Option<Written> = None;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.keep(path.take());
                    }
                    let line = word.span().start().line;
                    let open = path.get_or_insert(Written { segments: Vec::new(), line });
                    open.segments.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && colons < 2 => colons += 1,
                other => {
                    self.keep(path.take());
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.scan(group.stream());
                    }
                }
            }
        }
        self.keep(path);
    }

    /// One word alone is a variable or a local name, never a crate.
    fn keep(&mut self, path: Option<Written>) {
        self.found.extend(path.filter(|path| path.segments.len() > 1));
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.spell(&[], &item.tree);
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        let line = item.ident.span().start().line;
        self.found.push(Written { segments: vec![item.ident.to_string()], line });
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(1, |first| first.ident.span().start().line);
        self.keep(Some(Written { segments, line }));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.scan(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.scan(list.tokens.clone());
        visit::visit_meta_list(self, list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::rule::sample;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        sample::lines(check, path, text)
    }

    fn elsewhere(text: &str) -> Vec<usize> {
        lines("crates/backstay-gateway/src/api/mod.rs", text)
    }

    #[test]
    fn each_wrapped_dependency_passes_at_home_and_fails_elsewhere() {
        for wrapped in &ALL {
            for root in wrapped.roots {
                let text = format!("use {}::X;\n", root.join("::"));
                let what = wrapped.name;
                assert_eq!(lines(wrapped.home, &text), [0; 0], "{what}");
                assert_eq!(elsewhere(&text), [1], "{what}");
            }
        }
    }

    #[test]
    fn the_mock_and_tests_are_free() {
        let text = "use hyper_util::client::legacy::Client;\nuse rusqlite::Connection;\n";
        assert_eq!(lines("crates/backstay-mock/src/lib.rs", text), [0; 0]);
        assert_eq!(lines("crates/backstay/tests/it/main.rs", text), [0; 0]);
        let both = format!("#[cfg(test)]\nmod tests {{\n{text}}}\n{text}");
        assert_eq!(elsewhere(&both), [6, 7]);
    }

    #[test]
    fn groups_globs_and_renames_are_seen_through() {
        assert_eq!(
            elsewhere("use hyper_util::{\n    rt::TokioIo,\n    client::legacy,\n};\n"),
            [3]
        );
        assert_eq!(elsewhere("use hyper_util::*;\n"), [1]);
        assert_eq!(elsewhere("use jsonschema as schema;\n"), [1]);
        assert_eq!(elsewhere("extern crate cel;\n"), [1]);
        assert_eq!(elsewhere("use hyper::{Request, server::conn};\n"), [0; 0]);
    }

    #[test]
    fn paths_in_expressions_types_macros_and_derives_are_found() {
        assert_eq!(elsewhere("fn a() { cel::run() }\n"), [1]);
        assert_eq!(elsewhere("struct A(rusqlite::Connection);\n"), [1]);
        assert_eq!(elsewhere("fn a() { vec![(1, ::cel::run())]; }\n"), [1]);
        assert_eq!(
            elsewhere("#[derive(Debug, prometheus_client::encoding::Label)]\nstruct A;\n"),
            [1]
        );
    }

    #[test]
    fn a_local_name_that_looks_alike_passes() {
        assert_eq!(elsewhere("fn a(cel: u8) -> u8 { format!(\"{}\", cel); cel }\n"), [0; 0]);
        assert_eq!(elsewhere("use crate::validate::cel;\nuse super::jsonschema::X;\n"), [0; 0]);
        assert_eq!(elsewhere("fn a() { f!(x: cel, y: other::cel::z) }\n"), [0; 0]);
        assert_eq!(elsewhere("//! Not jsonschema::X.\n"), [0; 0]);
    }
}
