//! Writes down what happened to a call: the receipt for the caller, the trail for `explain`, a row
//! for the call log, numbers for the metrics.
//!
//! Nothing here may hold up a call: rows go through one bounded queue to one writer, and a row
//! that finds it full is dropped and counted.

mod alerts;
pub mod call_log;
pub mod metrics;
mod receipt;
pub mod store;
pub mod trail;

pub use alerts::Alert;
pub(crate) use alerts::Alerts;
pub use call_log::{CallLog, Row};
pub use metrics::{Metrics, TargetMeter};
pub use receipt::{Known, Outcome, Receipt, Spent};
pub use trail::{Note, Step, Trail, Word};
