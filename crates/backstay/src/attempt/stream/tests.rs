//! What a stream costs that is held.

use std::time::Duration;

use backstay_wire::Dialect;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::{Opened, StreamTimers};
use crate::attempt::transport::Transport;
use crate::policy::Window;

const TEXTS: usize = 40;

/// A stream of so many texts that are there at once.
async fn opened() -> Opened {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let transport = Transport::new();
    let request = Request::get(uri).body(Full::<Bytes>::default()).unwrap();
    let sending = transport.send(request, Duration::from_secs(1));
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        assert!(socket.read(&mut vec![0; 4_096]).await.unwrap() > 0);
        let said = "data: {\"choices\":[{\"delta\":{\"content\":\"light\"}}]}\n\n".repeat(TEXTS);
        let events = said + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", events.len());
        socket.write_all((head + &events).as_bytes()).await.unwrap();
        socket
    };
    let (sent, _) = tokio::join!(sending, serving);
    let limit = Duration::from_secs(5);
    let timers =
        StreamTimers { sent: Instant::now(), first_token: limit, gap: limit, total: limit };
    Opened::new(sent.unwrap().into_body(), Dialect::OpenaiChat, timers)
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
