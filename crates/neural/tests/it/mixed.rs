//! Compares decoders of mixed records, of heavy tails and of given values with exact results.

use jensen_math::simd::Simd;
use jensen_neural::{
    Activation, Architecture, Autoencoder, FloatRecords, Likelihood, Observation, Part,
    PosteriorFamily, Tensor,
};

/// Returns an auto-encoder whose outputs do not depend on the latent values and whose encoder returns the prior. A single
/// draw then gives the exact log density. `outputs` contains the biases, by the names of the decoder's tensors.
fn constant(observation: Observation, outputs: &[(&str, &[f32])]) -> Autoencoder {
    let architecture = Architecture {
        observation,
        latent: 1,
        posterior: PosteriorFamily::default(),
        convolutions: None,
        encoder: Vec::new(),
        decoder: Vec::new(),
        activation: Activation::Identity,
    };
    let tensors = architecture.specs().into_iter().map(|spec| {
        let known = outputs
            .iter()
            .find(|(name, _)| spec.name == format!("decoder.{name}"));
        Tensor {
            data: known.map_or(vec![0.0; spec.len()], |(_, values)| values.to_vec()),
            spec,
        }
    });
    let tensors: Vec<Tensor> = tensors.collect();
    Autoencoder::new(architecture, tensors, Simd::detect()).unwrap()
}

fn log_densities(networks: &mut Autoencoder, values: Vec<f32>, width: usize) -> Vec<f64> {
    let records = FloatRecords { values, width };
    networks.importance_bound(&records, 1, 0).unwrap().records
}

/// Returns records of a normal value, a binary value, a category of three, a count and a value with heavy tails.
fn mixed() -> Observation {
    let part = |width, likelihood| Part { width, likelihood };
    Observation::of_parts(&[
        part(1, Likelihood::Gaussian { bounded: false }),
        part(1, Likelihood::Bernoulli),
        part(3, Likelihood::Categorical { categories: 3 }),
        part(1, Likelihood::Poisson),
        part(1, Likelihood::StudentT { degrees: None }),
    ])
    .unwrap()
}

const OUTPUTS: [(&str, &[f32]); 7] = [
    ("mean.bias", &[0.5]),
    ("log_variance.bias", &[-0.4]),
    ("logits.bias", &[0.8, 0.3, -0.6, 1.1]),
    ("log_mean.bias", &[0.7]),
    ("median.bias", &[-0.2]),
    ("log_scale.bias", &[0.3]),
    ("log_degrees.bias", &[0.9]),
];

/// Returns the log densities of the five values, computed from their definitions.
fn exact(x: f64, bit: f64, category: usize, count: u32, tail: f64) -> [f64; 5] {
    let normal = {
        let variance = (-0.4_f64).exp();
        let square = (x - 0.5).powi(2) / variance;
        -0.5 * (square + (2.0 * std::f64::consts::PI * variance).ln())
    };
    let p = 1.0 / (1.0 + (-0.8_f64).exp());
    let binary = bit * p.ln() + (1.0 - bit) * (1.0 - p).ln();
    let odds = [0.3_f64.exp(), (-0.6_f64).exp(), 1.1_f64.exp()];
    let word = (odds[category] / odds.iter().sum::<f64>()).ln();
    let factorial: f64 = (1..=count).map(|k| f64::from(k).ln()).sum();
    let poisson = f64::from(count) * 0.7 - 0.7_f64.exp() - factorial;
    [normal, binary, word, poisson, heavy(tail)]
}

/// Returns the log density of the value with heavy tails. The normaliser is computed by quadrature of the kernel.
fn heavy(x: f64) -> f64 {
    let (median, scale, degrees) = (-0.2, 0.3_f64.exp(), 0.9_f64.exp());
    let kernel = |t: f64| (1.0 + t * t / degrees).powf(-0.5 * (degrees + 1.0));
    let total = over_the_line(kernel);
    kernel((x - median) / scale).ln() - (scale * total).ln()
}

/// Integrates over the real line by the trapezoidal rule after the substitution `t = sinh(π/2 · sinh u)`.
fn over_the_line(f: impl Fn(f64) -> f64) -> f64 {
    const STEP: f64 = 1.0 / 64.0;
    let half = 0.5 * std::f64::consts::PI;
    (-256..=256)
        .map(|k| {
            let u = f64::from(k) * STEP;
            let slope = half * u.cosh() * (half * u.sinh()).cosh();
            f((half * u.sinh()).sinh()) * slope * STEP
        })
        .sum()
}

#[test]
fn the_density_of_a_mixed_record_is_the_product_of_its_columns() {
    let mut networks = constant(mixed(), &OUTPUTS);
    let words = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for (x, bit, category, count, tail) in [
        (0.1, 1.0, 0, 0, -0.2),
        (-2.0, 0.0, 2, 3, 6.0),
        (1.7, 1.0, 1, 11, -400.0),
    ] {
        let [a, b, c] = words[category];
        let record = [x, bit, a, b, c, count as f32, tail];
        let found = log_densities(&mut networks, record.to_vec(), 7)[0];
        let exact = exact(
            f64::from(x),
            f64::from(bit),
            category,
            count,
            f64::from(tail),
        );
        let sum: f64 = exact.iter().sum();
        assert!((found - sum).abs() < 2e-5 * sum.abs(), "{found} for {sum}");
        // Without some of the values, the density is that of the others.
        let missing = Observation {
            missing: true,
            ..mixed()
        };
        let gap = f32::NAN;
        for (record, own) in [
            ([gap, bit, a, b, c, gap, tail], [1, 2, 4].as_slice()),
            ([x, gap, gap, gap, gap, count as f32, gap], &[0, 3]),
        ] {
            let mut networks = constant(missing.clone(), &OUTPUTS);
            let found = log_densities(&mut networks, record.to_vec(), 7)[0];
            let sum: f64 = own.iter().map(|i| exact[*i]).sum();
            assert!((found - sum).abs() < 3e-5 * sum.abs(), "{found} for {sum}");
        }
    }
}

#[test]
fn probabilities_sum_to_one_over_words_bits_and_counts() {
    let part = |width, likelihood| Part { width, likelihood };
    let observation = Observation::of_parts(&[
        part(1, Likelihood::Bernoulli),
        part(3, Likelihood::Categorical { categories: 3 }),
        part(1, Likelihood::Poisson),
    ])
    .unwrap();
    let outputs: [(&str, &[f32]); 2] = [
        ("logits.bias", &[0.8, 0.3, -0.6, 1.1]),
        ("log_mean.bias", &[0.7]),
    ];
    let mut networks = constant(observation, &outputs);
    let mut records = Vec::new();
    for bit in [0.0, 1.0] {
        for word in 0..3 {
            for count in 0..30 {
                records.push(bit);
                records.extend((0..3).map(|k| f32::from(k == word)));
                records.push(count as f32);
            }
        }
    }
    let found = log_densities(&mut networks, records, 5);
    let total: f64 = found.iter().map(|log| log.exp()).sum();
    assert!((total - 1.0).abs() < 1e-5, "{total}");
}

#[test]
fn heavy_tails_integrate_to_one() {
    const STEP: f64 = 1.0 / 32.0;
    let half = 0.5 * std::f64::consts::PI;
    for degrees in [None, Some(1), Some(2), Some(30)] {
        let observation = Observation::new(1, Likelihood::StudentT { degrees });
        for log_degrees in [-0.5, 1.5, 5.0] {
            let outputs: [(&str, &[f32]); 3] = [
                ("median.bias", &[0.7]),
                ("log_scale.bias", &[-0.3]),
                ("log_degrees.bias", &[log_degrees]),
            ];
            let mut networks = constant(observation.clone(), &outputs);
            let knots: Vec<f64> = (-96..=96).map(|k| f64::from(k) * STEP).collect();
            let at = |u: f64| (half * u.sinh()).sinh();
            let x: Vec<f32> = knots.iter().map(|u| at(*u) as f32).collect();
            let logs = log_densities(&mut networks, x, 1);
            let total: f64 = knots
                .iter()
                .zip(&logs)
                .map(|(u, log)| log.exp() * half * u.cosh() * (half * u.sinh()).cosh() * STEP)
                .sum();
            // Single precision represents the log densities to seven digits. Beyond the knots there is little mass.
            assert!(
                (total - 1.0).abs() < 2e-3,
                "{degrees:?} {log_degrees}: {total}"
            );
        }
    }
}

#[test]
fn draws_follow_the_distributions_of_their_columns() {
    const DRAWS: usize = 40_000;
    let mut networks = constant(mixed(), &OUTPUTS);
    let drawn = networks.sample(DRAWS, 3).values;
    let share = |of: &dyn Fn(&[f32]) -> bool| {
        let count = drawn.chunks(7).filter(|record| of(record)).count();
        count as f64 / DRAWS as f64
    };
    let expected = exact(0.5, 1.0, 2, 2, 0.0).map(f64::exp);
    let near = |found: f64, expected: f64, what: &str| {
        assert!(
            (found - expected).abs() < 0.012,
            "{what}: {found} for {expected}"
        );
    };
    near(share(&|x| x[1] == 1.0), expected[1], "bits");
    near(share(&|x| x[4] == 1.0), expected[2], "words");
    near(share(&|x| x[5] == 2.0), expected[3], "counts");
    assert!(drawn.chunks(7).all(|x| x[2] + x[3] + x[4] == 1.0));
    near(share(&|x| x[0] < 0.5), 0.5, "normal");
    let deviation = (-0.2_f64).exp();
    near(
        share(&|x| f64::from(x[0]) < 0.5 + deviation),
        0.841_345,
        "normal",
    );
    // The probability within one scale of the median, by Simpson's rule.
    let (median, scale) = (-0.2, 0.3_f64.exp());
    let within: f64 = (0..=200)
        .map(|k| {
            let weight = match k {
                0 | 200 => 1.0,
                k if k % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let t = f64::from(k) / 100.0 - 1.0;
            weight * heavy(median + scale * t).exp() * scale / 300.0
        })
        .sum();
    near(
        share(&|x| (f64::from(x[6]) - median).abs() < scale),
        within,
        "tails",
    );
}

#[test]
fn given_values_shift_means_and_are_not_modelled() {
    let observation = Observation {
        given: 2,
        ..Observation::new(1, Likelihood::Gaussian { bounded: false })
    };
    // The decoder reads the latent value and then the two given values.
    let outputs: [(&str, &[f32]); 1] = [("mean.weight", &[0.0, 2.0, -1.0])];
    let mut networks = constant(observation, &outputs);
    let found = log_densities(&mut networks, vec![1.5, 0.5, 0.25, 1.5, -3.0, 2.0], 3);
    for (found, residual) in found.iter().zip([0.75_f64, 9.5]) {
        let exact = -0.5 * (residual * residual + (2.0 * std::f64::consts::PI).ln());
        assert!(
            (found - exact).abs() < 1e-5 * exact.abs(),
            "{found} for {exact}"
        );
    }
    assert!(networks.set_given(vec![1.0]).is_err());
    networks.set_given(vec![1.0, 3.0]).unwrap();
    assert_eq!(networks.decode(&[0.3, -1.0]), [-1.0, -1.0]);
    assert!(networks.sample(5, 1).mean.iter().all(|x| *x == -1.0));
    let records = FloatRecords {
        values: vec![0.0, 2.0, 0.5],
        width: 3,
    };
    assert_eq!(networks.reconstruct(&records), [3.5]);
}
