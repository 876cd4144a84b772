//! Every dialect in every dialect: requests, replies, streams and errors, as reviewed snapshots.
//!
//! An input is `tests/golden/KIND.DIALECT.CASE.json` (`.sse` for a stream, bytes as on the wire).
//! Its snapshot tells what each dialect makes of it and what is lost. Review a change with
//! `cargo insta review`, or write all anew with `INSTA_UPDATE=always`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use backstay_wire::chat::{Fold, Loss};
use backstay_wire::dialect::{Dialect, ErrorOut, ReadFault, UsageEvent, Written};
use backstay_wire::frame::sse::{Decoder, Frame};
use bytes::Bytes;
use serde_json::Value;

const DIALECTS: [Dialect; 2] = [Dialect::OpenaiChat, Dialect::Anthropic];

/// Takes a snapshot of what `tell` says about each input of `kind`; there must be `least`.
fn each(kind: &str, least: usize, tell: fn(Dialect, &[u8]) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut inputs: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    inputs.sort();
    let mut met = 0;
    for input in inputs.iter().filter(|path| path.is_file()) {
        let stem = input.file_stem().unwrap().to_str().unwrap();
        let Some(rest) = stem.strip_prefix(kind).and_then(|rest| rest.strip_prefix('.')) else {
            continue;
        };
        let from = DIALECTS.into_iter().find(|dialect| rest.starts_with(dialect.name())).unwrap();
        let told = tell(from, &std::fs::read(input).unwrap());
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path(folder.join("snapshots"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_input_file(input);
        settings.bind(|| insta::assert_snapshot!(stem, told));
        met += 1;
    }
    assert!(met >= least, "{met} inputs of {kind}");
}

fn lossy(told: &mut String, losses: &[Loss]) {
    for loss in losses {
        writeln!(told, "lost {}: {}", loss.path, loss.note).unwrap();
    }
}

fn section(told: &mut String, to: Dialect, written: &Written) {
    let body: Value = serde_json::from_slice(&written.bytes).unwrap();
    writeln!(told, "--- {}", to.name()).unwrap();
    writeln!(told, "{}", serde_json::to_string_pretty(&body).unwrap()).unwrap();
    lossy(told, &written.losses);
}

#[test]
fn requests_in_every_dialect() {
    each("request", 17, |from, body| {
        let chat = from.read_request(body).unwrap();
        let mut told = String::new();
        for to in DIALECTS {
            let written = to.write_request(&chat);
            section(&mut told, to, &written);
            to.read_request(&written.bytes).unwrap();
        }
        told
    });
}

#[test]
fn replies_in_every_dialect() {
    each("reply", 20, |from, body| {
        let reply = from.read_reply(body).unwrap();
        let mut told = String::new();
        for choice in &reply.choices {
            writeln!(told, "finish {} ({:?})", choice.finish.word(), choice.finish_word).unwrap();
        }
        writeln!(told, "{:?}\nunknown {:?}", reply.usage, reply.unknown).unwrap();
        for to in DIALECTS {
            let written = to.write_reply(&reply);
            section(&mut told, to, &written);
            to.read_reply(&written.bytes).unwrap();
        }
        told
    });
}

#[test]
fn streams_in_every_dialect() {
    each("stream", 17, |from, body| {
        let (mut decoder, mut reader) = (Decoder::default(), from.stream_reader());
        let mut deltas = Vec::new();
        decoder.push(Bytes::copy_from_slice(body));
        while let Some(frame) = decoder.finish().unwrap() {
            if let Frame::Event(event) | Frame::Cut(event) = frame {
                reader.read(&event, &mut deltas).unwrap();
            }
        }
        let mut fold = Fold::default();
        for delta in &deltas {
            fold.push(delta);
        }
        let mut told = format!("{:?}\n", fold.outcome());
        for to in DIALECTS {
            let mut writer = to.stream_writer("main", UsageEvent::Send);
            let mut out = Vec::new();
            for delta in &deltas {
                writer.write(delta, &mut out);
            }
            writeln!(told, "--- {}", to.name()).unwrap();
            told.push_str(&String::from_utf8(out).unwrap());
            lossy(&mut told, writer.losses());
        }
        told
    });
}

#[test]
fn errors_in_every_dialect() {
    each("error", 5, |from, input| {
        let input: Value = serde_json::from_slice(input).unwrap();
        let status = u16::try_from(input["status"].as_u64().unwrap()).unwrap();
        let body = match &input["body"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let error = from.read_error(status, body.as_bytes());
        let mut told = format!("{error:#?}\n");
        let out = ErrorOut {
            status,
            code: error.class.word(),
            message: &error.message,
            param: error.param.as_deref(),
            call_id: "call-1",
        };
        for to in DIALECTS {
            let written = Written { bytes: to.write_error(&out), losses: vec![] };
            section(&mut told, to, &written);
            let under_200 = to.read_reply(&written.bytes);
            assert!(matches!(under_200, Err(ReadFault::Failure(_))), "{under_200:?}");
            told.push_str(&String::from_utf8(to.write_stream_error(&out)).unwrap());
        }
        told
    });
}
