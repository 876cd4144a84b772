//! The call log in one SQLite file that anyone can open with `sqlite3`.
//!
//! One thread owns the writing connection and takes rows from a bounded buffer, many in one
//! transaction. Readers open their own connection; WAL lets them read beside the writer.

mod reading;
mod schema;
mod writing;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use backstay_decide::spend::Day;
use parking_lot::{Condvar, Mutex};

use super::StoreFault;
use super::packed::Packed;
use crate::admit::spend::Before;
use crate::record::Row;
use crate::record::beside::Work;
pub use reading::{each, find, newest};
use writing::Writing;

/// Rows waiting for the writer.
const MAX_WAITING: usize = 8_192;

/// Bytes waiting for the writer: 2 kB for each of as many rows. Usual ones have 400 bytes.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// How long the writer gathers rows, unless the buffer is half full before: what a crash of the process
/// may lose at most. All rows of the time are one transaction, so a page is written once for many rows, not
/// once a row.
const GATHER: Duration = Duration::from_millis(20);

/// Longest wait for what is in the buffer to be written. A full one takes a tenth of a second; the rest
/// is for a file that somebody holds.
const FLUSH: Duration = Duration::from_secs(5);

/// Longest wait at the end for the thread, which makes at most two more tries.
const LEAVE: Duration = Duration::from_secs(2);

/// Between two tries to write to a file that is locked or full. Each waits for a lock as well.
const REST: Duration = Duration::from_millis(100);

/// The writing side of the log.
#[derive(Debug)]
pub struct Writer {
    desk: Arc<Desk>,
    path: PathBuf,
}

/// Where calls leave their rows and the thread takes them.
#[derive(Debug)]
struct Desk {
    waiting: Mutex<Waiting>,
    /// A first row has come.
    came: Condvar,
    /// Somebody waits for the writer, half of the buffer is full, or it is to end.
    urgent: Condvar,
    /// The thread is gone.
    left: Condvar,
    /// Rows that found no room, and rows taken and not written.
    lost: AtomicU64,
    work: Work,
    /// [`GATHER`].
    gathers: Duration,
}

#[derive(Debug, Default)]
struct Waiting {
    rows: Packed,
    /// Who waits for all rows before it to be written.
    flushes: Vec<SyncSender<()>>,
    ended: bool,
    has_left: bool,
}

impl Writer {
    /// Opens the file at `path`, makes its table, starts the thread.
    ///
    /// # Errors
    /// The file cannot be opened or is not a database.
    pub fn open(path: &Path) -> Result<Self, StoreFault> {
        let fault = |doing, cause: &dyn std::fmt::Display| StoreFault {
            place: path.display().to_string(),
            doing,
            cause: cause.to_string(),
        };
        let desk = Arc::<Desk>::default();
        let writing = schema::open(path)
            .and_then(|connection| Writing::new(connection, Arc::clone(&desk)))
            .map_err(|cause| fault("opened", &cause))?;
        let far = Arc::clone(&desk);
        let write = move || {
            writing.all();
            far.leave();
        };
        std::thread::Builder::new()
            .name("call-log".into())
            .spawn(write)
            .map_err(|cause| fault("written", &cause))?;
        Ok(Self { desk, path: path.to_owned() })
    }

    /// Leaves `row` for the thread; counts it as lost where too many wait.
    pub fn put(&self, row: &Row) {
        let packed = Packed::of(row);
        let mut waiting = self.desk.waiting.lock();
        let bytes = waiting.rows.bytes() + packed.bytes();
        if waiting.rows.rows() >= MAX_WAITING || bytes > MAX_WAITING_BYTES {
            self.desk.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let was_urgent = waiting.is_urgent();
        waiting.rows.append(&packed);
        let becomes_urgent = !was_urgent && waiting.is_urgent();
        drop(waiting);
        if becomes_urgent {
            self.desk.hurry();
        } else {
            self.desk.came.notify_one();
        }
    }

    /// Rows lost since the start: too many waited, or the file could not be written.
    pub fn lost(&self) -> u64 {
        self.desk.lost.load(Ordering::Relaxed)
    }

    /// Why rows are not written now. `None`: they are.
    pub(crate) fn trouble(&self) -> Option<String> {
        let why = self.desk.work.trouble()?;
        let waiting = self.desk.waiting.lock().rows.rows();
        Some(format!(
            "{why}; {waiting} rows wait beside those in hand, {} lost so far",
            self.lost()
        ))
    }

    /// Waits, at most five seconds, until everything left before is written. Rows go on being taken
    /// meanwhile.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        self.desk.waiting.lock().flushes.push(done);
        self.desk.hurry();
        let _ = wait.recv_timeout(FLUSH);
    }

    /// The newest row whose id begins with `id`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(&self, id: &str) -> Result<Option<Row>, StoreFault> {
        self.flush();
        find(&self.path, id)
    }

    /// What each key spent by calls that came on `day`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn spent_on(&self, day: Day) -> Result<Vec<Before>, StoreFault> {
        self.flush();
        reading::spent_on(&self.path, day)
    }
}

/// Waits for the thread, but not for ever: a disk that is gone may hold a write for good.
impl Drop for Writer {
    fn drop(&mut self) {
        let mut waiting = self.desk.waiting.lock();
        waiting.ended = true;
        self.desk.hurry();
        self.desk.left.wait_while_for(&mut waiting, |waiting| !waiting.has_left, LEAVE);
        if !waiting.has_left {
            let rows = waiting.rows.rows();
            tracing::error!(rows, "the call log is stuck; its rows and those in hand are lost");
        }
    }
}

impl Default for Desk {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            came: Condvar::new(),
            urgent: Condvar::new(),
            left: Condvar::new(),
            lost: AtomicU64::new(0),
            work: Work::default(),
            gathers: GATHER,
        }
    }
}

impl Desk {
    /// The thread has written what it could and closed the file.
    fn leave(&self) {
        self.waiting.lock().has_left = true;
        self.left.notify_all();
    }

    fn hurry(&self) {
        self.came.notify_one();
        self.urgent.notify_one();
    }

    /// Waits a moment before the next try; says whether there is to be none: the log is dropped.
    fn rests(&self) -> bool {
        let mut waiting = self.waiting.lock();
        self.urgent.wait_while_for(&mut waiting, |waiting| !waiting.ended, REST);
        waiting.ended
    }

    /// Takes what is there after a moment's wait, into `rows`; at once when somebody waits for it.
    /// `None`: the end, and nothing is there.
    fn take(&self, rows: &mut Packed) -> Option<Vec<SyncSender<()>>> {
        rows.clear();
        let mut waiting = self.waiting.lock();
        self.came.wait_while(&mut waiting, |waiting| waiting.is_idle() && !waiting.ended);
        self.urgent.wait_while_for(&mut waiting, |waiting| !waiting.is_urgent(), self.gathers);
        if waiting.is_idle() {
            return None;
        }
        std::mem::swap(rows, &mut waiting.rows);
        Some(std::mem::take(&mut waiting.flushes))
    }
}

impl Waiting {
    fn is_idle(&self) -> bool {
        self.rows.rows() == 0 && self.flushes.is_empty()
    }

    fn is_half_full(&self) -> bool {
        self.rows.rows() >= MAX_WAITING / 2 || self.rows.bytes() >= MAX_WAITING_BYTES / 2
    }

    fn is_urgent(&self) -> bool {
        self.ended || !self.flushes.is_empty() || self.is_half_full()
    }
}
