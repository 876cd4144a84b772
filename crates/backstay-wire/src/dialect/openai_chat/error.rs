//! Errors.
use crate::chat::{ErrorClass, ProviderError};
use crate::dialect::ErrorOut;
pub(crate) fn read(status: u16, _body: &[u8]) -> ProviderError {
    ProviderError {
        class: ErrorClass::ServerError,
        status: Some(status),
        kind: None,
        code: None,
        param: None,
        message: String::new(),
    }
}
pub(crate) fn write(_error: &ErrorOut<'_>) -> Vec<u8> {
    vec![]
}
