//! What of a target is promised to calls at the front of its line, until they take it themselves.

use std::sync::Arc;
use std::time::Duration;

use backstay_decide::Moment;
use backstay_decide::aimd::Full;
use backstay_decide::pacing::{Cost, Wait};

use super::next::BUSY_LOOK;
use super::standing::Standing;
use super::wish::Whose;
use crate::sync::Mutex;

/// After so long the call that is next in a line asks anew, whatever it was told: a reload may have
/// made room.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// What a call asks of a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Of its rates.
    pub cost: Cost,
    /// The size of its body.
    pub bytes: u64,
    /// Whose call it is.
    pub whose: Whose,
}

impl Wanted {
    fn fallbacks(&self) -> u32 {
        u32::from(self.whose == Whose::Fallback)
    }
}

/// All that is promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Promised {
    /// Of the rates.
    pub cost: Cost,
    /// Places.
    pub calls: u32,
    /// Of these, places for calls that fall back on the target.
    pub fallbacks: u32,
    /// Bytes of the bodies.
    pub bytes: u64,
}

impl Promised {
    /// Promises what a call wants.
    pub(super) fn add(&mut self, wanted: &Wanted) {
        self.cost = self.cost.plus(wanted.cost);
        self.calls = self.calls.saturating_add(1);
        self.fallbacks = self.fallbacks.saturating_add(wanted.fallbacks());
        self.bytes = self.bytes.saturating_add(wanted.bytes);
    }

    /// Whether a target that stands so has room beside it for a call. One that is too large for any room
    /// is told so where it goes.
    ///
    /// # Errors
    /// When to ask again, though a call that ends may make room before.
    pub(super) fn leaves_room(
        &self,
        standing: &mut Standing,
        wanted: &Wanted,
        now: Moment,
    ) -> Result<(), Moment> {
        let places = standing.places.with(self.calls, self.bytes);
        let full = places.check(wanted.bytes, &standing.target.limits.places).err();
        if matches!(full, Some(Full::Places { .. } | Full::Bytes { .. }))
            || standing.headroom_beside(self.fallbacks, wanted.whose, now).is_err()
        {
            return Err(now.plus(BUSY_LOOK));
        }
        match standing.paces.wait(wanted.cost, self.cost, now) {
            None | Some(Wait::TooLarge { .. }) => Ok(()),
            Some(wait) => Err(now.plus(wait.wait().min(LONGEST_LOOK))),
        }
    }

    fn take_back(&mut self, wanted: &Wanted) {
        self.cost = self.cost.less(wanted.cost);
        self.calls = self.calls.saturating_sub(1);
        self.fallbacks = self.fallbacks.saturating_sub(wanted.fallbacks());
        self.bytes = self.bytes.saturating_sub(wanted.bytes);
    }
}

/// What one call was promised. Dropping it takes it back.
#[derive(Debug)]
pub(crate) struct Promise {
    all: Arc<Mutex<Promised>>,
    wanted: Wanted,
}

impl Promise {
    pub(super) fn new(all: Arc<Mutex<Promised>>, wanted: Wanted) -> Self {
        Self { all, wanted }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.all.lock().take_back(&self.wanted);
    }
}
