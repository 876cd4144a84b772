//! Connections that know whether they lay idle: one that did and breaks before the first byte of the
//! next answer was closed by the other side meanwhile.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::time::Instant;

use super::driven::{Drive, WeakDrive, introduce};

/// How long a connection must have lain idle before its end can be told from a failure: servers
/// close idle ones after 2 s and more.
const IDLE: Duration = Duration::from_secs(1);

/// A request is under way that a busy or a new connection carries.
const BUSY: u8 = 0;
/// A request was written after a rest, and nothing read since.
const WOKEN: u8 = 1;
/// One read since: the first bytes of an answer, or the end. Which of them, hyper knows and says.
const ONE_READ: u8 = 2;
/// An answer came, whole or in part.
const ANSWERED: u8 = 3;

/// How far a connection is in its turns of asking and answering.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<Turn>);

#[derive(Debug)]
struct Turn {
    opened: Instant,
    state: AtomicU8,
    /// When something was read last, in milliseconds after it was opened.
    read: AtomicU64,
    /// Who can drive it, once that is known.
    drive: OnceLock<WeakDrive>,
}

impl Turns {
    fn new() -> Self {
        let (state, read) = (AtomicU8::new(BUSY), AtomicU64::new(0));
        Self(Arc::new(Turn { opened: Instant::now(), state, read, drive: OnceLock::new() }))
    }

    /// They are those of a connection that can be driven.
    pub(super) fn are_of(&self, drive: WeakDrive) {
        let _ = self.0.drive.set(drive);
    }

    /// The connection, where it can be driven and is not closed.
    pub(super) fn drive(&self) -> Option<Drive> {
        self.0.drive.get().and_then(WeakDrive::get)
    }

    fn age(&self) -> u64 {
        u64::try_from(self.0.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn read(&self) {
        self.0.read.store(self.age(), Ordering::Relaxed);
        let next = if self.0.state.load(Ordering::Relaxed) == WOKEN { ONE_READ } else { ANSWERED };
        self.0.state.store(next, Ordering::Relaxed);
    }

    fn written(&self) {
        if self.0.state.load(Ordering::Relaxed) < ONE_READ {
            return;
        }
        let idle = self.age().saturating_sub(self.0.read.load(Ordering::Relaxed));
        let next = if u128::from(idle) >= IDLE.as_millis() { WOKEN } else { BUSY };
        self.0.state.store(next, Ordering::Relaxed);
    }

    /// Whether `connection` had lain idle after an answer, and did not give a byte of another one.
    pub(super) fn broke_while_kept(connection: &Connected) -> bool {
        // Under HTTP/2 many requests share the turns.
        if connection.is_negotiated_h2() {
            return false;
        }
        let mut found = http::Extensions::new();
        connection.get_extras(&mut found);
        let turns = found.get::<Self>();
        turns.is_some_and(|turns| matches!(turns.0.state.load(Ordering::Relaxed), WOKEN | ONE_READ))
    }
}

/// A connection that counts its turns.
#[derive(Debug)]
pub(super) struct Kept<T> {
    inner: T,
    turns: Turns,
    /// Whether its job knows that it is this connection's.
    is_introduced: bool,
}

impl<T> Kept<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, turns: Turns::new(), is_introduced: false }
    }

    fn introduce(&mut self) {
        if !self.is_introduced {
            self.is_introduced = introduce(&self.turns);
        }
    }
}

impl<T: Connection> Connection for Kept<T> {
    /// Says what the inner one says of its protocol, and nothing of addresses: each response would
    /// carry them, and nobody reads them.
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(self.turns.clone());
        if self.inner.connected().is_negotiated_h2() {
            connected.negotiated_h2()
        } else {
            connected
        }
    }
}

impl<T: Read + Unpin> Read for Kept<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.introduce();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if matches!(read, Poll::Ready(Ok(()))) {
            self.turns.read();
        }
        read
    }
}

impl<T: Write + Unpin> Write for Kept<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.turns.written();
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.turns.written();
        Pin::new(&mut self.inner).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
