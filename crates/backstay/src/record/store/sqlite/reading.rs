//! Reads the call log: single rows, all rows of a time, what a day's calls spent.

use std::path::Path;
use std::time::Duration;

use backstay_decide::Money;
use backstay_decide::spend::Day;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::admit::spend::{Before, Cost};
use crate::record::store::{StoreFault, brief};
use crate::record::{Row, Trail, Word};

/// What each key spent by calls that came at such a time. An older version booked no tokens: its sums count.
const SPENT: &str = "
SELECT caller, total(cost), total(iif(cost_at_least, cost, 0)), sum(cost_at_least),
       total(booked), total(iif(at_least, booked, 0)), sum(at_least)
FROM (SELECT *, max(booked_tokens, input_tokens + output_tokens) AS booked
      FROM calls WHERE at_ms >= ?1 AND at_ms < ?2)
GROUP BY caller
";

/// Looks from the newest row back: there is no index.
const FIND: &str = "SELECT * FROM calls WHERE call_id >= ?1 AND call_id < ?1 || 'z' \
    ORDER BY seq DESC LIMIT 1";

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

/// What each key spent by calls that came on `day`.
///
/// # Errors
/// The file cannot be read.
pub(super) fn spent_on(path: &Path, day: Day) -> Result<Vec<Before>, StoreFault> {
    reading(path, |connection| {
        let mut spent = connection.prepare(SPENT)?;
        spent.query_map([day.0, day.0 + 1].map(first_ms), before)?.collect()
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

/// When a day begins, in milliseconds since 1970 UTC.
pub(super) fn first_ms(day: u64) -> i64 {
    i64::try_from(day.saturating_mul(86_400_000)).unwrap_or(i64::MAX)
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
