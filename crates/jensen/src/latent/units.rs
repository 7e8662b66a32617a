//! Conversion between the units of the table and the units in which a model is fitted.
//!
//! The default priors and starting values are suitable for responses and columns with a standard deviation of 1. If the
//! likelihood is a location-scale family, Jensen therefore fits the responses as (y − centre)/scale. Jensen expresses
//! each covariate as its deviation from its mean in units of its standard deviation. Jensen converts results back to
//! the units of the table. To convert a bound, Jensen subtracts the logarithm of the scale once per row.

use jensen_latent::prior::{Assembled, Level, Pin, Reader, Spec, Units};
use jensen_latent::{Likelihood, Move, Observations, Readout};
use jensen_math::sum::pairwise_sum;

/// The units of a model. A response y in the units of the model is centre + scale · y in the units of the table. The
/// field `units` converts the columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measure {
    pub(super) centre: f64,
    pub(super) scale: f64,
    pub(super) units: Units,
}

impl Measure {
    /// Computes the units from the fitted rows. If no part of the prior can absorb a shift, as in a regression through
    /// the origin, the function does not centre responses or columns.
    pub(super) fn of(
        data: &Observations,
        likelihood: Likelihood,
        spec: &Spec,
        standardise: bool,
    ) -> Self {
        let mut measure = Self {
            centre: 0.0,
            scale: 1.0,
            units: Units::TABLE,
        };
        if !standardise {
            return measure;
        }
        let level = Level::of(spec);
        let shifts = match likelihood.is_location() {
            true => level != Level::None,
            false => level == Level::Free,
        };
        if likelihood.is_location() {
            let own: Vec<f64> = match &data.offset {
                Some(offset) => (data.response.iter().zip(offset))
                    .map(|(y, o)| y - o)
                    .collect(),
                None => data.response.clone(),
            };
            let n = own.len() as f64;
            measure.centre = if shifts { pairwise_sum(&own) / n } else { 0.0 };
            let squares: Vec<f64> = (own.iter()).map(|y| (y - measure.centre).powi(2)).collect();
            let scale = (pairwise_sum(&squares) / n).sqrt();
            let size = own.iter().fold(0.0, |m: f64, y| m.max(y.abs()));
            // If all responses are equal, their standard deviation is 0 and they are not scaled.
            if scale > 1e-12 * size {
                measure.scale = scale;
            }
        }
        measure.units = Units {
            response: measure.scale,
            scaled: true,
            centred: shifts,
        };
        measure
    }

    pub(super) fn inside(&self, data: &Observations) -> Observations {
        let scaled = |list: &[f64], centre: f64| -> Vec<f64> {
            list.iter().map(|x| (x - centre) / self.scale).collect()
        };
        Observations {
            response: scaled(&data.response, self.centre),
            // The scale is 1 for all likelihoods with other sizes than standard deviations.
            size: data.size.as_ref().map(|size| scaled(size, 0.0)),
            offset: data.offset.as_ref().map(|offset| scaled(offset, 0.0)),
        }
    }

    /// Converts the mean and the variance of a linear predictor to the units of the table. The offset is not included.
    pub(super) fn outside(&self, mean: f64, variance: f64) -> (f64, f64) {
        (
            self.centre + self.scale * mean,
            self.scale * self.scale * variance,
        )
    }

    pub(super) fn note(&self, response: &str, assembled: &Assembled) -> Option<String> {
        // The levels of a column of words share its name.
        let mut columns: Vec<String> = (assembled.covariates().iter())
            .map(|covariate| format!("`{}`", covariate.column))
            .collect();
        columns.dedup();
        let mut said = Vec::new();
        if (self.centre, self.scale) != (0.0, 1.0) {
            let less = match self.centre {
                0.0 => format!("`{response}`"),
                centre if centre < 0.0 => format!("(`{response}` + {:.6})", -centre),
                centre => format!("(`{response}` − {centre:.6})"),
            };
            said.push(format!("the response as {less} / {:.6}", self.scale));
        }
        if self.units.scaled && !columns.is_empty() {
            let (centred, each) = match (self.units.centred, columns.len()) {
                (true, 1) => ("minus its mean, ", "its standard deviation"),
                (true, _) => ("minus their means, ", "their standard deviations"),
                (false, 1) => ("", "its standard deviation"),
                (false, _) => ("", "their standard deviations"),
            };
            said.push(format!("{} {centred}divided by {each}", list(&columns)));
        }
        (!said.is_empty()).then(|| {
            format!(
                "the fit uses {}; results are in the table's units (--standardise off makes the fit use them too)",
                said.join(" and ")
            )
        })
    }
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 6;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns the linear map that converts the latent variables to the units of the table. The effects of covariates
/// become effects per unit of the column. A level becomes the value of the predictor when all columns are zero. Fields
/// sum to zero if another part of the prior contains their level.
pub(super) fn readout(assembled: &Assembled, measure: &Measure, times: usize) -> Readout {
    let pieces = assembled.pieces();
    let latents = pieces.last().map_or(0, |p| p.latents.end);
    let mut out = Readout {
        scale: vec![measure.scale; latents * times],
        ..Readout::default()
    };
    let absorbs = assembled.absorbs();
    // The variables in this list change if all linear predictors shift by 1.
    let level: Vec<usize> = absorbs.map_or(Vec::new(), |part| {
        let from = pieces[part].latents.start;
        (assembled.shifted(part).iter()).map(|l| from + l).collect()
    });
    for copy in 0..times {
        let at = |l: usize| l * times + copy;
        out.shift
            .extend(level.iter().map(|l| (at(*l), measure.centre)));
        for piece in pieces {
            for (l, factor) in piece.latents.clone().zip(piece.factors.iter().cycle()) {
                out.scale[at(l)] /= factor.as_ref().map_or(1.0, |covariate| covariate.scale);
            }
            let Reader::Covariates(list) = &piece.reader else {
                continue;
            };
            for (l, covariate) in piece.latents.clone().zip(list) {
                out.scale[at(l)] /= covariate.scale;
                if covariate.centre != 0.0 && !level.is_empty() {
                    let down = -measure.scale * covariate.centre / covariate.scale;
                    out.moves.push(Move {
                        read: vec![(at(l), 1.0)],
                        add: level.iter().map(|l| (at(*l), down)).collect(),
                    });
                }
            }
        }
        for (part, pin) in assembled.pins().iter().enumerate() {
            let Some(Pin { direction, shift }) = pin else {
                continue;
            };
            let from = pieces[part].latents.start;
            let mut add: Vec<(usize, f64)> = (direction.iter().enumerate())
                .map(|(i, u)| (at(from + i), -measure.scale * u))
                .collect();
            if absorbs != Some(part) {
                add.extend(level.iter().map(|l| (at(*l), measure.scale * shift)));
            }
            let read = |from: usize| -> Vec<(usize, f64)> {
                let nodes = direction.iter().enumerate();
                nodes.map(|(i, u)| (at(from + i), *u)).collect()
            };
            out.moves.push(Move {
                read: read(from),
                add,
            });
            // The structured half of BYM2 does not enter the rows directly and has its own level.
            let hidden = from + direction.len();
            if hidden + direction.len() == pieces[part].latents.end {
                let down = read(hidden)
                    .iter()
                    .map(|(l, u)| (*l, -measure.scale * u))
                    .collect();
                out.moves.push(Move {
                    read: read(hidden),
                    add: down,
                });
            }
        }
    }
    out
}
