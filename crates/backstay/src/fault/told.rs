//! What a caller is told of a failure, in a response or in the middle of a stream: the status and the
//! sentence, chosen here and nowhere else.

use backstay_decide::{Fault, Local};
use backstay_wire::dialect::ErrorOut;

use super::{CallError, Cause};

impl CallError {
    /// What `write` makes of it for the caller of the call with this id; the id may be empty.
    pub fn told<T>(&self, call_id: &str, write: impl FnOnce(&ErrorOut<'_>) -> T) -> T {
        write(&ErrorOut {
            status: self.status(),
            code: self.code(),
            message: &self.sentence(),
            param: self.param(),
            call_id,
        })
    }

    /// The sentence for the caller: ours, then the provider's own words.
    fn sentence(&self) -> String {
        match self.provider().map(|provider| provider.message.as_str()) {
            Some(words) if !words.is_empty() => format!("{self}; the provider says: {words}"),
            _ => self.to_string(),
        }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self.cause() {
            Cause::Here(local) => local_status(local),
            Cause::Attempt(fault) => fault_status(fault, self),
        }
    }
}

fn local_status(local: Local) -> u16 {
    match local {
        Local::DeadlineExceeded => 504,
        Local::AttemptsExhausted => 502,
        Local::NoTarget | Local::Busy | Local::ShuttingDown => 503,
        Local::OverBudget | Local::InvalidRequest => 400,
        Local::UnknownRoute => 404,
        Local::Unauthorized => 401,
        Local::Forbidden => 403,
        Local::SpendLimit => 429,
        Local::BodyTooLarge => 413,
        Local::Internal => 500,
    }
}

fn fault_status(fault: Fault, error: &CallError) -> u16 {
    let theirs = error.provider().and_then(|provider| provider.status);
    match fault {
        Fault::RateLimited | Fault::QuotaExhausted => 429,
        Fault::Overloaded => 503,
        Fault::NoFirstToken
        | Fault::Stalled
        | Fault::TooSlow
        | Fault::TotalTimeout
        | Fault::ProviderTimeout => 504,
        Fault::BadRequest => theirs.filter(|status| (400..500).contains(status)).unwrap_or(400),
        Fault::ContentPolicy | Fault::ContextExceeded => 400,
        Fault::NotFound => 404,
        Fault::TooLarge => 413,
        // The credentials are the operator's: a caller cannot mend them, so it is not told 401.
        Fault::Auth
        | Fault::ConnectFailed
        | Fault::ConnectionLost
        | Fault::ServerError
        | Fault::Refused
        | Fault::ContentFiltered
        | Fault::Truncated
        | Fault::Paused
        | Fault::UnknownFinish
        | Fault::Empty
        | Fault::MalformedReply
        | Fault::StreamCut
        | Fault::Looping
        | Fault::NotJson
        | Fault::SchemaError
        | Fault::SemanticError => 502,
    }
}
