//! Lines of the log on their way to who reads them.
//!
//! Who reads a program's standard error may stop reading. Then its pipe fills up, and whoever writes
//! the next line waits for ever. So a line goes into a bounded buffer and one thread writes; a line
//! that finds the buffer full is lost and counted, and the loss is told once there is room again.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::beside::Work;

/// Bytes that wait for the writer: some 5,000 lines.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// Longest wait at the end for what is not yet written.
const FLUSH: Duration = Duration::from_secs(1);

/// Where lines are left for the thread that writes them. Cheap to clone; the thread ends, once it has
/// written what waits, with the last clone.
#[derive(Clone, Debug)]
pub struct Lines {
    near: Arc<Near>,
}

/// The side of those who leave lines.
#[derive(Debug)]
struct Near {
    desk: Arc<Desk>,
}

#[derive(Debug, Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    came: Condvar,
    written: Condvar,
    lost: AtomicU64,
    work: Work,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    lines: u64,
    is_writing: bool,
    has_ended: bool,
}

impl Lines {
    /// Writes to `out`, which may block for as long as it likes.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn to(out: impl Write + Send + 'static) -> std::io::Result<Self> {
        let desk = Arc::<Desk>::default();
        let far = Arc::clone(&desk);
        std::thread::Builder::new().name("log-lines".into()).spawn(move || far.write_to(out))?;
        Ok(Self { near: Arc::new(Near { desk }) })
    }

    /// Leaves a line, with its end. Never waits for the writer.
    pub fn put(&self, line: &[u8]) {
        let desk = &self.near.desk;
        let mut waiting = desk.waiting.lock();
        if waiting.bytes.len() + line.len() > MAX_WAITING_BYTES {
            desk.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes.extend_from_slice(line);
        waiting.lines += 1;
        drop(waiting);
        desk.came.notify_one();
    }

    /// Leaves a line of text, without its end.
    pub fn say(&self, text: &str) {
        self.put(format!("{text}\n").as_bytes());
    }

    /// Lines lost since the start: the buffer was full, or they could not be written.
    pub fn lost(&self) -> u64 {
        self.near.desk.lost.load(Ordering::Relaxed)
    }

    /// Waits, at most a second, until everything left before is written. For the end of a program.
    pub fn flush(&self) {
        let desk = &self.near.desk;
        let mut waiting = desk.waiting.lock();
        let is_busy = |waiting: &mut Waiting| waiting.is_writing || !waiting.bytes.is_empty();
        desk.written.wait_while_for(&mut waiting, is_busy, FLUSH);
    }

    /// What is wrong with the writing. `None`: nothing.
    pub(crate) fn trouble(&self) -> Option<String> {
        let why = self.near.desk.work.trouble()?;
        Some(format!("{why}; {} lines lost so far", self.lost()))
    }
}

/// One line a call, as `tracing_subscriber` writes.
impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        self.desk.waiting.lock().has_ended = true;
        self.desk.came.notify_one();
    }
}

impl Desk {
    /// The thread: writes what comes until the last of those who leave lines is gone.
    fn write_to(&self, mut out: impl Write) {
        let (mut bytes, mut told) = (Vec::new(), 0);
        while let Some(lines) = self.take(&mut bytes) {
            self.work.begin();
            let written = out.write_all(&bytes).and_then(|()| out.flush());
            match &written {
                Ok(()) => {
                    self.work.done();
                }
                Err(cause) => {
                    self.lost.fetch_add(lines, Ordering::Relaxed);
                    self.work.failed(cause.to_string());
                    self.work.given_up();
                }
            }
            self.waiting.lock().is_writing = false;
            self.written.notify_all();
            // Where nothing can be written the line of the loss would be lost too, and told, for ever.
            if written.is_ok() {
                told = self.tell_lost(told);
            }
        }
    }

    /// Takes what waits, into `bytes`; how many lines. `None`: the end, and nothing waits.
    fn take(&self, bytes: &mut Vec<u8>) -> Option<u64> {
        bytes.clear();
        let mut waiting = self.waiting.lock();
        self.came
            .wait_while(&mut waiting, |waiting| waiting.bytes.is_empty() && !waiting.has_ended);
        if waiting.bytes.is_empty() {
            return None;
        }
        std::mem::swap(bytes, &mut waiting.bytes);
        waiting.is_writing = true;
        Some(std::mem::take(&mut waiting.lines))
    }

    /// Says how many lines were lost since `told` of them.
    fn tell_lost(&self, told: u64) -> u64 {
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > told {
            tracing::warn!(lines = lost - told, "lines of this log were lost: nobody read them");
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A pipe that takes a write only when its reader allows one.
    struct Pipe {
        allowed: Receiver<std::io::Result<()>>,
        came: Sender<Vec<u8>>,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.allowed.recv().map_err(std::io::Error::other)??;
            let _ = self.came.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lines() -> (Lines, Sender<std::io::Result<()>>, Receiver<Vec<u8>>) {
        let ((allow, allowed), (came, comes)) = (channel(), channel());
        (Lines::to(Pipe { allowed, came }).unwrap(), allow, comes)
    }

    #[test]
    fn who_leaves_a_line_never_waits_and_what_finds_no_room_is_counted() {
        let (lines, allow, comes) = lines();
        let line = "x".repeat(999) + "\n";
        // A first write is under way, and is not taken; the buffer behind it fills up.
        lines.put(b"first\n");
        while !lines.near.desk.waiting.lock().is_writing {
            std::thread::yield_now();
        }
        for _ in 0..2_000 {
            lines.put(line.as_bytes());
        }
        let kept = MAX_WAITING_BYTES / line.len();
        assert_eq!(lines.lost(), 2_000 - kept as u64);
        lines.flush();
        allow.send(Ok(())).unwrap();
        allow.send(Ok(())).unwrap();
        assert_eq!(comes.recv().unwrap(), b"first\n");
        assert_eq!(comes.recv().unwrap().len(), kept * line.len());
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_told_until_something_is() {
        let (lines, allow, comes) = lines();
        allow.send(Err(std::io::Error::other("gone"))).unwrap();
        lines.put(b"a\n");
        lines.flush();
        assert_eq!(lines.trouble().as_deref(), Some("gone; 1 lines lost so far"));
        allow.send(Ok(())).unwrap();
        lines.put(b"b\n");
        lines.flush();
        assert_eq!(
            (lines.trouble(), lines.lost(), comes.recv().unwrap()),
            (None, 1, b"b\n".to_vec())
        );
    }

    #[test]
    fn what_waits_when_the_last_side_goes_is_written_and_the_thread_ends() {
        let (lines, allow, comes) = lines();
        lines.put(b"last\n");
        drop(lines);
        allow.send(Ok(())).unwrap();
        assert_eq!(comes.recv().unwrap(), b"last\n");
        assert!(comes.recv().is_err(), "the thread has dropped its end");
    }
}
