//! Training runs of every algorithm. The runs are stored, so that they can be continued.

use std::path::PathBuf;

use jensen::data::{read_optional, write_atomic_bytes};
use jensen::math::simd::Simd;
use jensen::run::{
    Algorithm, Archive, ArchiveError, Budget, Checkpoint, Control, Identity, Record, Silent,
    Snapshot, Status, Step, Store, StoreError, run,
};
use jensen::vae::{
    Architecture, HmcSettings, MonteCarloEm, Optimiser, Records, Tensor, TrainSettings, Trained,
    Trainer, WakeSleep,
};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;

const CHECKPOINT_SECONDS: f64 = 20.0;

/// The number of records in each minibatch.
pub const BATCH: usize = 100;

/// An algorithm that trains the networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Auto-encoding variational Bayes.
    Aevb,
    /// Wake-sleep training of the same networks.
    WakeSleep,
    /// Monte Carlo EM. Each iteration uses 10 leapfrog steps with an acceptance rate of 90 %, followed by 5 updates of
    /// the weights.
    Mcem,
}

impl Method {
    /// Returns the name of the method in rows and figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aevb => "AEVB",
            Self::WakeSleep => "wake-sleep",
            Self::Mcem => "MCEM",
        }
    }
}

/// A training run, described by its inputs.
pub struct Job<'a> {
    /// The name of the run, which is unique within the experiment.
    pub key: String,
    /// The training method.
    pub method: Method,
    /// The architecture of the networks.
    pub architecture: Architecture,
    /// The training data.
    pub train: &'a dyn Records,
    /// The test data for evaluating the run during training, or `None` if the run is not evaluated.
    pub test: Option<&'a dyn Records>,
    /// The digest of the training data and the test data.
    pub digest: String,
    /// The standard deviation of all initial weights and biases, or `None` for the default initialisation.
    pub initial_sd: Option<f64>,
    /// The step size that Adagrad uses.
    pub step: f32,
    /// The number of minibatches in each iteration. The curve has one point per iteration.
    pub minibatches: u64,
    /// The seed.
    pub seed: u64,
}

/// The curve and the weights of a run. For [`Method::Mcem`], only the decoder has weights.
pub struct Trail {
    /// The points of the curve. Each point contains the number of samples, the objective on the minibatches, and the
    /// objective on the test records.
    pub curve: Vec<[f64; 3]>,
    /// The weights with the highest ELBO on the test records, or the last weights if there are no test records.
    pub tensors: Vec<Tensor>,
}

impl Job<'_> {
    fn settings(&self) -> TrainSettings {
        TrainSettings {
            batch: BATCH,
            optimiser: Optimiser::adagrad(self.step),
            initial_sd: self.initial_sd,
            minibatches: Some(self.minibatches),
            seed: self.seed,
            ..TrainSettings::default()
        }
    }

    /// Trains for a total of `iterations` iterations, which include the iterations of earlier calls. If an earlier run
    /// was longer, the function returns the longer run. If `exact` is set, the function instead repeats the training
    /// with exactly `iterations` iterations.
    ///
    /// # Errors
    /// Fails if training diverges, if the user stops the training, or if a file cannot be written.
    pub fn train(
        &self,
        context: &mut Context<'_>,
        iterations: u64,
        exact: bool,
    ) -> Result<Trail, Failure> {
        let method = |error: jensen::vae::TrainError| Failure::Method(error.to_string());
        let (settings, simd) = (self.settings(), Simd::detect());
        match self.method {
            Method::Aevb => {
                let (guide, model) = (self.architecture.encoder(), self.architecture.decoder());
                let trainer = Trainer::new(&guide, &model, settings, self.train, self.test, simd);
                self.drive(context, trainer.map_err(method)?, iterations, exact)
            }
            Method::WakeSleep => {
                let trainer =
                    WakeSleep::new(&self.architecture, settings, self.train, self.test, simd);
                self.drive(context, trainer.map_err(method)?, iterations, exact)
            }
            Method::Mcem => {
                let hmc = HmcSettings::default();
                let trainer =
                    MonteCarloEm::new(&self.architecture, settings, hmc, 5, self.train, simd);
                self.drive(context, trainer.map_err(method)?, iterations, exact)
            }
        }
    }

    fn drive<A: Algorithm<Output = Trained>>(
        &self,
        context: &mut Context<'_>,
        algorithm: A,
        iterations: u64,
        exact: bool,
    ) -> Result<Trail, Failure> {
        context.check_stopped()?;
        let identity = Identity {
            algorithm: self.method.name().to_owned(),
            settings: json!({ "architecture": self.architecture, "training": self.settings() }),
            seed: self.seed,
            model_hash: String::new(),
            data_hash: self.digest.clone(),
            simd: Simd::detect().name().to_owned(),
        };
        let path = context.scratch(&format!("{}.safetensors", self.key))?;
        let stored = read_optional(&path)?.and_then(|bytes| Checkpoint::decode(&bytes).ok());
        // A stored run with other settings, or of another version of Jensen, is not continued but started again.
        let resume = stored.filter(|stored| {
            (!exact || stored.iteration <= iterations) && stored.accept(&identity, false).is_ok()
        });
        let begun = crate::now();
        let clock = move || begun.elapsed().as_secs_f64();
        let (mut file, mut silent) = (File(path), Silent);
        let mut control = Control::new(Budget::iterations(iterations), &clock, &mut silent);
        control.store = Some(&mut file);
        control.checkpoint_seconds = CHECKPOINT_SECONDS;
        control.cancel = context.cancel();
        control.resume = resume;
        let outcome = run(&mut Traced(algorithm), &identity, &mut control)
            .map_err(|error| Failure::Method(error.to_string()))?;
        context.check_stopped()?;
        match (outcome.output, outcome.status) {
            (Some((trained, curve)), Status::BudgetReached { .. }) => Ok(Trail {
                curve,
                tensors: trained.tensors,
            }),
            (_, status) => Err(Failure::Method(format!("{}: {status}", self.key))),
        }
    }
}

struct File(PathBuf);

impl Store for File {
    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        write_atomic_bytes(&self.0, bytes).map_err(|error| StoreError(error.to_string()))
    }
}

/// An algorithm that stores its curve as part of its state. A resumed run therefore has the whole curve.
struct Traced<A>(A);

struct TracedState<S> {
    inner: S,
    curve: Vec<[f64; 3]>,
}

impl<A: Algorithm> Algorithm for Traced<A> {
    type State = TracedState<A::State>;
    type Output = (A::Output, Vec<[f64; 3]>);

    fn init(&mut self) -> Result<Self::State, Status> {
        Ok(TracedState {
            inner: self.0.init()?,
            curve: Vec::new(),
        })
    }

    fn step(&mut self, state: &mut Self::State, iteration: u64) -> Step {
        let step = self.0.step(&mut state.inner, iteration);
        let number = |record: &Record, name: &str| record.fields.get(name).and_then(Value::as_f64);
        if let Some(samples) = number(&step.record, "samples") {
            let value = number(&step.record, "bound").or(number(&step.record, "log_joint"));
            let test = number(&step.record, "validation_bound");
            let missing = f64::NAN;
            state
                .curve
                .push([samples, value.unwrap_or(missing), test.unwrap_or(missing)]);
        }
        step
    }

    fn output(&mut self, state: &Self::State) -> Self::Output {
        (self.0.output(&state.inner), state.curve.clone())
    }
}

impl<S: Snapshot> Snapshot for TracedState<S> {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.nest("inner", self.inner.save());
        archive.put("curve", self.curve.as_flattened());
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let flat = archive.vec("curve")?;
        let (points, rest) = flat.as_chunks::<3>();
        if !rest.is_empty() {
            return Err(ArchiveError("the curve ends within a point".to_owned()));
        }
        Ok(Self {
            inner: S::restore(&archive.nested("inner"))?,
            curve: points.to_vec(),
        })
    }
}

/// Chooses the step size of Adagrad as in the paper. Returns the step size with the highest objective on the
/// minibatches of the first `iterations` iterations.
///
/// # Errors
/// Returns the errors of [`Job::train`], except for divergence. If training diverges, the function excludes the step
/// size.
pub fn choose_step(
    context: &mut Context<'_>,
    job: &Job<'_>,
    steps: &[f32],
    iterations: u64,
) -> Result<f32, Failure> {
    if let &[only] = steps {
        return Ok(only);
    }
    let key = format!("{}-step", job.key);
    context.keep(&key, |context| {
        let mut best: Option<(f32, f64)> = None;
        for &step in steps {
            let probe = Job {
                key: format!("{}-{step}", job.key),
                architecture: job.architecture.clone(),
                digest: job.digest.clone(),
                test: None,
                step,
                ..*job
            };
            let value = match probe.train(context, iterations, true) {
                Ok(trail) => trail
                    .curve
                    .last()
                    .map_or(f64::NEG_INFINITY, |point| point[1]),
                Err(Failure::Method(why)) => {
                    context.say(why);
                    f64::NEG_INFINITY
                }
                Err(other) => return Err(other),
            };
            context.say(format!("{}: step size {step}: {value:.2} nats", job.key));
            if best.is_none_or(|(_, best)| value > best) {
                best = Some((step, value));
            }
        }
        best.map(|(step, _)| step)
            .ok_or_else(|| Failure::Method("there is no step size to choose from".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use jensen::vae::{FloatRecords, Likelihood};

    use super::*;

    #[test]
    fn a_curve_goes_on_with_its_run() {
        let records = FloatRecords {
            values: (0..600)
                .map(|i| ((i * 7) % 11) as f32 / 10.0)
                .collect::<Vec<f32>>(),
            width: 6,
        };
        let architecture = Architecture::paper(6, 2, 4, Likelihood::Bernoulli);
        let settings = TrainSettings {
            batch: 10,
            minibatches: Some(3),
            ..TrainSettings::default()
        };
        let identity = Identity {
            algorithm: "test".to_owned(),
            settings: Value::Null,
            seed: 0,
            model_hash: String::new(),
            data_hash: String::new(),
            simd: String::new(),
        };
        let go = |iterations: u64, resume: Option<Checkpoint>| {
            let sleeper = WakeSleep::new(
                &architecture,
                settings.clone(),
                &records,
                Some(&records),
                Simd::detect(),
            );
            let (clock, mut silent, mut saved) = (|| 0.0, Silent, Vec::new());
            let mut control = Control::new(Budget::iterations(iterations), &clock, &mut silent);
            control.store = Some(&mut saved);
            control.resume = resume;
            let outcome = run(&mut Traced(sleeper.unwrap()), &identity, &mut control).unwrap();
            let last = Checkpoint::decode(saved.last().unwrap()).unwrap();
            (outcome.output.unwrap(), last)
        };
        let ((whole, curve), _) = go(4, None);
        let ((_, begun), stored) = go(2, None);
        let ((parts, joined), last) = go(4, Some(stored));
        assert_eq!((begun.len(), curve.len()), (2, 4));
        assert_eq!(curve[..2], begun);
        assert_eq!(joined, curve);
        assert_eq!(parts.tensors, whole.tensors);
        assert_eq!(
            curve.iter().map(|p| p[0]).collect::<Vec<_>>(),
            [30.0, 60.0, 90.0, 120.0]
        );
        // A finished run with more iterations is used again.
        assert_eq!(go(1, Some(last)).0.1, curve);
    }
}
