//! Fitting a model of the class under the loop's control.

use jensen_run::{Control, Identity, Outcome, Reason, RunError, Verdict, run};

use crate::driver::{Driver, DriverSettings};
use crate::model::{ConjugateModel, twins};
use crate::pointwise::{Pointwise, untempered_bound};

/// A fit of a model whose globals are one vector.
#[derive(Clone, Debug)]
pub struct ModelFit {
    /// Natural parameters of q(β), in the order of the model's blocks.
    pub lambda: Vec<f64>,
    /// The evidence lower bound of the untempered model in nats: local steps at T = 1 from fresh starts.
    pub elbo: f64,
    /// The last temperature, 1 / E[1/T]; for local tempering that of the mean inverse temperature.
    pub temperature: f64,
    /// Pairs of parts that the fit made the same: see [`twins`].
    pub twins: Vec<(usize, usize)>,
    /// Points that were learned from, counted again in every pass.
    pub points: u64,
    /// Points without content that were skipped.
    pub skipped: u64,
}

impl ModelFit {
    /// What speaks against a fit beside its status and a temperature above 1: parts that are the same.
    pub fn verdict(&self) -> Verdict {
        let mut verdict = Verdict::new();
        if let Some((i, j)) = self.twins.first() {
            verdict.against(Reason::new(
                format!("components {} and {} are the same", i + 1, j + 1),
                "Ask for fewer components, or try another seed.",
            ));
        }
        verdict
    }
}

/// What a checkpoint of a fit must agree with.
pub fn identity<M: ConjugateModel>(
    model: &M,
    settings: &DriverSettings,
    data_hash: &str,
) -> Identity {
    Identity {
        algorithm: model.name().to_owned(),
        settings: serde_json::to_value(settings).expect("plain settings"),
        seed: settings.seed,
        // Priors are part of the model; their bits tell models apart.
        model_hash: model
            .blocks()
            .prior()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, x| {
                (hash ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01b3)
            })
            .to_string(),
        data_hash: data_hash.to_owned(),
        // The arithmetic is plain double precision on every level.
        simd: String::new(),
    }
}

/// Fits a model.
///
/// # Errors
/// When a checkpoint belongs to another run.
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
        output: outcome.output.map(|state| ModelFit {
            elbo: untempered_bound(model, &state.globals.lambda),
            temperature: 1.0 / state.inverse,
            twins: twins(model, &state.globals.lambda),
            points: state.used,
            skipped: state.skipped,
            lambda: state.globals.lambda,
        }),
        status: outcome.status,
        iterations: outcome.iterations,
        seconds: outcome.seconds,
    })
}
