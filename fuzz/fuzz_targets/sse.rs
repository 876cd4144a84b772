//! Cuts any bytes into events, in pieces of any size: every split gives the same frames, their raw
//! bytes are the body, and no frame is larger than the bound.

#![no_main]

use backstay_fuzz::{cut, frames};
use backstay_wire::frame::sse::Limits;
use libfuzzer_sys::fuzz_target;

/// Small, so that the fuzzer finds them.
const NARROW: Limits = Limits { line: 64, event: 128 };

fuzz_target!(|input: &[u8]| {
    let Some((pieces, body)) = cut(input) else { return };
    for limits in [Limits::default(), NARROW] {
        let (whole, fault) = frames(&[body], limits);
        assert_eq!(frames(&pieces, limits), (whole.clone(), fault.clone()));
        assert!(whole.iter().all(|frame| frame.raw().len() <= limits.event));
        if fault.is_none() {
            let raw: Vec<u8> = whole.iter().flat_map(|frame| frame.raw().to_vec()).collect();
            assert_eq!(raw, body);
        }
    }
});
