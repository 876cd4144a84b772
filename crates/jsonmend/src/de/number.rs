//! Hands a number to a visitor that takes any type, by the digits it was written with.

use serde::de::{Error as _, Visitor};

use super::Mismatch;

/// Whole numbers as integers as long as one fits, others as floats.
pub(super) fn visit<'t, V: Visitor<'t>>(digits: &str, visitor: V) -> Result<V::Value, Mismatch> {
    let is_whole = !digits.contains(['.', 'e', 'E']);
    if is_whole && digits != "-0" {
        if let Ok(number) = digits.parse::<u64>() {
            return visitor.visit_u64(number);
        }
        if let Ok(number) = digits.parse::<i64>() {
            return visitor.visit_i64(number);
        }
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => visitor.visit_f64(number),
        _ => Err(Mismatch::custom("the number is out of range")),
    }
}
