//! Errors inside a 200, in every form that servers give them: before the first content like an error
//! response, after it once inside the stream, and never an answer.

use backstay_wire::Dialect;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::reported::played::Played;
use crate::told;
use crate::world::{BOTH, HELLO, Setup, World, request, streamed};

/// The bytes of an error in a stream, and our code for it.
type Form = (&'static str, &'static str);

const ANY: &[Form] = &[
    ("{\"error\":{\"message\":\"no room\",\"code\":503}}\n", "provider_overloaded"),
    ("error: {\"message\":\"no room\",\"code\":503}\n\n", "provider_overloaded"),
    ("event: error\ndata: {\"message\":\"slow\",\"code\":429}\n\n", "provider_rate_limited"),
    ("event: error\ndata: it broke\n\n", "provider_error"),
    ("data: {\"error\":\"Rate limit exceeded\"}\n\n", "provider_rate_limited"),
    (
        "data: {\"error\":{\"message\":\"m\",\"type\":\"overloaded_error\"}}\n\n",
        "provider_overloaded",
    ),
    ("data: {\"error\":{\"message\":\"Error code: 504 - late\"}}\n\n", "provider_timeout"),
    (
        "data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"[HTTP 502] <html>\"}}\n\n",
        "provider_error",
    ),
    ("data: {\"code\":429,\"message\":\"slow\"}\n\n", "provider_rate_limited"),
    ("data: {\"detail\":\"Service Unavailable\"}\n\n", "provider_overloaded"),
    ("data: {\"errors\":[{\"message\":\"m\",\"code\":503}]}\n\n", "provider_overloaded"),
    (
        "data: [{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}]\n\n",
        "provider_rate_limited",
    ),
    ("data: Internal Server Error\n\n", "provider_error"),
    ("data: \"upstream error: 503\"\n\n", "provider_overloaded"),
];

const OPENAI: &[Form] = &[
    ("data: {\"choices\":[],\"error\":{\"code\":502,\"message\":\"m\"}}\n\n", "provider_error"),
    (
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\",\
         \"error\":{\"code\":429,\"message\":\"m\"}}]}\n\n",
        "provider_rate_limited",
    ),
    ("data: {\"object\":\"error\",\"message\":\"m\",\"code\":503}\n\n", "provider_overloaded"),
];

/// A stream of `dialect` up to its first piece of text.
fn begun(dialect: Dialect) -> String {
    match dialect {
        Dialect::OpenaiChat => format!(
            "data: {}\n\n",
            json!({"id": "c1", "model": "m", "choices": [
                {"index": 0, "delta": {"content": "Hel"}, "finish_reason": null}]})
        ),
        Dialect::Anthropic => [
            json!({"type": "message_start", "message": {"id": "m1", "type": "message",
                "role": "assistant", "content": [], "model": "m", "usage": {"input_tokens": 2,
                "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": "Hel"}}),
        ]
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("")))
        .concat(),
    }
}

fn exchange(steps: &[&str]) -> Value {
    let texts = steps.iter().map(|text| json!({ "text": text }));
    let steps: Vec<Value> = texts.chain([json!({"close": "clean"})]).collect();
    json!({"sse": {"http_status": 200, "transport": steps}})
}

/// Routes `early-N`, `late-N` and, with a healthy second tier, `backed-N`, a form each.
async fn world(forms: &[(Dialect, Form)]) -> (World, Vec<Played>) {
    let mut setup = Setup::new().target("healthy", "openai", &["healthy"]);
    let mut players = Vec::new();
    for (at, (dialect, (bytes, _))) in forms.iter().enumerate() {
        let begun = begun(*dialect);
        for (kind, steps) in [("early", vec![*bytes]), ("late", vec![&begun, *bytes])] {
            let name = format!("{kind}-{at}");
            let played = Played::start(vec![exchange(&steps)]).await;
            setup = setup
                .tables(&played.provider_in(&format!("of-{name}"), *dialect))
                .target(&format!("at-{name}"), &format!("of-{name}"), &[])
                .route(&name, &[&format!("at-{name}")], "max_attempts = 1\ndeadline = \"6s\"");
            players.push(played);
        }
        let early = format!("at-early-{at}");
        setup = setup.route(&format!("backed-{at}"), &[&early, "healthy"], "deadline = \"9s\"");
    }
    (setup.start().await, players)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_in_a_stream_is_an_error_in_every_form_before_content_and_after_it() {
    let any = BOTH.into_iter().flat_map(|dialect| ANY.iter().map(move |form| (dialect, *form)));
    let forms: Vec<(Dialect, Form)> =
        any.chain(OPENAI.iter().map(|form| (Dialect::OpenaiChat, *form))).collect();
    let (world, _players) = world(&forms).await;
    let one = async |at: usize, caller: Dialect| {
        let (provider, (bytes, code)) = forms[at];
        let ask = async |kind: &str| {
            let body = streamed(request(caller, &format!("{kind}-{at}"), HELLO));
            world.ask(caller, &body).await
        };
        let (early, late, backed) = (ask("early").await, ask("late").await, ask("backed").await);
        let mut wrongs = told::not_an_error(caller, &early.json(), code);
        if early.status < 400 {
            wrongs.push(format!("early: {} {}", early.status, early.text()));
        }
        let told = told::stream(caller, &late);
        match told.errors.as_slice() {
            [error] if (told.terminals, told.late, told.text.as_str()) == (0, 0, "Hel") => {
                wrongs.extend(told::not_an_error(caller, error, code));
            }
            _ => wrongs.push(format!("late: {}", late.text())),
        }
        let told = told::stream(caller, &backed);
        if (told.terminals, told.errors.len(), told.text.is_empty()) != (1, 0, false) {
            wrongs.push(format!("backed: {} {}", backed.status, backed.text()));
        }
        let name = format!("{provider:?} {caller:?} {bytes:?}");
        wrongs.into_iter().map(|wrong| format!("{name}: {wrong}")).collect::<Vec<_>>()
    };
    let all = (0..forms.len()).flat_map(|at| BOTH.into_iter().map(move |caller| (at, caller)));
    let found = join_all(all.map(|(at, caller)| one(at, caller))).await;
    let wrongs: Vec<String> = found.into_iter().flatten().collect();
    world.stop().await;
    assert!(wrongs.is_empty(), "\n{}", wrongs.join("\n"));
}

/// Bodies under a 200 that are no reply, and our code for each; the same for both dialects.
const BODIES: &[(&str, &str)] = &[
    (r#"{"error":{"message":"m","code":503}}"#, "provider_overloaded"),
    (r#"{"error":"Rate limit exceeded"}"#, "provider_rate_limited"),
    (r#"{"code":429,"message":"slow"}"#, "provider_rate_limited"),
    (r#"{"detail":"Service Unavailable"}"#, "provider_overloaded"),
    (r#"{"success":false,"message":"m"}"#, "provider_error"),
    (r#"[{"error":{"code":429}}]"#, "provider_rate_limited"),
    (r#"{"hello":"you"}"#, "reply_malformed"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_as_a_whole_body_is_an_error_whether_a_stream_was_asked_for_or_not() {
    let mut setup = Setup::new();
    let mut players = Vec::new();
    for (at, (dialect, (body, _))) in BOTH
        .into_iter()
        .flat_map(|dialect| BODIES.iter().map(move |row| (dialect, row)))
        .enumerate()
    {
        let body: Value = serde_json::from_str(body).expect("JSON");
        let kind = json!({"content-type": "application/json"});
        let exchange = json!({"status": 200, "headers": kind, "body": body});
        let played = Played::start(vec![exchange]).await;
        setup = setup
            .tables(&played.provider_in(&format!("of-{at}"), dialect))
            .target(&format!("at-{at}"), &format!("of-{at}"), &[])
            .route(&format!("r-{at}"), &[&format!("at-{at}")], "max_attempts = 1");
        players.push(played);
    }
    let world = setup.start().await;
    let mut wrongs = Vec::new();
    for at in 0..players.len() {
        let (body, code) = BODIES[at % BODIES.len()];
        let plain = request(Dialect::OpenaiChat, &format!("r-{at}"), HELLO);
        for ask in [plain.clone(), streamed(plain)] {
            let seen = world.ask(Dialect::OpenaiChat, &ask).await;
            let told = told::not_an_error(Dialect::OpenaiChat, &seen.json(), code);
            wrongs.extend(told.into_iter().map(|why| format!("{at} {body}: {why}")));
        }
    }
    world.stop().await;
    assert!(wrongs.is_empty(), "\n{}", wrongs.join("\n"));
}
