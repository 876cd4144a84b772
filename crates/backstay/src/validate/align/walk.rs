//! Goes through a document and its outline side by side, and notes what has to change.

use std::fmt::Write as _;

use backstay_wire::pointer;
use jsonmend::{Guide, Member, Node, Place, ValueKind};
use serde_json::Value;

use super::cursor::Cursor;
use super::splice::{Splice, spliced};
use super::{Wants, declared};
use crate::policy::{Coercion, Encoded, Enums, Extra, Missing};
use crate::validate::outline::{Kinds, Outline, Spot};
use crate::validate::syntax::Parsed;
use crate::validate::{Edit, EditKind};

/// The most changes of values; past it nothing more is changed.
const MAX_EDITS: usize = 1_000;

/// Looks that every document may cost, each about 100 ns: at a value, a missing key, a field of the
/// route, 32 bytes of an edit.
const LOOKS: u64 = 100_000;

/// More looks for each word of a large document's tape.
const LOOKS_A_WORD: u64 = 4;

/// The most words that looks are given for.
const MAX_WORDS: u64 = 250_000;

/// What became of a document.
#[derive(Debug)]
pub(super) enum Aligned {
    /// Every change that may be made is made.
    Changed(Parsed),
    /// There was none to be made.
    Same,
    /// Finding them all would take too long.
    TooCostly,
}

/// `parsed` with every change that may be made.
pub(super) fn aligned(parsed: &Parsed, outline: &Outline, wants: Wants<'_>) -> Aligned {
    let Some(root) = parsed.root() else { return Aligned::Same };
    let words = u64::try_from(root.words()).unwrap_or(u64::MAX).min(MAX_WORDS);
    let mut walk = Walk {
        outline,
        wants,
        left: LOOKS + LOOKS_A_WORD * words,
        cursor: Cursor::new(&parsed.text),
        path: String::new(),
        splices: Vec::new(),
        edits: Vec::new(),
    };
    walk.value(root, outline.root());
    if walk.left == 0 {
        return Aligned::TooCostly;
    }
    if walk.edits.is_empty() {
        return Aligned::Same;
    }
    let edits = walk.edits;
    let text = spliced(&parsed.text, &walk.splices);
    let Some(mut aligned) = Parsed::strict(text) else { return Aligned::Same };
    aligned.edits.clone_from(&parsed.edits);
    aligned.edits.extend(edits);
    Aligned::Changed(aligned)
}

struct Walk<'a> {
    outline: &'a Outline,
    wants: Wants<'a>,
    /// Looks that are left; at 0 nothing more is found, and nothing of it counts.
    left: u64,
    cursor: Cursor<'a>,
    path: String,
    splices: Vec<Splice>,
    edits: Vec<Edit>,
}

impl<'a> Walk<'a> {
    /// Aligns the value at the cursor and goes past it.
    fn value(&mut self, node: Node<'a>, at: Place) {
        let spot = self.outline.spot(at);
        if !self.looks(1) || self.edits.len() >= MAX_EDITS {
            self.cursor.value();
            return;
        }
        if !spot.kinds.meets(Kinds::of(node)) && self.retyped(node, at, spot) {
            return;
        }
        if !self.is_listed(node, spot) && self.listed(node, spot) {
            return;
        }
        let at = self.choice(node, at);
        match node.kind() {
            ValueKind::Object => self.object(node, at),
            ValueKind::Array => self.array(node, at),
            ValueKind::Null | ValueKind::Boolean | ValueKind::Number | ValueKind::String => {
                self.cursor.value();
            }
        }
    }

    /// The alternative that the value names, where there are several.
    fn choice(&mut self, node: Node<'a>, at: Place) -> Place {
        let mut place = at;
        loop {
            let compared = self.outline.keys_compared(node, place);
            // 16 keys: they are in the cache.
            if compared == 0 || !self.looks(compared.div_ceil(16)) {
                return place;
            }
            match self.outline.named(node, place) {
                Some(inner) => place = inner,
                None => return place,
            }
        }
    }

    /// Another type for the value, if the same text has one that fits. Says whether it was found;
    /// then the cursor is past the value.
    fn retyped(&mut self, node: Node<'a>, at: Place, spot: &Spot) -> bool {
        match node.kind() {
            ValueKind::String => {
                self.unquoted(node, spot) || self.decoded(node, at, spot) || self.wrapped(node, at)
            }
            ValueKind::Number if spot.kinds.meets(Kinds::STRING) => {
                let digits = node.number().unwrap_or_default();
                let quoted = format!("\"{digits}\"");
                self.allows(Coercion::NumStr)
                    && self.replaced(EditKind::Coerced(Coercion::NumStr), quoted)
            }
            ValueKind::Number | ValueKind::Boolean | ValueKind::Object => self.wrapped(node, at),
            ValueKind::Array => self.unwrapped(node, at, spot),
            ValueKind::Null => false,
        }
    }

    /// A string whose whole text is a number, `true` or `false`.
    fn unquoted(&mut self, node: Node<'a>, spot: &Spot) -> bool {
        let text = node.string().unwrap_or_default();
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        let Some(inner) = Some(&*text).filter(|_| plain).and_then(|t| Parsed::strict(t.into()))
        else {
            return false;
        };
        let kind = inner.root().map_or(Kinds::NONE, Kinds::of);
        if !spot.kinds.meets(kind) {
            return false;
        }
        let also = |one: Coercion, more: Coercion, wide: Kinds| {
            if self.allows(one) {
                Some(one)
            } else {
                Some(more).filter(|_| self.allows(more) && spot.kinds.meets(wide))
            }
        };
        // `"2.0"` is no whole number to the letter, so it takes the wider leave.
        let whole = !text.contains(['.', 'e', 'E']);
        let coercion = match kind {
            Kinds::INTEGER if whole => also(Coercion::StrInt, Coercion::StrNum, Kinds::FRACTION),
            Kinds::INTEGER | Kinds::FRACTION | Kinds::NUMBER => Some(Coercion::StrNum)
                .filter(|one| self.allows(*one) && spot.kinds.meets(Kinds::FRACTION)),
            Kinds::BOOLEAN => Some(Coercion::StrBool).filter(|one| self.allows(*one)),
            _ => None,
        };
        let Some(coercion) = coercion else { return false };
        self.replaced(EditKind::Coerced(coercion), text.into_owned())
    }

    /// A string that holds a whole object or list.
    fn decoded(&mut self, node: Node<'a>, at: Place, spot: &Spot) -> bool {
        let whole = self.path.is_empty() && self.wants.align.encoded == Encoded::Decode;
        if !whole && !self.allows(Coercion::JsonObject) {
            return false;
        }
        let text = node.string().unwrap_or_default();
        let Some(inner) = Parsed::strict(text.trim().to_owned()) else { return false };
        let Some(root) = inner.root() else { return false };
        let kind = Kinds::of(root);
        if !kind.meets(Kinds::OBJECT.or(Kinds::ARRAY)) || !spot.kinds.meets(kind) {
            return false;
        }
        let kind =
            if whole { EditKind::DoubleEncoded } else { EditKind::Coerced(Coercion::JsonObject) };
        let mut inside = Walk {
            outline: self.outline,
            wants: self.wants,
            left: self.left,
            cursor: Cursor::new(&inner.text),
            path: self.path.clone(),
            splices: Vec::new(),
            edits: Vec::new(),
        };
        inside.value(root, at);
        self.left = inside.left;
        let edits = inside.edits;
        let text = spliced(&inner.text, &inside.splices);
        self.replaced(kind, text);
        self.edits.extend(edits);
        true
    }

    /// One value where a list is wanted.
    fn wrapped(&mut self, node: Node<'a>, at: Place) -> bool {
        let Some(inner) =
            self.outline.element(at, 0).filter(|_| self.allows(Coercion::ScalarArray))
        else {
            return false;
        };
        let spot = self.outline.spot(at);
        let fits = self.outline.spot(inner).kinds.meets(Kinds::of(node));
        if !spot.kinds.meets(Kinds::ARRAY) || !fits || node.kind() == ValueKind::Object {
            return false;
        }
        let start = self.cursor.at();
        let place = self.edits.len();
        self.splices.push(Splice { span: start..start, after: "[".to_owned() });
        let path = self.enter(0);
        self.value(node, inner);
        self.leave(path);
        let end = self.cursor.at();
        self.splices.push(Splice { span: end..end, after: "]".to_owned() });
        let before = self.cursor.text(start..end);
        let kind = EditKind::Coerced(Coercion::ScalarArray);
        let edit = Edit::of_value(kind, &self.path, before, &format!("[{before}]"));
        self.edits.insert(place, edit);
        true
    }

    /// A list of one where a single value is wanted.
    fn unwrapped(&mut self, node: Node<'a>, at: Place, spot: &Spot) -> bool {
        let mut items = node.items();
        let (Some(only), None) = (items.next(), items.next()) else { return false };
        let scalar = !matches!(only.kind(), ValueKind::Array | ValueKind::Object);
        if !self.allows(Coercion::ArrayScalar) || !scalar || !spot.kinds.meets(Kinds::of(only)) {
            return false;
        }
        let mut ahead = self.cursor;
        let whole = ahead.value();
        let start = self.cursor.at();
        let place = self.edits.len();
        self.cursor.step();
        self.splices.push(Splice { span: start..self.cursor.at(), after: String::new() });
        let first = self.cursor.at();
        self.value(only, at);
        let inner = first..self.cursor.at();
        self.splices.push(Splice { span: inner.end..whole.end, after: String::new() });
        let kind = EditKind::Coerced(Coercion::ArrayScalar);
        let (before, after) = (self.cursor.text(whole), self.cursor.text(inner));
        self.edits.insert(place, Edit::of_value(kind, &self.path, before, after));
        self.cursor = ahead;
        true
    }

    /// Whether a value is a member of the place's enum; also where there is none.
    fn is_listed(&mut self, node: Node<'a>, spot: &Spot) -> bool {
        let Some(listed) = &spot.listed else { return true };
        match node.kind() {
            ValueKind::String => listed.has_text(&node.string().unwrap_or_default()),
            ValueKind::Null | ValueKind::Boolean | ValueKind::Number => {
                listed.has(&node.to_value())
            }
            ValueKind::Array | ValueKind::Object => {
                let compared = node.words().saturating_mul(1 + listed.composites());
                !self.looks(compared) || listed.has(&node.to_value())
            }
        }
    }

    /// A member of the enum for a value that is none. Says whether there is one.
    fn listed(&mut self, node: Node<'a>, spot: &Spot) -> bool {
        let enums = self.wants.align.enums;
        let Some(listed) = spot.listed.as_deref().filter(|_| enums != Enums::Exact) else {
            return false;
        };
        if let Some(member) = node.string().and_then(|word| listed.only_folded(&word)) {
            return self.replaced(EditKind::EnumFold, Value::from(member).to_string());
        }
        if enums != Enums::Fallback || !self.looks(1 + self.wants.fields.len()) {
            return false;
        }
        match declared(&self.path, self.wants.fields, spot) {
            Some(fallback) => self.replaced(EditKind::EnumFallback, fallback.to_string()),
            None => false,
        }
    }

    /// Takes looks off what is left. Says whether there were enough.
    fn looks(&mut self, looks: usize) -> bool {
        self.left = self.left.saturating_sub(u64::try_from(looks).unwrap_or(u64::MAX));
        self.left > 0
    }

    /// Puts `after` in the place of the value at the cursor.
    fn replaced(&mut self, kind: EditKind, after: String) -> bool {
        let span = self.cursor.value();
        self.looks((self.path.len() + after.len()) / 32);
        let before = self.cursor.text(span.clone());
        self.edits.push(Edit::of_value(kind, &self.path, before, &after));
        self.splices.push(Splice { span, after });
        true
    }

    fn array(&mut self, node: Node<'a>, at: Place) {
        self.cursor.step();
        for (index, item) in node.items().enumerate() {
            if index > 0 {
                self.cursor.step();
            }
            let path = self.enter(index);
            self.value(item, self.outline.element(at, index).unwrap_or(Place(0)));
            self.leave(path);
            self.cursor.skip_space();
        }
        self.cursor.mark();
    }

    fn object(&mut self, node: Node<'a>, at: Place) {
        self.cursor.step();
        let mut kept = false;
        let mut last = self.cursor.at();
        for (index, (key, value)) in node.members().enumerate() {
            if index > 0 {
                self.cursor.step();
            }
            let start = self.cursor.at();
            self.cursor.value();
            self.cursor.skip_space();
            self.cursor.step();
            let path = self.enter_key(&key);
            if self.outline.member(at, &key) == Member::Forbidden && self.drops() {
                let span = self.cursor.value();
                self.looks(1 + self.path.len() / 32);
                let before = self.cursor.text(start..span.end);
                let kind = EditKind::ExtraDropped;
                self.edits.push(Edit::of_value(kind, &self.path, before, ""));
                let gone = if kept { last..span.end } else { start..self.next_key(span.end) };
                self.splices.push(Splice { span: gone, after: String::new() });
                last = span.end;
            } else {
                self.value(value, self.outline.inside(at, &key).unwrap_or(Place(0)));
                kept = true;
                last = self.cursor.at();
            }
            self.leave(path);
            self.cursor.skip_space();
        }
        self.defaults(node, at, last, kept);
        self.cursor.mark();
    }

    /// Adds what is missing and has a default, behind `last`.
    fn defaults(&mut self, node: Node<'a>, at: Place, last: usize, mut kept: bool) {
        if self.wants.align.missing != Missing::SchemaDefault {
            return;
        }
        for key in self.outline.required(at) {
            if !self.looks(1 + node.len() / 8) {
                return;
            }
            if node.get(key).is_some() {
                continue;
            }
            let place = self.outline.inside(at, key).unwrap_or(Place(0));
            let Some(default) = &self.outline.spot(place).default else { continue };
            let path = self.enter_key(key);
            let value = default.to_string();
            self.looks((self.path.len() + value.len()) / 32);
            let comma = if kept { ", " } else { "" };
            let after = format!("{comma}{}: {value}", Value::from(key.as_str()));
            kept = true;
            self.splices.push(Splice { span: last..last, after });
            let kind = EditKind::DefaultApplied;
            self.edits.push(Edit::of_value(kind, &self.path, "", &value));
            self.leave(path);
        }
    }

    fn drops(&self) -> bool {
        self.wants.align.extra == Extra::Drop
    }

    fn allows(&self, coercion: Coercion) -> bool {
        self.wants.align.coerce.contains(&coercion)
    }

    /// Where the next key stands behind a member that ends at `end`, or `end` itself.
    fn next_key(&self, end: usize) -> usize {
        let mut ahead = self.cursor;
        ahead.skip_space();
        if ahead.peek() != Some(b',') {
            return end;
        }
        ahead.step();
        ahead.at()
    }

    fn enter(&mut self, index: usize) -> usize {
        let before = self.path.len();
        // Writing to a `String` cannot fail.
        let _ = write!(self.path, "/{index}");
        before
    }

    fn enter_key(&mut self, key: &str) -> usize {
        let before = self.path.len();
        let _ = write!(self.path, "/{}", pointer::escape(key));
        before
    }

    fn leave(&mut self, before: usize) {
        self.path.truncate(before);
    }
}
