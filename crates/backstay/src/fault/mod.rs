//! How a call fails, as the caller of the engine sees it.

mod told;

use std::time::Duration;

use backstay_decide::{Fault, Local, Side};
use backstay_wire::ProviderError;

use crate::record::Receipt;

/// A typed failure: nothing valid could be had inside the deadline, or the call was not let in.
///
/// Opaque on purpose: ask it questions, so that a new cause breaks nobody.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    cause: Cause,
    message: String,
    provider: Option<Box<ProviderError>>,
    retry_after: Option<Duration>,
    param: Option<String>,
    receipt: Option<Box<Receipt>>,
}

/// What stands behind a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The last attempt's fault.
    Attempt(Fault),
    /// A decision taken here, before or between attempts.
    Here(Local),
}

impl CallError {
    /// A failure decided here. `message` says what happened, then what to do.
    pub fn local(cause: Local, message: impl Into<String>) -> Self {
        Self::new(Cause::Here(cause), message.into())
    }

    /// A failure of the last attempt.
    pub fn attempt(fault: Fault, message: impl Into<String>) -> Self {
        Self::new(Cause::Attempt(fault), message.into())
    }

    fn new(cause: Cause, message: String) -> Self {
        Self { cause, message, provider: None, retry_after: None, param: None, receipt: None }
    }

    /// With the provider's own words.
    #[must_use]
    pub fn told_by(mut self, provider: Option<Box<ProviderError>>) -> Self {
        self.provider = provider;
        self
    }

    /// With the time after which it makes sense to try again.
    #[must_use]
    pub fn again_after(mut self, delay: Option<Duration>) -> Self {
        self.retry_after = delay;
        self
    }

    /// With the parameter to blame.
    #[must_use]
    pub fn blaming(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// With what happened to the call.
    #[must_use]
    pub fn with_receipt(mut self, receipt: Receipt) -> Self {
        self.receipt = Some(Box::new(receipt));
        self
    }

    /// The stable code, listed in docs/reference/faults.md.
    pub fn code(&self) -> &'static str {
        match self.cause {
            Cause::Attempt(fault) => fault.code(),
            Cause::Here(local) => local.code(),
        }
    }

    /// Whose side it is on.
    pub fn side(&self) -> Side {
        match self.cause {
            Cause::Attempt(fault) => fault.side(),
            Cause::Here(local) => local.side(),
        }
    }

    /// What stands behind it.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// The provider's own words, where it said any.
    pub fn provider(&self) -> Option<&ProviderError> {
        self.provider.as_deref()
    }

    /// After what time a new call may succeed. `None`: not known, or never.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The request's parameter to blame.
    pub fn param(&self) -> Option<&str> {
        self.param.as_deref()
    }

    /// What happened to the call; `None` when it was refused at the door.
    pub fn receipt(&self) -> Option<&Receipt> {
        self.receipt.as_deref()
    }
}
