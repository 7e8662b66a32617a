//! Monte-Carlo EM, which is the paper's baseline without a recognition network (appendix E).
//!
//! Every record has a Markov chain over its latent values. A minibatch advances the chains of its records by one
//! transition of Hamiltonian Monte Carlo. Then the weights of the model take several steps along the gradient of log
//! p(x, z) at the positions of the chains.

use jensen_graph::{SingleProgram, SingleWorkspace};
use jensen_math::rng::Purpose;
use jensen_math::simd::Simd;
use jensen_run::{Algorithm, Archive, ArchiveError, Snapshot, Status, Step};

use crate::evaluate::{BoundEstimate, LANES, normals};
use crate::forward::Forward;
use crate::hmc::{Chains, HmcSettings, Moment};
use crate::model::{Architecture, LocalModel, initial_weights};
use crate::parameters::{Parameters, UpdateRule};
use crate::records::{Minibatches, Records};
use crate::sleep::{gradient_program, with_workspace};
use crate::train::{TrainError, TrainSettings, TrainState, Trained};

/// The algorithm of Monte-Carlo EM.
pub struct MonteCarloEm<'a> {
    architecture: Architecture,
    settings: TrainSettings,
    hmc: HmcSettings,
    updates: usize,
    minibatches: Minibatches<'a>,
    posterior: Forward,
    maximise: (SingleProgram, SingleWorkspace),
}

/// The state of a run, which consists of its weights and chains.
#[derive(Clone, Debug, PartialEq)]
pub struct EmState {
    train: TrainState,
    /// The position of every record's chain, in an array of `records × latent`.
    positions: Vec<f32>,
    step: f64,
    minibatches: u64,
}

const CHAINS: Purpose = Purpose::new("neural expectation");

impl<'a> MonteCarloEm<'a> {
    /// Prepares a run that updates the weights `updates` times after every transition (5 times in the paper). The run
    /// uses only these settings: the batch, the optimiser, the prior of the weights, the initial weights, the
    /// minibatches and the seed. A minibatch has at most 500 records.
    ///
    /// # Errors
    /// Fails if the settings or the architecture are invalid, if the records have the wrong width, or if there are no
    /// records.
    pub fn new(
        architecture: &Architecture,
        mut settings: TrainSettings,
        hmc: HmcSettings,
        updates: usize,
        data: &'a dyn Records,
        simd: Simd,
    ) -> Result<Self, TrainError> {
        architecture
            .check()
            .map_err(|e| TrainError(e.to_string()))?;
        let width = architecture.observation.record_width();
        settings.check(width, data, None)?;
        settings.batch = settings.batch.min(LANES);
        let unsupported = |e: jensen_graph::Unsupported| TrainError(e.to_string());
        let model = architecture.decoder();
        let widths = [width, architecture.latent];
        let maximise = gradient_program(&model.specs(), &widths, simd, |g, t, v| {
            model.log_likelihood(g, t, v[0], v[1])
        })
        .map_err(unsupported)?;
        let lanes = settings.batch.min(data.len());
        Ok(Self {
            posterior: Forward::posterior(&model, simd).map_err(unsupported)?,
            maximise: with_workspace(maximise, lanes),
            architecture: architecture.clone(),
            minibatches: Minibatches::new(data, settings.batch, settings.seed),
            settings,
            hmc,
            updates,
        })
    }

    /// Processes a minibatch. Returns the log joint densities at the positions of the chains, the values of log p(x |
    /// z) before the last update of the weights, and the mean acceptance probability.
    fn minibatch(&mut self, state: &mut EmState) -> (Vec<f64>, f64) {
        let (t, seed) = (state.minibatches, self.settings.seed);
        let latent = self.architecture.latent;
        let chosen = self.minibatches.read(t);
        let lanes = chosen.len();
        let mut positions = Vec::with_capacity(lanes * latent);
        for &record in &chosen {
            positions.extend_from_slice(&state.positions[record * latent..][..latent]);
        }
        let mut chains = Chains::new(positions, lanes, state.step);
        let moment = Moment {
            seed,
            purpose: CHAINS,
            iteration: t + 1,
            first_lane: 0,
        };
        let tensors: Vec<&[f32]> = state.train.parameters.current().collect();
        let (acceptance, joint) = chains.transition(
            &mut self.posterior,
            &tensors,
            &self.minibatches.values,
            self.hmc.leapfrog,
            moment,
        );
        let accepted = acceptance.iter().sum::<f64>() / lanes as f64;
        let rate = 1.0 / (1.0 + t as f64).powf(0.3);
        state.step =
            (state.step * (rate * (accepted - self.hmc.acceptance)).exp()).clamp(1e-4, 2.0);
        for (&record, z) in chosen.iter().zip(chains.positions.chunks(latent)) {
            state.positions[record * latent..][..latent].copy_from_slice(z);
        }
        let values: [&[f32]; 2] = [&self.minibatches.values, &chains.positions];
        let count = state.train.parameters.list.len();
        let outputs: Vec<(usize, usize)> = (0..count).map(|k| (k + 1, k)).collect();
        let rule = UpdateRule {
            optimiser: self.settings.optimiser,
            scale: 1.0 / lanes as f32,
            prior: if self.settings.weight_prior {
                1.0 / self.minibatches.data.len() as f32
            } else {
                0.0
            },
        };
        let (program, workspace) = &mut self.maximise;
        for _ in 0..self.updates {
            let mut inputs: Vec<&[f32]> = state.train.parameters.current().collect();
            inputs.extend(values);
            program.run_lanes(workspace, &inputs, lanes);
            let empty: Vec<&[f32]> = vec![&[]; count];
            let inputs: Vec<&[f32]> = empty.into_iter().chain(values).collect();
            let parameters = &mut state.train.parameters;
            parameters.update(program, workspace, &inputs, lanes, (&outputs, 0), rule);
            parameters.updates += 1;
        }
        state.minibatches += 1;
        (joint, accepted)
    }
}

impl Algorithm for MonteCarloEm<'_> {
    type State = EmState;
    type Output = Trained;

    fn init(&mut self) -> Result<EmState, Status> {
        let settings = &self.settings;
        let specs = self.architecture.decoder().specs();
        let tensors = initial_weights(
            self.maximise.0.simd(),
            &specs,
            settings.seed,
            settings.initial_sd,
        );
        let parameters = Parameters::new(tensors, settings.optimiser, None);
        let (mut positions, mut scratch) = (Vec::new(), Vec::new());
        let records = self.minibatches.data.len();
        let simd = self.maximise.0.simd();
        let latent = self.architecture.latent;
        normals(
            simd,
            settings.seed,
            CHAINS,
            0,
            0,
            latent,
            records,
            &mut scratch,
            &mut positions,
        );
        Ok(EmState {
            train: TrainState::new(parameters),
            positions,
            step: self.hmc.initial_step,
            minibatches: 0,
        })
    }

    fn step(&mut self, state: &mut EmState, iteration: u64) -> Step {
        let count = self
            .settings
            .minibatches
            .unwrap_or(self.minibatches.per_pass());
        let mut joints = Vec::new();
        let mut accepted = 0.0;
        for _ in 0..count.max(1) {
            let (joint, acceptance) = self.minibatch(state);
            if joint.iter().any(|x| !x.is_finite()) {
                return state.train.diverged(iteration);
            }
            accepted += acceptance / count.max(1) as f64;
            joints.extend(joint);
        }
        let bound = BoundEstimate::from_terms(&joints, &vec![0.0; joints.len()]);
        let records = self.minibatches.data.len() as f64;
        let passes = state.minibatches as f64 / self.minibatches.per_pass() as f64;
        let record = jensen_run::Record::new(state.train.parameters.updates)
            .with("samples", passes * records)
            .with("passes", passes)
            .with("log_joint", bound.bound)
            .with("log_joint_se", bound.standard_error)
            .with("acceptance", accepted)
            .with("hmc_step", state.step);
        state.train.judge(iteration, record, None, None)
    }

    fn output(&mut self, state: &EmState) -> Trained {
        state.train.trained()
    }
}

impl Snapshot for EmState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.nest("train", self.train.save());
        let wide: Vec<f64> = self.positions.iter().map(|&z| f64::from(z)).collect();
        archive.put("positions", &wide);
        archive.put("step", &[self.step]);
        archive.set("minibatches", self.minibatches);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            train: TrainState::restore(&archive.nested("train"))?,
            positions: archive
                .vec("positions")?
                .into_iter()
                .map(|z| z as f32)
                .collect(),
            step: archive.vec_of("step", 1)?[0],
            minibatches: archive.get("minibatches")?,
        })
    }
}
