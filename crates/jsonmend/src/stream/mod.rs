//! Reads a reply while it arrives, shows what is there so far, and says what is sure of it.
//!
//! ```text
//!   {"title": "Printer", "tags": ["a", "b", "c
//!   ╰─────── committed ──────────────╯╰ provisional
//! ```
//!
//! As long as the reply is strict JSON, every byte is read once, and a snapshot is the tape as it
//! stands: nothing is read again. From the first damage on, the tolerant reading goes on where the
//! strict one stopped, [a few bytes](damaged) behind what has arrived, and its draft is shown. The
//! end mends the whole once, so the outcome is the one of a reply in one piece. What was committed
//! before stays committed: the end checks it, and is ambiguous if it could not be kept.

mod damaged;
mod kept;

use crate::mend::Mender;
use crate::outcome::{Ambiguity, Doubtful, Outcome, Refusal};
use crate::policy::{DupKeys, Several, Status};
use crate::tape::build::{Builder, Reach, Step};
use crate::tape::{Node, Tape};
use damaged::Damaged;

/// A reply that is arriving.
#[derive(Debug)]
pub struct Stream<'g> {
    mender: Mender<'g>,
    text: String,
    /// Bytes of a character that has not arrived whole; at most 3.
    held: Vec<u8>,
    builder: Builder,
    phase: Phase,
    damaged: Option<Damaged>,
    broken: Option<Refusal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The reply is strict from its first byte.
    Whole,
    /// A document that starts further in is strict so far.
    Within,
    /// Something has to be mended.
    Damaged,
}

/// What is there of a reply that is still arriving. Open containers count as closed.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'s> {
    root: Option<Node<'s>>,
    committed: usize,
}

impl<'s> Snapshot<'s> {
    /// The document so far; `None` before its first byte.
    pub fn root(self) -> Option<Node<'s>> {
        self.root
    }

    /// Says whether a value of this snapshot can no longer change: it will be in the document with
    /// this content, or there will be no document. A container is committed as far as its
    /// committed members go.
    pub fn is_committed(self, node: Node<'_>) -> bool {
        node.place() < self.committed
    }
}

/// A reply that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The whole reply; look at the document with it.
    pub text: String,
    /// What came of it.
    pub outcome: Outcome,
}

impl<'g> Stream<'g> {
    /// An empty reply.
    pub fn new(mender: Mender<'g>) -> Self {
        Self {
            builder: Builder::new(mender.policy.limits.depth),
            mender,
            text: String::new(),
            held: Vec::new(),
            phase: Phase::Whole,
            damaged: None,
            broken: None,
        }
    }

    /// Takes the next bytes, cut anywhere, also inside a character. After a refusal that no later
    /// byte can mend, bytes are dropped.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.broken.is_some() {
            return;
        }
        if self.text.len() + bytes.len() > self.mender.policy.limits.input {
            self.broken = Some(Refusal::TooLarge);
            return;
        }
        self.take(bytes);
        self.read();
    }

    /// Adds whole characters to the text and holds back the rest.
    fn take(&mut self, bytes: &[u8]) {
        let joined;
        let mut rest = if self.held.is_empty() {
            bytes
        } else {
            joined = [self.held.as_slice(), bytes].concat();
            self.held.clear();
            joined.as_slice()
        };
        match std::str::from_utf8(rest) {
            Ok(text) => self.text.push_str(text),
            Err(error) => {
                let (good, bad) = rest.split_at(error.valid_up_to());
                self.text.push_str(std::str::from_utf8(good).unwrap_or_default());
                rest = bad;
                if error.error_len().is_some() {
                    self.broken = Some(Refusal::NotUtf8(self.text.len()));
                    return;
                }
                self.held = rest.to_vec();
            }
        }
    }

    fn read(&mut self) {
        while self.phase != Phase::Damaged {
            match self.builder.run(self.text.as_bytes(), Reach::Part) {
                Step::More | Step::Done => return,
                Step::TooDeep(_) => {
                    self.broken = Some(Refusal::TooDeep);
                    return;
                }
                Step::Broken(at) => {
                    if !self.look_further(at) {
                        return;
                    }
                }
            }
        }
        if let Some(damaged) = &mut self.damaged {
            damaged.read(&self.mender, &self.text);
        }
    }

    /// Goes to the first bracket of a document that has prose or a fence before it. False if there
    /// is none yet.
    fn look_further(&mut self, at: usize) -> bool {
        if self.builder.root_end().is_some() {
            // Whole, with something behind it: left as it is until the end.
            self.phase = Phase::Within;
            return false;
        }
        if self.phase == Phase::Within || !self.builder.is_at_root() {
            let builder = Builder::new(self.mender.policy.limits.depth);
            let broken = std::mem::replace(&mut self.builder, builder);
            self.damaged = Some(Damaged::new(&self.text, &self.mender.policy, broken));
            self.phase = Phase::Damaged;
            return true;
        }
        let rest = self.text.get(at..).unwrap_or_default();
        let Some(length) = rest.find(['{', '[']) else { return false };
        self.phase = Phase::Within;
        self.builder = Builder::new(self.mender.policy.limits.depth);
        self.builder.skip_to(at + length);
        true
    }

    /// What is there so far. Costs nothing.
    pub fn snapshot(&self) -> Snapshot<'_> {
        if let Some(damaged) = &self.damaged {
            let (root, sure) = damaged.root(&self.text);
            return Snapshot { root, committed: if self.may_commit() { sure } else { 0 } };
        }
        let root = Node::root(self.builder.words(), &self.text);
        Snapshot { root, committed: self.committed() }
    }

    /// Words of the builder's tape that are sure. Nothing is before the end, where a policy lets a
    /// later part of the reply replace an earlier one, or where the document may be another one.
    fn committed(&self) -> usize {
        if self.may_commit() && self.phase == Phase::Whole { self.builder.sure() } else { 0 }
    }

    fn may_commit(&self) -> bool {
        let policy = &self.mender.policy;
        let is_first = matches!(policy.several, Several::Only | Several::First);
        policy.dup_keys != DupKeys::Last && is_first
    }

    /// The reply has ended with `status`. The outcome is the one that [`Mender::mend`] has for the
    /// whole text, however it was cut into pieces; but ambiguous, if a schema's guide found that a
    /// value that was committed belongs elsewhere.
    pub fn finish(mut self, status: Status) -> Finished {
        let outcome = self.conclude(status);
        Finished { outcome, text: self.text }
    }

    fn conclude(&mut self, status: Status) -> Outcome {
        if let Some(refusal) = self.broken.take() {
            return Outcome::Rejected(refusal);
        }
        if !self.held.is_empty() {
            return Outcome::Rejected(Refusal::NotUtf8(self.text.len()));
        }
        let depth = self.mender.policy.limits.depth;
        let mut builder = std::mem::replace(&mut self.builder, Builder::new(depth));
        if self.phase != Phase::Whole {
            return self.mender.mend(&self.text, status);
        }
        let step = builder.run(self.text.as_bytes(), Reach::Whole);
        if step == Step::Done {
            return self.mender.conclude(&self.text, status, builder, step);
        }
        let sure = self.sure_tape(&builder);
        let outcome = self.mender.conclude(&self.text, status, builder, step);
        match outcome.document() {
            Some(document) if !kept::keeps(&sure, document, &self.text) => {
                Outcome::Ambiguous(Ambiguity {
                    reason: Doubtful::Candidates,
                    readings: Vec::new(),
                    more: 0,
                    spot: None,
                })
            }
            _ => outcome,
        }
    }

    fn sure_tape(&self, builder: &Builder) -> Tape {
        let count = if self.may_commit() { builder.sure() } else { 0 };
        Tape::of(builder.words().get(..count).unwrap_or_default())
    }
}
