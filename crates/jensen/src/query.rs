//! Evaluation of a density and its derivatives at given points.

use jensen_density::{Lanes, LanesMut, TwiceDifferentiable};
use serde::Serialize;

use crate::Error;

const BLOCK: usize = 256;

/// The points at which a density is evaluated, and the derivatives to compute there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<'a> {
    /// The points on the unconstrained scale.
    pub points: &'a [Vec<f64>],
    /// Whether to compute gradients.
    pub gradient: bool,
    /// The directions for Hessian-vector products. The slice contains either one direction per point or a single
    /// direction for all points.
    pub directions: Option<&'a [Vec<f64>]>,
}

/// The results of a query in the order of the points. In JSON, numbers that are not finite are written as `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// The log density at every point, in nats.
    pub value: Vec<f64>,
    /// The gradient at every point. At a point where the log density is not finite, the elements of the gradient are
    /// NaN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient: Option<Vec<Vec<f64>>>,
    /// The Hessian-vector product at every point. At a point where the log density is not finite, its elements are NaN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hvp: Option<Vec<Vec<f64>>>,
}

/// Evaluates a density at the points of `query`.
///
/// # Errors
/// Fails with [`Error::Input`] if a point or a direction does not have the dimension of the density. Also fails if the
/// number of directions is neither one nor the number of points.
pub fn evaluate<D: TwiceDifferentiable>(density: &D, query: &Query<'_>) -> Result<Answer, Error> {
    let dim = density.dim();
    check_dimensions("point", query.points, dim)?;
    if let Some(directions) = query.directions {
        check_dimensions("direction", directions, dim)?;
        if directions.len() != 1 && directions.len() != query.points.len() {
            return Err(Error::Input(format!(
                "{} directions for {} points: expected one per point, or one for all",
                directions.len(),
                query.points.len()
            )));
        }
    }
    let mut answer = Answer {
        gradient: query.gradient.then(Vec::new),
        hvp: query.directions.map(|_| Vec::new()),
        ..Answer::default()
    };
    let mut ws = density.workspace(BLOCK.min(query.points.len()));
    for (block, points) in query.points.chunks(BLOCK).enumerate() {
        let lanes = points.len();
        let z = pack(points.iter(), dim, lanes);
        let z = Lanes::new(&z, dim, lanes);
        let mut values = vec![0.0; lanes];
        if let Some(gradients) = &mut answer.gradient {
            let mut grad = vec![0.0; dim * lanes];
            density.value_grad(
                &mut ws,
                z,
                &mut values,
                LanesMut::new(&mut grad, dim, lanes),
            );
            gradients.extend(unpack(&grad, dim, &values));
        } else {
            density.value(&mut ws, z, &mut values);
        }
        if let (Some(products), Some(directions)) = (&mut answer.hvp, query.directions) {
            let of_point = |i: usize| match directions {
                [one] => one,
                many => &many[block * BLOCK + i],
            };
            let v = pack((0..lanes).map(of_point), dim, lanes);
            let mut out = vec![0.0; dim * lanes];
            density.hvp(
                &mut ws,
                z,
                Lanes::new(&v, dim, lanes),
                LanesMut::new(&mut out, dim, lanes),
            );
            products.extend(unpack(&out, dim, &values));
        }
        answer.value.extend(values);
    }
    Ok(answer)
}

fn check_dimensions(what: &str, vectors: &[Vec<f64>], dim: usize) -> Result<(), Error> {
    match vectors.iter().position(|v| v.len() != dim) {
        None => Ok(()),
        Some(i) => Err(Error::Input(format!(
            "{what} {} has {} coordinates, expected {dim}, the unconstrained dimension of the model",
            i + 1,
            vectors[i].len()
        ))),
    }
}

fn pack<'a>(points: impl Iterator<Item = &'a Vec<f64>>, dim: usize, lanes: usize) -> Vec<f64> {
    let mut z = vec![0.0; dim * lanes];
    for (l, point) in points.enumerate() {
        for (d, x) in point.iter().enumerate() {
            z[d * lanes + l] = *x;
        }
    }
    z
}

/// Splits the lanes into one vector per point. The elements of a vector are NaN if the value at its point is not
/// finite.
fn unpack(lanes: &[f64], dim: usize, values: &[f64]) -> Vec<Vec<f64>> {
    let count = values.len();
    (0..count)
        .map(|l| {
            if values[l].is_finite() {
                (0..dim).map(|d| lanes[d * count + l]).collect()
            } else {
                vec![f64::NAN; dim]
            }
        })
        .collect()
}
