//! Compares decoders of counts with exact results.

use jensen_math::simd::Simd;
use jensen_math::special::lgamma;
use jensen_neural::{
    Activation, Architecture, Autoencoder, FloatRecords, Likelihood, Observation, Optimiser,
    PosteriorFamily, Records, Tensor, TrainSettings, Trainer,
};
use jensen_run::{Budget, Control, Identity, run};

const WIDTH: usize = 4;

/// The slopes of the columns. Column i has the log mean BIAS[i] + SLOPE[i] · z.
const SLOPE: [f64; WIDTH] = [0.8, -0.5, 0.3, 1.1];
const BIAS: [f64; WIDTH] = [0.4, 1.5, -0.7, 0.1];
const LOG_SIZE: f64 = 0.6;
const EXCESS: f64 = -1.2;

fn observation(likelihood: Likelihood, library_size: bool) -> Observation {
    Observation {
        library_size: library_size.then_some(12.0),
        ..Observation::new(WIDTH, likelihood)
    }
}

fn factor(observation: &Observation) -> Autoencoder {
    let architecture = Architecture {
        observation: observation.clone(),
        latent: 1,
        posterior: PosteriorFamily::default(),
        convolutions: None,
        encoder: Vec::new(),
        decoder: Vec::new(),
        activation: Activation::Identity,
    };
    let narrow = |values: [f64; WIDTH]| values.map(|x| x as f32).to_vec();
    let tensors = architecture.specs().into_iter().map(|spec| Tensor {
        data: match spec.name.as_str() {
            "decoder.log_mean.weight" => narrow(SLOPE),
            "decoder.log_mean.bias" => narrow(BIAS),
            "decoder.log_size.bias" => vec![LOG_SIZE as f32; WIDTH],
            "decoder.excess_logits.bias" => vec![EXCESS as f32; WIDTH],
            _ => vec![0.0; spec.len()],
        },
        spec,
    });
    let tensors: Vec<Tensor> = tensors.collect();
    Autoencoder::new(architecture, tensors, Simd::detect()).unwrap()
}

fn mass(likelihood: Likelihood, mean: f64, x: f64) -> f64 {
    let (size, excess) = (LOG_SIZE.exp(), 1.0 / (1.0 + (-EXCESS).exp()));
    let counted = match likelihood {
        Likelihood::Poisson => (x * mean.ln() - mean - lgamma(x + 1.0)).exp(),
        _ => {
            let share = mean / (size + mean);
            let ways = (0..x as u32).map(|k| (size + f64::from(k)) / (1.0 + f64::from(k)));
            ways.product::<f64>() * (1.0 - share).powf(size) * share.powf(x)
        }
    };
    match likelihood {
        Likelihood::ZeroInflatedNegativeBinomial => {
            (1.0 - excess) * counted + excess * f64::from(x == 0.0)
        }
        _ => counted,
    }
}

/// Computes log p(x) of the values that are present, by Simpson's rule over the latent value.
fn exact(observation: &Observation, slope: &[f64], bias: &[f64], record: &[f32]) -> f64 {
    const HALF: i32 = 600;
    const STEP: f64 = 8.0 / HALF as f64;
    let present: Vec<usize> = (0..WIDTH).filter(|i| !record[*i].is_nan()).collect();
    let total: f64 = present.iter().map(|i| f64::from(record[*i])).sum();
    let total = total.max(Observation::EMPTY);
    let density = |z: f64| {
        let means: Vec<f64> = present
            .iter()
            .map(|i| (bias[*i] + slope[*i] * z).exp())
            .collect();
        let scale = match observation.library_size {
            Some(_) => total / means.iter().sum::<f64>(),
            None => 1.0,
        };
        let masses = means.iter().zip(&present);
        let masses = masses.map(|(m, i)| {
            let x = f64::from(record[*i]);
            mass(observation.likelihood, scale * m, x)
        });
        (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * masses.product::<f64>()
    };
    let weight = |k: i32| match k {
        _ if k.abs() == HALF => 1.0,
        _ if k % 2 == 0 => 2.0,
        _ => 4.0,
    };
    let sum: f64 = (-HALF..=HALF)
        .map(|k| weight(k) * density(f64::from(k) * STEP))
        .sum();
    (sum * STEP / 3.0).ln()
}

#[test]
fn missing_values_leave_the_density_of_the_others() {
    let gap = f32::NAN;
    let records = FloatRecords {
        values: [
            [gap, 4.0, gap, 5.0],
            [0.0, 9.0, gap, 0.0],
            [2.0, 1.0, 0.0, 3.0],
        ]
        .concat(),
        width: WIDTH,
    };
    for likelihood in Likelihood::COUNTS {
        for library_size in [false, true] {
            let observation = Observation {
                missing: true,
                ..observation(likelihood, library_size)
            };
            let mut networks = factor(&observation);
            let estimate = networks.importance_bound(&records, 60_000, 1).unwrap();
            for (found, record) in estimate.records.iter().zip(records.values.chunks(WIDTH)) {
                let exact = exact(&observation, &SLOPE, &BIAS, record);
                assert!(
                    (found - exact).abs() < 0.06,
                    "{likelihood:?} {library_size} {record:?}: {found} for {exact}"
                );
            }
            let rebuilt = networks.reconstruct(&records);
            assert!(rebuilt.iter().all(|x| x.is_finite()));
            if library_size && likelihood == Likelihood::Poisson {
                // The means of the values that are present sum to their total.
                assert!((rebuilt[1] + rebuilt[3] - 9.0).abs() < 1e-4, "{rebuilt:?}");
            }
        }
    }
}

fn records() -> FloatRecords<Vec<f32>> {
    FloatRecords {
        values: [
            [0.0, 0.0, 0.0, 0.0],
            [3.0, 4.0, 0.0, 5.0],
            [0.0, 9.0, 1.0, 0.0],
            [5.0, 2.0, 1.0, 9.0],
        ]
        .concat(),
        width: WIDTH,
    }
}

#[test]
fn marginal_likelihoods_are_those_of_quadrature() {
    let records = records();
    for likelihood in Likelihood::COUNTS {
        for library_size in [false, true] {
            let observation = observation(likelihood, library_size);
            let mut networks = factor(&observation);
            let estimate = networks.importance_bound(&records, 60_000, 1).unwrap();
            for (i, found) in estimate.records.iter().enumerate() {
                let record = &records.values[i * WIDTH..][..WIDTH];
                let exact = exact(&observation, &SLOPE, &BIAS, record);
                // The encoder returns the prior, so the only errors are those of the draws.
                assert!(
                    (found - exact).abs() < 0.06,
                    "{likelihood:?} {library_size} record {i}: {found} for {exact}"
                );
            }
        }
    }
}

#[test]
fn draws_have_the_moments_of_their_distribution() {
    const DRAWS: usize = 40_000;
    for likelihood in Likelihood::COUNTS {
        for library_size in [false, true] {
            let mut networks = factor(&observation(likelihood, library_size));
            let drawn = networks.sample(DRAWS, 5);
            for column in 0..WIDTH {
                let of = |values: &[f32]| -> Vec<f64> {
                    let values = values.iter().skip(column).step_by(WIDTH);
                    values.map(|x| f64::from(*x)).collect()
                };
                let (means, values) = (of(&drawn.mean), of(&drawn.values));
                let gaps: Vec<f64> = means.iter().zip(&values).map(|(m, x)| x - m).collect();
                let gap = gaps.iter().sum::<f64>() / DRAWS as f64;
                let error = (gaps.iter().map(|g| g * g).sum::<f64>()).sqrt() / DRAWS as f64;
                assert!(
                    gap.abs() < 4.5 * error,
                    "{likelihood:?} {column}: {gap} ± {error}"
                );
                // This compares the number of zeros with their exact mass at the mean of each draw.
                let counted = match likelihood {
                    Likelihood::ZeroInflatedNegativeBinomial => 1.0 / (1.0 + EXCESS.exp()),
                    _ => 1.0,
                };
                let expected = means.iter().map(|m| mass(likelihood, m / counted, 0.0));
                let expected = expected.sum::<f64>() / DRAWS as f64;
                let zeros = values.iter().filter(|x| **x == 0.0).count() as f64 / DRAWS as f64;
                assert!(
                    (zeros - expected).abs() < 0.012,
                    "{likelihood:?} {column}: {zeros} for {expected}"
                );
            }
        }
    }
}

#[test]
fn a_trained_factor_reaches_the_density_of_its_data() {
    let observation = observation(Likelihood::Poisson, false);
    let mut source = factor(&observation);
    let data = FloatRecords {
        values: source.sample(2000, 3).values,
        width: WIDTH,
    };
    let architecture = source.architecture().clone();
    let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
    let settings = TrainSettings {
        optimiser: Optimiser::adam(0.01),
        ..TrainSettings::default()
    };
    let simd = Simd::detect();
    let mut trainer = Trainer::new(&encoder, &decoder, settings, &data, None, simd).unwrap();
    let identity = Identity {
        algorithm: "test".into(),
        settings: serde_json::json!({}),
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: simd.name().into(),
    };
    let mut silent = jensen_run::Silent;
    let mut control = Control::new(Budget::iterations(40), &|| 0.0, &mut silent);
    let trained = run(&mut trainer, &identity, &mut control)
        .unwrap()
        .output
        .unwrap();
    let wide = |name: &str| -> Vec<f64> {
        let tensor = trained
            .tensors
            .iter()
            .find(|t| t.spec.name == name)
            .unwrap();
        tensor.data.iter().map(|x| f64::from(*x)).collect()
    };
    let (slope, bias) = (
        wide("decoder.log_mean.weight"),
        wide("decoder.log_mean.bias"),
    );
    let mean = |slope: &[f64], bias: &[f64]| {
        let rows = data.values.chunks(WIDTH);
        rows.map(|row| exact(&observation, slope, bias, row))
            .sum::<f64>()
            / data.len() as f64
    };
    let (fitted, truth) = (mean(&slope, &bias), mean(&SLOPE, &BIAS));
    let mut networks = Autoencoder::new(architecture, trained.tensors.clone(), simd).unwrap();
    let bound = networks.bound(&data, 20, 1).unwrap().bound;
    // Eight parameters that are fitted to 2000 records gain about 8/(2 · 2000) nats per record over the truth. The
    // posterior is somewhat skewed, and its mean is only roughly linear in the logarithms of the counts.
    assert!((fitted - truth).abs() < 0.03, "{fitted} for {truth}");
    assert!(
        bound < fitted && bound > fitted - 0.15,
        "{bound} below {fitted}"
    );
}
