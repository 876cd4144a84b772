//! Builds a `serde_json::Value` from the tape, on request only.

use serde_json::{Map, Number, Value};

use super::node::{Kind, Node};

impl Node<'_> {
    /// The value as a `serde_json::Value`. A number outside `i64`, `u64` and `f64` loses digits
    /// here, unless `serde_json` is built with `arbitrary_precision`; the tape keeps them.
    pub fn to_value(self) -> Value {
        // Depth is bounded by the tape's limit, at most 1024, so recursion is safe.
        match self.kind() {
            Kind::Null => Value::Null,
            Kind::Boolean => Value::Bool(self.boolean().unwrap_or_default()),
            Kind::Number => number(self.number().unwrap_or("0")),
            Kind::String => Value::String(self.string().unwrap_or_default().into_owned()),
            Kind::Array => Value::Array(self.items().map(Node::to_value).collect()),
            Kind::Object => {
                let mut map = Map::new();
                for (key, value) in self.members() {
                    map.insert(key.into_owned(), value.to_value());
                }
                Value::Object(map)
            }
        }
    }
}

fn number(digits: &str) -> Value {
    let read: Result<Number, _> = serde_json::from_str(digits);
    // `1e999` is a number that `f64` cannot hold: its digits, as text, rather than another number.
    read.map_or_else(|_| Value::String(digits.to_owned()), Value::Number)
}
