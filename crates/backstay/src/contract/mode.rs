//! Settles how a stream is handed on: the caller's word, the route's, or what the checks demand.

use backstay_decide::Local;
use backstay_wire::scan::Scanned;

use super::{Ask, Wants, shape};
use crate::fault::CallError;
use crate::policy::{Route, StreamMode};
use crate::validate::{Checks, Shape};

/// The caller's word for the mode.
const HEADER: &str = "x-backstay-stream";

/// The mode of a call. What is checked may not be shown sooner than its route allows, and of several
/// answers at once (`n`) a stream is watched for its ends only, so what has to be checked in each is
/// buffered.
///
/// # Errors
/// The caller asks for a mode that there is not, or for one that would let out what is to be checked.
pub(super) fn settle(
    head: &Scanned,
    ask: &Ask,
    (wants, several): (Wants, bool),
    route: &Route,
    checks: &Checks,
) -> Result<StreamMode, CallError> {
    let is_json = !matches!(checks.shape, Shape::Text);
    let in_each = several && (is_json || shape::offers_tools(head, ask));
    let is_checked = is_json || !checks.rules.is_empty() || in_each;
    let usual = match route.stream {
        _ if in_each => StreamMode::Buffered,
        Some(mode) => mode,
        None if is_json => StreamMode::Buffered,
        None => StreamMode::Gate,
    };
    if wants == Wants::Whole {
        return Ok(usual);
    }
    match asked(ask)? {
        Some(mode) if is_checked && mode < usual => Err(refused(format!(
            "`{HEADER}: {}` would hand on what is to be checked first (a schema, rules, or tools in \
             several answers); here it may be {}",
            mode.name(),
            named(usual)
        ))),
        Some(mode) => Ok(mode),
        None => Ok(usual),
    }
}

/// The mode that the caller names.
fn asked(ask: &Ask) -> Result<Option<StreamMode>, CallError> {
    let Some(word) = ask.headers.get(HEADER) else { return Ok(None) };
    let mode = word
        .to_str()
        .ok()
        .and_then(|word| StreamMode::from_name(word.trim().to_ascii_lowercase().as_str()));
    match mode {
        Some(mode) => Ok(Some(mode)),
        None => Err(refused(format!(
            "`{HEADER}` names no mode; it may be {}",
            named(StreamMode::Passthrough)
        ))),
    }
}

/// The modes that hold at least as much as `least`, for a sentence.
fn named(least: StreamMode) -> String {
    let modes = StreamMode::ALL.into_iter().filter(|mode| *mode >= least);
    modes.map(|mode| format!("`{}`", mode.name())).collect::<Vec<_>>().join(", ")
}

fn refused(note: String) -> CallError {
    CallError::local(Local::InvalidRequest, note).blaming(HEADER)
}
