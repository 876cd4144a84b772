//! CPU time of a healthy call in the engine: admit, route, the building of the request, the reading and
//! judging of the reply, and the record, with the call log's own thread counted in. What is left out is
//! the network on both sides, and the contract, which `contract::settle` makes before. Then what two
//! threads with a runtime each do together at one target, beside one thread: what they share is the
//! target, the seats, the counters and the call log. The log's thread is a third one, so on two cores it
//! is done without the log as well.

use std::error::Error;
use std::fs;
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

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("stages-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let engine = engine(CallLog::sqlite(&folder.join("calls.sqlite"))?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let mut best = [u64::MAX; 2];
    for _ in 0..ROUNDS {
        let (settled, served) = runtime.block_on(round(&engine))?;
        best = [best[0].min(settled), best[1].min(served)];
    }
    let logged = [together(&engine, 1)?, together(&engine, 2)?];
    fs::remove_dir_all(&folder)?;
    let engine = self::engine(CallLog::off())?;
    let alone = [together(&engine, 1)?, together(&engine, 2)?];
    let micros = best.map(|nanos| nanos as f64 / 1e3 / f64::from(CALLS));
    println!("contract {:.2} us", micros[0]);
    println!("admit, route, attempt without network, judgement, record {:.2} us", micros[1]);
    for (what, [one, two]) in [("with the log", logged), ("without a log", alone)] {
        let a_second =
            |threads: u32, took: Duration| f64::from(threads * CALLS) / took.as_secs_f64();
        let (one, two) = (a_second(1, one), a_second(2, two));
        let times = two / one;
        println!("calls a second {what}: one thread {one:.0}, two {two:.0}, {times:.2} times");
    }
    Ok(())
}

/// An engine whose provider gives [`REPLY`] to everything.
fn engine(log: CallLog) -> Result<Engine, Box<dyn Error>> {
    let base = "http://127.0.0.1:9/v1".parse()?;
    let provider = Provider::at("local", Dialect::OpenaiChat, base, None);
    let engine = Engine::new(Policy::of([provider]), log)?;
    engine.answer_all_with(Bytes::from_static(REPLY.as_bytes()));
    Ok(engine)
}

/// How long `threads` threads take for [`CALLS`] calls each, the best of [`ROUNDS`].
fn together(engine: &Engine, threads: usize) -> Result<Duration, Box<dyn Error>> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Barrier::new(threads + 1);
        let took = std::thread::scope(|scope| {
            let running: Vec<_> =
                (0..threads).map(|_| scope.spawn(|| calls(engine, &start))).collect();
            start.wait();
            let began = Instant::now();
            let ended: Result<Vec<()>, String> = running
                .into_iter()
                .map(|it| it.join().map_err(|_| "a thread panicked".to_owned())?)
                .collect();
            ended.map(|_| began.elapsed())
        })?;
        engine.call_log().flush();
        best = best.min(took);
    }
    Ok(best)
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
