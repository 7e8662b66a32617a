//! A fit in numbers: `fit.json`.

use jensen_data::ParameterSummary;
use jensen_latent::prior::{Index, Piece, Reader};
use jensen_latent::{Fit, Likelihood, Settings, Tightness};
use jensen_math::special::inv_phi;
use jensen_run::Reason;
use serde::{Deserialize, Deserializer, Serialize};

use super::TableModel;
use crate::study::{Evidence, Judgement, Work};

/// Most latent variables of a part that are listed.
const LISTED: usize = 1000;

/// A hyperparameter and its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hyperparameter {
    /// `gp.lengthscale`, `likelihood.variance`, ….
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Learnt by maximising the bound; fixed or at its start where not.
    pub learnt: bool,
}

/// Wall-clock seconds of the parts of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatentSeconds {
    /// Reading the data and making prior and design.
    pub build: f64,
    /// The fit, hyperparameters included.
    pub fit: f64,
    /// Predictions and reports.
    pub results: f64,
}

/// A fit in numbers. Field names and meanings are stable; fields may be added at the end. Numbers that are not finite are
/// `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatentSummary {
    /// How the run ended and what speaks against it; `converged` where the gap, or the estimated improvement, is below the
    /// tolerance, hyperparameters included where they were learnt.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// The lower bound on log p(y) in nats, all constants kept.
    #[serde(deserialize_with = "null_is_nan")]
    pub bound: f64,
    /// How much it could still rise at these hyperparameters, by the dual; `null` where there is no convex dual.
    pub gap: Option<f64>,
    /// Seconds in the solver.
    pub solver_seconds: f64,
    /// The bound again: it is computed without Monte Carlo error.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo: f64,
    /// The objective: `exact`, `tilted`, ….
    pub objective: String,
    /// The solver.
    pub solver: String,
    /// The likelihood.
    pub likelihood: String,
    /// The prior as it was given.
    pub prior: String,
    /// Observations.
    pub observations: usize,
    /// Latent variables.
    pub dim: usize,
    /// Iterations of the solver, those on the way to the hyperparameters included.
    pub iterations: u64,
    /// Where the time went.
    pub seconds: LatentSeconds,
    /// Seed of the run; restarts use it.
    pub seed: u64,
    /// Version of Jensen.
    pub version: String,
    /// All hyperparameters.
    pub hyperparameters: Vec<Hyperparameter>,
    /// Posterior of covariates' effects, groups and fields of up to 1000 nodes; of linear predictors under a Gaussian process.
    pub parameters: Vec<ParameterSummary>,
    /// Nats an observation by which the bound on `E[−log p]` lies above the expectation; `null` where that has a closed form
    /// and was maximised itself.
    #[serde(default)]
    pub slack: Option<f64>,
    /// Nats an observation by which that expectation is uncertain, by quadrature.
    #[serde(default)]
    pub slack_error: Option<f64>,
    /// Standard deviations of the linear predictors over those that the exact expectation leads to: the median ratio.
    #[serde(default)]
    pub sd_ratio: Option<f64>,
}

fn null_is_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Everything that a summary is made from.
pub struct Made<'a> {
    /// The model.
    pub model: &'a TableModel,
    /// The prior's free hyperparameters.
    pub theta: &'a [f64],
    /// The likelihood with its parameters.
    pub likelihood: Likelihood,
    /// Whether hyperparameters were learnt.
    pub learnt: bool,
    /// The settings of the solver.
    pub settings: Settings,
    /// The fit.
    pub fit: &'a Fit,
    /// How tight its bound is.
    pub tightness: Option<Tightness>,
    /// Iterations and seconds of solvers over the whole run.
    pub iterations: u64,
    /// Seconds in solvers.
    pub solver_seconds: f64,
    /// How the run as a whole ended.
    pub status: &'a jensen_run::Status,
    /// Where the time went.
    pub seconds: LatentSeconds,
    /// The seed.
    pub seed: u64,
}

/// A normal distribution as a row of the table.
fn normal(name: String, mean: f64, variance: f64) -> ParameterSummary {
    let sd = variance.sqrt();
    let tail = -inv_phi(0.05) * sd;
    ParameterSummary::of(name, mean, sd, [mean - tail, mean, mean + tail])
}

/// What the latent variables of a part are called, in order.
pub(super) fn labels(piece: &Piece) -> Vec<String> {
    let count = piece.latents.len();
    let numbered = || {
        (1..=count)
            .map(|i| format!("{}[{i}]", piece.name))
            .collect()
    };
    match &piece.reader {
        Reader::Common => vec![piece.name.clone(); count],
        Reader::Covariates(list) => (list.iter())
            .map(|c| format!("{}[{}]", piece.name, c.name()))
            .collect(),
        Reader::At(Index::Groups { levels, .. }) => (levels.iter())
            .map(|level| format!("{}[{level}]", piece.name))
            .collect(),
        Reader::At(Index::Line { from, step, .. }) => (0..count)
            .map(|i| format!("{}[{}]", piece.name, from + step * i as f64))
            .collect(),
        Reader::At(Index::Regions { first, nodes, .. }) => (0..count)
            .map(|i| match i < *nodes {
                true => format!("{}[{}]", piece.name, i + first),
                false => format!("{}.structured[{}]", piece.name, i - nodes + first),
            })
            .collect(),
        _ => numbered(),
    }
}

fn parameters(made: &Made<'_>) -> Vec<ParameterSummary> {
    let fit = made.fit;
    let times = made.likelihood.predictors();
    let copy = |name: String, k: usize| match times {
        1 => name,
        _ => format!("{name}.{}", k + 1),
    };
    let mut rows = Vec::new();
    let pieces = made.model.assembled().pieces();
    if pieces.iter().all(|p| p.latents.is_empty()) {
        let n = fit.predictor_mean.len();
        for i in 0..if n <= LISTED { n } else { 0 } {
            let row = made.model.rows()[i / times];
            rows.push(normal(
                copy(format!("eta[{}]", row + 1), i % times),
                fit.predictor_mean[i],
                fit.predictor_variance[i],
            ));
        }
        return rows;
    }
    // Effects of covariates first: they are what a reader looks for.
    let effect = |p: &&Piece| matches!(p.reader, Reader::Covariates(_) | Reader::Common);
    let others = pieces
        .iter()
        .filter(|p| !effect(p) && p.latents.len() <= LISTED);
    for piece in pieces.iter().filter(effect).chain(others) {
        for (l, label) in piece.latents.clone().zip(labels(piece)) {
            for k in 0..times {
                let at = l * times + k;
                rows.push(normal(
                    copy(label.clone(), k),
                    fit.mean[at],
                    fit.variance[at],
                ));
            }
        }
    }
    rows
}

/// What speaks against a bound, for all that it is at its maximum.
fn looseness(made: &Made<'_>) -> Vec<Reason> {
    let Some(tightness) = made.tightness else {
        return Vec::new();
    };
    let mut reasons = Vec::new();
    if tightness.is_loose() {
        reasons.push(Reason::new(
            format!(
                "the bound `{}` is loose: standard deviations are about {:.2} of what they should be",
                made.model.bound().name(),
                tightness.sd_ratio
            ),
            "Maximise the expectation itself (--bound exact).",
        ));
    }
    if tightness.is_coarse() {
        reasons.push(Reason::new(
            format!(
                "quadrature leaves {:.1e} nats an observation uncertain",
                tightness.error
            ),
            "Let it choose its nodes (leave --nodes out).",
        ));
    }
    reasons
}

/// What a fit shows of itself.
pub fn evidence(made: &Made<'_>) -> Evidence {
    let (model, fit) = (made.model, made.fit);
    let settings = model.settings();
    let mut notes: Vec<String> = model.notes().to_vec();
    notes.extend(fit.notes.iter().cloned());
    let unset: Vec<&str> = (settings.iter())
        .filter(|s| s.free)
        .map(|s| s.name.as_str())
        .collect();
    if !made.learnt && !unset.is_empty() {
        let (stand, them) = match unset.len() {
            1 => ("was not given and stands at its starting value", "it"),
            _ => ("were not given and stand at their starting values", "them"),
        };
        let named = match unset.len() {
            1..=4 => unset.join(", "),
            n => format!("{n} hyperparameters"),
        };
        notes.push(format!(
            "{named} {stand}; learn {them} (without --fixed) or give {them}"
        ));
    }
    // The solver's word stands for a run whose search for hyperparameters is over.
    let status = match made.status.is_converged() {
        true => &fit.status,
        false => made.status,
    };
    let mut evidence = Evidence {
        notes,
        ..Evidence::new(status.clone(), Work::UntilItConverges)
    };
    if !fit.bound.is_finite() {
        evidence.against.against(Reason::new(
            "the bound is not finite",
            "Check the scale of the data and the hyperparameters.",
        ));
    }
    looseness(made)
        .into_iter()
        .for_each(|reason| evidence.against.against(reason));
    evidence
}

/// The summary of a fit.
pub fn summary(made: &Made<'_>, judgement: Judgement) -> LatentSummary {
    let (model, fit) = (made.model, made.fit);
    let mut theta = made.theta.iter();
    let likelihood_values = made.likelihood.values();
    let settings = model.settings();
    let prior_settings = settings.len() - likelihood_values.len();
    let hyperparameters = settings
        .iter()
        .enumerate()
        .map(|(i, setting)| Hyperparameter {
            name: setting.name.clone(),
            value: match i.checked_sub(prior_settings) {
                Some(own) => likelihood_values[own],
                None if setting.free => theta.next().copied().unwrap_or(setting.value),
                None => setting.value,
            },
            learnt: made.learnt && setting.free,
        })
        .collect();
    LatentSummary {
        judgement,
        bound: fit.bound,
        gap: fit.gap,
        solver_seconds: made.solver_seconds,
        elbo: fit.bound,
        objective: model.bound().name().to_owned(),
        solver: made.settings.solver.name().to_owned(),
        likelihood: made.likelihood.name().to_owned(),
        prior: model.request().prior.clone(),
        observations: model.rows().len(),
        dim: fit.mean.len(),
        iterations: made.iterations,
        seconds: made.seconds,
        seed: made.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hyperparameters,
        parameters: parameters(made),
        slack: made.tightness.map(|t| t.slack),
        slack_error: made.tightness.map(|t| t.error),
        sd_ratio: made.tightness.map(|t| t.sd_ratio),
    }
}
