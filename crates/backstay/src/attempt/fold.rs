//! Reads a stream to its end, or to its first content.

use backstay_decide::fault::Fault;
use backstay_wire::chat::{Fold, FoldEnd, Terminator};
use backstay_wire::{Delta, Finish, Reply};

use super::stream::{Opened, Piece};
use super::{Failure, Got, classify};

/// The whole reply a stream adds up to.
///
/// A stream is whole only with a known finish and the protocol's end, or the body's clean end, or
/// silence: a provider that holds the stream after its finish has said all of the reply.
pub(super) async fn whole(opened: &mut Opened) -> Result<Reply, Failure> {
    let mut fold = Fold::default();
    loop {
        let piece = match opened.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(failure) if is_silence(failure.fault) && is_finished(&fold) => break,
            Err(failure) => return Err(failure),
        };
        for delta in &piece.deltas {
            fold.push(delta);
        }
        if fold.end_seen() || fold.error_seen().is_some() || fold.fault().is_some() {
            break;
        }
    }
    match fold.outcome() {
        FoldEnd::Whole { terminator: Terminator::Seen | Terminator::Missing } => {
            Ok(fold.into_reply())
        }
        FoldEnd::NoFinish if fold.finish_seen().is_some() => Ok(fold.into_reply()),
        FoldEnd::NoFinish => {
            Err(Failure::new(Fault::StreamCut, "the stream ended without a finish reason"))
        }
        FoldEnd::NoEnd => Err(Failure::new(Fault::StreamCut, "the stream ended before its end")),
        FoldEnd::Failed(error) => Err(classify::in_stream(error)),
        FoldEnd::TooLarge(fault) => Err(Failure::new(Fault::MalformedReply, fault.to_string())),
    }
}

/// Whether a fault is a wait that took too long.
fn is_silence(fault: Fault) -> bool {
    matches!(fault, Fault::Stalled | Fault::TotalTimeout)
}

/// Whether the model has said why it stopped, in a word that is known.
fn is_finished(fold: &Fold) -> bool {
    fold.finish_seen().is_some_and(|finish| finish != Finish::Unknown)
}

/// Most bytes kept at the gate. What comes before the first content is a head, pings and at most
/// a server tool's results: some 100 KB.
const MAX_HELD: usize = 1 << 20;

/// Reads on until there is content to release, and keeps all that was read for the caller.
pub(super) async fn gate(mut opened: Box<Opened>) -> Result<Got, Failure> {
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
        }
    }
}

enum Sign {
    /// Nothing to show yet.
    Wait,
    /// Content: let it go.
    Release,
    /// The model refuses.
    Refusal,
}

/// What `piece` means at the gate.
fn sign(piece: &Piece) -> Result<Sign, Failure> {
    for delta in &piece.deltas {
        match delta {
            Delta::Refusal(_) => return Ok(Sign::Refusal),
            Delta::Error(error) => return Err(classify::in_stream(error.clone())),
            Delta::Finish { finish, word } => return finished(*finish, word.as_deref()),
            Delta::End => {
                return Err(Failure::new(Fault::StreamCut, "the stream ended before any content"));
            }
            // Another choice may have content of its own; it must not be held up for the first.
            Delta::OtherChoice => return Ok(Sign::Release),
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
