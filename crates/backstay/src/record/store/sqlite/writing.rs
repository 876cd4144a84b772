//! The thread that writes the call log: many rows in one transaction, and the oldest go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::Connection;

use super::Desk;
use crate::record::store::packed::{COLUMNS, Field, Packed};

/// Bytes of memory the writer keeps between two batches.
const KEPT: usize = 1 << 20;

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
