//! Skips white space: the four characters JSON knows, and the odd ones models write.

/// Where the first byte that is not JSON white space is, at or behind `at`.
#[inline]
pub(crate) fn skip(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Length in bytes of an odd space at `at`: a form feed, NBSP, an ideographic or zero-width space
/// and their kin; 0 if there is none.
pub(crate) fn odd(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at..).unwrap_or_default() {
        [0x0b | 0x0c, ..] => 1,
        // U+00A0 and U+0085.
        [0xc2, 0xa0 | 0x85, ..] => 2,
        // U+2000 to U+200B, U+2028, U+2029, U+202F, U+205F, U+2060, U+3000, U+FEFF.
        [0xe2, 0x80, 0x80..=0x8b | 0xa8 | 0xa9 | 0xaf, ..]
        | [0xe2, 0x81, 0x9f | 0xa0, ..]
        | [0xe3, 0x80, 0x80, ..]
        | [0xef, 0xbb, 0xbf, ..] => 3,
        _ => 0,
    }
}
