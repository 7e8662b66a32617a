//! Factorial mixtures, in which every point is a sum of binary factors and noise.

use jensen_conjugate::models::{FactorialMixture, FactorialSettings};
use jensen_conjugate::pointwise;

use super::explained::{Explained, explain};
use super::mixture::Fitted;
use super::study::{PointStudy, cell, images, starts};
use super::{Described, FactorsRequest, Parts, Picture, Points};
use crate::Error;
use crate::study::{Around, carry_out};

/// What is said of missing values.
const COMPLETE: &str = "factors take complete rows: leave the row out or fill it in";

/// The command that such folders belong to.
pub const FACTORS: &str = "factors";

fn model(request: &FactorsRequest, dim: usize, rows: &[f64]) -> Result<FactorialMixture, Error> {
    let settings = FactorialSettings {
        factors: request.factors.unwrap_or(1) as usize,
        noise_variance: request.noise_variance.unwrap_or(1.0),
        factor_variance: request.factor_variance.unwrap_or(1.0),
        activation: request.activation.unwrap_or(0.3),
    };
    FactorialMixture::new(settings, dim, rows.to_vec()).map_err(Error::Setting)
}

/// What the globals `lambda` of binary factors say of points, none of them held out: which factors are on.
///
/// # Errors
/// A setting that cannot be, and globals of other factors.
pub fn explain_factors(
    request: &FactorsRequest,
    lambda: &[f64],
    points: &Points,
) -> Result<Explained, Error> {
    points.check_complete(COMPLETE)?;
    explain(&model(request, points.dim(), &points.train)?, lambda)
}

/// Fits binary factors.
///
/// # Errors
/// A setting that cannot be, and what [`carry_out`] refuses.
pub fn fit_factors(
    request: &FactorsRequest,
    points: &Points,
    around: Around<'_>,
) -> Result<Fitted, Error> {
    points.check_size(request.image)?;
    points.check_complete(COMPLETE)?;
    let dim = points.dim();
    let model = model(request, dim, &points.train)?;
    let scored = self::model(request, dim, &points.heldout)?;
    let study = PointStudy {
        command: FACTORS,
        request,
        shared: &request.points,
        candidates: starts(&request.points, &[(&model, 0.0)])?,
        points,
        score: &|_, lambda| {
            (!points.heldout.is_empty()).then(|| pointwise::heldout(&scored, lambda))
        },
        describe: &|_, lambda| {
            let factors = model.factors(lambda);
            let picture = request.image.map(|size| Picture {
                name: "factors",
                caption: "The factors, each from its least to its largest value.",
                figure: images("Factors", factors.chunks_exact(dim), size, |i| {
                    (i + 1).to_string()
                }),
            });
            let heads = std::iter::once("factor".to_owned()).chain(points.names.iter().cloned());
            let rows = factors.chunks_exact(dim).enumerate().map(|(i, factor)| {
                let cells = factor.iter().map(|x| cell(*x));
                std::iter::once((i + 1).to_string()).chain(cells).collect()
            });
            Described {
                rows: "factor",
                approximation: None,
                order: (0..factors.len() / dim).collect(),
                table: (heads.collect(), rows.collect()),
                pictures: picture.into_iter().collect(),
                parts: Parts::Factors(factors.chunks_exact(dim).map(<[f64]>::to_vec).collect()),
            }
        },
    };
    let done = carry_out(study, around)?;
    Ok((done.made.output, done.summary))
}
