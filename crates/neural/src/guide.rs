//! Amortised posteriors of densities that are not graphs. A recognition network can be trained for any model with one
//! latent vector per record. The model must provide its log density and the gradient of the log density with respect to
//! the latent values.
//!
//! The model receives draws z from q(z | x) and returns the gradient s of log p(x, z). With s held fixed, the
//! derivative of `s · z + ½ Σ log variance` with respect to the weights of the network then equals the derivative of
//! the bound (Eq. 6 with the entropy in closed form). Models that are written as graphs are
//! [`LocalModel`](crate::LocalModel)s, which also learn their parameters.

use jensen_graph::{Graph, NodeId, SingleProgram, SingleWorkspace};
use jensen_math::constants::LOG_TWO_PI;
use jensen_math::rng::Purpose;
use jensen_math::simd::Simd;
use jensen_run::{Algorithm, Status, Step};

use crate::model::{Encoder, initial_weights};
use crate::parameters::{Parameters, UpdateRule};
use crate::records::{Minibatches, Records};
use crate::sleep::with_workspace;
use crate::train::{TrainError, TrainSettings, TrainState, Trained};

/// A density of records with one latent vector each. It is evaluated for many records at once.
pub trait LocalDensity {
    /// Returns the number of values of a record.
    fn width(&self) -> usize;

    /// Returns the number of latent values of a record.
    fn latent(&self) -> usize;

    /// Writes log p(x, z) of every record, in nats, to `value`, and its gradient with respect to z to `slope`.
    ///
    /// `x` contains the records one after another, with `width` values each. `z` and `slope` contain the latent values
    /// and the gradients in the same order, with `latent` values each. `records` contains the indices of the records.
    /// Models that store data of their own need them.
    fn value_grad(
        &self,
        records: &[usize],
        x: &[f32],
        z: &[f32],
        value: &mut [f32],
        slope: &mut [f32],
    );
}

/// Trains a recognition network for a [`LocalDensity`].
pub struct Amortisation<'a> {
    encoder: Encoder,
    model: &'a dyn LocalDensity,
    settings: TrainSettings,
    minibatches: Minibatches<'a>,
    draw: (SingleProgram, SingleWorkspace),
    climb: (SingleProgram, SingleWorkspace),
    noise: Vec<f32>,
    slope: Vec<f32>,
    value: Vec<f32>,
    scratch: Vec<f64>,
}

const NOISE: Purpose = Purpose::new("neural guide");

/// Builds a network's latent draw at x with the noise e, and half of the sum of the log variances.
fn draw(
    g: &mut Graph,
    encoder: &Encoder,
    tensors: &[NodeId],
    x: NodeId,
    e: NodeId,
) -> (NodeId, NodeId) {
    let (mean, log_variance) = encoder.build(g, tensors, x);
    let half = g.scale(0.5, log_variance);
    let sd = g.exp(half);
    let step = g.mul(sd, e);
    (g.add(mean, step), g.sum(half))
}

impl<'a> Amortisation<'a> {
    /// Prepares the training of `encoder` for `model` with the records in `data`. Training uses only these settings:
    /// the batch, the optimiser, the initial weights, the minibatches and the seed.
    ///
    /// # Errors
    /// Fails if the settings are invalid, if the extents of the encoder, the model and the data differ, or if there are
    /// no records.
    pub fn new(
        encoder: &Encoder,
        model: &'a dyn LocalDensity,
        settings: TrainSettings,
        data: &'a dyn Records,
        simd: Simd,
    ) -> Result<Self, TrainError> {
        settings.check(model.width(), data, None)?;
        if encoder.latent != model.latent() || encoder.width() != model.width() {
            let text = "the encoder has other extents than the model";
            return Err(TrainError(text.to_owned()));
        }
        let specs = encoder.specs();
        let mut g = Graph::new();
        let tensors: Vec<NodeId> = specs
            .iter()
            .map(|spec| g.shared_input(spec.len()))
            .collect();
        let (x, e) = (g.input(model.width()), g.input(model.latent()));
        let (z, spread) = draw(&mut g, encoder, &tensors, x, e);
        let mut drawing = g.clone();
        drawing.set_outputs(vec![z, spread]);
        let slope = g.input(model.latent());
        let product = g.mul(slope, z);
        let pull = g.sum(product);
        let objective = g.add(pull, spread);
        let outputs = g.gradient(objective, &tensors);
        g.set_outputs(outputs);
        let lanes = settings.batch.min(data.len());
        let program = |graph: &Graph| {
            SingleProgram::new(graph, simd)
                .map(|program| with_workspace(program, lanes))
                .map_err(|e| TrainError(e.to_string()))
        };
        Ok(Self {
            draw: program(&drawing)?,
            climb: program(&g)?,
            encoder: encoder.clone(),
            model,
            minibatches: Minibatches::new(data, settings.batch, settings.seed),
            settings,
            noise: Vec::new(),
            slope: Vec::new(),
            value: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// Processes a minibatch. Returns the log densities at the draws, and the negative entropies.
    fn minibatch(&mut self, state: &mut TrainState) -> (Vec<f64>, Vec<f64>) {
        let t = state.parameters.updates;
        let latent = self.encoder.latent;
        let chosen = self.minibatches.read(t);
        let lanes = chosen.len();
        let simd = self.draw.0.simd();
        let seed = self.settings.seed;
        self.encoder.family.draw(
            simd,
            seed,
            NOISE,
            t,
            0,
            latent,
            lanes,
            &mut self.scratch,
            &mut self.noise,
        );
        let x = &self.minibatches.values;
        let mut inputs: Vec<&[f32]> = state.parameters.current().collect();
        inputs.extend([&x[..], &self.noise[..]]);
        let (program, workspace) = &mut self.draw;
        program.run_lanes(workspace, &inputs, lanes);
        let z = program.output(workspace, 0, lanes);
        let spread = program.output(workspace, 1, lanes);
        self.value.resize(lanes, 0.0);
        self.slope.resize(lanes * latent, 0.0);
        self.model
            .value_grad(&chosen, x, z, &mut self.value, &mut self.slope);
        let of_noise = 0.5 * (1.0 + LOG_TWO_PI) - self.encoder.family.negentropy();
        let base = latent as f64 * of_noise;
        let values: Vec<f64> = self.value.iter().map(|&v| f64::from(v)).collect();
        let negentropies: Vec<f64> = spread.iter().map(|&s| -f64::from(s) - base).collect();
        let finite = |x: &[f64]| x.iter().all(|x| x.is_finite());
        if !finite(&values) || !finite(&negentropies) || self.slope.iter().any(|s| !s.is_finite()) {
            return (vec![f64::NAN; lanes], negentropies);
        }
        let rest: [&[f32]; 3] = [x, &self.noise, &self.slope];
        let mut inputs: Vec<&[f32]> = state.parameters.current().collect();
        let count = inputs.len();
        inputs.extend(rest);
        let (program, workspace) = &mut self.climb;
        program.run_lanes(workspace, &inputs, lanes);
        let empty: Vec<&[f32]> = vec![&[]; count];
        let inputs: Vec<&[f32]> = empty.into_iter().chain(rest).collect();
        let outputs: Vec<(usize, usize)> = (0..count).map(|k| (k, k)).collect();
        let rule = UpdateRule {
            optimiser: self.settings.optimiser,
            scale: 1.0 / lanes as f32,
            prior: 0.0,
        };
        let parameters = &mut state.parameters;
        parameters.update(program, workspace, &inputs, lanes, (&outputs, count), rule);
        parameters.updates += 1;
        (values, negentropies)
    }
}

impl Algorithm for Amortisation<'_> {
    type State = TrainState;
    type Output = Trained;

    fn init(&mut self) -> Result<TrainState, Status> {
        let settings = &self.settings;
        let specs = self.encoder.specs();
        let tensors = initial_weights(
            self.draw.0.simd(),
            &specs,
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
        state.judge(iteration, record, None, None)
    }

    fn output(&mut self, state: &TrainState) -> Trained {
        state.trained()
    }
}
