//! Whether a caller is still there, for routes that carry its call on without it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Most bytes that are read of a provider for nobody: a megabyte is more than any model writes in
/// the time there is, and a broken one that never ends is cancelled early.
pub const MAX_UNHEARD: usize = 1 << 20;

/// Shared by a call and whoever hands its answer over.
#[derive(Debug, Default)]
pub struct Presence {
    /// A provider is at work for the call.
    asked: AtomicBool,
    left: AtomicBool,
    /// Bytes that came since.
    unheard: AtomicUsize,
    full: Notify,
}

impl Presence {
    /// The caller left. Says whether a provider is at work for it, so that the call is to be carried
    /// on; once.
    pub fn leave(&self) -> bool {
        self.asked.load(Ordering::Acquire) && !self.left.swap(true, Ordering::AcqRel)
    }

    /// Waits until more than [`MAX_UNHEARD`] bytes came since the caller left.
    pub async fn full(&self) {
        self.full.notified().await;
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    pub(crate) fn set_asked(&self, asked: bool) {
        self.asked.store(asked, Ordering::Release);
    }

    /// Counts what came of a provider.
    pub(crate) fn came(&self, bytes: usize) {
        if !self.has_left() {
            return;
        }
        let before = self.unheard.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > MAX_UNHEARD {
            self.full.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_comes_after_the_caller_left_is_counted() {
        let presence = Presence::default();
        assert!(!presence.leave(), "nobody was asked");
        presence.set_asked(true);
        presence.came(2 * MAX_UNHEARD);
        assert!(presence.leave() && !presence.leave(), "once");
        presence.came(MAX_UNHEARD);
        let soon = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(soon, presence.full()).await.is_err());
        presence.came(1);
        assert!(tokio::time::timeout(soon, presence.full()).await.is_ok());
    }
}
