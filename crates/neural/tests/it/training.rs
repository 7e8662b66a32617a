//! Tests of training: exact results, guarantees of the fit loop, and baselines.

use jensen_graph::{Graph, NodeId};
use jensen_math::rng::{Purpose, fill_normals, fill_uniforms};
use jensen_math::simd::Simd;
use jensen_neural::{
    Activation, Amortisation, Architecture, Autoencoder, BoundEvaluator, ByteRecords, Encoder,
    FloatRecords, HmcSettings, Layer, Likelihood, LocalDensity, LocalModel, MarginalSettings,
    MonteCarloEm, Optimiser, PosteriorFamily, Records, Temper, TensorSpec, TrainSettings, Trained,
    Trainer, WakeSleep,
};
use jensen_run::{
    Algorithm, Budget, Checkpoint, Control, Identity, Outcome, Record, Silent, Status, run,
};

fn identity(seed: u64) -> Identity {
    Identity {
        model_hash: "m".into(),
        data_hash: "d".into(),
        settings: serde_json::json!({}),
        algorithm: "test".into(),
        seed,
        simd: Simd::detect().name().into(),
    }
}

fn fit<A: Algorithm>(algorithm: &mut A, iterations: u64) -> Outcome<A::Output> {
    let mut observer = Silent;
    let mut control = Control::new(Budget::iterations(iterations), &|| 0.0, &mut observer);
    run(algorithm, &identity(0), &mut control).expect("a fresh run")
}

fn normals(name: &'static str, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; n];
    fill_normals(Simd::detect(), 11, Purpose::new(name), 0, 0, 1, n, &mut out);
    out
}

/// The model x ~ N(W z + b, s² I), which is factor analysis with equal noise variances. Its marginal likelihood has a
/// closed form.
struct Linear {
    width: usize,
    latent: usize,
}

impl LocalModel for Linear {
    fn width(&self) -> usize {
        self.width
    }

    fn latent(&self) -> usize {
        self.latent
    }

    fn specs(&self) -> Vec<TensorSpec> {
        let spec = |name: &str, inputs, outputs| TensorSpec::new(name.into(), inputs, outputs);
        vec![
            spec("loadings", self.latent, self.width),
            spec("offset", 1, self.width),
            spec("log_variance", 1, 1),
        ]
    }

    fn log_likelihood(&self, g: &mut Graph, tensors: &[NodeId], x: NodeId, z: NodeId) -> NodeId {
        let layer = Layer::Dense {
            inputs: self.latent,
            outputs: self.width,
        };
        let mean = layer.build(g, tensors[0], tensors[1], z);
        let residual = g.sub(x, mean);
        let square = g.square(residual);
        let sum = g.sum(square);
        let opposite = g.neg(tensors[2]);
        let precision = g.exp(opposite);
        let scaled = g.mul(sum, precision);
        let constant = g.constant((2.0 * std::f64::consts::PI).ln());
        let each = g.add(tensors[2], constant);
        let normaliser = g.scale(self.width as f64, each);
        let total = g.add(scaled, normaliser);
        g.scale(-0.5, total)
    }
}

fn eigenvalues(mut a: Vec<Vec<f64>>) -> Vec<f64> {
    let n = a.len();
    for _ in 0..60 {
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q].abs() < 1e-14 {
                    continue;
                }
                let theta = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
                let (s, c) = theta.sin_cos();
                for row in &mut a {
                    let (x, y) = (row[p], row[q]);
                    (row[p], row[q]) = (c * x - s * y, s * x + c * y);
                }
                let (x, y) = (a[p].clone(), a[q].clone());
                let mix = |f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
                    x.iter().zip(&y).map(|(x, y)| f(*x, *y)).collect()
                };
                a[p] = mix(&|x, y| c * x - s * y);
                a[q] = mix(&|x, y| s * x + c * y);
            }
        }
    }
    let mut values: Vec<f64> = (0..n).map(|i| a[i][i]).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values
}

/// Computes the largest mean log likelihood of probabilistic PCA with `latent` factors (Tipping and Bishop 1999, Eq.
/// 8).
fn best_pca(data: &[f32], width: usize, latent: usize) -> f64 {
    let n = (data.len() / width) as f64;
    let rows: Vec<&[f32]> = data.chunks(width).collect();
    let mean: Vec<f64> = (0..width)
        .map(|d| rows.iter().map(|r| f64::from(r[d])).sum::<f64>() / n)
        .collect();
    let covariance: Vec<Vec<f64>> = (0..width)
        .map(|i| {
            (0..width)
                .map(|j| {
                    let terms = rows
                        .iter()
                        .map(|r| (f64::from(r[i]) - mean[i]) * (f64::from(r[j]) - mean[j]));
                    terms.sum::<f64>() / n
                })
                .collect()
        })
        .collect();
    let values = eigenvalues(covariance);
    let noise = values[latent..].iter().sum::<f64>() / (width - latent) as f64;
    let log_det =
        values[..latent].iter().map(|v| v.ln()).sum::<f64>() + (width - latent) as f64 * noise.ln();
    -0.5 * (width as f64 * (2.0 * std::f64::consts::PI).ln() + log_det + width as f64)
}

#[test]
fn a_linear_model_reaches_the_likelihood_of_probabilistic_pca() {
    const WIDTH: usize = 5;
    const LATENT: usize = 2;
    const RECORDS: usize = 400;
    let (z, e) = (
        normals("factors", RECORDS * LATENT),
        normals("noise", RECORDS * WIDTH),
    );
    let loadings = [1.5, -0.4, 0.3, 0.8, -1.0, 0.2, 1.1, -0.7, 0.5, 0.1];
    let values: Vec<f32> = (0..RECORDS * WIDTH)
        .map(|at| {
            let (r, d) = (at / WIDTH, at % WIDTH);
            let signal: f64 = (0..LATENT)
                .map(|k| loadings[k * WIDTH + d] * z[r * LATENT + k])
                .sum();
            (signal + 0.4 * e[at] + 0.5) as f32
        })
        .collect();
    let best = best_pca(&values, WIDTH, LATENT);
    let data = FloatRecords {
        values,
        width: WIDTH,
    };
    let model = Linear {
        width: WIDTH,
        latent: LATENT,
    };
    let encoder = Encoder::new(WIDTH, &[], Activation::Identity, LATENT);
    let mut tensors = None;
    // The step size falls, and each run begins at the end of the previous run.
    for (iterations, step) in [(1500, 0.02), (3000, 0.004)] {
        let settings = TrainSettings {
            batch: RECORDS,
            samples: 4,
            optimiser: Optimiser::adam(step),
            weight_prior: false,
            initial_sd: Some(0.3),
            ..TrainSettings::default()
        };
        let mut trainer = Trainer::new(&encoder, &model, settings, &data, None, Simd::detect())
            .expect("settings");
        if let Some(tensors) = tensors.take() {
            trainer.start_from(tensors).expect("tensors of the model");
        }
        tensors = fit(&mut trainer, iterations)
            .output
            .map(|trained| trained.tensors);
    }
    let tensors = tensors.expect("a finished run");
    let views: Vec<&[f32]> = tensors.iter().map(|t| t.data.as_slice()).collect();
    let mut evaluator = BoundEvaluator::new(&encoder, &model, 64, Simd::detect()).expect("a model");
    let bound = evaluator.bound(&views, &data, 9);
    assert!(
        (bound.bound - best).abs() < 0.03 && bound.bound < best + 0.01,
        "bound {} for a likelihood of {best}",
        bound.bound
    );
}

/// A model with x ~ N(θ, 1) for every z, so the posterior of θ under the prior N(0, 1) has a closed form.
struct Offset;

impl LocalModel for Offset {
    fn width(&self) -> usize {
        1
    }

    fn latent(&self) -> usize {
        1
    }

    fn specs(&self) -> Vec<TensorSpec> {
        vec![TensorSpec::new("offset".into(), 1, 1)]
    }

    fn log_likelihood(&self, g: &mut Graph, tensors: &[NodeId], x: NodeId, _z: NodeId) -> NodeId {
        let residual = g.sub(x, tensors[0]);
        let square = g.square(residual);
        let constant = g.constant((2.0 * std::f64::consts::PI).ln());
        let total = g.add(square, constant);
        g.scale(-0.5, total)
    }
}

#[test]
fn full_bayes_finds_a_known_posterior() {
    let values: Vec<f32> = normals("offset", 24)
        .iter()
        .map(|x| (x + 1.5) as f32)
        .collect();
    let n = values.len() as f32;
    let (mean, sd) = (
        values.iter().sum::<f32>() / (n + 1.0),
        (n + 1.0).sqrt().recip(),
    );
    let data = FloatRecords { values, width: 1 };
    let encoder = Encoder::new(1, &[], Activation::Identity, 1);
    let settings = TrainSettings {
        batch: 24,
        full_bayes: true,
        optimiser: Optimiser::adam(0.0005),
        initial_posterior_sd: 0.05,
        ..TrainSettings::default()
    };
    let mut trainer =
        Trainer::new(&encoder, &Offset, settings, &data, None, Simd::detect()).expect("settings");
    let trained = fit(&mut trainer, 12_000).output.expect("a finished run");
    let found = trained.tensors.last().expect("the offset").data[0];
    let spread = trained.log_sds[0].data[0].exp();
    assert!((found - mean).abs() < 0.06, "mean {found} for {mean}");
    assert!(
        (spread / sd - 1.0).abs() < 0.15,
        "standard deviation {spread} for {sd}"
    );
}

/// Returns blurred bars as grey images of 4 × 4 pixels, which belong to two families.
fn bars(n: usize) -> ByteRecords<Vec<u8>> {
    let mut u = vec![0.0; n * 18];
    fill_uniforms(
        Simd::detect(),
        2,
        Purpose::new("bars"),
        0,
        0,
        1,
        n * 18,
        &mut u,
    );
    let mut bytes = Vec::with_capacity(n * 16);
    for record in u.chunks(18) {
        let (upright, line) = (record[0] < 0.5, (record[1] * 4.0) as usize);
        for pixel in 0..16 {
            let at = if upright { pixel % 4 } else { pixel / 4 };
            let level = if at == line { 0.9 } else { 0.1 } + 0.1 * (record[2 + pixel] - 0.5);
            bytes.push((255.0 * level) as u8);
        }
    }
    ByteRecords {
        bytes,
        width: 16,
        scale: 1.0 / 255.0,
    }
}

fn small() -> Architecture {
    Architecture::paper(16, 2, 24, Likelihood::Bernoulli)
}

fn settings() -> TrainSettings {
    TrainSettings {
        batch: 60,
        optimiser: Optimiser::adagrad(0.1),
        initial_sd: Some(0.1),
        ..TrainSettings::default()
    }
}

fn trainer<'a>(data: &'a dyn Records, settings: TrainSettings) -> Trainer<'a> {
    let architecture = small();
    let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
    Trainer::new(&encoder, &decoder, settings, data, None, Simd::detect()).expect("settings")
}

fn bits(trained: &Trained) -> Vec<u32> {
    trained
        .tensors
        .iter()
        .chain(&trained.log_sds)
        .flat_map(|t| t.data.iter().map(|x| x.to_bits()))
        .collect()
}

#[test]
fn runs_are_prefixes_resume_and_do_not_depend_on_threads() {
    let data = bars(250);
    let variants = [
        settings(),
        TrainSettings {
            full_bayes: true,
            ..settings()
        },
        TrainSettings {
            optimiser: Optimiser::adam(0.01),
            samples: 2,
            temper: Temper::Anneal {
                passes: 3.0,
                from: 4.0,
            },
            warm_up: 2.0,
            minibatches: Some(3),
            ..settings()
        },
    ];
    for settings in variants {
        let run_for = |iterations: u64, resume: Option<Checkpoint>, records: &mut Vec<Record>| {
            let mut trainer = trainer(&data, settings.clone());
            let mut store: Vec<Vec<u8>> = Vec::new();
            let mut control = Control::new(Budget::iterations(iterations), &|| 0.0, records);
            control.store = Some(&mut store);
            control.resume = resume;
            let outcome = run(&mut trainer, &identity(0), &mut control).expect("it runs");
            let last = store.pop().expect("a checkpoint");
            (bits(&outcome.output.expect("an output")), last)
        };
        let (mut short, mut long, mut resumed) = (Vec::new(), Vec::new(), Vec::new());
        let (_, checkpoint) = run_for(3, None, &mut short);
        let (whole, _) = run_for(6, None, &mut long);
        for (a, b) in short.iter().zip(&long) {
            assert!(a.same_result(b), "a shorter run is a prefix");
        }
        let checkpoint = Checkpoint::decode(&checkpoint).expect("a good checkpoint");
        let (again, _) = run_for(6, Some(checkpoint), &mut resumed);
        assert_eq!(whole, again, "a resumed run has the same bits");
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().expect("a thread pool");
            let (other, _) = pool.install(|| run_for(6, None, &mut Vec::new()));
            assert_eq!(whole, other, "{threads} threads");
        }
    }
}

#[test]
fn bounds_are_ordered_and_estimators_of_the_marginal_likelihood_agree() {
    let data = bars(600);
    let mut trainer = trainer(&data, settings());
    let trained = fit(&mut trainer, 150).output.expect("a finished run");
    let mut model =
        Autoencoder::new(small(), trained.tensors, Simd::detect()).expect("its weights");
    let test = bars(40);
    let bound = model.bound(&test, 200, 1).expect("a bound").bound;
    let mut importance = |draws, seed| {
        let estimate = model.importance_bound(&test, draws, seed);
        estimate.expect("an estimate").mean
    };
    let few = (0..40).map(|seed| importance(5, seed)).sum::<f64>() / 40.0;
    let many = importance(2000, 1);
    assert!(bound < few && few < many, "{bound}, {few}, {many}");
    let settings = MarginalSettings {
        chains: 10,
        burn_in: 200,
        draws: 40,
        ..Autoencoder::paper_marginal()
    };
    let marginal = model
        .marginal_likelihood(&test, &settings, 1)
        .expect("an estimate");
    assert!(
        (marginal.mean - many).abs() < 0.15,
        "{} by posterior draws, {many} by importance",
        marginal.mean
    );
    assert!(bound > -9.5, "the bars are learned: {bound}");
    let units = model.active_units(&data);
    assert_eq!(units.active, 2, "{:?}", units.variance);
    let codes = model.encode(&test);
    assert_eq!((codes.mean.len(), codes.log_variance.len()), (80, 80));
    let pictures = model.reconstruct(&test);
    let mut row = vec![0.0; 16];
    let error: f32 = (0..40)
        .map(|r| {
            test.read(r, &mut row);
            let pairs = row.iter().zip(&pictures[r * 16..]);
            pairs.map(|(a, b)| (a - b).powi(2)).sum::<f32>() / 16.0
        })
        .sum();
    assert!(error / 40.0 < 0.05, "mean squared error {}", error / 40.0);
    let samples = model.sample(7, 3);
    assert_eq!(samples.mean.len(), 7 * 16);
    assert!(samples.values.iter().all(|&x| x == 0.0 || x == 1.0));
    assert_eq!(samples, model.sample(7, 3));
    assert_eq!(model.sample(3, 3).latent, samples.latent[..6]);
    assert_eq!(model.manifold(3).len(), 9 * 16);
}

/// A likelihood with two modes: a narrow one at 2 with nearly all of the posterior's mass, and a wide one at −1, to
/// which most draws from the prior are closer.
struct TwoModes;

impl TwoModes {
    /// The centre, the standard deviation and the log height of each mode.
    const MODES: [[f64; 3]; 2] = [[2.0, 0.1, 0.0], [-1.0, 0.3, -6.0]];
}

impl LocalModel for TwoModes {
    fn width(&self) -> usize {
        1
    }

    fn latent(&self) -> usize {
        1
    }

    fn specs(&self) -> Vec<TensorSpec> {
        Vec::new()
    }

    fn log_likelihood(&self, g: &mut Graph, _: &[NodeId], _x: NodeId, z: NodeId) -> NodeId {
        let [narrow, wide] = Self::MODES.map(|[centre, sd, height]| {
            let (centre, height) = (g.constant(centre), g.constant(height));
            let distance = g.sub(z, centre);
            let square = g.square(distance);
            let fall = g.scale(-0.5 / (sd * sd), square);
            let log = g.add(fall, height);
            g.exp(log)
        });
        let sum = g.add(narrow, wide);
        let log = g.log(sum);
        g.sum(log)
    }
}

#[test]
fn chains_without_codes_find_the_mode_with_the_mass() {
    let step = 1e-4;
    let density = |z: f64| {
        let modes = TwoModes::MODES.map(|[m, sd, h]| (h - 0.5 * ((z - m) / sd).powi(2)).exp());
        (-0.5 * z * z).exp() * modes.iter().sum::<f64>()
    };
    let points = (-60_000..60_000).map(|i| density(f64::from(i) * step));
    let exact = (points.sum::<f64>() * step).ln() - 0.5 * (2.0 * std::f64::consts::PI).ln();
    let records = FloatRecords {
        values: vec![0.0; 200],
        width: 1,
    };
    let settings = MarginalSettings::default();
    let estimate = jensen_neural::marginal::estimate(
        &TwoModes,
        &[],
        &records,
        None,
        &settings,
        Simd::detect(),
        1,
    )
    .expect("an estimate");
    assert!(
        (estimate.mean - exact).abs() < 0.1,
        "{} is not {exact}",
        estimate.mean
    );
}

#[test]
fn baselines_learn_and_the_autoencoder_is_ahead() {
    let data = bars(600);
    let architecture = small();
    let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
    let mut evaluator =
        BoundEvaluator::new(&encoder, &decoder, 20, Simd::detect()).expect("a model");
    let mut score = |trained: &Trained| {
        let views: Vec<&[f32]> = trained.tensors.iter().map(|t| t.data.as_slice()).collect();
        evaluator.bound(&views, &data, 1).bound
    };
    let aevb = fit(&mut trainer(&data, settings()), 150)
        .output
        .expect("a finished run");
    let mut sleeper =
        WakeSleep::new(&architecture, settings(), &data, None, Simd::detect()).expect("settings");
    let asleep = fit(&mut sleeper, 150).output.expect("a finished run");
    let (aevb, asleep) = (score(&aevb), score(&asleep));
    assert!(
        asleep > -10.5 && aevb > asleep,
        "AEVB {aevb}, wake-sleep {asleep}"
    );

    let mut em = MonteCarloEm::new(
        &architecture,
        settings(),
        HmcSettings::default(),
        5,
        &data,
        Simd::detect(),
    )
    .expect("settings");
    let mut records: Vec<Record> = Vec::new();
    let mut control = Control::new(Budget::iterations(120), &|| 0.0, &mut records);
    let outcome = run(&mut em, &identity(0), &mut control).expect("a fresh run");
    let field = |record: &Record, name: &str| record.fields[name].as_f64().expect("a number");
    let (first, last) = (&records[0], &records[119]);
    assert!(field(last, "log_joint") > field(first, "log_joint") + 1.0);
    assert!(
        (field(last, "acceptance") - 0.9).abs() < 0.08,
        "{}",
        field(last, "acceptance")
    );
    let weights = outcome.output.expect("an output").tensors;
    let views: Vec<&[f32]> = weights.iter().map(|t| t.data.as_slice()).collect();
    let marginal = jensen_neural::marginal::estimate(
        &decoder,
        &views,
        &bars(30),
        None,
        &MarginalSettings::default(),
        Simd::detect(),
        4,
    )
    .expect("an estimate");
    assert!(marginal.mean > -9.5, "log p(x) {}", marginal.mean);
}

#[test]
fn early_stopping_and_divergence_are_values() {
    let data = bars(120);
    let validation = bars(60);
    let architecture = small();
    let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
    let stopping = TrainSettings {
        patience: Some(3),
        optimiser: Optimiser::Sgd { step: 0.0 },
        ..settings()
    };
    let validated: Option<&dyn Records> = Some(&validation);
    let mut trainer = Trainer::new(
        &encoder,
        &decoder,
        stopping,
        &data,
        validated,
        Simd::detect(),
    )
    .expect("settings");
    let outcome = fit(&mut trainer, 50);
    assert!(outcome.status.is_converged(), "{}", outcome.status);
    assert_eq!(outcome.iterations, 4);

    let wild = TrainSettings {
        optimiser: Optimiser::Sgd { step: 1e30 },
        ..settings()
    };
    let mut trainer = self::trainer(&data, wild);
    let outcome = fit(&mut trainer, 50);
    assert!(
        matches!(outcome.status, Status::Diverged { .. }),
        "{}",
        outcome.status
    );
    let kept = outcome.output.expect("the last good weights").tensors;
    assert!(kept.iter().flat_map(|t| &t.data).all(|x| x.is_finite()));
}

#[test]
fn mistakes_are_errors() {
    let data = bars(20);
    let architecture = Architecture::paper(17, 2, 5, Likelihood::Bernoulli);
    let (encoder, decoder) = (architecture.encoder(), architecture.decoder());
    let simd = Simd::detect();
    let error = Trainer::new(&encoder, &decoder, settings(), &data, None, simd).err();
    assert!(
        error
            .expect("refused")
            .to_string()
            .contains("16 values, but the model expects 17")
    );
    let none = ByteRecords {
        bytes: Vec::new(),
        width: 16,
        scale: 1.0,
    };
    let architecture = small();
    let error = WakeSleep::new(&architecture, settings(), &none, None, simd).err();
    assert!(
        error
            .expect("refused")
            .to_string()
            .contains("no training records")
    );
    let weights =
        jensen_neural::initial_weights(Simd::detect(), &architecture.specs(), 0, Some(0.01));
    let other = Architecture::paper(16, 3, 24, Likelihood::Bernoulli);
    let error = Autoencoder::new(other, weights, simd)
        .err()
        .expect("refused");
    assert!(
        error.to_string().contains("another architecture"),
        "{error}"
    );
    assert!(architecture.check_records(&data).is_ok());
    let wide = FloatRecords {
        values: vec![0.5; 34],
        width: 17,
    };
    let error = architecture.check_records(&wide).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "records have 17 values, but the model expects 16"
    );
    let mut values = vec![0.5; 32];
    values[20] = 1.5;
    let wild = FloatRecords { values, width: 16 };
    let error = architecture.check_records(&wild).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "record 2: value 5 is 1.5, expected a number between 0 and 1"
    );
    let categorical = Architecture::paper(16, 2, 5, Likelihood::Categorical { categories: 3 });
    assert!(categorical.check().is_err());
    assert!(Likelihood::Bernoulli.check(&[0.2, 1.5]).is_err());
    assert!(
        Likelihood::Gaussian { bounded: true }
            .check(&[f32::NAN])
            .is_err()
    );
    assert!(
        Likelihood::Categorical { categories: 2 }
            .check(&[0.5, 0.5, 1.0, 1.0])
            .is_err()
    );
}

/// A density that is not a graph: z ~ N(0, 1) and x ~ N(2 z, 0.25).
struct ByHand;

impl LocalDensity for ByHand {
    fn width(&self) -> usize {
        1
    }

    fn latent(&self) -> usize {
        1
    }

    fn value_grad(
        &self,
        records: &[usize],
        x: &[f32],
        z: &[f32],
        value: &mut [f32],
        slope: &mut [f32],
    ) {
        assert_eq!(records.len(), x.len());
        let constant = -(2.0 * std::f32::consts::PI).ln() - 0.5_f32.ln();
        for i in 0..x.len() {
            let residual = x[i] - 2.0 * z[i];
            value[i] = constant - 0.5 * z[i] * z[i] - 2.0 * residual * residual;
            slope[i] = -z[i] + 8.0 * residual;
        }
    }
}

#[test]
fn a_guide_amortises_a_density_that_is_no_graph() {
    let (z, e) = (normals("hand", 300), normals("hand noise", 300));
    let values: Vec<f32> = z
        .iter()
        .zip(&e)
        .map(|(z, e)| (2.0 * z + 0.5 * e) as f32)
        .collect();
    let spread = 4.25_f64;
    let exact = -0.5
        * ((2.0 * std::f64::consts::PI * spread).ln()
            + values.iter().map(|&x| f64::from(x * x)).sum::<f64>() / 300.0 / spread);
    let data = FloatRecords { values, width: 1 };
    // The posterior is normal. The best q(z | x) of another family has its moments, and a bound that is lower by the
    // negentropy of the family.
    for family in [
        PosteriorFamily::Gaussian,
        PosteriorFamily::Laplace,
        PosteriorFamily::StudentT { degrees: 5 },
    ] {
        let encoder = Encoder {
            family,
            ..Encoder::new(1, &[], Activation::Identity, 1)
        };
        let settings = TrainSettings {
            batch: 100,
            optimiser: Optimiser::Sgd { step: 0.01 },
            ..TrainSettings::default()
        };
        let mut training = Amortisation::new(&encoder, &ByHand, settings, &data, Simd::detect())
            .expect("settings");
        let mut records: Vec<Record> = Vec::new();
        let mut control = Control::new(Budget::iterations(1200), &|| 0.0, &mut records);
        let outcome = run(&mut training, &identity(0), &mut control).expect("a fresh run");
        let tensors = outcome.output.expect("an output").tensors;
        // The posterior of z is N(2 x / 4.25, 0.25 / 4.25).
        let (weight, log_variance) = (tensors[0].data[0], tensors[3].data[0]);
        assert!((f64::from(weight) - 2.0 / spread).abs() < 0.02, "{weight}");
        assert!(
            (f64::from(log_variance).exp() - 0.25 / spread).abs() < 0.01,
            "{log_variance}"
        );
        let last: f64 = records[1100..]
            .iter()
            .map(|r| r.fields["bound"].as_f64().expect("a number"))
            .sum::<f64>()
            / 100.0;
        let exact = exact - family.negentropy();
        assert!(
            (last - exact).abs() < 0.05,
            "{family:?}: bound {last} for {exact}"
        );
    }
}
