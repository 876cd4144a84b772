//! Takes typed fields out of a JSON object and says, as a JSON pointer, where one is wrong.

use serde_json::{Map, Number, Value};

use crate::dialect::Malformed;
use crate::pointer;

/// A JSON object on its way to be read: what is taken is gone, what is left is the rest.
/// A null field is taken as absent.
#[derive(Debug)]
pub(super) struct Fields {
    map: Map<String, Value>,
    path: String,
}

impl Fields {
    /// The object `value`, which stands at `path`.
    pub(super) fn of(value: Value, path: impl Into<String>) -> Result<Self, Malformed> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            other => Err(wrong(path, "an object", &other)),
        }
    }

    /// The pointer to `key`.
    pub(super) fn path(&self, key: &str) -> String {
        format!("{}/{}", self.path, pointer::escape(key))
    }

    /// Takes any value.
    pub(super) fn any(&mut self, key: &str) -> Option<Value> {
        self.map.shift_remove(key).filter(|value| !value.is_null())
    }

    /// Looks at a value and leaves it.
    pub(super) fn peek(&self, key: &str) -> Option<&Value> {
        self.map.get(key)
    }

    /// Puts a value back under its key.
    pub(super) fn restore(&mut self, key: &str, value: Value) {
        self.map.insert(key.to_owned(), value);
    }

    /// Takes a string.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, Malformed> {
        self.typed(key, "a string", |value| match value {
            Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    /// Takes a string that must be there.
    pub(super) fn need_text(&mut self, key: &str) -> Result<String, Malformed> {
        let path = self.path(key);
        self.text(key)?.ok_or_else(|| missing(path, "a string"))
    }

    /// Takes a boolean.
    pub(super) fn boolean(&mut self, key: &str) -> Result<Option<bool>, Malformed> {
        self.typed(key, "true or false", |value| value.as_bool().ok_or(value))
    }

    /// Takes a whole number from 0.
    pub(super) fn unsigned(&mut self, key: &str) -> Result<Option<u64>, Malformed> {
        self.typed(key, "a whole number from 0", |value| value.as_u64().ok_or(value))
    }

    /// Takes a number.
    pub(super) fn number(&mut self, key: &str) -> Result<Option<Number>, Malformed> {
        self.typed(key, "a number", |value| match value {
            Value::Number(number) => Ok(number),
            other => Err(other),
        })
    }

    /// Takes an array.
    pub(super) fn list(&mut self, key: &str) -> Result<Option<Vec<Value>>, Malformed> {
        self.typed(key, "an array", |value| match value {
            Value::Array(items) => Ok(items),
            other => Err(other),
        })
    }

    /// Takes an object.
    pub(super) fn object(&mut self, key: &str) -> Result<Option<Self>, Malformed> {
        let path = self.path(key);
        self.any(key).map(|value| Self::of(value, path)).transpose()
    }

    /// What nobody took; nulls too.
    pub(super) fn rest(self) -> Map<String, Value> {
        self.map
    }

    fn typed<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl Fn(Value) -> Result<T, Value>,
    ) -> Result<Option<T>, Malformed> {
        let found = self.any(key).map(read).transpose();
        found.map_err(|other| wrong(self.path(key), expected, &other))
    }
}

/// The fault of a value of the wrong type.
pub(super) fn wrong(path: impl Into<String>, expected: &str, found: &Value) -> Malformed {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_u64() => "a number",
        Value::Number(number) if number.is_i64() => "a negative number",
        Value::Number(_) => "a number with a fraction",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Malformed::new(path, format!("expected {expected}, found {found}"))
}

/// The fault of a value that is not there.
pub(super) fn missing(path: impl Into<String>, expected: &str) -> Malformed {
    Malformed::new(path, format!("expected {expected}, found nothing"))
}

/// Adds `rest` to `value`: objects grow key by key, and what `value` has already wins.
pub(super) fn merge(value: &mut Value, rest: Value) {
    let (Value::Object(map), Value::Object(rest)) = (value, rest) else { return };
    for (key, left) in rest {
        match map.get_mut(&key) {
            Some(own) => merge(own, left),
            None => {
                map.insert(key, left);
            }
        }
    }
}
