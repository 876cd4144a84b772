//! A config that is right means what it says; a hostile one is refused in a sentence.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod config_world;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backstay::policy::{
    CapField, CredentialSource, LastResort, OnSemantic, Pinning, RefusalPolicy, StreamMode,
    Structured, Timer, Upstream,
};
use backstay_gateway::config::{
    CallLog, MAX_FILE, Outside, Problem, Settings, from_environment, from_text, load,
};
use config_world::outside;

/// The sample of the README, but for a schema that is in this folder.
const SAMPLE: &str = r#"
[server]
listen = "127.0.0.1:8080"
[keys.app]                          # callers; none needed on loopback
token = { env = "APP_KEY" }
tenant = "support"
[providers.openai]
dialect = "openai_chat"
base_url = "https://api.openai.com/v1"
api_keys = [{ env = "OPENAI_API_KEY" }]
[providers.anthropic]
dialect = "anthropic"
base_url = "https://api.anthropic.com/v1/"
api_keys = [{ env = "ANTHROPIC_API_KEY" }]
[providers.here]
dialect = "openai_chat"
base_url = "http://127.0.0.1:8081/v1"
connect = "500ms"
[models.main]                       # a target: one model at one provider
provider = "openai"
model = "gpt-x-2026-01-15"
context_tokens = 128000
[models.mirror]
provider = "anthropic"
model = "claude-x-20260115"
[models.local]
provider = "here"
model = "smollm"
structured = "none"
streams = false
max_concurrency = 4
max_request_bytes = 65536
retires = "2030-01-01"
[routes.triage]                     # what a caller asks for as `model`
tiers = ["main", "mirror", "local"] # in order; an inner list balances
deadline = "30s"
timeouts = { connect = "2s", first_token = "8s", gap = "5s", total = "20s" }
max_attempts = 5
reasks = 2
max_output_tokens = 300
max_output_tokens_ceiling = 600
prompt_version = "triage-v3"
schema = "good.schema.json"         # the caller's own response_format wins where it sends one
rules = [{ name = "evidence is a quote", check = "input.contains(reply.evidence)" }]
[routes.triage.last_resort]
reply = { category = "other", priority = 3, tags = ["a", 1.5, true] }
"#;

/// Two providers, to put routes on.
const GROUND: &str = r#"
[providers.a]
dialect = "openai_chat"
base_url = "http://127.0.0.1:1/v1"
connect = "700ms"
[providers.b]
dialect = "anthropic"
base_url = "http://[::1]:2"
connect = "900ms"
[models.a]
provider = "a"
model = "x"
[models.b]
provider = "b"
model = "y"
"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/schemas")
}

fn read(text: &str) -> Result<Settings, Vec<Problem>> {
    from_text(text, "backstay.toml", &folder(), &outside())
}

fn settled(text: &str) -> Settings {
    read(text).unwrap_or_else(|problems| panic!("{}", shown(&problems)))
}

fn shown(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect::<Vec<_>>().concat()
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn the_sample_means_what_it_says() {
    let settings = settled(SAMPLE);
    assert_eq!(shown(&settings.warnings), "");
    assert_eq!(settings.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.server.max_body_bytes, 32 << 20);
    assert_eq!(settings.server.drain, seconds(30));
    assert_eq!(settings.server.call_log, CallLog::Sqlite(folder().join("backstay.sqlite")));
    let [key] = settings.keys.as_slice() else { panic!("one key") };
    assert_eq!((key.name.as_str(), key.tenant.as_str()), ("app", "support"));
    assert_eq!(key.token.expose(), "app_key");

    let policy = &settings.policy;
    let openai = &policy.providers["openai"];
    assert_eq!(openai.base_url.to_string(), "https://api.openai.com/v1");
    assert_eq!(openai.cap_field, CapField::MaxCompletionTokens);
    assert!(matches!(&openai.credentials, CredentialSource::Own(keys) if keys.len() == 1));
    assert_eq!(policy.providers["anthropic"].base_url.to_string(), "https://api.anthropic.com/");
    let here = &policy.providers["here"];
    assert!(matches!(here.credentials, CredentialSource::Nobody));
    assert_eq!(here.cap_field, CapField::MaxTokens);

    let local = &policy.targets["local"];
    assert_eq!(local.model.as_deref(), Some("smollm"));
    assert_eq!((local.pinning, local.structured), (Pinning::Pinned, Structured::Nothing));
    assert_eq!((local.streams, local.limits.places.ceiling), (false, 4));
    assert_eq!(local.max_request_bytes, 65_536);
    assert_eq!(local.retires, Some(jiff::civil::date(2030, 1, 1)));
    assert_eq!(policy.targets["main"].context_tokens, Some(128_000));

    let route = policy.route("triage").unwrap();
    let tiers: Vec<Vec<&str>> =
        route.tiers.iter().map(|tier| tier.iter().map(|t| t.id.as_str()).collect()).collect();
    assert_eq!(tiers, [["main"], ["mirror"], ["local"]]);
    assert_eq!((route.deadline, route.max_attempts, route.reasks), (seconds(30), 5, 2));
    let t = route.timeouts;
    assert_eq!(t.connect, Some(seconds(2)));
    assert_eq!([t.first_token, t.gap, t.total], [8, 5, 20].map(|s| Timer::Set(seconds(s))));
    assert_eq!((t.least_first_token, t.least_gap), (seconds(5), seconds(20)));
    assert_eq!((route.max_output_tokens, route.max_output_tokens_ceiling), (Some(300), Some(600)));
    assert_eq!(route.prompt_version.as_deref(), Some("triage-v3"));
    assert_eq!(route.schema.as_ref().unwrap()["required"][0], "category");
    assert_eq!(route.rules[0].check, "input.contains(reply.evidence)");
    assert_eq!(route.stream, Some(StreamMode::Buffered));
    let reply = serde_json::json!({ "category": "other", "priority": 3, "tags": ["a", 1.5, true] });
    assert_eq!(route.last_resort, Some(LastResort::Json(reply.into())));
}

#[test]
fn what_is_left_out_has_its_documented_default() {
    let settings = settled(&format!("{GROUND}[routes.r]\ntiers = [\"a\", [\"a\", \"b\"]]"));
    let route = settings.policy.route("r").unwrap();
    assert_eq!(route.deadline, seconds(600));
    assert_eq!(route.timeouts.connect, None, "as each target's provider has it");
    let own = settings.policy.providers.values().map(|provider| provider.connect);
    assert_eq!(own.collect::<Vec<_>>(), [700, 900].map(Duration::from_millis));
    let t = route.timeouts;
    assert_eq!([t.first_token, t.gap, t.total], [120, 60, 600].map(|s| Timer::Auto(seconds(s))));
    assert_eq!((route.max_attempts, route.reasks), (4, 2));
    assert_eq!(route.stream, None);
    assert_eq!(route.upstream, Upstream::Auto);
    assert_eq!(route.on_refusal, RefusalPolicy::LastResort);
    assert_eq!(route.on_semantic, OnSemantic::Reask);
    assert_eq!((route.max_output_tokens, route.last_resort.is_none()), (None, true));
}

#[test]
fn limits_that_are_left_out_are_no_longer_than_the_attempt() {
    let text = format!("{GROUND}[routes.r]\ntiers = [\"a\"]\ndeadline = \"500ms\"");
    let limits = settled(&text).policy.routes[0].timeouts;
    let half = Duration::from_millis(500);
    assert_eq!(limits.connect_at(seconds(3)), half);
    assert_eq!([limits.first_token, limits.gap, limits.total], [Timer::Auto(half); 3]);
}

#[test]
fn a_timer_is_set_or_as_measured_and_each_has_its_least() {
    let written = r#"{ first_token = "auto", gap = "3s", total = "auto", least_first_token = "1s", least_gap = "2s" }"#;
    let text = format!("{GROUND}[routes.r]\ntiers = [\"a\"]\ntimeouts = {written}");
    let t = settled(&text).policy.routes[0].timeouts;
    let wanted = [Timer::Auto(seconds(120)), Timer::Set(seconds(3)), Timer::Auto(seconds(600))];
    assert_eq!([t.first_token, t.gap, t.total], wanted);
    assert_eq!((t.least_first_token, t.least_gap), (seconds(1), seconds(2)));
}

#[test]
fn attempts_by_default_are_two_more_than_tiers_and_at_most_six() {
    for (tiers, attempts) in [("\"a\"", 3), ("\"a\",\"b\",\"a\",\"b\",\"a\"", 6)] {
        let settings = settled(&format!("{GROUND}[routes.r]\ntiers = [{tiers}]"));
        assert_eq!(settings.policy.routes[0].max_attempts, attempts, "{tiers}");
    }
}

#[test]
fn exact_routes_come_first_then_the_longest_pattern() {
    let names = ["\"*\"", "\"gpt-*\"", "\"gpt-5*\"", "zeta", "\"gpt-5\""];
    let routes = names.map(|name| format!("[routes.{name}]\ntiers = [\"a\"]\n")).concat();
    let policy = settled(&format!("{GROUND}{routes}")).policy;
    let order: Vec<&str> = policy.routes.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(order, ["gpt-5", "zeta", "gpt-5*", "gpt-*", "*"]);
    for (model, route) in
        [("gpt-5", "gpt-5"), ("gpt-5-mini", "gpt-5*"), ("gpt-4", "gpt-*"), ("x", "*")]
    {
        assert_eq!(policy.route(model).unwrap().name, route);
    }
}

#[test]
fn a_revision_changes_with_what_changes_an_answer_and_with_nothing_else() {
    let revision = |text: &str| {
        let settings = settled(text);
        settings.policy.route("triage").unwrap().revision.clone()
    };
    let first = revision(SAMPLE);
    assert_eq!(first.len(), 12);
    for (from, to) in [
        ("deadline = \"30s\"", "deadline = \"40s\""),
        ("gap = \"5s\"", "gap = \"6s\""),
        ("max_attempts = 5", "max_attempts = 4"),
        ("listen = \"127.0.0.1:8080\"", "listen = \"127.0.0.1:8081\""),
        ("tenant = \"support\"", "tenant = \"sales\""),
        ("# a target", "# another comment"),
    ] {
        assert!(SAMPLE.contains(from), "{from}");
        assert_eq!(revision(&SAMPLE.replace(from, to)), first, "{to}");
    }
    for (from, to) in [
        ("gpt-x-2026-01-15", "gpt-x-2026-02-15"),
        ("\"mirror\", \"local\"]", "\"local\", \"mirror\"]"),
        ("triage-v3", "triage-v4"),
        ("max_output_tokens = 300", "max_output_tokens = 301"),
        ("max_output_tokens_ceiling = 600", "max_output_tokens_ceiling = 601"),
        ("input.contains", "!input.contains"),
        ("good.schema.json", "other.schema.json"),
        ("structured = \"none\"", "structured = \"json_object\""),
        ("reasks = 2", "reasks = 2\nstop = [\"END\"]"),
    ] {
        assert!(SAMPLE.contains(from), "{from}");
        assert_ne!(revision(&SAMPLE.replace(from, to)), first, "{to}");
    }
}

#[test]
fn a_gateway_others_can_reach_needs_keys() {
    let open = "[server]\nlisten = \"0.0.0.0:80\"\n";
    assert_eq!(read(open).unwrap_err()[0].code, "open-gateway");
    let guarded = format!("{open}[keys.app]\ntoken = {{ env = \"APP_KEY\" }}");
    assert_eq!(settled(&guarded).server.listen.port(), 80);
    for loopback in ["127.0.0.1:1", "127.8.9.10:1", "[::1]:1", "localhost:1"] {
        settled(&format!("[server]\nlisten = \"{loopback}\""));
    }
}

#[test]
fn a_call_log_is_where_it_is_said_to_be() {
    for (word, place) in [
        ("sqlite", CallLog::Sqlite(folder().join("backstay.sqlite"))),
        ("logs/calls.db", CallLog::Sqlite(folder().join("logs/calls.db"))),
        ("/var/lib/calls.sqlite", CallLog::Sqlite("/var/lib/calls.sqlite".into())),
        ("memory", CallLog::Memory),
        ("off", CallLog::Off),
    ] {
        let settings = settled(&format!("[server]\ncall_log = \"{word}\""));
        assert_eq!(settings.server.call_log, place);
    }
}

#[test]
fn the_triage_example_is_right() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/triage/backstay.toml");
    let settings =
        load(&path, &outside()).unwrap_or_else(|problems| panic!("{}", shown(&problems)));
    assert_eq!(shown(&settings.warnings), "");
    assert!(settings.policy.route("triage").unwrap().schema.is_some());
}

// --- no file ---

type Env = dyn Fn(&str) -> Option<String>;

fn with_variables(env: &Env) -> Outside<'_> {
    Outside { env, ..outside() }
}

#[test]
fn without_a_file_the_keys_in_the_environment_make_the_routes() {
    let openai = |name: &str| (name == "OPENAI_API_KEY").then(|| "k".to_owned());
    let anthropic = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "k".to_owned());
    let both = |name: &str| name.ends_with("_API_KEY").then(|| "k".to_owned());
    let table: [(&Env, &str, &str); 7] = [
        (&both, "gpt-5", "openai"),
        (&both, "o3-mini", "openai"),
        (&both, "claude-sonnet-4-5", "anthropic"),
        (&both, "anything", "openai"),
        (&openai, "claude-sonnet-4-5", "openai"),
        (&anthropic, "gpt-5", "anthropic"),
        (&anthropic, "claude-sonnet-4-5", "anthropic"),
    ];
    for (env, model, provider) in table {
        let settings = from_environment(&with_variables(env)).unwrap();
        assert_eq!(shown(&settings.warnings), "");
        let route = settings.policy.route(model).unwrap();
        let target = &route.tiers[0][0];
        assert_eq!((target.provider.name.as_str(), &target.model), (provider, &None), "{model}");
    }
}

#[test]
fn without_a_file_and_without_a_key_the_next_command_is_named() {
    for env in [|_: &str| None, |_: &str| Some(String::new())] {
        let problems = from_environment(&with_variables(&env)).unwrap_err();
        assert_eq!(
            shown(&problems),
            "error: there is no config, and no key in the environment\n = help: name a file with \
             `-c FILE`, or set OPENAI_API_KEY or ANTHROPIC_API_KEY; `backstay demo` needs neither\n"
        );
    }
}

#[test]
fn a_key_with_a_line_break_is_refused_and_not_shown() {
    let env = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-torn\n".to_owned());
    let problems = from_environment(&with_variables(&env)).unwrap_err();
    assert_eq!(problems[0].code, "bad-secret");
    assert!(!shown(&problems).contains("sk-torn"));
}

// --- files that are not what they seem ---

/// Loads `bytes` as a file of its own and gives what was told.
fn loaded(name: &str, bytes: &[u8]) -> Result<Settings, String> {
    let path = std::env::temp_dir().join(format!("backstay-{}-{name}.toml", std::process::id()));
    fs::write(&path, bytes).unwrap();
    let result = load(&path, &outside());
    fs::remove_file(&path).unwrap();
    let file = path.display().to_string();
    result.map_err(|problems| shown(&problems).replace(&file, "FILE"))
}

#[test]
fn a_file_that_is_not_there_is_told_with_what_else_to_do() {
    let problems = load(Path::new("/nowhere/backstay.toml"), &outside()).unwrap_err();
    assert_eq!(problems[0].code, "unreadable");
    assert!(shown(&problems).contains("/nowhere/backstay.toml"));
    assert_eq!(load(&folder(), &outside()).unwrap_err()[0].code, "unreadable");
}

#[test]
fn a_file_over_the_limit_is_refused_unread() {
    let large = vec![b'#'; usize::try_from(MAX_FILE).unwrap() + 1];
    assert!(loaded("large", &large).unwrap_err().contains("is larger than 1048576 bytes"));
    assert!(loaded("full", &large[1..]).is_ok());
    let text = String::from_utf8(large).unwrap();
    assert_eq!(read(&text).unwrap_err()[0].code, "unreadable");
}

#[test]
fn bytes_that_are_not_text_are_pointed_at() {
    let told = loaded("latin", b"[keys.app]\ntenant = \"caf\xe9\"\n").unwrap_err();
    assert!(told.starts_with("error: FILE is not UTF-8\n --> FILE:2:14\n"), "{told}");
    let told = loaded("nul", b"[server]\nlisten = \"a\0b\"\n").unwrap_err();
    assert!(told.contains(" --> FILE:2:"), "{told}");
    assert!(!told.contains('\0'), "{told}");
    let told = shown(&read("[routes.\"a\\u001b[31m\u{202e}\"]\n\"\\u001b]0;\" = 1").unwrap_err());
    assert!(!told.contains(['\u{1b}', '\u{202e}']), "{told}");
}

#[test]
fn a_byte_order_mark_and_crlf_change_nothing() {
    let text = format!("\u{feff}{}", SAMPLE.replace('\n', "\r\n"));
    settled(&text);
    let told = shown(&read("\u{feff}[server]\r\nlistn = 1\r\n").unwrap_err());
    assert!(
        told.contains("--> backstay.toml:2:1\n  |\n2 | listn = 1\n  | ^^^^^ did you"),
        "{told}"
    );
}

fn lines(count: usize, line: &dyn Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn of_very_many_problems_the_first_hundred_are_told() {
    let text = lines(110, &|n| format!("[keys.k{n}]\n"));
    let problems = read(&text).unwrap_err();
    assert_eq!(problems.len(), 101);
    assert_eq!(problems[100].to_string(), "warning: problems not told: 10");
}

#[test]
fn deep_and_long_files_are_refused_in_a_few_lines() {
    let deep = [
        format!("a = {}", "[".repeat(500_000)),
        format!("a = {}", "{a=".repeat(300_000)),
        format!("{}x = 1", "a.".repeat(500_000)),
        format!("[{}x]", "a.".repeat(500_000)),
        "[[a]]\n".repeat(100_000),
        "[routes.a]\n".repeat(90_000),
        lines(60_000, &|n| format!("k{n} = {n}\n")),
        format!("[routes.r]\ntiers = [{}]", "\"m\",".repeat(200_000)),
        format!("[server]\nlisten = \"{}\"", "9".repeat(1_000_000)),
        format!("[server]\n{} = 1", "l".repeat(1_000_000)),
        lines(20_000, &|n| format!("[providers.p{n}]\nx = 1\n")),
    ];
    for text in &deep {
        let problems = read(text).unwrap_err();
        let head: String = text.chars().take(40).collect();
        let most = problems.iter().map(|problem| problem.to_string().len()).max().unwrap();
        assert!(most < 4_000, "{head}: {most} bytes for one problem");
        assert!(problems.len() <= 1_000, "{head}: {} problems", problems.len());
    }
}

mod any_text {
    use proptest::prelude::*;

    use super::{SAMPLE, read, shown};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn never_panics(text in "\\PC{0,200}|[\\[\\]{}=\".,a-z0-9 \n'#]{0,200}") {
            if let Err(problems) = read(&text) {
                shown(&problems);
            }
        }

        #[test]
        fn never_panics_for_a_sample_with_a_hole(from in 0..SAMPLE.len(), length in 0..40usize, put in "\\PC{0,5}") {
            let to = (from + length).min(SAMPLE.len());
            let mut bytes = SAMPLE.as_bytes().to_vec();
            bytes.splice(from..to, put.bytes());
            let text = String::from_utf8_lossy(&bytes);
            if let Err(problems) = read(&text) {
                prop_assert!(!problems.is_empty());
                prop_assert!(!shown(&problems).contains("app_key"));
            }
        }
    }
}
