//! CPU time of a healthy call in the engine: admit, route, the building of the request, the reading and
//! judging of the reply, and the record, with the call log's own thread counted in. What is left out is
//! the network on both sides, and the contract, which `contract::settle` makes before.

use std::error::Error;
use std::fs;

use backstay::call;
use backstay::contract::{self, Ask};
use backstay::engine::Engine;
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
    let provider = Provider::at("local", Dialect::OpenaiChat, "http://127.0.0.1:9/v1".parse()?, None);
    let engine = Engine::new(Policy::of([provider]), CallLog::sqlite(&folder.join("calls.sqlite"))?)?;
    engine.answer_all_with(Bytes::from_static(REPLY.as_bytes()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let mut best = [u64::MAX; 2];
    for _ in 0..ROUNDS {
        let (settled, served) = runtime.block_on(round(&engine))?;
        best = [best[0].min(settled), best[1].min(served)];
    }
    fs::remove_dir_all(&folder)?;
    let micros = best.map(|nanos| nanos as f64 / 1e3 / f64::from(CALLS));
    println!("contract {:.2} us", micros[0]);
    println!("admit, route, attempt without network, judgement, record {:.2} us", micros[1]);
    Ok(())
}

/// Nanoseconds of CPU that the contracts of one round took, and their calls.
async fn round(engine: &Engine) -> Result<(u64, u64), Box<dyn Error>> {
    let began = run_time();
    let contracts = (0..CALLS).map(|_| {
        let body = Bytes::from_static(REQUEST.as_bytes());
        contract::settle(engine, Ask::new(Dialect::OpenaiChat, body, engine.now()))
    });
    let contracts = contracts.collect::<Result<Vec<_>, _>>()?;
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
