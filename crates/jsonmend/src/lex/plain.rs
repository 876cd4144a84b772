//! Runs over the plain part of a string, many bytes at a time.

/// A byte that ends a plain stretch: a quote, a backslash or a control character.
pub(crate) const fn is_stop(byte: u8) -> bool {
    byte ^ TWIST < TWISTED || byte == b'\\'
}

/// With this bit turned the quote comes right behind the control characters, and the two characters
/// there before it behind that: one comparison finds both.
const TWIST: u8 = 0x02;
const TWISTED: u8 = 0x21;

/// Where the next stop is at or behind `from`; the text's length if there is none.
///
/// Two words first: most keys and short values end within them. Then blocks of 32 without a branch
/// inside, which the compiler makes vector instructions.
#[inline]
pub(crate) fn stop_after(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let Some(words) = rest.first_chunk::<16>() else { return long(bytes, from) };
    let mut at = from;
    for word in words.as_chunks::<8>().0 {
        let stops = stops_in(u64::from_le_bytes(*word));
        if stops != 0 {
            return at + stops.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    long(bytes, at)
}

fn long(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let mut length = 0;
    let (blocks, _) = rest.as_chunks::<32>();
    for block in blocks {
        let stops = block.iter().fold(0, |stops, byte| stops | u8::from(is_stop(*byte)));
        if stops != 0 {
            break;
        }
        length += 32;
    }
    let (words, _) = rest.get(length..).unwrap_or_default().as_chunks::<8>();
    for word in words {
        let stops = stops_in(u64::from_le_bytes(*word));
        if stops != 0 {
            return from + length + stops.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let tail = rest.get(length..).unwrap_or_default();
    from + length + tail.iter().take_while(|byte| !is_stop(**byte)).count()
}

/// As [`stop_after`], with one more byte that stops.
pub(crate) fn mark_after(bytes: &[u8], from: usize, mark: u8) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let (words, _) = rest.as_chunks::<8>();
    let mut length = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let other = word ^ (LOW * u64::from(mark));
        let stops = stops_in(word) | (other.wrapping_sub(LOW) & !other & HIGH);
        if stops != 0 {
            return from + length + stops.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let tail = rest.get(length..).unwrap_or_default();
    let is_plain = |byte: &&u8| !is_stop(**byte) && **byte != mark;
    from + length + tail.iter().take_while(is_plain).count()
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = LOW << 7;

/// The high bit of every stop. Above the lowest one there may be false ones: a subtraction borrows
/// from the next byte.
const fn stops_in(word: u64) -> u64 {
    let quotes_and_controls = (word ^ (LOW * TWIST as u64)).wrapping_sub(LOW * TWISTED as u64);
    let slashes = (word ^ (LOW * b'\\' as u64)).wrapping_sub(LOW);
    (quotes_and_controls | slashes) & !word & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stop_is_found_at_every_place_and_nothing_else_is() {
        for length in 0..100 {
            for stop in [b'"', b'\\', 0, 0x1f, b'\n'] {
                let mut text = vec![0x80 | b'a'; length];
                for (at, byte) in text.iter_mut().enumerate() {
                    *byte = [b' ', b'!', b'#', 0x7f, 0x80, 0xff, b'[', b']'][at % 8];
                }
                assert_eq!(stop_after(&text, 0), length);
                for at in 0..length {
                    let kept = std::mem::replace(&mut text[at], stop);
                    assert_eq!(stop_after(&text, 0), at, "{length} {stop}");
                    assert_eq!(stop_after(&text, at + 1), length, "{length} {stop}");
                    assert_eq!(mark_after(&text, 0, b'\''), at, "{length} {stop}");
                    text[at] = b'\'';
                    assert_eq!(mark_after(&text, 0, b'\''), at, "{length} {stop}");
                    assert_eq!(stop_after(&text, 0), length, "{length} {stop}");
                    text[at] = kept;
                }
            }
        }
    }
}
