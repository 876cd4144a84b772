//! What is shown of a damaged reply while it arrives: read on from where reading stopped.

use crate::draft::Draft;
use crate::edit::Long;
use crate::hypothesis::Search;
use crate::mend::Mender;
use crate::outcome::{Document, Outcome};
use crate::parse::{Parser, Reading};
use crate::policy::{Policy, Status};
use crate::tape::Node;
use crate::tape::build::Builder;

/// Bytes held back: what a mark means may depend on what follows it.
const HELD_BACK: usize = 64;

/// The readings of a damaged reply so far.
#[derive(Debug)]
pub(super) struct Damaged {
    search: Search,
    long: Long,
    /// The draft's text.
    shown: String,
    /// Words that were sure before the damage.
    sure: usize,
    /// Of a reply that cannot be followed: what came of it when it was mended as a whole.
    spare: Option<Document>,
    /// How long the reply was then.
    spare_at: usize,
}

impl Damaged {
    /// Goes on from the strict parse that broke.
    pub(super) fn new(text: &str, policy: &Policy, mut builder: Builder) -> Self {
        let parser = Parser::part(text, policy, 0, Long::new());
        let start = builder.root_start().unwrap_or_default();
        let sure = builder.sure();
        let resumed = builder.rewind(text.as_bytes()).and_then(|rewound| {
            let reading = parser.resume(builder.words(), &rewound)?;
            Some((reading, rewound.end))
        });
        let is_resumed = resumed.is_some();
        let (reading, draft) = if let Some((reading, end)) = resumed {
            (reading, Draft::resumed(builder, end))
        } else {
            let mut builder = Builder::new(policy.limits.depth);
            builder.skip_to(start);
            (Reading::new(start), Draft::resumed(builder, start))
        };
        let sure = if is_resumed { sure.min(draft.words().len()) } else { 0 };
        let search = Search::new(&parser, reading, draft);
        let long = parser.long.take();
        Self { search, long, shown: String::new(), sure, spare: None, spare_at: 0 }
    }

    /// Reads on in a reply that has grown to this text.
    pub(super) fn read(&mut self, mender: &Mender<'_>, text: &str) {
        if !self.search.is_alive() {
            self.mend_anew(mender, text);
            return;
        }
        let until = text.len().saturating_sub(HELD_BACK);
        let long = std::mem::take(&mut self.long);
        let parser = Parser::part(text, &mender.policy, until, long);
        self.search.advance(&parser);
        self.long = parser.long.take();
        let more = self.search.draft().text().get(self.shown.len()..).unwrap_or_default();
        self.shown.push_str(std::str::from_utf8(more).unwrap_or_default());
    }

    /// Mends the whole whenever it has grown by half, so that the work stays in proportion.
    fn mend_anew(&mut self, mender: &Mender<'_>, text: &str) {
        if text.len() < self.spare_at + self.spare_at / 2 + HELD_BACK {
            return;
        }
        self.spare_at = text.len();
        let outcome = mender.mend(text, Status::Cut);
        if let Outcome::Partial(document) | Outcome::Mended(document) = outcome {
            self.spare = Some(document);
        }
    }

    /// What is there so far, and how many words of it are sure.
    pub(super) fn root<'s>(&'s self, text: &'s str) -> (Option<Node<'s>>, usize) {
        match &self.spare {
            Some(document) => (document.root(text), 0),
            None => (Node::root(self.search.draft().words(), &self.shown), self.sure),
        }
    }
}
