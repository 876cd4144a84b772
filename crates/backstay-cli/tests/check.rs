//! `backstay check` as a process: lints of schemas, two versions of one, and how it ends.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A folder of files that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("backstay-check-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    /// Exit code and standard output of a check in this folder.
    fn check(&self, arguments: &[&str]) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_backstay"))
            .arg("check")
            .args(arguments)
            .current_dir(&self.0)
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const LOOSE: &str = "{
  \"type\": \"object\",
  \"properties\": {
    \"color\": {\"enum\": [\"red\", \"green\"]},
    \"note\": {\"type\": \"string\"}
  },
  \"required\": [\"color\"]
}";

const CONFIG: &str = "
[server]
call_log = \"memory\"
[providers.here]
dialect = \"openai_chat\"
base_url = \"http://127.0.0.1:8081/v1\"
[models.a]
provider = \"here\"
model = \"small-2026-01-15\"
[routes.one]
tiers = [\"a\"]
max_output_tokens = 20
schema = \"loose.json\"
";

#[test]
fn a_schema_alone_is_told_of_with_places_reasons_and_remedies() {
    let folder = Folder::new("alone");
    folder.write("loose.json", LOOSE);
    let (code, out) = folder.check(&["--schema", "loose.json", "--cap", "20"]);
    assert_eq!(code, 0, "{out}");
    assert!(
        out.contains(
            "warning: `color` may only be \"red\", \"green\"\n --> loose.json:4:5\n  |\n\
             4 |     \"color\": {\"enum\": [\"red\", \"green\"]},\n  |     ^^^^^^^ where nothing fits"
        ),
        "{out}"
    );
    for name in [
        "schema-no-escape",
        "schema-optional-key",
        "schema-open-object",
        "schema-unchecked",
        "schema-no-longest",
    ] {
        assert_eq!(out.matches(name).count(), 1, "{name}\n{out}");
    }
    assert!(out.ends_with("fine, with warnings: 5\n"), "{out}");
    for flag in ["--strict", "--deny-warnings"] {
        assert_eq!(folder.check(&["--schema", "loose.json", flag]).0, 1);
    }
    let allow = "schema-no-escape,schema-optional-key,schema-open-object,schema-unchecked";
    let (code, out) = folder.check(&["--schema", "loose.json", "--strict", "--allow", allow]);
    assert_eq!((code, out.as_str()), (0, "fine\n"));
}

#[test]
fn the_schemas_of_routes_are_looked_at_with_their_rules_and_caps() {
    let folder = Folder::new("routes");
    folder.write("loose.json", LOOSE);
    folder.write("backstay.toml", CONFIG);
    let (code, out) = folder.check(&["--json"]);
    let told: Value = serde_json::from_str(&out).unwrap();
    let problems = told["problems"].as_array().unwrap();
    let about: Vec<_> = problems
        .iter()
        .filter(|problem| problem["code"].as_str().unwrap().starts_with("schema-"))
        .map(|problem| (problem["code"].as_str().unwrap(), problem["line"].as_u64().unwrap()))
        .collect();
    assert_eq!(code, 0);
    assert_eq!(
        about,
        [
            ("schema-optional-key", 5),
            ("schema-open-object", 1),
            ("schema-no-escape", 4),
            ("schema-unchecked", 1),
            ("schema-no-longest", 5)
        ]
    );
    let message = problems.iter().find(|problem| problem["code"] == "schema-no-longest").unwrap();
    assert!(message["message"].as_str().unwrap().starts_with("route `one`: the cap is 20 tokens"));
    assert!(message["file"].as_str().unwrap().ends_with("loose.json"));
    let compared = format!(
        "{CONFIG}rules = [{{ name = \"seen\", check = \"input.contains(reply.color)\" }}]\n"
    );
    folder.write("backstay.toml", &compared);
    assert!(!folder.check(&["--json"]).1.contains("schema-unchecked"));
}

#[test]
fn a_fallback_of_a_schema_that_does_not_fit_there_is_a_problem_of_the_config() {
    let folder = Folder::new("fallback");
    let color = "\"color\": {\"x-backstay-fallback\": \"blue\", ";
    folder.write("loose.json", &LOOSE.replace("\"color\": {", color));
    folder.write("backstay.toml", CONFIG);
    let (code, out) = folder.check(&["--json"]);
    let told: Value = serde_json::from_str(&out).unwrap();
    let problem = &told["problems"][0];
    assert_eq!((code, &problem["code"]), (1, &Value::from("bad-schema")), "{out}");
    assert_eq!(problem["line"], 13, "{out}");
    let message = problem["message"].as_str().unwrap();
    assert!(message.contains("the x-backstay-fallback at '/properties/color'"), "{message}");
    assert_eq!(folder.check(&["--schema", "loose.json"]).0, 1);
    folder.write("loose.json", &LOOSE.replace("\"color\": {", &color.replace("blue", "red")));
    assert_eq!(folder.check(&["--json"]).0, 0);
}

#[test]
fn what_a_target_does_not_enforce_is_told_of() {
    let folder = Folder::new("dropped");
    folder.write("loose.json", &LOOSE.replace("\"string\"", "\"string\", \"maxLength\": 9"));
    let arguments = ["--schema", "loose.json", "--target", "anthropic"];
    let (_, out) = folder.check(&arguments);
    assert!(out.contains("`anthropic` does not enforce `maxLength`\n --> loose.json:5:"), "{out}");
    let (_, out) = folder.check(&["--schema", "loose.json"]);
    assert!(!out.contains("does not enforce"), "{out}");
    folder.write("backstay.toml", &CONFIG.replace("openai_chat", "anthropic").replace("/v1", ""));
    let (code, out) = folder.check(&[]);
    assert!(out.contains("route `one`: `anthropic` does not enforce `maxLength`"), "{out}");
    assert_eq!(code, 0);
    assert_eq!(folder.check(&["--schema", "loose.json", "--target", "nobody"]).0, 2);
}

#[test]
fn the_subset_that_the_config_names_counts_and_not_what_the_dialect_would_have() {
    let folder = Folder::new("subset");
    folder.write("loose.json", &LOOSE.replace("\"string\"", "\"string\", \"maxLength\": 9"));
    let told = |config: &str| {
        folder.write("backstay.toml", config);
        let (code, out) = folder.check(&[]);
        assert_eq!(code, 0, "{out}");
        let lines = out.lines().filter(|line| line.contains("does not enforce"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let expected =
        |name: &str| vec![format!("warning: route `one`: `{name}` does not enforce `maxLength`")];
    let model = |name: &str| {
        let named = format!("model = \"small-2026-01-15\"\nschema_subset = \"{name}\"");
        CONFIG.replace("model = \"small-2026-01-15\"", &named)
    };
    let provider = |config: &str, name: &str| {
        let named = format!("[providers.here]\nschema_subset = \"{name}\"");
        config.replace("[providers.here]", &named)
    };
    assert_eq!(told(CONFIG), Vec::<String>::new(), "an unknown host takes schemas as they are");
    assert_eq!(told(&provider(CONFIG, "anthropic")), expected("anthropic"));
    assert_eq!(told(&model("openai_strict")), expected("openai_strict"));
    assert_eq!(told(&provider(&model("openai_strict"), "anthropic")), expected("openai_strict"));
    assert_eq!(told(&provider(&model("none"), "anthropic")), Vec::<String>::new());
    let unasked =
        model("anthropic").replace("schema_subset", "structured = \"none\"\nschema_subset");
    assert_eq!(told(&unasked), Vec::<String>::new(), "it is not sent a schema at all");
}

#[test]
fn two_versions_are_compared_and_breaking_ends_with_1() {
    let folder = Folder::new("against");
    folder.write("old.json", LOOSE);
    folder.write("new.json", &LOOSE.replace("\"red\", ", "").replace("note", "remark"));
    let (code, out) = folder.check(&["--schema", "new.json", "--against", "old.json"]);
    assert_eq!(code, 1);
    assert!(
        out.starts_with(
            "new.json:5:5: property-renamed at /properties/remark: `note` seems to be called \
             `remark` now; breaks readers and stored replies\n\
             new.json:4:5: enum-member-removed at /properties/color: \"red\" is not a member any \
             more; breaks stored replies\n\
             changes since old.json: 2, breaking: 2\n"
        ),
        "{out}"
    );
    let (code, out) = folder.check(&["--schema", "new.json", "--against", "old.json", "--json"]);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &told["changes"][1]["line"]), (1, &4.into()));
    assert_eq!(told["changes"][0]["breaks"], serde_json::json!(["readers", "stored_replies"]));

    let (code, out) = folder.check(&["--schema", "old.json", "--against", "old.json"]);
    assert_eq!((code, out.lines().next()), (0, Some("nothing changed since old.json")));

    folder.write("loose.json", &LOOSE.replace("\"red\", ", ""));
    folder.write("backstay.toml", CONFIG);
    let (code, out) = folder.check(&["--against", "old.json"]);
    assert!(out.contains("loose.json:4:5: enum-member-removed"), "{out}");
    assert_eq!(code, 1);
    assert_eq!(folder.check(&["--against", "old.json", "--route", "nobody"]).0, 2);
}

#[test]
fn what_cannot_be_read_ends_with_2_and_what_is_no_schema_with_1() {
    let folder = Folder::new("unread");
    folder.write("broken.json", "{");
    folder.write("wrong.json", "{\n \"type\": \"text\"}");
    assert_eq!(folder.check(&["--schema", "nowhere.json"]).0, 2);
    assert_eq!(folder.check(&["--schema", "broken.json"]).0, 2);
    assert_eq!(folder.check(&["--schema", "wrong.json", "--allow", "nothing"]).0, 2);
    let (code, out) = folder.check(&["--schema", "wrong.json"]);
    assert_eq!(code, 1);
    assert!(out.contains("error: the schema is not valid at '/type'"), "{out}");
    assert!(out.contains("--> wrong.json:2:2"), "{out}");
}

#[test]
fn the_example_has_nothing_to_warn_of() {
    let schema =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/triage/triage.schema.json");
    let folder = Folder::new("example");
    folder.write("triage.json", &std::fs::read_to_string(schema).unwrap());
    let (code, out) = folder.check(&["--schema", "triage.json", "--cap", "300", "--strict"]);
    assert_eq!((code, out.as_str()), (0, "fine\n"));
}

#[test]
fn the_config_of_the_example_draws_the_one_warning_that_it_explains() {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/triage/backstay.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let check = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_backstay"))
            .args(["check", "--strict", "-c"])
            .arg(&config)
            .args(more)
            .env("OPENAI_API_KEY", "a key")
            .env("ANTHROPIC_API_KEY", "a key")
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, out) = check(&[]);
    let is_other =
        |line: &&str| line.starts_with("warning: ") && !line.contains("does not enforce");
    assert_eq!((code, out.lines().find(is_other)), (1, None), "{out}");
    assert!(text.contains("schema-keyword-dropped"), "the config says why the warning stands");
    let (code, out) = check(&["--allow", "schema-keyword-dropped"]);
    assert_eq!((code, out.lines().last()), (0, Some("fine")), "{out}");
}
