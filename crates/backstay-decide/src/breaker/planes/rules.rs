//! The limits of every plane of a target.

use super::super::{Canary, Limits, Mode};
use super::Plane;

/// How the things that can be wrong are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Separation {
    /// A breaker for each.
    #[default]
    Separate,
    /// One for all: seed S1's rule.
    Combined,
}

/// The limits of every plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// How the planes are told apart.
    pub separation: Separation,
    /// Of availability.
    pub availability: Limits,
    /// Of throttling.
    pub throttling: Limits,
    /// Of quality.
    pub quality: Limits,
    /// Of all as one.
    pub combined: Limits,
}

impl Rules {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        separation: Separation::Separate,
        availability: Limits::AVAILABILITY,
        throttling: Limits::THROTTLING,
        quality: Limits::QUALITY,
        combined: Limits::COMBINED,
    };

    /// The same with every plane in `mode`.
    #[must_use]
    pub const fn in_mode(mut self, mode: Mode) -> Self {
        self.availability.mode = mode;
        self.throttling.mode = mode;
        self.quality.mode = mode;
        self.combined.mode = mode;
        self
    }

    /// The limits of a plane.
    pub const fn limits(&self, plane: Plane) -> &Limits {
        match plane {
            Plane::Availability => &self.availability,
            Plane::Throttling { .. } => &self.throttling,
            Plane::Quality { .. } => &self.quality,
            Plane::Combined => &self.combined,
        }
    }

    /// How a target is tested after a rest.
    pub fn canary(&self) -> &Canary {
        &self.first().0.canary
    }

    /// The limits of the breaker that every call meets.
    pub(super) fn first(&self) -> (&Limits, Plane) {
        match self.separation {
            Separation::Separate => (&self.availability, Plane::Availability),
            Separation::Combined => (&self.combined, Plane::Combined),
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::DEFAULT
    }
}
