//! Where in a schema's text a JSON pointer leads.

use std::collections::HashMap;
use std::ops::Range;

use backstay_wire::pointer;
use serde_json::value::RawValue;

/// The bytes of `text` (JSON) at which the value of `pointer` begins to be said: its key, or where
/// it has none its first character. `None`: the pointer leads nowhere, or the text is no JSON.
pub fn place(text: &str, pointer: &str) -> Option<Range<usize>> {
    let mut value = serde_json::from_str::<&RawValue>(text).ok()?.get();
    let mut is_member = false;
    let mut steps = pointer.split('/');
    if steps.next() != Some("") {
        return None;
    }
    for step in steps {
        is_member = value.starts_with('{');
        value = if is_member {
            let members: HashMap<String, &RawValue> = serde_json::from_str(value).ok()?;
            members.get(&*pointer::unescape(step))?.get()
        } else {
            let items: Vec<&RawValue> = serde_json::from_str(value).ok()?;
            items.get(step.parse::<usize>().ok()?)?.get()
        };
    }
    // Both point into the same text.
    let start = (value.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    if is_member { key_before(text.get(..start)?) } else { Some(start..start + 1) }
}

/// The last string in `text`, which ends in a key, a colon and white space.
fn key_before(text: &str) -> Option<Range<usize>> {
    let end = text.rfind(':').and_then(|colon| text.get(..colon))?.trim_end().len();
    let inside = text.get(..end)?.strip_suffix('"')?;
    let opening = inside.rmatch_indices('"').find(|(at, _)| {
        let before = inside.get(..*at).unwrap_or_default();
        let slashes = before.len() - before.trim_end_matches('\\').len();
        slashes.is_multiple_of(2)
    });
    opening.map(|(at, _)| at..end)
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_pointer_leads_to_the_key_in_the_text() {
        let text = "{\n \"a\" : {\"b/c\": [1, {\"d\\\\\\\"e\": 2}], \"x~\": {}}\n}";
        for (pointer, seen) in [
            ("", Some("{")),
            ("/a", Some("\"a\"")),
            ("/a/b~1c", Some("\"b/c\"")),
            ("/a/b~1c/0", Some("1")),
            ("/a/b~1c/1/d\\\"e", Some("\"d\\\\\\\"e\"")),
            ("/a/x~0", Some("\"x~\"")),
            ("/b", None),
            ("/a/b~1c/7", None),
            ("/a/b~1c/0/z", None),
            ("a", None),
        ] {
            let span = place(text, pointer);
            assert_eq!(span.and_then(|span| text.get(span)), seen, "{pointer}");
        }
        assert_eq!(place("[", ""), None);
    }
}
