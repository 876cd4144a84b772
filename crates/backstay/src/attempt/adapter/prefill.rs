//! Gives a target the beginning of its own reply, to go on with it.

use backstay_wire::scan::{Edit, scan};
use bytes::Bytes;
use serde_json::{Value, json};

use super::MAX_DEPTH;
use crate::policy::Prefill;

/// Names of the output cap.
const CAPS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Bytes that are taken for a token of what was sent already: more than most texts have, so that a
/// continuation rather ends late than early at the caller's cap.
const BYTES_PER_TOKEN: u64 = 6;

/// `body` with `text` as the last message, the assistant's, and a cap without what `text` took of it.
/// `None`: the body is not of the form that takes one.
pub(super) fn given(body: &Bytes, text: &str, form: Prefill) -> Option<Bytes> {
    let head = scan(body, MAX_DEPTH).ok()?;
    let messages = std::str::from_utf8(head.raw(body, "messages")?).ok()?;
    let before = messages.trim_end().strip_suffix(']')?.trim_end();
    let mut message = json!({ "role": "assistant", "content": text });
    if form == Prefill::Prefix {
        message["prefix"] = Value::Bool(true);
    }
    let mut edits = vec![Edit::Set("messages", format!("{before},{message}]"))];
    if form == Prefill::ContinueFinalMessage {
        edits.push(Edit::Set("continue_final_message", "true".into()));
        edits.push(Edit::Set("add_generation_prompt", "false".into()));
    }
    let took = text.len() as u64 / BYTES_PER_TOKEN;
    for name in CAPS {
        let cap = head.raw(body, name).and_then(|raw| serde_json::from_slice::<u64>(raw).ok());
        let left = cap.map(|cap| cap.saturating_sub(took).max(1));
        edits.extend(left.map(|left| Edit::Set(name, left.to_string())));
    }
    Some(Bytes::from(head.edit(body, &edits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: Prefill) -> Value {
        let body = Bytes::from_static(
            br#"{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"hi"} ],"own":1}"#,
        );
        serde_json::from_slice(&given(&body, "eight by", form).unwrap()).unwrap()
    }

    #[test]
    fn each_form_says_it_as_its_servers_want_it_and_the_cap_shrinks() {
        let said = read(Prefill::Assistant);
        let last = json!({"role": "assistant", "content": "eight by"});
        let messages = json!([{"role": "user", "content": "hi"}, last]);
        let whole = json!({"model": "m", "max_tokens": 9, "messages": messages, "own": 1});
        assert_eq!(said, whole);
        assert_eq!(read(Prefill::Prefix)["messages"][1]["prefix"], true);
        let said = read(Prefill::ContinueFinalMessage);
        assert_eq!(
            (&said["continue_final_message"], &said["add_generation_prompt"]),
            (&json!(true), &json!(false))
        );
    }

    #[test]
    fn a_body_of_another_form_is_left_alone() {
        for body in ["{}", "[]", r#"{"messages":7}"#, "{"] {
            assert_eq!(given(&Bytes::from_static(body.as_bytes()), "a", Prefill::Assistant), None);
        }
    }
}
