//! A comparison of mean-field fits, with and without linear response, with reference draws. The comparison covers means
//! and standard deviations.

use jensen::blackbox::FamilyKind;
use jensen::math::order::median;
use jensen::report::figure::{Axis, Chart, Figure, Series};
use jensen::{Covariance, Options, fit};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::corpus::{Entry, Reference, references};
use crate::failure::Failure;
use crate::results::{Ours, What};

/// The comparison of a fit with its reference. Each list has one entry per scalar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Comparison {
    /// The errors of the means, in units of the reference standard deviations: (mean − reference mean) / reference sd.
    means: Vec<f64>,
    /// The standard deviations of the mean-field fit, divided by the reference standard deviations.
    narrow: Vec<f64>,
    /// The errors of the means with linear response, in units of the reference standard deviations.
    response_means: Vec<f64>,
    /// The standard deviations with linear response, divided by the reference standard deviations.
    wide: Vec<f64>,
    seconds: f64,
    note: String,
}

impl Comparison {
    fn run(reference: &Reference, draws: usize) -> Result<Self, Failure> {
        let model = Entry::named(&reference.model)?.compile()?;
        let options = Options::default()
            .draws(draws)
            .family(FamilyKind::MeanField);
        let narrow = fit(&model, &options)?;
        let response = Covariance::LinearResponse { of: Vec::new() };
        let wide = fit(&model, &options.covariance(response))?;
        let scaled = |fitted: &jensen::Fitted| -> (Vec<f64>, Vec<f64>) {
            let found = fitted.parameters();
            let pairs = reference
                .parameters
                .iter()
                .filter_map(|(name, [mean, sd])| {
                    let p = found.iter().find(|p| p.name == *name)?;
                    Some(((p.mean - mean) / sd, p.sd / sd))
                });
            pairs.unzip()
        };
        let (means, narrow_sds) = scaled(&narrow);
        let (response_means, wide_sds) = scaled(&wide);
        Ok(Self {
            means,
            narrow: narrow_sds,
            response_means,
            wide: wide_sds,
            seconds: wide.fit.seconds,
            note: if wide.trusted() {
                String::new()
            } else {
                wide.warnings().join("; ")
            },
        })
    }
}

fn root_mean_square(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt()
}

fn median_error(ratios: &[f64]) -> f64 {
    median(&ratios.iter().map(|r| (r - 1.0).abs()).collect::<Vec<_>>())
}

/// Compares the means and standard deviations of mean-field fits with those of reference draws.
pub fn run(context: &mut Context<'_>) -> Result<(), Failure> {
    let references = references()?;
    let draws = context.pick(10_000, 40_000);
    let found = context.keep_each(
        &references,
        |reference| format!("uncertainty/{}", reference.model),
        |reference| Comparison::run(reference, draws),
    )?;
    for (reference, c) in references.iter().zip(&found) {
        let name = &reference.model;
        for (what, value) in [
            (
                "root mean square error of the means",
                root_mean_square(&c.means),
            ),
            (
                "median error of the sds, mean-field",
                median_error(&c.narrow),
            ),
            (
                "median error of the sds, linear response",
                median_error(&c.wide),
            ),
        ] {
            let unit = if what.starts_with("root") {
                "reference sds"
            } else {
                "share"
            };
            context.row(What::new(format!("{name}: {what}"), unit), |_| {
                let note = format!("{} scalars; {}", c.means.len(), c.note);
                Ok(Ours::value(value).note(note.trim_end_matches("; ")))
            })?;
        }
    }
    let over =
        |figure: &dyn Fn(&Comparison) -> f64| median(&found.iter().map(figure).collect::<Vec<_>>());
    let note = format!("over {} posteriors with reference draws", found.len());
    for (what, unit, value) in [
        (
            "median root mean square error of the means",
            "reference sds",
            over(&|c| root_mean_square(&c.means)),
        ),
        (
            "the same with linear response",
            "reference sds",
            over(&|c| root_mean_square(&c.response_means)),
        ),
        (
            "median error of the sds, mean-field",
            "share",
            over(&|c| median_error(&c.narrow)),
        ),
        (
            "median error of the sds, linear response",
            "share",
            over(&|c| median_error(&c.wide)),
        ),
    ] {
        context.row(What::new(format!("all: {what}"), unit), |_| {
            Ok(Ours::value(value).note(note.clone()))
        })?;
    }
    draw(context, &found)
}

fn draw(context: &mut Context<'_>, found: &[Comparison]) -> Result<(), Failure> {
    let mut pairs: Vec<(f64, f64)> = found
        .iter()
        .flat_map(|c| c.narrow.iter().copied().zip(c.wide.iter().copied()))
        .collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let numbered = |pick: fn(&(f64, f64)) -> f64| {
        let points = pairs.iter().enumerate();
        let points: Vec<(f64, f64)> = points.map(|(i, p)| (i as f64 + 1.0, pick(p))).collect();
        points
    };
    let end = pairs.len() as f64;
    let chart = Chart::new("Standard deviations relative to the reference draws")
        .sized(560.0, 340.0)
        .x(Axis::new(
            "scalar parameters, in order of the mean-field ratio",
        ))
        .y(Axis::new("ratio").log())
        .series(
            Series::line("", [(0.0, 1.0), (end, 1.0)])
                .colour(6)
                .width(1.0),
        )
        .series(Series::scatter("mean-field", numbered(|p| p.0)).colour(0))
        .series(Series::scatter("linear response", numbered(|p| p.1)).colour(1));
    context.figure("uncertainty", &Figure::new("").panel(chart))
}
