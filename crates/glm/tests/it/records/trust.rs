//! Tests of TrustVI on minibatches.

use jensen_blackbox::{
    FamilyChoice, FamilyKind, Method, NoiseSource, Settings, StartSettings, Subject, Subsampled,
    Trust, TrustSettings, fit,
};
use jensen_density::{AllRecords, Lanes, LanesMut, TwiceDifferentiable};
use jensen_glm::{Dense, Features, Glm, Link, StandardNormal};
use jensen_math::simd::Simd;
use jensen_run::{Algorithm, Budget, Control, Silent};

/// A logistic regression of 600 records.
fn logistic(records: usize, columns: usize) -> Glm<StandardNormal> {
    let wave = |n: usize, k: usize| (1.7 * n as f64 + 2.3 * k as f64 * n as f64).sin();
    let values: Vec<f64> = (0..records * columns)
        .map(|i| wave(i / columns, i % columns) + if i % columns == 0 { 1.0 } else { 0.0 })
        .collect();
    let outcomes: Vec<bool> = (0..records)
        .map(|n| values[n * columns] - values[n * columns + 1] + 1.5 * wave(7 * n, 5) > 0.3)
        .collect();
    let features = Features::Dense(Dense::new(values, columns).unwrap());
    Glm::new(
        features,
        Link::bernoulli(&outcomes),
        StandardNormal(columns),
    )
    .unwrap()
}

/// Both estimators reach the optimum of all records. With the control variate, they need a fraction of the evaluations.
#[test]
fn minibatches_reach_the_optimum_of_all_records() {
    let (records, columns) = (600, 3);
    let model = logistic(records, columns);
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
    let lanes = [false, true].map(|controlled| {
        let subsampled = Subsampled::new(&model, 60, source).unwrap();
        let mut algorithm = Trust::on_records(
            &subsampled,
            family.clone(),
            source,
            settings,
            start.clone(),
            0,
        );
        if controlled {
            algorithm = algorithm.controlled();
        }
        let mut state = algorithm.init().unwrap();
        let mut lanes = 0.0;
        let status = (1..=100)
            .find_map(|iteration| {
                let step = algorithm.step(&mut state, iteration);
                lanes = step.record.fields["lane_evaluations"].as_f64().unwrap();
                step.status
            })
            .expect("an end");
        assert!(status.is_converged(), "{status}");
        let (found, best) = (algorithm.output(&state), full.approximation());
        // The tolerance of 0.05 nats is a shift of 0.3 standard deviations.
        for (i, (mean, sd)) in best.mean().iter().zip(best.sd()).enumerate() {
            let off = (found[i] - mean) / sd;
            assert!(off.abs() < 0.4, "coordinate {i}: {off} standard deviations");
            let ratio = found[columns + i].exp() / sd;
            assert!((ratio - 1.0).abs() < 0.2, "coordinate {i}: {ratio}");
        }
        lanes
    });
    // Each draw with the control variate takes four times as many evaluations of records.
    assert!(4.0 * lanes[1] < lanes[0], "{lanes:?}");

    assert!(Subsampled::new(&model, 0, source).is_err());
    assert!(Subsampled::new(&model, records + 1, source).is_err());
}

/// The log density with the control variate is that of all records on average, for values, gradients and products. Its
/// noise near the snapshot is far smaller than that of minibatches alone. The noise of products is of first order in the
/// distance, which gives the limits.
#[test]
fn the_control_variate_is_unbiased_and_of_third_order() {
    let (records, columns, lanes) = (600, 3, 4096);
    let model = logistic(records, columns);
    let (all, source) = (AllRecords::new(&model), NoiseSource::new(5, Simd::detect()));
    let points = |at: [f64; 3], by: f64| -> Vec<f64> {
        (at.iter().enumerate())
            .flat_map(|(i, x)| (0..lanes).map(move |_| x + by * (i as f64 - 0.7)))
            .collect()
    };
    let centre = [0.4, -0.6, 0.2];
    for (by, least) in [(0.0, 1e10), (0.05, 50.0), (0.5, 1.5)] {
        let z = points(centre, by);
        let direction = points([1.0, -0.5, 0.3], 0.0);
        let expected = moments(&all, &z[..], &direction, lanes);
        let plain = Subsampled::new(&model, 30, source).unwrap();
        let controlled = Subsampled::new(&model, 30, source).unwrap();
        controlled.expand(&centre);
        let [plain, controlled] =
            [&plain, &controlled].map(|density| moments(density, &z, &direction, lanes));
        for (k, (mean, _)) in expected.iter().enumerate() {
            for (found, variance) in [plain[k], controlled[k]] {
                let error = (variance / lanes as f64).sqrt() + 1e-9 * mean.abs();
                assert!(
                    (found - mean).abs() < 5.0 * error,
                    "{k}: {found} and {mean} ± {error}"
                );
            }
            let ratio = plain[k].1 / controlled[k].1.max(1e-300);
            assert!(
                ratio > least,
                "{k}, distance {by}: variances {ratio} times smaller"
            );
        }
    }
}

/// Computes the mean and the variance over lanes of the value, each derivative, and each element of a product.
fn moments<D: TwiceDifferentiable>(
    density: &D,
    z: &[f64],
    direction: &[f64],
    lanes: usize,
) -> Vec<(f64, f64)> {
    let d = z.len() / lanes;
    let mut ws = density.workspace(lanes);
    let (mut values, mut grad, mut product) =
        (vec![0.0; lanes], vec![0.0; d * lanes], vec![0.0; d * lanes]);
    let at = Lanes::new(z, d, lanes);
    density.value_grad(&mut ws, at, &mut values, LanesMut::new(&mut grad, d, lanes));
    let mut alone = vec![0.0; lanes];
    density.value(&mut ws, at, &mut alone);
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9 * (1.0 + b.abs());
    assert!(alone.iter().zip(&values).all(near));
    density.linearize(&mut ws, at);
    let (v, out) = (
        Lanes::new(direction, d, lanes),
        LanesMut::new(&mut product, d, lanes),
    );
    density.apply(&mut ws, v, out);
    (values
        .chunks(lanes)
        .chain(grad.chunks(lanes))
        .chain(product.chunks(lanes)))
    .map(|row| {
        let mean = row.iter().sum::<f64>() / lanes as f64;
        let squares: f64 = row.iter().map(|x| (x - mean).powi(2)).sum();
        (mean, squares / (lanes - 1) as f64)
    })
    .collect()
}
