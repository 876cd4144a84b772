//! Calls that end without a provider's fault: refused, out of time, or out of targets.

use std::fmt;

use crate::fault::Side;

/// A failure of the call as a whole, found by the gateway itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Local {
    /// The deadline passed, or too little of it was left for another attempt.
    DeadlineExceeded,
    /// Every attempt the route allows was made.
    AttemptsExhausted,
    /// No target can take this call: all rest, all were left, or none is able.
    NoTarget,
    /// Prompt and output cap do not fit the model's window.
    OverBudget,
    /// The model asked for names no route and no target.
    UnknownRoute,
    /// The caller's key is missing or unknown.
    Unauthorized,
    /// The caller's key does not allow it.
    Forbidden,
    /// The request body is over the limit.
    BodyTooLarge,
    /// The request is not one this API understands.
    InvalidRequest,
    /// The caller's key has spent what it may today.
    SpendLimit,
    /// The gateway holds as many calls as it may.
    Busy,
    /// The gateway is draining and takes no new calls.
    ShuttingDown,
    /// A bug: the gateway broke its own rules.
    Internal,
}

impl Local {
    /// All of them, in order.
    pub const ALL: [Self; 13] = [
        Self::DeadlineExceeded,
        Self::AttemptsExhausted,
        Self::NoTarget,
        Self::OverBudget,
        Self::UnknownRoute,
        Self::Unauthorized,
        Self::Forbidden,
        Self::BodyTooLarge,
        Self::InvalidRequest,
        Self::SpendLimit,
        Self::Busy,
        Self::ShuttingDown,
        Self::Internal,
    ];

    /// The stable name: it never changes once released.
    pub const fn code(self) -> &'static str {
        match self {
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::NoTarget => "no_target_available",
            Self::OverBudget => "context_budget_exceeded",
            Self::UnknownRoute => "unknown_route",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::BodyTooLarge => "body_too_large",
            Self::InvalidRequest => "invalid_request",
            Self::SpendLimit => "spend_limit_reached",
            Self::Busy => "gateway_busy",
            Self::ShuttingDown => "gateway_shutting_down",
            Self::Internal => "gateway_internal",
        }
    }

    /// Who has to act before the same call can succeed.
    pub const fn side(self) -> Side {
        match self {
            Self::OverBudget
            | Self::UnknownRoute
            | Self::Unauthorized
            | Self::Forbidden
            | Self::BodyTooLarge
            | Self::InvalidRequest => Side::Caller,
            Self::DeadlineExceeded
            | Self::AttemptsExhausted
            | Self::NoTarget
            | Self::SpendLimit
            | Self::Busy
            | Self::ShuttingDown
            | Self::Internal => Side::Gateway,
        }
    }

    /// The failure with this code, if there is one.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|local| local.code() == code)
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;

    #[test]
    fn codes_are_unique_across_faults_and_refusals_and_lead_back() {
        let mut codes: Vec<&str> = Local::ALL.iter().map(|local| local.code()).collect();
        codes.extend(Fault::ALL.iter().map(|fault| fault.code()));
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
        assert!(Local::ALL.into_iter().all(|local| Local::from_code(local.code()) == Some(local)));
        assert_eq!(Local::from_code("nonsense"), None);
        assert!(Local::ALL.into_iter().all(|local| local.to_string() == local.code()));
    }
}
