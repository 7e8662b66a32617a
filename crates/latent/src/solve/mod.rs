//! The solvers. They are iterative methods that share one loop.
//!
//! | file | subject |
//! | --- | --- |
//! | `dual` | the convex dual in N variables: Newton steps with the conjugate as barrier |
//! | `fixed` | natural-gradient fixed point for bounds without a convex dual |
//! | `baseline` | earlier solvers, for comparison |
//! | `two_loops` | directions of limited-memory BFGS, for the dual and for the baselines |
//! | `finish` | from a solved (α, λ) to a [`Fit`](crate::Fit) |

mod baseline;
mod dual;
mod finish;
pub(crate) mod fixed;
mod two_loops;

use jensen_run::{Control, Identity, Outcome, run};

use crate::linear::Geometry;
use crate::linear::design;
use crate::site::contrasts::{of_predictors, warm_with_contrasts, with_contrasts};
use crate::site::{DualSites, Site, Sites};
use crate::{
    Design, Error, Fit, LatentModel, Likelihood, Observations, Settings, Solver, Structure, Warm,
};

pub(crate) struct Problem<'a> {
    pub model: &'a LatentModel,
    pub settings: Settings,
    pub geometry: Geometry,
    /// The centre offset + Wμ.
    pub centre: Vec<f64>,
    pub notes: Vec<String>,
}

pub(crate) struct Solution {
    pub alpha: Vec<f64>,
    pub lambda: Vec<f64>,
    /// The mean offset + W m of the predictors.
    pub predictor: Vec<f64>,
    pub bound: f64,
    pub gap: Option<f64>,
    /// The gain, in nats, of one step of the natural-gradient fixed point. It is computed if the solver does not take
    /// such steps and there is no duality gap.
    pub gain: Option<f64>,
}

pub(crate) fn centre(model: &LatentModel) -> Vec<f64> {
    let mut centre = design::times(&model.design, &model.prior.mean);
    if let Some(offset) = &model.observations.offset {
        for (c, o) in centre.iter_mut().zip(offset) {
            *c += o;
        }
    }
    centre
}

/// Fits the Gaussian posterior of a latent Gaussian model by maximising the bound on log p(y).
///
/// `control` provides the budget, cancellation, the trace and checkpoints. In the trace, `elbo` is the primal objective
/// and `gap` is the duality gap. A resumed run is bitwise identical to an uninterrupted one. If `warm` contains an
/// earlier fit and its solution is feasible, the fit starts from there. If `sensitivity` is true, the fit includes the
/// derivatives of the bound with respect to the prior and the likelihood's parameters.
///
/// # Errors
/// Returns the errors of [`LatentModel::check`]. Also fails if the prior is disconnected, if it remains indefinite
/// after jitter was added, or if it is improper outside its declared null space. Also fails if the solver does not
/// support the bound, or if the checkpoint comes from another run.
pub fn fit(
    model: &LatentModel,
    settings: &Settings,
    warm: Option<&Warm>,
    sensitivity: bool,
    identity: &Identity,
    control: &mut Control<'_>,
) -> Result<Fit, Error> {
    model.check()?;
    let began = control.clock.seconds();
    let sites = Sites::new(model, settings.nodes)?;
    serves(settings.solver, model)?;
    let contrasted = with_contrasts(model);
    let warm = warm.map(|warm| warm_with_contrasts(model, warm));
    let call = Call {
        settings,
        warm: warm.as_deref(),
        sensitivity,
        identity,
        began,
    };
    let mut fit = solved(contrasted.as_ref(), &sites, &call, control)?;
    // α and λ remain those of the contrasts, because only these can be reused.
    fit.predictor_mean = of_predictors(model, fit.predictor_mean);
    fit.predictor_variance = of_predictors(model, fit.predictor_variance);
    Ok(fit)
}

/// Returns the approximate memory of a fit's linear algebra in bytes. For a sparse precision, the memory depends on the
/// fill-in of the factor.
///
/// # Errors
/// Fails if the precision cannot be analysed.
pub fn footprint(model: &LatentModel) -> Result<u64, Error> {
    crate::linear::footprint(&with_contrasts(model))
}

/// Fits the Gaussian posterior under user-defined sites. Like [`fit`](fn@fit), the function returns the bound, the
/// posterior and the duality gap, which limits the distance from the optimum. Its inputs are the prior of the latent
/// variables, the design of the linear predictors, and their offsets.
///
/// # Errors
/// Fails for the same reasons as [`fit`](fn@fit), and if a site returns values that are not finite or a ∂f/∂m outside
/// its domain.
pub fn fit_sites(
    prior: &Structure,
    design: &Design,
    offset: Option<&[f64]>,
    sites: Vec<Box<dyn Site>>,
    settings: &Settings,
    identity: &Identity,
    control: &mut Control<'_>,
) -> Result<Fit, Error> {
    let began = control.clock.seconds();
    // The sites replace the likelihood and the responses. The model has a Gaussian likelihood, because it is
    // log-concave, but never evaluates it.
    let model = LatentModel {
        prior: prior.clone(),
        design: design.clone(),
        likelihood: Likelihood::gaussian(1.0),
        bound: crate::SiteBound::Exact,
        observations: Observations {
            offset: offset.map(<[f64]>::to_vec),
            ..Observations::new(vec![0.0; sites.len()])
        },
    };
    model.check()?;
    serves(settings.solver, &model)?;
    for (n, site) in sites.iter().enumerate() {
        let (value, (low, high)) = (site.value(0.0, 1.0), site.domain());
        let alpha = value.by_mean;
        if !(value.f.is_finite() && alpha > low && alpha < high) {
            return Err(Error::Data(format!(
                "site {}: at mean 0 and variance 1 f is {} and its slope {alpha}, outside the domain ({low}, {high})",
                n + 1,
                value.f
            )));
        }
    }
    let call = Call {
        settings,
        warm: None,
        sensitivity: false,
        identity,
        began,
    };
    let sites = Sites::Dual(DualSites::Given(sites));
    solved(&model, &sites, &call, control)
}

struct Call<'a> {
    settings: &'a Settings,
    warm: Option<&'a Warm>,
    sensitivity: bool,
    identity: &'a Identity,
    began: f64,
}

fn solved(
    model: &LatentModel,
    sites: &Sites,
    call: &Call<'_>,
    control: &mut Control<'_>,
) -> Result<Fit, Error> {
    let &Call {
        settings,
        warm,
        sensitivity,
        identity,
        began,
    } = call;
    let dense = match settings.solver {
        Solver::Primal | Solver::Opper | Solver::Coordinate => {
            Some(baseline::with_covariance(model)?)
        }
        Solver::Dual | Solver::Em => None,
    };
    let model = dense.as_ref().unwrap_or(model);
    let mut notes = Vec::new();
    let geometry = Geometry::new(model, signed(model), &mut notes)?;
    let mut problem = Problem {
        model,
        settings: *settings,
        geometry,
        centre: centre(model),
        notes,
    };
    let outcome: Outcome<Solution> = match (settings.solver, sites) {
        // The dual has no term for residuals of the predictors.
        (Solver::Dual, Sites::Dual(dual_sites)) if model.design.residuals().is_none() => {
            let start = dual::start(&mut problem, sites, dual_sites, warm)?;
            let mut solver = dual::Dual::new(&mut problem, dual_sites, start);
            run(&mut solver, identity, control)?
        }
        (Solver::Dual | Solver::Em, _) => {
            let start = fixed::start(&problem, sites, warm);
            let mixing = settings.solver == Solver::Dual;
            let mut solver = fixed::FixedPoint::new(&mut problem, sites, start, mixing);
            run(&mut solver, identity, control)?
        }
        (Solver::Primal, _) => {
            let objective = baseline::primal::Primal::new(&mut problem, sites)?;
            let mut solver = baseline::lbfgs::Lbfgs::new(objective, settings.tolerance);
            run(&mut solver, identity, control)?
        }
        (Solver::Opper, _) => {
            let objective = baseline::opper::Opper {
                problem: &mut problem,
                sites,
            };
            let mut solver = baseline::lbfgs::Lbfgs::new(objective, settings.tolerance);
            run(&mut solver, identity, control)?
        }
        (Solver::Coordinate, _) => {
            let mut solver = baseline::coordinate::Coordinate {
                problem: &mut problem,
                sites,
            };
            run(&mut solver, identity, control)?
        }
    };
    let before = outcome.seconds;
    let mut fit = finish::finish(&mut problem, sites, outcome, sensitivity)?;
    // Only the run knows the time that was spent before a resumption.
    fit.seconds = before.max(control.clock.seconds() - began);
    Ok(fit)
}

fn serves(solver: Solver, model: &LatentModel) -> Result<(), Error> {
    let refuse = |why: &str| {
        Err(Error::Unsupported(format!(
            "the solver `{}` {why}; use the solver `dual`",
            solver.name()
        )))
    };
    match solver {
        Solver::Em if model.bound != crate::SiteBound::Jaakkola => {
            refuse("maximises only the bound `jaakkola`")
        }
        Solver::Opper | Solver::Coordinate if signed(model) => {
            refuse("needs a log-concave likelihood")
        }
        Solver::Primal | Solver::Opper | Solver::Coordinate
            if model.design.residuals().is_some() =>
        {
            refuse("does not support inducing points")
        }
        Solver::Coordinate if model.likelihood.predictors() > 1 => {
            refuse("needs scalar observations")
        }
        Solver::Coordinate if !crate::linear::observed_once(model) => {
            refuse("needs a Gaussian process with one latent variable per observation")
        }
        _ => Ok(()),
    }
}

/// Adds the variances of the residuals of the predictors.
pub(crate) fn with_residuals(design: &Design, mut variances: Vec<f64>) -> Vec<f64> {
    if let Some(residuals) = design.residuals() {
        variances
            .iter_mut()
            .zip(residuals)
            .for_each(|(v, residual)| *v += residual);
    }
    variances
}

pub(crate) fn signed(model: &LatentModel) -> bool {
    !model.likelihood.is_log_concave()
}
