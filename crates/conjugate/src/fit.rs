//! Fits a conjugate model in the loop that all fits share.

use jensen_run::{Control, Identity, Outcome, Reason, RunError, Verdict, run};

use crate::driver::{Driver, DriverSettings, FitState, Mode};
use crate::engine::{Engine, Heat, Measure};
use crate::model::{ConjugateModel, twins};
use crate::pointwise::{NormaliserTable, Pointwise, VectorGlobals, untempered_bound};

/// A fitted model whose global parameters are a single vector.
#[derive(Clone, Debug)]
pub struct ModelFit {
    /// Natural parameters of q(β), in the order of the model's blocks.
    pub lambda: Vec<f64>,
    /// The evidence lower bound at T = 1, in nats (see [`untempered_bound`]).
    pub elbo: f64,
    /// The final temperature, 1 / E[1/T]. For local tempering, it is computed from the mean inverse temperature of the
    /// points.
    pub temperature: f64,
    /// Increase of the bound in one more iteration over all points, in nats. Only stochastic fits report it, because
    /// they have no stopping rule.
    pub gain: Option<f64>,
    /// Pairs of components that became equal (see [`twins`]).
    pub twins: Vec<(usize, usize)>,
    /// Number of training points that were used, summed over all passes.
    pub points: u64,
    /// Number of points without content that were skipped.
    pub skipped: u64,
}

impl ModelFit {
    pub(crate) fn of<M: ConjugateModel>(
        model: &M,
        settings: &DriverSettings,
        state: FitState<VectorGlobals, NormaliserTable>,
    ) -> Self {
        let globals = state.globals.clone();
        let fit = Self {
            elbo: untempered_bound(model, &state.globals),
            temperature: 1.0 / state.inverse,
            gain: None,
            twins: twins(model, &state.globals.lambda),
            points: state.used,
            skipped: state.skipped,
            lambda: state.globals.lambda,
        };
        match settings.mode {
            Mode::Batch { .. } => fit,
            Mode::Stochastic { .. } => fit.with_gain(model, globals),
        }
    }

    fn with_gain<M: ConjugateModel>(self, model: &M, mut globals: VectorGlobals) -> Self {
        let mut engine = Pointwise::new(model);
        let all: Vec<usize> = (0..model.points()).collect();
        let (heat, measure) = (Heat::Uniform(1.0), Measure::default());
        if engine
            .local_steps(&mut globals, &all, &heat, measure)
            .is_none()
        {
            return self;
        }
        engine.global_step(&mut globals, 1.0, 1.0);
        let gain = untempered_bound(model, &globals) - self.elbo;
        Self {
            gain: Some(gain),
            ..self
        }
    }

    /// Returns the reasons not to trust a fit, such as equal components. The reasons do not include the fit's status or
    /// a temperature above 1. The messages call a component `part`, and `order` determines the numbers of the
    /// components.
    pub fn verdict(&self, part: &str, order: &[usize]) -> Verdict {
        let mut verdict = Verdict::new();
        // An increase of one nat per parameter means that on average a parameter is more than a standard deviation away
        // from its final value.
        if let Some(gain) = self.gain.filter(|gain| *gain > self.lambda.len() as f64) {
            verdict.against(Reason::new(
                format!(
                    "one more iteration over all points would raise the bound by {gain:.1} nats"
                ),
                "Make more passes, use larger minibatches, or omit --batch.",
            ));
        }
        let position = |part: usize| order.iter().position(|p| *p == part).map_or(part, |at| at);
        if let Some(&(i, j)) = self.twins.first() {
            let (i, j) = (position(i) + 1, position(j) + 1);
            verdict.against(Reason::new(
                format!("{part}s {} and {} are equal", i.min(j), i.max(j)),
                format!("Use fewer {part}s, or try several starts."),
            ));
        }
        verdict
    }
}

/// Returns the identity that the checkpoint of a fit must match.
pub fn identity<M: ConjugateModel>(
    model: &M,
    settings: &DriverSettings,
    data_hash: &str,
) -> Identity {
    Identity {
        algorithm: model.name().to_owned(),
        settings: serde_json::to_value(settings).expect("plain settings"),
        seed: settings.seed,
        // Priors are part of the model, so the bits of the priors distinguish models.
        model_hash: model
            .blocks()
            .prior()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, x| {
                (hash ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01b3)
            })
            .to_string(),
        data_hash: data_hash.to_owned(),
        // The arithmetic is plain double precision on every instruction set.
        simd: String::new(),
    }
}

/// Fits a model.
///
/// # Errors
/// Fails if a checkpoint comes from another run.
pub fn fit<M: ConjugateModel>(
    model: &M,
    settings: &DriverSettings,
    data_hash: &str,
    control: &mut Control<'_>,
) -> Result<Outcome<ModelFit>, RunError> {
    let mut driver = Driver::new(Pointwise::new(model), settings.clone());
    let identity = identity(model, settings, data_hash);
    let outcome = run(&mut driver, &identity, control)?;
    Ok(Outcome {
        output: outcome
            .output
            .map(|state| ModelFit::of(model, settings, state)),
        status: outcome.status,
        iterations: outcome.iterations,
        seconds: outcome.seconds,
    })
}
