//! Factor analysis of votes: variational EM over the loadings, entries held out.

use jensen::data::Table;
use jensen::latent::{
    Dense, FactorFit, FactorModel, FactorSettings, Likelihood, SiteBound, fit_factors,
};
use jensen::report::figure::{Axis, Chart, Figure, Series};
use jensen::run::{Budget, Control, Silent};
use serde::{Deserialize, Serialize};

use super::race::identity;
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

/// Every how many-th vote is held out.
const HELD: usize = 10;

/// Issues voted on.
const ISSUES: usize = 16;

/// The House votes of 1984: 1 for yes, 0 for no, NaN where a member did not vote; the party of each member.
fn votes(context: &Context<'_>) -> Result<(Dense, Vec<String>), Failure> {
    let table = Table::read(&context.data("votes/house_votes_84.csv")?)?;
    let columns = table.columns();
    let mut data = Vec::with_capacity(ISSUES * table.rows());
    for column in &columns[1..=ISSUES] {
        let levels = column.levels();
        for code in column.codes(&levels)? {
            data.push(code.map_or(f64::NAN, |c| f64::from(levels[c] == "y")));
        }
    }
    let parties = columns[0].levels();
    let members = columns[0].codes(&parties)?;
    Ok((
        Dense {
            rows: table.rows(),
            cols: ISSUES,
            data,
        },
        members
            .into_iter()
            .map(|m| m.map_or(String::new(), |p| parties[p].clone()))
            .collect(),
    ))
}

/// One fit.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    bound: f64,
    /// Mean log loss of the held-out votes, in nats, and its standard error over votes.
    loss: f64,
    error: f64,
    iterations: u64,
    seconds: f64,
    /// Means of the first two scores.
    scores: Vec<(f64, f64)>,
}

/// `E σ(η)` for η ~ N(mean, variance), by the trapezoid rule over eight standard deviations to either side.
fn probability(mean: f64, variance: f64) -> f64 {
    let (steps, reach) = (160, 8.0);
    let (mut sum, mut total) = (0.0, 0.0);
    for i in 0..=steps {
        let x = reach * (2.0 * f64::from(i) / f64::from(steps) - 1.0);
        let weight = (-0.5 * x * x).exp();
        total += weight;
        sum += weight / (1.0 + (-(mean + variance.sqrt() * x)).exp());
    }
    sum / total
}

fn held_out(full: &Dense, fit: &FactorFit, hidden: &[(usize, usize)]) -> (f64, f64) {
    let losses: Vec<f64> = hidden
        .iter()
        .map(|&(row, column)| {
            let (mean, variance) = fit.predictor(row, column);
            let towards = if full.get(row, column) == 1.0 {
                mean
            } else {
                -mean
            };
            -probability(towards, variance).ln()
        })
        .collect();
    let n = losses.len() as f64;
    let mean = losses.iter().sum::<f64>() / n;
    let spread = losses.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (spread / n).sqrt())
}

pub(super) fn votes_of_the_house(context: &mut Context<'_>) -> Result<(), Failure> {
    let (full, parties) = votes(context)?;
    let seen: Vec<(usize, usize)> = (0..full.rows)
        .flat_map(|r| (0..full.cols).map(move |c| (r, c)))
        .filter(|&(r, c)| !full.get(r, c).is_nan())
        .collect();
    let hidden: Vec<(usize, usize)> = seen.iter().copied().skip(3).step_by(HELD).collect();
    let mut table = full.clone();
    for &(row, column) in &hidden {
        table.data[column * table.rows + row] = f64::NAN;
    }
    let most = context.pick(3, 5);
    let bounds = [SiteBound::Tilted, SiteBound::Bohning, SiteBound::Exact];
    let mut losses = Chart::new("Votes: held-out log loss")
        .x(Axis::new("factors"))
        .y(Axis::new("nats a vote"));
    let mut scores = None;
    for (number, bound) in bounds.into_iter().enumerate() {
        let mut line = Vec::new();
        for factors in 1..=most {
            let found: Found =
                context.keep(&format!("votes/{}-{factors}", bound.name()), |context| {
                    context.say(format!("Votes: {} factors, {}", factors, bound.name()));
                    context.check_stopped()?;
                    let epoch = crate::now();
                    let clock = || epoch.elapsed().as_secs_f64();
                    let mut silent = Silent;
                    let mut control = Control::new(Budget::iterations(500), &clock, &mut silent);
                    control.cancel = context.cancel();
                    let model = FactorModel {
                        table: table.clone(),
                        factors,
                        likelihood: Likelihood::bernoulli(),
                        bound,
                    };
                    let settings = FactorSettings {
                        ridge: RIDGE,
                        tolerance: 0.01,
                        ..FactorSettings::default()
                    };
                    let fit = fit_factors(&model, &settings, &identity(), &mut control)
                        .map_err(jensen::Error::from)?;
                    let (loss, error) = held_out(&full, &fit, &hidden);
                    let second = factors.min(2) - 1;
                    Ok(Found {
                        bound: fit.bound,
                        loss,
                        error,
                        iterations: fit.iterations,
                        seconds: fit.seconds,
                        scores: (0..full.rows)
                            .map(|r| (fit.scores.get(r, 0), fit.scores.get(r, second)))
                            .collect(),
                    })
                })?;
            let name = |what: &str| {
                let plural = if factors == 1 { "" } else { "s" };
                format!(
                    "Votes, {} bound, {factors} factor{plural}: {what}",
                    bound.name()
                )
            };
            let note = format!("{} iterations, {:.1} s", found.iterations, found.seconds);
            context.row(What::new(name("bound"), "nats"), |_| {
                Ok(Ours::value(found.bound).note(note))
            })?;
            context.row(What::new(name("held-out log loss"), "nats"), |_| {
                Ok(Ours::value(found.loss).se(found.error).note(format!(
                    "a vote, of {} held out; se over votes",
                    hidden.len()
                )))
            })?;
            line.push((factors as f64, found.loss));
            if bound == SiteBound::Tilted && factors == 2 {
                scores = Some(found.scores);
            }
        }
        losses = losses.series(Series::line(bound.name(), line).marked().colour(number));
    }
    let mut figure = Figure::new("Factor analysis of votes in the House, 1984").panel(losses);
    if let Some(scores) = scores {
        let mut chart = Chart::new("Members by their two scores, tilted bound")
            .x(Axis::new("first score"))
            .y(Axis::new("second score"));
        let mut names = parties.clone();
        names.sort();
        names.dedup();
        for (number, party) in names.iter().enumerate() {
            let members = scores.iter().zip(&parties).filter(|(_, p)| *p == party);
            let points: Vec<(f64, f64)> = members.map(|(s, _)| *s).collect();
            chart = chart.series(Series::scatter(party, points).colour(number));
        }
        figure = figure.panel(chart);
    }
    context.figure("factors", &figure)
}

/// Precision of the prior on the loadings.
const RIDGE: f64 = 1.0;
