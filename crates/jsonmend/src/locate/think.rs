//! Finds blocks of reasoning that a model left in its reply.

const TAGS: [&str; 5] = ["think", "thinking", "reasoning", "reflection", "scratchpad"];

/// The spans of all blocks, in order. A block that is never closed reaches to the end. A closing
/// tag alone on its line, without an opening one, ends a block that began with the reply.
pub(super) fn blocks(raw: &str) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let mut at = 0;
    while let Some((start, inside, tag)) = opening(raw, at) {
        let close = format!("</{tag}>");
        let body = raw.get(inside..).unwrap_or_default();
        let end = body.find(&close).map_or(raw.len(), |length| inside + length + close.len());
        blocks.push((start, end));
        at = end;
    }
    let first = blocks.first().map_or(raw.len(), |(start, _)| *start);
    if let Some(end) = orphan(raw.get(..first).unwrap_or_default()) {
        blocks.insert(0, (0, end));
    }
    blocks
}

/// The next opening tag: its start, the place behind it, and its name. Only at the start of the
/// reply or of a line: elsewhere it may be part of a string.
fn opening(raw: &str, at: usize) -> Option<(usize, usize, &'static str)> {
    let mut from = at;
    loop {
        let start = from + raw.get(from..)?.find('<')?;
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

fn orphan(raw: &str) -> Option<usize> {
    TAGS.iter()
        .filter_map(|tag| {
            let close = format!("</{tag}>");
            let start = raw.find(&close)?;
            let end = start + close.len();
            let behind = raw.get(end..)?;
            let is_alone =
                behind.is_empty() || behind.starts_with(['\n', '\r', ' ', '{', '[', '`']);
            // Inside a string there would be an odd number of quotes before it.
            let quotes = raw.get(..start)?.matches('"').count();
            (is_alone && quotes.is_multiple_of(2)).then_some(end)
        })
        .min()
}
