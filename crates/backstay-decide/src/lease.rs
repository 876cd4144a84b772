//! How many calls one target carries at once, counted by leases.

/// Leave to hold one of a target's places. Give it back exactly once, by [`Concurrency::give`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Lease(());

/// The places of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// Calls that may be in flight at once. 0 means no limit.
    pub limit: u32,
    /// Calls in flight now.
    pub in_flight: u32,
}

impl Concurrency {
    /// An idle target with `limit` places; 0 means no limit.
    pub const fn new(limit: u32) -> Self {
        Self { limit, in_flight: 0 }
    }

    /// Whether a call would get a place now.
    pub const fn has_room(&self) -> bool {
        self.limit == 0 || self.in_flight < self.limit
    }

    /// Takes a place, or `None` if all are taken.
    pub const fn take(&mut self) -> Option<Lease> {
        if !self.has_room() {
            return None;
        }
        self.in_flight = self.in_flight.saturating_add(1);
        Some(Lease(()))
    }

    /// Gives a place back. Harmless if nothing is in flight.
    pub const fn give(&mut self, lease: Lease) {
        let Lease(()) = lease;
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_target_gives_no_lease_until_one_comes_back() {
        let mut places = Concurrency::new(2);
        let first = places.take().unwrap();
        let _second = places.take().unwrap();
        assert_eq!(places.take(), None);
        places.give(first);
        assert!(places.has_room());
        assert!(places.take().is_some());
    }

    #[test]
    fn a_limit_of_zero_is_no_limit() {
        let mut places = Concurrency::new(0);
        assert!((0..1000).all(|_| places.take().is_some()));
        assert_eq!(places.in_flight, 1000);
    }

    proptest! {
        #[test]
        fn taken_is_always_given_plus_held(limit in 0_u32..5, takes in prop::collection::vec(any::<bool>(), 0..60)) {
            let mut places = Concurrency::new(limit);
            let mut held = Vec::new();
            for take in takes {
                if take { held.extend(places.take()); } else if let Some(lease) = held.pop() { places.give(lease); }
                prop_assert_eq!(places.in_flight as usize, held.len());
                prop_assert!(limit == 0 || places.in_flight <= limit);
            }
        }
    }
}
