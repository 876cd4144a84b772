//! Token counts: this dialect counts cached input beside `input_tokens`, the neutral form inside.

use serde_json::{Map, Value, json};

use crate::chat::Usage;

/// The counters as the provider gives them. Those of a stream overwrite, field by field.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    input: Option<u64>,
    cache_write: Option<u64>,
    cached: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
}

impl Counters {
    /// Takes every number that `usage` has. Anything that is no object or no number is ignored.
    pub(crate) fn overwrite(&mut self, usage: &Value) {
        let take = |name: &str, known: &mut Option<u64>| {
            *known = usage.get(name).and_then(Value::as_u64).or(*known);
        };
        take("input_tokens", &mut self.input);
        take("cache_creation_input_tokens", &mut self.cache_write);
        take("cache_read_input_tokens", &mut self.cached);
        take("output_tokens", &mut self.output);
        let details = usage.get("output_tokens_details");
        let thinking = details.and_then(|d| d.get("thinking_tokens")).and_then(Value::as_u64);
        self.reasoning = thinking.or(self.reasoning);
    }

    /// The neutral form: all input is plain, written to the cache, or read from it.
    pub(crate) fn neutral(self) -> Usage {
        let parts = [self.input, self.cache_write, self.cached];
        let sum = |sum: Option<u64>, part: Option<u64>| match (sum, part) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Usage {
            input: parts.into_iter().fold(None, sum),
            output: self.output,
            cached: self.cached,
            cache_write: self.cache_write,
            reasoning: self.reasoning,
        }
    }
}

/// The `usage` object. The dialect demands both totals: one that is not known is written as 0.
pub(crate) fn write(usage: &Usage) -> Value {
    let mut fields = Map::new();
    let beside = usage.cached.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    fields.insert("input_tokens".into(), usage.input.unwrap_or(0).saturating_sub(beside).into());
    if let Some(written) = usage.cache_write {
        fields.insert("cache_creation_input_tokens".into(), written.into());
    }
    if let Some(read) = usage.cached {
        fields.insert("cache_read_input_tokens".into(), read.into());
    }
    fields.insert("output_tokens".into(), usage.output.unwrap_or(0).into());
    if let Some(thinking) = usage.reasoning {
        fields.insert("output_tokens_details".into(), json!({ "thinking_tokens": thinking }));
    }
    Value::Object(fields)
}
