//! What a reply looks like on the wire, in each dialect.

pub(crate) mod anthropic;
pub(crate) mod errors;
pub(crate) mod lists;
pub(crate) mod openai;

use bytes::Bytes;

use crate::ask::{Ask, Dialect};
use crate::said::Said;
use crate::strip::Event;

/// Names one response: the number behind its ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag(pub(crate) u64);

impl Tag {
    /// An id such as `chatcmpl-0123456789abcdef`.
    pub(crate) fn id(self, prefix: &str) -> String {
        let mut id = String::with_capacity(prefix.len() + 16);
        id.push_str(prefix);
        for nibble in (0..16).rev() {
            let digit = u32::try_from((self.0 >> (nibble * 4)) & 15).unwrap_or(0);
            id.push(char::from_digit(digit, 16).unwrap_or('0'));
        }
        id
    }
}

/// The whole reply as one JSON body.
pub(crate) fn body(ask: &Ask, said: &Said, tag: Tag) -> Bytes {
    match ask.dialect() {
        Dialect::OpenAi => openai::body(ask, said, tag),
        Dialect::Anthropic => anthropic::body(ask, said, tag),
    }
}

/// The reply as a stream of at most `chunks` content events.
pub(crate) fn events(ask: &Ask, said: &Said, tag: Tag, chunks: usize) -> Vec<Event> {
    match ask.dialect() {
        Dialect::OpenAi => openai::events(ask, said, tag, chunks),
        Dialect::Anthropic => anthropic::events(ask, said, tag, chunks),
    }
}
