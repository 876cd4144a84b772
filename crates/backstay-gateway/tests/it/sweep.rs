//! Every behaviour of the mock in every form of call: whatever happens, a call ends in time, valid
//! or typed, and what the gateway tells of its attempts is what the provider saw.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use backstay::validate::schema::Schema;
use backstay_mock::{End, behaviours};
use backstay_wire::Dialect;
use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use crate::client::{Ended, Seen};
use crate::told::{self, Told};
use crate::world::{HELLO, Setup, TICKET, TRIAGE, World, provider, request, short, streamed};

const DEADLINE: Duration = Duration::from_millis(2500);

/// Timers so short that most silences are met twice within the deadline.
const ROUTE: &str = "deadline = \"2500ms\"\n\
    timeouts = { connect = \"300ms\", first_token = \"400ms\", gap = \"300ms\", total = \"900ms\" }\n\
    max_output_tokens = 300\nmax_output_tokens_ceiling = 600";

/// Calls under way at once: so few that two cores answer each within its timers.
const AT_ONCE: usize = 48;

/// One call of the sweep.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    caller: Dialect,
    streams: bool,
    structured: bool,
    backed: bool,
}

impl Case {
    fn all(caller: Dialect, target: Dialect) -> Vec<(&'static str, Self)> {
        let mut all = Vec::new();
        for behaviour in behaviours() {
            for form in 0..8_usize {
                let (streams, structured, backed) = (form & 1 > 0, form & 2 > 0, form & 4 > 0);
                let name = format!("{}-{}{}{form}", behaviour.name, short(caller), short(target));
                all.push((behaviour.name, Self { name, caller, streams, structured, backed }));
            }
        }
        all
    }

    fn body(&self) -> Value {
        let text = if self.structured { TICKET } else { HELLO };
        let body = request(self.caller, &self.name, text);
        if self.streams { streamed(body) } else { body }
    }
}

/// What breaks the promise in what the caller saw.
fn broken(case: &Case, seen: &Seen, schema: &Schema) -> Vec<String> {
    let mut wrongs = Vec::new();
    if seen.ended != Ended::Clean {
        return vec![format!("the answer did not end: {seen:?}")];
    }
    if seen.took > DEADLINE + Duration::from_millis(400) {
        wrongs.push(format!("took {:?}", seen.took));
    }
    if seen.status != 200 {
        let code = seen.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
        wrongs.extend(told::not_typed(case.caller, seen, seen.status, &code));
        if seen.status == 500 || code == "internal" || code.is_empty() {
            wrongs.push(format!("not a failure anybody expects: {}", seen.text()));
        }
        return wrongs;
    }
    let told = if case.streams {
        told::stream(case.caller, seen)
    } else {
        told::plain(case.caller, &seen.json())
    };
    if case.streams {
        wrongs.extend(one_end(case, &told, seen));
    }
    let refused = seen.header("x-backstay-outcome") == "refused";
    if case.structured && !refused {
        let value: Value = serde_json::from_str(&told.text).unwrap_or_default();
        if let Err(unfit) = schema.check(&value) {
            wrongs.push(format!("invalid got out: {:?}: {}", unfit.errors, told.text));
        }
    }
    if told.errors.is_empty() && told.finish.is_none() {
        wrongs.push(format!("success without a finish: {}", seen.text()));
    }
    wrongs
}

/// A stream ends once: with its terminal event, or with one error.
fn one_end(case: &Case, told: &Told, seen: &Seen) -> Vec<String> {
    let ends = told.ends();
    if ![told::WHOLE, told::BROKEN].contains(&ends) {
        return vec![format!("terminals, errors, late, broken {ends:?}: {}", seen.text())];
    }
    if case.structured && !told.errors.is_empty() {
        return vec!["a buffered stream broke in-band".to_owned()];
    }
    Vec::new()
}

/// One call of the sweep, and how many requests the caller was told of.
async fn one(world: &World, case: Case, schema: &Schema) -> (Case, usize, Vec<String>) {
    let seen = world.ask(case.caller, &case.body()).await;
    let wrongs = broken(&case, &seen, schema);
    let wrongs = wrongs.into_iter().map(|wrong| format!("{}: {wrong}", case.name)).collect();
    (case, seen.attempts() + seen.resent(), wrongs)
}

/// Compares what callers were told with what the provider saw, when all is over.
async fn untrue(world: &World, told: &[(Case, usize)]) -> Vec<String> {
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut wrongs = Vec::new();
    for entry in world.mock.log() {
        if entry.end == End::Pending {
            wrongs.push(format!("{}: still under way", entry.model));
        }
        let name = entry.model.rsplit_once('-').map(|(name, _)| name.to_owned());
        *seen.entry(name.unwrap_or_default()).or_default() += 1;
    }
    let mut unseen = Vec::new();
    for (case, attempts) in told {
        let requests = seen.get(&case.name).copied().unwrap_or_default();
        let wrong = format!("{}: {attempts} attempts told, {requests} seen", case.name);
        match requests.cmp(attempts) {
            Ordering::Greater => wrongs.push(wrong),
            Ordering::Less => unseen.push(wrong),
            Ordering::Equal => {}
        }
    }
    // On a busy machine an attempt may be given up before the provider had it.
    if unseen.len() > told.len() / 50 {
        wrongs.extend(unseen);
    }
    wrongs
}

async fn sweep(caller: Dialect, target: Dialect) {
    let structured = format!("{ROUTE}\n{TRIAGE}");
    let mut setup = Setup::new();
    for (behaviour, case) in Case::all(caller, target) {
        let route = if case.structured { structured.as_str() } else { ROUTE };
        setup = if case.backed {
            setup.backed(&case.name, provider(target), &[behaviour], route)
        } else {
            setup.alone(&case.name, provider(target), &[behaviour], route)
        };
    }
    let world = setup.start().await;
    let schema = include_str!("../../../../examples/triage/triage.schema.json");
    let schema =
        Schema::compile(&serde_json::from_str(schema).expect("JSON")).expect("it compiles");
    let cases = stream::iter(Case::all(caller, target).into_iter().map(|(_, case)| case));
    let ends: Vec<(Case, usize, Vec<String>)> =
        cases.map(|case| one(&world, case, &schema)).buffer_unordered(AT_ONCE).collect().await;
    let mut told = Vec::new();
    let mut wrongs = Vec::new();
    for (case, attempts, wrong) in ends {
        told.push((case, attempts));
        wrongs.extend(wrong);
    }
    wrongs.extend(untrue(&world, &told).await);
    world.stop().await;
    let shown: Vec<&str> = wrongs.iter().take(40).map(String::as_str).collect();
    assert!(wrongs.is_empty(), "{} wrongs\n{}", wrongs.len(), shown.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_an_openai_provider_does_a_call_ends_in_time_valid_or_typed() {
    sweep(Dialect::OpenaiChat, Dialect::OpenaiChat).await;
    sweep(Dialect::Anthropic, Dialect::OpenaiChat).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_an_anthropic_provider_does_a_call_ends_in_time_valid_or_typed() {
    sweep(Dialect::OpenaiChat, Dialect::Anthropic).await;
    sweep(Dialect::Anthropic, Dialect::Anthropic).await;
}
