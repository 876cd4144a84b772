//! Finds blocks of reasoning that a model left in its reply.

const TAGS: [&str; 5] = ["think", "thinking", "reasoning", "reflection", "scratchpad"];

/// The spans of all blocks, in order. A block that is never closed reaches to the end. A closing
/// tag alone on its line, without an opening one, ends a block that began with the reply.
pub(super) fn blocks(raw: &str) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let mut at = 0;
    let Some(first) = memchr::memchr(b'<', raw.as_bytes()) else { return blocks };
    while let Some((start, inside, tag)) = opening(raw, at) {
        let close = format!("</{tag}>");
        let body = raw.get(inside..).unwrap_or_default();
        let end = body.find(&close).map_or(raw.len(), |length| inside + length + close.len());
        blocks.push((start, end));
        at = end;
    }
    let until = blocks.first().map_or(raw.len(), |(start, _)| *start);
    if let Some(end) = orphan(raw.get(..until).unwrap_or_default(), first) {
        blocks.insert(0, (0, end));
    }
    blocks
}

/// The next opening tag: its start, the place behind it, and its name. Only at the start of the
/// reply or of a line: elsewhere it may be part of a string.
fn opening(raw: &str, at: usize) -> Option<(usize, usize, &'static str)> {
    let mut from = at;
    loop {
        let start = from + memchr::memchr(b'<', raw.as_bytes().get(from..)?)?;
        let rest = raw.get(start + 1..)?;
        let tag = TAGS
            .iter()
            .find(|tag| rest.strip_prefix(**tag).is_some_and(|rest| rest.starts_with('>')));
        let line = raw.get(at..start)?;
        let is_first = line.trim_end_matches([' ', '\t', '\u{feff}']);
        if let Some(tag) = tag
            && (is_first.is_empty() || is_first.ends_with('\n'))
        {
            return Some((start, start + tag.len() + 2, tag));
        }
        from = start + 1;
    }
}

/// Where a closing tag without an opening one ends; no `<` stands before `from`.
fn orphan(raw: &str, mut from: usize) -> Option<usize> {
    let (mut counted, mut quotes) = (0, 0);
    while let Some(length) = memchr::memchr(b'<', raw.as_bytes().get(from..)?) {
        let start = from + length;
        from = start + 1;
        let Some(rest) = raw.get(start..).and_then(|rest| rest.strip_prefix("</")) else {
            continue;
        };
        let tag = TAGS
            .iter()
            .find(|tag| rest.strip_prefix(**tag).is_some_and(|behind| behind.starts_with('>')));
        let Some(tag) = tag else { continue };
        let end = start + 2 + tag.len() + 1;
        let behind = raw.get(end..)?;
        let is_alone = behind.is_empty() || behind.starts_with(['\n', '\r', ' ', '{', '[', '`']);
        // Inside a string there would be an odd number of quotes before it.
        quotes += memchr::memchr_iter(b'"', raw.as_bytes().get(counted..start)?).count();
        counted = start;
        if is_alone && quotes % 2 == 0 {
            return Some(end);
        }
    }
    None
}
