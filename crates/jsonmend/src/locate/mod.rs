//! Finds where in a reply a document may begin, and names what stands around it.
//!
//! ```text
//!   <think>…</think>  Sure:  ```json  {"a": 1}  ```  Let me know!
//!   ───think_block──  prose  ─fence─  document  fence ─prose_after─
//! ```
//!
//! Every byte is looked at once: a document that was read is passed over as a whole, and one that
//! could not be read is never tried again from its middle.

mod around;
mod fence;
mod think;

use crate::lex::space;

pub(crate) use around::{after, before, depth_of, holds_members};
pub(crate) use fence::Fence;

/// Where a document may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) start: usize,
    pub(crate) tier: Tier,
    pub(crate) fence: Option<Fence>,
}

/// How much a place speaks for itself. The best tier with a document in it is the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// A citation such as `[1]`, which is also an array.
    Citation,
    Bare,
    /// In a fence without a language.
    Fenced,
    /// In a fence that says JSON.
    Tagged,
}

/// Walks over a reply from site to site.
#[derive(Debug)]
pub(crate) struct Scout<'r> {
    raw: &'r str,
    bytes: &'r [u8],
    at: usize,
    fence: Option<Fence>,
    /// Regions of reasoning, in order, and how many of them end before this place.
    thought: Vec<(usize, usize)>,
    passed: usize,
}

impl<'r> Scout<'r> {
    pub(crate) fn new(raw: &'r str) -> Self {
        let bytes = raw.as_bytes();
        let at = if raw.starts_with('\u{feff}') { 3 } else { 0 };
        Self { raw, bytes, at, fence: None, thought: think::blocks(raw), passed: 0 }
    }

    pub(crate) fn thought(&self) -> &[(usize, usize)] {
        &self.thought
    }

    /// Goes on behind this offset.
    pub(crate) fn skip_to(&mut self, at: usize) {
        self.at = self.at.max(at);
    }

    /// The next place where a document may begin.
    pub(crate) fn next(&mut self) -> Option<Site> {
        loop {
            if let Some(end) = self.end_of_thought() {
                self.at = end;
                self.fence = None;
                continue;
            }
            let byte = *self.bytes.get(self.at)?;
            match byte {
                b'`' | b'~' => self.at_fence(),
                b'{' | b'[' => {
                    let start = self.at;
                    self.at += 1;
                    return Some(self.site(start));
                }
                // Full-width brackets.
                0xef if matches!(
                    self.bytes.get(self.at + 1..self.at + 3),
                    Some([0xbd, 0x9b] | [0xbc, 0xbb])
                ) =>
                {
                    let start = self.at;
                    self.at += 3;
                    return Some(self.site(start));
                }
                _ => self.at += 1,
            }
        }
    }

    /// Where the region of reasoning ends that this place is in, if it is in one.
    fn end_of_thought(&mut self) -> Option<usize> {
        while self.thought.get(self.passed).is_some_and(|(_, end)| *end <= self.at) {
            self.passed += 1;
        }
        let (start, end) = self.thought.get(self.passed)?;
        (*start <= self.at).then_some(*end)
    }

    fn at_fence(&mut self) {
        if let Some(open) = &self.fence {
            if let Some(end) = open.close(self.bytes, self.at) {
                self.at = end;
                self.fence = None;
                return;
            }
            self.at += 1;
            return;
        }
        let Some(fence) = Fence::open(self.raw, self.at) else {
            self.at += 1;
            return;
        };
        if fence.is_foreign() {
            self.at = fence.end_of(self.bytes);
            return;
        }
        self.at = fence.inside;
        self.fence = Some(fence);
    }

    fn site(&self, start: usize) -> Site {
        let tier = match &self.fence {
            Some(fence) if fence.is_tagged() => Tier::Tagged,
            Some(_) => Tier::Fenced,
            None if is_citation(self.bytes.get(start..).unwrap_or_default()) => Tier::Citation,
            None => Tier::Bare,
        };
        Site { start, tier, fence: self.fence.clone() }
    }
}

/// `[1]`, `[2, 3]`, `[name]`: marks of a reference or a place to fill in prose. Three numbers are
/// a list.
fn is_citation(rest: &[u8]) -> bool {
    let inside = rest.get(1..).unwrap_or_default();
    let length = inside.iter().take(16).take_while(|byte| **byte != b']').count();
    let inside = inside.get(..length).unwrap_or_default();
    rest.get(length + 1) == Some(&b']')
        && !inside.is_empty()
        && memchr::memchr_iter(b',', inside).count() < 2
        && (inside.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b' '))
            || inside.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b' ')))
}

/// Where the first byte that is neither white space nor a byte-order mark is.
pub(crate) fn start_of_text(raw: &str) -> usize {
    let bom = if raw.starts_with('\u{feff}') { 3 } else { 0 };
    space::skip(raw.as_bytes(), bom)
}
