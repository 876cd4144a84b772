//! The parsed text of a config file, which knows where everything in it stands.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::problem::{Place, Problem};
use super::{veil, wording};

/// Problems of the text itself that are looked for; more are told when these are mended.
const MAX_UNFIT: usize = 20;
/// Problems that are told at once.
pub(super) const MAX_TOLD: usize = 100;

/// A config file's text as a tree with places.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    name: &'t str,
    text: &'t str,
    root: Spanned<DeValue<'t>>,
    veiled: Vec<Range<usize>>,
}

impl<'t> Tree<'t> {
    /// Parses `text`, which is named `name` in problems.
    ///
    /// # Errors
    /// The places where it is not TOML, the first of each line.
    pub(super) fn parse(name: &'t str, text: &'t str) -> Result<Self, Vec<Problem>> {
        let (root, errors) = DeTable::parse_recoverable(text);
        let span = root.span();
        let root = Spanned::new(span, DeValue::Table(root.into_inner()));
        let veiled = veil::of_tree(&root, text);
        let mut tree = Self { name, text, root, veiled };
        if errors.is_empty() {
            return Ok(tree);
        }
        // What failed to parse is not in the tree, so its secrets are looked for in the text.
        tree.veiled.extend(veil::of_text(text));
        let mut found: Vec<Problem> = Vec::new();
        for error in &errors {
            let span = error.span().unwrap_or(0..0);
            if found.len() < MAX_UNFIT && !follows(&found, &span, text) {
                let token = text.get(span.clone()).unwrap_or_default();
                found.push(wording::syntax(error.message(), token).at(span));
            }
        }
        Err(tree.told(found))
    }

    /// The problems that are worth telling at once, errors before the rest, with their places, in
    /// the order of the file.
    pub(super) fn told(&self, mut found: Vec<Problem>) -> Vec<Problem> {
        if found.len() > MAX_TOLD {
            found.sort_by_key(|problem| problem.severity);
        }
        let more = found.split_off(found.len().min(MAX_TOLD));
        found.sort_by_key(|problem| problem.span.as_ref().map_or(0, |span| span.start));
        let mut told: Vec<Problem> = found
            .into_iter()
            .map(|problem| match problem.span.clone() {
                Some(span) => {
                    let place = Place::new(self.name, self.text, span, &self.veiled);
                    problem.placed(place)
                }
                None => problem,
            })
            .collect();
        if !more.is_empty() {
            told.push(Problem::warning("more", format!("problems not told: {}", more.len())));
        }
        told
    }

    /// Reads the tree as a `T`, leaving out what does not fit. `None` where too much does not.
    pub(super) fn read<T: DeserializeOwned>(&self, problems: &mut Vec<Problem>) -> Option<T> {
        let mut root = self.root.clone();
        for _ in 0..MAX_UNFIT {
            let error = match T::deserialize(ValueDeserializer::from(root.clone())) {
                Ok(read) => return Some(read),
                Err(error) => error,
            };
            let problem = wording::unfit(error.message());
            let Some(span) = error.span() else {
                problems.push(problem);
                return None;
            };
            problems.push(problem.at(span.clone()));
            if !matches!(prune(root.get_mut(), &span), Found::Gone) {
                return None;
            }
        }
        None
    }

    /// Where the value at `path` stands; an index is written as a number. What is not there is
    /// looked for at the nearest table around it.
    pub(super) fn value(&self, path: &[&str]) -> Range<usize> {
        self.find(path).1
    }

    /// Where the key at the end of `path` stands.
    pub(super) fn key(&self, path: &[&str]) -> Range<usize> {
        self.find(path).0
    }

    /// Whether the file says anything at `path`, fit or not.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        let mut at = self.root.get_ref();
        path.iter().all(|&step| {
            let Some((_, next)) = child(at, step) else { return false };
            at = next.get_ref();
            true
        })
    }

    /// The spans of the key and of the value at `path`.
    fn find(&self, path: &[&str]) -> (Range<usize>, Range<usize>) {
        let mut at = &self.root;
        let (mut key, mut value) = (at.span(), at.span());
        for &step in path {
            let Some((key_span, next)) = child(at.get_ref(), step) else { break };
            (key, value) = (key_span, next.span());
            at = next;
        }
        (key, value)
    }
}

/// Whether a problem at `span` follows from the last one found: it is in the same line, or in a
/// table whose header is the second of its name, where everything is there twice.
fn follows(found: &[Problem], span: &Range<usize>, text: &str) -> bool {
    let Some(last) = found.last() else { return false };
    let Some(at) = &last.span else { return false };
    let between = text.get(at.start..span.start).unwrap_or_default();
    let header = text.get(..at.start).unwrap_or_default().trim_end().ends_with(['[', '.']);
    !between.contains('\n') || last.code == "duplicate-key" && header
}

/// The item of `value` named (or numbered) `step`, and where its name stands.
fn child<'v, 't>(
    value: &'v DeValue<'t>,
    step: &str,
) -> Option<(Range<usize>, &'v Spanned<DeValue<'t>>)> {
    match value {
        DeValue::Table(table) => table.get_key_value(step).map(|(key, item)| (key.span(), item)),
        DeValue::Array(items) => {
            step.parse().ok().and_then(|n: usize| items.get(n)).map(|item| (item.span(), item))
        }
        _ => None,
    }
}

/// How a search for the innermost item around a span went.
enum Found {
    /// It is not in here.
    Nowhere,
    /// It is, but cannot be taken out: items of a list keep their numbers, which places go by.
    Here,
    /// It is taken out.
    Gone,
}

/// Takes the innermost entry of a table that `span` lies in out of `value`.
fn prune(value: &mut DeValue<'_>, span: &Range<usize>) -> Found {
    let holds = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    match value {
        DeValue::Table(table) => {
            // The key itself first: a header's span holds those of all the names in it.
            let named = table.keys().find(|key| key.span() == *span).cloned();
            let mut doomed = named;
            for (key, item) in table.iter_mut() {
                if doomed.is_some() {
                    break;
                }
                match prune(item.get_mut(), span) {
                    Found::Gone => return Found::Gone,
                    Found::Nowhere if !holds(key.span()) && !holds(item.span()) => {}
                    Found::Here | Found::Nowhere => doomed = Some(key.clone()),
                }
            }
            let Some(key) = doomed else { return Found::Nowhere };
            table.remove(key.get_ref().as_ref());
            Found::Gone
        }
        DeValue::Array(items) => {
            let mut found = Found::Nowhere;
            for item in items.iter_mut() {
                match prune(item.get_mut(), span) {
                    Found::Gone => return Found::Gone,
                    Found::Nowhere if !holds(item.span()) => {}
                    Found::Here | Found::Nowhere => found = Found::Here,
                }
            }
            found
        }
        _ => Found::Nowhere,
    }
}
