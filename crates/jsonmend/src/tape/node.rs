//! A value on the tape, seen together with its text.

use std::borrow::Cow;
use std::fmt;

use super::word::{Tag, Word};
use crate::lex::escape;

/// One value of a document: a place on the tape and the text it points into.
#[derive(Clone, Copy)]
pub struct Node<'t> {
    words: &'t [Word],
    text: &'t str,
    at: usize,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number of any size; see [`Node::number`].
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl<'t> Node<'t> {
    pub(crate) fn root(words: &'t [Word], text: &'t str) -> Option<Self> {
        (!words.is_empty()).then_some(Self { words, text, at: 0 })
    }

    pub(crate) fn at(words: &'t [Word], text: &'t str, at: usize) -> Option<Self> {
        (at < words.len()).then_some(Self { words, text, at })
    }

    /// Index of this value's word on the tape: tells it from every other value of the document.
    #[inline]
    pub fn place(self) -> usize {
        self.at
    }

    /// How many words of the tape the value takes: one for itself, and for each key and value in it.
    pub fn words(self) -> usize {
        self.end() - self.at
    }

    /// The value at another place of the document, as [`Node::place`] tells it; at the place of a key
    /// the key, and `null` where the document has no such place.
    #[inline]
    #[must_use]
    pub fn seek(self, place: usize) -> Self {
        Self { at: place, ..self }
    }

    #[inline]
    fn word(self) -> Word {
        self.words.get(self.at).copied().unwrap_or(Word::scalar(Tag::Null, 0, 0))
    }

    /// What the value is.
    #[inline]
    pub fn kind(self) -> Kind {
        match self.word().tag() {
            Tag::Null => Kind::Null,
            Tag::False | Tag::True => Kind::Boolean,
            Tag::Number => Kind::Number,
            Tag::Plain | Tag::Escaped => Kind::String,
            Tag::Array => Kind::Array,
            Tag::Object => Kind::Object,
        }
    }

    /// The value of a boolean; `None` for anything else.
    #[inline]
    pub fn boolean(self) -> Option<bool> {
        match self.word().tag() {
            Tag::True => Some(true),
            Tag::False => Some(false),
            _ => None,
        }
    }

    /// A number as it was written, every digit kept; `None` for anything else.
    #[inline]
    pub fn number(self) -> Option<&'t str> {
        let word = self.word();
        (word.tag() == Tag::Number).then(|| self.slice(word))
    }

    /// The text of a string, borrowed unless it has escapes; `None` for anything else.
    #[inline]
    pub fn string(self) -> Option<Cow<'t, str>> {
        let word = self.word();
        if !matches!(word.tag(), Tag::Plain | Tag::Escaped) {
            return None;
        }
        let inside = self.slice(word);
        Some(if word.tag() == Tag::Plain { Cow::Borrowed(inside) } else { decoded(inside) })
    }

    /// The scalar as it stands in the text: of a string its inside, escapes and all. It is strict
    /// JSON, so it can be written out again as it is. Empty for containers.
    #[inline]
    pub fn lexeme(self) -> &'t str {
        let word = self.word();
        if word.is_container() { "" } else { self.slice(word) }
    }

    /// How many bytes of the text the [`Node::lexeme`] takes; 0 for containers.
    #[inline]
    pub fn bytes(self) -> usize {
        let word = self.word();
        if word.is_container() { 0 } else { word.small() }
    }

    #[inline]
    fn slice(self, scalar: Word) -> &'t str {
        let (start, end) = scalar.span();
        self.text.get(start..end).unwrap_or_default()
    }

    /// The elements of an array; none for anything else.
    #[inline]
    pub fn items(self) -> Items<'t> {
        let tag = self.word().tag();
        Items { node: self, next: self.at + 1, end: if tag == Tag::Array { self.end() } else { 0 } }
    }

    /// The members of an object, in their order; none for anything else.
    #[inline]
    pub fn members(self) -> Members<'t> {
        let tag = self.word().tag();
        Members {
            node: self,
            next: self.at + 1,
            end: if tag == Tag::Object { self.end() } else { 0 },
        }
    }

    /// The member of an object with this key, in time linear in the members.
    pub fn get(self, key: &str) -> Option<Self> {
        self.members().find_map(|(name, value)| (name == key).then_some(value))
    }

    /// The value that a JSON Pointer (RFC 6901) names, from this value on.
    pub fn pointer(self, pointer: &str) -> Option<Self> {
        let mut node = self;
        let mut steps = pointer.split('/');
        if steps.next() != Some("") {
            return None;
        }
        for step in steps {
            node = match node.kind() {
                Kind::Array => node.items().nth(step.parse().ok()?)?,
                Kind::Object => node.get(&step.replace("~1", "/").replace("~0", "~"))?,
                Kind::Null | Kind::Boolean | Kind::Number | Kind::String => return None,
            };
        }
        Some(node)
    }

    /// How many elements or members the value has; 0 for scalars.
    #[inline]
    pub fn len(self) -> usize {
        if self.word().is_container() && self.word().wide() != 0 { self.word().small() } else { 0 }
    }

    /// Says whether the value has no element and no member.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Index of the word behind this value.
    #[inline]
    pub(crate) fn end(self) -> usize {
        let word = self.word();
        match (word.is_container(), word.wide()) {
            (false, _) => self.at + 1,
            // Still open: it reaches to the end of what was read.
            (true, 0) => self.words.len(),
            (true, end) => end,
        }
    }

    /// Says whether two values are equal: numbers by their digits, objects in any order.
    pub fn same(self, other: Node<'_>) -> bool {
        // Explicit work list: depth is bounded by the tape's, but not by the machine's stack.
        let mut pairs = vec![(self, other)];
        while let Some((one, two)) = pairs.pop() {
            if one.kind() != two.kind() || one.members().count() != two.members().count() {
                return false;
            }
            match one.kind() {
                Kind::Null => {}
                Kind::Boolean if one.boolean() == two.boolean() => {}
                Kind::Number if one.number() == two.number() => {}
                Kind::String if one.string() == two.string() => {}
                Kind::Array => {
                    if one.items().count() != two.items().count() {
                        return false;
                    }
                    pairs.extend(one.items().zip(two.items()));
                }
                Kind::Object => {
                    let Some(members) = paired(one, two) else { return false };
                    pairs.extend(members);
                }
                Kind::Boolean | Kind::Number | Kind::String => return false,
            }
        }
        true
    }
}

/// Out of line: few strings have escapes, and reading the others is to stay small.
#[inline(never)]
fn decoded(inside: &str) -> Cow<'_, str> {
    escape::decode(inside)
}

/// The values of the same keys, when both objects have the same keys. Same order is the common
/// case; else both are sorted, so that no order makes it slow.
fn paired<'a, 'b>(one: Node<'a>, two: Node<'b>) -> Option<Vec<(Node<'a>, Node<'b>)>> {
    let mut ones: Vec<_> = one.members().collect();
    let mut twos: Vec<_> = two.members().collect();
    if ones.iter().zip(&twos).any(|(one, two)| one.0 != two.0) {
        ones.sort_by(|one, other| one.0.cmp(&other.0));
        twos.sort_by(|one, other| one.0.cmp(&other.0));
    }
    ones.into_iter()
        .zip(twos)
        .map(|(one, two)| (one.0 == two.0).then_some((one.1, two.1)))
        .collect()
}

/// Prints kind and size, never the content.
impl fmt::Debug for Node<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Node({:?}, {} words)", self.kind(), self.end() - self.at)
    }
}

/// The elements of an array, in order.
#[derive(Clone, Debug)]
pub struct Items<'t> {
    node: Node<'t>,
    next: usize,
    end: usize,
}

impl<'t> Iterator for Items<'t> {
    type Item = Node<'t>;

    #[inline]
    fn next(&mut self) -> Option<Node<'t>> {
        if self.next >= self.end {
            return None;
        }
        let item = self.node.seek(self.next);
        self.next = item.end();
        Some(item)
    }
}

/// The members of an object, in order. A key whose value was not read yet is left out.
#[derive(Clone, Debug)]
pub struct Members<'t> {
    node: Node<'t>,
    next: usize,
    end: usize,
}

impl<'t> Iterator for Members<'t> {
    type Item = (Cow<'t, str>, Node<'t>);

    #[inline]
    fn next(&mut self) -> Option<(Cow<'t, str>, Node<'t>)> {
        if self.next + 1 >= self.end {
            return None;
        }
        let key = self.node.seek(self.next);
        let value = self.node.seek(self.next + 1);
        self.next = value.end();
        Some((key.string().unwrap_or_default(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::build::{Builder, Reach, Step};

    #[test]
    fn a_place_leads_back_to_its_value_and_one_beyond_the_tape_to_null() {
        let text = r#"{"a":[1,"x\n"]}"#;
        let mut builder = Builder::new(8);
        assert_eq!(builder.run(text.as_bytes(), Reach::Whole), Step::Done);
        let root = Node::root(builder.words(), text).unwrap();
        let found = root.seek(root.pointer("/a/1").unwrap().place());
        assert_eq!((found.lexeme(), found.bytes()), ("x\\n", 3));
        assert_eq!(root.seek(1).string().as_deref(), Some("a"));
        assert_eq!((root.seek(99).kind(), root.bytes()), (Kind::Null, 0));
    }
}
