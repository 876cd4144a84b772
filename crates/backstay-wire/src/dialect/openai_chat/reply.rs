//! Replies.
use crate::chat::Reply;
use crate::dialect::{Malformed, ReadFault, Written};
pub(crate) fn read(_body: &[u8]) -> Result<Reply, ReadFault> {
    Err(Malformed::new("", "not built").into())
}
pub(crate) fn write(_reply: &Reply) -> Written {
    Written { bytes: vec![], losses: vec![] }
}
