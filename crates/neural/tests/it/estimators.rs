//! Tests of the estimators of the bound: their gradients, the agreement of A and B, and closed forms.

use jensen_graph::{SingleProgram, evaluate};
use jensen_math::rng::{Purpose, fill_normals};
use jensen_math::simd::Simd;
use jensen_neural::{
    Activation, Architecture, BoundGraph, Estimator, Likelihood, Observation, initial_weights,
};

const WIDTH: usize = 6;
const LATENT: usize = 2;

fn architecture(observation: Observation, activation: Activation) -> Architecture {
    Architecture {
        observation,
        latent: LATENT,
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
    let likelihood = observation.likelihood;
    let mut inputs: Vec<Vec<f64>> = initial_weights(Simd::detect(), &bound.specs, 5, Some(0.6))
        .into_iter()
        .map(|tensor| tensor.data.into_iter().map(f64::from).collect())
        .collect();
    inputs.push(vec![0.7]);
    inputs.push(vec![1.3]);
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
    if observation.missing {
        // These values are the first group of categories, or three separate values.
        record[..3].fill(f64::NAN);
    }
    inputs.push(record);
    inputs.push(normals("noise", bound.samples * LATENT));
    inputs
}

fn all_cases() -> Vec<(Observation, Activation, Estimator, usize)> {
    let likelihoods = [
        Likelihood::Bernoulli,
        Likelihood::Gaussian { bounded: true },
        Likelihood::Gaussian { bounded: false },
        Likelihood::Categorical { categories: 3 },
    ];
    let mut cases = Vec::new();
    for likelihood in likelihoods {
        let observation = Observation::new(WIDTH, likelihood);
        for (_, activation) in Activation::ALL {
            for estimator in [Estimator::Joint, Estimator::Analytic] {
                cases.push((observation.clone(), activation, estimator, 1));
            }
        }
        cases.push((observation, Activation::Tanh, Estimator::Analytic, 3));
    }
    for likelihood in Likelihood::COUNTS {
        for (library_size, missing) in [(None, false), (Some(9.0), false), (Some(9.0), true)] {
            let observation = Observation {
                library_size,
                missing,
                ..Observation::new(WIDTH, likelihood)
            };
            cases.push((observation, Activation::Tanh, Estimator::Analytic, 1));
        }
    }
    for likelihood in likelihoods {
        let observation = Observation {
            missing: true,
            ..Observation::new(WIDTH, likelihood)
        };
        cases.push((observation, Activation::Tanh, Estimator::Analytic, 1));
    }
    cases
}

#[test]
fn gradients_agree_with_finite_differences() {
    for (observation, activation, estimator, samples) in all_cases() {
        let likelihood = observation.likelihood;
        let architecture = architecture(observation.clone(), activation);
        let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
        let bound = BoundGraph::new(&encoder, &decoder, estimator, samples, true);
        let mut inputs = inputs(&bound, &observation);
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
