//! Fits of tables with hyperparameters that are fixed, learnt or integrated over.

use jensen_latent::prior::{InducingError, Rows};
use jensen_latent::{
    Fit, Integrated, Kept, LearnSettings, Likelihood, Marginal, Normality, Point, Prior, Range,
    Settings, Tightness, integrate, misplacement, normality, tightness,
};
use jensen_run::{Control, Identity, Status};

use super::TableModel;
use super::plain::{Comparison, compare};
use crate::Error;

/// The settings that determine how a fit treats its hyperparameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// The settings of every fit with fixed hyperparameters.
    pub settings: Settings,
    /// Whether to learn the free hyperparameters. Otherwise, the hyperparameters keep their starting values.
    pub learn: bool,
    /// Whether to integrate over the free hyperparameters. Otherwise, the fit uses the values that maximise the bound.
    pub integrate: bool,
    /// The number of searches for the hyperparameters. The first search begins at the starting values. The other
    /// searches begin at random points near the starting values.
    pub starts: u32,
    /// The seed of the random starting points of the searches.
    pub seed: u64,
}

/// The posterior distribution of the hyperparameters.
#[derive(Clone, Debug)]
pub struct Hyperposterior {
    /// The logarithm of the integral of exp(bound) over the hyperparameters, for responses in the units of the model.
    pub evidence: f64,
    /// An estimate of the error of `evidence`, computed as its difference from the result of a second integration rule.
    pub error: f64,
    /// The marginal posterior of each free hyperparameter, in the units of the model.
    pub marginals: Vec<Marginal>,
    /// The marginal posterior of each derived quantity, in the units of the model.
    pub derived: Vec<Marginal>,
}

/// A fitted model with its hyperparameters, in the units of the model.
#[derive(Clone, Debug)]
pub struct Learnt {
    /// The values of the free hyperparameters of the prior.
    pub theta: Vec<f64>,
    /// The likelihood with its parameters.
    pub likelihood: Likelihood,
    /// The fit at these hyperparameters.
    pub fit: Fit,
    /// The fits at the points of the posterior of the hyperparameters. If the fit does not integrate over the
    /// hyperparameters, there is a single point.
    pub points: Vec<Point>,
    /// The posterior of the hyperparameters, or `None` if the fit did not integrate over them.
    pub hyper: Option<Hyperposterior>,
    /// The reason why the requested integration over the hyperparameters failed, or `None` if it did not fail.
    pub kept: Option<Kept>,
    /// The tightness of the bound. The tightness is `None` if the fit maximised an exact expectation in closed form.
    pub tightness: Option<Tightness>,
    /// The distance of the posterior at the mode of the hyperparameters from its normal approximation, or `None` if it
    /// cannot be measured.
    pub normality: Option<Normality>,
    /// The shift that the bound causes in each free hyperparameter, in posterior standard deviations. The list is empty
    /// if no hyperparameter is learnt or if the bound is exact.
    pub misplaced: Vec<f64>,
    /// The comparison with a plain baseline model, or `None` if there is no baseline.
    pub plain: Option<Comparison>,
    /// The error of inducing points, or `None` if there are none.
    pub inducing: Option<InducingError>,
    /// Whether the fit learnt any hyperparameters.
    pub learnt: bool,
    /// The status at the end of the run.
    pub status: Status,
    /// The number of iterations of the solver, or of the search for the hyperparameters if they were learnt.
    pub iterations: u64,
    /// The time in seconds that the solvers took.
    pub solver_seconds: f64,
}

/// Fits a latent Gaussian model to a table. `Learning` specifies whether the free hyperparameters are fixed, learnt or
/// integrated over.
///
/// # Errors
/// Returns the errors of [`jensen_latent::fit`] and [`jensen_latent::learn`].
pub fn fit_table(
    model: &TableModel,
    learning: &Learning,
    identity: &Identity,
    control: &mut Control<'_>,
) -> Result<Learnt, Error> {
    let (theta, likelihood) = (model.start(), model.likelihood());
    let at_start = model.model(&theta, likelihood)?;
    let free = model.free_likelihood();
    let began = control.clock.seconds();
    let mut learnt = if !learning.learn || (theta.is_empty() && free.is_empty()) {
        let fit = jensen_latent::fit(
            &at_start,
            &learning.settings,
            None,
            false,
            identity,
            control,
        )?;
        Learnt {
            points: vec![point(&theta, likelihood, &fit)],
            theta,
            likelihood,
            learnt: false,
            status: fit.status.clone(),
            iterations: fit.iterations,
            solver_seconds: fit.seconds,
            fit,
            hyper: None,
            kept: None,
            tightness: None,
            normality: None,
            misplaced: Vec::new(),
            plain: None,
            inducing: None,
        }
    } else {
        learn_table(model, learning, identity, control)?
    };
    let left = control.budget.left().unwrap_or(f64::INFINITY);
    if control.clock.seconds() - began < left && !learnt.status.is_from_outside() {
        let at_end = model.model(&learnt.theta, learnt.likelihood)?;
        learnt.tightness = tightness(&at_end, &learnt.fit, &learning.settings)?;
        learnt.normality = normality(&at_end, &learnt.fit)?;
        learnt.plain = compare(model, &at_end, &learnt.fit)?;
        let assembled = model.assembled();
        let rows = Rows {
            alpha: &learnt.fit.alpha,
            lambda: &learnt.fit.lambda,
            variance: &learnt.fit.predictor_variance,
        };
        learnt.inducing = assembled.inducing_error(&learnt.theta, &at_end.design, rows)?;
    }
    Ok(learnt)
}

fn point(theta: &[f64], likelihood: Likelihood, fit: &Fit) -> Point {
    Point {
        weight: 1.0,
        theta: theta.to_vec(),
        likelihood,
        fit: Fit {
            sensitivity: None,
            ..fit.clone()
        },
    }
}

fn derived(model: &TableModel, found: &Integrated) -> Vec<Marginal> {
    let ranges: Vec<Range> = Prior::parameters(model).iter().map(|p| p.range).collect();
    let quantities = model.assembled().derived().into_iter().enumerate();
    quantities
        .map(|(i, quantity)| {
            found.marginal(quantity.range, |x| {
                let theta: Vec<f64> = (ranges.iter().zip(x)).map(|(r, x)| r.outward(*x)).collect();
                model
                    .assembled()
                    .derived_at(&theta)
                    .map_or(f64::NAN, |values| values[i])
            })
        })
        .collect()
}

fn learn_table(
    model: &TableModel,
    learning: &Learning,
    identity: &Identity,
    control: &mut Control<'_>,
) -> Result<Learnt, Error> {
    let at_start = model.model(&model.start(), model.likelihood())?;
    let settings = LearnSettings {
        fit: learning.settings,
        likelihood: model.free_likelihood(),
        priors: learning.integrate,
        restarts: learning.starts.saturating_sub(1),
        seed: learning.seed,
        ..LearnSettings::default()
    };
    let began = control.clock.seconds();
    let mut learned = jensen_latent::learn(model, &at_start, &settings, identity, control)?;
    let (mut hyper, mut kept, mut points) = (None, None, Vec::new());
    if learning.integrate && learned.status.is_converged() {
        match integrate(model, &at_start, &settings, &mut learned, control)? {
            Ok(found) => {
                hyper = Some(Hyperposterior {
                    evidence: found.evidence,
                    error: found.error,
                    derived: derived(model, &found),
                    marginals: found.marginals,
                });
                points = found.points;
            }
            Err(why) => kept = Some(why),
        }
    }
    if points.is_empty() {
        points.push(point(&learned.theta, learned.likelihood, &learned.fit));
    }
    let misplaced = match learned.status.is_converged() {
        true => misplacement(model, &at_start, &settings, &learned, control)?,
        false => None,
    };
    Ok(Learnt {
        points,
        hyper,
        kept,
        tightness: None,
        normality: None,
        misplaced: misplaced.unwrap_or_default(),
        plain: None,
        inducing: None,
        theta: learned.theta,
        likelihood: learned.likelihood,
        learnt: true,
        status: learned.status,
        iterations: learned.iterations,
        solver_seconds: learned.seconds.max(control.clock.seconds() - began),
        fit: learned.fit,
    })
}
