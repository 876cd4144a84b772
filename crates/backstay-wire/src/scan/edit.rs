//! Changes top-level keys of a scanned body and keeps every other byte.

use super::{Member, Scanned};

/// One change of a top-level key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Sets the key to this JSON text, replacing its value or appending the key.
    Set(&'static str, String),
    /// Takes the key out.
    Remove(&'static str),
}

/// What becomes of one member of the object.
#[derive(Clone, Copy)]
enum Fate<'a> {
    Keep,
    Replace(&'a str),
    Remove,
}

impl Edit {
    fn key(&self) -> &'static str {
        match self {
            Self::Set(key, _) | Self::Remove(key) => key,
        }
    }

    fn json(&self) -> Option<&str> {
        match self {
            Self::Set(_, json) => Some(json),
            Self::Remove(_) => None,
        }
    }
}

impl Scanned {
    /// `body` with `edits` made and every other byte kept. `body` must be the one that was
    /// scanned. Of two edits of one key the last counts; of a repeated key the last is set and
    /// the earlier ones go.
    pub fn edit(&self, body: &[u8], edits: &[Edit]) -> Vec<u8> {
        let fates: Vec<Fate<'_>> =
            (0..self.members.len()).map(|index| self.fate(index, edits)).collect();
        let last_kept = fates.iter().rposition(|fate| !matches!(fate, Fate::Remove));

        // Room for every new value with its key, quotes, colon and comma: one allocation.
        let added: usize =
            edits.iter().map(|e| e.json().map_or(0, |json| json.len() + e.key().len() + 4)).sum();
        let mut out = Vec::with_capacity(body.len() + added);
        let mut from = 0;
        for (index, (member, fate)) in self.members.iter().zip(&fates).enumerate() {
            if last_kept.is_none_or(|kept| index > kept) {
                break;
            }
            match fate {
                Fate::Keep => {}
                Fate::Replace(json) => {
                    push(&mut out, body, from, member.value.start);
                    out.extend_from_slice(json.as_bytes());
                    from = member.value.end;
                }
                Fate::Remove => {
                    push(&mut out, body, from, member.start);
                    from = self.members.get(index + 1).map_or(member.value.end, |m| m.start);
                }
            }
        }
        self.finish(body, edits, &mut out, &Tail { from, last_kept });
        out
    }

    /// Ends the members: drops what was removed behind the last kept one, appends what is new.
    fn finish(&self, body: &[u8], edits: &[Edit], out: &mut Vec<u8>, tail: &Tail) {
        let first = self.members.first().map_or(self.object.start + 1, |m| m.start);
        let kept = tail.last_kept.and_then(|index| self.members.get(index));
        push(out, body, tail.from, kept.map_or(first, |m| m.value.end));
        let mut needs_comma = kept.is_some();
        for (index, edit) in edits.iter().enumerate() {
            let Some(json) = edit.json() else { continue };
            if self.has(edit.key()) || !is_last_of_key(edits, index) {
                continue;
            }
            if needs_comma {
                out.push(b',');
            }
            out.extend_from_slice(serde_json::Value::from(edit.key()).to_string().as_bytes());
            out.push(b':');
            out.extend_from_slice(json.as_bytes());
            needs_comma = true;
        }
        push(out, body, self.members.last().map_or(first, |m| m.value.end), body.len());
    }

    fn fate<'e>(&self, index: usize, edits: &'e [Edit]) -> Fate<'e> {
        let Some(member) = self.members.get(index) else { return Fate::Keep };
        let name = self.name(member);
        let Some(edit) = edits.iter().rev().find(|e| e.key() == name) else { return Fate::Keep };
        let repeated_later = |m: &Member| self.name(m) == name;
        match edit.json() {
            Some(json) if !self.members.iter().skip(index + 1).any(repeated_later) => {
                Fate::Replace(json)
            }
            _ => Fate::Remove,
        }
    }

    fn has(&self, key: &str) -> bool {
        self.members.iter().any(|m| self.name(m) == key)
    }
}

/// Where the copying stands when the kept members are through.
struct Tail {
    /// The next byte of the body to copy.
    from: usize,
    /// The last member that stays. `None`: none does.
    last_kept: Option<usize>,
}

fn is_last_of_key(edits: &[Edit], index: usize) -> bool {
    let key = edits.get(index).map(Edit::key);
    !edits.iter().skip(index + 1).any(|later| Some(later.key()) == key)
}

fn push(out: &mut Vec<u8>, body: &[u8], from: usize, to: usize) {
    out.extend_from_slice(body.get(from..to).unwrap_or_default());
}
