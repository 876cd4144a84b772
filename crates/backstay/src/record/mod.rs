//! Writes down what happened to a call: the receipt for the caller, the trail for `explain`, a row
//! for the call log, numbers for the metrics.
//!
//! Nothing here may hold up a call: rows go through one bounded queue to one writer, and a row
//! that finds it full is dropped and counted. What is beside the calls says itself when it does not work.

mod alerts;
mod beside;
pub mod call_log;
mod lines;
pub mod metrics;
mod receipt;
pub mod store;
pub mod trail;

pub use alerts::Alert;
pub(crate) use alerts::Alerts;
pub use beside::{PARTS, Trouble};
pub use call_log::{CallLog, Row};
pub use lines::Lines;
pub use metrics::{GOOD, Metrics, RouteMeter, TargetMeter};
pub use receipt::{Known, Outcome, Receipt, Spent};
pub use trail::{Note, Step, Trail, Word};
