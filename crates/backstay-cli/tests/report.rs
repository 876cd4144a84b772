//! `backstay report` over a call log that is made here: what it prints, and the page that shows it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use backstay::record::{CallLog, Note, Row, Step, Trail};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/report.md");

/// 2026-11-29 12:00 UTC.
const NOON: u64 = 1_795_953_600_000;

const CONFIG: &str = r#"
[providers.hub]
dialect = "openai_chat"
base_url = "http://127.0.0.1:9/v1"
[models.main]
provider = "hub"
model = "m-2026-01-15"
pinned = true
input_price = 2
output_price = 8
[models.mirror]
provider = "hub"
model = "n-2026-01-15"
pinned = true
[routes.triage]
tiers = ["main", "mirror"]
"#;

fn sent(attempt: u32, target: &str) -> Step {
    Step::Sent {
        attempt,
        target: target.into(),
        tier: 1,
        form: "plain".into(),
        fingerprint: String::new(),
        limits_ms: [0; 4],
        limits_from: Default::default(),
        budget: None,
        losses: Vec::new(),
        lowered: Vec::new(),
    }
}

fn came(attempt: u32, fault: Option<&'static str>) -> Step {
    Step::Came {
        attempt,
        status: Some(if fault.is_some() { 503 } else { 200 }),
        fault: fault.map(Into::into),
        note: String::new(),
        took_ms: 1.0,
        first_token_ms: None,
        provider_request_id: None,
        finish: None,
        usage: fault.is_none().then_some((Some(1_000), Some(100))),
    }
}

fn decided(next: &'static str) -> Step {
    Step::Decided { next: next.into(), why: "because".into() }
}

fn judged(verdict: &'static str) -> Step {
    Step::Judged { verdict: verdict.into(), errors: Vec::new() }
}

/// A call that took these steps.
fn row(number: u64, outcome: &'static str, steps: Vec<Step>) -> Row {
    let notes = steps.into_iter().map(|step| Note { at_ms: 1.0, step }).collect();
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let latency_ms = 400.0 + number as f64;
    Row {
        call_id: format!("{number:08}"),
        at_ms: NOON + number,
        route: "triage".into(),
        outcome: outcome.into(),
        validation: "ok".into(),
        latency_ms,
        input_tokens: 1_000,
        output_tokens: 100,
        trail: Trail { notes },
        ..Row::default()
    }
}

/// A thousand calls of a bad day, and two hundred of a route that only watches.
fn rows() -> Vec<Row> {
    let good = || vec![sent(1, "main"), came(1, None), judged("ok")];
    let mut rows: Vec<Row> = (0..900).map(|number| row(number, "answered", good())).collect();
    rows.extend((900..950).map(|number| Row {
        edits: "fence=1, trailing_comma=2".into(),
        ..row(number, "mended", good())
    }));
    rows.extend((950..980).map(|number| {
        let elsewhere =
            [sent(1, "main"), came(1, Some("provider_overloaded")), decided("elsewhere")];
        let steps = [&elsewhere[..], &[sent(2, "mirror"), came(2, None), judged("ok")]].concat();
        row(number, "answered", steps)
    }));
    rows.extend((980..995).map(|number| {
        let first = [sent(1, "main"), came(1, None), judged("schema_error"), decided("reask")];
        row(
            number,
            "answered",
            [&first[..], &[sent(2, "main"), came(2, None), judged("ok")]].concat(),
        )
    }));
    rows.extend((995..1_000).map(|number| Row {
        code: "no_target_available".into(),
        at_least: true,
        validation: "".into(),
        ..row(number, "failed", vec![decided("end")])
    }));
    let would =
        [("nothing", 170), ("mended", 22), ("reasked", 5), ("rerouted", 2), ("not_judged", 1)];
    let mut number = 1_000;
    for (word, count) in would {
        for _ in 0..count {
            let steps = vec![sent(1, "main"), came(1, None)];
            rows.push(Row {
                would: word.into(),
                route: "new".into(),
                ..row(number, "watched", steps)
            });
            number += 1;
        }
    }
    rows
}

/// A folder with a log and a config; gone when dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("backstay-report-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("backstay.toml"), CONFIG).unwrap();
        let log = CallLog::sqlite(&folder.join("backstay.sqlite")).unwrap();
        for row in rows() {
            log.put(row);
        }
        log.flush();
        assert_eq!(log.dropped(), 0);
        Self(folder)
    }

    fn report(&self, arguments: &[&str]) -> Output {
        report(&self.0, arguments)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn report(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_backstay"))
        .arg("report")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

const DAY: [&str; 4] = ["--since", "2026-11-29", "--until", "2026-11-30"];

#[test]
fn the_page_shows_what_is_printed() {
    let place = Place::new("page");
    let output = place.report(&DAY);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once("```text\n").unwrap();
    let (shown, after) = rest.split_once("```").unwrap();
    if std::env::var_os("BACKSTAY_UPDATE").is_some() {
        std::fs::write(PAGE, format!("{before}```text\n{printed}```{after}")).unwrap();
        return;
    }
    assert_eq!(shown, printed, "run with BACKSTAY_UPDATE=1");
}

#[test]
fn the_sums_are_those_of_the_rows() {
    let place = Place::new("sums");
    let output = place.report(&[&DAY[..], &["--json", "--route", "triage"]].concat());
    let sums: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for (pointer, value) in [
        ("/calls", 1_000),
        ("/outcomes/answered", 945),
        ("/outcomes/mended", 50),
        ("/codes/no_target_available", 5),
        ("/edits/trailing_comma", 100),
        ("/decisions/reask", 15),
        ("/decisions/elsewhere", 30),
        ("/targets/main/attempts", 1_010),
        ("/targets/main/faults/provider_overloaded", 30),
        ("/targets/main/faults/schema_error", 15),
        ("/targets/mirror/attempts", 30),
        ("/targets/main/input_tokens", 980_000),
        ("/at_least", 5),
    ] {
        assert_eq!(
            sums.pointer(pointer).and_then(serde_json::Value::as_u64),
            Some(value),
            "{pointer}"
        );
    }
    // 980,000 in at 2 and 98,000 out at 8 a million.
    assert_eq!(sums.pointer("/targets/main/cost").unwrap(), "2.744");
    assert!(sums.pointer("/targets/mirror/cost").is_none(), "no prices");
    assert!(sums.pointer("/would").unwrap().as_object().unwrap().is_empty());
    let quantiles: Vec<f64> = ["p50", "p90", "p99", "max"]
        .iter()
        .map(|q| sums["latency_ms"][q].as_f64().unwrap())
        .collect();
    assert_eq!(quantiles, [899.0, 1_299.0, 1_389.0, 1_399.0]);
}

#[test]
fn only_the_time_asked_for_counts() {
    let place = Place::new("time");
    let calls = |since: &str, until: &str| {
        let output =
            place.report(&["--since", since, "--until", until, "--json", "backstay.sqlite"]);
        let sums: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code(), sums["calls"].as_u64())
    };
    let (noon, half) = ("2026-11-29T12:00:00Z", "2026-11-29T12:00:00.5Z");
    assert_eq!(calls(noon, half), (Some(0), Some(500)), "the end is exclusive");
    assert_eq!(calls(half, "2026-11-30"), (Some(0), Some(700)));
    assert_eq!(calls("2026-11-01", noon), (Some(1), None), "none in that time");
}

#[test]
fn what_cannot_be_read_is_told_and_ends_with_two() {
    let place = Place::new("wrong");
    std::fs::write(place.0.join("no.sqlite"), "this is no database, and long enough to tell")
        .unwrap();
    for arguments in
        [&["missing.sqlite"][..], &["no.sqlite"], &["--since", "yesterday"], &["-c", "none.toml"]]
    {
        let output = place.report(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && output.stderr.len() > 20, "{arguments:?}");
    }
    assert_eq!(place.report(&["--route", "none", "--since", "2026-11-29"]).status.code(), Some(1));
}
