//! Reads a stream to its end, or to its first content.

use backstay_decide::fault::Fault;
use backstay_wire::chat::{Fold, FoldEnd, Terminator};
use backstay_wire::{Delta, Finish, Reply};

use super::stream::{Opened, Piece, Told, Waiting};
use super::{Failure, Got, Seen, classify};
use crate::route::Going;

/// The whole reply of so many choices that a stream adds up to.
///
/// A stream is whole only with a known finish and the protocol's end, or the body's clean end, or
/// silence: a provider that holds the stream after its finish has said all of the reply.
pub(super) async fn whole(opened: &mut Opened, choices: usize) -> Result<Reply, Failure> {
    let mut fold = Fold::default();
    loop {
        let piece = match opened.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(failure) if is_silence(failure.fault) && is_finished(&fold, choices) => {
                break;
            }
            Err(failure) => return Err(failure),
        };
        for delta in &piece.deltas {
            fold.push(delta);
        }
        if fold.end_seen() || fold.error_seen().is_some() || fold.fault().is_some() {
            break;
        }
    }
    ended(fold, choices)
}

/// The reply of so many choices that `fold` adds up to, now that no more comes. The provider may
/// say that fewer are all; without its word one that is not there was cut.
pub(super) fn ended(fold: Fold, choices: usize) -> Result<Reply, Failure> {
    match fold.outcome() {
        FoldEnd::Whole { terminator: Terminator::Missing } if !is_finished(&fold, choices) => {
            Err(Failure::new(Fault::StreamCut, "the stream ended before its last choice"))
        }
        FoldEnd::Whole { terminator: Terminator::Seen | Terminator::Missing } => {
            Ok(fold.into_reply())
        }
        FoldEnd::NoFinish if fold.finishes().all(|finish| finish.is_some()) => {
            Ok(fold.into_reply())
        }
        FoldEnd::NoFinish => {
            Err(Failure::new(Fault::StreamCut, "the stream ended without a finish reason"))
        }
        FoldEnd::NoEnd => Err(Failure::new(Fault::StreamCut, "the stream ended before its end")),
        FoldEnd::Failed(error) => Err(classify::in_stream(error)),
        FoldEnd::TooLarge(fault) => Err(Failure::new(Fault::MalformedReply, fault.to_string())),
    }
}

/// Whether a fault is a wait that took too long.
pub(super) fn is_silence(fault: Fault) -> bool {
    matches!(fault, Fault::Stalled | Fault::TotalTimeout)
}

/// Whether the model has said why it stopped, in a word that is known, for each of
/// so many choices.
fn is_finished(fold: &Fold, choices: usize) -> bool {
    fold.finishes().count() >= choices && fold.is_finished()
}

/// Most bytes kept at the gate. What comes before the first content is a head, pings and at most
/// a server tool's results: some 100 KB.
const MAX_HELD: usize = 1 << 20;

/// Reads on until there is content to release, and keeps all that was read for the caller.
///
/// A tool call is content that has to be whole: a stream that begins with one is read to its end,
/// and judged like any whole reply.
pub(super) async fn gate(
    mut opened: Box<Opened>,
    told: Told,
    seen: &mut Seen,
) -> Result<Got, Failure> {
    let mut held = 0;
    loop {
        let Some(piece) = opened.read_on().await? else {
            return Err(Failure::new(Fault::StreamCut, "the stream ended before any content"));
        };
        let sign = sign(&piece)?;
        // A piece costs more than its bytes, so that empty ones are bounded too.
        held += piece.raw.len() + size_of::<Piece>();
        opened.hold(piece);
        match sign {
            Sign::Wait if held > MAX_HELD => {
                let note = format!("no content in the first {MAX_HELD} bytes of the stream");
                return Err(Failure::new(Fault::MalformedReply, note));
            }
            Sign::Wait => {}
            Sign::Release => return Ok(Got::Live(opened)),
            Sign::Refusal => return Ok(Got::LiveRefusal(opened)),
            Sign::Call => return called(opened, told, seen).await,
        }
    }
}

/// Reads a stream to its end whose first content is a tool call, or to its first text that need
/// not wait for it.
async fn called(mut opened: Box<Opened>, told: Told, seen: &mut Seen) -> Result<Got, Failure> {
    seen.armed.held.goes(Going::Folded);
    let mut calls = Waiting::new(told.caller);
    for piece in opened.take_held() {
        calls.push(piece)?;
    }
    while !calls.is_over() {
        let piece = match opened.read_on().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(failure) if is_silence(failure.fault) && calls.is_finished() => break,
            Err(failure) => return Err(failure),
        };
        if calls.takes(&piece) || piece.deltas.is_empty() {
            calls.push(piece)?;
            continue;
        }
        for piece in calls.into_pieces() {
            opened.hold(piece);
        }
        opened.hold(piece);
        seen.armed.held.goes(Going::Released);
        return Ok(Got::Live(opened));
    }
    (seen.first_token, seen.gaps) = (opened.first_token(), opened.gaps());
    let whole = calls.over()?.whole(opened.dialect(), told)?;
    Ok(Got::Whole(Box::new(whole)))
}

enum Sign {
    /// Nothing to show yet.
    Wait,
    /// Content: let it go.
    Release,
    /// The model refuses.
    Refusal,
    /// A tool call begins.
    Call,
}

/// What `piece` means at the gate.
fn sign(piece: &Piece) -> Result<Sign, Failure> {
    if piece.deltas.iter().any(Delta::is_call) {
        return Ok(Sign::Call);
    }
    for delta in &piece.deltas {
        match delta {
            Delta::Refusal(_) => return Ok(Sign::Refusal),
            Delta::Error(error) => return Err(classify::in_stream(error.clone())),
            Delta::Finish { finish, word } => return finished(*finish, word.as_deref()),
            Delta::End => {
                return Err(Failure::new(Fault::StreamCut, "the stream ended before any content"));
            }
            Delta::OtherChoice { delta, .. }
                if let Delta::Finish { finish: Finish::Unknown, word } = delta.as_ref() =>
            {
                return finished(Finish::Unknown, word.as_deref());
            }
            // Also of another choice: it must not be held up for the first.
            delta if delta.is_content() => return Ok(Sign::Release),
            _ => {}
        }
    }
    Ok(Sign::Wait)
}

/// A stream that finishes before any content.
fn finished(finish: Finish, word: Option<&str>) -> Result<Sign, Failure> {
    let word = word.unwrap_or("none");
    let (fault, note) = match finish {
        Finish::Refused => return Ok(Sign::Refusal),
        // A cut or paused turn without text is still the caller's to see.
        Finish::Truncated | Finish::Paused | Finish::ToolUse => return Ok(Sign::Release),
        Finish::Complete => (Fault::Empty, "the stream finished without any content".to_owned()),
        Finish::ContentFiltered => {
            (Fault::ContentFiltered, "the provider's filter stopped the reply".to_owned())
        }
        Finish::ContextExceeded => {
            (Fault::ContextExceeded, "the context window was full".to_owned())
        }
        Finish::Unknown => (Fault::UnknownFinish, format!("finish reason `{word}` is not known")),
    };
    Err(Failure::new(fault, note))
}
