//! Gives up on a caller who has stopped reading.
//!
//! While nothing can be written, nobody polls the answer's body, so none of its timers runs: a
//! caller who opens a stream and never reads it would hold a place at the provider for ever. The
//! bound is on the silence, not on the whole: a slow reader is served as long as it reads at all.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Longest time in which a caller takes not one byte. nginx's `send_timeout` is the same minute.
pub(crate) const STALLED: Duration = Duration::from_mins(1);

/// A socket whose writes fail when the other side does not read for too long.
#[derive(Debug)]
pub(crate) struct Unstalled {
    socket: TcpStream,
    limit: Duration,
    /// Set while a write waits.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Unstalled {
    pub(crate) fn new(socket: TcpStream, limit: Duration) -> Self {
        Self { socket, limit, alarm: None }
    }

    /// Starts, keeps or stops the clock by what a write came to.
    fn watched<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<std::io::Result<T>>,
    ) -> Poll<std::io::Result<T>> {
        if written.is_ready() {
            self.alarm = None;
            return written;
        }
        let limit = self.limit;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(alarm.as_mut().poll(cx));
        Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Unstalled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, into)
    }
}

impl AsyncWrite for Unstalled {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.watched(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, pieces);
        self.watched(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    use super::Unstalled;

    const LIMIT: Duration = Duration::from_millis(200);

    async fn pair() -> (Unstalled, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        (Unstalled::new(socket, LIMIT), caller)
    }

    #[tokio::test]
    async fn a_caller_who_reads_nothing_is_given_up_after_the_limit() {
        let (mut socket, _caller) = pair().await;
        let began = Instant::now();
        // More than any socket buffer holds.
        let wrong = socket.write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(wrong.kind(), std::io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= LIMIT && began.elapsed() < LIMIT * 10);
    }

    #[tokio::test]
    async fn a_caller_who_reads_slowly_is_served_to_the_end() {
        const SIZE: usize = 24 << 20;
        let (mut socket, mut caller) = pair().await;
        let reading = async {
            let mut buffer = vec![0; 4 << 20];
            let mut got = 0;
            while got < SIZE {
                tokio::time::sleep(LIMIT / 4).await;
                got += caller.read(&mut buffer).await.unwrap();
            }
        };
        let began = Instant::now();
        let everything = vec![0; SIZE];
        let (written, ()) = tokio::join!(socket.write_all(&everything), reading);
        written.unwrap();
        assert!(began.elapsed() > LIMIT, "too quick to show anything");
    }
}
