//! `backstay serve` plays the faults that callers ask for: no provider is needed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod served;

use std::process::Stdio;

use served::Served;

const CONFIG: &str = r#"
[server]
call_log = "off"
[providers.nobody]
dialect = "openai_chat"
base_url = "http://127.0.0.1:1/v1"
[models.main]
provider = "nobody"
model = "m"
pinned = true
[routes.main]
tiers = ["main"]
deadline = "5s"
"#;

const BODY: &str = r#"{"model":"main","messages":[{"role":"user","content":"hello"}]}"#;

#[test]
fn a_served_gateway_plays_what_is_asked_for_and_names_the_nearest_of_what_is_not() {
    let served = Served::start("simulate", CONFIG, Stdio::null());
    for (header, status, words) in [
        ("x-backstay-simulate: healthy", "200 OK", "x-backstay-notes: simulated healthy"),
        ("x-backstay-simulate: context-exceeded", "400 Bad Request", "context_length_exceeded"),
        ("x-backstay-simulate: silent", "400 Bad Request", "the nearest is `silence`"),
        ("accept: */*", "502 Bad Gateway", "provider_unreachable"),
    ] {
        let response = served.ask("POST /v1/chat/completions", &format!("{header}\r\n"), BODY);
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{header}: {response}");
        assert!(response.contains(words), "{header}: {response}");
    }
}
