//! The ground truth: what was asked, what was sent, and how each call ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, Ordering};

use http::{HeaderMap, Method, Uri, header};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::ask::{Ask, Form};
use crate::clock::Clock;
use crate::dice::digest;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Still under way.
    Pending,
    /// Everything the behaviour has to send was sent, and the response ended cleanly.
    Complete,
    /// The mock closed the connection before the response was whole.
    Cut,
    /// The mock reset the connection.
    Reset,
    /// The client hung up first.
    ClientGone,
}

/// One call, as the mock saw it. Times are milliseconds since the mock started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Place in the order of arrival since the last reset; the first is 1.
    pub seq: u64,
    /// When the request head had arrived.
    pub at_ms: f64,
    /// The model name asked for; empty when the request could not be read.
    pub model: String,
    /// The behaviour that was played: `invalid` for a refused request, `unknown` for an unknown
    /// model, `unread` when the client hung up while sending, `models` for the list of models.
    pub behaviour: String,
    /// Which call for that model name this is since the last reset; the first is 1.
    /// 0 where no model was named.
    pub call_no: u32,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Every header by lower-case name, repeated ones joined by `, `. The value of
    /// `authorization` and `x-api-key` is replaced by `present (N chars) #HASH`.
    pub headers: BTreeMap<String, String>,
    /// Bytes in the request body.
    pub body_bytes: usize,
    /// The beginning of the body, at most `Settings::log_bodies` bytes; none when it is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// How many messages the request has.
    pub messages: usize,
    /// The output cap asked for.
    pub max_tokens: Option<u64>,
    /// Whether structured output was asked for, by format or by a forced tool.
    pub has_schema: bool,
    /// The status sent; none until (or unless) a response head is sent.
    pub status: Option<u16>,
    /// Events of a stream handed to the socket; 0 for a plain body.
    pub events_sent: u64,
    /// When it ended; none while pending.
    pub ended_at_ms: Option<f64>,
    /// How it ended.
    pub end: End,
}

impl Entry {
    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Entries kept; the oldest go first.
pub(crate) const MAX_ENTRIES: usize = 20_000;
/// 64 MiB of request bodies kept in all; the oldest lose theirs first.
const MAX_BODIES: usize = 64 << 20;
/// 64 KiB of header text kept an entry.
const MAX_HEADERS: usize = 64 << 10;

/// The ring of entries.
#[derive(Debug)]
pub(crate) struct Log {
    clock: Clock,
    /// Bytes of each body that are kept.
    keep: usize,
    stopping: Arc<AtomicBool>,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    rows: VecDeque<Row>,
    next: u64,
    bodies: usize,
    /// Rows at the front whose bodies are already gone.
    bare: usize,
}

/// One entry in its compact form; made into an [`Entry`] when somebody looks.
#[derive(Debug)]
struct Row {
    seq: u64,
    note: Note,
    progress: Arc<Progress>,
}

/// What is known of a request when it has been read.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) at: u64,
    pub(crate) model: String,
    pub(crate) behaviour: &'static str,
    pub(crate) call_no: u32,
    pub(crate) method: Method,
    pub(crate) path: String,
    /// `name\0value\0` for each header.
    pub(crate) headers: Vec<u8>,
    pub(crate) body_bytes: usize,
    pub(crate) body: Option<Box<[u8]>>,
    pub(crate) stream: bool,
    pub(crate) messages: usize,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) has_schema: bool,
}

/// What changes while the response is sent. 0 means "not yet" in each field but `events`.
#[derive(Debug, Default)]
struct Progress {
    status: AtomicU16,
    events: AtomicU64,
    ended: AtomicU64,
    end: AtomicU8,
}

impl Note {
    /// Notes the head of a request that arrived at `at` microseconds.
    pub(crate) fn of(at: u64, method: Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let path = uri.path_and_query().map_or_else(|| uri.path(), |p| p.as_str()).to_owned();
        Self {
            at,
            model: String::new(),
            behaviour: "unread",
            call_no: 0,
            method,
            path,
            headers: pack(headers),
            body_bytes: 0,
            body: None,
            stream: false,
            messages: 0,
            max_tokens: None,
            has_schema: false,
        }
    }

    /// Adds what the body says.
    pub(crate) fn asked(&mut self, ask: &Ask) {
        self.model.clone_from(&ask.model);
        self.stream = ask.form != Form::Whole;
        self.messages = ask.messages;
        self.max_tokens = ask.max_tokens;
        self.has_schema = ask.has_schema();
    }
}

impl Log {
    pub(crate) fn new(clock: Clock, keep: usize) -> Self {
        Self { clock, keep, stopping: Arc::default(), ring: Mutex::default() }
    }

    /// Keeps the beginning of `body` in `note`.
    pub(crate) fn keep_body(&self, note: &mut Note, body: &[u8]) {
        note.body_bytes = body.len();
        let kept = body.get(..self.keep.min(body.len())).unwrap_or(body);
        note.body = (!kept.is_empty()).then(|| kept.into());
    }

    /// Opens an entry. The pen writes the rest of it.
    pub(crate) fn open(&self, note: Note) -> Pen {
        let progress = Arc::new(Progress::default());
        self.ring.lock().push(note, Arc::clone(&progress));
        Pen { progress, clock: self.clock, stopping: Arc::clone(&self.stopping), closed: false }
    }

    /// From now on a response that is dropped was cut by the mock.
    pub(crate) fn stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Every entry kept, oldest first.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.ring.lock().rows.iter().map(Row::entry).collect()
    }

    /// Forgets every entry; the next is number 1. Calls under way end unseen.
    pub(crate) fn clear(&self) {
        *self.ring.lock() = Ring::default();
    }
}

impl Ring {
    fn push(&mut self, note: Note, progress: Arc<Progress>) {
        if self.rows.len() >= MAX_ENTRIES
            && let Some(old) = self.rows.pop_front()
        {
            self.bodies -= old.body_len();
            self.bare = self.bare.saturating_sub(1);
        }
        self.next += 1;
        self.bodies += note.body.as_ref().map_or(0, |b| b.len());
        self.rows.push_back(Row { seq: self.next, note, progress });
        while self.bodies > MAX_BODIES
            && let Some(old) = self.rows.get_mut(self.bare)
        {
            self.bodies -= old.body_len();
            old.note.body = None;
            self.bare += 1;
        }
    }
}

impl Row {
    fn body_len(&self) -> usize {
        self.note.body.as_ref().map_or(0, |b| b.len())
    }

    fn entry(&self) -> Entry {
        let (note, progress) = (&self.note, &self.progress);
        // The end first: what is read after it is at least as new.
        let end = match progress.end.load(Ordering::Acquire) {
            1 => End::Complete,
            2 => End::Cut,
            3 => End::Reset,
            4 => End::ClientGone,
            _ => End::Pending,
        };
        let status = progress.status.load(Ordering::Relaxed);
        Entry {
            seq: self.seq,
            at_ms: millis(note.at),
            model: note.model.clone(),
            behaviour: note.behaviour.to_owned(),
            call_no: note.call_no,
            method: note.method.to_string(),
            path: note.path.clone(),
            headers: unpack(&note.headers),
            body_bytes: note.body_bytes,
            body: note.body.as_ref().map(|b| String::from_utf8_lossy(b).into_owned()),
            stream: note.stream,
            messages: note.messages,
            max_tokens: note.max_tokens,
            has_schema: note.has_schema,
            status: (status != 0).then_some(status),
            events_sent: progress.events.load(Ordering::Relaxed),
            ended_at_ms: (end != End::Pending)
                .then(|| millis(progress.ended.load(Ordering::Relaxed))),
            end,
        }
    }
}

/// Writes the progress of one call. Dropped without an end, it notes that the client has gone:
/// hyper drops a response only when its connection is no more.
#[derive(Debug)]
pub(crate) struct Pen {
    progress: Arc<Progress>,
    clock: Clock,
    stopping: Arc<AtomicBool>,
    closed: bool,
}

impl Pen {
    pub(crate) fn status(&self, status: u16) {
        self.progress.status.store(status, Ordering::Relaxed);
    }

    pub(crate) fn event(&self) {
        self.progress.events.fetch_add(1, Ordering::Relaxed);
    }

    /// A pen whose entry nobody reads.
    pub(crate) fn blank(clock: Clock) -> Self {
        Self { progress: Arc::default(), clock, stopping: Arc::default(), closed: true }
    }

    /// Notes the end. The first end stands.
    pub(crate) fn end(&mut self, end: End) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let code = match end {
            End::Pending => 0,
            End::Complete => 1,
            End::Cut => 2,
            End::Reset => 3,
            End::ClientGone => 4,
        };
        self.progress.ended.store(self.clock.micros(), Ordering::Relaxed);
        self.progress.end.store(code, Ordering::Release);
    }
}

impl Drop for Pen {
    fn drop(&mut self) {
        // When the mock stops, it is the mock that hangs up.
        self.end(if self.stopping.load(Ordering::Relaxed) { End::Cut } else { End::ClientGone });
    }
}

#[expect(clippy::cast_precision_loss, reason = "2^53 microseconds are 285 years")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

/// Packs headers into one allocation, keys masked.
fn pack(headers: &HeaderMap) -> Vec<u8> {
    let mut packed = Vec::with_capacity(512);
    for (name, value) in headers {
        if packed.len() > MAX_HEADERS {
            break;
        }
        packed.extend_from_slice(name.as_str().as_bytes());
        packed.push(0);
        if name == header::AUTHORIZATION || name == "x-api-key" {
            packed.extend_from_slice(mask(value.as_bytes()).as_bytes());
        } else {
            packed.extend_from_slice(value.as_bytes());
        }
        packed.push(0);
    }
    packed
}

fn mask(value: &[u8]) -> String {
    format!("present ({} chars) #{:08x}", value.len(), digest(value) >> 32)
}

fn unpack(packed: &[u8]) -> BTreeMap<String, String> {
    let mut map = BTreeMap::<String, String>::new();
    let mut parts = packed.split(|b| *b == 0).map(String::from_utf8_lossy);
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        map.entry(name.into_owned())
            .and_modify(|all| {
                all.push_str(", ");
                all.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(body: &[u8]) -> Note {
        let uri = Uri::from_static("/v1/x?y=1");
        let mut note = Note::of(5, Method::POST, &uri, &HeaderMap::new());
        note.body = Some(body.into());
        note
    }

    fn log() -> Log {
        Log::new(Clock::start(), 10)
    }

    #[test]
    fn the_ring_keeps_the_newest_entries() {
        let log = log();
        for _ in 0..MAX_ENTRIES + 5 {
            log.open(note(b"x")).end(End::Complete);
        }
        let entries = log.entries();
        assert_eq!(entries.len(), MAX_ENTRIES);
        assert_eq!(entries.first().map(|e| e.seq), Some(6));
        log.clear();
        assert!(log.entries().is_empty());
    }

    #[test]
    fn bodies_are_bounded_in_all() {
        let log = log();
        let big = vec![b'x'; 1 << 20];
        for _ in 0..70 {
            log.open(note(&big)).end(End::Complete);
        }
        let kept: usize =
            log.entries().iter().filter_map(|e| e.body.as_ref()).map(String::len).sum();
        assert_eq!(kept, 64 << 20);
        assert!(log.entries().last().is_some_and(|e| e.body.is_some()));
    }

    #[test]
    fn a_dropped_pen_means_the_client_has_gone_and_the_first_end_stands() {
        let log = log();
        drop(log.open(note(b"")));
        let mut pen = log.open(note(b""));
        pen.end(End::Cut);
        pen.end(End::Complete);
        drop(pen);
        let ends: Vec<End> = log.entries().iter().map(|e| e.end).collect();
        assert_eq!(ends, [End::ClientGone, End::Cut]);
    }

    #[test]
    fn keys_are_masked_but_can_be_told_apart() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, http::HeaderValue::from_static("Bearer sk-secret"));
        headers.insert("x-api-key", http::HeaderValue::from_static("other"));
        headers.append("x-a", http::HeaderValue::from_static("1"));
        headers.append("x-a", http::HeaderValue::from_static("2"));
        let seen = unpack(&pack(&headers));
        let (first, second) = (&seen["authorization"], &seen["x-api-key"]);
        assert!(first.starts_with("present (16 chars) #") && !first.contains("secret"));
        assert_ne!(first.split('#').nth(1), second.split('#').nth(1));
        assert_eq!(seen["x-a"], "1, 2");
    }
}
