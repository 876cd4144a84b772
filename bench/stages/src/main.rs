//! CPU time of a healthy call in the engine: admit, route, the building of the request, the reading and
//! judging of the reply, and the record, with the call log's own thread counted in. What is left out is
//! the network on both sides, and the contract, which `contract::settle` makes before. Then what two
//! threads with a runtime each do together at one target, beside one thread: what they share is the
//! target, the seats, the counters and the call log. The log's thread is one more, which on two cores
//! is idle beside one thread and in the way of two. So the same is done on one core alone, in a process
//! that `taskset` keeps there, and without a log.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use backstay::call;
use backstay::contract::{self, Ask, Contract};
use backstay::engine::Engine;
use backstay::fault::CallError;
use backstay::policy::{Policy, Provider};
use backstay::record::CallLog;
use backstay_wire::Dialect;
use bytes::Bytes;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: u32 = 9;
const CALLS: u32 = 20_000;

const REPLY: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1760000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"They stand where the sea is rough."},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":8,"total_tokens":20}}"#;

const REQUEST: &str = r#"{"model":"local/m","max_tokens":300,"messages":[{"role":"user","content":"Where do lighthouses stand, and why there of all places?"}]}"#;

/// The argument by which this program does the part of it that is done on one core.
const ONE_CORE: &str = "one-core";

fn main() -> Result<(), Box<dyn Error>> {
    let logged = Logged::begin()?;
    let unlogged = engine(CallLog::off())?;
    if std::env::args().nth(1).as_deref() == Some(ONE_CORE) {
        let rates = [a_second(&logged.engine, 1)?, a_second(&unlogged, 1)?];
        println!("{} {} {}", rates[0], rates[1], logged.engine.call_log().dropped());
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let mut best = [u64::MAX; 2];
    for _ in 0..ROUNDS {
        let (settled, served) = runtime.block_on(round(&logged.engine))?;
        best = [best[0].min(settled), best[1].min(served)];
    }
    let [settled, served] = best.map(|nanos| nanos as f64 / 1e3 / f64::from(CALLS));
    println!("contract {settled:.2} us");
    println!("admit, route, attempt without network, judgement, record {served:.2} us");
    let one_core = on_one_core();
    let mut lost = one_core.map_or(0.0, |[.., lost]| lost);
    for (at, what, engine) in [(0, "with the log", &logged.engine), (1, "without a log", &unlogged)]
    {
        let (one, two) = (a_second(engine, 1)?, a_second(engine, 2)?);
        let times = two / one;
        println!("calls a second {what}: one thread {one:.0}, two {two:.0}, {times:.2} times");
        if let Some(alone) = one_core.as_ref().map(|both| both[at]) {
            let times = two / alone;
            println!(
                "    everything on one core: {alone:.0}; two threads on both {times:.2} times"
            );
        }
    }
    lost += logged.engine.call_log().dropped() as f64;
    println!("rows of the log lost: {lost}");
    Ok(())
}

/// Calls a second of one thread on one core, with the log, whose thread is there too, and without; and the rows
/// of the log that were lost.
/// `None`: there is no `taskset`, or the first core is not ours.
fn on_one_core() -> Option<[f64; 3]> {
    let program = std::env::current_exe().ok()?;
    let told =
        Command::new("taskset").args(["-c", "0"]).arg(program).arg(ONE_CORE).output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let mut numbers = told.split_whitespace().map(|number| number.parse::<f64>().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// An engine that logs to a file, which goes with it.
struct Logged {
    engine: Engine,
    folder: PathBuf,
}

impl Logged {
    fn begin() -> Result<Self, Box<dyn Error>> {
        let folder = std::env::temp_dir().join(format!("stages-bench-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let log = CallLog::sqlite(&folder.join("calls.sqlite"))?;
        Ok(Self { engine: engine(log)?, folder })
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// An engine whose provider gives [`REPLY`] to everything.
fn engine(log: CallLog) -> Result<Engine, Box<dyn Error>> {
    let base = "http://127.0.0.1:9/v1".parse()?;
    let provider = Provider::at("local", Dialect::OpenaiChat, base, None);
    let engine = Engine::new(Policy::of([provider]), log)?;
    engine.answer_all_with(Bytes::from_static(REPLY.as_bytes()));
    Ok(engine)
}

/// How many calls a second `threads` threads make, in the best of [`ROUNDS`] of [`CALLS`] calls each, until
/// the last row is written.
fn a_second(engine: &Engine, threads: u32) -> Result<f64, Box<dyn Error>> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Barrier::new(usize::try_from(threads)? + 1);
        let took = std::thread::scope(|scope| {
            let running: Vec<_> =
                (0..threads).map(|_| scope.spawn(|| calls(engine, &start))).collect();
            start.wait();
            let began = Instant::now();
            let ended: Result<Vec<()>, String> = running
                .into_iter()
                .map(|it| it.join().map_err(|_| "a thread panicked".to_owned())?)
                .collect();
            ended.map(|_| {
                engine.call_log().flush();
                began.elapsed()
            })
        })?;
        best = best.min(took);
    }
    Ok(f64::from(threads * CALLS) / best.as_secs_f64())
}

/// The calls of one thread, which are settled before it waits for the `start`.
fn calls(engine: &Engine, start: &Barrier) -> Result<(), String> {
    let made = contracts(engine).map_err(|error| error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    start.wait();
    let (made, runtime) = (made?, runtime.map_err(|error| error.to_string())?);
    runtime.block_on(async {
        for contract in made {
            call::serve(engine, contract).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    })
}

/// As many settled requests as one round has calls.
fn contracts(engine: &Engine) -> Result<Vec<Contract>, CallError> {
    let contract = |_| {
        let body = Bytes::from_static(REQUEST.as_bytes());
        contract::settle(engine, Ask::new(Dialect::OpenaiChat, body, engine.now()))
    };
    (0..CALLS).map(contract).collect()
}

/// Nanoseconds of CPU that the contracts of one round took, and their calls.
async fn round(engine: &Engine) -> Result<(u64, u64), Box<dyn Error>> {
    let began = run_time();
    let contracts = contracts(engine)?;
    let settled = run_time();
    for contract in contracts {
        call::serve(engine, contract).await?;
    }
    engine.call_log().flush();
    Ok((settled - began, run_time() - settled))
}

/// Nanoseconds that all threads of this process have run.
fn run_time() -> u64 {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
    let of_task = |path: std::path::PathBuf| -> Option<u64> {
        fs::read_to_string(path.join("schedstat")).ok()?.split_whitespace().next()?.parse().ok()
    };
    tasks.flatten().filter_map(|task| of_task(task.path())).sum()
}
