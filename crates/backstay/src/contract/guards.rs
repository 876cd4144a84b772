//! Settles what is looked for in the reply: what the route says, unless the caller turns it off.

use backstay_decide::Local;
use backstay_wire::scan::Scanned;
use jsonmend::Several;

use super::{Ask, shape, wants_several};
use crate::fault::CallError;
use crate::policy::{EarlyStop, GuardPolicy, Route};
use crate::validate::{Checks, Shape};

/// The caller's word.
const HEADER: &str = "x-backstay-guards";

/// The guards of a call.
///
/// # Errors
/// The caller says something else than `off`.
pub(super) fn settle(
    head: &Scanned,
    ask: &Ask,
    route: &Route,
    checks: &Checks,
) -> Result<GuardPolicy, CallError> {
    match ask.headers.get(HEADER) {
        None => {
            let early_stop = early_stop(head, ask, route, checks);
            Ok(GuardPolicy { early_stop, ..route.guards })
        }
        Some(word) if word.as_bytes().trim_ascii().eq_ignore_ascii_case(b"off") => {
            Ok(GuardPolicy::OFF)
        }
        Some(_) => {
            let note = format!("`{HEADER}` may only be `off`; leave it out for the route's guards");
            Err(CallError::local(Local::InvalidRequest, note).blaming(HEADER))
        }
    }
}

/// Whether the first value may be the whole answer: the route says so, and one value is all that is asked
/// for.
fn early_stop(head: &Scanned, ask: &Ask, route: &Route, checks: &Checks) -> EarlyStop {
    let stops = route.guards.early_stop == EarlyStop::BehindValue
        && matches!(checks.shape, Shape::Json | Shape::Schema(_))
        && matches!(checks.mending.syntax.policy.several, Several::Only | Several::First)
        && !shape::offers_tools(head, ask)
        && !wants_several(head, ask);
    if stops { EarlyStop::BehindValue } else { EarlyStop::Never }
}
