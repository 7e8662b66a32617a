//! Tests of TrustVI on minibatches.

use jensen_blackbox::{
    FamilyChoice, FamilyKind, Method, NoiseSource, Settings, StartSettings, Subject, Subsampled,
    Trust, TrustSettings, fit,
};
use jensen_density::AllRecords;
use jensen_glm::{Dense, Features, Glm, Link, StandardNormal};
use jensen_math::simd::Simd;
use jensen_run::{Algorithm, Budget, Control, Silent};

#[test]
fn minibatches_reach_the_optimum_of_all_records() {
    let (records, columns) = (600, 3);
    let wave = |n: usize, k: usize| (1.7 * n as f64 + 2.3 * k as f64 * n as f64).sin();
    let values: Vec<f64> = (0..records * columns)
        .map(|i| wave(i / columns, i % columns) + if i % columns == 0 { 1.0 } else { 0.0 })
        .collect();
    let outcomes: Vec<bool> = (0..records)
        .map(|n| values[n * columns] - values[n * columns + 1] + 1.5 * wave(7 * n, 5) > 0.3)
        .collect();
    let features = Features::Dense(Dense::new(values, columns).unwrap());
    let prior = StandardNormal(columns);
    let model = Glm::new(features, Link::bernoulli(&outcomes), prior).unwrap();
    let all = AllRecords::new(&model);
    let settings = Settings {
        method: Method::Trust(TrustSettings::default()),
        family: FamilyChoice::Only(FamilyKind::MeanField),
        start: StartSettings {
            starts: Some(0),
            ..StartSettings::default()
        },
        ..Settings::default()
    };
    let clock = || 0.0;
    let mut observer = Silent;
    let mut control = Control::new(Budget::iterations(100_000), &clock, &mut observer);
    let full = fit(&all, &settings, &Subject::default(), &mut control).unwrap();
    assert!(full.converged(), "{}", full.status);

    let family = FamilyKind::MeanField.build(columns);
    let source = NoiseSource::new(3, Simd::detect());
    let settings = TrustSettings {
        tolerance: Some(0.05),
        ..TrustSettings::default()
    };
    let start = family.diagonal(&[0.0; 3], &[0.0; 3]);
    let subsampled = Subsampled::new(&model, 60, source).unwrap();
    let mut algorithm = Trust::on_records(&subsampled, family, source, settings, start, 0);
    let mut state = algorithm.init().unwrap();
    let status = (1..=100)
        .find_map(|iteration| algorithm.step(&mut state, iteration).status)
        .expect("an end");
    assert!(status.is_converged(), "{status}");
    let (found, best) = (algorithm.output(&state), full.approximation());
    for (i, (mean, sd)) in best.mean().iter().zip(best.sd()).enumerate() {
        let off = (found[i] - mean) / sd;
        assert!(off.abs() < 0.4, "coordinate {i}: {off} standard deviations");
        let ratio = found[columns + i].exp() / sd;
        assert!((ratio - 1.0).abs() < 0.2, "coordinate {i}: {ratio}");
    }

    assert!(Subsampled::new(&model, 0, source).is_err());
    assert!(Subsampled::new(&model, records + 1, source).is_err());
}
