//! Tests of the estimators of the bound: their gradients, the agreement of A and B, and closed forms.

use jensen_graph::{SingleProgram, evaluate};
use jensen_math::rng::{Purpose, fill_normals};
use jensen_math::simd::Simd;
use jensen_neural::{
    Activation, Architecture, BoundGraph, Convolutions, Estimator, Grid, Likelihood, Observation,
    Part, PosteriorFamily, initial_weights,
};

const WIDTH: usize = 6;
const LATENT: usize = 2;

fn architecture(observation: Observation, activation: Activation) -> Architecture {
    Architecture {
        observation,
        latent: LATENT,
        posterior: PosteriorFamily::default(),
        convolutions: None,
        encoder: vec![5, 4],
        decoder: vec![3],
        activation,
    }
}

fn normals(name: &'static str, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; n];
    fill_normals(Simd::detect(), 3, Purpose::new(name), 0, 0, 1, n, &mut out);
    out
}

fn inputs(bound: &BoundGraph, observation: &Observation) -> Vec<Vec<f64>> {
    let mut inputs: Vec<Vec<f64>> = initial_weights(Simd::detect(), &bound.specs, 5, Some(0.6))
        .into_iter()
        .map(|tensor| tensor.data.into_iter().map(f64::from).collect())
        .collect();
    inputs.push(vec![0.7]);
    inputs.push(vec![1.3]);
    inputs.push(record_of(observation));
    inputs.push(normals("noise", bound.samples * LATENT));
    inputs
}

fn record_of(observation: &Observation) -> Vec<f64> {
    let likelihood = observation.likelihood;
    let mut record: Vec<f64> = (0..WIDTH).map(|i| 0.1 + 0.13 * i as f64).collect();
    if let Likelihood::Categorical { categories } = likelihood {
        for group in record.chunks_mut(categories) {
            let total: f64 = group.iter().sum();
            group.iter_mut().for_each(|x| *x /= total);
        }
    }
    if likelihood.is_of_counts() {
        record = vec![0.0, 3.0, 1.0, 0.0, 7.0, 2.0];
    }
    if !observation.more.is_empty() {
        record = vec![0.4, 3.0, 1.0, 0.2, 0.5, 0.3];
    }
    if observation.missing {
        // These values are the first group of categories, or three separate values.
        record[..3].fill(f64::NAN);
    }
    record.extend([0.6, -1.1].iter().take(observation.given));
    record
}

/// Returns records that consist of a normal value, a count, a binary value and a category, or of two values with
/// Student's t distribution, a count and a category.
fn mixed() -> [Observation; 2] {
    let part = |width, likelihood| Part { width, likelihood };
    let category = part(3, Likelihood::Categorical { categories: 3 });
    let first = [
        part(1, Likelihood::Gaussian { bounded: false }),
        part(1, Likelihood::NegativeBinomial),
        part(1, Likelihood::Bernoulli),
        category,
    ];
    let second = [
        part(1, Likelihood::StudentT { degrees: None }),
        part(1, Likelihood::Poisson),
        part(1, Likelihood::StudentT { degrees: Some(3) }),
        category,
    ];
    [&first, &second].map(|parts| Observation::of_parts(parts).expect("at least one part"))
}

/// Returns networks whose posteriors are not normal.
fn families() -> Vec<(Architecture, Estimator, usize)> {
    let mut cases = Vec::new();
    for posterior in [
        PosteriorFamily::Laplace,
        PosteriorFamily::Logistic,
        PosteriorFamily::StudentT { degrees: 6 },
    ] {
        let observation = Observation::new(WIDTH, Likelihood::Gaussian { bounded: false });
        for (estimator, samples) in [(Estimator::Joint, 2), (Estimator::Analytic, 1)] {
            let architecture = Architecture {
                posterior,
                ..architecture(observation.clone(), Activation::Tanh)
            };
            cases.push((architecture, estimator, samples));
        }
    }
    cases
}

fn all_cases() -> Vec<(Architecture, Estimator, usize)> {
    let likelihoods = [
        Likelihood::Bernoulli,
        Likelihood::Gaussian { bounded: true },
        Likelihood::Gaussian { bounded: false },
        Likelihood::Categorical { categories: 3 },
        Likelihood::StudentT { degrees: None },
        Likelihood::StudentT { degrees: Some(4) },
    ];
    let mut cases = Vec::new();
    for likelihood in likelihoods {
        let observation = Observation::new(WIDTH, likelihood);
        for (_, activation) in Activation::ALL {
            for estimator in [Estimator::Joint, Estimator::Analytic] {
                cases.push((architecture(observation.clone(), activation), estimator, 1));
            }
        }
        cases.push((
            architecture(observation, Activation::Tanh),
            Estimator::Analytic,
            3,
        ));
    }
    cases.extend(families());
    for likelihood in Likelihood::COUNTS {
        for (library_size, missing) in [(None, false), (Some(9.0), false), (Some(9.0), true)] {
            let observation = Observation {
                library_size,
                missing,
                ..Observation::new(WIDTH, likelihood)
            };
            cases.push((
                architecture(observation, Activation::Tanh),
                Estimator::Analytic,
                1,
            ));
        }
    }
    for likelihood in likelihoods {
        let observation = Observation {
            missing: true,
            ..Observation::new(WIDTH, likelihood)
        };
        cases.push((
            architecture(observation, Activation::Tanh),
            Estimator::Analytic,
            1,
        ));
    }
    let counts = Observation {
        library_size: Some(9.0),
        ..Observation::new(WIDTH, Likelihood::Poisson)
    };
    for observation in mixed().into_iter().chain([counts]) {
        for (missing, given) in [(false, 0), (true, 0), (false, 2), (true, 2)] {
            let observation = Observation {
                missing,
                given,
                ..observation.clone()
            };
            cases.push((
                architecture(observation, Activation::Tanh),
                Estimator::Analytic,
                1,
            ));
        }
    }
    // Images of 3 × 2 pixels, or of 1 × 2 pixels with three colours.
    for (image, window, filters) in [
        ([3, 2, 1], 4, vec![2]),
        ([3, 2, 1], 3, vec![2, 3]),
        ([1, 2, 3], 5, vec![3]),
        ([3, 2, 1], 2, vec![4]),
    ] {
        let [height, width, channels] = image;
        let image = Grid {
            height,
            width,
            channels,
        };
        for missing in [false, true] {
            let observation = Observation {
                missing,
                ..Observation::new(WIDTH, Likelihood::Gaussian { bounded: false })
            };
            let convolutions = Some(Convolutions {
                image,
                filters: filters.clone(),
                window,
            });
            cases.push((
                Architecture {
                    convolutions,
                    ..architecture(observation, Activation::Tanh)
                },
                Estimator::Analytic,
                2,
            ));
        }
    }
    cases
}

#[test]
fn weights_of_latent_values_have_the_gradient_of_their_objective() {
    let architecture = architecture(
        Observation::new(WIDTH, Likelihood::Gaussian { bounded: false }),
        Activation::Tanh,
    );
    let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
    let bound = BoundGraph::with_weights(&encoder, &decoder, 2);
    let mut inputs = inputs(&bound, &architecture.observation);
    let tensors = bound.specs.len();
    let value = |inputs: &[Vec<f64>]| {
        let views: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
        evaluate(&bound.graph, &views, None)
    };
    // The divergence of a latent value is the difference of two objectives.
    let weighted = |inputs: &mut [Vec<f64>], weights: [f64; LATENT]| {
        inputs[tensors + 1] = weights.to_vec();
        value(inputs)
    };
    let slopes = |out: Vec<Vec<f64>>| out[2..].concat();
    let none = slopes(weighted(&mut inputs, [0.0, 0.0]));
    let first = slopes(weighted(&mut inputs, [1.0, 0.0]));
    let second = slopes(weighted(&mut inputs, [0.0, 1.0]));
    let both = weighted(&mut inputs, [1.0, 1.0]);
    let scalar = BoundGraph::new(&encoder, &decoder, Estimator::Analytic, 2, true);
    inputs[tensors + 1] = vec![1.0];
    let views: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
    let plain = evaluate(&scalar.graph, &views, None);
    assert!((both[1][0] - plain[1][0]).abs() < 1e-12);
    let terms = none.iter().zip(&first).zip(&second);
    for (((none, first), second), plain) in terms.zip(plain[2..].concat()) {
        let sum = first + second - none;
        assert!(
            (sum - plain).abs() < 1e-9 * (1.0 + plain.abs()),
            "{sum} for {plain}"
        );
    }
    // Each latent value has its own output of the heads `mean` and `log_variance`, whose biases have one element each.
    let at = |name: &str| {
        bound
            .specs
            .iter()
            .position(|spec| spec.name == name)
            .unwrap()
    };
    for (which, weights) in [(0, [1.0, 0.0]), (1, [0.0, 1.0])] {
        for name in ["encoder.mean.bias", "encoder.log_variance.bias"] {
            let tensor = at(name);
            let objective = |inputs: &mut [Vec<f64>], step: f64| {
                inputs[tensor][1 - which] += step;
                let with = weighted(inputs, weights);
                let likelihood = with[0][0];
                inputs[tensor][1 - which] -= step;
                (with, likelihood)
            };
            // The other latent value changes the objective only through the likelihood.
            let (up, down) = (objective(&mut inputs, 1e-5), objective(&mut inputs, -1e-5));
            let difference = 0.7 * (up.1 - down.1) / 2e-5;
            let found = weighted(&mut inputs, weights)[2 + tensor][1 - which];
            assert!(
                (found - difference).abs() < 1e-6 * (1.0 + difference.abs()),
                "{name}"
            );
        }
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    for (architecture, estimator, samples) in all_cases() {
        architecture.check().expect("a valid architecture");
        let observation = &architecture.observation;
        let (likelihood, activation) = (observation.parts(), architecture.activation);
        let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
        let bound = BoundGraph::new(&encoder, &decoder, estimator, samples, true);
        let mut inputs = inputs(&bound, observation);
        let value = |inputs: &[Vec<f64>]| {
            let views: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
            evaluate(&bound.graph, &views, None)
        };
        let out = value(&inputs);
        let objective = |out: &[Vec<f64>]| 0.7 * out[0][0] - 1.3 * out[1][0];
        for tensor in 0..bound.specs.len() {
            for i in 0..inputs[tensor].len() {
                const STEP: f64 = 1e-5;
                let middle = inputs[tensor][i];
                inputs[tensor][i] = middle + STEP;
                let up = objective(&value(&inputs));
                inputs[tensor][i] = middle - STEP;
                let down = objective(&value(&inputs));
                inputs[tensor][i] = middle;
                let difference = (up - down) / (2.0 * STEP);
                let found = out[2 + tensor][i];
                assert!(
                    (found - difference).abs() <= 1e-6 * (1.0 + difference.abs()),
                    "{likelihood:?} {activation:?} {estimator:?}: {} element {i}: {found} for {difference}",
                    bound.specs[tensor].name
                );
            }
        }
        // This evaluates the same graph in single precision.
        let program = SingleProgram::new(&bound.graph, Simd::detect()).expect("a supported graph");
        let mut workspace = program.workspace(1);
        let narrow: Vec<Vec<f32>> = inputs
            .iter()
            .map(|x| x.iter().map(|&x| x as f32).collect())
            .collect();
        let views: Vec<&[f32]> = narrow.iter().map(Vec::as_slice).collect();
        program.run(&mut workspace, &views, 1);
        // Products with means of counts in the hundreds nearly cancel.
        let largest = |x: &[f64]| x.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
        for (which, expected) in out.iter().enumerate() {
            let scale = largest(expected);
            for (found, expected) in program.output(&workspace, which, 1).iter().zip(expected) {
                let error = (f64::from(*found) - expected).abs();
                assert!(
                    error <= 2e-5 * scale,
                    "{likelihood:?} {which}: {found} for {expected}, scale {scale}"
                );
            }
        }
    }
}

#[test]
fn both_estimators_have_one_expectation_and_the_divergence_is_exact() {
    const DRAWS: usize = 40_000;
    let likelihood = Likelihood::Bernoulli;
    let architecture = architecture(Observation::new(WIDTH, likelihood), Activation::Tanh);
    let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
    let noise = normals("many draws", DRAWS * LATENT);
    let mean = |estimator: Estimator| {
        let bound = BoundGraph::new(&encoder, &decoder, estimator, 1, true);
        let program = SingleProgram::new(&bound.graph, Simd::detect()).expect("a supported graph");
        let one = inputs(&bound, &Observation::new(WIDTH, likelihood));
        let mut workspace = program.workspace(DRAWS);
        let narrow = |x: &[f64]| -> Vec<f32> { x.iter().map(|&x| x as f32).collect() };
        let mut data: Vec<Vec<f32>> = one.iter().map(|x| narrow(x)).collect();
        let tensors = bound.specs.len();
        data[tensors + 2] = data[tensors + 2].repeat(DRAWS);
        data[tensors + 3] = narrow(&noise);
        let views: Vec<&[f32]> = data.iter().map(Vec::as_slice).collect();
        program.run(&mut workspace, &views, DRAWS);
        let column = |which| -> Vec<f64> {
            let values = program.output(&workspace, which, DRAWS);
            values.iter().map(|&x| f64::from(x)).collect()
        };
        let gradients: Vec<f64> = (2..2 + tensors)
            .flat_map(|k| program.output(&workspace, k, DRAWS).to_vec())
            .map(|g| f64::from(g) / DRAWS as f64)
            .collect();
        (column(0), column(1), gradients)
    };
    let (likelihood_a, divergence_a, gradient_a) = mean(Estimator::Joint);
    let (likelihood_b, divergence_b, gradient_b) = mean(Estimator::Analytic);
    assert_eq!(likelihood_a, likelihood_b);
    let exact = divergence_b[0];
    assert!(divergence_b.iter().all(|&d| d == exact));
    let n = DRAWS as f64;
    let average = divergence_a.iter().sum::<f64>() / n;
    let variance = divergence_a
        .iter()
        .map(|d| (d - average).powi(2))
        .sum::<f64>()
        / n;
    let error = (variance / n).sqrt();
    assert!(
        (average - exact).abs() < 4.0 * error,
        "{average} ± {error} for {exact}"
    );
    assert!(
        variance > 0.1,
        "estimator A is noisy where B is exact: {variance}"
    );
    for (a, b) in gradient_a.iter().zip(&gradient_b) {
        assert!((a - b).abs() < 0.03, "{a} and {b}");
    }
}
