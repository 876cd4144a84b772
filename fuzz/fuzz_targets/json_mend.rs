//! Feeds any bytes to jsonmend and checks what must hold for all of them.
//!
//! The first byte picks policy, status and the size of the stream's pieces.

#![no_main]

use jsonmend::{Mender, Outcome, Policy, Status, Stream, apply};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Some((pick, raw)) = bytes.split_first() else { return };
    let policy = match pick % 3 {
        0 => Policy::strict(),
        1 => Policy::standard(),
        _ => Policy::lenient(),
    };
    let status = match pick / 3 % 3 {
        0 => Status::Unknown,
        1 => Status::Stopped,
        _ => Status::Cut,
    };
    let mender = Mender::new(policy);
    let Ok(raw) = std::str::from_utf8(raw) else {
        assert_eq!(mender.mend_bytes(raw, status).name(), "rejected");
        return;
    };
    let outcome = mender.mend(raw, status);
    let value = check(raw, &outcome, mender, status);
    if *pick % 3 == 0 && value.is_some() {
        let laxer = Mender::new(Policy::standard()).mend(raw, status);
        assert_eq!(read(raw, &laxer), value, "a laxer policy saw another value");
    }
    let mut stream = Stream::new(mender);
    for piece in raw.as_bytes().chunks(usize::from(pick / 9) + 1) {
        stream.feed(piece);
        stream.snapshot();
    }
    let finished = stream.finish(status);
    assert_eq!(finished.outcome.name(), outcome.name());
    assert_eq!(read(raw, &finished.outcome), value);
});

fn read(raw: &str, outcome: &Outcome) -> Option<Value> {
    outcome.document().map(|document| document.root(raw).expect("a document has a root").to_value())
}

fn check(raw: &str, outcome: &Outcome, mender: Mender<'_>, status: Status) -> Option<Value> {
    let value = read(raw, outcome)?;
    let document = outcome.document()?;
    let edits = document.edits(raw);
    let text = apply(&edits, raw).expect("the edits are of this reply");
    assert_eq!(text, document.text(raw));
    if edits.is_empty() {
        assert_eq!(outcome.name(), "valid");
    }
    if let Ok(strict) = serde_json::from_str::<Value>(&text) {
        assert_eq!(strict, value, "the edits lead to another value");
    }
    let again = mender.mend(&text, status);
    assert_eq!(again.name(), "valid", "a mended text is not whole");
    Some(value)
}
