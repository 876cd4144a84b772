//! The call log over real files.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

use backstay_decide::Money;
use backstay_decide::spend::Day;
use rusqlite::Connection;

use super::reading::first_ms;
use super::writing::Writing;
use super::{Desk, Writer, newest, schema};
use crate::admit::spend::{Before, Cost};
use crate::clock::Clock;
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
    writer.put(&row);
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
fn rows_of_one_batch_keep_their_own_values_whatever_those_before_had() {
    let path = place("batch.sqlite");
    let writer = Writer::open(&path).unwrap();
    let of = |id: &str, code: &'static str, tenant: &str, took: f64| Row {
        code: code.into(),
        tenant: tenant.into(),
        latency_ms: took,
        ..row(id)
    };
    let rows = [
        of("a", "", "one", 1.5),
        of("b", "", "one", 1.5),
        of("c", "busy", "", 2.5),
        of("d", "", "other", 2.0),
        of("e", "", "one", 1.5),
    ];
    for row in &rows {
        writer.put(row);
    }
    writer.flush();
    let told = |row: &Row| (row.code.clone(), row.tenant.clone(), row.latency_ms);
    for row in &rows {
        let read = writer.find(&row.call_id).unwrap().unwrap();
        assert_eq!(told(&read), told(row), "{}", row.call_id);
    }
    drop(writer);
    let _ = std::fs::remove_file(&path);
}

#[test]
fn rows_of_a_batch_that_cannot_be_written_are_counted() {
    let path = place("failing.sqlite");
    let writer = Writer::open(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("DROP TABLE calls").unwrap();
    for id in ["a", "b", "c"] {
        writer.put(&row(id));
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
    writer.put(&row("old"));
    writer.put(&row("new"));
    drop(writer);
    let update = "UPDATE calls SET seq = 1019999 WHERE call_id = 'new'";
    Connection::open(&path).unwrap().execute(update, []).unwrap();
    let writer = Writer::open(&path).unwrap();
    writer.put(&row("newest"));
    assert!(writer.find("old").unwrap().is_none(), "over a million rows behind");
    assert!(writer.find("newest").unwrap().is_some());
    drop(writer);
    let _ = std::fs::remove_file(&path);
}

/// Waits, at most ten seconds, for something that comes by itself.
fn until(holds: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it never came");
}

/// How many rows wait.
fn waiting(writer: &Writer) -> usize {
    writer.desk.waiting.lock().rows.rows()
}

/// A connection that keeps the file of `path` from being written.
fn lock(path: &Path) -> Connection {
    let holder = Connection::open(path).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    holder
}

/// Leaves rows, numbered, until one finds no room; how many wait then.
fn fill(writer: &Writer) -> usize {
    let (lost, mut number) = (writer.lost(), 0);
    while writer.lost() == lost {
        writer.put(&row(&format!("{number:06}")));
        number += 1;
    }
    waiting(writer)
}

/// A writer with a thread of its own for `connection`.
fn writer_of(connection: Connection, path: &Path, desk: Desk) -> Writer {
    let desk = Arc::new(desk);
    let writing = Writing::new(connection, Arc::clone(&desk)).unwrap();
    let far = Arc::clone(&desk);
    std::thread::spawn(move || {
        writing.all();
        far.leave();
    });
    Writer { desk, path: path.to_owned() }
}

#[test]
fn rows_are_gathered_until_half_of_the_room_is_taken_by_number_or_by_bytes() {
    let path = place("half.sqlite");
    let connection = schema::open(&path).unwrap();
    let desk = Desk { gathers: Duration::from_mins(10), ..Desk::default() };
    let writer = writer_of(connection, &path, desk);
    let half = super::MAX_WAITING / 2;
    for number in 1..half {
        writer.put(&row(&number.to_string()));
    }
    assert_eq!(waiting(&writer), half - 1, "it gathers");
    writer.put(&row("last"));
    until(|| waiting(&writer) == 0);
    writer.put(&Row { edits: "x".repeat(super::MAX_WAITING_BYTES / 2), ..row("large") });
    until(|| waiting(&writer) == 0);
    assert_eq!(writer.lost(), 0);
    drop(writer);
    let _ = std::fs::remove_file(&path);
}

#[test]
fn who_waits_for_a_full_queue_does_not_stop_a_call_from_handing_its_row_over() {
    let path = place("full.sqlite");
    let writer = Writer::open(&path).unwrap();
    let holder = lock(&path);
    // The writer holds a batch and waits for the file; the queue behind it fills up.
    writer.put(&row("x"));
    until(|| waiting(&writer) == 0);
    fill(&writer);
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| writer.flush());
        std::thread::sleep(super::GATHER * 3);
        let (done, put) = channel();
        let writer = &writer;
        scope.spawn(move || {
            writer.put(&row("y"));
            done.send(())
        });
        assert!(put.recv_timeout(Duration::from_millis(500)).is_ok(), "it waits");
        assert!(!flush.is_finished());
        holder.execute_batch("COMMIT").unwrap();
    });
    drop(writer);
    let _ = std::fs::remove_file(&path);
}

#[test]
fn rows_wait_for_a_locked_file_and_all_that_found_room_are_written_in_the_end() {
    let path = place("locked.sqlite");
    let writer = Writer::open(&path).unwrap();
    let holder = lock(&path);
    writer.put(&row("first"));
    until(|| waiting(&writer) == 0);
    assert_eq!(fill(&writer), super::MAX_WAITING, "one is in hand, and these wait");
    until(|| writer.trouble().is_some());
    let trouble = "database is locked; 8192 rows wait beside those in hand, 1 lost so far";
    assert_eq!(writer.trouble().as_deref(), Some(trouble));
    holder.execute_batch("COMMIT").unwrap();
    writer.flush();
    assert_eq!((writer.trouble(), writer.lost()), (None, 1));
    assert_eq!(newest(&path, 10_000).unwrap().len(), 1 + super::MAX_WAITING);
    drop(writer);
    let _ = std::fs::remove_file(&path);
}

#[test]
fn rows_wait_for_a_full_disk_and_are_written_once_there_is_room() {
    let path = place("no-room.sqlite");
    let connection = schema::open(&path).unwrap();
    let told = |what: &str| -> u32 { connection.query_row(what, [], |row| row.get(0)).unwrap() };
    let room = 200_000 / told("PRAGMA page_size");
    let most = format!("PRAGMA max_page_count = {}", told("PRAGMA page_count") + room);
    connection.query_row(&most, [], |_| Ok(())).unwrap();
    let writer = writer_of(connection, &path, Desk::default());
    let large = |id| Row { edits: "x".repeat(150_000), ..row(id) };
    writer.put(&large("first"));
    writer.flush();
    assert_eq!(writer.trouble(), None);
    writer.put(&large("second"));
    until(|| writer.trouble().is_some());
    let trouble = writer.trouble().unwrap();
    assert!(trouble.starts_with("database or disk is full; 0 rows wait"), "{trouble}");
    Connection::open(&path).unwrap().execute("DELETE FROM calls", []).unwrap();
    writer.flush();
    assert_eq!((writer.trouble(), writer.lost()), (None, 0));
    assert_eq!(newest(&path, 10).unwrap()[0].call_id, "second");
    drop(writer);
    let _ = std::fs::remove_file(&path);
}

#[test]
fn the_end_of_the_log_does_not_wait_for_a_locked_file_and_counts_what_is_lost() {
    let path = place("ended.sqlite");
    let writer = Writer::open(&path).unwrap();
    let holder = lock(&path);
    writer.put(&row("in hand"));
    until(|| waiting(&writer) == 0);
    writer.put(&row("waiting"));
    let (desk, clock) = (Arc::clone(&writer.desk), Clock::start());
    drop(writer);
    let took = clock.now().since_origin();
    assert!(took < super::LEAVE, "{took:?}");
    assert_eq!(desk.lost.load(Ordering::Relaxed), 2);
    drop(holder);
    let _ = std::fs::remove_file(&path);
}

#[test]
fn the_end_of_the_log_does_not_wait_for_a_write_that_never_ends() {
    // Nobody stands at the other side of this desk.
    let writer = Writer { desk: Arc::default(), path: place("stuck.sqlite") };
    writer.put(&row("a"));
    let clock = Clock::start();
    drop(writer);
    let took = clock.now().since_origin();
    assert!((super::LEAVE..super::LEAVE * 2).contains(&took), "{took:?}");
}

#[test]
fn a_file_of_an_older_version_gets_its_new_columns_and_keeps_its_rows() {
    let path = place("older.sqlite");
    drop(Writer::open(&path).unwrap());
    let older = Connection::open(&path).unwrap();
    older.execute_batch("ALTER TABLE calls DROP COLUMN edits").unwrap();
    drop(older);
    let writer = Writer::open(&path).unwrap();
    writer.put(&Row { edits: "fence=1".into(), ..row("a") });
    assert_eq!(writer.find("a").unwrap().unwrap().edits, "fence=1");
    drop(writer);
    let older = Connection::open(&path).unwrap();
    older.execute_batch("ALTER TABLE calls DROP COLUMN edits").unwrap();
    assert_eq!(newest(&path, 1).unwrap()[0].edits, "", "read before anything adds it");
    let _ = std::fs::remove_file(&path);
}

#[test]
fn a_file_whose_ids_are_unique_keeps_the_later_of_two_rows_and_is_read_like_any_other() {
    let path = place("unique.sqlite");
    let older = Connection::open(&path).unwrap();
    older.pragma_update(None, "page_size", 4_096).unwrap();
    let unique = schema::SCHEMA.replace("call_id TEXT NOT NULL", "call_id TEXT NOT NULL UNIQUE");
    older.execute_batch(&unique).unwrap();
    drop(older);
    let writer = Writer::open(&path).unwrap();
    let model = |id: &str, model: &str| Row { model: model.into(), at_ms: 5, ..row(id) };
    for row in [model("0197-a", "one"), model("0197-b", "two"), model("0197-a", "three")] {
        writer.put(&row);
    }
    assert_eq!(writer.find("0197").unwrap().unwrap().model, "three");
    assert_eq!(writer.find("0197-b").unwrap().unwrap().model, "two");
    assert_eq!(newest(&path, 10).unwrap().len(), 2);
    assert_eq!((writer.lost(), writer.spent_on(Day(0)).unwrap().len()), (0, 1));
    drop(writer);
    let _ = std::fs::remove_file(&path);
}

#[test]
fn of_two_rows_of_one_id_the_newer_is_told() {
    let path = place("twice.sqlite");
    let writer = Writer::open(&path).unwrap();
    for model in ["one", "two"] {
        writer.put(&Row { model: model.into(), ..row("0197-a") });
    }
    assert_eq!(writer.find("0197-a").unwrap().unwrap().model, "two");
    drop(writer);
    let _ = std::fs::remove_file(&path);
}

#[test]
fn a_day_is_summed_by_key_from_midnight_to_midnight() {
    let path = place("spent.sqlite");
    let writer = Writer::open(&path).unwrap();
    let at = |day, ms| u64::try_from(first_ms(day) + ms).unwrap();
    let of = |at_ms: u64, caller: &str, cost: &str| Row {
        at_ms,
        caller: caller.into(),
        cost: cost.into(),
        input_tokens: 10,
        ..row(&format!("{at_ms}"))
    };
    // In no order: clocks are set back.
    for row in [
        of(at(20_000, 0), "app", "0.25"),
        of(at(20_001, 0), "app", "100"),
        Row {
            cost_at_least: true,
            at_least: true,
            booked_tokens: 300,
            ..of(at(20_001, -1), "app", "0.5")
        },
        of(at(20_000, -1), "app", "100"),
        of(at(20_000, 70), "job", ""),
        of(at(19_998, 0), "app", "100"),
    ] {
        writer.put(&row);
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
