//! Recorded streams through each dialect's reader: the bytes may be cut anywhere and their lines may
//! end in LF, CRLF, CR or each in another, and the deltas stay the same.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

mod recorded;

use backstay_wire::chat::Delta;
use backstay_wire::dialect::Dialect;
use backstay_wire::frame::sse::{Decoder, Frame};
use bytes::Bytes;
use proptest::prelude::*;

/// Id and body of every recorded stream of `dialect`.
fn recorded(dialect: Dialect) -> Option<Vec<(String, String)>> {
    let api = match dialect {
        Dialect::OpenaiChat => "chat.completions",
        Dialect::Anthropic => "messages",
    };
    recorded::streams(|known| known == api)
}

/// What the reader says of a body in these pieces, with the fault that ended it.
fn deltas<'a>(
    dialect: Dialect,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Delta>, Option<String>) {
    let (mut decoder, mut reader, mut said) =
        (Decoder::default(), dialect.stream_reader(), Vec::new());
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(frame) = decoder.next_frame().unwrap() {
            if let Frame::Event(event) = frame
                && let Err(fault) = reader.read(&event, &mut said)
            {
                return (said, Some(fault.to_string()));
            }
        }
    }
    while let Some(frame) = decoder.finish().unwrap() {
        if let Frame::Event(event) | Frame::Cut(event) = frame
            && let Err(fault) = reader.read(&event, &mut said)
        {
            return (said, Some(fault.to_string()));
        }
    }
    (said, None)
}

/// `body` with its line ends replaced by those of `ends`, used in turn. A CR is never put before an
/// LF that ends another line: together they would end one.
fn with_ends(body: &str, ends: &[&str]) -> Vec<u8> {
    let lines = body.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let mut out = Vec::with_capacity(body.len() * 2);
    for (at, line) in lines.enumerate() {
        if at > 0 {
            let end = ends[at % ends.len()];
            let joins = out.last() == Some(&b'\r') && end == "\n";
            out.extend_from_slice(if joins { b"\r" } else { end.as_bytes() });
        }
        out.extend_from_slice(line.as_bytes());
    }
    out
}

/// `body` cut at these places of it.
fn pieces<'a>(body: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    cuts.extend([0, body.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect()
}

fn line_ends() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop_oneof![Just("\n"), Just("\r\n"), Just("\r")], 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_split_and_any_line_ends_of_a_recorded_stream_say_the_same(
        pick in any::<prop::sample::Index>(),
        ends in line_ends(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        for dialect in [Dialect::OpenaiChat, Dialect::Anthropic] {
            let Some(bodies) = recorded_once(dialect) else { return Ok(()) };
            let (id, body) = &bodies[pick.index(bodies.len())];
            let expected = deltas(dialect, [body.as_bytes()]);
            let other = with_ends(body, &ends);
            prop_assert_eq!(&deltas(dialect, pieces(&other, &cuts)), &expected, "{}", id);
        }
    }
}

/// As [`recorded`], read once a dialect.
fn recorded_once(dialect: Dialect) -> Option<&'static [(String, String)]> {
    use std::sync::LazyLock;
    type Bodies = LazyLock<Option<Vec<(String, String)>>>;
    static OPENAI: Bodies = LazyLock::new(|| recorded(Dialect::OpenaiChat));
    static ANTHROPIC: Bodies = LazyLock::new(|| recorded(Dialect::Anthropic));
    match dialect {
        Dialect::OpenaiChat => OPENAI.as_deref(),
        Dialect::Anthropic => ANTHROPIC.as_deref(),
    }
}

#[test]
fn every_recorded_stream_says_the_same_byte_by_byte_and_with_every_line_end() {
    for (dialect, least) in [(Dialect::OpenaiChat, 60), (Dialect::Anthropic, 20)] {
        let Some(bodies) = recorded_once(dialect) else { return };
        assert!(bodies.len() >= least, "{} streams of {dialect:?}", bodies.len());
        for (id, body) in bodies {
            let expected = deltas(dialect, [body.as_bytes()]);
            for ends in [["\n"], ["\r\n"], ["\r"]] {
                let body = with_ends(body, &ends);
                assert_eq!(deltas(dialect, body.chunks(1)), expected, "{id} {ends:?}");
            }
        }
    }
}
