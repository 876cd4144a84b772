//! Puts the fragments of streamed tool calls where they belong.
//!
//! `OpenAI` keys them by `index` and names id and function only once. Compatible servers leave the
//! index out, repeat the name, or give every call index 0. A fragment goes, in this order, to the
//! call of its index, to the call of its id, to a new call if it has a name, to the last call.

use super::super::wire::{Call, Function};
use crate::chat::Delta;
use crate::dialect::Malformed;

/// The most tool calls in one reply; real ones are under 200.
const MAX_CALLS: usize = 4_096;

/// The tool calls of one reply, in the order they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    /// Whether [`Delta::ToolStart`] is out. It waits for the name.
    is_started: bool,
    /// Arguments that came before the name.
    held: String,
}

impl Calls {
    /// Takes one fragment.
    pub(super) fn take(&mut self, call: &Call<'_>, out: &mut Vec<Delta>) -> Result<(), Malformed> {
        let Some(function) = &call.function else {
            if let Some(kind) = call.kind.text().filter(|kind| *kind != "function") {
                out.push(Delta::Unknown(format!(
                    "tool call: {}",
                    super::super::wire::bounded(kind)
                )));
            }
            return Ok(());
        };
        let id = call.id.text().unwrap_or_default();
        let name = function.name.text().unwrap_or_default();
        let place = self.place(call.index.whole(), id, name)?;
        self.fill(place, id, function, out);
        Ok(())
    }

    /// Takes a piece of the one call of the old `function_call` form.
    pub(super) fn take_function(
        &mut self,
        function: &Function<'_>,
        out: &mut Vec<Delta>,
    ) -> Result<(), Malformed> {
        let place = self.place(Some(0), "", function.name.text().unwrap_or_default())?;
        self.fill(place, "", function, out);
        Ok(())
    }

    /// Lets out what waits for a name that never came: the caller must see it to refuse it.
    pub(super) fn flush(&mut self, out: &mut Vec<Delta>) {
        for (place, slot) in self.slots.iter_mut().enumerate() {
            if !slot.is_started {
                slot.start(place, "", out);
            }
        }
    }

    /// Which slot a fragment belongs to; opens one if it is a new call.
    fn place(&mut self, index: Option<u64>, id: &str, name: &str) -> Result<usize, Malformed> {
        let by_index =
            index.and_then(|index| self.slots.iter().rposition(|s| s.index == Some(index)));
        let by_id = || self.slots.iter().rposition(|s| !id.is_empty() && s.id == id);
        let found = match by_index {
            // A second call under an index in use: another id, and a name of its own.
            Some(place) if self.is_other_call(place, id, name) => by_id(),
            Some(place) => Some(place),
            None if index.is_some() => None,
            None if !id.is_empty() => by_id(),
            None if name.is_empty() => self.slots.len().checked_sub(1),
            None => None,
        };
        if let Some(place) = found {
            return Ok(place);
        }
        if self.slots.len() >= MAX_CALLS {
            let note = format!("more than {MAX_CALLS} tool calls in one reply");
            return Err(Malformed::new("/choices/0/delta/tool_calls", note));
        }
        self.slots.push(Slot { index, ..Slot::default() });
        Ok(self.slots.len() - 1)
    }

    fn is_other_call(&self, place: usize, id: &str, name: &str) -> bool {
        let known = self.slots.get(place).map_or("", |slot| slot.id.as_str());
        !known.is_empty() && !id.is_empty() && known != id && !name.is_empty()
    }

    fn fill(&mut self, place: usize, id: &str, function: &Function<'_>, out: &mut Vec<Delta>) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        if slot.id.is_empty() {
            id.clone_into(&mut slot.id);
        }
        let arguments = function.arguments();
        if let Some(name) = function.name.text().filter(|_| !slot.is_started) {
            slot.start(place, name, out);
        }
        if arguments.is_empty() {
            return;
        }
        if slot.is_started {
            out.push(Delta::ToolArguments {
                index: number(place),
                fragment: arguments.into_owned(),
            });
        } else {
            slot.held.push_str(&arguments);
        }
    }
}

impl Slot {
    fn start(&mut self, place: usize, name: &str, out: &mut Vec<Delta>) {
        let index = number(place);
        out.push(Delta::ToolStart { index, id: self.id.clone(), name: name.to_owned() });
        let fragment = std::mem::take(&mut self.held);
        if !fragment.is_empty() {
            out.push(Delta::ToolArguments { index, fragment });
        }
        self.is_started = true;
    }
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
