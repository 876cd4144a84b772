//! One row a call, written behind the call's back.
//!
//! The engine hands a [`Row`] over and goes on. A full queue drops the row and counts it: the log
//! may lose rows under pressure, a call may not lose time. While the file cannot be written for a
//! cause that may pass, as a lock or a full disk, rows wait in the queue; for another one they are lost
//! and counted too.

use std::sync::Arc;

use backstay_decide::spend::Day;
use serde::{Deserialize, Serialize};

use super::store::memory::Memory;
use super::trail::{Trail, Word};
use crate::admit::spend::Before;

/// What is kept of one call. No prompt, no reply, no key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// The call's id.
    pub call_id: String,
    /// When it arrived: milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The route that served it.
    pub route: String,
    /// The model the caller asked for.
    pub model: String,
    /// The caller's dialect.
    pub dialect: Word,
    /// Whether the caller asked for a stream.
    pub streamed: bool,
    /// The name of the caller's key; empty: none was needed.
    pub caller: String,
    /// The caller's tenant; empty: none.
    pub tenant: String,
    /// The contract's fingerprint.
    pub fingerprint: String,
    /// The route's label of its instructions; empty: none.
    pub prompt_version: String,
    /// How it ended: a word of `Outcome`.
    pub outcome: Word,
    /// The failure's code; empty: an answer.
    pub code: Word,
    /// The target that answered or was asked last; empty: none.
    pub target: String,
    /// Its tier, from 1; 0: none.
    pub tier: u32,
    /// Requests sent to providers.
    pub attempts: u32,
    /// The provider's id of the last request; empty: none given.
    pub provider_request_id: String,
    /// How the last reply ended, in our word; empty: there was none.
    pub finish: Word,
    /// What the checks said: `ok`, a layer's word, or empty when nothing was judged.
    pub validation: Word,
    /// How many edits of each kind were made to the answer, as the header has it; empty: none.
    pub edits: String,
    /// What Backstay would have done, on a route that only watches: a word of `Would`; empty: the
    /// route acts.
    #[serde(default)]
    pub would: Word,
    /// The fault that the caller asked for; empty: everything was real.
    #[serde(default)]
    pub simulated: String,
    /// From arrival to the last byte.
    pub latency_ms: f64,
    /// From arrival to the first content handed on, in a stream; 0: not streamed.
    pub first_token_ms: f64,
    /// Input tokens of all attempts, as far as providers said.
    pub input_tokens: u64,
    /// Output tokens of all attempts, as far as providers said.
    pub output_tokens: u64,
    /// Whether some attempt's tokens are not known, so that the sums say "at least".
    pub at_least: bool,
    /// What its attempts cost, in the currency of the prices; empty: no target with prices was asked.
    #[serde(default)]
    pub cost: String,
    /// Whether some attempt's cost is not known, so that `cost` says "at least".
    #[serde(default)]
    pub cost_at_least: bool,
    /// Tokens booked on its key's day: input and output, and what was reserved where these are not
    /// known. Without a limit or prices nothing is reserved.
    #[serde(default)]
    pub booked_tokens: u64,
    /// The steps.
    pub trail: Trail,
}

/// Where rows go. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CallLog {
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Off,
    Memory(Arc<Memory>),
    #[cfg(feature = "sqlite")]
    Sqlite(Arc<super::store::sqlite::Writer>),
}

impl CallLog {
    /// Keeps nothing.
    pub fn off() -> Self {
        Self { place: Place::Off }
    }

    /// Keeps the last `rows` calls in memory; at least 1.
    pub fn memory(rows: usize) -> Self {
        Self { place: Place::Memory(Arc::new(Memory::new(rows))) }
    }

    /// Keeps calls in an SQLite file, made when it is not there.
    ///
    /// # Errors
    /// The file cannot be opened or made.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(path: &std::path::Path) -> Result<Self, super::store::StoreFault> {
        let writer = super::store::sqlite::Writer::open(path)?;
        Ok(Self { place: Place::Sqlite(Arc::new(writer)) })
    }

    /// Hands `row` over. Never waits.
    pub fn put(&self, row: Row) {
        match &self.place {
            Place::Off => {}
            Place::Memory(memory) => memory.put(row),
            #[cfg(feature = "sqlite")]
            Place::Sqlite(writer) => writer.put(&row),
        }
    }

    /// Rows lost since the start: the queue was full, or the file could not be written.
    pub fn dropped(&self) -> u64 {
        match &self.place {
            Place::Off | Place::Memory(_) => 0,
            #[cfg(feature = "sqlite")]
            Place::Sqlite(writer) => writer.lost(),
        }
    }

    /// Why rows are not written now. `None`: they are.
    pub(crate) fn trouble(&self) -> Option<String> {
        match &self.place {
            Place::Off | Place::Memory(_) => None,
            #[cfg(feature = "sqlite")]
            Place::Sqlite(writer) => writer.trouble(),
        }
    }

    /// The call whose id begins with `id`; the newest of several. `None`: not there.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn find(&self, id: &str) -> Result<Option<Row>, super::store::StoreFault> {
        match &self.place {
            Place::Off => Ok(None),
            Place::Memory(memory) => Ok(memory.find(id)),
            #[cfg(feature = "sqlite")]
            Place::Sqlite(writer) => writer.find(id),
        }
    }

    /// What each key spent on `day`, by rows of calls that came in it. Nothing where no file is kept.
    ///
    /// # Errors
    /// The store cannot be read.
    #[cfg_attr(not(feature = "sqlite"), expect(unused_variables, reason = "no file is kept"))]
    pub(crate) fn spent_on(&self, day: Day) -> Result<Vec<Before>, super::store::StoreFault> {
        match &self.place {
            Place::Off | Place::Memory(_) => Ok(Vec::new()),
            #[cfg(feature = "sqlite")]
            Place::Sqlite(writer) => writer.spent_on(day),
        }
    }

    /// Waits, at most five seconds, until everything handed over is kept. Blocks; call it at shutdown.
    pub fn flush(&self) {
        #[cfg(feature = "sqlite")]
        if let Place::Sqlite(writer) = &self.place {
            writer.flush();
        }
    }
}
