//! Factor analysis of votes by variational EM for the loadings. Some of the votes are held out.

use jensen::data::{Column, Table};
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

const HELD: usize = 10;

/// The votes of a chamber (1 for yes, 0 for no, and NaN for members who did not vote), and the party of each member.
struct Chamber {
    name: &'static str,
    title: &'static str,
    figure: &'static str,
    votes: Dense,
    parties: Vec<String>,
}

fn words(column: &Column) -> Result<Vec<String>, Failure> {
    let levels = column.levels();
    let codes = column.codes(&levels)?;
    let word = |code: Option<usize>| code.map_or(String::new(), |c| levels[c].clone());
    Ok(codes.into_iter().map(word).collect())
}

impl Chamber {
    /// Reads the votes of the House of Representatives in 1984.
    fn house(context: &Context<'_>) -> Result<Self, Failure> {
        let table = Table::read(&context.data("votes/house_votes_84.csv")?)?;
        let columns = table.columns();
        Ok(Self {
            name: "Votes",
            title: "Factor analysis of votes in the House, 1984",
            figure: "factors",
            votes: Self::votes(&columns[1..=16], "y", "n")?,
            parties: words(&columns[0])?,
        })
    }

    /// Reads the votes of the 106th Senate in 1999 and 2000.
    fn senate(context: &Context<'_>) -> Result<Self, Failure> {
        let table = Table::read(&context.data("votes/senate_106.csv")?)?;
        let columns = table.columns();
        let party = columns.iter().position(|column| column.name == "party");
        let first = columns.iter().position(|column| column.name == "rc1");
        let (Some(party), Some(first)) = (party, first) else {
            return Err(Failure::Data(format!(
                "`{}` has no columns `party` and `rc1`",
                table.source()
            )));
        };
        Ok(Self {
            name: "Senate",
            title: "Factor analysis of roll calls in the 106th Senate",
            figure: "senate",
            votes: Self::votes(&columns[first..], "1", "0")?,
            parties: words(&columns[party])?,
        })
    }

    fn votes(columns: &[Column], yes: &str, no: &str) -> Result<Dense, Failure> {
        let mut data = Vec::new();
        for column in columns {
            data.extend(words(column)?.iter().map(|word| match word.as_str() {
                word if word == yes => 1.0,
                word if word == no => 0.0,
                _ => f64::NAN,
            }));
        }
        Ok(Dense {
            rows: data.len() / columns.len().max(1),
            cols: columns.len(),
            data,
        })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    bound: f64,
    /// The mean log loss of the held-out votes in nats, with its standard error. The standard error is estimated from
    /// the variation between votes.
    loss: f64,
    error: f64,
    iterations: u64,
    seconds: f64,
    scores: Vec<(f64, f64)>,
}

/// Computes `E σ(η)` for η ~ N(mean, variance) by the trapezoidal rule. The nodes cover eight standard deviations on
/// each side of the mean.
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
    let house = Chamber::house(context)?;
    let most = context.pick(3, 5);
    analysed(context, &house, most)
}

pub(super) fn votes_of_the_senate(context: &mut Context<'_>) -> Result<(), Failure> {
    let senate = Chamber::senate(context)?;
    let most = context.pick(2, 3);
    analysed(context, &senate, most)
}

fn analysed(context: &mut Context<'_>, chamber: &Chamber, most: usize) -> Result<(), Failure> {
    let Chamber {
        name: chamber_name,
        votes: full,
        parties,
        ..
    } = chamber;
    let kept = chamber_name.to_lowercase();
    let seen: Vec<(usize, usize)> = (0..full.rows)
        .flat_map(|r| (0..full.cols).map(move |c| (r, c)))
        .filter(|&(r, c)| !full.get(r, c).is_nan())
        .collect();
    let hidden: Vec<(usize, usize)> = seen.iter().copied().skip(3).step_by(HELD).collect();
    let mut table = full.clone();
    for &(row, column) in &hidden {
        table.data[column * table.rows + row] = f64::NAN;
    }
    let bounds = [SiteBound::Tilted, SiteBound::Bohning, SiteBound::Exact];
    let mut losses = Chart::new(format!("{chamber_name}: held-out log loss"))
        .x(Axis::new("factors"))
        .y(Axis::new("nats a vote"));
    let mut scores = None;
    for (number, bound) in bounds.into_iter().enumerate() {
        let mut line = Vec::new();
        for factors in 1..=most {
            let found: Found =
                context.keep(&format!("{kept}/{}-{factors}", bound.name()), |context| {
                    context.say(format!(
                        "{chamber_name}: {factors} factors, {}",
                        bound.name()
                    ));
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
                    let (loss, error) = held_out(full, &fit, &hidden);
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
                    "{chamber_name}, {} bound, {factors} factor{plural}: {what}",
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
    let mut figure = Figure::new(chamber.title).panel(losses);
    if let Some(scores) = scores {
        figure = figure.panel(members(&scores, parties));
    }
    context.figure(chamber.figure, &figure)
}

fn members(scores: &[(f64, f64)], parties: &[String]) -> Chart {
    let mut chart = Chart::new("Members by their two scores, tilted bound")
        .x(Axis::new("first score"))
        .y(Axis::new("second score"));
    let mut names = parties.to_vec();
    names.sort();
    names.dedup();
    for (number, party) in names.iter().enumerate() {
        let members = scores.iter().zip(parties).filter(|(_, p)| *p == party);
        let points: Vec<(f64, f64)> = members.map(|(s, _)| *s).collect();
        chart = chart.series(Series::scatter(party, points).colour(number));
    }
    chart
}

const RIDGE: f64 = 1.0;
