//! Formats of the model APIs: bytes in, values out, and back.
//!
//! Nothing here knows a clock, a network or a task. A dialect is one provider family's wire
//! format ([`Dialect`]); the neutral form ([`chat`]) is what two dialects have in common. Whatever
//! a dialect cannot say is reported as a [`Loss`], never dropped in silence.
//!
//! ```text
//!  request bytes ──scan──▶ Scanned (spans)      same dialect: edit the spans, send the bytes
//!       │
//!       └──read_request──▶ Chat ──write_request──▶ bytes of another dialect + losses
//!
//!  reply bytes ──read_reply──▶ Reply ──write_reply──▶ bytes
//!  stream bytes ──sse──▶ Event ──StreamReader──▶ Delta ──StreamWriter──▶ bytes
//!                                                 └──Fold──▶ Reply
//!
//!  schema ──lower──▶ what a provider takes of it ─▶ reply ──undo──▶ reply as the schema has it
//! ```

pub mod amend;
pub mod chat;
pub mod dialect;
pub mod frame;
mod json;
pub mod lower;
pub mod pointer;
pub mod scan;
pub mod tokens;

pub use chat::{Chat, Delta, ErrorClass, Finish, Loss, ProviderError, Reply, Usage};
pub use dialect::Dialect;
