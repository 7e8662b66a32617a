//! Trains auto-encoders by algorithm 1 of the paper, or by algorithm 2 if the weights of the decoder have a posterior.
//! Training is an [`Algorithm`] of the loop that all fits share.

use jensen_graph::{SingleProgram, SingleWorkspace};
use jensen_math::rng::Purpose;
use jensen_math::simd::Simd;
use jensen_run::{Algorithm, Archive, ArchiveError, Evidence, Record, Snapshot, Status, Step};
use serde::{Deserialize, Serialize};

use crate::bound::{BoundGraph, Estimator};
use crate::evaluate::{BoundEstimate, BoundEvaluator};
use crate::free::FreeBits;
use crate::model::{Encoder, LocalModel, Tensor, initial_weights};
use crate::optimise::Optimiser;
use crate::parameters::{Parameters, UpdateRule, WEIGHTS, Weights};
use crate::posterior::EVALUATED;
use crate::records::{Minibatches, Records};
use crate::temper::Temper;

/// Settings of training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainSettings {
    /// The estimator of the bound.
    pub estimator: Estimator,
    /// Number L of draws of the latent values for each record. The paper uses 1.
    pub samples: usize,
    /// Number M of records in a minibatch. The paper uses 100.
    pub batch: usize,
    /// The optimiser of the weights.
    pub optimiser: Optimiser,
    /// Whether the weights of the model have the prior N(0, I). The paper calls it a small weight decay.
    pub weight_prior: bool,
    /// Whether the weights of the model have a normal posterior (Eq. 24) instead of point estimates.
    pub full_bayes: bool,
    /// Standard deviation of the initial weights. [`initial_weights`] describes the default.
    pub initial_sd: Option<f64>,
    /// Initial standard deviation of the weights' posterior. It has no effect unless `full_bayes` is true.
    pub initial_posterior_sd: f64,
    /// The temperature of the likelihood.
    pub temper: Temper,
    /// Number of passes during which the weight of the divergence rises linearly from 0 to `beta`.
    pub warm_up: f64,
    /// The weight of the divergence in the objective. Reported bounds always have the weight 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub beta: f64,
    /// The divergence of each latent value from its prior that the objective does not count, in nats (Kingma et al.
    /// 2016). The divergence is averaged over a minibatch. Reported bounds count it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub free_bits: f64,
    /// Number of minibatches in an iteration of the fit loop. `None` means one pass over the data.
    pub minibatches: Option<u64>,
    /// Number of iterations between evaluations of the validation bound.
    pub validate_every: u64,
    /// Training stops when this many evaluations in a row have not improved the validation bound. The weights with the
    /// best validation bound are kept.
    pub patience: Option<u64>,
    /// Seed of the initial weights, the minibatches and the draws.
    pub seed: u64,
}

fn one() -> f64 {
    1.0
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_one(x: &f64) -> bool {
    *x == 1.0
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            estimator: Estimator::default(),
            samples: 1,
            batch: 100,
            optimiser: Optimiser::default(),
            weight_prior: true,
            full_bayes: false,
            initial_sd: None,
            initial_posterior_sd: 0.01,
            temper: Temper::None,
            warm_up: 0.0,
            beta: 1.0,
            free_bits: 0.0,
            minibatches: None,
            validate_every: 1,
            patience: None,
            seed: 0,
        }
    }
}

impl TrainSettings {
    pub(crate) fn check(
        &self,
        width: usize,
        data: &dyn Records,
        validation: Option<&dyn Records>,
    ) -> Result<(), TrainError> {
        let error = |text: String| Err(TrainError(text));
        for (what, records) in [("training", Some(data)), ("validation", validation)] {
            if let Some(records) = records {
                if records.is_empty() {
                    return error(format!("there are no {what} records"));
                }
                if records.width() != width {
                    let found = records.width();
                    return error(format!(
                        "{what} records have {found} values, but the model expects {width}"
                    ));
                }
            }
        }
        if self.batch == 0 || self.samples == 0 || self.validate_every == 0 {
            return error("batch, samples and validation interval must be at least 1".to_owned());
        }
        if !self.beta.is_finite() || self.beta <= 0.0 {
            return error("the weight of the divergence must be positive".to_owned());
        }
        if !self.free_bits.is_finite() || self.free_bits < 0.0 {
            return error("free bits must not be negative".to_owned());
        }
        if self.free_bits > 0.0 && self.estimator != Estimator::Analytic {
            return error(
                "free bits need the divergence in closed form (--estimator b)".to_owned(),
            );
        }
        if self.initial_posterior_sd.is_nan() || self.initial_posterior_sd <= 0.0 {
            return error("the initial posterior standard deviation must be positive".to_owned());
        }
        self.temper.check().map_err(TrainError)
    }
}

/// An error in the settings or the data of training, as a message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainError(pub String);

impl std::fmt::Display for TrainError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TrainError {}

/// A training run with its settings, its data and its scratch memory.
pub struct Trainer<'a> {
    settings: TrainSettings,
    minibatches: Minibatches<'a>,
    validation: Option<&'a dyn Records>,
    bound: BoundGraph,
    program: SingleProgram,
    workspace: SingleWorkspace,
    evaluator: Option<BoundEvaluator>,
    outputs: Vec<(usize, usize)>,
    noise: Vec<f32>,
    scratch: Vec<f64>,
    start: Option<Vec<Tensor>>,
    free: Option<FreeBits>,
}

/// The state of training. It contains everything that later steps need.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainState {
    pub(crate) parameters: Parameters,
    /// The weights to keep. If `patience` is set, they are the weights with the best validation bound. Otherwise they
    /// are the last finite weights.
    kept: Weights,
    kept_bound: Option<f64>,
    misses: u64,
    last: Option<f64>,
}

/// The result of training.
#[derive(Clone, Debug)]
pub struct Trained {
    /// Point estimates or posterior means of the weights. If `patience` is set, they are the weights with the best
    /// validation bound. Otherwise they are the last weights.
    pub tensors: Vec<Tensor>,
    /// Log standard deviations of the weights that have a posterior, from the same iteration as `tensors`.
    pub log_sds: Vec<Tensor>,
    /// The mean bound over the minibatches of the last iteration, in nats per record.
    pub bound: Option<f64>,
    /// The validation bound of the returned weights, in nats per record. It is `None` if training did not compute it.
    pub validation_bound: Option<f64>,
}

const NOISE: Purpose = Purpose::new("neural noise");

impl<'a> Trainer<'a> {
    /// Prepares the training of `model` under the guide `encoder`.
    ///
    /// # Errors
    /// Fails if the settings are invalid, if the records have the wrong width, or if there are no records.
    pub fn new(
        encoder: &Encoder,
        model: &dyn LocalModel,
        settings: TrainSettings,
        data: &'a dyn Records,
        validation: Option<&'a dyn Records>,
        simd: Simd,
    ) -> Result<Self, TrainError> {
        settings.check(model.width(), data, validation)?;
        let unsupported = |e: jensen_graph::Unsupported| TrainError(e.to_string());
        let is_free = settings.free_bits > 0.0;
        if is_free && !model.standard_prior() {
            let text = "free bits need a standard normal prior of the latent values";
            return Err(TrainError(text.to_owned()));
        }
        let bound = match is_free {
            true => BoundGraph::with_weights(encoder, model, settings.samples),
            false => BoundGraph::new(encoder, model, settings.estimator, settings.samples, true),
        };
        let free = is_free.then(|| FreeBits::new(encoder, settings.free_bits, simd));
        let free = free.transpose().map_err(unsupported)?;
        let program = SingleProgram::new(&bound.graph, simd).map_err(unsupported)?;
        let workspace = program.workspace(settings.batch.min(data.len()));
        let evaluator = match validation {
            Some(_) => Some(BoundEvaluator::new(encoder, model, 1, simd).map_err(unsupported)?),
            None => None,
        };
        let start = (settings.initial_sd.is_none()).then(|| {
            let mut tensors = initial_weights(simd, &bound.specs, settings.seed, None);
            let (of_encoder, of_model) = tensors.split_at_mut(bound.encoder_tensors);
            encoder.begin(of_encoder, data);
            model.begin(of_model, data);
            tensors
        });
        Ok(Self {
            outputs: (0..bound.specs.len()).map(|k| (k + 2, k)).collect(),
            minibatches: Minibatches::new(data, settings.batch, settings.seed),
            settings,
            validation,
            bound,
            program,
            workspace,
            evaluator,
            noise: Vec::new(),
            scratch: Vec::new(),
            start,
            free,
        })
    }

    /// Replaces the random initial weights by the weights of an earlier run, which must be in the same order.
    ///
    /// # Errors
    /// Fails if the weights belong to a different architecture.
    pub fn start_from(&mut self, tensors: Vec<Tensor>) -> Result<(), TrainError> {
        let same = tensors.len() == self.bound.specs.len()
            && tensors
                .iter()
                .zip(&self.bound.specs)
                .all(|(tensor, spec)| tensor.spec == *spec && tensor.data.len() == spec.len());
        if !same {
            let text = "the initial weights have another architecture";
            return Err(TrainError(text.to_owned()));
        }
        self.start = Some(tensors);
        Ok(())
    }

    /// Returns the number of minibatches in one pass over the data.
    pub fn minibatches_per_pass(&self) -> u64 {
        self.minibatches.per_pass()
    }

    /// Returns the mean number of records that an iteration of the fit loop processes.
    pub fn records_per_iteration(&self) -> f64 {
        let per_pass = self.minibatches_per_pass();
        let minibatches = self.settings.minibatches.unwrap_or(per_pass);
        minibatches as f64 * self.minibatches.data.len() as f64 / per_pass as f64
    }

    /// Processes a minibatch. Returns the likelihood and the divergence of each of its records, in nats.
    fn minibatch(&mut self, state: &mut TrainState) -> (Vec<f64>, Vec<f64>) {
        let t = state.parameters.updates;
        let lanes = self.minibatches.read(t).len();
        let simd = self.program.simd();
        let seed = self.settings.seed;
        let per_lane = self.bound.latent * self.bound.samples;
        self.bound.family.draw(
            simd,
            seed,
            NOISE,
            t,
            0,
            per_lane,
            lanes,
            &mut self.scratch,
            &mut self.noise,
        );
        state.parameters.draw(simd, seed, WEIGHTS, t);
        let passes = t as f64 / self.minibatches_per_pass() as f64;
        let likelihood_weight = [(1.0 / self.settings.temper.temperature(passes)) as f32];
        let risen = if self.settings.warm_up > 0.0 {
            (passes / self.settings.warm_up).min(1.0)
        } else {
            1.0
        };
        let weight = (risen * self.settings.beta) as f32;
        let mut inputs: Vec<&[f32]> = state.parameters.current().collect();
        let divergence_weight = match &mut self.free {
            Some(free) => {
                let of_encoder = &inputs[..self.bound.encoder_tensors];
                free.weights(of_encoder, &self.minibatches.values, weight)
            }
            None => vec![weight],
        };
        let rest: [&[f32]; 4] = [
            &likelihood_weight,
            &divergence_weight,
            &self.minibatches.values,
            &self.noise,
        ];
        inputs.extend(rest);
        self.program.run_lanes(&mut self.workspace, &inputs, lanes);
        let wide = |which| -> Vec<f64> {
            let values = self.program.output(&self.workspace, which, lanes);
            values.iter().map(|&x| f64::from(x)).collect()
        };
        let (likelihoods, divergences) = (wide(0), wide(1));
        let finite = |x: &[f64]| x.iter().all(|x| x.is_finite());
        if !finite(&likelihoods) || !finite(&divergences) {
            return (likelihoods, divergences);
        }
        let mut inputs: Vec<&[f32]> = vec![&[]; state.parameters.list.len()];
        inputs.extend(rest);
        let wants_prior = self.settings.weight_prior || self.settings.full_bayes;
        let rule = UpdateRule {
            optimiser: self.settings.optimiser,
            scale: 1.0 / lanes as f32,
            prior: if wants_prior {
                1.0 / self.minibatches.data.len() as f32
            } else {
                0.0
            },
        };
        state.parameters.update(
            &self.program,
            &self.workspace,
            &inputs,
            lanes,
            (&self.outputs, self.bound.encoder_tensors),
            rule,
        );
        state.parameters.updates += 1;
        (likelihoods, divergences)
    }

    /// Computes the validation bound of the current parameters, if there are validation data. Weights with a posterior
    /// are drawn once per evaluation, and all evaluations use the same standard normal numbers.
    fn validate(&mut self, state: &mut TrainState) -> Option<BoundEstimate> {
        let (Some(evaluator), Some(records)) = (&mut self.evaluator, self.validation) else {
            return None;
        };
        let seed = self.settings.seed;
        let parameters = &mut state.parameters;
        parameters.draw(self.program.simd(), seed, EVALUATED, 0);
        let tensors: Vec<&[f32]> = parameters.current().collect();
        Some(evaluator.bound(&tensors, records, seed))
    }
}

impl TrainState {
    pub(crate) fn new(parameters: Parameters) -> Self {
        Self {
            kept: parameters.weights(),
            parameters,
            kept_bound: None,
            misses: 0,
            last: None,
        }
    }

    pub(crate) fn report(
        &mut self,
        bound: &BoundEstimate,
        minibatches: &Minibatches<'_>,
    ) -> (Record, f64) {
        let records = minibatches.data.len() as f64;
        let of_weights = self.parameters.divergence();
        let per_record = bound.bound - of_weights / records;
        self.last = Some(per_record);
        let passes = self.parameters.updates as f64 / minibatches.per_pass() as f64;
        let record = Record::new(self.parameters.updates)
            .with("samples", passes * records)
            .with("passes", passes)
            .with("bound", per_record)
            .with("bound_se", bound.standard_error)
            .with("likelihood", bound.likelihood)
            .with("divergence", bound.divergence)
            .with_elbo(records * per_record, Some(records * bound.standard_error));
        let record = if of_weights > 0.0 {
            record.with("weight_divergence", of_weights)
        } else {
            record
        };
        (record, passes)
    }

    /// Trains on the given number of minibatches, which is at least one. Returns the mean bound over them, or `None` if
    /// a term is not finite. `minibatch` updates the parameters, and returns the likelihoods and divergences of its
    /// records before the update.
    pub(crate) fn pass(
        &mut self,
        minibatches: u64,
        mut minibatch: impl FnMut(&mut Self) -> (Vec<f64>, Vec<f64>),
    ) -> Option<BoundEstimate> {
        let (mut likelihoods, mut divergences) = (Vec::new(), Vec::new());
        for _ in 0..minibatches.max(1) {
            let (l, d) = minibatch(self);
            if l.iter().chain(&d).any(|x| !x.is_finite()) {
                return None;
            }
            likelihoods.extend(l);
            divergences.extend(d);
        }
        Some(BoundEstimate::from_terms(&likelihoods, &divergences))
    }

    /// Ends an iteration and keeps its weights. If `patience` is set, the best weights so far are kept instead.
    /// Training stops if the validation bound no longer rises. It also stops if the last update produced non-finite
    /// weights. The bounds of the minibatches cannot show this, because they are computed before the update.
    pub(crate) fn judge(
        &mut self,
        iteration: u64,
        mut record: Record,
        validation: Option<BoundEstimate>,
        patience: Option<u64>,
    ) -> Step {
        let mut status = None;
        let weights = self.parameters.weights();
        if !weights.are_finite() || validation.as_ref().is_some_and(|v| !v.bound.is_finite()) {
            return self.diverged(iteration);
        }
        if let Some(validation) = &validation {
            record = record
                .with("validation_bound", validation.bound)
                .with("validation_se", validation.standard_error);
        }
        let bound = validation.map(|v| v.bound);
        let better = match (patience, self.kept_bound) {
            (Some(_), Some(best)) => bound.is_some_and(|bound| bound > best),
            _ => true,
        };
        if better {
            self.kept = weights;
            self.kept_bound = bound;
            self.misses = 0;
        } else if bound.is_some() {
            self.misses += 1;
        }
        if let Some(patience) = patience
            && self.misses >= patience
        {
            let rule = format!("the validation bound did not rise in {patience} evaluations");
            let evidence = Evidence {
                rule,
                remaining: None,
                standard_error: None,
            };
            status = Some(Status::Converged { evidence });
        }
        Step { record, status }
    }

    pub(crate) fn diverged(&self, at: u64) -> Step {
        let reason = "the bound is no longer finite: use a smaller step size, or check the scale of the data";
        let status = Status::Diverged {
            at,
            reason: reason.to_owned(),
        };
        Step::finish(Record::new(self.parameters.updates), status)
    }

    pub(crate) fn trained(&self) -> Trained {
        Trained {
            tensors: self.kept.tensors.clone(),
            log_sds: self.kept.log_sds.clone(),
            bound: self.last,
            validation_bound: self.kept_bound,
        }
    }
}

impl Algorithm for Trainer<'_> {
    type State = TrainState;
    type Output = Trained;

    fn init(&mut self) -> Result<TrainState, Status> {
        let settings = &self.settings;
        let tensors = self.start.clone().unwrap_or_else(|| {
            initial_weights(
                self.program.simd(),
                &self.bound.specs,
                settings.seed,
                settings.initial_sd,
            )
        });
        let bayesian = settings.full_bayes.then(|| {
            let log_sd = settings.initial_posterior_sd.ln() as f32;
            (self.bound.encoder_tensors, log_sd)
        });
        Ok(TrainState::new(Parameters::new(
            tensors,
            settings.optimiser,
            bayesian,
        )))
    }

    fn step(&mut self, state: &mut TrainState, iteration: u64) -> Step {
        let count = self
            .settings
            .minibatches
            .unwrap_or(self.minibatches_per_pass());
        let Some(bound) = state.pass(count, |state| self.minibatch(state)) else {
            return state.diverged(iteration);
        };
        let (mut record, passes) = state.report(&bound, &self.minibatches);
        if self.settings.temper != Temper::None {
            record = record.with("temperature", self.settings.temper.temperature(passes));
        }
        let validation = if iteration.is_multiple_of(self.settings.validate_every) {
            self.validate(state)
        } else {
            None
        };
        state.judge(iteration, record, validation, self.settings.patience)
    }

    fn output(&mut self, state: &TrainState) -> Trained {
        state.trained()
    }
}

impl Snapshot for TrainState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.nest("parameters", self.parameters.save());
        archive.nest("best", self.kept.save());
        let bits = |x: Option<f64>| x.map(f64::to_bits);
        archive.set("best_bound", bits(self.kept_bound));
        archive.set("misses", self.misses);
        archive.set("last", bits(self.last));
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let parameters = Parameters::restore(&archive.nested("parameters"))?;
        let kept = parameters.weights().restored(&archive.nested("best"))?;
        let bits = |name: &str| -> Result<Option<f64>, ArchiveError> {
            Ok(archive.get::<Option<u64>>(name)?.map(f64::from_bits))
        };
        Ok(Self {
            parameters,
            kept,
            kept_bound: bits("best_bound")?,
            misses: archive.get("misses")?,
            last: bits("last")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::TensorSpec;
    use crate::optimise::Optimiser;

    #[test]
    fn weights_that_left_the_finite_numbers_are_not_kept() {
        let tensor = |value: f32| Tensor {
            spec: TensorSpec::new("weight".to_owned(), 1, 2),
            data: vec![1.0, value],
        };
        let rule = Optimiser::Sgd { step: 0.0 };
        let judged = |value: f32, validation: Option<BoundEstimate>| {
            let mut state = TrainState::new(Parameters::new(vec![tensor(value)], rule, None));
            state.kept.tensors = vec![tensor(2.0)];
            let step = state.judge(3, Record::new(0), validation, None);
            let diverged = matches!(step.status, Some(Status::Diverged { at: 3, .. }));
            (diverged, state.kept.tensors[0].data[1])
        };
        let bound = |x: f64| Some(BoundEstimate::from_terms(&[x, x], &[0.0, 0.0]));
        assert_eq!(judged(5.0, None), (false, 5.0));
        assert_eq!(judged(5.0, bound(-1.0)), (false, 5.0));
        for wild in [f32::NAN, f32::INFINITY] {
            assert_eq!(judged(wild, None), (true, 2.0));
            assert_eq!(judged(wild, bound(-1.0)), (true, 2.0));
        }
        assert_eq!(judged(5.0, bound(f64::NAN)), (true, 2.0));
    }
}
