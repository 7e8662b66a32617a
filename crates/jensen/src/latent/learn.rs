//! Fits of tables at given or learnt hyperparameters, and the posterior at the rows of other tables.

use jensen_latent::{Fit, LearnSettings, Likelihood, Settings, Tightness, tightness};
use jensen_run::{Control, Identity, Status};

use super::{Prediction, Stored, TableModel};
use crate::Error;

/// How hyperparameters are treated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// The settings of every fit.
    pub settings: Settings,
    /// Learn the free hyperparameters; else they stand where they start.
    pub learn: bool,
    /// Searches, the first from the starting values, the others from random places around them.
    pub starts: u32,
    /// Seed of those places.
    pub seed: u64,
}

/// A fitted model with its hyperparameters.
#[derive(Clone, Debug)]
pub struct Learnt {
    /// The prior's free hyperparameters.
    pub theta: Vec<f64>,
    /// The likelihood with its parameters.
    pub likelihood: Likelihood,
    /// The fit.
    pub fit: Fit,
    /// How tight its bound is; `None` where the expectation itself was maximised in closed form.
    pub tightness: Option<Tightness>,
    /// Whether hyperparameters were learnt.
    pub learnt: bool,
    /// How the run ended.
    pub status: Status,
    /// Iterations of the run: of the solver, or of the search for hyperparameters.
    pub iterations: u64,
    /// Seconds in solvers.
    pub solver_seconds: f64,
}

/// Fits a model of a table, with its free hyperparameters learnt or as they stand.
///
/// # Errors
/// What [`jensen_latent::fit`] and [`jensen_latent::learn`] refuse.
pub fn fit_table(
    model: &TableModel,
    learning: &Learning,
    identity: &Identity,
    control: &mut Control<'_>,
) -> Result<Learnt, Error> {
    let (theta, likelihood) = (model.start(), model.likelihood());
    let at_start = model.model(&theta, likelihood)?;
    let free = model.free_likelihood();
    if !learning.learn || (theta.is_empty() && free.iter().all(|f| !f)) {
        let fit = jensen_latent::fit(
            &at_start,
            &learning.settings,
            None,
            false,
            identity,
            control,
        )?;
        return Ok(Learnt {
            tightness: tightness(&at_start, &fit, &learning.settings)?,
            theta,
            likelihood,
            learnt: false,
            status: fit.status.clone(),
            iterations: fit.iterations,
            solver_seconds: fit.seconds,
            fit,
        });
    }
    let names = likelihood.parameters().iter().zip(free);
    let fixed = names.filter(|(_, free)| !**free);
    let settings = LearnSettings {
        fit: learning.settings,
        fixed: fixed.map(|(name, _)| (*name).to_owned()).collect(),
        restarts: learning.starts.saturating_sub(1),
        seed: learning.seed,
        ..LearnSettings::default()
    };
    let learned = jensen_latent::learn(model, &at_start, &settings, identity, control)?;
    let at_end = model.model(&learned.theta, learned.likelihood)?;
    Ok(Learnt {
        tightness: tightness(&at_end, &learned.fit, &learning.settings)?,
        theta: learned.theta,
        likelihood: learned.likelihood,
        learnt: true,
        status: learned.status,
        iterations: learned.iterations,
        solver_seconds: learned.seconds,
        fit: learned.fit,
    })
}

/// Mean and variance of the linear predictors of rows of another table, offsets and effects of rows and groups unknown so far
/// included.
///
/// # Errors
/// What [`jensen_latent::predict`] refuses.
pub fn posterior_at(
    model: &TableModel,
    stored: &Stored,
    at: &Prediction,
) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let fixed = model.model(&stored.theta, stored.likelihood)?;
    let moments = jensen_latent::predict(&fixed, &stored.dual, &at.query)?;
    let mean = (moments.iter().zip(&at.offset)).map(|((m, _), offset)| m + offset);
    let times = stored.likelihood.predictors();
    let added = at.fresh.added();
    let variance = (moments.iter().enumerate()).map(|(i, (_, v))| v + added[i / times]);
    Ok((mean.collect(), variance.collect()))
}
