//! `fit`: a density in, a judged approximation out.

use std::fmt;

use jensen_density::TwiceDifferentiable;
use jensen_run::{Control, Identity, RunError, Status, run};

use crate::approximation::Approximation;
use crate::calls::Calls;
use crate::driver::{Driver, FamilyResult, choose};
use crate::settings::Settings;
use crate::starts::{Init, OtherMode, best_start, other_modes, scattered};

/// Names a model and its data for checkpoints; digests, or empty when nothing is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Digest of the model.
    pub model_hash: String,
    /// Digest of the data.
    pub data_hash: String,
}

/// A finished fit.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Every family fitted, in order, with its own evaluation.
    pub families: Vec<FamilyResult>,
    /// Index of the one to use.
    pub chosen: usize,
    /// How the run ended.
    pub status: Status,
    /// Whether the optimiser converged, k̂ is good, every draw has a finite density and the starts
    /// agree.
    pub trusted: bool,
    /// Other optima of comparable mass that the starts found.
    pub modes: Vec<OtherMode>,
    /// What speaks against trusting the fit, one sentence each; empty for a trusted fit.
    pub warnings: Vec<String>,
    /// Finished iterations.
    pub iterations: u64,
    /// What was evaluated, in oracle calls and lanes.
    pub calls: Calls,
    /// Wall-clock seconds.
    pub seconds: f64,
    dim: usize,
}

impl Fit {
    /// The judged result of an algorithm that fits one family to a density of dimension `dim`.
    pub fn of_family(
        result: FamilyResult,
        status: Status,
        iterations: u64,
        calls: Calls,
        seconds: f64,
        dim: usize,
    ) -> Self {
        let warnings = warnings(&result, &status, &[]);
        Self {
            chosen: 0,
            trusted: warnings.is_empty(),
            families: vec![result],
            status,
            modes: Vec::new(),
            warnings,
            iterations,
            calls,
            seconds,
            dim,
        }
    }

    /// The chosen family's result.
    pub fn best(&self) -> &FamilyResult {
        &self.families[self.chosen]
    }

    /// The chosen approximation.
    pub fn approximation(&self) -> Approximation {
        self.approximation_of(self.chosen)
    }

    /// The approximation of one family.
    ///
    /// # Panics
    /// When there is no such family: a caller's bug.
    pub fn approximation_of(&self, index: usize) -> Approximation {
        let result = &self.families[index];
        Approximation::new(result.kind, self.dim, result.omega.clone())
            .expect("a fitted family has all its parameters")
    }

    /// The bound in nats.
    pub fn elbo(&self) -> f64 {
        self.best().evaluation.elbo.mean
    }

    /// Its Monte-Carlo standard error.
    pub fn elbo_se(&self) -> f64 {
        self.best().evaluation.elbo.standard_error
    }

    /// Pareto k̂.
    pub fn khat(&self) -> f64 {
        self.best().evaluation.khat
    }

    /// Oracle calls: minibatches of the default sizes (see [`Calls`]).
    pub fn oracle_calls(&self) -> u64 {
        self.calls.oracle_calls()
    }

    /// Whether the optimiser's stopping rule holds.
    pub fn converged(&self) -> bool {
        self.status.is_converged()
    }
}

/// Why there is no fit at all.
#[derive(Clone, Debug, PartialEq)]
pub enum FitError {
    /// The density has no coordinates.
    NoParameters,
    /// A setting is out of range; the text names it.
    Setting(String),
    /// The initial point has the wrong number of coordinates.
    InitialPoint {
        /// The density's dimension.
        expected: usize,
        /// The point's.
        found: usize,
    },
    /// No starting point could be evaluated.
    CannotStart(Status),
    /// A checkpoint could not be resumed.
    Run(RunError),
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoParameters => f.write_str("the model has no parameters, so nothing to fit"),
            Self::Setting(text) => f.write_str(text),
            Self::InitialPoint { expected, found } => write!(
                f,
                "the initial point has {found} coordinates, the model has {expected}"
            ),
            Self::CannotStart(status) => write!(f, "{status}. {}", status.advice()),
            Self::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FitError {}

/// What a checkpoint of this fit must match.
pub fn identity(settings: &Settings, subject: &Subject) -> Identity {
    Identity {
        algorithm: settings.method.name().to_owned(),
        settings: serde_json::to_value(settings).expect("plain settings"),
        seed: settings.seed,
        model_hash: subject.model_hash.clone(),
        data_hash: subject.data_hash.clone(),
        simd: settings.simd.name().to_owned(),
    }
}

/// Fits `density` under `control`'s budget and judges the result.
///
/// Convergence, k̂ and disagreement of starts are part of the result, not errors: a fit that cannot
/// be trusted is returned with its reasons.
///
/// # Errors
/// When there is nothing to fit, a setting is out of range, no starting point can be evaluated, or a
/// checkpoint does not belong to this run.
///
/// # Examples
/// A density written by hand; without second derivatives of its own it borrows them from
/// [`Differenced`](jensen_density::Differenced).
///
/// ```
/// use jensen_blackbox::{Settings, Subject, fit};
/// use jensen_density::{Differenced, Lanes, LanesMut, LogDensity};
/// use jensen_run::{Budget, Control, Silent};
///
/// /// log p(z) of a unit normal around 2, constants kept.
/// struct Normal;
///
/// impl LogDensity for Normal {
///     type Workspace = ();
///     fn dim(&self) -> usize {
///         1
///     }
///     fn workspace(&self, _lanes: usize) {}
///     fn value(&self, _: &mut (), z: Lanes<'_>, out: &mut [f64]) {
///         for (out, z) in out.iter_mut().zip(z.row(0)) {
///             *out = -0.5 * (z - 2.0).powi(2) - 0.5 * (2.0 * std::f64::consts::PI).ln();
///         }
///     }
///     fn value_grad(&self, ws: &mut (), z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
///         self.value(ws, z, out);
///         for (g, z) in grad.row_mut(0).iter_mut().zip(z.row(0)) {
///             *g = 2.0 - z;
///         }
///     }
/// }
///
/// let clock = || 0.0;
/// let mut observer = Silent;
/// let mut control = Control::new(Budget::iterations(1000), &clock, &mut observer);
/// let fit = fit(&Differenced(Normal), &Settings::default(), &Subject::default(), &mut control)?;
/// assert!(fit.trusted);
/// assert!((fit.approximation().mean()[0] - 2.0).abs() < 1e-3);
/// assert!(fit.elbo().abs() < 1e-3);
/// # Ok::<(), jensen_blackbox::FitError>(())
/// ```
pub fn fit<D: TwiceDifferentiable>(
    density: &D,
    settings: &Settings,
    subject: &Subject,
    control: &mut Control<'_>,
) -> Result<Fit, FitError> {
    let dim = density.dim();
    if dim == 0 {
        return Err(FitError::NoParameters);
    }
    settings.validate().map_err(FitError::Setting)?;
    if let Init::Point(point) = &settings.start.init
        && point.len() != dim
    {
        return Err(FitError::InitialPoint {
            expected: dim,
            found: point.len(),
        });
    }
    let mut driver = Driver::new(density, settings.clone());
    let identity = identity(settings, subject);
    let outcome = run(&mut driver, &identity, control).map_err(FitError::Run)?;
    let output = outcome
        .output
        .filter(|output| !output.results.is_empty())
        .ok_or_else(|| FitError::CannotStart(outcome.status.clone()))?;
    let (modes, scattered) = if output.starts.is_empty() {
        (Vec::new(), None)
    } else {
        let best = best_start(&output.starts);
        (
            other_modes(&output.starts, best),
            scattered(&output.starts, best),
        )
    };
    let chosen = choose(&output.results);
    let status = output.results[chosen]
        .status
        .clone()
        .unwrap_or(outcome.status);
    let mut warnings = warnings(&output.results[chosen], &status, &modes);
    if let Some(others) = scattered {
        warnings.push(format!(
            "{} starts ended in {} different optima, few of them in the best: there may be better ones; \
             start near a sensible point, or reparameterise",
            output.starts.len(),
            others + 1
        ));
    }
    Ok(Fit {
        chosen,
        trusted: warnings.is_empty(),
        families: output.results,
        status,
        modes,
        warnings,
        iterations: outcome.iterations,
        calls: output.calls,
        seconds: outcome.seconds,
        dim,
    })
}

/// Everything that speaks against a result.
pub(crate) fn warnings(result: &FamilyResult, status: &Status, modes: &[OtherMode]) -> Vec<String> {
    let e = &result.evaluation;
    let mut warnings = Vec::new();
    if !status.is_converged() {
        warnings.push(format!("{status}. {}", status.advice()));
    }
    if !e.khat_is_good() {
        warnings.push(format!(
            "Pareto k̂ is {:.2}, above {:.2}: the {} approximation misses mass of the posterior; \
             reparameterise, or try a richer family",
            e.khat, e.khat_threshold, result.kind
        ));
    }
    if e.rejected + e.impossible > 0 {
        warnings.push(format!(
            "{} of {} draws have no finite log density",
            e.rejected + e.impossible,
            e.draws
        ));
    } else if !e.elbo.mean.is_finite() {
        warnings.push("the bound is not finite".to_owned());
    }
    for mode in modes {
        warnings.push(format!(
            "another start ended in a different optimum, {:.1} standard deviations away in \
             coordinate {} and only {:.2} nats lower: the posterior has several modes and the fit \
             covers one",
            mode.distance,
            mode.coordinate + 1,
            mode.below
        ));
    }
    warnings
}
