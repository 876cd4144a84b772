//! Settles what is looked for in the reply: what the route says, unless the caller turns it off.

use backstay_decide::Local;

use super::Ask;
use crate::fault::CallError;
use crate::policy::{GuardPolicy, Route};

/// The caller's word.
const HEADER: &str = "x-backstay-guards";

/// The guards of a call.
///
/// # Errors
/// The caller says something else than `off`.
pub(super) fn settle(ask: &Ask, route: &Route) -> Result<GuardPolicy, CallError> {
    match ask.headers.get(HEADER) {
        None => Ok(route.guards),
        Some(word) if word.as_bytes().trim_ascii().eq_ignore_ascii_case(b"off") => {
            Ok(GuardPolicy::OFF)
        }
        Some(_) => {
            let note = format!("`{HEADER}` may only be `off`; leave it out for the route's guards");
            Err(CallError::local(Local::InvalidRequest, note).blaming(HEADER))
        }
    }
}
