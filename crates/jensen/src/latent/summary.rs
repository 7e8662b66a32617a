//! The contents of `fit.json` for a latent Gaussian model.

use jensen_data::ParameterSummary;
use jensen_latent::prior::{Covariate, Index, Piece, Reader, Repeats};
use jensen_latent::{Kept, Marginal, Normality, Settings, Tightness};
use jensen_run::{Reason, Status};
use serde::{Deserialize, Deserializer, Serialize};

use super::left_out::CrossValidation;
use super::plain::Comparison;
use super::posterior::{Part, moments, quantile};
use super::{Known, Learnt, TableModel};
use crate::job::{Evidence, Judgement, Work};

/// The largest accepted error of a basis function approximation, as a fraction of the variance of the process. An error
/// of this size changes standard deviations by about 5 %.
const TRUNCATION: f64 = 0.1;

const LISTED: usize = 1000;

/// A hyperparameter with its value and its posterior.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hyperparameter {
    /// The name of the hyperparameter, such as `gp.lengthscale` or `likelihood.variance`.
    pub name: String,
    /// The value of the hyperparameter, or its posterior median if the fit integrated over it.
    pub value: f64,
    /// Whether the value was learnt by the fit. Otherwise, the user gave the value, or it is the starting value.
    pub learnt: bool,
    /// The posterior mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The posterior standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// The 5 % quantile of the posterior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q05: Option<f64>,
    /// The 95 % quantile of the posterior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q95: Option<f64>,
    /// The shift of the hyperparameter under the exact bound, in posterior standard deviations. The shift is absent if
    /// the fit itself uses the exact bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misplaced: Option<f64>,
}

/// The wall-clock time that each stage of a fit took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatentSeconds {
    /// The time for reading the data and for building the prior and the design, in seconds.
    pub build: f64,
    /// The time for the fit in seconds, including the search for the hyperparameters.
    pub fit: f64,
    /// The time for computing predictions and writing reports, in seconds.
    pub results: f64,
}

/// The contents of `fit.json` for a latent Gaussian model. The names and meanings of the fields do not change between
/// versions. Later versions may add fields at the end. Numbers that are not finite are written as `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatentSummary {
    /// The status at the end of the run, with the verdict. `converged` means that the gap or the estimated improvement
    /// is below the tolerance. If hyperparameters are learnt, the search for the hyperparameters must also have
    /// converged.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// The lower bound on log p(y) in nats at the mode of the hyperparameters, including all constants.
    #[serde(deserialize_with = "null_is_nan")]
    pub bound: f64,
    /// An upper bound on the possible further increase of `bound` at these hyperparameters. The gap is computed from
    /// the dual problem, and is `null` if the bound has no convex dual.
    pub gap: Option<f64>,
    /// The time in seconds that the solver took.
    pub solver_seconds: f64,
    /// The same value as `bound`, under the name that other kinds of fits use. This value has no Monte Carlo error.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo: f64,
    /// The name of the bound on the expected log likelihood, such as `exact` or `tilted`.
    pub objective: String,
    /// The name of the solver.
    pub solver: String,
    /// The name of the likelihood.
    pub likelihood: String,
    /// The prior as the user specified it.
    pub prior: String,
    /// The number of observations.
    pub observations: usize,
    /// The number of latent variables.
    pub dim: usize,
    /// The number of iterations of the solver, including iterations during the search for the hyperparameters.
    pub iterations: u64,
    /// The wall-clock time that each stage of the fit took.
    pub seconds: LatentSeconds,
    /// The seed of the run. Only random restarts use this seed.
    pub seed: u64,
    /// The version of Jensen that wrote the file.
    pub version: String,
    /// All hyperparameters, including those with fixed values.
    pub hyperparameters: Vec<Hyperparameter>,
    /// The posterior of the effects of covariates and groups, and of fields with up to 1000 nodes. For a Gaussian
    /// process, the field contains the posterior of the linear predictors.
    pub parameters: Vec<ParameterSummary>,
    /// The difference between the bound on `E[−log p]` and the exact expectation, in nats per observation. The value is
    /// `null` if the fit maximised an expectation with a closed form.
    #[serde(default)]
    pub slack: Option<f64>,
    /// The quadrature error of the exact expectation of the log likelihood, in nats per observation.
    #[serde(default)]
    pub slack_error: Option<f64>,
    /// The median of the ratios between the standard deviations of the linear predictors under the bound and under the
    /// exact expectation.
    #[serde(default)]
    pub sd_ratio: Option<f64>,
    /// The largest difference of a mean of a latent variable or linear predictor from that of the exact posterior at the
    /// mode of the hyperparameters, in standard deviations and beyond the error of the draws that measure it. The value is
    /// `null` if it was not measured.
    #[serde(default)]
    pub exact_shift: Option<f64>,
    /// The largest ratio between a standard deviation of the exact posterior and that of the fit, or its reciprocal if that
    /// is larger, measured in the same way.
    #[serde(default)]
    pub exact_sd_ratio: Option<f64>,
    /// The logarithm of the integral of exp(bound) over the hyperparameters, or `null` if the fit did not integrate
    /// over them.
    #[serde(default)]
    pub evidence: Option<f64>,
    /// An estimate of the error of `evidence`, computed as its difference from the result of a second integration rule.
    #[serde(default)]
    pub evidence_error: Option<f64>,
    /// The leave-one-out cross-validation, or `null` for categories and if the results are not stored.
    #[serde(default)]
    pub leave_one_out: Option<CrossValidation>,
    /// The comparison with a plain baseline model, in nats per observation. Both the fit and the baseline predict each
    /// observation from all other observations.
    #[serde(default)]
    pub plain: Option<Comparison>,
}

fn null_is_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// The results of a fit from which its summary is computed.
pub struct Made<'a> {
    /// The model.
    pub model: &'a TableModel,
    /// The fitted model with its hyperparameters.
    pub learnt: &'a Learnt,
    /// The posterior of the latent variables and of the linear predictors.
    pub known: &'a Known,
    /// The settings that the solver used.
    pub settings: Settings,
    /// The wall-clock time that each stage of the fit took.
    pub seconds: LatentSeconds,
    /// The seed.
    pub seed: u64,
}

fn row(name: String, parts: &[Part], at: usize) -> ParameterSummary {
    let (mean, variance) = moments(parts, at);
    let quantiles = [0.05, 0.5, 0.95].map(|p| quantile(parts, at, p));
    ParameterSummary::of(name, mean, variance.sqrt(), quantiles)
}

pub(super) fn labels(piece: &Piece) -> Vec<String> {
    let one = node_labels(piece);
    let nodes: Vec<String> = match &piece.repeats {
        None => one,
        Some(repeats) if repeats.is_constrained() => (1..=piece.nodes())
            .map(|i| format!("{}[{i}]", piece.name))
            .collect(),
        Some(repeats) => (0..repeats.count())
            .flat_map(|copy| {
                let value = repeats.label(copy);
                one.iter()
                    .map(move |node| within(node, &value))
                    .collect::<Vec<_>>()
            })
            .collect(),
    };
    if piece.is_plain() {
        return nodes;
    }
    let both = |node: &String| -> Vec<String> {
        let factors = piece.factors.iter();
        factors
            .map(|factor| {
                let name = factor.as_ref().map_or("1".to_owned(), Covariate::name);
                within(node, &name)
            })
            .collect()
    };
    nodes.iter().flat_map(both).collect()
}

/// Adds an index to a label: `name[node]` becomes `name[node,index]`.
fn within(label: &str, index: &str) -> String {
    match label.strip_suffix(']') {
        Some(open) => format!("{open},{index}]"),
        None => format!("{label}[{index}]"),
    }
}

/// Returns the labels of the nodes of one copy.
fn node_labels(piece: &Piece) -> Vec<String> {
    let count = piece.nodes() / piece.repeats.as_ref().map_or(1, Repeats::count);
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
        Reader::At(Index::Times(times)) => (times.nodes.iter())
            .map(|x| format!("{}[{x}]", piece.name))
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
    let known = made.known;
    let times = made.model.likelihood().predictors();
    let copy = |name: String, k: usize| match times {
        1 => name,
        _ => format!("{name}.{}", k + 1),
    };
    let mut rows = Vec::new();
    let pieces = made.model.assembled().pieces();
    if pieces.iter().all(|p| p.latents.is_empty()) {
        let n = known.predictors[0].moments.len();
        for i in 0..if n <= LISTED { n } else { 0 } {
            let number = made.model.rows()[i / times];
            let name = copy(format!("eta[{}]", number + 1), i % times);
            rows.push(row(name, &known.predictors, i));
        }
        return rows;
    }
    // The effects of covariates come first, because they are what most readers look for.
    let effect = |p: &&Piece| matches!(p.reader, Reader::Covariates(_) | Reader::Common);
    let others = pieces
        .iter()
        // Coefficients of functions mean nothing alone.
        .filter(|p| !effect(p))
        .filter(|p| {
            !matches!(
                p.reader,
                Reader::Basis(_)
                    | Reader::Inducing(_)
                    | Reader::Mesh(_)
                    | Reader::Tensor(_)
                    | Reader::Radial(_)
            )
        })
        .filter(|p| !(p.repeats.as_ref()).is_some_and(Repeats::is_constrained))
        .filter(|p| p.latents.len() <= LISTED);
    for piece in pieces.iter().filter(effect).chain(others) {
        for (l, label) in piece.latents.clone().zip(labels(piece)) {
            for k in 0..times {
                let at = l * times + k;
                rows.push(row(copy(label.clone(), k), &known.latents, at));
            }
        }
    }
    rows
}

fn looseness(made: &Made<'_>) -> Vec<Reason> {
    let Some(tightness) = made.learnt.tightness else {
        return Vec::new();
    };
    let mut reasons = Vec::new();
    let settings = made.model.settings();
    let free = settings.iter().filter(|s| s.free);
    let farthest = (free.zip(&made.learnt.misplaced))
        .filter(|(_, misplaced)| misplaced.abs() > Tightness::MISPLACED)
        .max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()));
    if let Some((setting, misplaced)) = farthest {
        reasons.push(Reason::new(
            format!(
                "the bound `{}` is loose: its estimate of {} is {:.1} standard deviations too {}",
                made.model.bound().name(),
                setting.name,
                misplaced.abs(),
                if *misplaced > 0.0 { "low" } else { "high" }
            ),
            "Maximise the exact expectation (--bound exact).",
        ));
    }
    if tightness.is_loose() {
        reasons.push(Reason::new(
            format!(
                "the bound `{}` is loose: standard deviations are about {:.2} times their exact values",
                made.model.bound().name(),
                tightness.sd_ratio
            ),
            "Maximise the exact expectation (--bound exact).",
        ));
    }
    if tightness.is_coarse() {
        reasons.push(Reason::new(
            format!(
                "the quadrature error is {:.1e} nats per observation",
                tightness.error
            ),
            "Remove --nodes, so that Jensen chooses their number.",
        ));
    }
    reasons
}

/// Returns the reason to distrust a normal approximation of a posterior that is not normal.
fn skewed(made: &Made<'_>) -> Option<Reason> {
    let found = made.learnt.normality.filter(Normality::is_far)?;
    Some(Reason::new(
        format!(
            "the posterior is not normal: exact means differ by up to {:.2} standard deviations, and exact standard deviations \
             by a factor of up to {:.2}",
            found.shift, found.sd_ratio
        ),
        "Add rows, give the effects narrower priors, or sample the model as a Stan program (`jensen fit`, or `jensen regress` \
         for a formula).",
    ))
}

fn behind(made: &Made<'_>) -> Option<Reason> {
    let plain = made
        .learnt
        .plain
        .as_ref()
        .filter(|plain| plain.is_worse())?;
    Some(Reason::new(
        format!(
            "{} predicts better: {:.4} nats per observation given the others, but this fit only {:.4} \
             (difference ± {:.4})",
            plain.model, plain.plain, plain.own, plain.error
        ),
        "Use a weaker prior, or learn its hyperparameters from other starting values (--restarts).",
    ))
}

/// Returns the reasons to distrust basis functions that do not represent their process.
fn truncated(made: &Made<'_>) -> Vec<Reason> {
    let assembled = made.model.assembled();
    let at_mode = assembled.truncation(&made.learnt.theta).unwrap_or_default();
    // The mean over the hyperparameters' posterior.
    let mut errors = vec![0.0; at_mode.len()];
    for point in &made.learnt.points {
        let found = assembled.truncation(&point.theta).unwrap_or_default();
        for (sum, (_, own)) in errors.iter_mut().zip(&found) {
            *sum += point.weight * own.error;
        }
    }
    (at_mode.iter().zip(errors))
        .filter(|(_, error)| *error > TRUNCATION)
        .map(|((name, own), error)| {
            let (counts, boundary) = &own.advice;
            let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
            let counts = match counts.as_slice() {
                [one] => one.clone(),
                several => format!("({})", several.join(", ")),
            };
            Reason::new(
                format!(
                    "the basis functions of `{name}` change covariances by up to {:.0} % of the variance",
                    100.0 * error
                ),
                format!("Use other functions: basis={counts}, boundary={boundary}."),
            )
        })
        .collect()
}

/// Returns the reasons to distrust meshes that do not represent their field.
fn coarse(made: &Made<'_>) -> Vec<Reason> {
    let assembled = made.model.assembled();
    let at_mode = (assembled.discretisation(&made.learnt.theta)).unwrap_or_default();
    let mut errors = vec![0.0; at_mode.len()];
    if errors.is_empty() {
        return Vec::new();
    }
    for point in &made.learnt.points {
        let found = assembled.discretisation(&point.theta).unwrap_or_default();
        for (sum, (_, own)) in errors.iter_mut().zip(&found) {
            *sum += point.weight * own.error;
        }
    }
    (at_mode.iter().zip(errors))
        .filter(|(_, error)| *error > TRUNCATION)
        .map(|((name, own), error)| {
            Reason::new(
                format!(
                    "the mesh of `{name}` changes variances by {:.0} % on average",
                    100.0 * error
                ),
                format!(
                    "Use another mesh: edge={}, extension={}.",
                    own.edge, own.extension
                ),
            )
        })
        .collect()
}

/// The largest accepted difference of a mean from that of the exact posterior, in standard deviations, and of a ratio of
/// standard deviations from 1.
const DIFFERENCE: f64 = 0.1;

/// Returns the reason to distrust inducing points that do not represent their process.
fn sparse(made: &Made<'_>) -> Option<Reason> {
    let found = made.learnt.inducing?;
    if found.mean <= DIFFERENCE && found.sd_ratio <= 1.0 + DIFFERENCE {
        return None;
    }
    let fit = &made.learnt.fit;
    let loss = fit.lambda.iter().zip(&fit.residual_variance);
    let loss = 0.5 * loss.map(|(l, c)| l * c).sum::<f64>() / fit.lambda.len() as f64;
    Some(Reason::new(
        format!(
            "with more inducing points, the linear predictors would move by {:.2} of their standard deviations, which would \
             be {:.2} times smaller; these points cost {loss:.4} nats per observation",
            found.mean, found.sd_ratio
        ),
        format!(
            "Use more points (inducing={}).",
            2 * made.model.assembled().inducing_points()
        ),
    ))
}

/// Returns the evidence on which the verdict on a fit is based.
pub fn evidence(made: &Made<'_>) -> Evidence {
    let (model, learnt, fit) = (made.model, made.learnt, &made.learnt.fit);
    let settings = model.settings();
    let mut notes: Vec<String> = model.notes().to_vec();
    notes.extend(fit.notes.iter().cloned());
    let unset: Vec<&str> = (settings.iter())
        .filter(|s| s.free)
        .map(|s| s.name.as_str())
        .collect();
    if !learnt.learnt && !unset.is_empty() {
        let (stand, them) = match unset.len() {
            1 => ("was not given and keeps its starting value", "it"),
            _ => ("were not given and keep their starting values", "them"),
        };
        let named = match unset.len() {
            1..=4 => unset.join(", "),
            n => format!("{n} hyperparameters"),
        };
        notes.push(format!(
            "{named} {stand}; learn {them} (without --fixed) or give {them}"
        ));
    }
    if let Some(Kept::Many(count)) = learnt.kept {
        notes.push(format!(
            "{count} hyperparameters are too many to integrate over, so Jensen fixes them at their mode. \
             Intervals are conditional on that mode"
        ));
    }
    // If the search for the hyperparameters has converged, the run has the status of the solver.
    let status = match learnt.status.is_converged() {
        true => &fit.status,
        false => &learnt.status,
    };
    let advice = match status {
        Status::Stalled { .. } => Some(
            "Give a walk fewer nodes (`step=`), remove terms that can replace each other, or try another \
             solver (--solver primal).",
        ),
        Status::Diverged { .. } => Some(
            "Check the response for extreme values, or start the hyperparameters elsewhere (`name~value`).",
        ),
        _ => None,
    };
    let mut evidence = Evidence {
        notes,
        advice,
        ..Evidence::new(status.clone(), Work::UntilItConverges)
    };
    if !fit.bound.is_finite() {
        evidence.against.against(Reason::new(
            "the bound is not finite",
            "Check the scale of the data and the hyperparameters.",
        ));
    }
    if learnt.kept == Some(Kept::Stopped) {
        evidence.against.against(Reason::new(
            "the time limit ended the fit before the integration over hyperparameters: intervals are \
             conditional on their mode",
            "Allow more time (--max-seconds), or choose --hyperparameters point.",
        ));
    }
    if learnt.kept == Some(Kept::Higher) {
        evidence.against.against(Reason::new(
            "the posterior of the hyperparameters is higher elsewhere than at the end of the search: intervals are \
             conditional on that end",
            "Search from more starting values (--restarts 5), or start elsewhere (`name~value`).",
        ));
    }
    (looseness(made).into_iter())
        .chain(truncated(made))
        .chain(coarse(made))
        .chain(sparse(made))
        .chain(skewed(made))
        .chain(behind(made))
        .for_each(|reason| evidence.against.against(reason));
    evidence
}

/// Returns the hyperparameters in the units of the table.
fn hyperparameters(made: &Made<'_>) -> Vec<Hyperparameter> {
    let learnt = made.learnt;
    let settings = made.model.settings();
    let likelihood = learnt.likelihood.values();
    let own = settings.len() - likelihood.len();
    let mut theta = learnt.theta.iter();
    let mut marginals = learnt.hyper.iter().flat_map(|h| &h.marginals);
    let mut misplaced = learnt.misplaced.iter().copied();
    let row = |name: &str, unit: f64, mode: f64, marginal: Option<&Marginal>| {
        let moments = marginal.map(|m| m.moments());
        let quantile = |p: f64| marginal.map(|m| unit * m.quantile(p));
        Hyperparameter {
            name: name.to_owned(),
            value: quantile(0.5).unwrap_or(unit * mode),
            mean: moments.map(|(mean, _)| unit * mean),
            sd: moments.map(|(_, sd)| unit * sd),
            q05: quantile(0.05),
            q95: quantile(0.95),
            ..Hyperparameter::default()
        }
    };
    let each = settings.iter().enumerate().map(|(i, setting)| {
        let mode = match i.checked_sub(own) {
            Some(k) => likelihood[k],
            None if setting.free => theta.next().copied().unwrap_or(setting.value),
            None => setting.value,
        };
        let marginal = if setting.free { marginals.next() } else { None };
        Hyperparameter {
            learnt: learnt.learnt && setting.free,
            misplaced: if setting.free { misplaced.next() } else { None },
            ..row(&setting.name, setting.unit, mode, marginal)
        }
    });
    let mut rows: Vec<Hyperparameter> = each.collect();
    let assembled = made.model.assembled();
    let modes = assembled.derived_at(&learnt.theta).unwrap_or_default();
    for (i, (quantity, mode)) in assembled.derived().iter().zip(modes).enumerate() {
        let marginal = learnt.hyper.as_ref().map(|hyper| &hyper.derived[i]);
        rows.push(Hyperparameter {
            learnt: learnt.learnt,
            ..row(&quantity.name, quantity.unit, mode, marginal)
        });
    }
    rows
}

/// Returns the contents of `fit.json`.
pub fn summary(made: &Made<'_>, judgement: Judgement) -> LatentSummary {
    let (model, learnt, fit) = (made.model, made.learnt, &made.learnt.fit);
    let tightness = learnt.tightness;
    let bound = model.bound_outside(fit.bound);
    LatentSummary {
        judgement,
        bound,
        gap: fit.gap,
        solver_seconds: learnt.solver_seconds,
        elbo: bound,
        objective: model.bound().name().to_owned(),
        solver: made.settings.solver.name().to_owned(),
        likelihood: learnt.likelihood.name().to_owned(),
        prior: model.request().prior.clone(),
        observations: model.rows().len(),
        dim: fit.mean.len(),
        iterations: learnt.iterations,
        seconds: made.seconds,
        seed: made.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hyperparameters: hyperparameters(made),
        parameters: parameters(made),
        slack: tightness.map(|t| t.slack),
        slack_error: tightness.map(|t| t.error),
        sd_ratio: tightness.map(|t| t.sd_ratio),
        exact_shift: learnt.normality.map(|n| n.shift),
        exact_sd_ratio: learnt.normality.map(|n| n.sd_ratio),
        evidence: (learnt.hyper.as_ref()).map(|hyper| model.bound_outside(hyper.evidence)),
        evidence_error: learnt.hyper.as_ref().map(|hyper| hyper.error),
        leave_one_out: None,
        plain: learnt.plain.clone(),
    }
}
