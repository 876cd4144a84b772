//! What stands beside a call and never answers: a call log that somebody has locked, a webhook that takes
//! the connection and says nothing. No call waits for either.

use std::path::{Path, PathBuf};
use std::time::Duration;

use backstay::record::CallLog;
use futures_util::future::join_all;
use rusqlite::Connection;
use tokio::time::Instant;

use super::OPENAI;
use crate::fixed::Fixed;
use crate::world::{HELLO, Setup, World, request};

const CALLS: usize = 20;

/// What a call may take longer, by the case.
const ADDED: Duration = Duration::from_millis(100);

/// What no call takes, however busy the machine: a try to write to the locked file takes half of it.
const STUCK: Duration = Duration::from_secs(1);

/// A world that tells of every call, keeps its log in a file, and posts its alerts to `hook`.
async fn world(file: &Path, hook: &Fixed) -> World {
    Setup::new()
        .log(file)
        .tables(&format!("[alerts]\nevery = \"0s\"\nwebhook = \"{}\"", hook.url()))
        .backed("odd", "openai", &["unknown-finish"], "deadline = \"9s\"")
        .start()
        .await
}

/// A call log's file that is gone with the test.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let name = format!("backstay-beside-{}-{name}.sqlite", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// Keeps everybody else from writing, for as long as what is returned lives.
    fn lock(&self) -> Connection {
        let holder = Connection::open(&self.0).expect("a file");
        holder.execute_batch("BEGIN EXCLUSIVE").expect("locked");
        holder
    }

    fn rows(&self) -> usize {
        backstay::record::store::sqlite::newest(&self.0, 1_000).expect("rows").len()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let mut path = self.0.clone().into_os_string();
            path.push(end);
            let _ = std::fs::remove_file(path);
        }
    }
}

/// How long a call takes. It is answered.
async fn call(world: &World) -> Duration {
    let began = Instant::now();
    let seen = world.ask(OPENAI, &request(OPENAI, "odd", HELLO)).await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    began.elapsed()
}

/// Asks both worlds turn by turn, then all at once: each call of the one takes at most so much longer than
/// its like in the other. One in twenty may be held up by the machine, but by nothing that waits.
async fn compare(calm: &World, troubled: &World) {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        without.push(call(calm).await);
        with.push(call(troubled).await);
    }
    assert_alike(without, with);
    let all = |world| join_all((0..CALLS).map(move |_| call(world)));
    assert_alike(all(calm).await, all(troubled).await);
}

fn assert_alike(mut without: Vec<Duration>, mut with: Vec<Duration>) {
    without.sort_unstable();
    with.sort_unstable();
    let pairs = without.iter().zip(&with).take(CALLS - 1);
    let late = pairs.filter(|(without, with)| **with > **without + ADDED).count();
    assert!(late == 0 && with[CALLS - 1] < STUCK, "{with:?}, and without the trouble {without:?}");
}

/// Waits, at most ten seconds, until readiness says all of `words`, or `ready` where there are none. It is
/// 200 all the while.
async fn told(world: &World, words: &[&str]) -> String {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let seen = world.get("/health/ready").await;
        assert_eq!(seen.status, 200, "a gateway that serves stays in rotation");
        let text = seen.text();
        let is_told = match words {
            [] => text == "ready\n",
            _ => text.starts_with("degraded\n") && words.iter().all(|word| text.contains(word)),
        };
        if is_told {
            return text;
        }
        assert!(Instant::now() < end, "{words:?} is not told: {text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn has_metric(world: &World, line: &str) -> bool {
    world.get("/metrics").await.text().lines().any(|known| known == line)
}

const LOCKED: &str = "call_log: database is locked; ";
const SILENT: &str = "alerts: ";

/// Case B225: a store that took connections and never answered was awaited by every request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_call_log_and_a_silent_webhook_cost_no_call_its_answer_or_its_time() {
    let hooks = [Fixed::start("{}").await, Fixed::raw(Vec::new()).await];
    let [calm_file, locked, both] = ["calm", "locked", "both"].map(File::new);
    let silent_file = File::new("silent");
    let calm = world(&calm_file.0, &hooks[0]).await;
    let worlds = [
        (world(&locked.0, &hooks[0]).await, Some(locked.lock()), vec![LOCKED]),
        (world(&silent_file.0, &hooks[1]).await, None, vec![SILENT]),
        (world(&both.0, &hooks[1]).await, Some(both.lock()), vec![LOCKED, SILENT]),
    ];
    for (troubled, holder, words) in worlds {
        compare(&calm, &troubled).await;
        told(&troubled, &words).await;
        compare(&calm, &troubled).await;
        let degraded = |part, is| format!("backstay_degraded{{part=\"{part}\"}} {is}");
        for (part, word) in [("call_log", LOCKED), ("alerts", SILENT)] {
            let is = u8::from(words.contains(&word));
            assert!(has_metric(&troubled, &degraded(part, is)).await, "{part} of {words:?}");
        }
        let Some(holder) = holder else {
            troubled.stop().await;
            continue;
        };
        drop(holder);
        if words == [LOCKED] {
            told(&troubled, &[]).await;
            troubled.engine().call_log().flush();
            assert_eq!(locked.rows(), 4 * CALLS, "what waited is written");
        }
        assert!(has_metric(&troubled, "backstay_call_log_rows_dropped 0").await);
        troubled.stop().await;
    }
    told(&calm, &[]).await;
    calm.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_waits_for_a_locked_call_log_only_so_long_and_counts_what_is_lost() {
    let (file, hook) = (File::new("stop"), Fixed::raw(Vec::new()).await);
    let world = world(&file.0, &hook).await;
    let holder = file.lock();
    for _ in 0..3 {
        call(&world).await;
    }
    let log: CallLog = world.engine().call_log().clone();
    let began = Instant::now();
    world.stop().await;
    let took = began.elapsed();
    assert!(
        (4_900..7_000).contains(&took.as_millis()),
        "the drain has nothing to wait for: {took:?}"
    );
    assert_eq!(log.dropped(), 0, "they may still be written");
    let began = Instant::now();
    drop(log);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    drop(holder);
    assert_eq!(file.rows(), 0);
}
