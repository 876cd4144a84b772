//! Feeds any bytes as a whole body to the readers of replies and of errors of this dialect. The
//! first two bytes are the status.

#![no_main]

use backstay_wire::dialect::Dialect;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| backstay_fuzz::body(Dialect::Anthropic, input));
