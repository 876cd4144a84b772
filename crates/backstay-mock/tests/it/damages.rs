//! The family `structure`.

use backstay_mock::End;
use serde_json::{Value, json};

use crate::case::{FORMS, Form, case, gold, half, knowing, object, with};
use crate::client::{BOTH, Dialect, Ended, ask, data, request};

/// name, check of the text, finish of OpenAI, finish of Anthropic
pub(crate) type DamageRow = (&'static str, fn(&str), &'static str, &'static str);

#[rustfmt::skip]
pub(crate) const DAMAGES: &[DamageRow] = &[
    ("fenced", |t| {
        let inner = t.strip_prefix("```json\n").and_then(|t| t.strip_suffix("\n```"));
        assert_eq!(object(inner.expect("a fence")), gold());
    }, "stop", "end_turn"),
    ("prose-around", |t| {
        assert!(t.contains(&gold().to_string()) && t.starts_with("Sure") && t.ends_with('.'));
    }, "stop", "end_turn"),
    ("then-prose", |t| {
        let (first, rest) = t.split_once("\n\n").expect("a paragraph");
        assert_eq!(object(first), gold());
        assert!(rest.len() >= 2_000 && rest.ends_with('.'));
    }, "stop", "end_turn"),
    ("two-objects", |t| {
        let (first, second) = t.split_once('\n').expect("two lines");
        assert_eq!(object(first), gold());
        assert_eq!(object(second), with("category", json!("shipping")));
    }, "stop", "end_turn"),
    ("wrong-schema", |t| {
        let mut made = gold();
        made.as_object_mut().expect("an object").remove("needs_human");
        assert_eq!(object(t), made);
    }, "stop", "end_turn"),
    ("wrong-type", |t| assert_eq!(object(t), with("priority", json!("2"))), "stop", "end_turn"),
    ("extra-key", |t| assert_eq!(object(t), with("confidence", json!(0.93))), "stop", "end_turn"),
    ("enum-miss", |t| assert_eq!(object(t), with("category", json!("payments"))), "stop", "end_turn"),
    ("invented-quote", |t| {
        assert_eq!(object(t), with("evidence", json!("charged three times")));
    }, "stop", "end_turn"),
    ("urgent-no-review", |t| {
        let mut made = with("priority", json!(1));
        made["needs_human"] = json!(false);
        assert_eq!(object(t), made);
    }, "stop", "end_turn"),
    ("wrong-category", |t| {
        assert_eq!(object(t), with("category", json!("shipping")));
    }, "stop", "end_turn"),
    ("quiet-refusal", |t| assert!(t.starts_with("I'm sorry, but I can't help")), "stop", "end_turn"),
    ("content-filter", |t| {
        assert_eq!(t, half());
    }, "content_filter", "refusal"),
    ("truncated", |t| {
        assert_eq!(t, half());
    }, "length", "max_tokens"),
    ("truncated-by-cap+need=2000", |t| {
        assert_eq!(t, half());
    }, "length", "max_tokens"),
    ("truncated-by-cap", |t| assert_eq!(object(t), gold()), "stop", "end_turn"),
    ("right-on-second", |t| {
        assert_eq!(object(t), with("category", json!("payments")));
    }, "stop", "end_turn"),
    ("right-after+k=1", |t| {
        assert_eq!(object(t), with("category", json!("payments")));
    }, "stop", "end_turn"),
    ("unknown-finish", |t| assert_eq!(object(t), gold()), "flux_exhausted", "flux_exhausted"),
    ("empty-content", |t| assert_eq!(t, ""), "stop", "end_turn"),
    ("think-tags", |t| {
        assert!(t.starts_with("<think>\n"));
        assert_eq!(object(t.split_once("</think>").expect("an end").1), gold());
    }, "stop", "end_turn"),
    ("unclosed", |t| assert_eq!(object(&format!("{t}}}")), gold()), "stop", "end_turn"),
];

#[tokio::test]
async fn each_structural_damage_is_the_only_one() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            mock.reset();
            for (model, check, openai, anthropic) in DAMAGES.iter().copied() {
                let case = case(&mock, dialect, form, model).await;
                let (text, finish) = case.said();
                check(&text);
                assert_eq!(finish, case.finish(openai, anthropic), "{}", case.name());
            }
        }
    }
}

#[tokio::test]
async fn the_right_answer_comes_on_the_second_ask_of_the_same_ticket() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            mock.reset();
            let wrong = with("category", json!("payments"));
            for (model, wanted) in [
                ("right-on-second", [&wrong, &gold(), &gold()]),
                ("right-after+k=2", [&wrong, &wrong, &gold()]),
            ] {
                for wanted in wanted {
                    // Another ticket in between has a count of its own.
                    let mut other = request(dialect, model);
                    other["messages"][0]["content"] = json!("Order 99 is late");
                    ask(&mock, dialect, &other).await;
                    let text = case(&mock, dialect, form, model).await.said().0;
                    assert_eq!(&object(&text), wanted, "{model}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_has_the_form_of_its_dialect() {
    let mock = knowing().await;
    for form in FORMS {
        let openai = case(&mock, Dialect::OpenAi, form, "refusal").await;
        assert_eq!(openai.said(), (String::new(), json!("stop")));
        if form == Form::Whole {
            let message = &openai.seen.json()["choices"][0]["message"];
            assert!(message["content"].is_null());
            assert!(message["refusal"].as_str().expect("a refusal").starts_with("I'm sorry"));
        } else {
            let refusal: String = data(&openai.seen.text())
                .iter()
                .filter_map(|d| serde_json::from_str::<Value>(d).ok())
                .filter_map(|c| c["choices"][0]["delta"]["refusal"].as_str().map(str::to_owned))
                .collect();
            assert_eq!(refusal, "I'm sorry, I cannot assist with that request.");
        }
        let anthropic = case(&mock, Dialect::Anthropic, form, "refusal").await;
        assert_eq!(anthropic.said(), (String::new(), json!("refusal")));
        assert!(anthropic.seen.text().contains("\"stop_details\":{\"type\":\"refusal\""));
    }
}

#[tokio::test]
async fn bodies_that_are_no_replies_come_with_status_200() {
    let mock = knowing().await;
    for dialect in BOTH {
        for form in FORMS {
            let empty = case(&mock, dialect, form, "empty-200").await;
            empty.ended(Ended::Clean, End::Complete);
            assert_eq!((empty.seen.status, empty.seen.body.len()), (200, 0));
            let page = case(&mock, dialect, form, "html-200").await;
            page.ended(Ended::Clean, End::Complete);
            assert!(page.seen.text().starts_with("<!DOCTYPE html>"));
            assert!(page.seen.header("content-type").starts_with("text/html"));
            let array = case(&mock, dialect, form, "json-array-200").await;
            assert!(array.seen.status == 200 && array.seen.json().is_array());
            let error = case(&mock, dialect, form, "error-in-200").await;
            assert!(error.seen.status == 200 && error.seen.json()["error"]["type"].is_string());
            let null = case(&mock, dialect, form, "null-finish").await;
            assert_eq!(null.said(), (gold().to_string(), Value::Null));
        }
    }
}
