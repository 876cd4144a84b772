//! One word of the tape: a tag, a count or length, and an offset.

/// `tag:4 | small:28 | wide:32`. For a scalar, `small` is its length in bytes and `wide` its
/// offset. For a container, `small` is its number of items and `wide` the index of the word behind
/// its last one; 0 while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Null,
    False,
    True,
    Number,
    /// A string without an escape; the span is its inside.
    Plain,
    /// A string with at least one escape; the span is its inside.
    Escaped,
    Array,
    Object,
}

/// The longest text a tape can point into: lengths have 28 bits.
pub(crate) const MAX_TEXT: usize = (1 << 28) - 1;

impl Word {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "texts are at most MAX_TEXT bytes long")]
    pub(crate) const fn scalar(tag: Tag, start: usize, end: usize) -> Self {
        let small = (end - start) as u64 & 0x0fff_ffff;
        Self((tag as u64) << 60 | small << 32 | (start as u32) as u64)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a text of MAX_TEXT bytes has fewer words")]
    pub(crate) const fn container(tag: Tag, items: u32, end: usize) -> Self {
        Self((tag as u64) << 60 | (items as u64 & 0x0fff_ffff) << 32 | (end as u32) as u64)
    }

    /// The same word of a text that begins `less` bytes further on.
    pub(crate) const fn shifted(self, less: usize) -> Self {
        if self.is_container() { self } else { Self(self.0 - less as u64) }
    }

    pub(crate) const fn tag(self) -> Tag {
        match self.0 >> 60 {
            0 => Tag::Null,
            1 => Tag::False,
            2 => Tag::True,
            3 => Tag::Number,
            4 => Tag::Plain,
            5 => Tag::Escaped,
            6 => Tag::Array,
            _ => Tag::Object,
        }
    }

    pub(crate) const fn small(self) -> usize {
        (self.0 >> 32) as usize & 0x0fff_ffff
    }

    pub(crate) const fn wide(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }

    /// Offset and end of a scalar in the text.
    pub(crate) const fn span(self) -> (usize, usize) {
        (self.wide(), self.wide() + self.small())
    }

    pub(crate) const fn is_container(self) -> bool {
        matches!(self.tag(), Tag::Array | Tag::Object)
    }
}
