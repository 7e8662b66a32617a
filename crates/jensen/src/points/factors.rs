//! Factorial mixtures, in which every point is the sum of several binary factors and noise.

use jensen_conjugate::models::{FactorialMixture, FactorialSettings, FactorialStart};
use jensen_conjugate::plain::Plain;
use jensen_conjugate::pointwise;
use jensen_conjugate::temper::Temper;
use jensen_math::constants::LOG_TWO_PI;
use jensen_math::sum::ColumnMoments;
use jensen_run::Reason;

use super::explained::{Explained, explain};
use super::job::{Beside, PointJob, cell, images, starts};
use super::mixture::PointsFit;
use super::{Described, FactorsRequest, Globals, Parts, Picture, PointRequest, Points};
use crate::Error;
use crate::job::{Around, carry_out};
use crate::units::Units;

const COMPLETE: &str = "factors need complete rows: remove the row or fill it in";

/// The name of the command, as stored in its result folders.
pub const FACTORS: &str = "factors";

/// The maximum relative excess of the residual variance of a trusted fit over the given noise variance. If [`ERRORS`]
/// standard errors are larger than this fraction, the maximum excess is [`ERRORS`] standard errors.
const EXCESS: f64 = 0.05;
/// The maximum excess of the residual variance over the given noise variance, in standard errors. In a test with eight
/// images, starts that found all images ended with a residual variance of 0.99 to 1.06 times the noise variance. The
/// largest of these values belongs to a start that had not converged. Starts that missed an image ended with 1.08 times
/// the noise variance or more.
const ERRORS: f64 = 4.0;

fn doubt(
    request: &FactorsRequest,
    model: &FactorialMixture,
    points: &Points,
    lambda: &[f64],
) -> Option<Reason> {
    let ratio = model.noise(lambda) / request.noise_variance.unwrap_or(1.0);
    let error = (2.0 / points.train.len().max(1) as f64).sqrt();
    (ratio > 1.0 + EXCESS.max(ERRORS * error)).then(|| {
        Reason::new(
            format!(
                "the residual variance is {ratio:.2} times the noise variance"
            ),
            "Try more starts (--starts) or tempering (--temper global), then more factors (--factors) or more noise \
             (--noise-variance).",
        )
    })
}

/// Returns the baseline model for factors. In this model, the columns are independent and normally distributed. Each
/// column has its own mean and its own variance. The variance is at least the given noise variance. For each of the two
/// parameters of a column, the score is reduced by half the logarithm of the number of points (Schwarz 1978).
fn independent(request: &FactorsRequest, points: &Points) -> Beside {
    let least = request.noise_variance.unwrap_or(1.0);
    let columns = ColumnMoments::of(points.dim(), &points.train).into_iter();
    let of_column = |column: ColumnMoments| {
        let variance = (column.squares / column.count).max(least);
        let logs = column.count * (LOG_TWO_PI + variance.ln());
        -0.5 * (logs + column.squares / variance) - column.count.ln()
    };
    let bound = columns.map(of_column).sum();
    Beside {
        model: "independent normal columns".to_owned(),
        bounds: Plain {
            bound,
            within: bound,
        },
        advice: "The model has no intercept and the same noise in every column: centre the columns, bring them \
                 to one scale, and give the noise (--noise-variance)."
            .to_owned(),
    }
}

/// Returns the request with a default for the prior variance of the elements of the factors. The default is the mean
/// square of the points, because points are sums of factors.
fn scaled(request: &FactorsRequest, points: &Points) -> FactorsRequest {
    let squares: f64 = points.train.iter().map(|x| x * x).sum();
    let mean = squares / points.train.len().max(1) as f64;
    let usual = if mean > 0.0 { mean } else { 1.0 };
    FactorsRequest {
        factor_variance: request.factor_variance.or(Some(usual)),
        points: PointRequest {
            // A fit with a temperature policy starts at the prior. Fits without a policy find few factors from this
            // start. The additional starts have no policy, so by default there are none.
            starts: request
                .points
                .starts
                .or(request.points.temper.as_ref().map(|_| 1)),
            ..request.points.clone()
        },
        ..request.clone()
    }
}

fn model(request: &FactorsRequest, dim: usize, rows: &[f64]) -> Result<FactorialMixture, Error> {
    let settings = FactorialSettings {
        factors: request.factors.unwrap_or(1) as usize,
        noise_variance: request.noise_variance.unwrap_or(1.0),
        factor_variance: request.factor_variance.unwrap_or(1.0),
        activation: request.activation.unwrap_or(0.3),
    };
    let model = FactorialMixture::new(settings, dim, rows.to_vec()).map_err(Error::Setting)?;
    // A fit with a temperature policy retains nothing of its starting point, except that the start breaks the symmetry
    // between the factors.
    let start = match request.points.temper()? {
        Temper::None => FactorialStart::Points,
        _ => FactorialStart::Prior,
    };
    Ok(model.starting_at(start))
}

/// Computes the probabilities that factors are active at points without held-out entries.
///
/// # Errors
/// Fails if a setting is invalid or if the global parameters belong to another model.
pub fn explain_factors(
    request: &FactorsRequest,
    globals: &Globals,
    points: &Points,
) -> Result<Explained, Error> {
    points.check_complete(COMPLETE)?;
    points.check_unweighted()?;
    explain(
        &model(request, points.dim(), &points.train)?,
        &globals.lambda,
    )
}

/// Fits a factorial mixture.
///
/// # Errors
/// Fails if a setting is invalid. Also returns the errors of [`carry_out`].
pub fn fit_factors(
    request: &FactorsRequest,
    points: &Points,
    around: Around<'_>,
) -> Result<PointsFit, Error> {
    points.check_size(request.image)?;
    points.check_complete(COMPLETE)?;
    points.check_unweighted()?;
    let dim = points.dim();
    let request = &scaled(request, points);
    let model = model(request, dim, &points.train)?;
    let units = Units::as_they_are(dim);
    let scored = self::model(request, dim, &points.heldout)?;
    let job = PointJob {
        command: FACTORS,
        request,
        shared: &request.points,
        candidates: starts(&request.points, &[(&model, 0.0)])?,
        points,
        units: &units,
        plain: &|_| Some(independent(request, points)),
        elsewhere: None,
        score: &|_, lambda| {
            (!points.heldout.is_empty()).then(|| pointwise::heldout(&scored, lambda))
        },
        doubt: &|_, lambda| doubt(request, &model, points, lambda),
        describe: &|_, lambda| {
            let factors = model.factors(lambda);
            let picture = request.image.map(|size| Picture {
                name: "factors",
                caption: "The factors, each scaled from its smallest to its largest value.",
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
                occupied: None,
                rows: "factor",
                approximation: None,
                order: (0..factors.len() / dim).collect(),
                table: (heads.collect(), rows.collect()),
                pictures: picture.into_iter().collect(),
                parts: Parts::Factors(factors.chunks_exact(dim).map(<[f64]>::to_vec).collect()),
            }
        },
    };
    let done = carry_out(job, around)?;
    Ok((done.made.output, done.summary))
}
