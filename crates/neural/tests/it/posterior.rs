//! Tests of posteriors over the weights of the decoder: stored values, and expectations compared with quadrature.

use jensen_math::rng::{Purpose, fill_uniforms};
use jensen_math::simd::Simd;
use jensen_neural::{
    Activation, Architecture, Autoencoder, FloatRecords, Likelihood, Observation, Optimiser,
    PosteriorFamily, Records, Tensor, TrainSettings, Trained, Trainer,
};
use jensen_run::{Budget, Control, Identity, Record, run};

/// Returns rows of eight values between 0 and 1 that no network can predict, so training overfits them.
fn noise(rows: usize, name: &'static str) -> FloatRecords<Vec<f32>> {
    let mut u = vec![0.0; rows * 8];
    let (simd, purpose) = (Simd::detect(), Purpose::new(name));
    fill_uniforms(simd, 4, purpose, 0, 0, 1, rows * 8, &mut u);
    FloatRecords {
        values: u.iter().map(|&x| f32::from(u8::from(x < 0.5))).collect(),
        width: 8,
    }
}

fn trained(iterations: u64, patience: Option<u64>) -> (Trained, Vec<Record>) {
    let (data, other) = (noise(20, "noise"), noise(200, "other noise"));
    let architecture = Architecture::paper(8, 2, 12, Likelihood::Bernoulli);
    let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
    let settings = TrainSettings {
        full_bayes: true,
        optimiser: Optimiser::adam(0.03),
        batch: 10,
        patience,
        ..TrainSettings::default()
    };
    let simd = Simd::detect();
    let other: Option<&dyn Records> = Some(&other);
    let mut trainer = Trainer::new(&encoder, &decoder, settings, &data, other, simd).unwrap();
    let identity = Identity {
        algorithm: "test".into(),
        settings: serde_json::json!({}),
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: simd.name().into(),
    };
    let mut records: Vec<Record> = Vec::new();
    let mut control = Control::new(Budget::iterations(iterations), &|| 0.0, &mut records);
    let outcome = run(&mut trainer, &identity, &mut control).unwrap();
    (outcome.output.unwrap(), records)
}

#[test]
fn means_and_deviations_are_kept_of_one_iteration() {
    let (best, records) = trained(60, Some(1000));
    let bounds: Vec<f64> = records
        .iter()
        .map(|r| r.fields["validation_bound"].as_f64().unwrap())
        .collect();
    let highest = bounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let at = bounds.iter().position(|&b| b == highest).unwrap() + 1;
    assert!((2..50).contains(&at), "the best iteration is {at}");
    assert_eq!(best.validation_bound, Some(highest));
    // Without patience the fit keeps the last weights, so a shorter run shows the weights of that iteration.
    let (then, _) = trained(at as u64, None);
    assert_eq!(best.tensors, then.tensors);
    assert_eq!(best.log_sds, then.log_sds);
    let (last, _) = trained(60, None);
    assert_ne!(last.tensors, best.tensors);
    assert_ne!(last.log_sds, best.log_sds);
    assert_eq!(last.validation_bound, bounds.last().copied());
}

/// The mean and the standard deviation of the decoder's weight. The constants below are those of its bias and of the
/// codes of every record.
const WEIGHT: (f64, f64) = (0.5, 1.5);
const BIAS: (f64, f64) = (1.5, 1.2);
const CODE: (f64, f64) = (0.4, 1.1);

/// Returns a decoder of Bernoulli values with logits w z + b, where every value has its own weight and bias.
fn networks(width: usize) -> Autoencoder {
    let architecture = Architecture {
        observation: Observation::new(width, Likelihood::Bernoulli),
        latent: 1,
        posterior: PosteriorFamily::default(),
        convolutions: None,
        encoder: Vec::new(),
        decoder: Vec::new(),
        activation: Activation::Identity,
    };
    let filled = |value: &dyn Fn(&str) -> f64| -> Vec<Tensor> {
        let specs = architecture.specs().into_iter();
        specs
            .map(|spec| Tensor {
                data: vec![value(&spec.name) as f32; spec.len()],
                spec,
            })
            .collect()
    };
    let means = filled(&|name| match name {
        "encoder.mean.bias" => CODE.0,
        "encoder.log_variance.bias" => 2.0 * CODE.1.ln(),
        "decoder.logits.weight" => WEIGHT.0,
        "decoder.logits.bias" => BIAS.0,
        _ => 0.0,
    });
    let log_sds = filled(&|name| match name {
        "decoder.logits.weight" => WEIGHT.1.ln(),
        _ => BIAS.1.ln(),
    });
    let log_sds = log_sds[architecture.encoder_tensors()..].to_vec();
    let simd = Simd::detect();
    let networks = Autoencoder::new(architecture, means, simd).unwrap();
    networks.with_posterior(log_sds).unwrap()
}

/// Computes E f(w z + b) over normal w, b and z by trapezoidal sums, which are exact up to rounding for such
/// integrands.
fn expected(z: (f64, f64), f: impl Fn(f64) -> f64) -> f64 {
    let nodes: Vec<f64> = (-36..=36).map(|k| f64::from(k) / 5.0).collect();
    let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt() / 5.0;
    let mut total = 0.0;
    for &a in &nodes {
        for &b in &nodes {
            for &c in &nodes {
                let w = WEIGHT.0 + WEIGHT.1 * a;
                let logit = w * (z.0 + z.1 * b) + BIAS.0 + BIAS.1 * c;
                total += density(a) * density(b) * density(c) * f(logit);
            }
        }
    }
    total
}

fn logistic(x: f64) -> f64 {
    (1.0 + (-x).exp()).recip()
}

fn mean(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let squares: f64 = x.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

#[track_caller]
fn agree(found: &[f64], exact: f64, at_means: f64) {
    let (mean, error) = mean(found);
    assert!(
        (mean - exact).abs() < 4.0 * error,
        "{mean} ± {error} for {exact}"
    );
    assert!(
        (mean - at_means).abs() > 10.0 * error,
        "{mean} ± {error} does not tell {exact} from {at_means}"
    );
}

#[test]
fn the_bound_is_an_expectation_over_the_weights() {
    let mut networks = networks(1);
    let ones = FloatRecords {
        values: vec![1.0; 20],
        width: 1,
    };
    let kl = 0.5 * (CODE.0.powi(2) + CODE.1.powi(2) - 1.0) - CODE.1.ln();
    let exact = expected(CODE, |logit| logistic(logit).ln()) - kl;
    let at_mean = |z: f64| logistic(WEIGHT.0 * z + BIAS.0).ln();
    let at_means = (-36..=36)
        .map(|k| f64::from(k) / 5.0)
        .map(|e| (-0.5 * e * e).exp() * at_mean(CODE.0 + CODE.1 * e))
        .sum::<f64>()
        / (2.0 * std::f64::consts::PI).sqrt()
        / 5.0
        - kl;
    let estimates: Vec<_> = (0..300)
        .map(|seed| networks.bound(&ones, 1, seed).unwrap())
        .collect();
    let bounds: Vec<f64> = estimates.iter().map(|e| e.bound).collect();
    agree(&bounds, exact, at_means);
    let spread = mean(&bounds).1 * (bounds.len() as f64).sqrt();
    let said: Vec<f64> = estimates.iter().map(|e| e.standard_error).collect();
    let said = mean(&said).0;
    assert!((said / spread - 1.0).abs() < 0.25, "{said} for {spread}");

    // This is Eq. 24 in closed form.
    let of = |(m, s): (f64, f64)| 0.5 * (m * m + s * s - 1.0) - s.ln();
    let weights = of(WEIGHT) + of(BIAS);
    assert!((networks.weight_divergence() - weights).abs() < 1e-6);
}

#[test]
fn likelihoods_draws_and_means_are_those_of_the_posterior_predictive_density() {
    let mut one = networks(1);
    let ones = FloatRecords {
        values: vec![1.0; 3],
        width: 1,
    };
    let prior = (0.0, 1.0);
    let exact = expected(prior, logistic);
    let at_means = {
        let nodes = (-36..=36).map(|k| f64::from(k) / 5.0);
        let terms = nodes.map(|z| (-0.5 * z * z).exp() * logistic(WEIGHT.0 * z + BIAS.0));
        terms.sum::<f64>() / (2.0 * std::f64::consts::PI).sqrt() / 5.0
    };
    // Importance-weighted densities are unbiased for any number of draws, including a number that is not a multiple of
    // the number of weight draws.
    let densities: Vec<f64> = (0..1500)
        .map(|seed| one.importance_bound(&ones, 50, seed).unwrap().records[0].exp())
        .collect();
    agree(&densities, exact, at_means);
    let drawn = one.sample(40_000, 3).values;
    let drawn: Vec<f64> = drawn.iter().map(|&x| f64::from(x)).collect();
    agree(&drawn, exact, at_means);
    assert_eq!(
        one.sample(7, 3).values,
        one.sample(40_000, 3).values[..7],
        "draws are beginnings of each other"
    );

    let at_one = expected((1.0, 0.0), logistic);
    let means = networks(400).decode(&[1.0]);
    let means: Vec<f64> = means.iter().map(|&x| f64::from(x)).collect();
    agree(&means, at_one, logistic(WEIGHT.0 + BIAS.0));
}

#[test]
fn deviations_of_other_networks_are_refused() {
    let sds = |networks: &Autoencoder| networks.tensors()[4..].to_vec();
    let (one, two) = (networks(1), networks(2));
    let of_two = sds(&two);
    let error = one.with_posterior(of_two).err().expect("refused");
    assert!(
        error.to_string().contains("another architecture"),
        "{error}"
    );
    let fewer = sds(&two)[1..].to_vec();
    assert!(two.with_posterior(fewer).is_err());
}
