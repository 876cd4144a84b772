//! The thread that writes the call log: many rows in one transaction, and the oldest go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::{Connection, ErrorCode, Statement};

use super::Desk;
use crate::record::beside::Note;
use crate::record::store::packed::{COLUMNS, Field, Packed};

/// Bytes of memory the writer keeps between two batches.
const KEPT: usize = 4 << 20;

/// Rows kept; the oldest go first. At 2 kB a row, 2 GB.
const MAX_ROWS: i64 = 1_000_000;

/// Rows written between two removals of old ones.
const PRUNE: u64 = 10_000;

/// The thread's side.
pub(super) struct Writing {
    connection: Connection,
    desk: Arc<Desk>,
    /// The number of the newest row, also of those written before the start.
    newest: u64,
}

impl Writing {
    /// Goes on after the newest row of the file.
    pub(super) fn new(connection: Connection, desk: Arc<Desk>) -> rusqlite::Result<Self> {
        let newest = "SELECT coalesce(max(seq), 0) FROM calls";
        let newest: i64 = connection.query_row(newest, [], |row| row.get(0))?;
        Ok(Self { connection, desk, newest: u64::try_from(newest).unwrap_or_default() })
    }

    /// Writes what comes until the log is dropped.
    pub(super) fn all(mut self) {
        let insert = insert();
        let mut rows = Packed::default();
        while let Some(flushes) = self.desk.take(&mut rows) {
            if rows.rows() > 0 {
                self.keep(&insert, &rows);
            }
            if rows.bytes() > KEPT {
                rows = Packed::default();
            }
            for done in flushes {
                let _ = done.try_send(());
            }
        }
    }

    /// Writes `rows`, tried again for as long as what is in the way may pass. Where it may not, and at
    /// the end of the log, they are lost and counted.
    fn keep(&mut self, insert: &str, rows: &Packed) {
        let count = rows.rows() as u64;
        let desk = Arc::clone(&self.desk);
        desk.work.begin();
        while let Err(cause) = write(&mut self.connection, insert, rows) {
            let note = desk.work.failed(cause.to_string());
            if !may_pass(&cause) || desk.rests() {
                desk.lost.fetch_add(count, Ordering::Relaxed);
                desk.work.given_up();
                tracing::error!(%cause, rows = count, "call log rows lost");
                return;
            }
            if note == Note::News {
                tracing::error!(%cause, "the call log cannot be written; its rows wait");
            }
        }
        self.written(count);
        if desk.work.done() == Note::News {
            let lost = desk.lost.load(Ordering::Relaxed);
            tracing::warn!(lost, "the call log is written again");
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

/// Whether what a write failed of may pass without anybody mending the file.
fn may_pass(cause: &rusqlite::Error) -> bool {
    matches!(
        cause.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull)
    )
}

/// The statement that writes one row. It replaces nothing but in files of earlier versions, whose ids are
/// unique: there a second row of one id would lose its whole batch.
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
        // What is bound stays so, and most columns of a row are as those of the one before.
        let mut bound = [None; COLUMNS.len()];
        for _ in 0..rows.rows() {
            for (column, bound) in (1..).zip(&mut bound) {
                let field = fields.next().unwrap_or(Field::Text(b""));
                if bound.replace(field) != Some(field) {
                    bind(&mut insert, column, field)?;
                }
            }
            insert.raw_execute()?;
        }
    }
    transaction.commit()
}

fn bind(insert: &mut Statement<'_>, column: usize, field: Field<'_>) -> rusqlite::Result<()> {
    match field {
        Field::Whole(number) => insert.raw_bind_parameter(column, number),
        Field::Real(number) => insert.raw_bind_parameter(column, number),
        Field::Text(text) => {
            insert.raw_bind_parameter(column, std::str::from_utf8(text).unwrap_or_default())
        }
    }
}

fn prune(connection: &Connection) {
    let old = "DELETE FROM calls WHERE seq <= (SELECT max(seq) FROM calls) - ?1";
    if let Err(cause) = connection.execute(old, [MAX_ROWS]) {
        tracing::warn!(%cause, "old call log rows could not be removed");
    }
}
