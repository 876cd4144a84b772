//! Puts a fault into a stream of events, or into the plain body where no stream was asked for.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use http::header::CONTENT_LENGTH;

use crate::ask::Dialect;
use crate::behaviour::Snag;
use crate::dialect::{Tag, anthropic, errors, openai};
use crate::order::Params;
use crate::plan::{HTML, Reply, Scene};
use crate::reel::{Length, SETTLE, Step};
use crate::said::{Finish, Said};
use crate::strip::{Event, Part};

/// Default gap between keep-alives.
const KEEPALIVE: Duration = Duration::from_millis(50);

/// The events in order, with `gap` before each piece of content.
pub(crate) fn paced(events: Vec<Event>, gap: Duration) -> Vec<Step> {
    let mut steps = Vec::with_capacity(events.len() * (1 + usize::from(!gap.is_zero())));
    let mut first = true;
    for event in events {
        if event.part == Part::Content && !gap.is_zero() && !std::mem::take(&mut first) {
            steps.push(Step::Wait(gap));
        }
        steps.push(Step::Send(event.bytes));
    }
    steps
}

/// The steps of a stream with one fault.
pub(crate) fn steps(
    fault: Snag,
    mut events: Vec<Event>,
    params: &Params,
    dialect: Dialect,
    tag: Tag,
) -> Vec<Step> {
    let strike = strike(&events, params);
    let end = match fault {
        Snag::Cut => vec![Step::Wait(SETTLE), Step::Cut],
        Snag::Stall => vec![Step::Wait(params.hold()), Step::Cut],
        Snag::EndEarly | Snag::ErrorEvent | Snag::KeepaliveForever => Vec::new(),
        _ => return paced_or_split(fault, edited(fault, events, strike), params),
    };
    if fault == Snag::KeepaliveForever {
        return keepalives(&events, params, dialect);
    }
    events.truncate(strike);
    if fault == Snag::ErrorEvent {
        events.push(error_event(dialect, tag));
    }
    let mut steps = paced(events, params.gap);
    steps.extend(end);
    steps
}

/// How many events come before the fault: those up to the `at`th piece of content.
fn strike(events: &[Event], params: &Params) -> usize {
    let contents = events.iter().filter(|e| e.part == Part::Content).count();
    let at = params.at.unwrap_or(contents / 2).min(contents);
    let content = |e: &(usize, &Event)| e.1.part == Part::Content;
    match at.checked_sub(1) {
        Some(last) => events.iter().enumerate().filter(content).nth(last).map_or(0, |(i, _)| i + 1),
        None => events.iter().position(|e| e.part == Part::Content).unwrap_or(0),
    }
}

/// The faults that change single events.
fn edited(fault: Snag, mut events: Vec<Event>, strike: usize) -> Vec<Event> {
    match fault {
        Snag::MalformedChunk => {
            if let Some(event) = events.iter_mut().skip(strike).find(|e| e.part == Part::Content) {
                event.bytes = malformed(&event.bytes);
            }
        }
        Snag::NoDone | Snag::HeldOpen => events.retain(|e| e.part != Part::Done),
        Snag::NoFinish => events.retain(|e| e.part != Part::Finish),
        Snag::DoubleTerminal => {
            events.extend(events.iter().find(|e| e.part == Part::Done).cloned());
        }
        Snag::ContentAfterFinish => {
            let content = events.iter().rfind(|e| e.part == Part::Content).cloned();
            let after = events.iter().position(|e| e.part == Part::Finish).map_or(0, |at| at + 1);
            if let Some(content) = content {
                events.insert(after, content);
            }
        }
        Snag::Crlf => {
            for event in &mut events {
                event.bytes = crlf(&event.bytes);
            }
        }
        _ => {}
    }
    events
}

/// Half of an event's JSON, framed as an event.
fn malformed(event: &Bytes) -> Bytes {
    let mut half = BytesMut::from(event.get(..event.len() * 2 / 3).unwrap_or(event));
    while half.last().is_some_and(|b| !b.is_ascii()) {
        half.truncate(half.len() - 1);
    }
    half.extend_from_slice(b"\n\n");
    half.freeze()
}

fn crlf(event: &Bytes) -> Bytes {
    let mut bytes = BytesMut::with_capacity(event.len() + 8);
    for byte in event {
        if *byte == b'\n' {
            bytes.extend_from_slice(b"\r");
        }
        bytes.extend_from_slice(&[*byte]);
    }
    bytes.freeze()
}

fn paced_or_split(fault: Snag, events: Vec<Event>, params: &Params) -> Vec<Step> {
    let steps = paced(events, params.gap);
    match fault {
        Snag::ByteDrip => steps.into_iter().map(drip).collect(),
        Snag::SplitUtf8 => steps.into_iter().map(split).collect(),
        Snag::HeldOpen => {
            let mut steps = steps;
            steps.extend([Step::Wait(params.hold()), Step::Cut]);
            steps
        }
        _ => steps,
    }
}

fn drip(step: Step) -> Step {
    match step {
        Step::Send(bytes) => Step::Drip(bytes),
        other => other,
    }
}

/// Ends a write inside every character of several bytes; without one, in the middle.
fn split(step: Step) -> Step {
    let Step::Send(bytes) = step else { return step };
    let mut ends: Vec<usize> = bytes
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| matches!(pair, [first, second] if *first >= 0xc0 && *second >= 0x80))
        .map(|(at, _)| at + 1)
        .collect();
    if ends.is_empty() {
        ends.push(bytes.len() / 2);
    }
    Step::Split(bytes, ends)
}

fn keepalives(events: &[Event], params: &Params, dialect: Dialect) -> Vec<Step> {
    let gap = if params.gap.is_zero() { KEEPALIVE } else { params.gap };
    let rounds = params.hold().as_millis() / gap.as_millis().max(1);
    let times = u32::try_from(rounds).unwrap_or(u32::MAX);
    let event = match dialect {
        Dialect::OpenAi => openai::COMMENT,
        Dialect::Anthropic => anthropic::PING,
    };
    // Anthropic's pings stand inside a message; OpenAI's comments come before anything else.
    let opening = (dialect == Dialect::Anthropic).then(|| events.first()).flatten();
    let mut steps: Vec<Step> = opening.map(|e| Step::Send(e.bytes.clone())).into_iter().collect();
    let event = Bytes::from_static(event.as_bytes());
    steps.push(Step::Repeat { event, gap, times });
    steps.push(Step::Cut);
    steps
}

fn error_event(dialect: Dialect, tag: Tag) -> Event {
    let error = errors::late(dialect, tag);
    let text = match dialect {
        Dialect::OpenAi => format!("data: {error}\n\n"),
        Dialect::Anthropic => format!("event: error\ndata: {error}\n\n"),
    };
    Event { part: Part::Error, bytes: Bytes::from(text) }
}

/// The same fault where no stream was asked for. Faults that only a stream can have leave the
/// reply healthy.
pub(crate) fn plain(
    fault: Snag,
    scene: Scene<'_>,
    mut said: Said,
    whole: fn(Scene<'_>, Said) -> Reply,
) -> Reply {
    let (dialect, tag) = (scene.ask.dialect(), scene.tag);
    said.respect(scene.ask.max_tokens);
    if fault == Snag::NoFinish {
        said.finish = Finish::Null;
    }
    let mut reply = whole(scene, said);
    match fault {
        Snag::Cut | Snag::Stall => {
            claim(&mut reply);
            halve(&mut reply.steps);
            let pause = if fault == Snag::Cut { SETTLE } else { scene.order.params.hold() };
            reply.steps.extend([Step::Wait(pause), Step::Cut]);
        }
        Snag::EndEarly | Snag::MalformedChunk => {
            reply.length = Length::Open;
            halve(&mut reply.steps);
        }
        Snag::ErrorEvent => {
            let body = Bytes::from(errors::late(dialect, tag).to_string());
            return Reply::plain(200, body, crate::plan::JSON).named(dialect, tag);
        }
        Snag::PageStream => {
            let page = Bytes::from_static(errors::PAGE_200.as_bytes());
            return Reply::plain(200, page, HTML).named(dialect, tag);
        }
        Snag::KeepaliveForever => {
            // Blank lines before a JSON body are legal, and some routers send them.
            reply.length = Length::Open;
            reply.steps = keepalives(&[], &scene.order.params, Dialect::OpenAi);
            for step in &mut reply.steps {
                if let Step::Repeat { event, .. } = step {
                    *event = Bytes::from_static(b"\n");
                }
            }
        }
        Snag::ByteDrip => reply.steps = reply.steps.into_iter().map(drip).collect(),
        Snag::SplitUtf8 => reply.steps = reply.steps.into_iter().map(split).collect(),
        _ => {}
    }
    reply
}

/// Claims the body's true length in the head, so that what is missing can be seen.
fn claim(reply: &mut Reply) {
    if let Length::Exact(bytes) = reply.length {
        reply.headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
        reply.length = Length::Open;
    }
}

/// Keeps the first half: of the steps, or of the one step there is.
pub(crate) fn halve(steps: &mut Vec<Step>) {
    if let [Step::Send(bytes)] = steps.as_mut_slice() {
        bytes.truncate(bytes.len() / 2);
        return;
    }
    steps.truncate(steps.len() / 2);
}
