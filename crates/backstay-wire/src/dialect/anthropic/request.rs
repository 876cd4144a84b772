//! Requests.
use crate::chat::Chat;
use crate::dialect::{Malformed, Written};
pub(crate) fn read(_body: &[u8]) -> Result<Chat, Malformed> {
    Err(Malformed::new("", "not built"))
}
pub(crate) fn write(_chat: &Chat) -> Written {
    Written { bytes: vec![], losses: vec![] }
}
