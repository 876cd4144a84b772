//! The event decoder against the standard's rules, any split of its input, and recorded streams.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

mod recorded;

use backstay_wire::frame::sse::{Decoder, Event, Frame, Limits, SseFault, comment, write_event};
use bytes::Bytes;
use proptest::prelude::*;

/// All frames of a body that arrives in `pieces`.
fn frames<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Frame> {
    let (found, fault) = bounded(Limits::default(), pieces);
    assert_eq!(fault, None);
    found
}

/// The frames of a body that arrives in `pieces`, and the bound it broke.
fn bounded<'a>(
    limits: Limits,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Frame>, Option<SseFault>) {
    let mut decoder = Decoder::new(limits);
    let mut found = Vec::new();
    let mut take = |next: Result<Option<Frame>, SseFault>| -> Result<bool, SseFault> {
        let frame = next?;
        let came = frame.is_some();
        found.extend(frame);
        Ok(came)
    };
    let read = || -> Result<(), SseFault> {
        for piece in pieces {
            decoder.push(Bytes::copy_from_slice(piece));
            while take(decoder.next_frame())? {}
        }
        while take(decoder.finish())? {}
        assert_eq!(decoder.finish(), Ok(None), "finish ends once");
        Ok(())
    };
    let fault = read().err();
    if let Some(fault) = &fault {
        assert_eq!(decoder.next_frame(), Err(fault.clone()), "fused");
        assert_eq!(decoder.finish(), Err(fault.clone()), "fused");
    }
    (found, fault)
}

/// (name, data) of the events; `true` for one that was cut.
type Said = Vec<(String, Vec<u8>, bool)>;

fn said(frames: &[Frame]) -> Said {
    let told = |event: &Event, cut| (event.name.clone(), event.data.to_vec(), cut);
    let each = |frame: &Frame| match frame {
        Frame::Event(event) => Some(told(event, false)),
        Frame::Cut(event) => Some(told(event, true)),
        Frame::Alive(_) => None,
    };
    frames.iter().filter_map(each).collect()
}

fn lines(body: &[u8]) -> Vec<Vec<u8>> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut lines: Vec<Vec<u8>> = vec![vec![]];
    let mut bytes = body.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\n' => lines.push(vec![]),
            b'\r' => {
                bytes.next_if_eq(&b'\n');
                lines.push(vec![]);
            }
            other => lines.last_mut().unwrap().push(other),
        }
    }
    lines
}

/// The rules once more, on a whole body, as plainly as they can be written.
fn reference(body: &[u8]) -> Said {
    let lines = lines(body);
    let last = lines.len() - 1;
    let (mut found, mut name, mut data) = (Said::new(), String::new(), None::<Vec<u8>>);
    for (at, line) in lines.iter().enumerate() {
        if line.is_empty() && at < last {
            if let Some(data) = data.take() {
                found.push((name.clone(), data, false));
            }
            name.clear();
        } else if line.first() == Some(&b'{') {
            if let Some(data) = data.take() {
                found.push((std::mem::take(&mut name), data, false));
            }
            found.push((std::mem::take(&mut name), line.clone(), at == last));
        } else if line.first() != Some(&b':') {
            let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
            let mut value = line.get(colon + 1..).unwrap_or_default();
            if value.first() == Some(&b' ') {
                value = &value[1..];
            }
            match (&line[..colon], &mut data) {
                (b"data", Some(data)) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                (b"data", None) => data = Some(value.to_vec()),
                (b"error", Some(data)) if !value.trim_ascii().is_empty() => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                    "error".clone_into(&mut name);
                }
                (b"error", None) if !value.trim_ascii().is_empty() => {
                    data = Some(value.to_vec());
                    "error".clone_into(&mut name);
                }
                (b"event", _) => name = String::from_utf8_lossy(value).into_owned(),
                _ => {}
            }
        }
    }
    if let Some(data) = data {
        found.push((name, data, true));
    }
    found
}

fn whole(body: &[u8]) -> Vec<Frame> {
    let found = frames([body]);
    let joined: Vec<u8> = found.iter().flat_map(|frame| frame.raw().to_vec()).collect();
    assert_eq!(joined, body, "the raw bytes of the frames are the body");
    assert_eq!(said(&found), reference(body), "{:?}", String::from_utf8_lossy(body));
    found
}

fn event(name: &str, data: &str) -> (String, Vec<u8>, bool) {
    (name.to_owned(), data.as_bytes().to_vec(), false)
}

fn cut(name: &str, data: &str) -> (String, Vec<u8>, bool) {
    (name.to_owned(), data.as_bytes().to_vec(), true)
}

#[test]
fn every_line_end_closes_a_line_and_mixtures_do_too() {
    for end in ["\n", "\r\n", "\r"] {
        let body = format!("event: a{end}data: 1{end}{end}data: 2{end}{end}");
        let found = whole(body.as_bytes());
        assert_eq!(said(&found), [event("a", "1"), event("", "2")], "{end:?}");
        assert_eq!(found.len(), 2, "{end:?}");
    }
    assert_eq!(said(&whole(b"data: 1\r\n\ndata: 2\n\r\ndata: 3\r\r\n")).len(), 3);
    assert_eq!(said(&whole(b"data: 1\n\rdata: 2\r\n\r")).len(), 2);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_start() {
    assert_eq!(said(&whole(b"\xEF\xBB\xBFdata: 1\n\n")), [event("", "1")]);
    assert_eq!(said(&whole(b"\n\xEF\xBB\xBFdata: 1\n\n")), []);
    assert_eq!(said(&whole(b"\xEF\xBB\xBF{\"a\":1}\n")), [event("", "{\"a\":1}")]);
}

#[test]
fn fields_follow_the_standard() {
    assert_eq!(said(&whole(b"data\n\n")), [event("", "")]);
    assert_eq!(said(&whole(b"data:\n\n")), [event("", "")]);
    assert_eq!(said(&whole(b"data:  x\n\n")), [event("", " x")]);
    assert_eq!(said(&whole(b"data: a\ndata\ndata:b\n\n")), [event("", "a\n\nb")]);
    assert_eq!(said(&whole(b"event: a\nevent: b\ndata: x\n\n")), [event("b", "x")]);
    assert_eq!(said(&whole(b"id: 7\nretry: 10\nDATA: x\ndatas: y\n\n")), []);
    assert_eq!(said(&whole(b"event: a\n\ndata: x\n\n")), [event("", "x")], "a name does not last");
    assert_eq!(said(&whole(b"data: : keepalive\n\n")), [event("", ": keepalive")]);
}

#[test]
fn comments_blank_lines_and_events_without_data_are_signs_of_life() {
    let alive = |text: &'static str| Frame::Alive(Bytes::from_static(text.as_bytes()));
    assert_eq!(whole(b": hello\n\n"), [alive(": hello\n"), alive("\n")]);
    assert_eq!(whole(b"event: ping\n\n"), [alive("event: ping\n\n")]);
    assert_eq!(whole(b"\r\n\r\n"), [alive("\r\n"), alive("\r\n")]);
    let found = whole(b"data: 1\n: inside\n\n");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].raw().as_ref(), b"data: 1\n: inside\n\n");
}

#[test]
fn a_bare_json_line_is_an_event_of_its_own() {
    let error = r#"{"error":{"message":"x"}}"#;
    assert_eq!(said(&whole(format!("{error}\n").as_bytes())), [event("", error)]);
    assert_eq!(said(&whole(error.as_bytes())), [cut("", error)]);
    let named = format!("event: error\n{error}\n\n");
    assert_eq!(said(&whole(named.as_bytes())), [event("error", error)]);
    let body = format!("event: a\ndata: 1\n{error}\r\ndata: 2\n\n");
    assert_eq!(said(&whole(body.as_bytes())), [event("a", "1"), event("", error), event("", "2")]);
    let body = format!("data: 1\n{error}");
    assert_eq!(said(&whole(body.as_bytes())), [event("", "1"), cut("", error)]);
}

#[test]
fn a_field_named_error_is_an_event_of_that_name() {
    let found = said(&whole(b"error: {\"code\":500}\n\nerror:\n\ndata: a\n\n"));
    assert_eq!(found, [event("error", "{\"code\":500}"), event("", "a")]);
}

#[test]
fn an_unclosed_event_at_the_end_is_told_as_cut() {
    assert_eq!(said(&whole(b"data: [DONE]")), [cut("", "[DONE]")]);
    assert_eq!(said(&whole(b"data: [DONE]\n")), [cut("", "[DONE]")]);
    assert_eq!(said(&whole(b"data: [DONE]\r\n\r")), [event("", "[DONE]")]);
    assert_eq!(said(&whole(b"event: a\ndata: {\"x\":")), [cut("a", "{\"x\":")]);
    assert_eq!(whole(b"event: a"), [Frame::Alive(Bytes::from_static(b"event: a"))]);
    assert_eq!(whole(b"dat"), [Frame::Alive(Bytes::from_static(b"dat"))]);
    assert_eq!(whole(b""), []);
}

#[test]
fn a_cr_at_the_end_of_a_piece_waits_for_its_lf() {
    let mut decoder = Decoder::default();
    decoder.push(Bytes::from_static(b"data: 1\r\n\r"));
    assert_eq!(decoder.next_frame(), Ok(None));
    decoder.push(Bytes::from_static(b"\n"));
    let frame = decoder.next_frame().unwrap().unwrap();
    assert_eq!(frame.raw().as_ref(), b"data: 1\r\n\r\n");
}

#[test]
fn bare_crs_do_not_hold_an_event_back() {
    let mut decoder = Decoder::default();
    decoder.push(Bytes::from_static(b"data: 1\r\r"));
    assert_eq!(decoder.next_frame().unwrap().unwrap().raw().as_ref(), b"data: 1\r\r");
}

#[test]
fn whole_events_in_one_piece_are_slices_of_it() {
    let piece = Bytes::from_static(b"event: a\ndata: 1\n\n: hi\ndata: {\"x\":2}\n\n");
    let within = |bytes: &Bytes| piece.as_ptr_range().contains(&bytes.as_ptr());
    let mut decoder = Decoder::default();
    decoder.push(piece.clone());
    let mut events = 0;
    while let Some(frame) = decoder.next_frame().unwrap() {
        assert!(within(frame.raw()));
        if let Frame::Event(event) = frame {
            assert!(within(&event.data));
            events += 1;
        }
    }
    assert_eq!(events, 2);
}

const NARROW: Limits = Limits { line: 10, event: 24 };

#[test]
fn a_line_or_event_over_its_limit_is_a_fault_however_it_arrives() {
    let over = |limit| Some(SseFault::TooLarge { limit });
    let told = |body: &[u8], step| {
        let (found, fault) = bounded(NARROW, body.chunks(step));
        (found.len(), fault)
    };
    for step in 1..40 {
        assert_eq!(told(b"data: 1\n\ndata: 3456\r\n\r\n", step), (2, None), "{step}");
        assert_eq!(told(b"data: 1\n\ndata: 34567\n\n", step), (1, over(10)), "{step}");
        assert_eq!(told(b"data: 1\n\ndata: 34567", step), (1, over(10)), "{step}");
        let long = b": a\ndata: 12\ndata: 12\ndata: 1\n\n";
        assert_eq!(told(long, step), (1, over(24)), "{step}");
        // Both are broken in the end, but the event first.
        let both = b"data: 12\ndata: 12\ndata: 123456789\n\n";
        assert_eq!(told(both, step), (0, over(24)), "{step}");
    }
}

#[test]
fn a_large_event_byte_by_byte_takes_linear_time() {
    // 4 MB in single bytes: hours if each piece were to be scanned or copied again.
    let mut body = b"data: ".to_vec();
    body.resize(4_000_000, b'x');
    body.extend_from_slice(b"\n\n");
    let found = frames(body.chunks(1));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].raw().len(), body.len());
}

#[test]
fn what_the_encoder_writes_the_decoder_reads() {
    let mut out = Vec::new();
    write_event(&mut out, "", b"{\"a\":1}");
    write_event(&mut out, "er\nror", b"two\nlines");
    comment(&mut out, "still\r\nhere");
    write_event(&mut out, "", b"");
    assert_eq!(
        String::from_utf8(out.clone()).unwrap(),
        "data: {\"a\":1}\n\nevent: error\ndata: two\ndata: lines\n\n: still\n: here\n\ndata: \n\n"
    );
    assert_eq!(
        said(&whole(&out)),
        [event("", "{\"a\":1}"), event("error", "two\nlines"), event("", "")]
    );
}

fn streams() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        6 => Just("\n"), 4 => Just("\r"), 5 => Just("\r\n"), 3 => Just("\n\n"), 2 => Just("\r\r"),
        4 => Just("data: "), 2 => Just("data:"), 2 => Just("event: "), 1 => Just("id: 1"),
        1 => Just("retry: 5"), 2 => Just(": c"), 2 => Just("{\"error\":1}"), 2 => Just("{"),
        2 => Just("é漢🎈"), 2 => Just(" "), 1 => Just("error: {}"), 2 => Just("x"), 1 => Just(":"), 1 => Just("\u{feff}"),
        1 => Just("\0"), 1 => Just("data"),
    ];
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat().into_bytes())
}

/// `body` cut at these places of it.
fn split<'a>(body: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
    cuts.extend([0, body.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_split_gives_the_same_frames(
        body in streams(), cuts in prop::collection::vec(any::<usize>(), 0..8)
    ) {
        let expected = whole(&body);
        prop_assert_eq!(&frames(split(&body, &cuts)), &expected);
        prop_assert_eq!(&frames(body.chunks(1)), &expected);
    }

    #[test]
    fn any_bytes_give_frames_that_make_up_the_body(
        body in prop::collection::vec(any::<u8>(), 0..200),
        cuts in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        prop_assert_eq!(&frames(split(&body, &cuts)), &whole(&body));
    }

    #[test]
    fn any_split_breaks_the_same_bound(
        body in streams(), cuts in prop::collection::vec(any::<usize>(), 0..8)
    ) {
        let expected = bounded(NARROW, [&body[..]]);
        prop_assert_eq!(&bounded(NARROW, split(&body, &cuts)), &expected);
        prop_assert_eq!(&bounded(NARROW, body.chunks(1)), &expected);
    }
}

#[test]
fn recorded_streams_give_the_same_frames_however_they_are_split() {
    let Some(bodies) = recorded::streams(|_| true) else { return };
    let (mut events, mut seed) = (0, 0x9E37_79B9_7F4A_7C15_u64);
    for (id, body) in &bodies {
        let expected = whole(body.as_bytes());
        events += expected.len();
        assert!(!said(&expected).is_empty(), "{id} has no event");
        for _ in 0..3 {
            let mut cuts = Vec::new();
            for _ in 0..20 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                cuts.push(usize::try_from(seed >> 16).unwrap());
            }
            assert_eq!(frames(split(body.as_bytes(), &cuts)), expected, "{id}");
        }
        assert_eq!(frames(body.as_bytes().chunks(1)), expected, "{id} byte by byte");
    }
    println!("{} recorded streams, {events} frames", bodies.len());
    assert!(bodies.len() > 100, "the recordings hold more streams than {}", bodies.len());
}
