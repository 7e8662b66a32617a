//! Tests of the initial factors of a factorial mixture, and of the residuals of the points.

use jensen_conjugate::driver::{DriverSettings, Mode};
use jensen_conjugate::fit::fit;
use jensen_conjugate::models::{FactorialMixture, FactorialSettings, FactorialStart};
use jensen_conjugate::temper::Temper;
use jensen_math::rng::{Purpose, Stream};
use jensen_math::special::inv_phi;
use jensen_run::{Budget, Control, Record, Silent};

/// Draws pictures of four by four pixels with eight lines, each of which is active in a fifth of the pictures.
fn lines(n: usize, factors: usize) -> FactorialMixture {
    let mut s = Stream::new(9, Purpose::new("test of models"), 0, 4);
    let mut data = Vec::new();
    for _ in 0..n {
        let on: Vec<f64> = (0..8)
            .map(|_| f64::from(u8::from(s.uniform() < 0.2)))
            .collect();
        data.extend((0..16).map(|k| on[k / 4] + on[4 + k % 4] + 0.3 * inv_phi(s.uniform())));
    }
    let settings = FactorialSettings {
        factors,
        noise_variance: 0.09,
        factor_variance: 0.5,
        activation: 0.2,
    };
    FactorialMixture::new(settings, 16, data).unwrap()
}

#[test]
fn factors_that_start_at_points_are_found_and_their_noise_is_known() {
    let settings = |seed| DriverSettings {
        mode: Mode::Batch {
            tolerance: 1e-7,
            max_iterations: 1000,
        },
        temper: Temper::None,
        seed,
        scores_per_pass: 0.0,
    };
    let ends = |model: &FactorialMixture| -> Vec<(f64, Vec<f64>)> {
        let fitted = |seed| {
            let (mut silent, clock) = (Silent, || 0.0);
            let mut control = Control::new(Budget::iterations(1000), &clock, &mut silent);
            let outcome = fit(model, &settings(seed), "", &mut control).unwrap();
            let fit = outcome.output.unwrap();
            (fit.elbo, fit.lambda)
        };
        (0..5).map(fitted).collect()
    };
    let mean = |ends: &[(f64, Vec<f64>)]| ends.iter().map(|end| end.0).sum::<f64>() / 5.0;
    let random = ends(&lines(400, 8));
    let model = lines(400, 8).starting_at(FactorialStart::Points);
    let found = ends(&model);
    assert!(
        mean(&found) > mean(&random) + 100.0,
        "{} {}",
        mean(&found),
        mean(&random)
    );
    let best = found.iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    for line in 0..8 {
        let on = |k: usize| f64::from(u8::from(k / 4 == line || 4 + k % 4 == line));
        let near = model.factors(&best.1).chunks_exact(16).any(|factor| {
            let pairs = factor.iter().enumerate();
            pairs.fold(0.0f64, |most, (k, x)| most.max((x - on(k)).abs())) < 0.2
        });
        assert!(near, "line {line}");
    }
    let noise = model.noise(&best.1);
    assert!((noise / 0.09 - 1.0).abs() < 0.05, "{noise}");
    // An optimum that lacks one of the lines treats the line as noise, which raises the noise variance.
    let worst = random.iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    let noise = lines(400, 8).noise(&worst.1);
    assert!(noise / 0.09 > 1.05, "{noise}");
}

#[test]
fn independent_factors_ascend_and_are_the_joint_posterior_of_one_factor() {
    let settings = DriverSettings {
        mode: Mode::Batch {
            tolerance: 0.0,
            max_iterations: 60,
        },
        temper: Temper::None,
        seed: 1,
        scores_per_pass: 0.0,
    };
    let fitted = |model: &FactorialMixture| {
        let (mut bounds, clock): (Vec<Record>, _) = (Vec::new(), || 0.0);
        let mut control = Control::new(Budget::iterations(60), &clock, &mut bounds);
        let outcome = fit(model, &settings, "", &mut control).unwrap();
        (outcome.output.unwrap(), bounds)
    };
    let (_, bounds) = fitted(&lines(300, 8).independent());
    for pair in bounds.windows(2) {
        let (before, after) = (pair[0].elbo.unwrap(), pair[1].elbo.unwrap());
        assert!(after >= before - 1e-9 * before.abs(), "{before} {after}");
    }
    // A single factor is independent of all other factors, because there are none.
    let (joint, apart) = (lines(300, 1), lines(300, 1).independent());
    let ((whole, _), (parts, _)) = (fitted(&joint), fitted(&apart));
    assert!((whole.elbo - parts.elbo).abs() < 1e-9 * whole.elbo.abs());
    let far = (joint.factors(&whole.lambda).iter())
        .zip(apart.factors(&parts.lambda))
        .fold(0.0f64, |most, (x, y)| most.max((x - y).abs()));
    assert!(far < 1e-9, "{far}");
}
