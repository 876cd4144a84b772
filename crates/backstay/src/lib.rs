//! A checked answer from a model, or a typed failure, inside the caller's deadline.
//!
//! The folders stand in the order of a call: [`contract`] settles what is asked, [`admit`] lets it
//! in, [`route`] chooses who answers, [`attempt`] asks, [`validate`] judges the reply, [`recover`]
//! decides what to do about a bad one, [`record`] writes down what happened. [`call`] is the spine
//! that strings them together. [`guard`] stands apart: it holds a stream of one's own client to limits.
//!
//! ```no_run
//! use backstay::call::{self, Body};
//! use backstay::contract::{Ask, Dialect};
//! use backstay::engine::Engine;
//! use backstay::policy::{Policy, Provider, Secret};
//! use backstay::record::CallLog;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let key = Secret::new(std::env::var("OPENAI_API_KEY")?);
//! let engine = Engine::new(Policy::of([Provider::openai(key)]), CallLog::memory(1_000))?;
//!
//! let request = r#"{"model": "openai/gpt-x-2026-01-15",
//!     "messages": [{"role": "user", "content": "Name three sails."}]}"#;
//! let ask = Ask::new(Dialect::OpenaiChat, request, engine.now());
//! match call::answer(&engine, ask).await {
//!     Ok(answer) => match answer.body {
//!         Body::Whole(json) => println!("{}", String::from_utf8_lossy(&json)),
//!         Body::Told(_) | Body::Live(_) => unreachable!("no stream was asked for"),
//!     },
//!     Err(error) => eprintln!("{} ({:?}): {error}", error.code(), error.side()),
//! }
//! # Ok(())
//! # }
//! ```

pub mod admit;
pub mod attempt;
pub mod call;
pub mod clock;
pub mod contract;
pub mod engine;
pub mod fault;
pub mod guard;
mod kept;
pub mod operator;
pub mod policy;
pub mod record;
pub mod recover;
pub mod route;
mod sync;
pub mod validate;
