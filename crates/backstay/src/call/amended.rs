//! Puts checked texts and arguments in the place of what a reply said.

use backstay_wire::Reply;
use backstay_wire::chat::Part;

use super::report::tally;
use super::{Call, End, LastSeen, Plan};
use crate::attempt::Whole;
use crate::record::Outcome;
use crate::validate::{Checked, Edit, NewArguments, Standing, is_json};

/// What is put in the place of what one choice says.
#[derive(Debug)]
pub(crate) struct Amended {
    /// Which choice.
    pub(super) at: usize,
    /// Its text. `None`: its own stays.
    pub(super) text: Option<String>,
    /// The arguments of its tool calls that were changed.
    pub(super) arguments: Vec<NewArguments>,
}

/// A reply that is an answer with the declared fallbacks in place.
#[derive(Debug)]
pub(crate) struct Best {
    whole: Box<Whole>,
    checked: Vec<Checked>,
    /// The target it came from.
    from: Option<usize>,
    /// What is told of its attempt.
    seen: LastSeen,
}

impl Best {
    /// How many values are not the model's.
    fn changed(&self) -> usize {
        changed(&self.checked)
    }
}

/// How many values of a reply are not the model's.
fn changed(checked: &[Checked]) -> usize {
    let edits = checked.iter().flat_map(|checked| &checked.edits);
    edits.filter(|edit| edit.kind.class() == "fallback").count()
}

impl Call {
    /// Keeps a reply that failed a check, if declared fallbacks make an answer of it and it needs
    /// fewer of them than the best so far.
    pub(super) fn keep_best(&mut self, whole: &Whole) {
        let Some(checked) = self.with_fallbacks(whole) else { return };
        if self.best.as_ref().is_some_and(|known| known.changed() <= changed(&checked)) {
            return;
        }
        let whole = Box::new(whole.clone());
        let (from, seen) = (self.current, self.seen.clone());
        self.best = Some(Box::new(Best { whole, checked, from, seen }));
    }

    /// Ends the call with the best reply and its fallbacks.
    pub(super) fn falls_back(&mut self) {
        let Some(best) = self.best.take() else { return };
        (self.current, self.seen) = (best.from, best.seen);
        self.passes(best.whole, best.checked);
    }

    /// Ends the call with a reply that passed, as it is or amended.
    pub(super) fn passes(&mut self, whole: Box<Whole>, checked: Vec<Checked>) {
        let standing = checked.iter().map(Checked::standing).max();
        let outcome = match standing.unwrap_or(Standing::AsItCame) {
            Standing::AsItCame => Outcome::Answered,
            Standing::Mended => Outcome::Mended,
            Standing::Flagged => Outcome::Flagged,
            Standing::Partial => Outcome::Partial,
            Standing::Fallback => Outcome::Fallback,
        };
        let amended = self.amended(checked);
        self.tell_unchecked(&whole);
        self.count_edits();
        self.end = Some(End::Reply(whole, outcome, amended));
        self.plan = Plan::Over;
    }

    /// Says which tools' arguments could only be held to be objects.
    fn tell_unchecked(&mut self, whole: &Whole) {
        let parts = whole.reply.choices.iter().flat_map(|choice| &choice.parts);
        for part in parts {
            let Part::ToolCall { name, .. } = part else { continue };
            let Some(note) = self.contract.unchecked(name) else { continue };
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Counts the edits: a shift in their number is the first sign that a provider changed.
    pub(super) fn count_edits(&self) {
        let Some(stop) = self.stop() else { return };
        let model = stop.target.model.as_deref().unwrap_or_default();
        for (kind, count) in tally(&self.edits) {
            self.engine.metrics().edited(kind, count, &stop.target.id, model);
        }
    }

    /// Takes the edits of every choice down, and keeps what is told in the place of its own words.
    pub(super) fn amended(&mut self, checked: Vec<Checked>) -> Vec<Amended> {
        let mut amended = Vec::new();
        for (at, checked) in checked.into_iter().enumerate() {
            let is_changed = checked.edits.iter().any(|edit| edit.tool.is_none());
            let text = is_changed.then_some(checked.text);
            if text.is_some() || !checked.arguments.is_empty() {
                amended.push(Amended { at, text, arguments: checked.arguments });
            }
            self.edits.extend(checked.edits.into_iter().map(|edit| Edit { choice: at, ..edit }));
        }
        amended
    }
}

/// The reply with what was amended in it.
pub(super) fn amend(reply: &mut Reply, amended: Vec<Amended>) {
    for Amended { at, text, arguments } in amended {
        let Some(choice) = reply.choices.get_mut(at) else { continue };
        for new in arguments {
            if let Some(Part::ToolCall { arguments, .. }) = choice.parts.get_mut(new.part) {
                *arguments = new.text;
            }
        }
        let Some(text) = text else { continue };
        let is_text = |part: &Part| matches!(part, Part::Text(_));
        let at = choice.parts.iter().position(is_text).unwrap_or(0);
        choice.parts.retain(|part| !is_text(part));
        choice.parts.insert(at.min(choice.parts.len()), Part::Text(text));
    }
}

/// Whether a reply calls a tool with arguments that are no JSON, as half a call has.
pub(super) fn has_cut_call(reply: &Reply) -> bool {
    let cut = |part: &Part| match part {
        Part::ToolCall { arguments, .. } => !is_json(arguments),
        _ => false,
    };
    let mut choices = reply.choices.iter();
    choices.any(|choice| choice.parts.iter().any(cut))
}
