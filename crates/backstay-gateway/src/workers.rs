//! One runtime a core: threads that each serve connections of their own, from the caller's socket
//! to the provider's, and never wake one another.
//!
//! A connection goes to the thread that has the fewest, and stays there. What is shared by all is
//! shared by locks and atomics: the policy, the health of targets, the log, the metrics.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

use crate::server::Gateway;

/// How long a name being looked up may hold a thread that is to end.
const LINGER: Duration = Duration::from_secs(1);

/// The threads. Dropping them ends them, with all they still serve.
#[derive(Debug)]
pub(crate) struct Workers {
    all: Vec<Worker>,
    end: CancellationToken,
}

/// One thread and its runtime.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    runtime: Handle,
    gateway: Arc<Gateway>,
    serving: Arc<AtomicUsize>,
}

/// A connection's place at a thread; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Workers {
    /// As many threads as the machine has cores for this process.
    ///
    /// # Errors
    /// A thread or its runtime cannot be made.
    pub(crate) fn start(gateway: &Gateway) -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        // Made at once, so that what has been started ends when a later one cannot be.
        let mut workers = Self { all: Vec::with_capacity(cores), end: CancellationToken::new() };
        for number in 0..cores {
            let worker = Worker::start(number, gateway, workers.end.clone())?;
            workers.all.push(worker);
        }
        Ok(workers)
    }

    /// The thread that serves the fewest connections.
    pub(crate) fn idlest(&self) -> Option<&Worker> {
        self.all.iter().min_by_key(|worker| worker.serving.load(Ordering::Relaxed))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Worker {
    fn start(number: usize, gateway: &Gateway, end: CancellationToken) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let worker = Self {
            runtime: runtime.handle().clone(),
            gateway: Arc::new(gateway.with_own_connections()),
            serving: Arc::default(),
        };
        std::thread::Builder::new().name(format!("serve-{number}")).spawn(move || {
            runtime.block_on(end.cancelled());
            runtime.shutdown_timeout(LINGER);
        })?;
        Ok(worker)
    }

    /// The runtime to serve a connection on.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// The gateway with this thread's connections.
    pub(crate) fn gateway(&self) -> Arc<Gateway> {
        Arc::clone(&self.gateway)
    }

    /// Counts a connection, as long as the place is kept.
    pub(crate) fn place(&self) -> Place {
        self.serving.fetch_add(1, Ordering::Relaxed);
        Place(Arc::clone(&self.serving))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use backstay::engine::Engine;
    use backstay::policy::Policy;
    use backstay::record::CallLog;

    use super::Workers;
    use crate::auth::Callers;
    use crate::config::{self, Runtime};
    use crate::server::Gateway;

    #[test]
    fn connections_go_to_the_thread_that_serves_the_fewest() {
        let server = config::Server {
            listen: "127.0.0.1:0".parse().unwrap(),
            max_body_bytes: 1 << 20,
            max_connections: 10,
            max_headers: 100,
            max_header_bytes: 8_192,
            header_timeout: super::LINGER,
            drain: super::LINGER,
            call_log: config::CallLog::Off,
            runtime: Runtime::PerCore,
        };
        let engine = Engine::new(Policy::default(), CallLog::off()).unwrap();
        let gateway = Gateway::new(engine, Callers::new(&[]), server);
        let workers = Workers::start(&gateway).unwrap();
        let each = 3;
        let mut places: Vec<_> = (0..workers.all.len() * each)
            .map(|_| workers.idlest().map(super::Worker::place))
            .collect();
        let counts = || -> Vec<usize> {
            let count = |worker: &super::Worker| worker.serving.load(super::Ordering::Relaxed);
            workers.all.iter().map(count).collect()
        };
        assert!(counts().iter().all(|count| *count == each), "{:?}", counts());
        places.clear();
        assert!(counts().iter().all(|count| *count == 0), "{:?}", counts());
    }
}
