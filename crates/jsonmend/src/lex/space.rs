//! Skips white space: the four characters JSON knows, and the odd ones models write.

/// Where the first byte that is not JSON white space is, at or behind `at`.
#[inline]
pub(crate) fn skip(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match bytes.get(at) {
            Some(b' ' | b'\n' | b'\r' | b'\t') => at += 1,
            _ => return at,
        }
        // Indentation is a run of spaces.
        while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            let other = u64::from_le_bytes(*word) ^ SPACES;
            if other != 0 {
                at += other.trailing_zeros() as usize / 8;
                break;
            }
            at += 8;
        }
    }
}

const SPACES: u64 = 0x2020_2020_2020_2020;

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
