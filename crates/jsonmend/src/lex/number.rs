//! Tells which words are JSON numbers, by RFC 8259 section 6.

/// Where the number that starts at `at` ends, or `None` if what stands there is none. A number at
/// the very end of the text counts as whole.
#[inline]
pub(crate) fn end(bytes: &[u8], mut at: usize) -> Option<usize> {
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    match bytes.get(at)? {
        b'0' => at += 1,
        b'1'..=b'9' => at = digits(bytes, at + 1),
        _ => return None,
    }
    if bytes.get(at) == Some(&b'.') {
        let after = digits(bytes, at + 1);
        if after == at + 1 {
            return None;
        }
        at = after;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let after = digits(bytes, at + 1 + sign);
        if after == at + 1 + sign {
            return None;
        }
        at = after;
    }
    Some(at)
}

/// Says whether the whole word is one JSON number.
pub(crate) fn is_number(word: &[u8]) -> bool {
    end(word, 0) == Some(word.len())
}

#[inline]
fn digits(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_rfc_8259_calls_a_number_is_one() {
        for yes in ["0", "-0", "12", "1.5", "-1.5e-3", "1E+2", "0e0"] {
            assert!(is_number(yes.as_bytes()), "{yes}");
        }
        for no in ["", "-", "01", ".5", "5.", "1e", "1e+", "+1", "0x1", "1_0", "1 "] {
            assert!(!is_number(no.as_bytes()), "{no}");
        }
    }
}
