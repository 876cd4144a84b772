//! The types a schema allows, as a set.

use serde_json::{Map, Value};

/// A set of JSON Schema's types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

/// The types in the order they are written.
const NAMES: [(&str, Types); 7] = [
    ("string", Types::STRING),
    ("integer", Types::INTEGER),
    ("number", Types::NUMBER),
    ("boolean", Types::BOOLEAN),
    ("object", Types::OBJECT),
    ("array", Types::ARRAY),
    ("null", Types::NULL),
];

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const NUMBER: Self = Self(8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const SCALARS: Self = Self(31);
    pub(super) const ANY: Self = Self(127);

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether some type of `other` is in it.
    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The types both allow; an integer is a number.
    pub(super) fn and(self, other: Self) -> Self {
        let widen = |set: Self| if set.has(Self::NUMBER) { set.or(Self::INTEGER) } else { set };
        let both = Self(widen(self).0 & widen(other).0);
        if both.has(Self::NUMBER) { both.without(Self::INTEGER) } else { both }
    }

    /// The type of a value. A whole number is an integer.
    pub(super) fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_f64() => Self::NUMBER,
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// The types one by one, `null` last.
    pub(super) fn each(self) -> impl Iterator<Item = (&'static str, Self)> {
        NAMES.into_iter().filter(move |(_, one)| self.has(*one))
    }

    /// As the value of a `type` keyword; not for the empty set.
    pub(super) fn word(self) -> Value {
        let mut names: Vec<Value> = self.each().map(|(name, _)| name.into()).collect();
        if names.len() == 1 { names.remove(0) } else { Value::Array(names) }
    }

    fn named(name: &str) -> Self {
        let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map_or(Self::NONE, |(_, one)| *one)
    }
}

/// The declared types of a schema, `nullable` included. `None`: it declares none.
pub(super) fn of(schema: &Map<String, Value>) -> Option<Types> {
    let declared = match schema.get("type")? {
        Value::String(name) => Types::named(name),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            names.fold(Types::NONE, |set, name| set.or(Types::named(name)))
        }
        _ => return None,
    };
    let is_nullable = schema.get("nullable") == Some(&Value::Bool(true));
    Some(if is_nullable { declared.or(Types::NULL) } else { declared })
}

/// Keywords that speak of one type only; the first found names the type of a schema without one.
const SPEAK: [(&str, Types); 23] = [
    ("properties", Types::OBJECT),
    ("required", Types::OBJECT),
    ("additionalProperties", Types::OBJECT),
    ("patternProperties", Types::OBJECT),
    ("propertyNames", Types::OBJECT),
    ("minProperties", Types::OBJECT),
    ("maxProperties", Types::OBJECT),
    ("items", Types::ARRAY),
    ("prefixItems", Types::ARRAY),
    ("minItems", Types::ARRAY),
    ("maxItems", Types::ARRAY),
    ("uniqueItems", Types::ARRAY),
    ("contains", Types::ARRAY),
    ("minLength", Types::STRING),
    ("maxLength", Types::STRING),
    ("pattern", Types::STRING),
    ("format", Types::STRING),
    ("minimum", Types::NUMBER),
    ("maximum", Types::NUMBER),
    ("exclusiveMinimum", Types::NUMBER),
    ("exclusiveMaximum", Types::NUMBER),
    ("multipleOf", Types::NUMBER),
    ("unevaluatedProperties", Types::OBJECT),
];

/// The type that a schema means which says none, by its values or its keywords.
pub(super) fn meant(schema: &Map<String, Value>) -> Option<Types> {
    if let Some(value) = schema.get("const") {
        return Some(Types::of_value(value));
    }
    if let Some(Value::Array(values)) = schema.get("enum").filter(|v| **v != Value::Array(vec![])) {
        let all = values.iter().fold(Types::NONE, |set, value| set.or(Types::of_value(value)));
        return Some(if all.has(Types::NUMBER) { all.without(Types::INTEGER) } else { all });
    }
    SPEAK.iter().find(|(key, _)| schema.contains_key(*key)).map(|(_, types)| *types)
}

/// The type that a keyword speaks of; it says nothing of values of others. `None`: of all.
pub(super) fn speaks_of(keyword: &str) -> Option<Types> {
    SPEAK.iter().find(|(key, _)| *key == keyword).map(|(_, types)| *types)
}
