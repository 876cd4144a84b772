//! The family `tools`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::case::{Case, FORMS, Form, body_case, gold, knowing, object};
use crate::client::{BOTH, Dialect, data, plain};

fn with_tools(dialect: Dialect, model: &str) -> Value {
    let schema = json!({"type": "object", "required": ["city", "days"], "properties":
        {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7}}});
    let mut body = plain(dialect, model);
    body["tools"] = match dialect {
        Dialect::OpenAi => {
            json!([{"type": "function", "function": {"name": "weather", "parameters": schema}}])
        }
        Dialect::Anthropic => json!([{"name": "weather", "input_schema": schema}]),
    };
    body
}

/// The tool calls of a reply: name and arguments as text.
fn calls(case: &Case) -> Vec<(String, String)> {
    match (case.form, case.dialect) {
        (Form::Whole, Dialect::OpenAi) => {
            let body = case.seen.json();
            let list =
                body["choices"][0]["message"]["tool_calls"].as_array().expect("calls").clone();
            list.iter()
                .map(|c| {
                    let text = |v: &Value| v.as_str().expect("text").to_owned();
                    (text(&c["function"]["name"]), text(&c["function"]["arguments"]))
                })
                .collect()
        }
        (Form::Whole, Dialect::Anthropic) => {
            let body = case.seen.json();
            let list = body["content"].as_array().expect("blocks").clone();
            list.iter()
                .filter(|b| b["type"] == "tool_use")
                .map(|b| {
                    let input = &b["input"];
                    let broken = input["INVALID_JSON"].as_str().map(str::to_owned);
                    (
                        b["name"].as_str().expect("a name").into(),
                        broken.unwrap_or(input.to_string()),
                    )
                })
                .collect()
        }
        (Form::Stream, dialect) => {
            let mut calls: Vec<(String, String)> = Vec::new();
            for event in data(&case.seen.text()) {
                let Ok(event) = serde_json::from_str::<Value>(&event) else { continue };
                let (name, piece) = match dialect {
                    Dialect::OpenAi => (
                        "/choices/0/delta/tool_calls/0/function/name",
                        "/choices/0/delta/tool_calls/0/function/arguments",
                    ),
                    Dialect::Anthropic => ("/content_block/name", "/delta/partial_json"),
                };
                if let Some(name) = event.pointer(name).and_then(Value::as_str) {
                    calls.push((name.to_owned(), String::new()));
                }
                if let Some(piece) = event.pointer(piece).and_then(Value::as_str) {
                    calls.last_mut().expect("an open call").1.push_str(piece);
                }
            }
            calls
        }
    }
}

#[tokio::test]
async fn tools_are_called_well_and_badly() {
    let mock = crate::client::mock().await;
    for dialect in BOTH {
        for form in FORMS {
            let of = async |model: &str| {
                body_case(&mock, dialect, form, with_tools(dialect, model)).await
            };
            for (model, count) in [("tool-call", 1), ("parallel-tools", 2)] {
                let case = of(model).await;
                assert_eq!(case.said().1, case.finish("tool_calls", "tool_use"));
                let calls = calls(&case);
                assert_eq!(calls.len(), count);
                for (name, arguments) in &calls {
                    assert_eq!(name, "weather");
                    assert!((1..=7).contains(&object(arguments)["days"].as_i64().expect("days")));
                }
                let ids: BTreeSet<String> = ["call_", "toolu_01"]
                    .iter()
                    .flat_map(|prefix| {
                        let text = case.seen.text();
                        let ids: Vec<String> = text
                            .split(&format!("\"id\":\"{prefix}"))
                            .skip(1)
                            .map(|t| t.chars().take(16).collect())
                            .collect();
                        ids
                    })
                    .collect();
                assert_eq!(ids.len(), count, "each call has its own id");
            }
            for (model, openai, anthropic) in [
                ("tool-args-truncated", "length", "max_tokens"),
                ("tool-args-invalid", "tool_calls", "tool_use"),
            ] {
                let case = of(model).await;
                assert_eq!(case.said().1, case.finish(openai, anthropic));
                let calls = calls(&case);
                assert!(serde_json::from_str::<Value>(&calls[0].1).is_err(), "{calls:?}");
            }
            // Without tools in the request, one of the mock's own.
            let own = body_case(&mock, dialect, form, plain(dialect, "tool-call")).await;
            assert_eq!(calls(&own)[0].0, "lookup_order");
            // With the result in hand, an answer.
            let mut body = with_tools(dialect, "tool-call");
            let result = match dialect {
                Dialect::OpenAi => json!({"role": "tool", "tool_call_id": "x", "content": "sunny"}),
                Dialect::Anthropic => json!({"role": "user", "content":
                    [{"type": "tool_result", "tool_use_id": "x", "content": "sunny"}]}),
            };
            body["messages"].as_array_mut().expect("messages").push(result);
            let case = body_case(&mock, dialect, form, body).await;
            assert_eq!(case.said().1, case.normal());
        }
    }
}

#[tokio::test]
async fn a_forced_tool_carries_the_structured_answer() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            let mut body = with_tools(dialect, "healthy");
            body["tool_choice"] = match dialect {
                Dialect::OpenAi => json!("required"),
                Dialect::Anthropic => json!({"type": "tool", "name": "weather"}),
            };
            let case = body_case(&mock, dialect, form, body).await;
            assert_eq!(case.said().1, case.finish("tool_calls", "tool_use"));
            assert_eq!(object(&calls(&case)[0].1), gold());
            assert!(case.entry.has_schema);
        }
    }
}
