//! The table of the call log, and how a file of any version gets it.
//!
//! It has no index but the order of its rows: docs/decisions/0028.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS calls (
  seq INTEGER PRIMARY KEY,
  call_id TEXT NOT NULL,
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

/// Longest wait for a lock of another when the file is opened.
const OPENING: Duration = Duration::from_secs(5);

/// The same at each try to write: short, since rows are not lost by it, and a stop waits for one try.
const WRITING: Duration = Duration::from_millis(500);

/// Bytes of a page of a new file. Four times the default: every page is written twice, to the log of
/// changes and to the file, each time with the same work whatever its size. With more, a row every now and
/// then would cost the disk too much.
const PAGE: u32 = 16_384;

/// Bytes of the log of changes after which it is carried over to the file.
const CARRIED: u32 = 4_000_000;

/// Opens the file at `path` for the one writer, with this version's table.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(OPENING)?;
    connection.pragma_update(None, "page_size", PAGE)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    let page: u32 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    connection.pragma_update(None, "wal_autocheckpoint", CARRIED / page)?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.execute_batch(SCHEMA)?;
    add_columns(&connection)?;
    connection.busy_timeout(WRITING)?;
    Ok(connection)
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
