//! The call log in one SQLite file that anyone can open with `sqlite3`.
//!
//! One thread owns the writing connection and takes rows from a bounded buffer, many in one
//! transaction. Readers open their own connection; WAL lets them read beside the writer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use backstay_decide::Money;
use backstay_decide::spend::Day;
use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::packed::{COLUMNS, Field, Packed};
use super::{StoreFault, brief};
use crate::admit::spend::{Before, Cost};
use crate::record::{Row, Trail, Word};

/// Rows waiting for the writer.
const MAX_WAITING: usize = 8_192;

/// Bytes waiting for the writer: 2 kB for each of as many rows. Usual ones have 400 bytes.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// Bytes of memory the writer keeps between two batches.
const KEPT: usize = 1 << 20;

/// How long the writer gathers rows: what a crash of the process may lose at most. All rows of the
/// time are one transaction, so a page is written once for many rows, not once a row.
const GATHER: Duration = Duration::from_millis(20);

/// Rows kept; the oldest go first. At 2 kB a row, 2 GB.
const MAX_ROWS: i64 = 1_000_000;

/// Rows written between two removals of old ones.
const PRUNE: u64 = 10_000;

/// Longest wait for what is in the buffer to be written.
const FLUSH: Duration = Duration::from_secs(10);

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
  trail TEXT NOT NULL,
  edits TEXT NOT NULL DEFAULT '',
  would TEXT NOT NULL DEFAULT '',
  cost TEXT NOT NULL DEFAULT '', cost_at_least INTEGER NOT NULL DEFAULT 0,
  booked_tokens INTEGER NOT NULL DEFAULT 0,
  simulated TEXT NOT NULL DEFAULT ''
);
";

/// Columns that files of older versions lack.
const ADDED: [(&str, &str); 6] = [
    ("edits", "TEXT NOT NULL DEFAULT ''"),
    ("would", "TEXT NOT NULL DEFAULT ''"),
    ("cost", "TEXT NOT NULL DEFAULT ''"),
    ("cost_at_least", "INTEGER NOT NULL DEFAULT 0"),
    ("booked_tokens", "INTEGER NOT NULL DEFAULT 0"),
    ("simulated", "TEXT NOT NULL DEFAULT ''"),
];

/// What each key spent by calls with these ids. An older version booked no tokens: its sums count.
const SPENT: &str = "
SELECT caller, total(cost), total(iif(cost_at_least, cost, 0)), sum(cost_at_least),
       total(booked), total(iif(at_least, booked, 0)), sum(at_least)
FROM (SELECT *, max(booked_tokens, input_tokens + output_tokens) AS booked
      FROM calls WHERE call_id >= ?1 AND call_id < ?2)
GROUP BY caller
";

const FIND: &str = "SELECT * FROM calls WHERE call_id >= ?1 AND call_id < ?1 || 'z' \
    ORDER BY at_ms DESC LIMIT 1";

/// The writing side of the log.
#[derive(Debug)]
pub struct Writer {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

/// Where calls leave their rows and the thread takes them.
#[derive(Debug, Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    /// A first row has come.
    came: Condvar,
    /// Somebody waits for the writer, or it is to end.
    urgent: Condvar,
    /// Rows taken and not written.
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    rows: Packed,
    /// Who waits for all rows before it to be written.
    flushes: Vec<SyncSender<()>>,
    ended: bool,
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
        add_columns(&connection).map_err(fault)?;
        let newest = "SELECT coalesce(max(seq), 0) FROM calls";
        let newest: i64 = connection.query_row(newest, [], |row| row.get(0)).map_err(fault)?;
        let desk = Arc::<Desk>::default();
        let writing = Writing {
            connection,
            newest: u64::try_from(newest).unwrap_or_default(),
            desk: Arc::clone(&desk),
        };
        let thread = std::thread::Builder::new()
            .name("call-log".into())
            .spawn(move || writing.all())
            .map_err(|cause| StoreFault {
                place: path.display().to_string(),
                doing: "written",
                cause: cause.to_string(),
            })?;
        Ok(Self { desk, thread: Some(thread), path: path.to_owned() })
    }

    /// Leaves `row` for the thread. False when too many wait.
    pub fn put(&self, row: &Row) -> bool {
        let packed = Packed::of(row);
        let mut waiting = self.desk.waiting.lock();
        let bytes = waiting.rows.bytes() + packed.bytes();
        if waiting.rows.rows() >= MAX_WAITING || bytes > MAX_WAITING_BYTES {
            return false;
        }
        waiting.rows.append(&packed);
        drop(waiting);
        self.desk.came.notify_one();
        true
    }

    /// Rows taken and then lost because the file could not be written, since the start.
    pub fn lost(&self) -> u64 {
        self.desk.lost.load(Ordering::Relaxed)
    }

    /// Waits, at most ten seconds, until everything left before is written. Rows go on being taken
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
}

impl Writer {
    /// What each key spent by calls that came on `day`. Ids of calls begin with their time.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn spent_on(&self, day: Day) -> Result<Vec<Before>, StoreFault> {
        self.flush();
        reading(&self.path, |connection| {
            let mut spent = connection.prepare(SPENT)?;
            spent.query_map([first_id(day.0), first_id(day.0 + 1)], before)?.collect()
        })
    }
}

/// How the ids of calls begin that come first on a day: a UUID of version 7 begins with its time.
fn first_id(day: u64) -> String {
    let hex = format!("{:012x}", day.saturating_mul(86_400_000));
    let (high, low) = hex.split_at(8);
    format!("{high}-{low}")
}

fn before(row: &rusqlite::Row<'_>) -> rusqlite::Result<Before> {
    // Over a million, more than any limit: as much as can be.
    let money = |at| row.get::<_, f64>(at).map(|sum| Money::of(sum.min(1e6)).unwrap_or_default());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let tokens = |at| row.get::<_, f64>(at).map(|sum| sum as u64);
    Ok(Before {
        key: row.get(0)?,
        spent: Cost { money: money(1)?, tokens: tokens(4)? },
        estimated: Cost { money: money(2)?, tokens: tokens(5)? },
        unknown: [row.get(3)?, row.get(6)?],
    })
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.desk.waiting.lock().ended = true;
        self.desk.hurry();
        if let Some(thread) = self.thread.take() {
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

/// Every row of the file at `path` that arrived at or after the first moment and before the second, in
/// milliseconds since 1970 UTC, oldest first; one at a time, so that a million take no memory.
///
/// # Errors
/// The file is not there or cannot be read.
pub fn each(
    path: &Path,
    (from_ms, until_ms): (u64, u64),
    mut take: impl FnMut(Row),
) -> Result<(), StoreFault> {
    let within = "SELECT * FROM calls WHERE at_ms >= ?1 AND at_ms < ?2 ORDER BY seq";
    let [from, until] = [from_ms, until_ms].map(|at| i64::try_from(at).unwrap_or(i64::MAX));
    reading(path, |connection| {
        let mut rows = connection.prepare(within)?;
        for row in rows.query_map([from, until], read)? {
            take(row?);
        }
        Ok(())
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

impl Desk {
    fn hurry(&self) {
        self.came.notify_one();
        self.urgent.notify_one();
    }

    /// Takes what is there after a moment's wait, into `rows`; at once when somebody waits for it.
    /// `None`: the end, and nothing is there.
    fn take(&self, rows: &mut Packed) -> Option<Vec<SyncSender<()>>> {
        rows.clear();
        let mut waiting = self.waiting.lock();
        self.came.wait_while(&mut waiting, |waiting| waiting.is_idle() && !waiting.ended);
        self.urgent.wait_while_for(&mut waiting, |waiting| !waiting.is_urgent(), GATHER);
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

    fn is_urgent(&self) -> bool {
        self.ended || !self.flushes.is_empty()
    }
}

/// Brings the table of an older version up to this one's columns.
fn add_columns(connection: &Connection) -> rusqlite::Result<()> {
    let mut columns = connection.prepare("SELECT name FROM pragma_table_info('calls')")?;
    let names = columns.query_map([], |row| row.get(0))?;
    let names = names.collect::<rusqlite::Result<Vec<String>>>()?;
    for (name, kind) in ADDED {
        if !names.iter().any(|known| known == name) {
            connection.execute_batch(&format!("ALTER TABLE calls ADD COLUMN {name} {kind}"))?;
        }
    }
    Ok(())
}

/// The thread's side.
struct Writing {
    connection: Connection,
    /// The number of the newest row, also of those written before the start.
    newest: u64,
    desk: Arc<Desk>,
}

impl Writing {
    fn all(mut self) {
        let insert = insert();
        let mut rows = Packed::default();
        while let Some(flushes) = self.desk.take(&mut rows) {
            let count = rows.rows() as u64;
            match write(&mut self.connection, &insert, &rows) {
                Ok(()) => self.written(count),
                Err(cause) => {
                    self.desk.lost.fetch_add(count, Ordering::Relaxed);
                    tracing::error!(%cause, rows = count, "call log rows lost");
                }
            }
            if rows.bytes() > KEPT {
                rows = Packed::default();
            }
            for done in flushes {
                let _ = done.try_send(());
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

/// The statement that writes one row.
fn insert() -> String {
    let places = vec!["?"; COLUMNS.len()].join(", ");
    format!("INSERT OR REPLACE INTO calls ({}) VALUES ({places})", COLUMNS.join(", "))
}

fn write(connection: &mut Connection, insert: &str, rows: &Packed) -> rusqlite::Result<()> {
    if rows.rows() == 0 {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare_cached(insert)?;
        let mut fields = rows.fields();
        for _ in 0..rows.rows() {
            for column in 1..=COLUMNS.len() {
                match fields.next() {
                    Some(Field::Whole(number)) => insert.raw_bind_parameter(column, number)?,
                    Some(Field::Real(number)) => insert.raw_bind_parameter(column, number)?,
                    Some(Field::Text(text)) => insert.raw_bind_parameter(column, text)?,
                    None => insert.raw_bind_parameter(column, "")?,
                }
            }
            insert.raw_execute()?;
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
        // A file that no newer version has opened yet has no such columns.
        edits: row.get("edits").unwrap_or_default(),
        would: word("would").unwrap_or_default(),
        cost: row.get("cost").unwrap_or_default(),
        cost_at_least: row.get("cost_at_least").unwrap_or_default(),
        booked_tokens: number("booked_tokens").unwrap_or_default(),
        simulated: row.get("simulated").unwrap_or_default(),
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

    use super::{Before, Cost, Day, Money, Writer, first_id, newest};
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
        assert!(writer.put(&row));
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
            assert!(writer.put(&row(id)));
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
        assert!(writer.put(&row("old")) && writer.put(&row("new")));
        drop(writer);
        let update = "UPDATE calls SET seq = 1019999 WHERE call_id = 'new'";
        Connection::open(&path).unwrap().execute(update, []).unwrap();
        let writer = Writer::open(&path).unwrap();
        assert!(writer.put(&row("newest")));
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
        while writer.put(&row("x")) {}
        std::thread::sleep(super::GATHER * 3);
        while writer.put(&row("x")) {}
        std::thread::scope(|scope| {
            let flush = scope.spawn(|| writer.flush());
            std::thread::sleep(super::GATHER * 3);
            let (done, put) = channel();
            let writer = &writer;
            scope.spawn(move || done.send(writer.put(&row("y"))));
            assert!(put.recv_timeout(Duration::from_millis(500)).is_ok(), "it waits");
            assert!(!flush.is_finished());
            blocker.execute_batch("COMMIT").unwrap();
        });
        drop(writer);
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_file_of_an_older_version_gets_its_new_columns_and_keeps_its_rows() {
        let path = place("older.sqlite");
        drop(Writer::open(&path).unwrap());
        let older = Connection::open(&path).unwrap();
        older.execute_batch("ALTER TABLE calls DROP COLUMN edits").unwrap();
        drop(older);
        let writer = Writer::open(&path).unwrap();
        assert!(writer.put(&Row { edits: "fence=1".into(), ..row("a") }));
        assert_eq!(writer.find("a").unwrap().unwrap().edits, "fence=1");
        drop(writer);
        let older = Connection::open(&path).unwrap();
        older.execute_batch("ALTER TABLE calls DROP COLUMN edits").unwrap();
        assert_eq!(newest(&path, 1).unwrap()[0].edits, "", "read before anything adds it");
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_day_is_summed_by_key_from_midnight_to_midnight() {
        let path = place("spent.sqlite");
        let writer = Writer::open(&path).unwrap();
        let of = |id: String, caller: &str, cost: &str| Row {
            call_id: id,
            caller: caller.into(),
            cost: cost.into(),
            input_tokens: 10,
            ..row("")
        };
        let id = |day: u64, rest: &str| format!("{}-7{rest}", first_id(day));
        for row in [
            of(id(20_001, "a"), "app", "100"),
            of(id(19_999, "b"), "app", "100"),
            of(id(20_000, "c"), "app", "0.25"),
            Row {
                cost_at_least: true,
                at_least: true,
                booked_tokens: 300,
                ..of(id(20_000, "d"), "app", "0.5")
            },
            of(id(20_000, "e"), "job", ""),
        ] {
            assert!(writer.put(&row));
        }
        let money = |units| Money::of(units).unwrap();
        let app = Before {
            key: "app".into(),
            spent: Cost { money: money(0.75), tokens: 310 },
            estimated: Cost { money: money(0.5), tokens: 300 },
            unknown: [1, 1],
        };
        let spent = Cost { money: Money::ZERO, tokens: 10 };
        let job = Before { key: "job".into(), spent, ..Before::default() };
        assert_eq!(writer.spent_on(Day(20_000)).unwrap(), [app, job]);
        drop(writer);
        // What an older version wrote has no costs: its tokens count.
        let older = Connection::open(&path).unwrap();
        for column in ["cost", "cost_at_least", "booked_tokens"] {
            older.execute_batch(&format!("ALTER TABLE calls DROP COLUMN {column}")).unwrap();
        }
        drop(older);
        let spent = Writer::open(&path).unwrap().spent_on(Day(20_000)).unwrap();
        assert_eq!(spent[0].spent, Cost { money: Money::ZERO, tokens: 20 });
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
