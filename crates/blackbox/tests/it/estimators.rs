//! Tests that compare gradient estimators with closed forms. Where possible, matched noise makes the estimators exact.
//! The other tests are statistical, with fixed seeds.

use std::sync::Arc;

use jensen_blackbox::family::FullRank;
use jensen_blackbox::{
    Agreement, Approximation, Estimator, Family, FamilyKind, NoisePurpose, NoiseSource, Objective,
    Oracle, Stream, evaluate, log_weights, summarize,
};
use jensen_density::{Lanes, LanesMut, LogDensity};
use jensen_math::simd::Simd;
use jensen_run::Identity;
use jensen_testkit::{CorrelatedGaussian, EightSchools, Scalar};

fn source() -> NoiseSource {
    NoiseSource::new(17, Simd::detect())
}

fn target() -> CorrelatedGaussian {
    CorrelatedGaussian::exchangeable(&[1.0, 3.0, 0.2], 0.7)
}

fn exact_factor(scales: &[f64], rho: f64) -> Vec<f64> {
    let d = scales.len();
    let mut l = vec![0.0; d * d];
    for i in 0..d {
        for j in 0..=i {
            let covariance = scales[i] * scales[j] * if i == j { 1.0 } else { rho };
            let dot: f64 = (0..j).map(|k| l[i * d + k] * l[j * d + k]).sum();
            let x = covariance - dot;
            l[i * d + j] = if i == j { x.sqrt() } else { x / l[j * d + j] };
        }
    }
    l
}

fn noise(rows: usize, lanes: usize) -> Vec<f64> {
    source().matched(NoisePurpose::Sample, 0, rows, lanes)
}

#[test]
fn sticking_the_landing_is_zero_where_q_is_p() {
    let density = target();
    let family = FullRank::new(3);
    let omega = family.assemble(density.mean(), &exact_factor(&[1.0, 3.0, 0.2], 0.7));
    let family: Arc<dyn Family> = Arc::new(family);
    let mut oracle = Oracle::new(&density, family.clone());
    // The draws are not matched, but the gradient of every single draw vanishes.
    let stream = Stream {
        source: source(),
        purpose: NoisePurpose::Gradient,
        iteration: 1,
    };
    for lane in 0..20 {
        let noise = stream.lanes(lane, 3, 1);
        let noise = Lanes::new(&noise, 3, 1);
        let mut gradient = vec![1.0; omega.len()];
        oracle.gradient(Estimator::Stl, &omega, noise, &mut gradient);
        assert!(gradient.iter().all(|g| g.abs() < 1e-12), "{gradient:?}");
        oracle.gradient(Estimator::Naive, &omega, noise, &mut gradient);
        assert!(gradient.iter().any(|g| g.abs() > 1e-3));
        assert!(oracle.log_weights(&omega, noise)[0].abs() < 1e-12);
    }
}

#[test]
fn both_estimators_are_unbiased() {
    // For a Gaussian target, the average over draws with matched moments equals the expectation. Its closed form is
    // ∂L/∂μ = −P(μ − m), ∂L/∂λᵢ = 1 − Pᵢᵢ σᵢ².
    let density = target();
    let family = FamilyKind::MeanField.build(3);
    let omega = [0.3, 2.0, -0.4, -0.2, 0.5, -1.5f64];
    let mut expected = [0.0; 6];
    {
        let (mut value, mut ws) = ([0.0], density.workspace(1));
        let (mean, grad) = (&omega[..3], &mut expected[..3]);
        density.value_grad(
            &mut ws,
            Lanes::new(mean, 3, 1),
            &mut value,
            LanesMut::new(grad, 3, 1),
        );
        for (i, sd) in density.mean_field_sd().iter().enumerate() {
            expected[3 + i] = 1.0 - (2.0 * omega[3 + i]).exp() / (sd * sd);
        }
    }
    let mut oracle = Oracle::new(&density, family.clone());
    let matched = noise(3, 64);
    for estimator in [Estimator::Naive, Estimator::Stl] {
        let mut gradient = vec![0.0; 6];
        let kept = oracle.gradient(
            estimator,
            &omega,
            Lanes::new(&matched, 3, 64),
            &mut gradient,
        );
        assert_eq!(kept, 64);
        for (g, e) in gradient.iter().zip(&expected) {
            assert!((g - e).abs() < 1e-10 * (1.0 + e.abs()), "{g} {e}");
        }
    }
    // For draws that are not matched, the mean of many single-draw gradients is within four standard errors of the
    // expectation.
    for estimator in [Estimator::Naive, Estimator::Stl] {
        let n = 4000;
        let stream = Stream {
            source: source(),
            purpose: NoisePurpose::Gradient,
            iteration: 3,
        };
        let (mut sum, mut squares) = ([0.0; 6], [0.0; 6]);
        for lane in 0..n {
            let one = stream.lanes(lane, 3, 1);
            let mut gradient = vec![0.0; 6];
            oracle.gradient(estimator, &omega, Lanes::new(&one, 3, 1), &mut gradient);
            for i in 0..6 {
                sum[i] += gradient[i];
                squares[i] += gradient[i] * gradient[i];
            }
        }
        for i in 0..6 {
            let mean = sum[i] / n as f64;
            let se = ((squares[i] / n as f64 - mean * mean) / n as f64).sqrt();
            assert!((mean - expected[i]).abs() < 4.0 * se, "{i}: {mean} ± {se}");
        }
    }
}

#[test]
fn the_bound_of_a_gaussian_is_the_closed_form() {
    let density = target();
    let family = FamilyKind::MeanField.build(3);
    let log_sd: Vec<f64> = density.mean_field_sd().iter().map(|s| s.ln()).collect();
    let omega = family.diagonal(density.mean(), &log_sd);
    let mut oracle = Oracle::new(&density, family.clone());
    let evaluation = evaluate(&mut oracle, &omega, source(), 4000);
    let error = (evaluation.elbo.mean - density.mean_field_elbo()).abs();
    assert!(error < 4.0 * evaluation.elbo.standard_error);
    // Matched draws give the exact ELBO.
    let mut objective = Objective::new(&density, family, noise(3, 64), 64);
    let exact = -objective.value(&omega);
    assert!((exact - density.mean_field_elbo()).abs() < 1e-10);
}

#[test]
fn matched_pairs_beat_independent_estimates() {
    let density = target();
    let family = FamilyKind::MeanField.build(3);
    let from = [0.0, 3.0, 0.4, -0.5, 0.5, -2.0];
    let to: Vec<f64> = from.iter().map(|w| w + 1e-3).collect();
    let mut oracle = Oracle::new(&density, family.clone());
    let mut plain = vec![0.0; 3 * 256];
    source().fill(NoisePurpose::Judge, 0, 0, 3, 256, &mut plain);
    let (difference, dropped) = oracle.matched_difference(&from, &to, Lanes::new(&plain, 3, 256));
    assert_eq!(dropped, 0);
    let mut objective = Objective::new(&density, family, noise(3, 64), 64);
    let exact = objective.value(&from) - objective.value(&to);
    assert!((difference.mean - exact).abs() < 4.0 * difference.standard_error);
    let weights = log_weights(&mut oracle, &from, source(), NoisePurpose::Final, 0, 0..256);
    let one_side = summarize(&weights, Agreement::UNKNOWN).elbo.standard_error;
    assert!(difference.standard_error < 0.02 * one_side);
}

#[test]
fn objective_derivatives_agree_with_differences() {
    let density = Scalar(EightSchools { centred: true });
    for kind in [
        FamilyKind::MeanField,
        FamilyKind::FullRank,
        FamilyKind::LowRank { rank: 2 },
    ] {
        let family = kind.build(10);
        let lanes = 16;
        let noise = noise(family.noise_dim(), lanes);
        let mut objective = Objective::new(&density, family.clone(), noise, lanes);
        let n = family.parameters();
        let mut bump = vec![0.0; 2 * n];
        source().fill(NoisePurpose::Start, 9, 0, 2 * n, 1, &mut bump);
        let mut omega = family.diagonal(&[0.5; 10], &[-0.5; 10]);
        omega.iter_mut().zip(&bump).for_each(|(w, e)| *w += 0.1 * e);
        let direction = &bump[n..];
        let at = |t: f64| -> Vec<f64> {
            omega
                .iter()
                .zip(direction)
                .map(|(w, d)| w + t * d)
                .collect()
        };
        let (mut gradient, mut up, mut down) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        objective.value_gradient(&omega, &mut gradient);
        let h = 1e-5;
        let slope = (objective.value(&at(h)) - objective.value(&at(-h))) / (2.0 * h);
        let dot: f64 = gradient.iter().zip(direction).map(|(a, b)| a * b).sum();
        assert!(
            (slope - dot).abs() < 1e-6 * (1.0 + dot.abs()),
            "{kind}: {slope} {dot}"
        );
        objective.value_gradient(&at(h), &mut up);
        objective.value_gradient(&at(-h), &mut down);
        let mut product = vec![0.0; n];
        objective.linearize(&omega);
        objective.hvp(direction, &mut product);
        for i in 0..n {
            let difference = (up[i] - down[i]) / (2.0 * h);
            let scale = 1.0 + difference.abs();
            assert!((product[i] - difference).abs() < 1e-5 * scale, "{kind} {i}");
        }
    }
}

struct Half;

impl LogDensity for Half {
    type Workspace = ();
    fn dim(&self) -> usize {
        1
    }
    fn workspace(&self, _: usize) {}
    fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
        for (out, z) in out.iter_mut().zip(z.row(0)) {
            *out = if *z > 0.0 { f64::NAN } else { -0.5 * z * z };
        }
    }
    fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        self.value(ws, z, out);
        for (g, z) in grad.row_mut(0).iter_mut().zip(z.row(0)) {
            *g = if *z > 0.0 { 1e300 } else { -z };
        }
    }
}

#[test]
fn rejected_lanes_never_reach_a_gradient() {
    let family = FamilyKind::MeanField.build(1);
    let mut oracle = Oracle::new(&Half, family);
    let omega = [0.0, 0.0];
    let noise = [1.0, -1.0, 2.0, -3.0];
    let mut gradient = vec![0.0; 2];
    let kept = oracle.gradient(
        Estimator::Naive,
        &omega,
        Lanes::new(&noise, 1, 4),
        &mut gradient,
    );
    assert_eq!(kept, 2);
    // The two valid draws have the gradients 1 and 3. The gradient of λ is the mean of g ε, plus one.
    assert_eq!(gradient, [2.0, -4.0]);
    // Half of all draws are rejected, so replacing the rejected draws takes additional lanes.
    let stream = Stream {
        source: source(),
        purpose: NoisePurpose::Gradient,
        iteration: 0,
    };
    oracle
        .gradient_replacing(&[-1.0, 0.0], stream, 50, &mut gradient)
        .unwrap();
    assert!(gradient.iter().all(|g| g.abs() < 10.0));
    let dropped = oracle
        .gradient_replacing(&[5.0, 0.0], stream, 50, &mut gradient)
        .unwrap_err();
    assert!(dropped >= 50);
}

#[test]
fn draws_extend_and_survive_storage() {
    let family = FamilyKind::LowRank { rank: 2 }.build(4);
    let omega: Vec<f64> = (0..family.parameters()).map(|i| (i as f64).sin()).collect();
    let approximation = Approximation::of(family.clone(), omega).unwrap();
    let identity = Identity {
        algorithm: "saa".into(),
        settings: serde_json::json!({}),
        seed: 1,
        model_hash: "m".into(),
        data_hash: "d".into(),
        simd: "scalar".into(),
    };
    let bytes = approximation.encode(&identity);
    let (loaded, stored) = Approximation::decode(&bytes).unwrap();
    assert_eq!(stored, identity);
    let many = approximation.draws(500, source());
    let few = loaded.draws(37, source());
    for i in 0..37 {
        assert_eq!(few.draw(i), many.draw(i));
        assert_eq!(few.log_q[i].to_bits(), many.log_q[i].to_bits());
    }
    let later = loaded.draws_from(30, 5, source());
    assert_eq!(later.draw(2), many.draw(32));
    for (i, sd) in approximation.sd().into_iter().enumerate() {
        let row = many.lanes().row(i).to_vec();
        let mean = row.iter().sum::<f64>() / 500.0;
        assert!((mean - approximation.mean()[i]).abs() < 4.0 * sd / 500f64.sqrt());
    }
    assert!(Approximation::new(FamilyKind::FullRank, 4, vec![0.0; 3]).is_none());
    let error = Approximation::decode(&bytes[..bytes.len() - 3]).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}
