//! Reads and writes the escapes of JSON strings.

use std::borrow::Cow;

/// What stands behind a backslash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// A whole, valid escape of this many bytes, backslash included.
    Whole(usize),
    /// `\u` and four digits that are half of a surrogate pair, alone.
    Lone,
    /// The text ends inside it.
    Cut,
    /// Not an escape JSON knows.
    Bad,
}

/// Reads the escape whose backslash stands at `at`.
pub(crate) fn read(bytes: &[u8], at: usize) -> Escape {
    match bytes.get(at + 1) {
        None => Escape::Cut,
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Escape::Whole(2),
        Some(b'u') => unicode(bytes, at),
        Some(_) => Escape::Bad,
    }
}

fn unicode(bytes: &[u8], at: usize) -> Escape {
    let high = match hex(bytes, at + 2) {
        Ok(unit) => unit,
        Err(cut) => return cut,
    };
    match high {
        0xd800..=0xdbff => {}
        0xdc00..=0xdfff => return Escape::Lone,
        _ => return Escape::Whole(6),
    }
    match (bytes.get(at + 6), bytes.get(at + 7)) {
        (None, _) | (Some(b'\\'), None) => return Escape::Cut,
        (Some(b'\\'), Some(b'u')) => {}
        _ => return Escape::Lone,
    }
    match hex(bytes, at + 8) {
        Ok(0xdc00..=0xdfff) => Escape::Whole(12),
        Err(Escape::Cut) => Escape::Cut,
        _ => Escape::Lone,
    }
}

fn hex(bytes: &[u8], at: usize) -> Result<u32, Escape> {
    let mut unit = 0;
    for step in 0..4 {
        let digit = bytes.get(at + step).ok_or(Escape::Cut)?;
        let digit = char::from(*digit).to_digit(16).ok_or(Escape::Bad)?;
        unit = unit * 16 + digit;
    }
    Ok(unit)
}

/// The text that the inside of a strict JSON string stands for.
pub(crate) fn decode(inside: &str) -> Cow<'_, str> {
    if !inside.contains('\\') {
        return Cow::Borrowed(inside);
    }
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        text.push_str(plain);
        let Escape::Whole(length) = read(escape.as_bytes(), 0) else {
            // A strict string holds whole escapes only.
            text.push_str(escape);
            return Cow::Owned(text);
        };
        let (escape, after) = escape.split_at(length);
        text.push(decoded(escape));
        rest = after;
    }
    text.push_str(rest);
    Cow::Owned(text)
}

fn decoded(escape: &str) -> char {
    let bytes = escape.as_bytes();
    match bytes.get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let high = hex(bytes, 2).unwrap_or(0);
            let code = match hex(bytes, 8) {
                Ok(low) => 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff),
                Err(_) => high,
            };
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        Some(other) => char::from(*other),
        None => '\\',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_whole_lone_cut_or_bad() {
        for (text, what) in [
            ("\\n", Escape::Whole(2)),
            ("\\u0041", Escape::Whole(6)),
            ("\\ud83d\\ude00", Escape::Whole(12)),
            ("\\ud83d", Escape::Cut),
            ("\\ud83d\\u0041", Escape::Lone),
            ("\\ude00", Escape::Lone),
            ("\\u12", Escape::Cut),
            ("\\u12 x", Escape::Bad),
            ("\\", Escape::Cut),
            ("\\q", Escape::Bad),
        ] {
            assert_eq!(read(text.as_bytes(), 0), what, "{text}");
        }
    }

    #[test]
    fn decoding_gives_what_serde_json_gives() {
        let inside = "a\\u0041\\ud83d\\ude00\\n\\/\\\\\\\"é";
        let whole = format!("\"{inside}\"");
        let theirs: String = serde_json::from_str(&whole).unwrap();
        assert_eq!(decode(inside), theirs);
    }
}
