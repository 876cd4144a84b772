//! Streams.
use crate::chat::{Delta, Loss};
use crate::dialect::{ErrorOut, Malformed};
use crate::frame::sse::Event;
/// Reader.
#[derive(Debug, Default)]
pub struct Reader {}
impl Reader {
    pub(crate) fn read(&mut self, _e: &Event, _out: &mut Vec<Delta>) -> Result<(), Malformed> {
        Ok(())
    }
}
/// Writer.
#[derive(Debug)]
pub struct Writer {}
impl Writer {
    pub(crate) fn new(_model: &str) -> Self {
        Self {}
    }
    pub(crate) fn write(&mut self, _d: &Delta, _out: &mut Vec<u8>) {}
    pub(crate) fn losses(&self) -> &[Loss] {
        &[]
    }
}
pub(crate) fn write_error(_error: &ErrorOut<'_>) -> Vec<u8> {
    vec![]
}
