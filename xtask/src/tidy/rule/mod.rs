//! The house rules, one file each.

mod flags;
mod marks;
mod names;
mod opening;
mod size;
mod wrapped;

use super::offence::Offence;
use super::source::Source;

/// Returns every place in a file that breaks the rule, in any order.
pub(crate) type Rule = fn(&Source) -> Vec<Offence>;

/// Every rule, in the order of CONTRIBUTING.md.
pub(crate) const ALL: [Rule; 6] =
    [size::check, opening::check, names::check, marks::check, wrapped::check, flags::check];

/// What the tests of the rules share: a piece of text as a file.
#[cfg(test)]
mod sample {
    use super::super::source::Source;
    use super::Rule;

    /// The lines a rule complains about in `text`, sorted.
    pub(super) fn lines(rule: Rule, path: &str, text: &str) -> Vec<usize> {
        let source = Source::parse(path, text.to_owned()).unwrap();
        let mut lines: Vec<usize> = rule(&source).iter().map(|offence| offence.line).collect();
        lines.sort_unstable();
        lines
    }
}
