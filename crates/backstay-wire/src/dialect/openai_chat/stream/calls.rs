//! Puts the fragments of streamed tool calls where they belong.
//!
//! `OpenAI` keys them by `index` and names id and function only once. Compatible servers leave the
//! index out, repeat the name, or give every call index 0. A fragment goes, in this order, to the
//! call of its index (of several, to the one of its id, else to the newest), to the call of its
//! id, to a new call if it has a name, to the last call. Where a name differs from the one that is
//! known, the call before must be whole for this to be another one; else nobody can tell which of
//! the two is meant, and the stream is refused.
//!
//! That all arguments so far, or the whole ones, come again shows only in the end: `Fold` sees it.

use super::super::wire::{Call, Function, bounded};
use crate::chat::{Delta, Quirk};
use crate::dialect::Malformed;
use crate::dialect::whole::Json;

/// The most tool calls in one reply; real ones are under 200.
const MAX_CALLS: usize = 4_096;

/// The most bytes of arguments that wait for a name; real names come first.
const MAX_NAMELESS: usize = 1 << 20;

/// The tool calls of one reply, in the order they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
    /// Kinds told already.
    quirks: Vec<Quirk>,
    /// Bytes of arguments that wait for a name.
    nameless: usize,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    /// Empty until it is known; then [`Delta::ToolStart`] is out.
    name: String,
    is_started: bool,
    /// Arguments that came before the name.
    held: Vec<String>,
    /// Whether the arguments are whole.
    arguments: Json,
}

impl Calls {
    /// Takes the fragments of one event.
    pub(super) fn take(
        &mut self,
        calls: &[Call<'_>],
        out: &mut Vec<Delta>,
    ) -> Result<(), Malformed> {
        let mut places = Vec::new();
        for call in calls {
            let Some(function) = &call.function else {
                if let Some(kind) = call.kind.text().filter(|kind| *kind != "function") {
                    out.push(Delta::Unknown(format!("tool call: {}", bounded(kind))));
                }
                continue;
            };
            let index = call.index.whole();
            if index.is_none() {
                self.odd(Quirk::IndexMissing, out);
            }
            let id = call.id.text().unwrap_or_default();
            let place = self.place(index, id, function.name.text().unwrap_or_default(), out)?;
            self.fill(place, id, function, out)?;
            if calls.len() > 1 {
                if places.contains(&place) {
                    self.odd(Quirk::CallSplit, out);
                }
                places.push(place);
            }
        }
        Ok(())
    }

    /// Takes a piece of the one call of the old `function_call` form.
    pub(super) fn take_function(
        &mut self,
        function: &Function<'_>,
        out: &mut Vec<Delta>,
    ) -> Result<(), Malformed> {
        let place = self.place(Some(0), "", function.name.text().unwrap_or_default(), out)?;
        self.fill(place, "", function, out)
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
    fn place(
        &mut self,
        index: Option<u64>,
        id: &str,
        name: &str,
        out: &mut Vec<Delta>,
    ) -> Result<usize, Malformed> {
        let found = match index {
            Some(index) => self.of_index(index, id),
            None => self.without_index(id, name),
        };
        if let Some(place) = found
            && !self.is_other_call(place, id, name)?
        {
            return Ok(place);
        }
        if found.is_some() && index.is_some() {
            self.odd(Quirk::IndexShared, out);
        }
        if self.slots.len() >= MAX_CALLS {
            return Err(fault(format!("more than {MAX_CALLS} tool calls in one reply")));
        }
        self.slots.push(Slot { index, ..Slot::default() });
        Ok(self.slots.len() - 1)
    }

    /// The call of this index: of several the one of this id, else the newest.
    fn of_index(&self, index: u64, id: &str) -> Option<usize> {
        let newest = |slot: &Slot| slot.index == Some(index);
        let named = |slot: &Slot| newest(slot) && !id.is_empty() && slot.id == id;
        self.slots.iter().rposition(named).or_else(|| self.slots.iter().rposition(newest))
    }

    /// The call of this id. Without one, a fragment belongs to the last call, unless it has a name
    /// and that call is whole or another's.
    fn without_index(&self, id: &str, name: &str) -> Option<usize> {
        let by_id = self.slots.iter().rposition(|slot| !id.is_empty() && slot.id == id);
        let last = || {
            let slot = self.slots.last()?;
            let goes_on = id.is_empty() && slot.name == name && !slot.arguments.is_whole();
            (name.is_empty() || goes_on).then(|| self.slots.len() - 1)
        };
        by_id.or_else(last)
    }

    /// Whether a fragment of this id and name is of another call than the one at `place`.
    fn is_other_call(&self, place: usize, id: &str, name: &str) -> Result<bool, Malformed> {
        let Some(known) = self.slots.get(place).filter(|_| !name.is_empty()) else {
            return Ok(false);
        };
        if !known.id.is_empty() && !id.is_empty() && known.id != id {
            return Ok(true);
        }
        if known.name.is_empty() || known.name == name {
            return Ok(false);
        }
        let is_same_id = !id.is_empty() && known.id == id;
        if known.arguments.is_whole() && !is_same_id {
            return Ok(true);
        }
        Err(fault("a tool call changes its name"))
    }

    fn fill(
        &mut self,
        place: usize,
        id: &str,
        function: &Function<'_>,
        out: &mut Vec<Delta>,
    ) -> Result<(), Malformed> {
        let Some(slot) = self.slots.get_mut(place) else { return Ok(()) };
        let name = function.name.text().unwrap_or_default();
        let is_again = slot.is_started && !(id.is_empty() && name.is_empty());
        if slot.id.is_empty() {
            id.clone_into(&mut slot.id);
        }
        if !name.is_empty() && !slot.is_started {
            self.nameless -= slot.start(place, name, out);
        }
        let arguments = function.arguments();
        if !arguments.is_empty() {
            slot.arguments.push(&arguments);
            let fragment = arguments.into_owned();
            if slot.is_started {
                out.push(Delta::ToolArguments { index: number(place), fragment });
            } else {
                // Each of them: it is all that shows of the fragment now.
                out.push(Delta::Quirk(Quirk::ArgumentsFirst));
                self.nameless += fragment.len();
                slot.held.push(fragment);
            }
        }
        if is_again {
            self.odd(Quirk::CallNamedAgain, out);
        }
        if function.has_arguments_as_json() {
            self.odd(Quirk::ArgumentsNotText, out);
        }
        if self.nameless > MAX_NAMELESS {
            return Err(fault("a tool call without a name"));
        }
        Ok(())
    }

    /// Tells a quirk, once.
    fn odd(&mut self, quirk: Quirk, out: &mut Vec<Delta>) {
        if !self.quirks.contains(&quirk) {
            self.quirks.push(quirk);
            out.push(Delta::Quirk(quirk));
        }
    }
}

impl Slot {
    /// Tells the call and the arguments that waited for it: how many bytes.
    fn start(&mut self, place: usize, name: &str, out: &mut Vec<Delta>) -> usize {
        let index = number(place);
        name.clone_into(&mut self.name);
        self.is_started = true;
        out.push(Delta::ToolStart { index, id: self.id.clone(), name: name.to_owned() });
        let mut waited = 0;
        for fragment in std::mem::take(&mut self.held) {
            waited += fragment.len();
            out.push(Delta::ToolArguments { index, fragment });
        }
        waited
    }
}

fn fault(note: impl Into<String>) -> Malformed {
    Malformed::new("/choices/0/delta/tool_calls", note)
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
