//! Tests that compare ADVI with a plain transcription of its definition, which processes one draw and one coordinate at
//! a time.

use jensen_blackbox::{Advi, AdviSettings, FamilyKind, MethodState, NoisePurpose, NoiseSource};
use jensen_math::simd::Simd;
use jensen_run::Algorithm;
use jensen_testkit::CorrelatedGaussian;

/// The means and standard deviations of independent normals, for which the gradient takes a single line.
const TARGET: [(f64, f64); 2] = [(3.0, 0.5), (-1.0, 2.0)];

fn density() -> CorrelatedGaussian {
    let precision = |i: usize| TARGET[i].1.powi(-2);
    CorrelatedGaussian::new(
        vec![TARGET[0].0, TARGET[1].0],
        vec![precision(0), 0.0, 0.0, precision(1)],
    )
}

fn source() -> NoiseSource {
    NoiseSource::new(2, Simd::detect())
}

/// Takes `steps` steps of size η from zero. The draws are those of the given purpose, in the iterations from `first`
/// on.
fn transcription(eta: f64, purpose: NoisePurpose, first: u64, steps: u64) -> Vec<f64> {
    let mut omega = [0.0f64; 4];
    let mut s = [0.0f64; 4];
    for k in 1..=steps {
        let mut e = [0.0; 2];
        source().fill(purpose, first + k - 1, 0, 2, 1, &mut e);
        let mut g = [0.0; 4];
        for i in 0..2 {
            let sd = omega[2 + i].exp();
            let z = omega[i] + sd * e[i];
            g[i] = -(z - TARGET[i].0) / TARGET[i].1.powi(2);
            g[2 + i] = g[i] * e[i] * sd + 1.0;
        }
        for j in 0..4 {
            s[j] = if k == 1 {
                g[j] * g[j]
            } else {
                0.9 * s[j] + 0.1 * g[j] * g[j]
            };
            omega[j] += eta / (k as f64).sqrt() * g[j] / (1.0 + s[j].sqrt());
        }
    }
    omega.to_vec()
}

#[test]
fn steps_follow_the_definition() {
    let density = density();
    let settings = AdviSettings {
        eta: Some(0.3),
        ..AdviSettings::default()
    };
    let family = FamilyKind::MeanField.build(2);
    let mut advi = Advi::new(&density, family, source(), settings, &[0.0, 0.0]);
    let mut state = advi.init().unwrap();
    for k in 1..=150 {
        let step = advi.step(&mut state, k);
        assert_eq!(
            step.record.elbo.is_some(),
            k == 100,
            "an estimate every 100"
        );
    }
    let expected = transcription(0.3, NoisePurpose::Gradient, 0, 150);
    for (a, b) in state.omega().iter().zip(&expected) {
        assert!((a - b).abs() < 1e-10, "{a} {b}");
    }
}

#[test]
fn the_step_size_search_follows_the_definition() {
    let density = density();
    let family = FamilyKind::MeanField.build(2);
    let settings = AdviSettings::default();
    let mut advi = Advi::new(&density, family, source(), settings, &[0.0, 0.0]);
    let mut state = advi.init().unwrap();
    let etas = [100.0, 10.0, 1.0, 0.1, 0.01];
    let mut bounds = Vec::new();
    let mut chosen = None;
    for k in 1..=251 {
        let before = state.omega().to_vec();
        let step = advi.step(&mut state, k);
        let eta = step.record.fields["eta"].as_f64().unwrap();
        if step.record.fields["phase"] == "ascend" {
            chosen = Some(eta);
            break;
        }
        let index = (k - 1) / 50;
        assert_eq!(eta, etas[index as usize]);
        if (k - 1) % 50 == 49 {
            // Each ascent of the search for η starts at the initial parameters and uses its own draws.
            assert_eq!(state.omega(), [0.0; 4]);
            let expected = transcription(eta, NoisePurpose::Adapt, 50 * index, 49);
            for (a, b) in before.iter().zip(&expected) {
                assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} {b}");
            }
            bounds.push(step.record.elbo.unwrap());
        }
    }
    // The chosen η is the first one for which the next candidate ended lower.
    let fell = bounds.windows(2).position(|w| w[1] < w[0]).unwrap();
    assert_eq!(bounds.len(), fell + 2);
    assert_eq!(chosen, Some(etas[fell]));
}

#[test]
fn a_hopeless_start_fails_as_in_stan() {
    // All draws are beyond the square root of the largest double, so their squares overflow.
    let density = CorrelatedGaussian::new(vec![0.0], vec![1.0]);
    let family = FamilyKind::MeanField.build(1);
    let settings = AdviSettings::default();
    let mut advi = Advi::new(&density, family, source(), settings, &[1e200]);
    assert_eq!(advi.init().unwrap_err().name(), "diverged");
}
