//! Counts what a request has for one target beside the caller's own bytes, before it is built.

use backstay_wire::lower::{self, Subset};

use super::fit::{self, Asking, Fit};
use super::{LoweringCache, edits};
use crate::contract::{Added, Contract, format_field};
use crate::policy::{Structured, Target};

/// Bytes around a schema in a response format, at most: `{"type":"json_schema","json_schema":{…}}`
/// and the name of a field beside others.
const FRAME: u64 = 128;

/// What [`super::build`] adds for `target`. Costs a look into the cache for each schema, and nothing
/// where there is none.
pub(crate) fn added(cache: &LoweringCache, contract: &Contract, target: &Target) -> Added {
    let (print, strict) = (contract.schema_print(), edits::maybe_strict_tools(contract).is_some());
    if print.is_none() && !strict {
        return Added::default();
    }
    let mut fit = fit::fit(cache, contract, target);
    let source = print.map_or(0, |print| print.bytes as u64);
    let mut added = of_format(contract, target, &fit, source);
    if fit.shown.is_some() {
        let said = lower::instruction_bound(source);
        added.bytes += said;
        added.read += said;
    }
    if strict {
        edits::strict_tools(contract, target, &mut fit);
        added.bytes += fit.grown;
        added.read += fit.grown;
    }
    added
}

fn of_format(contract: &Contract, target: &Target, fit: &Fit<'_>, source: u64) -> Added {
    // Where a grammar holds the reply to it, the model does not see the schema; servers of which
    // nothing is known mostly do so.
    let subset = target.subset();
    let is_seen = target.structured == Structured::JsonSchema
        && subset != Subset::Whole
        && subset.shows_descriptions();
    match &fit.ask {
        Asking::Schema(held) => {
            let schema = held.bytes as u64;
            let written = schema + held.name.len() as u64 + FRAME;
            let before = contract.head.raw(&contract.ask.body, format_field(contract.ask.dialect));
            let before = before.map_or(0, <[u8]>::len) as u64;
            Added { bytes: written.saturating_sub(before), read: if is_seen { schema } else { 0 } }
        }
        Asking::Untouched if is_seen && contract.shape.by_caller() => {
            Added { bytes: 0, read: source }
        }
        Asking::Untouched | Asking::Json | Asking::Nothing => Added::default(),
    }
}

#[cfg(test)]
mod tests {

    use backstay_wire::Dialect;
    use http::Uri;
    use serde_json::{Value, json};

    use super::*;
    use crate::attempt::adapter::{Turned, build};
    use crate::contract::{Ask, settle};
    use crate::engine::Engine;
    use crate::policy::{Policy, Provider};
    use crate::record::CallLog;

    fn engine(subset: Subset) -> Engine {
        let base = Uri::from_static("http://localhost:9");
        let providers = [Dialect::OpenaiChat, Dialect::Anthropic].map(|dialect| {
            let mut provider = Provider::at(dialect.name(), dialect, base.clone(), None);
            provider.subset = subset;
            provider
        });
        Engine::new(Policy::of(providers), CallLog::memory(1)).unwrap()
    }

    fn schema() -> Value {
        let tags: Vec<String> = (0..40).map(|n| format!("tag \"{n}\"")).collect();
        json!({"type": "object", "required": ["b"], "properties": {
            "a": {"type": "string", "minLength": 2}, "b": {"enum": tags},
            "c": {"type": "object", "additionalProperties": {"type": "integer"}}}})
    }

    fn body(caller: Dialect, provider: Dialect, shaped: bool, tool: bool) -> Value {
        let mut body = json!({"model": format!("{}/m", provider.name()), "max_tokens": 9,
            "messages": [{"role": "user", "content": "a"}]});
        match caller {
            Dialect::OpenaiChat if shaped => {
                body["response_format"] = json!({"type": "json_schema",
                    "json_schema": {"name": "s", "schema": schema()}});
            }
            Dialect::Anthropic if shaped => {
                body["output_config"] =
                    json!({"format": {"type": "json_schema", "schema": schema()}});
            }
            _ => {}
        }
        if tool {
            body["tools"] = match caller {
                Dialect::OpenaiChat => json!([{"type": "function",
                    "function": {"name": "t", "strict": true, "parameters": schema()}}]),
                Dialect::Anthropic => json!([{"name": "t", "strict": true,
                    "input_schema": schema()}]),
            };
        }
        body
    }

    /// The texts of a request that a model may read, without the marks of JSON.
    fn said(body: &Value) -> usize {
        match body {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(said).sum(),
            Value::Object(members) => members.values().map(said).sum(),
            _ => 0,
        }
    }

    /// The bytes of what a request says and holds the reply to: every schema, every message.
    fn held(body: &Value) -> usize {
        let of = |pointer: &str| body.pointer(pointer);
        let text = |value: Option<&Value>| value.map_or(0, |value| value.to_string().len());
        let schemas = [
            "/response_format/json_schema/schema",
            "/output_config/format/schema",
            "/tools/0/function/parameters",
            "/tools/0/input_schema",
        ];
        let schemas: usize = schemas.into_iter().map(|pointer| text(of(pointer))).sum();
        schemas + of("/messages").map_or(0, said) + of("/system").map_or(0, said)
    }

    #[test]
    fn what_is_added_to_a_request_is_counted_and_little_more() {
        let both = [Dialect::OpenaiChat, Dialect::Anthropic];
        let structured = [Structured::JsonSchema, Structured::JsonObject, Structured::Nothing];
        for subset in Subset::ALL {
            let engine = engine(subset);
            for (caller, provider) in both.iter().flat_map(|c| both.iter().map(move |p| (*c, *p))) {
                for (shaped, tool) in [(true, false), (false, true), (true, true), (false, false)] {
                    for structured in structured {
                        let asked = body(caller, provider, shaped, tool);
                        let ask = Ask::new(caller, asked.to_string(), engine.now());
                        let contract = settle(&engine, ask).unwrap();
                        let mut target = (*contract.route.tiers[0][0]).clone();
                        target.structured = structured;
                        let cache = engine.lowerings();
                        let added = added(cache, &contract, &target);
                        let sent = build(cache, &contract, &target, Turned::default()).unwrap();
                        let sent: Value = serde_json::from_slice(&sent.body).unwrap();
                        let grown = held(&sent).saturating_sub(held(&asked)) as u64;
                        let case = format!("{subset:?} {caller:?} {provider:?} {shaped} {tool}");
                        assert!(added.bytes >= grown, "{case} {structured:?}: {added:?} {grown}");
                        // A format of the caller's that goes leaves room that is not taken off.
                        let most = grown + 2 * FRAME + said(&asked) as u64 * 3;
                        assert!(added.bytes <= most, "{case} {structured:?}: {added:?} {grown}");
                        if !shaped && !tool {
                            assert_eq!(added, Added::default(), "{case}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_schema_in_the_prompt_may_be_what_a_window_does_not_hold() {
        let engine = engine(Subset::Whole);
        for (shaped, fits) in [(true, false), (false, true)] {
            let asked = body(Dialect::Anthropic, Dialect::OpenaiChat, shaped, false);
            let ask = Ask::new(Dialect::Anthropic, asked.to_string(), engine.now());
            let contract = settle(&engine, ask).unwrap();
            let mut target = (*contract.route.tiers[0][0]).clone();
            target.structured = Structured::Nothing;
            let added = added(engine.lowerings(), &contract, &target);
            // At four bytes a token the schema alone would fill it.
            let window = schema().to_string().len() as u64 / 4;
            assert!(contract.fits(window, Added::default(), || None).is_ok());
            assert_eq!(contract.fits(window, added, || None).is_ok(), fits);
            // Of what was learned nothing is left to be added.
            assert!(contract.fits(window, added, || Some(20)).is_ok());
        }
    }
}
