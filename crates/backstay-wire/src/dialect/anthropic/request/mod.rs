//! Requests, both ways.
//!
//! Tool results stand inside user messages here and are turns of their own in the neutral form.
//! What has no neutral place is kept for the same dialect: top-level fields in
//! [`crate::Chat::extra`] under their name (server tools under `tools`, the rest of
//! `output_config` and of `metadata` under theirs), further fields of a block, such as
//! `cache_control`, in a [`crate::chat::Part::Other`] behind it.
//!
//! What another dialect says and this one cannot is a [`crate::Loss`] each. The order of turns is
//! made to fit: turns of one role are joined, tool results stand first in their user message, and
//! the first message is the user's.

mod read;
mod turns;
mod write;

pub(crate) use read::read;
pub(crate) use write::write;
