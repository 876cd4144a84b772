//! A glance at a text that is there as a whole: whether it says enough twice to be read token by token.
//!
//! Every loop is seen, since all but its first copy was there before; a text that is not a loop costs some
//! two nanoseconds a byte instead of a dozen. Numbers count as one sign each, as the numbers of a list's
//! items do for the [splitter](super::super::split).

/// Bytes that are sought again. Prose has few of eight twice.
const GRAM: usize = 8;
/// Every detector wants as many tokens, and no token is shorter than a byte.
const SHORT: usize = 128;
/// Texts over so many bytes are read without a glance: what was seen would take more than a cache holds.
const LONG: usize = 128 * 1024;
/// Bytes known minus bytes new, since it was last zero, from which on a text may repeat itself. The shortest
/// loop, of 128 tokens in four copies, has over 80.
const TOLD: u32 = 48;
/// Digits that are one sign at most; further ones count each.
const DIGITS: u32 = 6;
/// Odd, and its bits are well mixed.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Whether `text` has a part that was mostly there before. `false`: no detector of repetition finds a thing.
pub(in super::super) fn may_repeat(text: &str) -> bool {
    if !(SHORT..=LONG).contains(&text.len()) {
        return text.len() > LONG;
    }
    let mut seen = Seen::of(text.len());
    let (mut gram, mut digits, mut known) = (0_u64, 0_u32, 0_u32);
    for &byte in text.as_bytes() {
        let sign = match byte {
            b'\r' => continue,
            b'0'..=b'9' => {
                digits += 1;
                match digits {
                    // A number is the same with a space before it and without one.
                    1 if gram.to_le_bytes()[0] == b' ' => gram >>= 8,
                    1 => {}
                    2..=DIGITS => continue,
                    _ => {}
                }
                b'0'
            }
            other => {
                digits = 0;
                other
            }
        };
        gram = gram << 8 | u64::from(sign);
        known = if seen.note(gram) { known + 1 } else { known.saturating_sub(1) };
        if known >= TOLD {
            return true;
        }
    }
    false
}

/// Which grams were there: a bit for each, shared by those that fall on it, so that one may seem known.
struct Seen {
    words: Vec<u64>,
    shift: u32,
}

impl Seen {
    /// For a text of so many bytes: four bits for each.
    fn of(bytes: usize) -> Self {
        let bits = (bytes * 4).next_power_of_two().max(1024);
        Self { words: vec![0; bits / 64], shift: 64 - bits.ilog2() }
    }

    /// Whether `gram` was there. It is from now on.
    fn note(&mut self, gram: u64) -> bool {
        let place = gram.wrapping_mul(FACTOR) >> self.shift;
        let (word, bit) = ((place / 64) as usize, 1 << (place % 64));
        let known = self.words[word] & bit != 0;
        self.words[word] |= bit;
        known
    }
}

const _: () = assert!(GRAM == size_of::<u64>());

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters without a repetition, so many.
    fn prose(letters: usize) -> String {
        let mut state = 7_u32;
        let letter = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'a' + (state >> 28) as u8)
        };
        (0..letters).map(letter).collect()
    }

    #[test]
    fn a_short_text_is_none_and_a_very_long_one_may_be() {
        assert!(!may_repeat(&"ab".repeat(63)) && may_repeat(&"ab".repeat(64)));
        let (short, long) = (prose(6000), prose(LONG + 100));
        assert!(!may_repeat(&short) && may_repeat(&long));
    }

    /// After how many copies, each with its number, a text may repeat itself.
    fn copies(line: impl Fn(usize) -> String) -> usize {
        let told = |count: &usize| {
            may_repeat(&format!("{}{}", prose(200), (0..*count).map(&line).collect::<String>()))
        };
        (1..60).find(told).unwrap()
    }

    #[test]
    fn a_number_is_one_sign_whatever_its_digits_and_the_space_before_it() {
        let one = copies(|_| "a 7bc,".to_owned());
        let digits = copies(|n| format!("a {}bc,", 10_u32.pow(u32::try_from(n % 6).unwrap())));
        let unspaced = copies(|n| format!("a{}bc,", n % 10));
        // A longer text has more room for what was seen, and then less seems known by chance.
        assert!(
            [digits, unspaced].iter().all(|it| it.abs_diff(one) <= 1),
            "{digits}, {unspaced}, {one}"
        );
    }
}
