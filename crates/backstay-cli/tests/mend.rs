//! `backstay mend` as a process: what goes where, and how it ends.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// How a run ended: exit code, standard output, standard error.
type Ended = (i32, String, String);

fn mend(arguments: &[&str], input: &[u8]) -> Ended {
    let mut child = Command::new(env!("CARGO_BIN_EXE_backstay"))
        .arg("mend")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // The command may end before it has read everything.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn triage() -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../../examples/triage/triage.schema.json").display().to_string()
}

/// A file that goes when the test ends.
struct Temporary(String);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn temporary(name: &str, text: &str) -> Temporary {
    let path = std::env::temp_dir().join(format!("backstay-mend-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    Temporary(path.display().to_string())
}

#[test]
fn the_exit_code_says_what_came_of_the_reply() {
    for (arguments, input, code) in [
        (&[][..], "{\"a\": 1}", 0),
        (&[], "```json\n{\"a\": 1,}\n```", 0),
        (&[], "{\"a\": 1", 2),
        (&["--cut"], "{\"a\": 1", 2),
        (&["--status", "stopped"], "{\"a\": [1, 2\n", 0),
        (&["--status", "stopped"], "{\"a\": [1, 2", 3),
        (&["--policy", "strict"], "{\"a\": \"x", 4),
        (&[], "{\"a\": 1, \"a\": 2}", 3),
        (&["--policy", "lenient"], "{\"a\": 1, \"a\": 2}", 0),
        (&["--allow", "fence,bom"], "```\n[1]\n```", 0),
        (&["--allow", "fence"], "[1,]", 4),
        (&[], "no", 4),
        (&[], "", 4),
        (&["--nothing"], "", 64),
        (&["--allow", "nothing"], "", 64),
        (&["--cut", "--status", "stopped"], "", 64),
        (&["a", "b"], "", 64),
        (&["/nowhere/reply.txt"], "", 66),
        (&["/"], "", 66),
        (&["--schema", "/nowhere/schema.json"], "{}", 66),
    ] {
        let (ended, out, err) = mend(arguments, input.as_bytes());
        assert_eq!(ended, code, "{arguments:?} {input:?}\n{out}\n{err}");
        assert_eq!(out.is_empty(), !matches!(code, 0 | 2), "{arguments:?} {input:?}: {out}");
    }
}

#[test]
fn the_value_goes_out_and_the_edits_go_to_standard_error() {
    let (_, out, err) = mend(&[], b"Sure: {'id': 12345678901234567890123, \"p\": 1.10}\n");
    assert_eq!(out, "{\"id\": 12345678901234567890123, \"p\": 1.10}\n");
    assert_eq!(
        err,
        "1:1: prose_before (lossless): Sure: taken out\n\
         1:8: single_quotes (lossless) at /id: ' becomes \"\n\
         1:11: single_quotes (lossless) at /id: ' becomes \"\n"
    );
    let (_, out, err) = mend(&[], b" {\"a\" : 1.0}\n");
    assert_eq!((out.as_str(), err.as_str()), ("{\"a\" : 1.0}\n", ""));
    let (_, out, err) = mend(&["--edits", "place"], b"[1,]");
    assert_eq!(out, "[1]\n");
    assert_eq!(
        err,
        "1 | [1,]\n  |   ^\n  = trailing_comma (lossless) at /0: , taken out\nmended, edits: 1\n"
    );
}

#[test]
fn a_program_gets_one_line_of_json_and_no_talk() {
    for (input, outcome) in [("[1,]", "mended"), ("{\"a\": 1", "partial"), ("no", "rejected")] {
        let (_, out, err) = mend(&["--json"], input.as_bytes());
        assert_eq!((out.lines().count(), err.as_str()), (1, ""));
        let report: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["outcome"], outcome);
    }
}

#[test]
fn a_value_off_the_schema_is_rejected_with_where_and_why() {
    let good = "{\"category\": \"billing\", \"priority\": 2, \"summary\": \"s\", \"evidence\": \"e\", \
        'needs_human': False}";
    let (code, ..) = mend(&["--schema", &triage()], good.as_bytes());
    assert_eq!(code, 0);
    let bad = good.replace('2', "9").replace("billing", "money");
    let (code, out, err) = mend(&["--schema", &triage()], bad.as_bytes());
    assert_eq!((code, out.as_str()), (4, ""));
    assert!(err.contains("rejected") && err.contains("not in enum"), "{err}");
    let (code, out, _) = mend(&["--json", "--schema", &triage()], bad.as_bytes());
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["outcome"], &report["value"]), (4, &"rejected".into(), &Value::Null));
    let paths: Vec<&Value> =
        report["errors"].as_array().unwrap().iter().map(|error| &error["path"]).collect();
    assert_eq!(paths, ["/category", "/priority"]);
    assert!(!report["edits"].as_array().unwrap().is_empty());
}

#[test]
fn a_schema_decides_between_readings_and_supplies_nothing() {
    let schema = temporary(
        "parcel.json",
        r#"{
            "type": "object",
            "properties": {
                "sku": {"type": "string"},
                "count": {"type": "integer"},
                "routes": {"type": "array", "items": {"enum": ["north", "sou\"th", "east"]}}
            },
            "required": ["sku"],
            "additionalProperties": false
        }"#,
    );
    for (input, value) in [
        // Digits that are no number: text, where the schema wants text.
        (r#"{"sku": 007, "count": 2}"#, r#"{"sku": "007", "count": 2}"#),
        // A stray quote or a missing comma: only one gives members of the enum.
        (
            r#"{"sku": "A", "routes": ["north", "sou"th", "east"]}"#,
            r#"{"sku": "A", "routes": ["north", "sou\"th", "east"]}"#,
        ),
        // Two documents: only one has the keys, and the other has none of them.
        (r#"Tool: {"name": "look", "id": 2} Final: {"sku": "A"}"#, r#"{"sku": "A"}"#),
    ] {
        assert_eq!(mend(&[], input.as_bytes()).0, 3, "{input} is ambiguous by itself");
        let (code, out, err) = mend(&["--schema", &schema.0], input.as_bytes());
        assert_eq!((code, out.as_str()), (0, format!("{value}\n").as_str()), "{err}");
        assert!(!err.is_empty(), "the edit is named");
    }
    // Both readings fit, or none: the schema has nothing to say, and nothing is guessed.
    let both = r#"{"sku": "A", "count": 1} {"sku": "B", "count": 2}"#;
    assert_eq!(mend(&["--schema", &schema.0], both.as_bytes()).0, 3);
    assert_eq!(mend(&["--schema", &schema.0], br#"{"sku": "A", "count": 007}"#).0, 3);
    // A draft that fits does not win over a correction that does not.
    let draft = r#"Draft: {"sku": "A"} Final: {"sku": "A", "count": "two"}"#;
    assert_eq!(mend(&["--schema", &schema.0], draft.as_bytes()).0, 3);
    let (code, out, _) = mend(&["--schema", &schema.0], br#"{"count": 7,}"#);
    assert_eq!((code, out.as_str()), (4, ""), "a key that is missing is not put in");
}

#[test]
fn a_reply_that_is_not_text_or_too_long_is_rejected_with_its_reason() {
    let (code, _, err) = mend(&[], b"{\"a\": \"\xff\"}");
    assert_eq!(
        (code, err.as_str()),
        (4, "rejected: the reply is not UTF-8 at byte 7 (not_utf8)\n")
    );
    let (code, _, err) = mend(&[], &vec![b' '; (16 << 20) + 1]);
    assert_eq!(code, 4);
    assert!(err.contains("longer than the limit: 16777216 bytes"), "{err}");
    let (code, ..) = mend(&[], &vec![b'['; 1 << 20]);
    assert_eq!(code, 4);
}

#[test]
fn nobody_reading_is_no_reason_to_panic() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_backstay"))
        .args(["mend", "--edits", "lines"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    let mut stdin = child.stdin.take().unwrap();
    let long = format!("[{}]", "'a long text that fills the pipe',".repeat(400));
    stdin.write_all(long.as_bytes()).unwrap();
    drop(stdin);
    // 101 is what a panic ends with.
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn every_kind_is_listed() {
    let (code, out, _) = mend(&["--list"], b"");
    assert_eq!(code, 0);
    for kind in jsonmend::Kind::ALL {
        assert!(out.lines().any(|line| line.starts_with(kind.name())), "{kind}\n{out}");
    }
}

#[test]
fn a_file_is_read_where_one_is_named() {
    let path = std::env::temp_dir().join(format!("backstay-mend-{}.txt", std::process::id()));
    std::fs::write(&path, "{a: 1}").unwrap();
    let (code, out, _) = mend(&[path.to_str().unwrap()], b"{\"b\": 2}");
    std::fs::remove_file(&path).unwrap();
    assert_eq!((code, out.as_str()), (0, "{\"a\": 1}\n"));
    let (code, out, _) = mend(&["-"], b"{\"b\": 2}");
    assert_eq!((code, out.as_str()), (0, "{\"b\": 2}\n"));
}
