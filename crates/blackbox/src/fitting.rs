//! The entry points [`fit`] and [`fit_reporting`], which fit a density and judge the result.

use jensen_density::{ErasedDensity, LogDensity, TwiceDifferentiable};
use jensen_run::{Control, Identity, Interrupt, run_interruptibly};

use crate::approximation::Approximation;
use crate::calls::Calls;
use crate::driver::Driver;
use crate::engine::no_records;
use crate::error::FitError;
use crate::fit::Fit;
use crate::noise::NoiseSource;
use crate::records::Prepared;
use crate::refining::Refining;
use crate::settings::Settings;
use crate::starts::Init;
use crate::watched::Watched;

/// The digests that identify a model and its data in checkpoints. They are empty if nothing is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The digest of the model.
    pub model_hash: String,
    /// The digest of the data.
    pub data_hash: String,
}

/// Returns the identity of this fit. A checkpoint belongs to the fit only if it has the same identity.
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

/// A forced resume may change other settings. The family must stay the same, because no other family can read the
/// stored state.
fn check_own_family(stored: &Identity, present: &Identity) -> Result<(), FitError> {
    let of = |identity: &Identity| match identity.settings.pointer("/family/own") {
        None => "one of Jensen's".to_owned(),
        Some(own) => own.to_string(),
    };
    let (stored, present) = (of(stored), of(present));
    if stored == present {
        return Ok(());
    }
    Err(FitError::Setting(format!(
        "the family of the checkpoint (name, number of parameters) is {stored}, but the family of this fit is {present}: resume \
         with the family of the checkpoint"
    )))
}

/// Fits `density` within the budget of `control` and judges the result.
///
/// A failure to converge, a large k̂ and disagreement between starts are part of the result and not errors. In these
/// cases the function returns a fit that is not trusted, with the reasons.
///
/// # Errors
/// Fails if the density has no parameters, a setting is out of range, no starting point can be evaluated, or a
/// checkpoint does not belong to this run.
///
/// # Examples
/// This density does not implement second derivatives, but [`Differenced`](jensen_density::Differenced) adds them.
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
/// assert!(fit.trusted());
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
    fit_reporting(density, settings, subject, control, &|_| true)
}

/// Fits `density` in the same way as [`fit`], for callers that compute their reported values from draws of the
/// approximation. The function calls `reported` to decide whether weighted draws also determine the reported values. If
/// the approximation alone cannot be trusted, the function refines it.
///
/// # Errors
/// Fails for the same reasons as [`fit`].
pub fn fit_reporting<D: TwiceDifferentiable>(
    density: &D,
    settings: &Settings,
    subject: &Subject,
    control: &mut Control<'_>,
    reported: &dyn Fn(&Approximation) -> bool,
) -> Result<Fit, FitError> {
    let density = ErasedDensity::new(density);
    fit_erased(&density, settings, subject, control, reported)
}

fn fit_erased(
    density: &ErasedDensity<'_>,
    settings: &Settings,
    subject: &Subject,
    control: &mut Control<'_>,
    reported: &dyn Fn(&Approximation) -> bool,
) -> Result<Fit, FitError> {
    let dim = density.dim();
    if dim == 0 {
        return Err(FitError::NoParameters);
    }
    settings.validate()?;
    if let Init::Point(point) = &settings.start.init
        && point.len() != dim
    {
        return Err(FitError::InitialPoint {
            expected: dim,
            found: point.len(),
        });
    }
    let prepared = match settings.method.batch() {
        Some(batch) => {
            let records = density.records().ok_or_else(no_records)?;
            let source = NoiseSource::new(settings.seed, settings.simd);
            let prepared = Prepared::new(records, batch, source, settings.memory_limit);
            Some(prepared?)
        }
        None => None,
    };
    let interrupt = Interrupt::new(control.cancel, control.clock);
    // Steps on minibatches take little time, and states that store data for every record are large.
    let interrupt = match prepared {
        Some(_) => interrupt.between_steps(),
        None => interrupt,
    };
    let watched = Watched {
        density,
        interrupt: &interrupt,
    };
    let driver = Driver::new(&watched, prepared.as_ref(), settings.clone(), &interrupt);
    driver.check()?;
    let identity = identity(settings, subject);
    if let Some(checkpoint) = &control.resume {
        check_own_family(&checkpoint.identity, &identity)?;
    }
    let mut refining = Refining::new(&watched, driver, settings, reported);
    let outcome = run_interruptibly(&mut refining, &identity, control, Some(&interrupt));
    let outcome = outcome.map_err(FitError::Run)?;
    let status = outcome.status;
    let cannot_start = || FitError::CannotStart(status.clone());
    let (output, refined) = outcome.output.ok_or_else(cannot_start)?;
    let fit = Fit::of(output, status.clone(), density, settings).ok_or_else(cannot_start)?;
    let calls = refined.as_ref().map_or(Calls::default(), |r| r.calls);
    Ok(Fit {
        calls: fit.calls + calls,
        refined,
        iterations: outcome.iterations,
        seconds: outcome.seconds,
        ..fit
    })
}
