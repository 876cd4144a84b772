//! What a stream costs that is held.

use std::time::Duration;

use backstay_wire::Dialect;
use tokio::time::Instant;

use super::{Opened, StreamTimers};
use crate::attempt::transport::answered;
use crate::policy::Window;

const TEXTS: usize = 40;

/// A stream of so many texts that are there at once.
async fn opened() -> Opened {
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"light\"}}]}\n\n".repeat(TEXTS);
    let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let length = said.len() + finish.len();
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{said}{finish}");
    let (body, _) = answered(&answer).await;
    let limit = Duration::from_secs(5);
    let timers =
        StreamTimers { sent: Instant::now(), first_token: limit, gap: limit, total: limit };
    Opened::new(body, Dialect::OpenaiChat, timers)
}

#[tokio::test]
async fn what_is_held_of_a_stream_holds_no_more_than_its_own_bytes() {
    for is_windowed in [false, true] {
        let mut opened = opened().await;
        if is_windowed {
            opened.hold_back(Window::default(), 1, &[]);
        }
        let mut held = Vec::new();
        loop {
            let read = if is_windowed { opened.next().await } else { opened.read_on().await };
            let Some(piece) = read.unwrap() else { break };
            held.push(piece);
        }
        assert_eq!(held.len(), TEXTS + 1);
        assert!(held.iter().all(|piece| piece.raw.is_unique()), "slices of a larger buffer");
    }
}
