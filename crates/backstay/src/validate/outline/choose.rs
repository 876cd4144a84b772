//! Tells which of several alternatives a value is meant to fit, where the value itself says so.
//!
//! ```text
//!  {"kind": "card", "digits": "12"}   kind: "card" | "cash"       the constant names it
//!  {"digits": "12"}                   required: digits | coins    only one has to have that key
//!  [1, "2"]                           list | object               only one is a list
//! ```
//! Everything that names an alternative has to name the same one, and as it stands the value must
//! fit none of the others: what fits is never changed. An alternative is never chosen by likeness,
//! nor because the others fit worse.

use std::borrow::Cow;
use std::collections::HashSet;

use jsonmend::{Guide, Member, Node, Place, ValueKind};

use super::listing::{Listing, folded};
use super::{Kinds, Outline};

/// The most keys of an object that are looked at.
const MAX_KEYS: usize = 256;

/// The longest text, in bytes, that may be a constant's: it is folded and compared.
const MAX_CONSTANT: usize = 256;

/// What one member says of the alternatives.
enum Says {
    Nothing,
    /// By a constant: it is meant for those at these places, and fits no other.
    May(Vec<bool>),
    /// It is no constant of any of them: it is not meant for these.
    Not(Vec<bool>),
    /// By its key: only the one at this place has to have it.
    Requires(usize),
}

/// What all members say of one alternative.
#[derive(Clone, Copy)]
struct Verdict {
    /// Whether each that names an alternative names this one.
    is_named: bool,
    /// Whether the value cannot fit it as it stands.
    is_out: bool,
}

impl Outline {
    /// The place of the alternative that `node` names, in turn where alternatives stand in each
    /// other; `at` itself where there are none, or none is named.
    pub(in crate::validate) fn chosen(&self, node: Node<'_>, at: Place) -> Place {
        let mut place = at;
        // Each step settles a union, and a place has few.
        while let Some(inner) = self.named(node, place) {
            place = inner;
        }
        place
    }

    /// The keys that are compared, at most, to tell which alternative of `at` the `node` names; 0
    /// where there are none.
    pub(in crate::validate) fn keys_compared(&self, node: Node<'_>, at: Place) -> usize {
        let keys = 1 + node.len().min(MAX_KEYS);
        let each = self.spot(at).choices.iter();
        each.map(|choice| keys * (2 + self.spot(*choice).required.len())).sum()
    }

    /// The alternative of `at` that `node` names.
    pub(in crate::validate) fn named(&self, node: Node<'_>, at: Place) -> Option<Place> {
        let kind = Kinds::of(node);
        if !kind.meets(Kinds::OBJECT.or(Kinds::ARRAY)) {
            return None;
        }
        let choices = self.spot(at).choices.iter().copied();
        let choices: Vec<Place> =
            choices.filter(|choice| self.spot(*choice).kinds.meets(kind)).collect();
        match choices.as_slice() {
            [] => None,
            [only] => Some(*only),
            several => self.named_by_members(node, several),
        }
    }

    fn named_by_members(&self, node: Node<'_>, choices: &[Place]) -> Option<Place> {
        if node.kind() != ValueKind::Object || node.len() > MAX_KEYS {
            return None;
        }
        let keys: HashSet<Cow<'_, str>> = node.members().map(|(key, _)| key).collect();
        let lacks =
            |choice: Place| self.spot(choice).required.iter().any(|k| !keys.contains(k.as_str()));
        let mut is_any_named = false;
        let mut verdicts = vec![Verdict { is_named: true, is_out: false }; choices.len()];
        for (key, value) in node.members() {
            let says = self.says(choices, &key, value);
            is_any_named |= matches!(says, Says::May(_) | Says::Requires(_));
            for (index, (verdict, choice)) in verdicts.iter_mut().zip(choices).enumerate() {
                let (is_meant, is_out) = match &says {
                    Says::Nothing => continue,
                    Says::May(these) => {
                        let may = these.get(index).copied().unwrap_or(true);
                        (may, !may)
                    }
                    Says::Not(these) => (!these.get(index).copied().unwrap_or(false), false),
                    Says::Requires(one) if *one == index => (true, false),
                    Says::Requires(_) => {
                        let forbids = self.member(*choice, &key) == Member::Forbidden;
                        (false, forbids || lacks(*choice))
                    }
                };
                verdict.is_named &= is_meant;
                verdict.is_out |= is_out;
            }
        }
        let mut named = choices.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_named);
        let (Some((one, _)), None) = (named.next(), named.next()) else { return None };
        let is_alone = verdicts.iter().all(|verdict| verdict.is_named || verdict.is_out);
        (is_any_named && is_alone).then_some(*one)
    }

    fn says(&self, choices: &[Place], key: &str, value: Node<'_>) -> Says {
        let listing = |choice: &Place| {
            let inside = self.inside(*choice, key)?;
            self.spot(inside).listed.as_deref()
        };
        let mut listings = choices.iter().filter_map(listing).peekable();
        if listings.peek().is_some() && listings.all(Listing::is_one_word) {
            let may = self.by_constant(choices, key, value);
            let has = |choice| listing(choice).is_some();
            return may.map_or_else(|| Says::Not(choices.iter().map(has).collect()), Says::May);
        }
        let requires = |choice: &Place| self.spot(*choice).required.iter().any(|one| one == key);
        let mut requiring = choices.iter().enumerate().filter(|(_, choice)| requires(choice));
        let (Some((one, _)), None) = (requiring.next(), requiring.next()) else {
            return Says::Nothing;
        };
        let describes = |choice: &Place| self.spot(*choice).members.contains_key(key);
        let others = choices.iter().enumerate().filter(|(index, _)| *index != one);
        if others.map(|(_, choice)| choice).any(describes) {
            return Says::Nothing;
        }
        Says::Requires(one)
    }

    /// What the value of a key says that is a constant in some alternatives: they are told apart by
    /// it where one of them has this value, in this spelling or in another that `enum_fold` knows.
    /// `None`: none of them has it.
    fn by_constant(&self, choices: &[Place], key: &str, value: Node<'_>) -> Option<Vec<bool>> {
        if matches!(value.kind(), ValueKind::Object | ValueKind::Array) {
            return None;
        }
        let word = value.string();
        // Not worth the look at a long text.
        if word.as_ref().is_some_and(|word| word.len() > MAX_CONSTANT) {
            return None;
        }
        let plain = value.to_value();
        self.told_apart(choices, key, |listed| listed.has(&plain)).or_else(|| {
            let folded = folded(&word?);
            self.told_apart(choices, key, |listed| listed.only_like(&folded).is_some())
        })
    }

    /// Which alternatives may have the value, where at least one lists it.
    fn told_apart(
        &self,
        choices: &[Place],
        key: &str,
        lists: impl Fn(&Listing) -> bool,
    ) -> Option<Vec<bool>> {
        let mut is_listed = false;
        let mut may = Vec::with_capacity(choices.len());
        for choice in choices {
            may.push(match self.member(*choice, key) {
                Member::Known(inside) => match self.spot(inside).listed.as_deref() {
                    Some(listed) => {
                        let has = lists(listed);
                        is_listed |= has;
                        has
                    }
                    None => true,
                },
                Member::Open => true,
                Member::Forbidden => false,
            });
        }
        is_listed.then_some(may)
    }
}
