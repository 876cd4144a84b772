//! Streams of `OpenAI` Chat Completions, both ways.
//!
//! ```text
//!  data: {"choices":[{"delta":{"role":"assistant"},…}]}      Start
//!  data: {"choices":[{"delta":{"content":"Hi"},…}]}          Text
//!  data: {"choices":[{"delta":{},"finish_reason":"stop"}]}   Finish
//!  data: {"choices":[],"usage":{…}}                          Usage
//!  data: [DONE]                                              End
//!  data: {"error":{…}}                                       Error, instead of all that is left
//! ```

mod calls;
mod reader;
mod writer;

pub use reader::Reader;
pub use writer::Writer;
pub(crate) use writer::write_error;
