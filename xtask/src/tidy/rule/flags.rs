//! A public function takes no bare `bool`: at the call, `true` says nothing.

use syn::visit::{self, Visit};
use syn::{FnArg, Signature, Type, Visibility};

use crate::tidy::offence::Offence;
use crate::tidy::source::Source;

const MEND: &str = "take an enum whose variants say what happens";

pub(super) fn check(source: &Source) -> Vec<Offence> {
    let mut flags = Flags { source, offences: Vec::new() };
    flags.visit_file(&source.syntax);
    flags.offences
}

struct Flags<'a> {
    source: &'a Source,
    offences: Vec<Offence>,
}

impl Flags<'_> {
    fn judge(&mut self, signature: &Signature) {
        let line = signature.ident.span().start().line;
        if signature.inputs.iter().any(is_flag) && !self.source.is_test(line) {
            let what = format!("pub fn {} takes a bare bool", signature.ident);
            self.offences.push(self.source.offence(line, what, MEND));
        }
    }
}

fn is_flag(argument: &FnArg) -> bool {
    match argument {
        FnArg::Typed(typed) => {
            matches!(&*typed.ty, Type::Path(path) if path.path.is_ident("bool"))
        }
        FnArg::Receiver(_) => false,
    }
}

impl<'ast> Visit<'ast> for Flags<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if matches!(function.vis, Visibility::Public(_)) {
            self.judge(&function.sig);
        }
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        // The functions of a trait's impl have no visibility of their own.
        if matches!(function.vis, Visibility::Public(_)) {
            self.judge(&function.sig);
        }
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if matches!(item.vis, Visibility::Public(_)) {
            for member in &item.items {
                if let syn::TraitItem::Fn(function) = member {
                    self.judge(&function.sig);
                }
            }
        }
        visit::visit_item_trait(self, item);
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
    fn a_bare_bool_fails_in_a_function_a_method_and_a_trait() {
        assert_eq!(lines("pub fn note(succeeded: bool) {}"), [1]);
        assert_eq!(lines("impl A {\n    pub async fn note(&self, ok: bool) {}\n}"), [2]);
        assert_eq!(lines("pub trait A {\n    fn note(&self, ok: bool);\n}"), [2]);
    }

    #[test]
    fn private_code_other_types_and_results_pass() {
        assert_eq!(lines("fn note(succeeded: bool) {}\npub(crate) fn say(loud: bool) {}"), [0; 0]);
        assert_eq!(lines("pub fn open(order: Order) -> bool { true }"), [0; 0]);
        assert_eq!(lines("pub fn skip(flag: &bool, all: Option<bool>) {}"), [0; 0]);
        assert_eq!(lines("impl Visitor for A { fn visit_bool(self, value: bool) {} }"), [0; 0]);
        assert_eq!(lines("#[cfg(test)]\nmod tests {\n    pub fn a(b: bool) {}\n}"), [0; 0]);
    }
}
