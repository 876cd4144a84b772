//! Keeps the pages for people true to the code: codes, tables, names and links.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use backstay::contract::lint::{ChangeKind, Lint};
use backstay::fault::CallError;
use backstay::record::Outcome;
use backstay_decide::deadline::Source;
use backstay_decide::{Fault, Local, Side};

/// A code that a writer of streams uses by itself; it is neither a [`Fault`] nor a [`Local`].
const IN_STREAMS_ONLY: &str = "provider_stream_broken";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    let whole = root().join(path);
    fs::read_to_string(&whole).unwrap_or_else(|error| panic!("{}: {error}", whole.display()))
}

/// Every file below `folder` whose name ends in `ending`, without builds and hidden folders.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let skipped = name.starts_with('.') || name == "target" || name == "node_modules";
            if path.is_dir() && !path.is_symlink() && !skipped {
                folders.push(path);
            } else if path.is_file() && name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The cells of every table row whose first cell names one thing in code or a link to it:
/// `name -> cells`.
fn rows(page: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<String> =
            line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
        let first = cells[0].trim_start_matches('[');
        if let Some((name, _)) = first.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
            found.insert(name.to_owned(), cells);
        }
    }
    found
}

/// Every failure there is: its code, side and the HTTP status it is told with.
fn failures() -> Vec<(&'static str, Side, u16)> {
    let attempts = Fault::ALL
        .into_iter()
        .map(|fault| (fault.code(), fault.side(), CallError::attempt(fault, "").status()));
    let own = Local::ALL
        .into_iter()
        .map(|local| (local.code(), local.side(), CallError::local(local, "").status()));
    attempts.chain(own).collect()
}

#[test]
fn every_code_has_a_section_of_its_own_and_no_section_is_about_a_code_that_is_not() {
    let page = text("docs/reference/faults.md");
    let told: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## `"))
        .map(|rest| rest.trim_end_matches('`'))
        .collect();
    let mut known: Vec<&str> = failures().into_iter().map(|(code, ..)| code).collect();
    known.push(IN_STREAMS_ONLY);
    for code in &known {
        let times = told.iter().filter(|name| *name == code).count();
        assert_eq!(times, 1, "faults.md must have one heading `{code}`");
    }
    for name in &told {
        assert!(known.contains(name), "faults.md tells of `{name}`, which no code is");
    }
}

#[test]
fn the_overview_of_faults_has_the_status_and_side_of_each() {
    let rows = rows(&text("docs/reference/faults.md"));
    for (code, side, status) in failures() {
        let cells = rows.get(code).unwrap_or_else(|| panic!("no row for `{code}`"));
        assert!(cells[0].contains(&format!("](#{code})")), "`{code}` must link to its section");
        assert!(
            cells[1].contains(&status.to_string()),
            "`{code}` is told with {status}: {cells:?}"
        );
        assert_eq!(cells[2], side.name(), "the side of `{code}`");
    }
    assert!(rows.contains_key(IN_STREAMS_ONLY));
}

#[test]
fn the_table_of_recovery_in_the_architecture_is_the_one_the_code_prints() {
    let page = text("ARCHITECTURE.md");
    let (_, rest) = page.split_once("<!-- recover table -->\n").expect("an opening marker");
    let (table, _) = rest.split_once("<!-- /recover table -->").expect("a closing marker");
    assert_eq!(table.trim(), backstay_decide::recover::markdown().trim());
}

#[test]
fn every_header_of_ours_is_in_the_reference() {
    let page = text("docs/reference/headers.md");
    let sources = ["crates/backstay-gateway/src", "crates/backstay/src"];
    let mut named: BTreeSet<String> =
        Source::HEADERS.into_iter().map(|source| source.name().to_owned()).collect();
    for path in sources.iter().flat_map(|folder| files(&root().join(folder), ".rs")) {
        named.extend(headers_in(&fs::read_to_string(path).unwrap()));
    }
    assert!(named.contains("x-backstay-call-id"), "the scan finds nothing: {named:?}");
    for name in named {
        assert!(page.contains(&format!("`{name}`")), "headers.md does not tell of `{name}`");
    }
}

/// A keyword of schemas that is named like a header.
const KEYWORD: &str = "x-backstay-fallback";

/// The names that begin with `x-backstay-` in a source; the bare beginning is none.
fn headers_in(source: &str) -> impl Iterator<Item = String> {
    source.split("x-backstay-").skip(1).filter_map(|rest| {
        let end: String =
            rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        let end = end.trim_end_matches('-');
        let name = format!("x-backstay-{end}");
        (!end.is_empty() && name != KEYWORD).then_some(name)
    })
}

#[test]
fn every_edit_is_in_the_reference_with_its_class() {
    let page = text("docs/reference/edits.md");
    for kind in backstay::validate::EditKind::OF_VALUES {
        let row = format!("| `{}` | `{}` |", kind.name(), kind.class());
        assert!(page.contains(&row), "edits.md has no row {row}");
    }
    for kind in jsonmend::Kind::ALL {
        let class = format!("| `{}`", kind.class().name());
        let row = page.lines().find(|line| line.starts_with(&class)).unwrap_or_default();
        let told = row.contains(&format!("`{kind}`"));
        assert!(told, "edits.md does not tell of `{kind}` in the row of its class");
    }
}

#[test]
fn every_outcome_is_in_the_reference() {
    let rows = rows(&text("docs/reference/headers.md"));
    for outcome in Outcome::ALL {
        assert!(rows.contains_key(outcome.word()), "no row for `{outcome}`");
    }
}

#[test]
fn every_column_of_the_call_log_is_in_the_reference_and_no_other() {
    let source = text("crates/backstay/src/record/store/sqlite/schema.rs");
    let (_, rest) = source.split_once("CREATE TABLE IF NOT EXISTS calls (").unwrap();
    let (table, _) = rest.split_once(");").unwrap();
    let columns: Vec<&str> =
        table.split(',').filter_map(|column| column.split_whitespace().next()).collect();
    assert!(columns.len() > 20, "{columns:?}");
    let page = text("docs/reference/call_log.md");
    let (_, rest) = page.split_once("## Columns").unwrap();
    let (told, _) = rest.split_once("\n## ").unwrap();
    let rows = rows(told);
    for column in &columns {
        assert!(rows.contains_key(*column), "call_log.md does not tell of `{column}`");
    }
    assert_eq!(rows.len(), columns.len(), "call_log.md tells of columns that are not there");
}

#[test]
fn every_metric_is_in_the_reference() {
    let source: String = files(&root().join("crates/backstay/src/record/metrics"), ".rs")
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let names: Vec<&str> = source
        .split("registry.register(")
        .skip(1)
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
        .collect();
    assert!(names.len() >= 10, "{names:?}");
    let rows = rows(&text("docs/reference/metrics.md"));
    for name in names {
        let (plain, counter) = (format!("backstay_{name}"), format!("backstay_{name}_total"));
        let told = rows.contains_key(&plain) || rows.contains_key(&counter);
        assert!(told, "metrics.md does not tell of `{plain}`");
    }
}

#[test]
fn every_word_of_shadow_mode_is_in_the_reference() {
    let rows = rows(&text("docs/reference/shadow.md"));
    for would in backstay::call::Would::ALL {
        assert!(rows.contains_key(would.word()), "shadow.md does not tell of `{}`", would.word());
    }
}

#[test]
fn every_alert_is_in_the_reference() {
    let rows = rows(&text("docs/reference/alerts.md"));
    for kind in backstay_decide::alert::Kind::ALL {
        assert!(rows.contains_key(kind.name()), "alerts.md does not tell of `{}`", kind.name());
    }
}

#[test]
fn every_lint_and_every_change_of_a_schema_is_in_the_reference() {
    let page = text("docs/reference/schema_lint.md");
    let lints = Lint::ALL.into_iter().map(Lint::name);
    for name in lints.chain(ChangeKind::ALL.iter().map(|kind| kind.name())) {
        let told = page.matches(&format!("`{name}`")).count();
        assert_eq!(told, 1, "schema_lint.md must tell of `{name}` once");
    }
}

#[test]
fn every_behaviour_of_the_mock_is_in_the_reference() {
    let page = text("docs/reference/mock.md");
    for behaviour in backstay_mock::behaviours() {
        let name = format!("`{}`", behaviour.name);
        assert!(page.contains(&name), "mock.md does not tell of {name}");
    }
}

#[test]
fn every_link_between_pages_leads_to_a_file_and_to_a_heading_in_it() {
    let pages = files(&root(), ".md");
    assert!(pages.len() > 15, "{pages:?}");
    let mut count = 0;
    for page in &pages {
        for link in links(&fs::read_to_string(page).unwrap()) {
            count += 1;
            assert_leads(page, &link);
        }
    }
    assert!(count > 50, "only {count} links were found");
}

fn assert_leads(page: &Path, link: &str) {
    let from = page.display();
    let (file, heading) = link.split_once('#').map_or((link, None), |(f, h)| (f, Some(h)));
    let there = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
    assert!(there.exists(), "{from}: nothing is at `{link}`");
    let Some(heading) = heading else { return };
    let known = anchors(&fs::read_to_string(&there).unwrap());
    assert!(known.contains(heading), "{from}: no heading for `{link}`, only {known:?}");
}

#[test]
fn every_page_of_the_reference_is_linked_from_the_front_page() {
    let linked = links(&text("README.md"));
    for page in files(&root().join("docs/reference"), ".md") {
        let name = format!("docs/reference/{}", page.file_name().unwrap().display());
        assert!(linked.contains(&name), "README.md does not link to {name}");
    }
}

#[test]
fn every_invariant_has_tests_that_are_there() {
    let page = text("docs/invariants.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(rows.len(), 20);
    for row in rows {
        let words: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        assert!(!words.is_empty() || row.contains("not yet"), "{row}");
        for pair in words.chunks(2) {
            let [file, test] = pair else { panic!("a file without a test: {row}") };
            assert!(text(file).contains(&format!("fn {test}(")), "no {test} in {file}");
        }
    }
}

#[test]
fn every_source_file_that_a_page_names_is_there() {
    let mut count = 0;
    for page in files(&root(), ".md") {
        let text = prose(&fs::read_to_string(&page).unwrap(), Spans::Kept);
        for path in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            if is_source(path) {
                count += 1;
                assert!(is_there(path), "{}: there is no `{path}`", page.display());
            }
        }
    }
    assert!(count > 20, "only {count} paths were found");
}

/// Whether a piece of code in a line is the path of a source file or of a folder in a crate.
fn is_source(path: &str) -> bool {
    let plain = !path.contains(' ') && path.contains('/');
    let crated = path.trim_start_matches("crates/").starts_with("backstay");
    plain
        && (Path::new(path).extension().is_some_and(|end| end == "rs")
            || crated && (path.contains("/src") || path.contains("/tests")))
}

/// Whether it is there, below the root, the crates, or the engine's sources. A `*` stands for any
/// folder and ends the look; a module is the same in a file as in a folder of its own.
fn is_there(path: &str) -> bool {
    let path = path.split('*').next().unwrap_or(path);
    let module = path.trim_end_matches(".rs");
    ["", "crates", "crates/backstay/src"].iter().map(|base| root().join(base)).any(|base| {
        base.join(path).exists() || path != module && base.join(module).join("mod.rs").exists()
    })
}

/// The text without what stands in fences; with `Spans::Gone` also without code in a line.
fn prose(page: &str, spans: Spans) -> String {
    let mut out = String::new();
    let mut fenced = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let kept = match spans {
                Spans::Kept => line.to_owned(),
                Spans::Gone => line.split('`').step_by(2).collect(),
            };
            out.push_str(&kept);
            out.push('\n');
        }
    }
    out
}

#[derive(Clone, Copy)]
enum Spans {
    Kept,
    Gone,
}

/// Where the links of a page lead, without those to other sites.
fn links(page: &str) -> Vec<String> {
    let page = prose(page, Spans::Gone);
    let ends = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    ends.filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
        .map(str::to_owned)
        .collect()
}

/// The names by which a page's headings are linked to: lower case, a hyphen for each space, other
/// signs gone.
fn anchors(page: &str) -> BTreeSet<String> {
    let kept = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ');
    prose(page, Spans::Kept)
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim().to_lowercase())
        .map(|title| title.chars().filter(|c| kept(*c)).collect::<String>().replace(' ', "-"))
        .collect()
}

/// What stands around a part of a config on a page: who is asked.
const AROUND: &str = r#"
[providers.openai]
dialect = "openai_chat"
base_url = "https://api.openai.com/v1"
api_keys = [{ env = "OPENAI_API_KEY" }]
[models.main]
provider = "openai"
model = "gpt-x-2026-01-15"
input_price = 2
output_price = 8
"#;

/// A route for a part of a config that has none.
const ROUTED: &str = "[routes.ask]\ntiers = [\"main\"]\n";

/// An empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("backstay-docs-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn every_config_on_a_page_passes_check_without_a_warning() {
    let folder = folder("configs");
    fs::write(folder.join("triage.schema.json"), text("examples/triage/triage.schema.json"))
        .unwrap();
    let mut count = 0;
    for page in files(&root(), ".md") {
        for snippet in fenced(&fs::read_to_string(&page).unwrap(), "toml") {
            count += 1;
            let around = if snippet.contains("[models.") { "" } else { AROUND };
            let routed = if snippet.contains("[routes.") { "" } else { ROUTED };
            let whole = format!("{snippet}\n{around}{routed}");
            fs::write(folder.join("backstay.toml"), whole).unwrap();
            let output = Command::new(env!("CARGO_BIN_EXE_backstay"))
                // What providers do not enforce is the schema's matter, and told on its own page.
                .args(["check", "--strict", "--allow", "schema-keyword-dropped"])
                .current_dir(&folder)
                .envs(["OPENAI_API_KEY", "ANTHROPIC_API_KEY"].map(|name| (name, "a key")))
                .env("APP_KEY", "a key of some length")
                .env("BACKSTAY_ADMIN_KEY", "another key")
                .env("ALERT_URL", "https://alerts.example/hook")
                .env("ALERT_TOKEN", "a third key")
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{}: {told}\n{snippet}", page.display());
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(count >= 2, "only {count} were found");
}

#[test]
#[cfg(unix)]
fn every_session_on_a_page_prints_what_the_page_says() {
    let binary = Path::new(env!("CARGO_BIN_EXE_backstay")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let folder = folder("sessions");
    let mut count = 0;
    for page in files(&root(), ".md") {
        let page_text = fs::read_to_string(&page).unwrap();
        for block in fenced(&page_text, "sh").filter(|block| block.starts_with("$ ")) {
            count += 1;
            let (commands, expected) = session(block);
            let output = Command::new("sh")
                .args(["-c", &commands])
                .current_dir(&folder)
                .env("PATH", &path)
                .output()
                .unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert_eq!(printed, expected, "{}: {commands}", page.display());
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(count >= 2, "only {count} were found");
}

/// What is typed in a session, and what it prints: a command goes to the end of its line, or of its
/// here-document.
fn session(block: &str) -> (String, String) {
    let (mut typed, mut printed) = (String::new(), String::new());
    let mut open: Option<String> = None;
    for line in block.lines() {
        let command = line.strip_prefix("$ ").filter(|_| open.is_none());
        let into = if open.is_some() || command.is_some() { &mut typed } else { &mut printed };
        into.push_str(command.unwrap_or(line));
        into.push('\n');
        let begun = command.and_then(|command| command.split_once("<<'")?.1.split('\'').next());
        match begun {
            Some(end) => open = Some(end.to_owned()),
            None if open.as_deref() == Some(line) => open = None,
            None => {}
        }
    }
    (typed, printed)
}

/// The text inside the fences of a page that are marked with `language`.
fn fenced<'p>(page: &'p str, language: &str) -> impl Iterator<Item = &'p str> {
    let opening = format!("\n```{language}\n");
    let starts: Vec<usize> =
        page.match_indices(&opening).map(|(at, _)| at + opening.len()).collect();
    starts.into_iter().filter_map(|at| page.get(at..)?.split("\n```").next())
}

#[test]
fn the_scans_see_what_they_should() {
    let page =
        "# A `b_c`: d, e\n[x](y.md#z) `[no](q.md)`\n```\n[no](r.md)\n# no\n```\n[s](https://t)";
    assert_eq!(links(page), ["y.md#z"]);
    assert_eq!(anchors(page), BTreeSet::from(["a-b_c-d-e".to_owned()]));
    let names: Vec<String> =
        headers_in("\"x-backstay-one\" `x-backstay-` x-backstay-two: 1").collect();
    assert_eq!(names, ["x-backstay-one", "x-backstay-two"]);
    let blocks: Vec<&str> = fenced("a\n```sh\n$ x\n1\n```\n```toml\nb\n```\n", "sh").collect();
    assert_eq!(blocks, ["$ x\n1"]);
    let typed = session("$ a <<'E'\n$ not a prompt\nE\nout\n$ b\nmore");
    assert_eq!(typed, ("a <<'E'\n$ not a prompt\nE\nb\n".into(), "out\nmore\n".into()));
    let table = "| name |\n|---|\n| `a` | 1 |\n| [`b`](#b) | 2 |\n";
    assert_eq!(rows(table).keys().collect::<Vec<_>>(), ["a", "b"]);
}
