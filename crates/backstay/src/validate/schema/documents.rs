//! Schemas that others may refer to by their URI. Nothing else is ever read: no network, no file.

use std::collections::BTreeMap;

use serde_json::Value;

/// Schemas by URI, for references that leave a schema: see [`Schema::compile_with`].
///
/// ```
/// use backstay::validate::schema::{Documents, Schema};
/// use serde_json::json;
///
/// let mut documents = Documents::new();
/// documents.add("https://example.com/id.json", json!({"type": "integer"}));
/// let source = json!({"items": {"$ref": "https://example.com/id.json"}});
/// assert!(Schema::compile(&source).is_err());
/// let schema = Schema::compile_with(&source, &documents)?;
/// assert!(schema.check(&json!([1, 2])).is_ok());
/// # Ok::<(), backstay::validate::SchemaFault>(())
/// ```
///
/// [`Schema::compile_with`]: super::Schema::compile_with
#[derive(Clone, Debug, Default)]
pub struct Documents {
    by_uri: BTreeMap<String, Value>,
}

impl Documents {
    /// None at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `schema` under `uri`, an absolute one. A schema that was there under it goes.
    pub fn add(&mut self, uri: &str, schema: Value) {
        self.by_uri.insert(uri.to_owned(), schema);
    }

    /// All of them, in the order of their URIs.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.by_uri.iter().map(|(uri, schema)| (uri.as_str(), schema))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_uri.is_empty()
    }
}
