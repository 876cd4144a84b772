//! What can go wrong with one attempt, under names that never change.
//!
//! A fault is only a name. Whose turn it is to act ([`Fault::side`]), what it says about the
//! target's health ([`Fault::availability`]) and what to do next ([`crate::recover`]) follow from
//! it in one place each.

use std::fmt;

use crate::breaker::Verdict;

/// Who has to act before the same call can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The caller: the request has to change.
    Caller,
    /// The provider or its model: it failed, or its reply could not be used.
    Provider,
    /// Whoever runs the gateway: its keys, quotas, limits or targets have to change.
    Gateway,
}

impl Side {
    /// The side's name as logs and metrics print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Provider => "provider",
            Self::Gateway => "gateway",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why one attempt at one target gave no usable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// No connection: refused, name not found, TLS failed, or `connect` ran out. Nothing was sent.
    ConnectFailed,
    /// The connection broke after the request was sent and before any of the reply came.
    ConnectionLost,
    /// `first_token` ran out: no content came.
    NoFirstToken,
    /// `gap` ran out: content came, then silence.
    Stalled,
    /// The text came more slowly than the route's gate allows.
    TooSlow,
    /// `total` ran out before the reply was whole.
    TotalTimeout,
    /// 429 for too many requests or tokens: a wait helps.
    RateLimited,
    /// 503 or 529: the provider has too much load.
    Overloaded,
    /// 500, 502, or another 5xx without a better name.
    ServerError,
    /// 408 or 504: the provider gave up by its own clock.
    ProviderTimeout,
    /// 429 or 402 for a spent quota or credit: a wait does not help, a person does.
    QuotaExhausted,
    /// 401 or 403: the key sent is missing, unknown, or not allowed.
    Auth,
    /// 400 or 422: the request itself is wrong.
    BadRequest,
    /// 404: the provider has no such model, or not for this key.
    NotFound,
    /// 413: the request has too many bytes.
    TooLarge,
    /// The provider counted more tokens than the model's window holds.
    ContextExceeded,
    /// A policy refused the request before any reply.
    ContentPolicy,
    /// The model declined, and said so in a field made for it.
    Refused,
    /// A filter stopped the reply.
    ContentFiltered,
    /// The reply stopped at the output cap.
    Truncated,
    /// The provider paused a long turn and waits to be asked to go on.
    Paused,
    /// A finish reason nobody has seen: fails closed.
    UnknownFinish,
    /// A success status with nothing in it.
    Empty,
    /// The envelope is not what the API promises; the content cannot be found.
    MalformedReply,
    /// The reply broke off: no terminal event.
    StreamCut,
    /// The model says the same again and again.
    Looping,
    /// JSON was asked for; the content is not one JSON value.
    NotJson,
    /// The content is JSON and breaks the schema.
    SchemaError,
    /// The content fits the schema and breaks a rule.
    SemanticError,
}

impl Fault {
    /// All of them, in order.
    pub const ALL: [Self; 29] = [
        Self::ConnectFailed,
        Self::ConnectionLost,
        Self::NoFirstToken,
        Self::Stalled,
        Self::TooSlow,
        Self::TotalTimeout,
        Self::RateLimited,
        Self::Overloaded,
        Self::ServerError,
        Self::ProviderTimeout,
        Self::QuotaExhausted,
        Self::Auth,
        Self::BadRequest,
        Self::NotFound,
        Self::TooLarge,
        Self::ContextExceeded,
        Self::ContentPolicy,
        Self::Refused,
        Self::ContentFiltered,
        Self::Truncated,
        Self::Paused,
        Self::UnknownFinish,
        Self::Empty,
        Self::MalformedReply,
        Self::StreamCut,
        Self::Looping,
        Self::NotJson,
        Self::SchemaError,
        Self::SemanticError,
    ];

    /// The stable name: it never changes once released.
    pub const fn code(self) -> &'static str {
        match self {
            Self::ConnectFailed => "provider_unreachable",
            Self::ConnectionLost => "provider_connection_lost",
            Self::NoFirstToken => "provider_first_token_timeout",
            Self::Stalled => "provider_stream_stalled",
            Self::TooSlow => "provider_too_slow",
            Self::TotalTimeout => "provider_total_timeout",
            Self::RateLimited => "provider_rate_limited",
            Self::Overloaded => "provider_overloaded",
            Self::ServerError => "provider_error",
            Self::ProviderTimeout => "provider_timeout",
            Self::QuotaExhausted => "provider_quota_exhausted",
            Self::Auth => "provider_auth",
            Self::BadRequest => "request_rejected",
            Self::NotFound => "model_not_found",
            Self::TooLarge => "request_too_large",
            Self::ContextExceeded => "context_exceeded",
            Self::ContentPolicy => "content_policy",
            Self::Refused => "reply_refused",
            Self::ContentFiltered => "reply_content_filtered",
            Self::Truncated => "reply_truncated",
            Self::Paused => "reply_paused",
            Self::UnknownFinish => "reply_unknown_finish",
            Self::Empty => "reply_empty",
            Self::MalformedReply => "reply_malformed",
            Self::StreamCut => "provider_stream_cut",
            Self::Looping => "reply_looping",
            Self::NotJson => "reply_not_json",
            Self::SchemaError => "reply_schema_error",
            Self::SemanticError => "reply_semantic_error",
        }
    }

    /// Who has to act before the same call can succeed.
    pub const fn side(self) -> Side {
        match self {
            Self::ConnectFailed
            | Self::ConnectionLost
            | Self::NoFirstToken
            | Self::Stalled
            | Self::TooSlow
            | Self::TotalTimeout
            | Self::RateLimited
            | Self::Overloaded
            | Self::ServerError
            | Self::ProviderTimeout
            | Self::Truncated
            | Self::Paused
            | Self::UnknownFinish
            | Self::Empty
            | Self::MalformedReply
            | Self::StreamCut
            | Self::Looping
            | Self::NotJson
            | Self::SchemaError
            | Self::SemanticError => Side::Provider,
            Self::BadRequest
            | Self::NotFound
            | Self::TooLarge
            | Self::ContextExceeded
            | Self::ContentPolicy
            | Self::Refused
            | Self::ContentFiltered => Side::Caller,
            Self::QuotaExhausted | Self::Auth => Side::Gateway,
        }
    }

    /// What the fault says about whether the target is up.
    ///
    /// [`Verdict::Failure`] for transport, timeouts, 5xx, a cut stream and a broken envelope.
    /// [`Verdict::Success`] where an answer came, if only a bad one or a refusal.
    /// [`Verdict::Soft`] where it came slowly.
    /// [`Verdict::Neutral`] where a healthy target answers without the model: throttling, rejecting.
    pub const fn availability(self) -> Verdict {
        match self {
            Self::ConnectFailed
            | Self::ConnectionLost
            | Self::NoFirstToken
            | Self::Stalled
            | Self::TotalTimeout
            | Self::Overloaded
            | Self::ServerError
            | Self::ProviderTimeout
            | Self::Empty
            | Self::MalformedReply
            | Self::StreamCut => Verdict::Failure,
            Self::RateLimited
            | Self::QuotaExhausted
            | Self::Auth
            | Self::BadRequest
            | Self::NotFound
            | Self::TooLarge
            | Self::ContextExceeded
            | Self::ContentPolicy => Verdict::Neutral,
            Self::Refused
            | Self::ContentFiltered
            | Self::Truncated
            | Self::Paused
            | Self::UnknownFinish
            | Self::Looping
            | Self::NotJson
            | Self::SchemaError
            | Self::SemanticError => Verdict::Success,
            Self::TooSlow => Verdict::Soft,
        }
    }

    /// Whether an attempt with this end was turned away before any model read it: by a healthy
    /// target without its model, by one with too much load, or by nobody there.
    pub const fn was_turned_away(self) -> bool {
        matches!(self.availability(), Verdict::Neutral)
            || matches!(self, Self::ConnectFailed | Self::Overloaded)
    }

    /// The fault with this code, if there is one.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.code() == code)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_code_of_its_own_by_which_it_is_found() {
        let codes: std::collections::BTreeSet<_> = Fault::ALL.map(Fault::code).into();
        assert_eq!(codes.len(), Fault::ALL.len());
        for fault in Fault::ALL {
            assert_eq!(Fault::from_code(fault.code()), Some(fault));
            assert_eq!(fault.to_string(), fault.code());
        }
        assert_eq!(Fault::StreamCut.code(), "provider_stream_cut");
        assert_eq!(Fault::from_code("no_such_fault"), None);
    }

    #[test]
    fn sides_are_named_as_logs_print_them() {
        let names = [Side::Caller, Side::Provider, Side::Gateway].map(|side| side.to_string());
        assert_eq!(names, ["caller", "provider", "gateway"]);
    }

    #[test]
    fn these_are_turned_away_before_any_model_reads_them_and_no_others() {
        let turned_away = Fault::ALL.into_iter().filter(|fault| fault.was_turned_away());
        assert_eq!(
            turned_away.collect::<Vec<_>>(),
            [
                Fault::ConnectFailed,
                Fault::RateLimited,
                Fault::Overloaded,
                Fault::QuotaExhausted,
                Fault::Auth,
                Fault::BadRequest,
                Fault::NotFound,
                Fault::TooLarge,
                Fault::ContextExceeded,
                Fault::ContentPolicy,
            ]
        );
    }
}
