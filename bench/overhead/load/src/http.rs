//! Speaks just enough HTTP/1.1 to load a server: one connection, requests one after another.
//!
//! Head and body of a request leave in one write with no-delay set, and a reply is read to its end
//! by `Content-Length` or by its chunks. Only 127.0.0.1 is ever called.

use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A reply must end within this time; a longer one is a failed request.
const PATIENCE: Duration = Duration::from_secs(30);
/// No head in these tests is longer; a longer one is an error.
const MAX_HEAD: usize = 64 * 1024;
const READ_SIZE: usize = 64 * 1024;

/// A kept-alive connection to a port of 127.0.0.1.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
    /// Bytes read and not yet consumed.
    waiting: Vec<u8>,
    chunk: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Server-sent events seen in the body, the last `[DONE]` included. 0 for a plain body.
    pub events: u64,
    /// Whether the body held the `[DONE]` that ends a stream.
    pub done: bool,
    /// Bytes of the body, without chunk framing.
    pub bytes: u64,
    /// From the request's write to the first byte of the body.
    pub first_byte: Duration,
    /// From the request's write to the first text of a stream. `None`: the body's beginning has none.
    pub first_text: Option<Duration>,
}

/// Builds one request, head and body in one buffer.
pub fn request(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         authorization: Bearer bench\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

impl Connection {
    /// Connects to 127.0.0.1:`port`.
    ///
    /// # Errors
    /// The operating system's refusal.
    pub async fn open(port: u16) -> io::Result<Self> {
        let socket = TcpStream::connect(("127.0.0.1", port)).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, waiting: Vec::with_capacity(READ_SIZE), chunk: vec![0; READ_SIZE] })
    }

    /// Sends `request` and reads its reply to the end.
    ///
    /// # Errors
    /// A broken or closed connection, a reply that is not HTTP/1.1, or one later than `PATIENCE`.
    pub async fn call(&mut self, request: &[u8]) -> io::Result<Reply> {
        timeout(PATIENCE, self.exchange(request))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    async fn exchange(&mut self, request: &[u8]) -> io::Result<Reply> {
        let began = Instant::now();
        self.socket.write_all(request).await?;
        let head = self.head().await?;
        let mut reply = Reply {
            status: head.status,
            events: 0,
            done: false,
            bytes: 0,
            first_byte: began.elapsed(),
            first_text: None,
        };
        let mut reader = BodyReader::new(head.length);
        let mut lines = Lines::default();
        loop {
            let before = reply.bytes;
            let used = reader.take(&self.waiting, &mut lines, &mut reply)?;
            if before == 0 && reply.bytes > 0 {
                reply.first_byte = began.elapsed();
            }
            if reply.first_text.is_none() && lines.text_seen {
                reply.first_text = Some(began.elapsed());
            }
            self.waiting.drain(..used);
            if reader.finished() {
                return Ok(reply);
            }
            self.more().await?;
        }
    }

    async fn head(&mut self) -> io::Result<Head> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.waiting, b"\r\n\r\n") {
                let head = Head::parse(&self.waiting[..end])?;
                self.waiting.drain(..end + 4);
                return Ok(head);
            }
            if self.waiting.len() > MAX_HEAD {
                return Err(bad("a head over the limit"));
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> io::Result<()> {
        let read = self.socket.read(&mut self.chunk).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.waiting.extend_from_slice(&self.chunk[..read]);
        Ok(())
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[derive(Clone, Copy, Debug)]
enum Length {
    Known(u64),
    Chunked,
}

#[derive(Debug)]
struct Head {
    status: u16,
    length: Length,
}

impl Head {
    fn parse(head: &[u8]) -> io::Result<Self> {
        let text = std::str::from_utf8(head).map_err(|_| bad("a head that is not UTF-8"))?;
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok())
            .ok_or_else(|| bad("no HTTP/1.1 status line"))?;
        let mut length = None;
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            if name.eq_ignore_ascii_case("content-length") {
                let known = value.trim().parse().map_err(|_| bad("a length that is no number"))?;
                length = Some(Length::Known(known));
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                length = Some(Length::Chunked);
            }
        }
        let length = length.ok_or_else(|| bad("a body without a length"))?;
        Ok(Self { status, length })
    }
}

/// Takes a body apart as it arrives.
#[derive(Debug)]
enum BodyReader {
    Sized { left: u64 },
    ChunkHead,
    ChunkBody { left: u64 },
    ChunkEnd,
    Trailer,
    Finished,
}

impl BodyReader {
    fn new(length: Length) -> Self {
        match length {
            Length::Known(0) => Self::Finished,
            Length::Known(left) => Self::Sized { left },
            Length::Chunked => Self::ChunkHead,
        }
    }

    fn finished(&self) -> bool {
        matches!(self, Self::Finished)
    }

    /// Consumes what it can of `bytes` and says how much that was.
    fn take(&mut self, bytes: &[u8], lines: &mut Lines, reply: &mut Reply) -> io::Result<usize> {
        let mut used = 0;
        while let Some((step, body)) = self.step(&bytes[used..])? {
            if body == Part::Body {
                reply.bytes += step as u64;
                lines.feed(&bytes[used..used + step], reply);
            }
            used += step;
        }
        Ok(used)
    }

    /// One step: how many bytes it consumed and whether they were body; `None` when more bytes are
    /// needed or the body is over.
    fn step(&mut self, bytes: &[u8]) -> io::Result<Option<(usize, Part)>> {
        match self {
            Self::Finished => Ok(None),
            Self::Sized { .. } | Self::ChunkBody { .. } if bytes.is_empty() => Ok(None),
            Self::Sized { left } => {
                let part = share(bytes, left);
                if *left == 0 {
                    *self = Self::Finished;
                }
                Ok(Some((part, Part::Body)))
            }
            Self::ChunkBody { left } => {
                let part = share(bytes, left);
                if *left == 0 {
                    *self = Self::ChunkEnd;
                }
                Ok(Some((part, Part::Body)))
            }
            Self::ChunkHead => {
                let Some(end) = memchr::memmem::find(bytes, b"\r\n") else { return Ok(None) };
                let digits = std::str::from_utf8(&bytes[..end]).unwrap_or_default();
                let size = digits.split(';').next().unwrap_or_default().trim();
                let left = u64::from_str_radix(size, 16).map_err(|_| bad("a bad chunk size"))?;
                *self = if left == 0 { Self::Trailer } else { Self::ChunkBody { left } };
                Ok(Some((end + 2, Part::Frame)))
            }
            Self::ChunkEnd if bytes.len() < 2 => Ok(None),
            Self::ChunkEnd => {
                *self = Self::ChunkHead;
                Ok(Some((2, Part::Frame)))
            }
            Self::Trailer => {
                let Some(end) = memchr::memmem::find(bytes, b"\r\n") else { return Ok(None) };
                if end == 0 {
                    *self = Self::Finished;
                }
                Ok(Some((end + 2, Part::Frame)))
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Body,
    Frame,
}

/// How much of `bytes` belongs to a run of which `left` bytes are missing; takes it off `left`.
fn share(bytes: &[u8], left: &mut u64) -> usize {
    let part = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
    *left -= part as u64;
    part
}

/// Counts the events of a body that arrives in any pieces, by how its lines begin, and looks for the
/// first text.
#[derive(Debug, Default)]
struct Lines {
    /// The first bytes of the line being read, as many as are needed to know it.
    start: Vec<u8>,
    /// The body so far, until text was seen in it; at most `MAX_BEGINNING`.
    beginning: Vec<u8>,
    text_seen: bool,
}

const DONE: &[u8] = b"data: [DONE]";
/// Text is not looked for further on: a plain body need not be kept.
const MAX_BEGINNING: usize = 4096;

impl Lines {
    fn look_for_text(&mut self, bytes: &[u8]) {
        let room = MAX_BEGINNING - self.beginning.len();
        if self.text_seen || room == 0 {
            return;
        }
        self.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let key = br#""content":""#;
        self.text_seen = memchr::memmem::find_iter(&self.beginning, key)
            .any(|at| self.beginning.get(at + key.len()).is_some_and(|first| *first != b'"'));
    }

    fn feed(&mut self, mut bytes: &[u8], reply: &mut Reply) {
        self.look_for_text(bytes);
        loop {
            let end = memchr::memchr(b'\n', bytes);
            let line = &bytes[..end.unwrap_or(bytes.len())];
            let room = DONE.len() - self.start.len();
            self.start.extend_from_slice(&line[..line.len().min(room)]);
            let Some(end) = end else { return };
            reply.events += u64::from(self.start.starts_with(b"data:"));
            reply.done |= self.start == DONE;
            self.start.clear();
            bytes = &bytes[end + 1..];
        }
    }
}
