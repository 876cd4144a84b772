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
    if text.len() > LONG {
        return true;
    }
    if text.len() < SHORT {
        return false;
    }
    let (mut signs, mut seen, mut known) = (Signs::default(), Seen::of(text.len()), 0_u32);
    for gram in text.bytes().filter_map(|byte| signs.take(byte)) {
        known = if seen.note(gram) { known + 1 } else { known.saturating_sub(1) };
        if known >= TOLD {
            return true;
        }
    }
    false
}

/// The signs of a text, as its bytes come.
#[derive(Default)]
struct Signs {
    /// The last ones, the newest lowest.
    gram: u64,
    /// Digits of the number under way.
    digits: u32,
}

impl Signs {
    /// The last signs once `byte` is one of them. `None`: it is none.
    fn take(&mut self, byte: u8) -> Option<u64> {
        let sign = match byte {
            b'\r' => return None,
            b'0'..=b'9' => self.number()?,
            other => {
                self.digits = 0;
                other
            }
        };
        self.gram = (self.gram << 8) + u64::from(sign);
        Some(self.gram)
    }

    /// The sign that one more digit is, if it is one.
    fn number(&mut self) -> Option<u8> {
        self.digits += 1;
        match self.digits {
            // A number is the same with a space before it and without one.
            1 if self.gram.to_le_bytes()[0] == b' ' => self.gram >>= 8,
            2..=DIGITS => return None,
            _ => {}
        }
        Some(b'0')
    }
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
        assert!(!may_repeat(&prose(LONG)) && may_repeat(&prose(LONG + 1)));
    }

    /// The signs of a text of eight at most.
    fn signs(text: &str) -> String {
        let mut signs = Signs::default();
        let last = text.bytes().filter_map(|byte| signs.take(byte)).last().unwrap_or_default();
        String::from_utf8_lossy(&last.to_be_bytes()).trim_start_matches('\0').to_owned()
    }

    #[test]
    fn a_number_is_one_sign_whatever_its_digits_and_the_space_before_it() {
        for (text, expected) in [
            ("a 7b", "a0b"),
            ("a7b", "a0b"),
            ("a  7b", "a 0b"),
            ("a 123456b", "a0b"),
            ("a 1234567b", "a00b"),
            ("a 12345678b", "a000b"),
            ("1-23 x", "0-0 x"),
            ("a\r\nb\r", "a\nb"),
            ("", ""),
        ] {
            assert_eq!(signs(text), expected, "{text:?}");
        }
    }

    /// Only what is the same but for its numbers is there again.
    #[test]
    fn lines_that_differ_in_their_numbers_only_may_repeat_themselves() {
        let lines = |digits: u32| {
            let line = |n| format!("{}. a line of a list\n", 10_u32.pow(digits) + n);
            (0..9).map(line).collect::<String>()
        };
        assert!(may_repeat(&lines(0)) && may_repeat(&lines(4)));
        assert!(!may_repeat(&prose(lines(4).len())));
    }
}
