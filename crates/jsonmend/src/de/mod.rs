//! Lets `serde` read a value straight from the tape.
//!
//! Numbers are handed over as the type asked for, read from their digits: an `i128` or a `u64`
//! never goes through a float. A number that the type cannot hold is an error, not another number.

mod access;
mod number;

use std::fmt;

use serde::de::{Deserialize, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::tape::{Node, ValueKind};

/// Why a value is not of the type asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl serde::de::Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl<'t> Node<'t> {
    /// The value as a type; strings without escapes are borrowed.
    ///
    /// # Errors
    /// The first part of the value that does not fit the type.
    pub fn read<T: Deserialize<'t>>(self) -> Result<T, Mismatch> {
        T::deserialize(self)
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
            match self.number().and_then(|digits| digits.parse::<$type>().ok()) {
                Some(number) => visitor.$visit(number),
                None => self.deserialize_any(visitor),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.kind() {
            ValueKind::Null => visitor.visit_unit(),
            ValueKind::Boolean => visitor.visit_bool(self.boolean().unwrap_or_default()),
            ValueKind::Number => number::visit(self.number().unwrap_or("0"), visitor),
            ValueKind::String => match self.string().unwrap_or_default() {
                std::borrow::Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                std::borrow::Cow::Owned(text) => visitor.visit_string(text),
            },
            ValueKind::Array => visitor.visit_seq(access::Elements::new(self)),
            ValueKind::Object => visitor.visit_map(access::Entries::new(self)),
        }
    }

    integers! {
        deserialize_i64 visit_i64 i64;
        deserialize_u64 visit_u64 u64;
        deserialize_i128 visit_i128 i128;
        deserialize_u128 visit_u128 u128;
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.number().and_then(|digits| digits.parse::<f64>().ok()) {
            Some(number) if number.is_finite() => visitor.visit_f64(number),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        if self.kind() == ValueKind::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match self.kind() {
            ValueKind::String => {
                let name = self.string().unwrap_or_default().into_owned();
                visitor.visit_enum(IntoDeserializer::<Mismatch>::into_deserializer(name))
            }
            ValueKind::Object => {
                let mut members = self.members();
                match (members.next(), members.next()) {
                    (Some((name, value)), None) => {
                        visitor.visit_enum(access::Variant::new(name, value))
                    }
                    _ => Err(Mismatch("an enum is a name, or an object with one member".into())),
                }
            }
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 u8 u16 u32 f32 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}
