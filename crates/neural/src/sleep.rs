//! The wake-sleep algorithm (Hinton et al. 1995). The paper uses it as a baseline with the same recognition network.
//!
//! The wake phase draws z from q(z | x) and moves the weights of the model along the gradient of log p(x, z). The sleep
//! phase draws (z, x) from the model and moves the weights of the recognition network along the gradient of log q(z |
//! x).

use jensen_graph::{Graph, NodeId, SingleProgram, SingleWorkspace};
use jensen_math::rng::{Purpose, Stream};
use jensen_math::simd::Simd;
use jensen_run::{Algorithm, Status, Step};

use crate::evaluate::{BoundEvaluator, normals};
use crate::family::PosteriorFamily;
use crate::forward::Forward;
use crate::model::{Architecture, LocalModel, initial_weights};
use crate::parameters::{Parameters, UpdateRule};
use crate::records::{Minibatches, Records};
use crate::train::{TrainError, TrainSettings, TrainState, Trained};

/// Training by the wake-sleep algorithm.
pub struct WakeSleep<'a> {
    architecture: Architecture,
    settings: TrainSettings,
    minibatches: Minibatches<'a>,
    validation: Option<&'a dyn Records>,
    evaluator: Option<BoundEvaluator>,
    encoder: Forward,
    decoder: Forward,
    wake: (SingleProgram, SingleWorkspace),
    sleep: (SingleProgram, SingleWorkspace),
    noise: Vec<f32>,
    latent: Vec<f32>,
    context: Vec<f32>,
    dream: Vec<f32>,
    scratch: Vec<f64>,
}

const WAKE: Purpose = Purpose::new("neural wake");
const SLEEP: Purpose = Purpose::new("neural sleep");

/// Builds a graph over shared tensors and per-lane values, and differentiates its first output.
pub(crate) fn gradient_program(
    specs: &[crate::TensorSpec],
    widths: &[usize],
    simd: Simd,
    build: impl FnOnce(&mut Graph, &[NodeId], &[NodeId]) -> NodeId,
) -> Result<SingleProgram, jensen_graph::Unsupported> {
    let mut g = Graph::new();
    let tensors: Vec<NodeId> = specs
        .iter()
        .map(|spec| g.shared_input(spec.len()))
        .collect();
    let values: Vec<NodeId> = widths.iter().map(|&width| g.input(width)).collect();
    let objective = build(&mut g, &tensors, &values);
    let mut outputs = vec![objective];
    outputs.extend(g.gradient(objective, &tensors));
    g.set_outputs(outputs);
    SingleProgram::new(&g, simd)
}

impl<'a> WakeSleep<'a> {
    /// Prepares wake-sleep training. Training uses only these settings: the batch, the optimiser, the prior of the
    /// weights, the initial weights, the minibatches, the validation and the seed.
    ///
    /// # Errors
    /// Fails if the settings or the architecture are invalid, if the records have the wrong width, or if there are no
    /// records.
    pub fn new(
        architecture: &Architecture,
        settings: TrainSettings,
        data: &'a dyn Records,
        validation: Option<&'a dyn Records>,
        simd: Simd,
    ) -> Result<Self, TrainError> {
        architecture
            .check()
            .map_err(|e| TrainError(e.to_string()))?;
        let width = architecture.observation.record_width();
        if architecture.observation.missing {
            let text = "wake-sleep trains the encoder on drawn records, in which no value is missing: use auto-encoding \
                        variational Bayes (--method aevb)";
            return Err(TrainError(text.to_owned()));
        }
        settings.check(width, data, validation)?;
        let unsupported = |e: jensen_graph::Unsupported| TrainError(e.to_string());
        let (guide, model) = (architecture.encoder(), architecture.decoder());
        let specs = guide.specs();
        let encoder = Forward::new(&specs, &[width], simd, |g, t, v| {
            let (mean, log_variance) = guide.build(g, t, v[0]);
            let divergence = guide.family.divergence(g, mean, log_variance);
            vec![mean, log_variance, divergence]
        });
        let decoder = model.forward(simd);
        let widths = [width, architecture.latent];
        let wake = gradient_program(&model.specs(), &widths, simd, |g, t, v| {
            model.log_likelihood(g, t, v[0], v[1])
        })
        .map_err(unsupported)?;
        let sleep = gradient_program(&specs, &widths, simd, |g, t, v| {
            let (mean, log_variance) = guide.build(g, t, v[0]);
            let residual = g.sub(v[1], mean);
            if guide.family != PosteriorFamily::Gaussian {
                let half = g.scale(-0.5, log_variance);
                let inverse = g.exp(half);
                let noise = g.mul(residual, inverse);
                let density = guide.family.log_densities(g, noise);
                let scale = g.sum(half);
                return g.add(density, scale);
            }
            let square = g.square(residual);
            let opposite = g.neg(log_variance);
            let precision = g.exp(opposite);
            let scaled = g.mul(square, precision);
            let terms = g.add(scaled, log_variance);
            let sum = g.sum(terms);
            g.scale(-0.5, sum)
        })
        .map_err(unsupported)?;
        let evaluator = match validation {
            Some(_) => Some(BoundEvaluator::new(&guide, &model, 1, simd).map_err(unsupported)?),
            None => None,
        };
        let lanes = settings.batch.min(data.len());
        Ok(Self {
            encoder: encoder.map_err(unsupported)?,
            decoder: decoder.map_err(unsupported)?,
            wake: with_workspace(wake, lanes),
            sleep: with_workspace(sleep, lanes),
            architecture: architecture.clone(),
            minibatches: Minibatches::new(data, settings.batch, settings.seed),
            settings,
            validation,
            evaluator,
            noise: Vec::new(),
            latent: Vec::new(),
            context: Vec::new(),
            dream: Vec::new(),
            scratch: Vec::new(),
        })
    }

    fn rule(&self, lanes: usize) -> UpdateRule {
        UpdateRule {
            optimiser: self.settings.optimiser,
            scale: 1.0 / lanes as f32,
            prior: if self.settings.weight_prior {
                1.0 / self.minibatches.data.len() as f32
            } else {
                0.0
            },
        }
    }

    fn minibatch(&mut self, state: &mut TrainState) -> (Vec<f64>, Vec<f64>) {
        let (t, seed) = (state.parameters.updates, self.settings.seed);
        let simd = self.wake.0.simd();
        let latent = self.architecture.latent;
        let split = self.architecture.encoder_tensors();
        let lanes = self.minibatches.read(t).len();
        let rule = self.rule(lanes);
        let tensors: Vec<&[f32]> = state.parameters.current().collect();
        let [mean, log_variance, divergence] =
            self.encoder
                .run(&tensors[..split], &[&self.minibatches.values], lanes);
        self.architecture.posterior.draw(
            simd,
            seed,
            WAKE,
            t,
            0,
            latent,
            lanes,
            &mut self.scratch,
            &mut self.noise,
        );
        self.latent.clear();
        let terms = mean.iter().zip(log_variance).zip(&self.noise);
        self.latent
            .extend(terms.map(|((m, v), e)| m + (0.5 * v).exp() * e));
        let divergences: Vec<f64> = divergence.iter().map(|&d| f64::from(d)).collect();
        let values: [&[f32]; 2] = [&self.minibatches.values, &self.latent];
        let mut inputs = tensors[split..].to_vec();
        inputs.extend(values);
        let (program, workspace) = &mut self.wake;
        program.run_lanes(workspace, &inputs, lanes);
        let likelihoods: Vec<f64> = program
            .output(workspace, 0, lanes)
            .iter()
            .map(|&l| f64::from(l))
            .collect();
        if likelihoods
            .iter()
            .chain(&divergences)
            .any(|x| !x.is_finite())
        {
            return (likelihoods, divergences);
        }
        let count = state.parameters.list.len();
        let empty: Vec<&[f32]> = vec![&[]; count - split];
        let inputs: Vec<&[f32]> = empty.into_iter().chain(values).collect();
        let outputs: Vec<(usize, usize)> = (split..count).map(|k| (k - split + 1, k)).collect();
        state
            .parameters
            .update(program, workspace, &inputs, lanes, (&outputs, split), rule);

        normals(
            simd,
            seed,
            SLEEP,
            t,
            0,
            latent,
            lanes,
            &mut self.scratch,
            &mut self.latent,
        );
        let tensors: Vec<&[f32]> = state.parameters.current().collect();
        let observation = &self.architecture.observation;
        let (width, modelled) = (observation.record_width(), observation.width);
        // The records that the sleep phase draws have the contexts of the minibatch.
        self.context.clear();
        for record in self.minibatches.values.chunks(width) {
            observation.read_context(record, &mut self.context);
        }
        let inputs: [&[f32]; 2] = [&self.latent, &self.context];
        let inputs = &inputs[..1 + usize::from(observation.context() > 0)];
        let [mean, parameters] = self.decoder.run(&tensors[split..], inputs, lanes);
        self.dream.resize(lanes * width, 0.0);
        let rows = mean
            .chunks(modelled)
            .zip(parameters.chunks(parameters.len() / lanes));
        let given = self.minibatches.values.chunks(width);
        let given = given.map(|record| &record[modelled..]);
        let drawn = self.dream.chunks_mut(width).zip(given).zip(rows);
        for (lane, ((out, given), (mean, parameters))) in drawn.enumerate() {
            let mut stream = Stream::new(seed, SLEEP.fold("records"), t, lane as u64);
            let (out, rest) = out.split_at_mut(modelled);
            observation.draw(mean, parameters, &mut stream, out);
            rest.copy_from_slice(given);
        }
        let values: [&[f32]; 2] = [&self.dream, &self.latent];
        let mut inputs = tensors[..split].to_vec();
        inputs.extend(values);
        let (program, workspace) = &mut self.sleep;
        program.run_lanes(workspace, &inputs, lanes);
        let empty: Vec<&[f32]> = vec![&[]; split];
        let inputs: Vec<&[f32]> = empty.into_iter().chain(values).collect();
        let outputs: Vec<(usize, usize)> = (0..split).map(|k| (k + 1, k)).collect();
        state
            .parameters
            .update(program, workspace, &inputs, lanes, (&outputs, count), rule);
        state.parameters.updates += 1;
        (likelihoods, divergences)
    }
}

pub(crate) fn with_workspace(
    program: SingleProgram,
    lanes: usize,
) -> (SingleProgram, SingleWorkspace) {
    let workspace = program.workspace(lanes);
    (program, workspace)
}

impl Algorithm for WakeSleep<'_> {
    type State = TrainState;
    type Output = Trained;

    fn init(&mut self) -> Result<TrainState, Status> {
        let settings = &self.settings;
        let tensors = initial_weights(
            self.wake.0.simd(),
            &self.architecture.specs(),
            settings.seed,
            settings.initial_sd,
        );
        Ok(TrainState::new(Parameters::new(
            tensors,
            settings.optimiser,
            None,
        )))
    }

    fn step(&mut self, state: &mut TrainState, iteration: u64) -> Step {
        let count = self
            .settings
            .minibatches
            .unwrap_or(self.minibatches.per_pass());
        let Some(bound) = state.pass(count, |state| self.minibatch(state)) else {
            return state.diverged(iteration);
        };
        let (record, _) = state.report(&bound, &self.minibatches);
        let validation = match (&mut self.evaluator, self.validation) {
            (Some(evaluator), Some(records))
                if iteration.is_multiple_of(self.settings.validate_every) =>
            {
                let tensors: Vec<&[f32]> = state.parameters.current().collect();
                Some(evaluator.bound(&tensors, records, self.settings.seed))
            }
            _ => None,
        };
        state.judge(iteration, record, validation, self.settings.patience)
    }

    fn output(&mut self, state: &TrainState) -> Trained {
        state.trained()
    }
}
