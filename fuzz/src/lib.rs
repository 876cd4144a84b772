//! What the fuzz targets of the wire formats have in common: how bytes come in, and what must hold
//! of whatever is made of them.

use backstay_wire::chat::{Delta, Fold, FoldEnd, Reply};
use backstay_wire::dialect::{Dialect, ErrorOut, ReadFault, StreamReader, UsageEvent};
use backstay_wire::frame::sse::{Decoder, Frame, Limits};
use bytes::Bytes;

const CUT: ErrorOut<'_> = ErrorOut {
    status: 502,
    code: "provider_stream_cut",
    message: "it was cut",
    param: None,
    call_id: "",
};

const BOTH: [Dialect; 2] = [Dialect::OpenaiChat, Dialect::Anthropic];

/// The sizes of the pieces, used in turn, and the body: the first eight bytes of the input, and the
/// rest. `None`: the input is shorter.
pub fn cut(input: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let (sizes, body) = input.split_at_checked(8)?;
    let mut rest = body;
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at((usize::from(*size) + 1).min(rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    Some((pieces, body))
}

/// The frames of a body in these pieces, and the fault that ended it.
pub fn frames(pieces: &[&[u8]], limits: Limits) -> (Vec<Frame>, Option<String>) {
    let (mut decoder, mut found) = (Decoder::new(limits), Vec::new());
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => break,
                Err(fault) => return (found, Some(fault.to_string())),
            }
        }
    }
    loop {
        match decoder.finish() {
            Ok(Some(frame)) => found.push(frame),
            Ok(None) => return (found, None),
            Err(fault) => return (found, Some(fault.to_string())),
        }
    }
}

/// What a reader says of frames, and the fault that ended it. Nothing counts of an event that could
/// not be read.
fn deltas(reader: &mut StreamReader, frames: Vec<Frame>) -> (Vec<Delta>, Option<String>) {
    let mut said = Vec::new();
    for frame in frames {
        let before = said.len();
        if let Frame::Event(event) | Frame::Cut(event) = frame
            && let Err(fault) = reader.read(&event, &mut said)
        {
            said.truncate(before);
            return (said, Some(fault.to_string()));
        }
    }
    (said, None)
}

fn folded(deltas: &[Delta]) -> Fold {
    let mut fold = Fold::default();
    deltas.iter().for_each(|delta| fold.push(delta));
    fold
}

fn is_whole(fold: &Fold) -> bool {
    matches!(fold.outcome(), FoldEnd::Whole { .. })
}

/// A stream of `dialect`: any split says the same, and told in either dialect it is whole only if
/// it was.
pub fn stream(dialect: Dialect, input: &[u8]) {
    let Some((pieces, body)) = cut(input) else { return };
    let read = |pieces: &[&[u8]]| {
        let (frames, broken) = frames(pieces, Limits::default());
        let (said, fault) = deltas(&mut dialect.stream_reader(), frames);
        (said, fault.or(broken))
    };
    let (mut said, mut fault) = read(&[body]);
    assert_eq!(read(&pieces), (said.clone(), fault.clone()), "another split says something else");
    // Nobody reads on behind the end.
    if let Some(end) = said.iter().position(|delta| matches!(delta, Delta::End)) {
        said.truncate(end + 1);
        fault = None;
    }
    let fold = folded(&said);
    let was_whole = fault.is_none() && is_whole(&fold);
    for caller in BOTH {
        let mut writer = caller.stream_writer("m", UsageEvent::Send);
        let mut out = Vec::new();
        // The end is told of what is whole; anything else ends with an error.
        let told = said.iter().filter(|delta| was_whole || !matches!(delta, Delta::End));
        told.for_each(|delta| writer.write(delta, &mut out));
        if !was_whole {
            out.extend_from_slice(&caller.write_stream_error(&CUT));
        }
        let (written, broken) = frames(&[&out], Limits::default());
        let (again, fault) = deltas(&mut caller.stream_reader(), written);
        let text = String::from_utf8_lossy(&out);
        assert_eq!((broken, fault), (None, None), "{text}");
        assert!(was_whole || !is_whole(&folded(&again)), "a broken stream is whole: {text}");
    }
    retold(&fold.into_reply());
}

/// A body of `dialect`, under any status: whatever is read of it can be told in either dialect.
pub fn body(dialect: Dialect, input: &[u8]) {
    let Some(([low, high], body)) = input.split_first_chunk() else { return };
    let status = u16::from_le_bytes([*low, *high]) % 700;
    let error = dialect.read_error(status, body);
    assert!(error.message.len() <= 2_000);
    match dialect.read_reply(body) {
        Ok(reply) => {
            assert!(!reply.choices.is_empty());
            retold(&reply);
        }
        Err(ReadFault::Failure(error)) => assert!(error.message.len() <= 2_000),
        Err(ReadFault::Malformed(fault)) => assert!(!fault.note.is_empty()),
    }
}

/// A reply told in either dialect is one there, and as whole as it was.
fn retold(reply: &Reply) {
    for caller in BOTH {
        let written = caller.write_reply(reply).bytes;
        let again = caller.read_reply(&written);
        assert!(again.is_ok(), "{again:?}: {}", String::from_utf8_lossy(&written));
    }
}
