//! Mends broken JSON in replies of language models, names every edit, and never invents a value.
//!
//! ```
//! use jsonmend::{Mender, Outcome, Policy, Status};
//!
//! let raw = "Sure:\n```json\n{'name': 'Bo', \"tags\": [1, 2,]}\n```";
//! let outcome = Mender::new(Policy::standard()).mend(raw, Status::Stopped);
//! let document = outcome.document().expect("one reading");
//! let root = document.root(raw).expect("a value");
//! assert_eq!(root.get("name").and_then(|name| name.string()).as_deref(), Some("Bo"));
//!
//! let edits = document.edits(raw);
//! assert_eq!(edits[0].kind.name(), "prose_before");
//! let text = jsonmend::apply(&edits, raw).expect("edits of this reply");
//! assert_eq!(text.trim(), "{\"name\": \"Bo\", \"tags\": [1, 2]}");
//!
//! // Two readings: no answer, but both of them.
//! let doubtful = Mender::new(Policy::standard()).mend("[\"a\", \"b\"c\", \"d\"]", Status::Stopped);
//! assert!(matches!(doubtful, Outcome::Ambiguous(_)));
//! ```
//!
//! # How a reply is read
//!
//! ```text
//!  raw reply ─▶ tape::build  strict, one pass ──────────────── strict JSON ─▶ Valid, untouched
//!                    │ first byte that is not JSON
//!                    ▼
//!               locate       think blocks, fences, wrappers, prose ─▶ sites, best tier first
//!                    ▼
//!               parse        from the last values that were strict: one token, and which
//!                    │       explanations has it?
//!                    │  one ─▶ skim on, draft  several ─▶ hypothesis: readings side by side,
//!                    │                         cheapest first, merged where they meet
//!                    ▼
//!               mend         choose: the cheapest, unless another value is as likely
//!                    ▼
//!               edit         splice the edits into the raw text
//!                    ▼
//!               tape::build  strict again, unless the draft has the tape already
//! ```
//!
//! A document is its raw text with the listed edits made, and [`apply`] makes the same text from
//! the same list: that is why nothing can be invented. Edits move marks, quotes, escapes and whole
//! stretches; the only scalars they write are a literal in another notation (`None`), a number in
//! another notation (`.5`) and what a policy knob names. Where a reading is the only one, its tape
//! is drafted while it is read; tests, fuzzing and debug builds parse its text again and compare.
//!
//! # When is it ambiguous?
//!
//! Every assumption has a price (`parse::cost`). A reading that costs at most 2 more than the best
//! and has another value makes the reply [`Outcome::Ambiguous`]. Some damage hides what it did: a
//! lost closer that could have stood in two places, a bare `007`, quotes with nothing but
//! structure between them. Such a reading is doubted, and a doubted best reading is ambiguous too.
//! A [`Guide`] lets a schema strike readings that do not fit; it adds nothing.
//!
//! # A cut is not damage
//!
//! [`Status`] says how the reply ended. Only if it was cut, or nobody knows, are open containers
//! closed as partial; after a normal end they lost their closers, and an open string is refused.
//!
//! # Streams
//!
//! [`Stream`] takes bytes as they come. Snapshots are the tape as it stands. What is committed
//! stays, or the end is ambiguous.
//!
//! # Bounds
//!
//! No recursion over the text, a limit for everything ([`Limits`]), time linear in the text, no
//! `unsafe`, and no panic for any input.

/// The examples of the README, which run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(feature = "serde")]
mod de;
mod draft;
mod edit;
mod guide;
mod halt;
mod hypothesis;
mod lex;
mod locate;
mod mend;
mod outcome;
mod parse;
mod policy;
mod stream;
mod tape;

#[cfg(feature = "serde")]
pub use de::Mismatch;
pub use edit::{Class, Edit, Kind, KindSet, apply};
pub use guide::{Guide, Listed, Member, Place, Types};
pub use halt::Halt;
pub use mend::Mender;
pub use outcome::{Ambiguity, Document, Doubtful, Outcome, Refusal, Spot};
pub use policy::{AtCut, BareNumber, DupKeys, Limits, Nan, Policy, Several, Status};
pub use stream::{Finished, Snapshot, Stream};
pub use tape::{Items, Members, Node, Tape, ValueKind};
