//! Connections that are driven by whoever reads from them.
//!
//! The HTTP library gives each connection a task of its own, which hands a body over one frame at a
//! time: for each event of a stream two tasks take turns, and the caller gets a write of its own. Here
//! the reader polls the connection itself while it waits, so that all the socket holds is read in one
//! go. The task keeps the connection in between:
//!
//! ```text
//!   kept by its task ──a body has begun, and nothing of it is here──▶ driven by the reader
//!          ▲──────────────────the body ended, or was dropped────────────────────┘
//! ```
//!
//! Under HTTP/2 many bodies share a connection; such a one is never driven.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use atomic_waker::AtomicWaker;
use hyper::rt::Executor;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;

use super::kept::Turns;

/// What the HTTP library wants to have run in the background.
type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How often a connection is polled in a row that brings nothing to read: then others have their turn.
const LOOKS: usize = 4;

/// What is being polled on a thread.
enum Polled {
    Nothing,
    /// A job of which it is not known whether it is a connection.
    Job,
    /// The job of the connection with these turns.
    Connection(Turns),
}

thread_local! {
    static POLLED: RefCell<Polled> = const { RefCell::new(Polled::Nothing) };
}

/// Says that the job which is being polled on this thread is that of the connection with these `turns`.
/// Whether somebody wanted to know.
pub(super) fn introduce(turns: &Turns) -> bool {
    POLLED.with_borrow_mut(|polled| {
        let is_asked = matches!(polled, Polled::Job);
        if is_asked {
            *polled = Polled::Connection(turns.clone());
        }
        is_asked
    })
}

/// Runs the jobs of the HTTP library, and connections so that they can be driven.
#[derive(Clone, Copy, Debug)]
pub(super) struct Background;

impl Executor<Job> for Background {
    fn execute(&self, job: Job) {
        TokioExecutor::new().execute(Task::Unknown(job));
    }
}

/// The task of a job.
enum Task {
    /// That is, or is not yet known to be, no connection.
    Unknown(Job),
    /// That is a connection.
    Keeping(Keeper),
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Unknown(job) = &mut *self {
            let outer = POLLED.replace(Polled::Job);
            let polled = job.as_mut().poll(cx);
            let found = POLLED.replace(outer);
            let (Poll::Pending, Polled::Connection(turns)) = (polled, found) else { return polled };
            let job = std::mem::replace(job, Box::pin(std::future::ready(())));
            let drive = Drive::of(job);
            turns.are_of(drive.weak());
            *self = Self::Keeping(Keeper(drive));
        }
        match &*self {
            Self::Keeping(Keeper(drive)) => drive.keep(cx),
            Self::Unknown(_) => Poll::Ready(()),
        }
    }
}

/// Who keeps a connection. Dropped with the runtime it closes it, whoever else knows of it.
struct Keeper(Drive);

impl Drop for Keeper {
    fn drop(&mut self) {
        let Self(Drive(shared)) = self;
        let connection = shared.connection.lock().take();
        drop(connection);
        shared.is_woken.store(true, Ordering::SeqCst);
        shared.reader.wake();
    }
}

/// A connection that its task keeps or a reader drives.
#[derive(Clone, Debug)]
pub(super) struct Drive(Arc<Shared>);

/// The same, without keeping it.
#[derive(Clone, Debug)]
pub(super) struct WeakDrive(Weak<Shared>);

impl WeakDrive {
    /// `None`: its task is over.
    pub(super) fn get(&self) -> Option<Drive> {
        self.0.upgrade().map(Drive)
    }
}

#[derive(Default)]
struct Shared {
    /// `None`: it is closed.
    connection: Mutex<Option<Job>>,
    /// Whether a reader drives it. Changed under the lock of `connection`.
    is_driven: AtomicBool,
    /// Whether something happened to it since it was polled last.
    is_woken: AtomicBool,
    /// Whether the reader is at it, and will look at `is_woken` before it rests.
    is_busy: AtomicBool,
    task: AtomicWaker,
    reader: AtomicWaker,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shared(driven: {:?})", self.is_driven)
    }
}

/// What a connection is polled with, whoever polls it: so that what wakes it reaches whoever has it.
impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        if self.is_busy.load(Ordering::SeqCst) {
            return;
        }
        if self.is_driven.load(Ordering::SeqCst) {
            self.reader.wake();
        } else {
            self.task.wake();
        }
    }
}

impl Drive {
    fn of(connection: Job) -> Self {
        let shared = Shared { connection: Mutex::new(Some(connection)), ..Shared::default() };
        Self(Arc::new(shared))
    }

    fn weak(&self) -> WeakDrive {
        WeakDrive(Arc::downgrade(&self.0))
    }

    /// Polls the connection for its task, unless a reader drives it. Ready when it is closed.
    fn keep(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.task.register(cx.waker());
        let mut connection = self.0.connection.lock();
        if connection.is_some() && self.0.is_driven.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        self.poll(&mut connection)
    }

    fn poll(&self, connection: &mut Option<Job>) -> Poll<()> {
        // Out of its place meanwhile: one that panics is gone.
        let Some(mut job) = connection.take() else { return Poll::Ready(()) };
        let waker = Waker::from(Arc::clone(&self.0));
        if job.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            *connection = Some(job);
            return Poll::Pending;
        }
        self.0.task.wake();
        Poll::Ready(())
    }

    /// Takes the connection over from its task, unless `read` finds something now that the task is kept
    /// from it: what has ended until then leaves the connection to others.
    ///
    /// # Errors
    /// What `read` found.
    pub(super) fn take_over<T>(
        self,
        mut read: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<Driven, T> {
        let connection = self.0.connection.lock();
        if let Poll::Ready(found) = read(&mut Context::from_waker(Waker::noop())) {
            return Err(found);
        }
        self.0.is_woken.store(true, Ordering::SeqCst);
        self.0.is_driven.store(true, Ordering::SeqCst);
        drop(connection);
        Ok(Driven(self))
    }
}

/// A connection that a reader drives, until this is dropped.
#[derive(Debug)]
pub(super) struct Driven(Drive);

impl Driven {
    /// What `read` finds, with the connection polled for as long as that finds nothing and something
    /// happens to the connection. `read` registers no waker: only the connection brings it something.
    pub(super) fn read<T>(
        &self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Self(Drive(shared)) = self;
        shared.is_busy.store(true, Ordering::Relaxed);
        let mut looks = 0;
        loop {
            if let Poll::Ready(found) = read(&mut Context::from_waker(Waker::noop())) {
                shared.is_busy.store(false, Ordering::Release);
                return Poll::Ready(found);
            }
            if looks < LOOKS && shared.is_woken.swap(false, Ordering::SeqCst) {
                let _ = self.0.poll(&mut shared.connection.lock());
                looks += 1;
                continue;
            }
            shared.reader.register(cx.waker());
            shared.is_busy.store(false, Ordering::SeqCst);
            // What happened while it was busy woke nobody.
            if shared.is_woken.load(Ordering::SeqCst) {
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        let Self(Drive(shared)) = self;
        shared.is_driven.store(false, Ordering::SeqCst);
        shared.is_busy.store(false, Ordering::SeqCst);
        shared.reader.take();
        shared.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A connection that counts how often it is polled.
    fn connection() -> (Drive, Arc<AtomicUsize>) {
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let job = poll_fn(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Poll::Pending
        });
        (Drive::of(Box::pin(job)), polls)
    }

    fn quiet() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    #[test]
    fn a_body_that_ended_just_before_leaves_the_connection_to_others() {
        let (drive, polls) = connection();
        // It had nothing a moment ago; then the task read its end.
        let mut found = [Poll::Pending, Poll::Ready("the end")].into_iter();
        let mut read = |_: &mut Context<'_>| found.next().unwrap();
        assert!(read(&mut quiet()).is_pending());
        assert_eq!(drive.clone().take_over(read).unwrap_err(), "the end");
        assert!(drive.keep(&mut quiet()).is_pending());
        assert_eq!(polls.load(Ordering::SeqCst), 1, "its task polls it");
    }

    #[test]
    fn a_connection_is_polled_by_its_reader_until_that_is_gone_and_then_by_its_task() {
        let (drive, polls) = connection();
        let polled = || polls.load(Ordering::SeqCst);
        let driven = drive.clone().take_over(|_| Poll::<()>::Pending).unwrap();
        assert!(drive.keep(&mut quiet()).is_pending());
        assert_eq!(polled(), 0);
        let nothing = |_: &mut Context<'_>| Poll::<()>::Pending;
        assert!(driven.read(&mut quiet(), nothing).is_pending());
        assert_eq!(polled(), 1, "a look");
        assert!(driven.read(&mut quiet(), nothing).is_pending());
        assert_eq!(polled(), 1, "nothing has happened since");
        drive.0.wake_by_ref();
        assert!(driven.read(&mut quiet(), nothing).is_pending());
        assert_eq!(polled(), 2);
        drop(driven);
        assert!(drive.keep(&mut quiet()).is_pending());
        assert_eq!(polled(), 3);
    }

    #[test]
    fn a_connection_that_is_never_quiet_lets_others_have_their_turn() {
        let busy = poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        let driven = Drive::of(Box::pin(busy)).take_over(|_| Poll::<()>::Pending).unwrap();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut reads = 0;
        let read = driven.read(&mut Context::from_waker(&waker), |_| {
            reads += 1;
            Poll::<()>::Pending
        });
        assert!(read.is_pending() && reads == LOOKS + 1);
        assert!(woken.0.load(Ordering::SeqCst), "or it would rest for ever");
    }

    #[test]
    fn a_connection_goes_with_its_keeper_and_tells_its_reader() {
        let (drive, polls) = connection();
        let driven = drive.clone().take_over(|_| Poll::<()>::Pending).unwrap();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        assert!(driven.read(&mut cx, |_| Poll::<()>::Pending).is_pending());
        drop(Keeper(drive));
        assert_eq!(Arc::strong_count(&polls), 1, "it is gone");
        assert!(woken.0.load(Ordering::SeqCst));
    }

    #[test]
    fn a_connection_that_panics_is_closed() {
        let job = poll_fn(|_| -> Poll<()> { panic!("as a test") });
        let drive = Drive::of(Box::pin(job));
        let poll = || drive.keep(&mut quiet()).is_ready();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll)).is_err());
        assert!(drive.keep(&mut quiet()).is_ready());
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}
