//! Tests random programs from the text to the log density. The evaluators must agree, and the derivatives must be those
//! of the value.
//!
//! `cargo run --release -p jensen-stan --example random_programs -- density 100000` tests many more programs.

use std::collections::BTreeMap;

use crate::support::agreement::{Outcome, compare};

const PROGRAMS: u64 = 400;

#[test]
fn evaluators_agree_on_generated_programs() {
    let mut outcomes: BTreeMap<Outcome, u64> = BTreeMap::new();
    for seed in 0..PROGRAMS {
        let source = crate::common::program(seed);
        match compare(&source, crate::common::DATA, seed) {
            Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
            Err(problem) => panic!("seed {seed}: {problem}\n{source}"),
        }
    }
    // The comparison is meaningful only if most programs have a density.
    assert!(2 * outcomes[&Outcome::Agreed] > PROGRAMS, "{outcomes:?}");
}
