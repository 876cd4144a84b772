//! Takes the lowering of a request back on its reply, before anything looks at it.

use std::sync::Arc;

use backstay_wire::chat::{Choice, Part};
use backstay_wire::lower::{Event, Lowering};
use jsonmend::{Mender, Policy, Status};

use super::Whole;
use super::adapter::Lowerings;

/// The reply in the form of the source schemas, and how many things were undone of each kind, in the
/// order met. A text that is not strict JSON, or has not the lowered form, stays as it is.
pub(crate) fn raise(whole: &mut Whole, lowerings: &Lowerings) -> Vec<(&'static str, usize)> {
    let mut events = Vec::new();
    if !lowerings.act() {
        return Vec::new();
    }
    for choice in &mut whole.reply.choices {
        events.extend(choice_events(choice, lowerings));
    }
    if !events.is_empty() {
        // The provider's bytes say something else now.
        whole.raw = None;
    }
    counted(&events)
}

fn choice_events(choice: &mut Choice, lowerings: &Lowerings) -> Vec<Event> {
    let mut events = Vec::new();
    let answer = lowerings.answer.as_ref().filter(|_| !choice.calls_tools());
    if let Some((text, found)) = answer.and_then(|lowering| undone(lowering, &choice.text())) {
        let at = choice.parts.iter().position(|part| matches!(part, Part::Text(_)));
        choice.parts.retain(|part| !matches!(part, Part::Text(_)));
        let at = at.unwrap_or(0).min(choice.parts.len());
        choice.parts.insert(at, Part::Text(text));
        events.extend(found);
    }
    for part in &mut choice.parts {
        let Part::ToolCall { name, arguments, .. } = part else { continue };
        let lowering = lowerings.tool(name);
        if let Some((text, found)) = lowering.and_then(|lowering| undone(lowering, arguments)) {
            *arguments = text;
            events.extend(found);
        }
    }
    events
}

fn undone(lowering: &Arc<Lowering>, text: &str) -> Option<(String, Vec<Event>)> {
    let outcome = Mender::new(Policy::strict()).mend(text, Status::Stopped);
    let root = outcome.document()?.root(text)?;
    let undone = lowering.undo(root).ok()??;
    Some((undone.text, undone.events))
}

fn counted(events: &[Event]) -> Vec<(&'static str, usize)> {
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for event in events {
        let name = event.kind.name();
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts
}
