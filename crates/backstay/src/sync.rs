//! The locks of what calls share: `parking_lot`'s. In tests under `--cfg shuttle` they are such whose
//! every turn is given out by a scheduler, which tries many orders of the same threads.

#[cfg(not(all(test, shuttle)))]
pub(crate) use parking_lot::{Mutex, RwLock};

#[cfg(all(test, shuttle))]
pub(crate) use scheduled::{Mutex, RwLock, tried};

#[cfg(all(test, shuttle))]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "only tests use it")]
mod scheduled {
    use shuttle::scheduler::RandomScheduler;
    use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
    use shuttle::{Config, Runner};

    /// As `parking_lot`'s: no poisoning.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// As `parking_lot`'s: no poisoning.
    #[derive(Debug, Default)]
    pub(crate) struct RwLock<T>(shuttle::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().unwrap()
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().unwrap()
        }
    }

    /// Plays `threads` in many orders on a stopped clock: `SHUTTLE_RUNS` of them, by `SHUTTLE_SEED`.
    pub(crate) fn tried(threads: impl Fn() + Send + Sync + 'static) {
        let set = |name| std::env::var(name).ok().map(|text: String| text.parse::<u64>().unwrap());
        let seed = set("SHUTTLE_SEED").unwrap_or_else(|| fastrand::u64(..));
        let runs = usize::try_from(set("SHUTTLE_RUNS").unwrap_or(5_000)).unwrap();
        println!("SHUTTLE_SEED={seed} SHUTTLE_RUNS={runs}");
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let _context = runtime.enter();
        let scheduler = RandomScheduler::new_from_seed(seed, runs);
        Runner::new(scheduler, Config::new()).run(threads);
    }
}
