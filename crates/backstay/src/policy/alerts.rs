//! What an operator is told of by itself, and where.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};

/// How operators are told.
#[derive(Clone, Debug)]
pub struct AlertPolicy {
    /// The same thing about the same subject is told once in this time. Zero: every time.
    pub every: Duration,
    /// Where it is told besides the log. `None`: nowhere.
    pub webhook: Option<Webhook>,
}

/// Where alerts are posted as JSON.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// The address, from config only.
    pub url: Uri,
    /// Headers sent with each, such as a secret.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}
