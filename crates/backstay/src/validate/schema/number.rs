//! Numbers as the checker sees them: by the digits they were written with, as far as it looks.
//!
//! | question | answered by |
//! |---|---|
//! | is it an integer? | its digits, at any size |
//! | is it this whole number of 64 bits? | its digits; `1.0`, `1e2` and `100` are whole |
//! | are two items the same? | their digits, at any size |
//! | anything else (a limit, a fraction in the schema) | the nearest `f64`, as the schema has it too |

use std::borrow::Cow;

use jsonschema::json::JsonNumber;
use serde_json::Number;

/// A number of a reply.
#[derive(Clone, Copy)]
pub(super) enum Numeral<'a> {
    /// As it was written.
    Written(&'a str),
    /// As a `Value` holds it.
    Held(&'a Number),
}

impl Numeral<'_> {
    /// The whole number it is, where 64 bits can hold it.
    fn whole(self) -> Option<i128> {
        match self {
            Self::Written(text) => written_whole(text),
            Self::Held(number) => held_whole(number),
        }
    }

    /// Whether it is the number of the schema. Where the schema's is no whole number of 64 bits, the
    /// nearest `f64` decides: that is all the schema kept of it.
    pub(super) fn equals(self, expected: &Number) -> bool {
        match (self.whole(), held_whole(expected)) {
            (Some(one), Some(other)) => one == other,
            (None, None) => self.as_f64().is_some_and(|one| Some(one) == expected.as_f64()),
            _ => false,
        }
    }

    /// Writes it so that equal numbers give equal bytes, and others do not.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Written(text) => Decimal::of(text).write(out),
            Self::Held(number) => Decimal::of(&number.to_string()).write(out),
        }
    }
}

fn written_whole(text: &str) -> Option<i128> {
    match short(text) {
        Some((number, 0)) => return Some(number.into()),
        // A common fraction, told by its last digit.
        Some((digits, _)) if digits % 10 != 0 => return None,
        Some(_) | None => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    text.parse::<u64>().map(Into::into).ok().or_else(|| Decimal::of(text).whole())
}

/// A number of at most sixteen bytes without sign and exponent, as most are: its digits as one whole
/// number, and how many of them stand behind the point.
#[inline]
fn short(text: &str) -> Option<(u64, usize)> {
    if text.len() > 16 {
        return None;
    }
    let (mut digits, mut whole) = (0, None);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => digits = digits * 10 + u64::from(byte - b'0'),
            b'.' if whole.is_none() => whole = Some(at),
            _ => return None,
        }
    }
    Some((digits, whole.map_or(0, |whole| text.len() - whole - 1)))
}

fn written_float(text: &str) -> Option<f64> {
    /// All exact, as fifteen digits beside a point are: the division rounds once, to the nearest.
    const TENS: [f64; 16] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    if let Some((digits, power)) = short(text)
        && let Some(ten) = TENS.get(power)
    {
        #[expect(clippy::cast_precision_loss, reason = "rounded to the nearest, as parsing does")]
        return Some(digits as f64 / ten);
    }
    text.parse().ok().filter(|float: &f64| float.is_finite())
}

/// Whether it is digits alone, beside a sign.
#[inline]
fn is_integral(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-'))
}

fn held_whole(number: &Number) -> Option<i128> {
    if let Some(whole) = number.as_i64() {
        return Some(whole.into());
    }
    if let Some(whole) = number.as_u64() {
        return Some(whole.into());
    }
    let fits = |float: &f64| float.fract() == 0.0 && (-I64_END..U64_END).contains(float);
    let float = number.as_f64().filter(fits)?;
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within 64 bits")]
    Some(float as i128)
}

/// 2^63 and 2^64, which `f64` holds exactly.
const I64_END: f64 = 9_223_372_036_854_775_808.0;
const U64_END: f64 = 18_446_744_073_709_551_616.0;

impl JsonNumber for Numeral<'_> {
    fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Written(_) => u64::try_from(self.whole()?).ok(),
            Self::Held(number) => number.as_u64(),
        }
    }

    fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Written(_) => i64::try_from(self.whole()?).ok(),
            Self::Held(number) => number.as_i64(),
        }
    }

    /// `None` for what is too large, never an infinity.
    fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Written(text) => written_float(text),
            Self::Held(number) => number.as_f64(),
        }
    }

    fn as_str(&self) -> Cow<'_, str> {
        match self {
            Self::Written(text) => Cow::Borrowed(text),
            Self::Held(number) => Cow::Owned(number.to_string()),
        }
    }

    /// For the crate's own sentences, which are not told; the largest number stands for larger ones.
    fn to_number(&self) -> Cow<'_, Number> {
        match self {
            Self::Written(text) => {
                let end = if text.starts_with('-') { f64::MIN } else { f64::MAX };
                let number = serde_json::from_str(text).ok();
                let number = number.or_else(|| Number::from_f64(end));
                Cow::Owned(number.unwrap_or_else(|| Number::from(0)))
            }
            Self::Held(number) => Cow::Borrowed(number),
        }
    }

    fn is_integer(&self) -> bool {
        match self {
            Self::Written(text) => is_integral(text) || Decimal::of(text).power >= 0,
            Self::Held(number) => number.is_integer(),
        }
    }

    fn is_written_as_integer(&self) -> bool {
        match self {
            Self::Written(text) => is_integral(text),
            Self::Held(number) => number.is_written_as_integer(),
        }
    }
}

/// A number as sign, digits and a power of ten, without zeros in front and behind: equal numbers
/// have equal parts. Zero has no digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal<'t> {
    negative: bool,
    /// The digits before the point, and those behind it.
    digits: (&'t str, &'t str),
    /// What the digits, as one whole number, are multiplied by. Clamped to 10^±(2^61).
    power: i64,
}

impl<'t> Decimal<'t> {
    fn of(text: &'t str) -> Self {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let (mut whole, mut fraction) =
            (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let mut power = read_exponent(exponent) - length(fraction);
        if fraction.is_empty() {
            let kept = whole.trim_end_matches('0');
            power += length(whole) - length(kept);
            whole = kept;
        }
        if whole.is_empty() {
            fraction = fraction.trim_start_matches('0');
        }
        if whole.is_empty() && fraction.is_empty() {
            return Self { negative: false, digits: ("", ""), power: 0 };
        }
        Self { negative: mantissa.starts_with('-'), digits: (whole, fraction), power }
    }

    fn each_digit(&self) -> impl Iterator<Item = u8> {
        self.digits.0.bytes().chain(self.digits.1.bytes())
    }

    fn whole(&self) -> Option<i128> {
        let power = u32::try_from(self.power).ok()?;
        // 2^64 has 20 digits.
        if self.digits.0.len() + self.digits.1.len() > 20 || power > 20 {
            return None;
        }
        let digits =
            self.each_digit().fold(0, |sum: i128, digit| sum * 10 + i128::from(digit - b'0'));
        let size = digits.checked_mul(10_i128.checked_pow(power)?)?;
        let number = if self.negative { -size } else { size };
        (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number).then_some(number)
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        out.extend(self.each_digit());
        out.push(b'e');
        out.extend_from_slice(self.power.to_string().as_bytes());
    }
}

/// No exponent is taken for larger than this: no text is long enough to bring one back from there.
const MAX_POWER: i64 = 1 << 61;

fn read_exponent(text: &str) -> i64 {
    let end = if text.starts_with('-') { -MAX_POWER } else { MAX_POWER };
    text.parse().map_or(end, |power: i64| power.clamp(-MAX_POWER, MAX_POWER))
}

fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(MAX_POWER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        Numeral::Written(text).write(&mut out);
        out
    }

    #[test]
    fn equal_numbers_are_written_alike_and_others_are_not() {
        let groups: [&[&str]; 8] = [
            &["0", "-0", "0.0", "0e5", "-0.000e-7"],
            &["1", "1.0", "1e0", "10e-1", "0.1e1", "100E-2"],
            &["-1", "-1.00"],
            &["120", "1.2e2", "12E+1", "120.0"],
            &["0.05", "5e-2", "0.5e-1", "0.050"],
            &["12345678901234567890123", "12345678901234567890123.0"],
            &["12345678901234567890124"],
            &["1e400", "10e399"],
        ];
        for (at, group) in groups.iter().enumerate() {
            for text in *group {
                assert_eq!(written(text), written(group[0]), "{text}");
                for other in groups[at + 1..].iter().copied().flatten() {
                    assert_ne!(written(text), written(other), "{text} {other}");
                }
            }
        }
    }

    #[test]
    fn a_number_is_an_integer_by_its_value_and_not_by_how_it_is_written() {
        for text in ["1", "-1", "1.0", "1e2", "1.5e1", "12345678901234567890123", "1e999", "0.0"] {
            assert!(Numeral::Written(text).is_integer(), "{text}");
        }
        for text in ["1.5", "1e-1", "15e-2", "12345678901234567890.5", "1e-999"] {
            assert!(!Numeral::Written(text).is_integer(), "{text}");
        }
        assert!(!Numeral::Written("1.0").is_written_as_integer());
    }

    #[test]
    fn whole_numbers_are_compared_exactly_up_to_64_bits() {
        let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
        let rows = [
            ("1.0", "1", true),
            ("1", "1.0", true),
            ("9007199254740993.0", "9007199254740993", true),
            ("9007199254740993", "9007199254740992", false),
            ("9007199254740993", "9007199254740992.0", false),
            ("18446744073709551615", "18446744073709551615", true),
            ("18446744073709551616", "18446744073709551615", false),
            ("12345678901234567890123", "12345678901234567890123", true),
            ("-9223372036854775808", "-9223372036854775808.0", true),
            ("0.1", "0.10", true),
            ("0.1", "0.2", false),
            ("1e400", "1", false),
        ];
        for (one, other, equal) in rows {
            assert_eq!(Numeral::Written(one).equals(&number(other)), equal, "{one} {other}");
        }
    }

    #[test]
    fn a_float_is_the_nearest_to_what_is_written() {
        let texts = [
            "0",
            "0.0",
            "0.1",
            "0.875",
            "0.30000000000004",
            "99999999999999.9",
            "9.99999999999999",
            "9007199254740993",
            "9999999999999999",
            "123456789.012345",
            "0.00000000000001",
            "-0.1",
            "1e-7",
            "1.7976931348623157e308",
            "12345678901234567890.5",
        ];
        for text in texts {
            let nearest: f64 = text.parse().unwrap();
            assert_eq!(Numeral::Written(text).as_f64(), Some(nearest), "{text}");
        }
        assert_eq!(Numeral::Written("1e999").as_f64(), None);
    }

    #[test]
    fn no_number_is_too_odd_to_look_at() {
        let long = format!("1{}", "0".repeat(100_000));
        for text in ["1e99999999999999999999", "-1e-99999999999999999999", "0e99", &long] {
            let number = Numeral::Written(text);
            let _ = (number.as_u64(), number.as_i64(), number.is_integer(), written(text));
            assert!(number.as_f64().is_none_or(f64::is_finite), "{text}");
            assert!(number.to_number().as_f64().is_some_and(f64::is_finite), "{text}");
        }
    }
}
