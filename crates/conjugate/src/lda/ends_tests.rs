//! Tests of fits that infer the temperature from both ends, and of fits with one temperature per document.

use jensen_math::simd::Simd;
use jensen_run::{Algorithm, Budget, Control, Silent, Snapshot};

use super::tests::{corpus, driver, settings};
use super::{LdaFit, LdaJob, LdaSettings, fit};
use crate::documents::MemoryDocuments;
use crate::ends::Ends;

fn tempered(policy: &str) -> LdaSettings {
    let mut settings = settings(6);
    settings.passes = 4.0;
    settings.temper = policy
        .parse::<crate::temper::Temper>()
        .unwrap()
        .with_cooling(1.0);
    settings
}

fn fitted(documents: &MemoryDocuments, settings: LdaSettings) -> LdaFit {
    let job = LdaJob {
        documents,
        heldout: None,
        scored: 0,
        start: None,
        settings,
        simd: Simd::detect(),
        data_hash: String::new(),
    };
    let (mut silent, clock) = (Silent, || 0.0);
    let mut control = Control::new(Budget::iterations(u64::MAX), &clock, &mut silent);
    fit(&job, &mut control).unwrap().output.unwrap()
}

#[test]
fn both_ends_are_those_of_either_run_and_the_better_is_kept() {
    let documents = corpus(60, 40);
    let [cold, warm, both] = ["cold", "warm", "both"]
        .map(|start| fitted(&documents, tempered(&format!("global=inf:10:20:{start}"))));
    assert_eq!((cold.rests.len(), warm.rests.len()), (1, 1));
    let mut ends = [&cold, &warm];
    ends.sort_by(|a, b| {
        b.rests[0]
            .tempered_elbo
            .total_cmp(&a.rests[0].tempered_elbo)
    });
    assert_eq!(both.rests, [ends[0].rests[0], ends[1].rests[0]]);
    assert_eq!(both.topics, ends[0].topics);
    assert_eq!(both.temperature, ends[0].temperature);
}

#[test]
fn both_ends_resume_to_the_same_bits() {
    let documents = corpus(60, 40);
    let settings = tempered("global=inf:10:20:both");
    let mut ends = Ends(driver(&documents, &settings));
    let mut state = ends.init().unwrap();
    for iteration in 1..=5 {
        ends.step(&mut state, iteration);
    }
    let mut again = Snapshot::restore(&state.save()).unwrap();
    let mut other = Ends(driver(&documents, &settings));
    for iteration in 6..=20 {
        ends.step(&mut state, iteration);
        other.step(&mut again, iteration);
    }
    assert_eq!(state.save(), again.save());
}

#[test]
fn documents_that_have_temperatures_say_which() {
    let documents = corpus(60, 40);
    let hot = fitted(&documents, tempered("local"));
    assert_eq!(hot.temperatures.len(), 60);
    for (d, t) in hot.temperatures.iter().enumerate() {
        // Every eleventh document is empty.
        assert_eq!(t.is_nan(), d % 11 == 5, "{d}: {t}");
        assert!(t.is_nan() || *t >= 1.0, "{d}: {t}");
    }
    let known: Vec<f64> = hot
        .temperatures
        .iter()
        .copied()
        .filter(|t| !t.is_nan())
        .collect();
    let mean = known.iter().map(|t| 1.0 / t).sum::<f64>() / known.len() as f64;
    assert!(
        (mean - 1.0 / hot.temperature).abs() < 0.05,
        "{mean} {}",
        hot.temperature
    );
    assert!(
        fitted(&documents, tempered("local=2"))
            .temperatures
            .is_empty()
    );
}

#[test]
fn the_paper_s_normaliser_and_interval_are_options() {
    let documents = corpus(60, 40);
    let ours = fitted(&documents, tempered("global=inf:10:20:warm"));
    let paper = fitted(&documents, tempered("global=inf:10:20:warm:50:8"));
    assert!(ours.temperature.is_finite() && paper.temperature.is_finite());
    // A run that is shorter than the update interval makes no update, so r remains uniform.
    let never = fitted(&documents, tempered("global=inf:10:20:warm:50:1000"));
    let grid: Vec<f64> = (0..20).map(|m| 10f64.powf(-f64::from(m) / 19.0)).collect();
    let mean = grid.iter().sum::<f64>() / 20.0;
    assert!((never.temperature - 1.0 / mean).abs() < 1e-9);
    assert!(paper.temperature != never.temperature && paper.temperature != ours.temperature);
}
