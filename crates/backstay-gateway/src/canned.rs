//! Gives words to the two answers the HTTP library sends by itself.
//!
//! A head that is too large or not HTTP never reaches our code: the library answers 431 or 400
//! with an empty body. SDK users would see a blank error. This wrapper stands on the socket,
//! recognises those canned answers by their first bytes, and puts a body to them that both SDK
//! families read. While an answer of ours is under way nothing is touched, whatever it looks like:
//! a provider's own empty 400 goes on as it is.
//!
//! The same place ends connections on which no request comes, or only a part of one.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::patience::{Over, Patience};
use crate::stalled::Unstalled;
use crate::turn::Turn;

const TOO_LARGE: &[u8] = b"HTTP/1.1 431 ";
const NOT_HTTP: &[u8] = b"HTTP/1.1 400 ";
const EMPTY: &[u8] = b"content-length: 0";

/// A socket whose canned errors have words.
#[derive(Debug)]
pub(crate) struct Worded {
    socket: Unstalled,
    turn: Arc<Turn>,
    patience: Patience,
    /// What is left to write of a worded answer.
    left: Vec<u8>,
}

impl Worded {
    pub(crate) fn new(socket: Unstalled, turn: Arc<Turn>, patience: Patience) -> Self {
        Self { socket, turn, patience, left: Vec::new() }
    }

    /// Nothing came. Ready when that has been so for too long.
    fn poll_waited(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        if !self.turn.is_asking() {
            return Poll::Pending;
        }
        match std::task::ready!(self.patience.poll_over(cx)) {
            // As if the caller had closed a connection it does not use.
            Over::Rest => Poll::Ready(Ok(())),
            Over::Head => Poll::Ready(Err(std::io::ErrorKind::TimedOut.into())),
        }
    }

    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        while !self.left.is_empty() {
            let written = std::task::ready!(Pin::new(&mut self.socket).poll_write(cx, &self.left))?;
            if written == 0 {
                return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
            }
            self.left.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

/// The answer in place of a canned one. `None`: it is not canned.
fn worded(head: &[u8]) -> Option<Vec<u8>> {
    let (status, code, message) = if head.starts_with(TOO_LARGE) {
        (
            "431 Request Header Fields Too Large",
            "invalid_request",
            "the request has too many headers, or too large ones; send fewer",
        )
    } else if head.starts_with(NOT_HTTP) {
        ("400 Bad Request", "invalid_request", "the request is not valid HTTP/1.1")
    } else {
        return None;
    };
    memchr::memmem::find(head, EMPTY)?;
    let body = serde_json::json!({
        "type": "error",
        "error": {"type": "invalid_request_error", "code": code, "message": message, "param": null}
    })
    .to_string();
    let length = body.len();
    Some(
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         x-should-retry: false\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .into_bytes(),
    )
}

impl AsyncRead for Worded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(cx, into);
        if read.is_pending() {
            return self.poll_waited(cx);
        }
        if into.filled().len() > before && self.turn.is_asking() {
            self.patience.came();
        }
        read
    }
}

impl AsyncWrite for Worded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        std::task::ready!(self.poll_left(cx))?;
        if self.turn.is_asking()
            && let Some(answer) = worded(bytes)
        {
            self.left = answer;
            let _ = self.poll_left(cx)?;
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        if let [only] = pieces {
            return self.poll_write(cx, only);
        }
        std::task::ready!(self.poll_left(cx))?;
        Pin::new(&mut self.socket).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        std::task::ready!(self.poll_left(cx))?;
        std::task::ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        if self.turn.flushed() {
            self.patience.answered();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        std::task::ready!(self.poll_left(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::worded;

    #[test]
    fn only_empty_canned_answers_get_words() {
        let canned = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
        let answer = String::from_utf8(worded(canned).unwrap()).unwrap();
        assert!(answer.contains("too many headers"), "{answer}");
        assert!(worded(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 12\r\n\r\n").is_none());
        assert!(worded(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_none());
        assert!(worded(b"").is_none());
    }
}
