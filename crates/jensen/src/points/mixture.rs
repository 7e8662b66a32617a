//! Mixtures.

use jensen_conjugate::models::{
    Bernoullis, Components, Covariance, Gaussians, Mixture, Multinomials,
};
use jensen_conjugate::pointwise;
use jensen_report::figure::{Axis, Chart, Figure, Series};

use super::explained::{Explained, explain};
use super::study::{Made, PointStudy, cell, images};
use super::{
    Component, Described, Kind, MixtureRequest, Parts, Picture, Points, PointsSummary, Shape,
};
use crate::Error;
use crate::study::{Around, carry_out};

/// The command that such folders belong to.
pub const MIXTURE: &str = "mixture";

/// A finished fit of points.
pub type Fitted = (Made, PointsSummary);

/// Fits a mixture of Gaussians, of binary vectors or of counts.
///
/// # Errors
/// A setting or point that the components cannot have, and what [`carry_out`] refuses.
pub fn fit_mixture(
    request: &MixtureRequest,
    points: &Points,
    around: Around<'_>,
) -> Result<Fitted, Error> {
    points.check_size(request.image)?;
    match request.kind.unwrap_or_default() {
        Kind::Gaussian => {
            let train = gaussians(request.covariance, points);
            let heldout = train.with_data(points.heldout.clone());
            let component = |gaussians: &Gaussians, lambda: &[f64], weight| Component::Gaussian {
                mean: gaussians.mean(lambda),
                covariance: gaussians.covariance(lambda),
                weight,
            };
            fit(request, points, train, heldout, component, around)
        }
        Kind::Bernoulli => {
            let train = bernoullis(points, &points.train)?;
            let heldout = bernoullis(points, &points.heldout)?;
            let component = |bernoullis: &Bernoullis, lambda: &[f64], weight| {
                let probabilities = bernoullis.probabilities(lambda);
                Component::Bernoulli {
                    probabilities,
                    weight,
                }
            };
            fit(request, points, train, heldout, component, around)
        }
        Kind::Multinomial => {
            let train = multinomials(request.smoothing, points, &points.train)?;
            let heldout = multinomials(request.smoothing, points, &points.heldout)?;
            let component = |multinomials: &Multinomials, lambda: &[f64], weight| {
                let proportions = multinomials.proportions(lambda);
                Component::Multinomial {
                    proportions,
                    weight,
                }
            };
            fit(request, points, train, heldout, component, around)
        }
    }
}

/// What the globals `lambda` of a mixture say of points, none of them held out: the components' responsibilities.
///
/// # Errors
/// Points that the components cannot have, and globals of another mixture.
pub fn explain_mixture(
    request: &MixtureRequest,
    lambda: &[f64],
    points: &Points,
) -> Result<Explained, Error> {
    let k = request.components.unwrap_or(1) as usize;
    // The prior is part of the globals already.
    match request.kind.unwrap_or_default() {
        Kind::Gaussian => explain(
            &Mixture::new(gaussians(request.covariance, points), k, 1.0),
            lambda,
        ),
        Kind::Bernoulli => {
            let components = bernoullis(points, &points.train)?;
            explain(&Mixture::new(components, k, 1.0), lambda)
        }
        Kind::Multinomial => {
            let components = multinomials(request.smoothing, points, &points.train)?;
            explain(&Mixture::new(components, k, 1.0), lambda)
        }
    }
}

/// Gaussian components over the rows to learn from.
pub(super) fn gaussians(shape: Option<Shape>, points: &Points) -> Gaussians {
    let shape = match shape.unwrap_or_default() {
        Shape::Full => Covariance::Full,
        Shape::Diagonal => Covariance::Diagonal,
    };
    Gaussians::new(shape, points.dim(), points.train.clone())
}

pub(super) fn bernoullis(points: &Points, rows: &[f64]) -> Result<Bernoullis, Error> {
    let bits: Result<Vec<bool>, Error> = rows
        .iter()
        .map(|&x| match x {
            0.0 => Ok(false),
            1.0 => Ok(true),
            _ => Err(Error::Input(format!(
                "`{}` holds {x}, but binary components take 0 and 1",
                points.source
            ))),
        })
        .collect();
    Ok(Bernoullis::new(points.dim(), bits?))
}

pub(super) fn multinomials(
    smoothing: Option<f64>,
    points: &Points,
    rows: &[f64],
) -> Result<Multinomials, Error> {
    if let Some(x) = rows.iter().find(|x| **x < 0.0 || x.fract() != 0.0) {
        return Err(Error::Input(format!(
            "`{}` holds {x}, but multinomial components take counts",
            points.source
        )));
    }
    let smoothing = smoothing.unwrap_or(0.5);
    Ok(Multinomials::new(points.dim(), smoothing, rows.to_vec()))
}

fn fit<C: Components>(
    request: &MixtureRequest,
    points: &Points,
    train: C,
    heldout: C,
    component: impl Fn(&C, &[f64], f64) -> Component,
    around: Around<'_>,
) -> Result<Fitted, Error> {
    let k = request.components.unwrap_or(1) as usize;
    if k > train.points() {
        return Err(Error::Input(format!(
            "{k} components cannot be learned from {} points: ask for fewer",
            train.points()
        )));
    }
    let concentration = request.concentration.unwrap_or(1.0);
    let model = Mixture::new(train, k, concentration);
    let scored = Mixture::new(heldout, k, concentration);
    let study = PointStudy {
        command: MIXTURE,
        request,
        shared: &request.points,
        settings: request.points.settings()?,
        points,
        model: &model,
        score: &|lambda| (!points.heldout.is_empty()).then(|| pointwise::heldout(&scored, lambda)),
        describe: &|lambda| {
            let weights = model.weights(lambda);
            let mut order: Vec<usize> = (0..k).collect();
            order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
            let components: Vec<Component> = order
                .iter()
                .map(|&i| component(model.components(), model.component(lambda, i), weights[i]))
                .collect();
            let heads = ["component", "weight"].map(str::to_owned).into_iter();
            let rows = components
                .iter()
                .zip(1..)
                .map(|(component, row): (_, usize)| {
                    let cells = component.values().iter().map(|x| cell(*x));
                    [row.to_string(), cell(component.weight())]
                        .into_iter()
                        .chain(cells)
                        .collect()
                });
            Described {
                rows: "component",
                table: (
                    heads.chain(points.names.iter().cloned()).collect(),
                    rows.collect(),
                ),
                pictures: picture(request, points, &components).into_iter().collect(),
                parts: Parts::Components(components),
            }
        },
    };
    let done = carry_out(study, around)?;
    Ok((done.made.output, done.summary))
}

/// Most points of a scatter plot.
const DRAWN: usize = 2000;

/// The means: as pictures where their size is given, else among the points, by the first two columns.
fn picture(request: &MixtureRequest, points: &Points, components: &[Component]) -> Option<Picture> {
    if let Some(size) = request.image {
        let rows = components.iter().map(Component::values);
        return Some(Picture {
            name: "means",
            caption: "The components' means, each from its least to its largest value, the heaviest first.",
            figure: images("Means", rows, size, |i| {
                format!("{:.1} %", 100.0 * components[i].weight())
            }),
        });
    }
    let dim = points.dim();
    if request.kind.unwrap_or_default() != Kind::Gaussian || dim < 2 {
        return None;
    }
    let step = points.count().div_ceil(DRAWN).max(1);
    let drawn = points.train.chunks_exact(dim).step_by(step);
    let means = components.iter().map(|c| (c.values()[0], c.values()[1]));
    let chart = Chart::new("Means among the points")
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
