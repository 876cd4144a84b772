//! Tells the caller which edits were made: counted for a header, one by one in the body.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{Body, Call};
use crate::policy::Report;
use crate::validate::Edit;

/// The header by which a caller asks for the edits in the body.
const WISH: &str = "x-backstay-edits";

/// The most edits told in a body.
const MAX_TOLD: usize = 100;

impl Call {
    /// The body with the edits in it, where they are wanted: as `backstay.edits`, which is a list,
    /// empty when nothing was changed. Where there are several `choices`, each edit names its own.
    /// Streams tell the counts only.
    pub(super) fn with_report(&self, body: Body, choices: usize) -> Body {
        let always = self.contract.route.mending.report == Report::Always;
        let wish = self.contract.ask.headers.get(WISH);
        let asked = wish.is_some_and(|wish| wish == "1" || wish == "true");
        match body {
            Body::Whole(bytes) if always || asked => {
                let report = json!({ "edits": told(&self.edits, choices) });
                Body::Whole(extended(&bytes, &report).unwrap_or(bytes))
            }
            body => body,
        }
    }
}

/// `body`, a JSON object, with `backstay` as its last member. `None`: it is no object.
fn extended(body: &[u8], report: &Value) -> Option<Bytes> {
    let trimmed = body.trim_ascii();
    let inside = trimmed.strip_suffix(b"}")?.trim_ascii_end();
    let comma = if inside == b"{" { "" } else { "," };
    let mut told = Vec::with_capacity(body.len() + 64);
    told.extend_from_slice(inside);
    told.extend_from_slice(comma.as_bytes());
    told.extend_from_slice(format!("\"backstay\":{report}}}").as_bytes());
    trimmed.starts_with(b"{").then(|| Bytes::from(told))
}

fn told(edits: &[Edit], choices: usize) -> Value {
    let one = |edit: &Edit| {
        let mut told = Map::new();
        let mut put = |key: &str, value: Value| told.insert(key.to_owned(), value);
        put("kind", edit.kind.name().into());
        put("class", edit.kind.class().into());
        put("path", edit.path.as_str().into());
        if choices > 1 {
            put("choice", edit.choice.into());
        }
        if let Some(tool) = &edit.tool {
            put("tool", tool.as_str().into());
        }
        if let Some(place) = &edit.place {
            put("span", json!([place.span.start, place.span.end]));
            put("line", place.line.into());
            put("column", place.column.into());
        }
        put("before", edit.before.as_str().into());
        put("after", edit.after.as_str().into());
        Value::Object(told)
    };
    edits.iter().take(MAX_TOLD).map(one).collect()
}

/// How many edits of each kind there are, in the order of their first.
pub(super) fn tally(edits: &[Edit]) -> Vec<(&'static str, u32)> {
    let mut tally: Vec<(&'static str, u32)> = Vec::new();
    for edit in edits {
        let name = edit.kind.name();
        match tally.iter_mut().find(|(kind, _)| *kind == name) {
            Some((_, count)) => *count += 1,
            None => tally.push((name, 1)),
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::extended;

    #[test]
    fn the_report_is_the_last_member_and_nothing_else_changes() {
        let report = json!({"edits": []});
        for (body, told) in [
            ("{\"a\": 1.10 } \n", Some("{\"a\": 1.10,\"backstay\":{\"edits\":[]}}")),
            ("{ }", Some("{\"backstay\":{\"edits\":[]}}")),
            ("[1]", None),
            ("", None),
        ] {
            let made = extended(body.as_bytes(), &report);
            assert_eq!(made.as_deref(), told.map(str::as_bytes), "{body}");
        }
    }
}
