//! Reads a stream to its end, or to its first content.

use std::time::Duration;

use backstay_decide::fault::Fault;
use backstay_decide::recover::rescue::Way;
use backstay_wire::chat::{Fold, FoldEnd, Terminator};
use backstay_wire::{Delta, Finish, Reply};

use tokio::time::{Instant, timeout_at};

use super::stop::{EarlyStop, Stopped};
use super::stream::{Opened, Piece, Told, Waiting};
use super::{Failure, Got, Seen, classify};
use crate::policy::{Pace, Tokens, Window};
use crate::route::Going;

/// The whole reply of so many choices that a stream adds up to.
///
/// A stream is whole only with a known finish and the protocol's end, or the body's clean end, or
/// silence: a provider that holds the stream after its finish has said all of the reply. One that
/// `stop` ends before is whole by that.
pub(super) async fn whole(
    opened: &mut Opened,
    choices: usize,
    mut stop: EarlyStop,
) -> Result<(Reply, Option<Stopped>), Failure> {
    let mut fold = Fold::default();
    loop {
        let piece = match read_until(opened, stop.until()).await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(Late::Fault(fault)) if is_silence(fault.fault) && is_finished(&fold, choices) => {
                break;
            }
            Err(Late::Fault(fault)) if stop.until().is_none() || !is_silence(fault.fault) => {
                return Err(fault);
            }
            Err(Late::Lead | Late::Fault(_)) => return stopped(fold, stop.silent()),
        };
        for delta in &piece.deltas {
            fold.push(delta);
            if let Some(at) = stop.takes(delta) {
                return stopped(fold, at);
            }
        }
        if fold.end_seen() || fold.error_seen().is_some() || fold.fault().is_some() {
            break;
        }
        if is_finished(&fold, choices) {
            opened.expect_end();
        }
    }
    Ok((ended(fold, choices)?, None))
}

/// The reply that `fold` adds up to, up to where it was stopped.
fn stopped(mut fold: Fold, at: Stopped) -> Result<(Reply, Option<Stopped>), Failure> {
    fold.push(&Delta::Finish { finish: Finish::Complete, word: None });
    let mut reply = ended(fold, 1)?;
    at.trim(&mut reply);
    Ok((reply, Some(at)))
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
pub(super) fn is_finished(fold: &Fold, choices: usize) -> bool {
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
        let sign = sign(&piece, told.way)?;
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
            Sign::Refusal => return Ok(refusing(opened)),
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
            if calls.is_finished() {
                opened.expect_end();
            }
            continue;
        }
        for piece in calls.into_pieces() {
            opened.hold(piece);
        }
        opened.hold(piece);
        seen.armed.held.goes(Going::Released);
        return Ok(Got::Live(opened));
    }
    seen.heard(&mut opened);
    let whole = calls.over()?.whole(opened.dialect(), told)?;
    Ok(Got::Whole(Box::new(whole)))
}

/// What of a stream has to be there before it is released.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lead {
    /// A pace, or the stream is doubtful.
    Pace(Pace),
    /// A window's worth, or what came within the window's time.
    Window(Window),
}

impl Lead {
    fn tokens(self) -> Tokens {
        match self {
            Self::Pace(pace) => pace.tokens,
            Self::Window(window) => window.tokens,
        }
    }

    /// How long is waited for it, from the first content on.
    fn time(self) -> Option<Duration> {
        match self {
            Self::Pace(pace) => Some(pace.within),
            Self::Window(window) => window.time,
        }
    }
}

/// What has been read of a stream that is not released yet.
struct Led {
    said: Waiting,
    /// When each piece came, where the lead is a window with a time.
    came: Vec<Instant>,
    refuses: bool,
}

/// Reads on until `lead` is there, or the end: a stream that is over by then is judged like any whole
/// reply, and so is one that calls a tool before that.
pub(super) async fn lead(
    mut opened: Box<Opened>,
    (told, lead): (Told, Lead),
    seen: &mut Seen,
) -> Result<Got, Failure> {
    let said = Waiting::new(told.caller).of_choices(told.choices);
    let mut led = Led { said, came: Vec::new(), refuses: false };
    let (mut text, mut is_open) = (0, false);
    while !led.said.is_over() {
        let began = opened.first_content().filter(|_| !led.said.has_call());
        let until = began.zip(lead.time()).map(|(began, time)| began + time);
        let piece = match read_until(&mut opened, until).await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(Late::Fault(fault)) if is_silence(fault.fault) && led.said.is_finished() => break,
            Err(Late::Fault(failure)) => return Err(failure),
            Err(Late::Lead) => return Ok(released(opened, (told, lead), led, Pacing::Late)),
        };
        if !is_open {
            let sign = sign(&piece, told.way)?;
            led.refuses = matches!(sign, Sign::Refusal);
            is_open = !matches!(sign, Sign::Wait);
        }
        text += piece.text_bytes();
        if matches!(lead, Lead::Window(Window { time: Some(_), .. })) {
            led.came.push(Instant::now());
        }
        led.said.push(piece)?;
        if led.said.is_finished() {
            opened.expect_end();
        }
        let is_there = text >= lead.tokens().bytes();
        if is_there && !led.said.has_call() && !led.said.is_over() {
            return Ok(released(opened, (told, lead), led, Pacing::InTime));
        }
    }
    seen.armed.held.goes(Going::Folded);
    seen.heard(&mut opened);
    let whole = led.said.over()?.whole(opened.dialect(), told)?;
    Ok(Got::Whole(Box::new(whole)))
}

/// Why no piece came.
enum Late {
    /// The stream has failed.
    Fault(Failure),
    /// What is waited for did not come in its time.
    Lead,
}

async fn read_until(opened: &mut Opened, until: Option<Instant>) -> Result<Option<Piece>, Late> {
    let read = opened.read_on();
    match until {
        None => read.await.map_err(Late::Fault),
        // A read that is given up loses nothing: what has come is in the stream.
        Some(until) => match timeout_at(until, read).await {
            Ok(read) => read.map_err(Late::Fault),
            Err(_) => Err(Late::Lead),
        },
    }
}

/// Whether the lead was there in its time.
#[derive(Clone, Copy)]
enum Pacing {
    InTime,
    Late,
}

/// A stream that may be released, as far as it goes.
fn released(mut opened: Box<Opened>, (told, lead): (Told, Lead), led: Led, pacing: Pacing) -> Got {
    for piece in led.said.into_pieces() {
        opened.hold(piece);
    }
    if let Lead::Window(window) = lead {
        opened.hold_back(window, told.choices, &led.came);
    }
    match (lead, pacing) {
        _ if led.refuses => refusing(opened),
        (Lead::Pace(pace), Pacing::Late) => {
            let (tokens, within) = (pace.tokens.0, pace.within);
            let note = format!("the stream did not bring {tokens} tokens within {within:.1?}");
            Got::Doubtful(opened, Box::new(Failure::new(Fault::TooSlow, note)))
        }
        (Lead::Pace(_), Pacing::InTime) | (Lead::Window(_), _) => Got::Live(opened),
    }
}

/// A stream that opens with a refusal.
fn refusing(opened: Box<Opened>) -> Got {
    let failure = Failure::new(Fault::Refused, "the stream opens with a refusal");
    Got::Doubtful(opened, Box::new(failure))
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
fn sign(piece: &Piece, way: Way) -> Result<Sign, Failure> {
    if piece.deltas.iter().any(Delta::is_call) {
        return Ok(Sign::Call);
    }
    for delta in &piece.deltas {
        match delta {
            Delta::Refusal(_) => return Ok(Sign::Refusal),
            Delta::Error(error) => return Err(classify::in_stream(error.clone())),
            Delta::Finish { finish, word } => return finished(*finish, word.as_deref(), way),
            Delta::End => {
                return Err(Failure::new(Fault::StreamCut, "the stream ended before any content"));
            }
            Delta::OtherChoice { delta, .. }
                if let Delta::Finish { finish: Finish::Unknown, word } = delta.as_ref() =>
            {
                return finished(Finish::Unknown, word.as_deref(), way);
            }
            // Also of another choice: it must not be held up for the first.
            delta if delta.is_content() => return Ok(Sign::Release),
            _ => {}
        }
    }
    Ok(Sign::Wait)
}

/// A stream that finishes before any content.
fn finished(finish: Finish, word: Option<&str>, way: Way) -> Result<Sign, Failure> {
    let word = word.unwrap_or("none");
    let (fault, note) = match finish {
        Finish::Refused => return Ok(Sign::Refusal),
        // A cut or paused turn without text is still the caller's to see.
        Finish::Truncated | Finish::Paused | Finish::ToolUse => return Ok(Sign::Release),
        // Nothing was missing of what it was to go on with.
        Finish::Complete if way == Way::Continue => return Ok(Sign::Release),
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
