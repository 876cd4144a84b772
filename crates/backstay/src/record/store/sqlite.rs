//! The call log in one SQLite file that anyone can open with `sqlite3`.
//!
//! One thread owns the writing connection and takes rows from a bounded queue, many in one
//! transaction. Readers open their own connection; WAL lets them read beside the writer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::{StoreFault, brief};
use crate::record::{Row, Trail, Word};

/// Rows waiting for the writer. At 2 kB a row, 16 MB.
const MAX_QUEUED: usize = 8_192;

/// Rows in one transaction: a page is then written once for many rows, not once a row.
const BATCH: usize = 1_024;

/// How long the writer gathers rows: what a crash of the process may lose at most.
const GATHER: Duration = Duration::from_millis(20);

/// Rows kept; the oldest go first. At 2 kB a row, 2 GB.
const MAX_ROWS: i64 = 1_000_000;

/// Rows written between two removals of old ones.
const PRUNE: u64 = 10_000;

/// Longest wait for a place in the queue, and then for all before it to be written.
const FLUSH: Duration = Duration::from_secs(5);

/// Pause before a full queue is tried again.
const FULL: Duration = Duration::from_millis(5);

/// How often, before a flush gives up.
const TRIES: u128 = FLUSH.as_millis() / FULL.as_millis();

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS calls (
  seq INTEGER PRIMARY KEY,
  call_id TEXT NOT NULL UNIQUE,
  at_ms INTEGER NOT NULL,
  route TEXT NOT NULL, model TEXT NOT NULL, dialect TEXT NOT NULL, streamed INTEGER NOT NULL,
  caller TEXT NOT NULL, tenant TEXT NOT NULL,
  fingerprint TEXT NOT NULL, prompt_version TEXT NOT NULL,
  outcome TEXT NOT NULL, code TEXT NOT NULL,
  target TEXT NOT NULL, tier INTEGER NOT NULL, attempts INTEGER NOT NULL,
  provider_request_id TEXT NOT NULL, finish TEXT NOT NULL, validation TEXT NOT NULL,
  latency_ms REAL NOT NULL, first_token_ms REAL NOT NULL,
  input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, at_least INTEGER NOT NULL,
  trail TEXT NOT NULL
);
";

const INSERT: &str = "INSERT OR REPLACE INTO calls (call_id, at_ms, route, model, dialect, \
    streamed, caller, tenant, fingerprint, prompt_version, outcome, code, target, tier, attempts, \
    provider_request_id, finish, validation, latency_ms, first_token_ms, input_tokens, \
    output_tokens, at_least, trail) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, \
    ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)";

const FIND: &str = "SELECT * FROM calls WHERE call_id >= ?1 AND call_id < ?1 || 'z' \
    ORDER BY at_ms DESC LIMIT 1";

/// The writing side of the log.
#[derive(Debug)]
pub struct Writer {
    queue: Mutex<Option<SyncSender<Order>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    lost: Arc<AtomicU64>,
    path: PathBuf,
}

enum Order {
    Keep(Box<Row>),
    Flush(SyncSender<()>),
}

impl Writer {
    /// Opens the file at `path`, makes its table, starts the thread.
    ///
    /// # Errors
    /// The file cannot be opened or is not a database.
    pub fn open(path: &Path) -> Result<Self, StoreFault> {
        let fault = |cause: rusqlite::Error| StoreFault {
            place: path.display().to_string(),
            doing: "opened",
            cause: cause.to_string(),
        };
        let connection = Connection::open(path).map_err(fault)?;
        connection.busy_timeout(Duration::from_secs(5)).map_err(fault)?;
        connection.pragma_update(None, "journal_mode", "wal").map_err(fault)?;
        connection.pragma_update(None, "synchronous", "normal").map_err(fault)?;
        connection.execute_batch(SCHEMA).map_err(fault)?;
        let newest = "SELECT coalesce(max(seq), 0) FROM calls";
        let newest: i64 = connection.query_row(newest, [], |row| row.get(0)).map_err(fault)?;
        let (queue, orders) = sync_channel(MAX_QUEUED);
        let lost = Arc::<AtomicU64>::default();
        let writing = Writing {
            connection,
            newest: u64::try_from(newest).unwrap_or_default(),
            lost: Arc::clone(&lost),
        };
        let thread = std::thread::Builder::new()
            .name("call-log".into())
            .spawn(move || writing.all(&orders))
            .map_err(|cause| StoreFault {
                place: path.display().to_string(),
                doing: "written",
                cause: cause.to_string(),
            })?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            thread: Mutex::new(Some(thread)),
            lost,
            path: path.to_owned(),
        })
    }

    /// Queues `row`. False when the queue is full or the writer is gone.
    pub fn put(&self, row: Row) -> bool {
        let queue = self.queue.lock();
        queue.as_ref().is_some_and(|queue| queue.try_send(Order::Keep(Box::new(row))).is_ok())
    }

    /// Rows taken and then lost because the file could not be written, since the start.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits, at most ten seconds, until everything queued is written. Rows go on being taken
    /// meanwhile.
    pub fn flush(&self) {
        // A sender of its own: `put` must not wait for the lock behind a full queue.
        let Some(queue) = self.queue.lock().clone() else { return };
        let (done, wait) = sync_channel(1);
        let mut order = Order::Flush(done);
        for _ in 0..TRIES {
            match queue.try_send(order) {
                Ok(()) => {
                    let _ = wait.recv_timeout(FLUSH);
                    return;
                }
                Err(TrySendError::Full(back)) => order = back,
                Err(TrySendError::Disconnected(_)) => return,
            }
            std::thread::sleep(FULL);
        }
    }

    /// The newest row whose id begins with `id`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(&self, id: &str) -> Result<Option<Row>, StoreFault> {
        self.flush();
        find(&self.path, id)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

/// The newest row of the file at `path` whose id begins with `id`.
///
/// # Errors
/// The file is not there or cannot be read.
pub fn find(path: &Path, id: &str) -> Result<Option<Row>, StoreFault> {
    reading(path, |connection| connection.query_row(FIND, [id], read).optional())
}

/// The newest rows of the file at `path`, at most `most`, newest first.
///
/// # Errors
/// The file is not there or cannot be read.
pub fn newest(path: &Path, most: u32) -> Result<Vec<Row>, StoreFault> {
    reading(path, |connection| {
        let mut newest = connection.prepare("SELECT * FROM calls ORDER BY seq DESC LIMIT ?1")?;
        newest.query_map([most], read)?.collect()
    })
}

/// Opens the file at `path` for one reading, beside the writer.
fn reading<T>(
    path: &Path,
    ask: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T, StoreFault> {
    let open = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(Duration::from_secs(2))?;
        ask(&connection)
    };
    open().map_err(|cause| StoreFault {
        place: path.display().to_string(),
        doing: "read",
        cause: cause.to_string(),
    })
}

/// The thread's side.
struct Writing {
    connection: Connection,
    /// The number of the newest row, also of those written before the start.
    newest: u64,
    lost: Arc<AtomicU64>,
}

impl Writing {
    fn all(mut self, orders: &Receiver<Order>) {
        while let Ok(first) = orders.recv() {
            let batch = gather(first, orders);
            let rows = batch.iter().filter(|order| matches!(order, Order::Keep(_))).count() as u64;
            match write_batch(&mut self.connection, &batch) {
                Ok(()) => self.written(rows),
                Err(cause) => {
                    self.lost.fetch_add(rows, Ordering::Relaxed);
                    tracing::error!(%cause, rows, "call log rows lost");
                }
            }
            for order in batch {
                if let Order::Flush(done) = order {
                    let _ = done.try_send(());
                }
            }
        }
    }

    fn written(&mut self, rows: u64) {
        let before = self.newest;
        self.newest += rows;
        if before / PRUNE != self.newest / PRUNE {
            prune(&self.connection);
        }
    }
}

/// What is there after a moment's wait, at most [`BATCH`]; at once when somebody waits for it.
fn gather(first: Order, orders: &Receiver<Order>) -> Vec<Order> {
    if matches!(first, Order::Keep(_)) {
        std::thread::sleep(GATHER);
    }
    let mut batch = vec![first];
    while batch.len() < BATCH {
        let Ok(order) = orders.try_recv() else { break };
        batch.push(order);
    }
    batch
}

fn write_batch(connection: &mut Connection, batch: &[Order]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare_cached(INSERT)?;
        for order in batch {
            let Order::Keep(row) = order else { continue };
            let trail = brief::write(row);
            let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            insert.execute(params![
                row.call_id,
                number(row.at_ms),
                row.route,
                row.model,
                row.dialect,
                row.streamed,
                row.caller,
                row.tenant,
                row.fingerprint,
                row.prompt_version,
                row.outcome,
                row.code,
                row.target,
                row.tier,
                row.attempts,
                row.provider_request_id,
                row.finish,
                row.validation,
                row.latency_ms,
                row.first_token_ms,
                number(row.input_tokens),
                number(row.output_tokens),
                row.at_least,
                trail,
            ])?;
        }
    }
    transaction.commit()
}

fn prune(connection: &Connection) {
    let old = "DELETE FROM calls WHERE seq <= (SELECT max(seq) FROM calls) - ?1";
    if let Err(cause) = connection.execute(old, [MAX_ROWS]) {
        tracing::warn!(%cause, "old call log rows could not be removed");
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let word = |name: &str| row.get::<_, String>(name).map(Word::from);
    let number = |name: &str| row.get::<_, i64>(name).map(|n| u64::try_from(n).unwrap_or(0));
    let mut read = Row {
        call_id: row.get("call_id")?,
        at_ms: number("at_ms")?,
        route: row.get("route")?,
        model: row.get("model")?,
        dialect: word("dialect")?,
        streamed: row.get("streamed")?,
        caller: row.get("caller")?,
        tenant: row.get("tenant")?,
        fingerprint: row.get("fingerprint")?,
        prompt_version: row.get("prompt_version")?,
        outcome: word("outcome")?,
        code: word("code")?,
        target: row.get("target")?,
        tier: row.get("tier")?,
        attempts: row.get("attempts")?,
        provider_request_id: row.get("provider_request_id")?,
        finish: word("finish")?,
        validation: word("validation")?,
        latency_ms: row.get("latency_ms")?,
        first_token_ms: row.get("first_token_ms")?,
        input_tokens: number("input_tokens")?,
        output_tokens: number("output_tokens")?,
        at_least: row.get("at_least")?,
        trail: Trail::default(),
    };
    read.trail = brief::read(&read, &row.get::<_, String>("trail")?);
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rusqlite::Connection;

    use super::{Writer, newest};
    use crate::record::Row;

    fn place(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("backstay-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn a_row_comes_back_as_it_went_in_by_any_prefix_of_its_id() {
        let path = place("roundtrip.sqlite");
        let writer = Writer::open(&path).unwrap();
        let row = Row {
            call_id: "0197-aa".into(),
            at_ms: 7,
            latency_ms: 1.5,
            input_tokens: u64::MAX,
            ..Row::default()
        };
        assert!(writer.put(row));
        let found = writer.find("0197").unwrap().unwrap();
        assert_eq!((found.call_id.as_str(), found.at_ms), ("0197-aa", 7));
        assert_eq!(found.input_tokens, i64::MAX as u64, "clamped, not wrapped");
        assert!(writer.find("0198").unwrap().is_none());
        assert_eq!(newest(&path, 10).unwrap().len(), 1);
        drop(writer);
        let _ = std::fs::remove_file(&path);
    }

    fn row(id: &str) -> Row {
        Row { call_id: id.into(), ..Row::default() }
    }

    #[test]
    fn rows_of_a_batch_that_cannot_be_written_are_counted() {
        let path = place("failing.sqlite");
        let writer = Writer::open(&path).unwrap();
        Connection::open(&path).unwrap().execute_batch("DROP TABLE calls").unwrap();
        for id in ["a", "b", "c"] {
            assert!(writer.put(row(id)));
        }
        writer.flush();
        assert_eq!(writer.lost(), 3);
        drop(writer);
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn old_rows_go_also_when_the_process_was_restarted_in_between() {
        let path = place("pruned.sqlite");
        let writer = Writer::open(&path).unwrap();
        assert!(writer.put(row("old")) && writer.put(row("new")));
        drop(writer);
        let update = "UPDATE calls SET seq = 1019999 WHERE call_id = 'new'";
        Connection::open(&path).unwrap().execute(update, []).unwrap();
        let writer = Writer::open(&path).unwrap();
        assert!(writer.put(row("newest")));
        assert!(writer.find("old").unwrap().is_none(), "over a million rows behind");
        assert!(writer.find("newest").unwrap().is_some());
        drop(writer);
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn who_waits_for_a_full_queue_does_not_stop_a_call_from_handing_its_row_over() {
        let path = place("full.sqlite");
        let writer = Writer::open(&path).unwrap();
        let blocker = Connection::open(&path).unwrap();
        blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
        // The writer holds a batch and waits for the file; the queue behind it fills up.
        while writer.put(row("x")) {}
        std::thread::sleep(super::GATHER * 3);
        while writer.put(row("x")) {}
        std::thread::scope(|scope| {
            let flush = scope.spawn(|| writer.flush());
            std::thread::sleep(super::GATHER * 3);
            let (done, put) = channel();
            let writer = &writer;
            scope.spawn(move || done.send(writer.put(row("y"))));
            assert!(put.recv_timeout(Duration::from_millis(500)).is_ok(), "it waits");
            assert!(!flush.is_finished());
            blocker.execute_batch("COMMIT").unwrap();
        });
        drop(writer);
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_file_that_is_no_database_is_refused_with_its_name() {
        let path = place("text.sqlite");
        std::fs::write(&path, "this is not a database, and long enough to be sure").unwrap();
        let fault = Writer::open(&path).unwrap_err().to_string();
        assert!(fault.contains("text.sqlite"), "{fault}");
        let _ = std::fs::remove_file(&path);
    }
}
