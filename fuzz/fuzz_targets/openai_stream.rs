//! Feeds any bytes as a stream to the reader of this dialect, in pieces of any size.

#![no_main]

use backstay_wire::dialect::Dialect;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| backstay_fuzz::stream(Dialect::OpenaiChat, input));
