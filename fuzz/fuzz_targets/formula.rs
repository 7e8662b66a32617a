//! Formulas of regressions.
#![no_main]

use jensen_regress::Formula;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    drop(Formula::parse(text));
});
