//! Reads what came of a request that was handed through, as if it had been an attempt.

use std::time::Duration;

use backstay_decide::fault::Fault;
use backstay_wire::Dialect;
use backstay_wire::chat::Fold;
use backstay_wire::frame::sse::{Decoder, Frame, Limits};
use bytes::Bytes;
use http::HeaderMap;

use super::{Failure, Got, Head, Seen, Whole, classify, fold, is_stream, read};
use crate::clock::Clock;
use crate::route::Armed;

/// A response that somebody else handed on.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body as far as it came.
    pub body: Bytes,
    /// Whether and why the body broke off.
    pub broke: Option<String>,
    /// From sending to the last byte.
    pub took: Duration,
}

/// Whether something of the reply would be out already that cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A stream brought content.
    Some,
    /// It did not, or the reply is no stream.
    Nothing,
}

/// The end of the attempt that `armed` would have been, for so many answers.
pub(crate) fn seen(
    mut armed: Box<Armed>,
    heard: Heard,
    choices: usize,
    clock: &Clock,
) -> (Seen, Shown) {
    // The request went as it came: there is nothing to take back of it.
    armed.request.lowerings = std::sync::Arc::default();
    let head = Head { status: heard.status, headers: heard.headers };
    let streamed = is_stream(&head.headers);
    let mut shown = Shown::Nothing;
    let result = match heard.broke {
        _ if !(200..300).contains(&heard.status) => {
            Err(classify::status(&armed, &head, &heard.body, clock.wall()))
        }
        broke if streamed => {
            let dialect = armed.request.dialect;
            let folded = folded(&heard.body, (dialect, choices), &mut shown);
            broke.map_or(folded, |why| Err(Failure::new(Fault::StreamCut, why)))
        }
        Some(why) => Err(Failure::new(Fault::ConnectionLost, why)),
        None => read::reply(&armed, &head, heard.body, clock),
    };
    let seen = Seen {
        status: Some(head.status),
        request_id: classify::request_id(&head.headers),
        took: heard.took,
        limits: classify::limits(&head.headers, clock),
        ..Seen::of(armed, result.map(|whole| Got::Whole(Box::new(whole))))
    };
    (seen, shown)
}

/// The end of an attempt that brought no response.
pub(crate) fn nothing(armed: Box<Armed>, fault: Fault, took: Duration) -> Seen {
    let failure = Failure::new(fault, "no response came");
    Seen { took, ..Seen::of(armed, Err(failure)) }
}

/// The whole reply, of so many choices, that a stream says.
fn folded(
    body: &Bytes,
    (dialect, choices): (Dialect, usize),
    shown: &mut Shown,
) -> Result<Whole, Failure> {
    let (mut decoder, mut reader) = (Decoder::new(Limits::default()), dialect.stream_reader());
    decoder.push(body.clone());
    let broken =
        |fault: String| Failure::new(Fault::MalformedReply, format!("broken stream: {fault}"));
    let (mut fold, mut deltas, mut last) = (Fold::default(), Vec::new(), false);
    loop {
        let mut frame = decoder.next_frame().map_err(|fault| broken(fault.to_string()))?;
        if frame.is_none() {
            // Its last line may hold more than one.
            if std::mem::replace(&mut last, true) {
                break;
            }
            frame = decoder.finish().ok().flatten();
        }
        if let Some(Frame::Event(event) | Frame::Cut(event)) = frame {
            reader.read(&event, &mut deltas).map_err(|fault| broken(fault.to_string()))?;
        }
        for delta in deltas.drain(..) {
            if delta.is_content() {
                *shown = Shown::Some;
            }
            fold.push(&delta);
        }
    }
    let reply = fold::ended(fold, choices)?;
    Ok(Whole { reply, raw: None, events: Some(body.clone()), dialect })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_the_very_last_bytes_of_a_stream_is_read() {
        let said = "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\
            \"delta\":{\"content\":\"Hel\"},\"finish_reason\":\"stop\"}]}\n";
        for (last, whole) in [
            ("", Ok("Hel")),
            ("{\"error\":{\"message\":\"no room\",\"code\":503}}", Err(Fault::Overloaded)),
            ("{\"error\":{\"message\":\"no room\",\"code\":503}}\n", Err(Fault::Overloaded)),
        ] {
            let body = Bytes::from(format!("{said}{last}"));
            let mut shown = Shown::Nothing;
            let folded = folded(&body, (Dialect::OpenaiChat, 1), &mut shown);
            let text = folded.as_ref().map(|whole| whole.reply.choices[0].text());
            assert_eq!(text.map_err(|failure| failure.fault), whole.map(str::to_owned), "{last}");
            assert_eq!(shown, Shown::Some);
        }
    }
}
