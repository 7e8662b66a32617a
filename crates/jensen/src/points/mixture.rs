//! Mixtures of points that are in memory.

use jensen_conjugate::model::ConjugateModel;
use jensen_conjugate::models::{Bernoullis, Components, Gaussians, Mixture, Multinomials};
use jensen_math::special::lgamma;
use jensen_math::sum::ColumnMoments;
use jensen_report::figure::{Axis, Chart, Figure, Series};

use super::files::PointFiles;
use super::job::{Made, PointJob, Score, cell, images, one_part, starts};
use super::kinds::Kinds;
use super::model::predicted;
use super::{
    Component, Described, Kind, MixingPrior, MixtureModel, MixtureRequest, Parts, Picture, Points,
    PointsSummary,
};
use crate::Error;
use crate::job::{Around, carry_out};
use crate::units::Units;

/// The name of the command, as stored in its result folders.
pub const MIXTURE: &str = "mixture";

/// The result of a fit of a model of points, with the contents of `fit.json`.
pub type PointsFit = (Made, PointsSummary);

/// Fits a mixture of Gaussians, of binary vectors, of counts, or of columns of several kinds.
///
/// # Errors
/// Fails if the components do not support a setting, or if a point is outside their domain. Also returns the errors of
/// [`carry_out`].
pub fn fit_mixture(
    request: &MixtureRequest,
    points: &Points,
    around: Around<'_>,
) -> Result<PointsFit, Error> {
    points.check_size(request.image)?;
    points.check_columns()?;
    request.check()?;
    points.check_heat(&request.points)?;
    if request.several_kinds() {
        return fit_kinds(request, points, around);
    }
    match request.kind() {
        Kind::Gaussian
        | Kind::StudentT
        | Kind::Poisson
        | Kind::NegativeBinomial
        | Kind::Categorical => {
            let shape = request.covariance.unwrap_or_default();
            let units = points.units(request.standardise.unwrap_or_default())?;
            let size = (
                request.sizes().most(),
                request.points.seed(),
                around.memory_limit,
            );
            let train = points.gaussians_to_fit(shape, &units, request.prior(), size)?;
            let heldout = train.with_data(units.rows(&points.heldout));
            let score = |k, lambda: &[f64]| score(points, &request.mixture(&heldout, k), lambda);
            let component = |lambda: &[f64], weight| gaussian(&train, &units, lambda, weight);
            let trains = vec![&train; request.sizes().all().count()];
            let data = Fitting::here(points, &units);
            fit(request, &data, &trains, &score, component, around)
        }
        Kind::Bernoulli => {
            let train = bernoullis(request.smoothing(), points, &points.train)?;
            let heldout = bernoullis(request.smoothing(), points, &points.heldout)?;
            let score = |k, lambda: &[f64]| score(points, &request.mixture(&heldout, k), lambda);
            let component = |lambda: &[f64], weight| bernoulli(&train, lambda, weight);
            let trains = vec![&train; request.sizes().all().count()];
            let units = Units::as_they_are(points.dim());
            let data = Fitting::here(points, &units);
            fit(request, &data, &trains, &score, component, around)
        }
        Kind::Multinomial => {
            let train = multinomials(request.smoothing(), points, &points.train)?;
            let heldout = multinomials(request.smoothing(), points, &points.heldout)?;
            let score = |k, lambda: &[f64]| score(points, &request.mixture(&heldout, k), lambda);
            let component = |lambda: &[f64], weight| multinomial(&train, lambda, weight);
            let trains = vec![&train; request.sizes().all().count()];
            let units = Units::as_they_are(points.dim());
            let data = Fitting::here(points, &units);
            fit(request, &data, &trains, &score, component, around)
        }
    }
}

fn fit_kinds(
    request: &MixtureRequest,
    points: &Points,
    around: Around<'_>,
) -> Result<PointsFit, Error> {
    let standardise = request.standardise.unwrap_or_default();
    let kinds = Kinds::of(points, request.kind(), &request.columns, standardise)?;
    let of = |rows| kinds.components(points, rows, request.smoothing(), request.prior());
    let train = of((&points.train, &points.weights))?;
    let heldout = of((&points.heldout, &points.heldout_weights))?;
    let score = |k, lambda: &[f64]| score(points, &request.mixture(&heldout, k), lambda);
    let component = |lambda: &[f64], weight| {
        let columns = kinds.described(&points.names, &train, lambda);
        Component::Columns {
            values: columns.iter().map(|c| c.distribution.value()).collect(),
            columns,
            weight,
        }
    };
    let trains = vec![&train; request.sizes().all().count()];
    let data = Fitting {
        levels: &kinds.levels,
        ..Fitting::here(points, &kinds.units)
    };
    fit(request, &data, &trains, &score, component, around)
}

pub(super) fn gaussian(
    gaussians: &Gaussians,
    units: &Units,
    lambda: &[f64],
    weight: f64,
) -> Component {
    Component::Gaussian {
        mean: units.back(&gaussians.mean(lambda)),
        covariance: spread(gaussians, units, lambda),
        weight,
    }
}

/// Returns the covariance matrix of a component in the units of the data, or only its diagonal if the matrix is
/// diagonal.
pub(super) fn spread(gaussians: &Gaussians, units: &Units, lambda: &[f64]) -> Vec<f64> {
    let own = gaussians.covariance(lambda);
    match gaussians.shape().is_matrix() {
        true => units.covariance_back(&own),
        false => units.variances_back(&own),
    }
}

pub(super) fn bernoulli(bernoullis: &Bernoullis, lambda: &[f64], weight: f64) -> Component {
    Component::Bernoulli {
        probabilities: bernoullis.probabilities(lambda),
        weight,
    }
}

pub(super) fn multinomial(multinomials: &Multinomials, lambda: &[f64], weight: f64) -> Component {
    Component::Multinomial {
        proportions: multinomials.proportions(lambda),
        weight,
    }
}

/// Returns components of binary vectors. `smoothing` is the parameter of the Beta priors of their probabilities.
pub(super) fn bernoullis(
    smoothing: f64,
    points: &Points,
    rows: &[f64],
) -> Result<Bernoullis, Error> {
    let bits: Result<Vec<Option<bool>>, Error> = rows
        .iter()
        .map(|&x| match x {
            0.0 => Ok(Some(false)),
            1.0 => Ok(Some(true)),
            x if x.is_nan() => Ok(None),
            _ => Err(Error::Input(format!(
                "`{}` has {x}, but binary components need 0 and 1",
                points.source
            ))),
        })
        .collect();
    Ok(Bernoullis::with_prior(points.dim(), smoothing, bits?))
}

/// Returns components of count vectors. `smoothing` is the parameter of the Dirichlet prior of their proportions.
pub(super) fn multinomials(
    smoothing: f64,
    points: &Points,
    rows: &[f64],
) -> Result<Multinomials, Error> {
    points.check_complete("counts cannot be missing: remove the row or fill it in")?;
    if let Some(x) = rows.iter().find(|x| **x < 0.0 || x.fract() != 0.0) {
        return Err(Error::Input(format!(
            "`{}` has {x}, but multinomial components need counts",
            points.source
        )));
    }
    Ok(Multinomials::new(points.dim(), smoothing, rows.to_vec()))
}

/// Returns the mean log predictive density of the held-out points and its standard error, in nats. A point with weight w
/// counts as w points.
fn score<C: Components>(points: &Points, model: &Mixture<C>, lambda: &[f64]) -> Option<(f64, f64)> {
    let logs: Vec<f64> = predicted(model, lambda).ok()?.iter().map(|x| x.1).collect();
    let moments = ColumnMoments::weighted(1, &logs, &points.heldout_weights)[0];
    let spread = moments.squares / (moments.count - 1.0);
    (moments.count > 0.0).then(|| (moments.mean, (spread / moments.count).sqrt()))
}

pub(super) struct Fitting<'a> {
    pub(super) points: &'a Points,
    pub(super) units: &'a Units,
    /// This field is `None` if the points are in memory.
    pub(super) elsewhere: Option<&'a PointFiles>,
    pub(super) levels: &'a [Vec<f64>],
}

impl<'a> Fitting<'a> {
    fn here(points: &'a Points, units: &'a Units) -> Self {
        Self {
            points,
            units,
            elsewhere: None,
            levels: &[],
        }
    }
}

/// Fits mixtures with all requested numbers of components and keeps the best mixture. `trains` contains one element for
/// each number of components. The function `score` receives the number of components and the global parameters of a
/// mixture, and returns the score of the held-out points.
pub(super) fn fit<C: Components>(
    request: &MixtureRequest,
    data: &Fitting<'_>,
    trains: &[&C],
    score: &dyn Fn(usize, &[f64]) -> Score,
    component: impl Fn(&[f64], f64) -> Component,
    around: Around<'_>,
) -> Result<PointsFit, Error> {
    let Fitting {
        points,
        units,
        elsewhere,
        levels,
    } = *data;
    let sizes = request.sizes();
    if sizes.most() > points.count() as u64 {
        return Err(Error::Input(format!(
            "{} components are too many for {} points: use fewer",
            sizes.most(),
            points.count()
        )));
    }
    let pairs = sizes.all().zip(trains);
    let models: Vec<Mixture<&C>> = pairs
        .map(|(k, train)| {
            let mixture = request.mixture(*train, k as usize);
            mixture.with_weights(&points.weights)
        })
        .collect();
    let credited: Vec<(&Mixture<&C>, f64)> = models
        .iter()
        .map(|model| (model, credit(request.mixing(), model.parts().len())))
        .collect();
    let job = PointJob {
        command: MIXTURE,
        request,
        shared: &request.points,
        candidates: starts(&request.points, &credited)?,
        points,
        units,
        elsewhere,
        plain: &|size| one_part(&models[size], "component", "--components"),
        score: &|size, lambda| score(models[size].parts().len(), lambda),
        doubt: &|_, _| None,
        describe: &|size, lambda| {
            let model = &models[size];
            let k = model.parts().len();
            let weights = model.weights(lambda);
            let mut order: Vec<usize> = (0..k).collect();
            let occupied = match request.mixing() {
                MixingPrior::Dirichlet => {
                    order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
                    None
                }
                // The sticks are in descending order of the numbers of points.
                MixingPrior::Process => {
                    let counts = model.counts(lambda);
                    Some(counts.iter().filter(|count| **count >= OCCUPIED).count())
                }
            };
            let components: Vec<Component> = order
                .iter()
                .map(|&i| component(&model.marginal(lambda, i), weights[i]))
                .collect();
            let heads = ["component", "weight"].map(str::to_owned).into_iter();
            let rows = components.iter().take(occupied.unwrap_or(k)).zip(1..).map(
                |(component, row): (_, usize)| {
                    let cells = component.values().iter().map(|x| cell(*x));
                    [row.to_string(), cell(component.weight())]
                        .into_iter()
                        .chain(cells)
                        .collect()
                },
            );
            Described {
                rows: "component",
                occupied: occupied.map(|count| count as u64),
                table: (
                    heads.chain(points.names.iter().cloned()).collect(),
                    rows.collect(),
                ),
                pictures: picture(request, points, &components).into_iter().collect(),
                approximation: Some(
                    MixtureModel {
                        kind: request.kind(),
                        mixing: request.mixing(),
                        kinds: request.columns.clone(),
                        levels: levels.to_vec(),
                        covariance: request.covariance.unwrap_or_default(),
                        components: k,
                        columns: points.names.clone(),
                        lambda: ordered(model, lambda, &order),
                        units: units.clone(),
                    }
                    .encode(),
                ),
                order,
                parts: Parts::Components(components),
            }
        },
    };
    let done = carry_out(job, around)?;
    Ok((done.made.output, done.summary))
}

/// A component of a process holds points if their expected number is at least this.
const OCCUPIED: f64 = 0.5;

/// Returns the number of nats that account for modes that differ from the fitted one only by the labels of the
/// components. The components of a process are ordered by their sizes.
fn credit(mixing: MixingPrior, components: usize) -> f64 {
    match mixing {
        MixingPrior::Dirichlet => lgamma(components as f64 + 1.0),
        MixingPrior::Process => 0.0,
    }
}

fn ordered<C: Components>(model: &Mixture<C>, lambda: &[f64], order: &[usize]) -> Vec<f64> {
    let weights = order.iter().map(|&k| lambda[k]);
    let rest = order.iter().flat_map(|&k| model.component(lambda, k));
    weights.chain(rest.copied()).collect()
}

const DRAWN: usize = 2000;

/// Draws the means of the components. If the request contains an image size, the means are drawn as images. Without an
/// image size, the means are drawn together with the points in the plane of the first two columns.
fn picture(request: &MixtureRequest, points: &Points, components: &[Component]) -> Option<Picture> {
    if let Some(size) = request.image {
        let rows = components.iter().map(Component::values);
        return Some(Picture {
            name: "means",
            caption: "The components' means, each scaled from its smallest to its largest value, the largest \
             component first.",
            figure: images("Means", rows, size, |i| {
                format!("{:.1} %", 100.0 * components[i].weight())
            }),
        });
    }
    let dim = points.dim();
    if request.kind() != Kind::Gaussian || request.several_kinds() || dim < 2 {
        return None;
    }
    let rows = points.train.chunks_exact(dim);
    let step = rows.len().div_ceil(DRAWN).max(1);
    let drawn = rows.step_by(step);
    let means = components.iter().map(|c| (c.values()[0], c.values()[1]));
    let chart = Chart::new("Component means among the points")
        .x(Axis::new(points.names[0].clone()))
        .y(Axis::new(points.names[1].clone()))
        .series(Series::scatter("points", drawn.map(|x| (x[0], x[1]))).opacity(0.35))
        .series(Series::scatter("means", means).colour(1).width(5.0));
    Some(Picture {
        name: "means",
        caption: "The components' means and the points, by the first two columns.",
        figure: Figure::new("").panel(chart),
    })
}
