//! How much time an attempt has: the route's timers at its target, cut to what is left of the call.

use std::time::Duration;

use backstay_decide::Moment;
use backstay_decide::latency::{Derived, Known, PromptSize};
use backstay_decide::timers::{Room, Start, Timers, TooLate, Tried};

use super::Stop;
use crate::call::Call;
use crate::policy::Provider;

/// What an attempt has to leave room for, with so many live tiers untried.
pub(super) fn room(call: &Call, untried: u32, now: Moment) -> Room {
    Room {
        left: now.until(call.contract.models_until()),
        deadline: call.contract.deadline.total,
        untried,
        start: Start::Cold,
        min_attempt: call.contract.min_attempt(),
    }
}

/// Whether an attempt that starts after `wait` at a target of which that is known can be done in
/// time.
///
/// # Errors
/// It cannot, with its numbers.
pub(super) fn in_time(
    call: &Call,
    room: Room,
    wait: Duration,
    known: &Known,
) -> Result<(), TooLate> {
    let usual =
        if call.contract.is_released() { known.usual_first_token } else { known.usual_whole };
    let tried = if call.attempts == 0 { Tried::Nothing } else { Tried::Something };
    room.admits(wait, usual, tried)
}

/// The route's timers at the target numbered `index`, of which that is known, cut to `room`; and before
/// that.
///
/// # Errors
/// The attempt cannot be done in time, with its numbers.
pub(super) fn cut(
    call: &Call,
    index: usize,
    room: Room,
    known: &Known,
) -> Result<(Timers, Derived), TooLate> {
    in_time(call, room, Duration::ZERO, known)?;
    let provider = call.stops.get(index).map(|stop| &stop.target.provider);
    let connect = provider.map_or(Provider::CONNECT, |provider| provider.connect);
    let uncut = call.contract.route.timeouts.derive(connect, known, cap(call));
    let start = if known.first_token.is_some() { Start::Warm } else { Start::Cold };
    let Room { left, min_attempt, .. } = room;
    let timers = uncut.timers.cut(Room { start, ..room });
    let short = TooLate::Short { left, wait: Duration::ZERO, min_attempt };
    Ok((timers.ok_or(short)?, uncut))
}

/// Whether the target the call is at is too slow for another attempt after a wait of `wait`.
pub(super) fn late_after(call: &Call, wait: Duration, now: Moment) -> Option<(usize, TooLate)> {
    let index = call.current?;
    let stop = call.stops.get(index)?;
    let known = stop.health.known(PromptSize::of(size(call, stop)), now);
    let late = in_time(call, room(call, 0, now), wait, &known).err()?;
    matches!(late, TooLate::Slow { .. }).then_some((index, late))
}

/// The output cap of an attempt.
pub(super) fn cap(call: &Call) -> Option<u64> {
    call.cap.or(call.contract.cap.tokens)
}

/// Bytes of the request for `stop`.
pub(super) fn size(call: &Call, stop: &Stop) -> u64 {
    call.contract.ask.body.len() as u64 + stop.added.bytes
}
