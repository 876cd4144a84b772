//! A provider's failure in the neutral form.

/// What kind of failure a provider reports. The vocabulary is closed; a body that fits no rule
/// falls back to its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The credentials are wrong or lack a right.
    Auth,
    /// The request is malformed.
    BadRequest,
    /// The provider's policy refuses the request.
    ContentPolicy,
    /// Prompt and output do not fit the window.
    ContextExceeded,
    /// No such model or path.
    NotFound,
    /// The provider has no capacity now.
    Overloaded,
    /// A spend cap or quota is used up; waiting does not help.
    QuotaExhausted,
    /// Too fast; waiting helps.
    RateLimited,
    /// The provider failed.
    ServerError,
    /// The provider gave up waiting.
    Timeout,
    /// The body is too large.
    TooLarge,
}

impl ErrorClass {
    /// The word of providers.json, such as `rate_limited`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::BadRequest => "bad_request",
            Self::ContentPolicy => "content_policy",
            Self::ContextExceeded => "context_exceeded",
            Self::NotFound => "not_found",
            Self::Overloaded => "overloaded",
            Self::QuotaExhausted => "quota_exhausted",
            Self::RateLimited => "rate_limited",
            Self::ServerError => "server_error",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
        }
    }

    /// Whether the same request may succeed later at the same provider.
    pub fn passes(self) -> bool {
        match self {
            Self::Overloaded | Self::RateLimited | Self::ServerError | Self::Timeout => true,
            Self::Auth
            | Self::BadRequest
            | Self::ContentPolicy
            | Self::ContextExceeded
            | Self::NotFound
            | Self::QuotaExhausted
            | Self::TooLarge => false,
        }
    }
}

/// A failure as a provider reported it, in a response or inside a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderError {
    /// Our reading of it.
    pub class: ErrorClass,
    /// The HTTP status; `None` inside a stream without one.
    pub status: Option<u16>,
    /// The provider's `type` word.
    pub kind: Option<String>,
    /// The provider's `code` word.
    pub code: Option<String>,
    /// The parameter the provider blames.
    pub param: Option<String>,
    /// The provider's sentence, at most 2,000 bytes.
    pub message: String,
    /// How long to stay away, as the body has it: a number of seconds or a duration (`12s`, `6m0s`).
    /// `None`: the body does not say.
    pub delay: Option<Box<str>>,
}
