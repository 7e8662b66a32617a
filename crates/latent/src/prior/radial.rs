//! Thin-plate regression splines: isotropic smooths of one to three columns (Wood 2003).
//!
//! The thin-plate spline through n points minimises the sum of squares plus λ times the integral of the squared second
//! derivatives. It is `f(x) = Σ_j δ_j η(|x − x_j|) + Σ_k α_k t_k(x)`, where the t_k are 1 and the coordinates, and Tᵀδ = 0. With E
//! the matrix of η between the points, the penalty is δᵀEδ. The function η is
//!
//! | columns | η(r) |
//! | --- | --- |
//! | 1 | r³/12 |
//! | 2 | r² log r / (8π) |
//! | 3 | −r / (8π) |
//!
//! The regression spline of k functions has δ in the span of the k eigenvectors of E with the largest absolute eigenvalues, and
//! Tᵀδ = 0. A basis of these δ in which the penalty is the identity gives k − M penalised coefficients with independent normal
//! priors, where M is the number of functions t. The prior is flat in the functions t. Subtracting a combination of the t_k from
//! a penalised function does not change the prior, so these functions are orthogonal to the t_k at the points.

use std::sync::Arc;

use faer::Side;

use super::field::{Field, Triplets};
use super::inputs::{Source, complete};
use super::pin::times;
use super::read::Reader;
use super::spec::SpecError;
use super::term::{Body, Builder};
use crate::linear::kernels::dot;
use crate::{Dense, Error};

/// Default numbers of functions of one, two and three columns. They are those of mgcv, which has 8, 27 and 100 penalised
/// functions.
const FUNCTIONS: [usize; 3] = [10, 30, 104];

/// Most points of E, whose eigenvectors take a time proportional to the cube of their number: a second for 1000 points. If
/// there are more distinct points, a subset represents them, as in mgcv, whose limit is 2000.
const MOST_POINTS: usize = 1000;

/// The points are on a line or a plane if the smallest eigenvalue of TᵀT is below this share of the largest one.
const FLAT: f64 = 1e-12;

/// A thin-plate regression spline.
#[derive(Clone, Debug, PartialEq)]
pub struct Radial {
    /// The columns.
    pub columns: Vec<String>,
    /// The means of the points, which are subtracted from coordinates.
    centre: Vec<f64>,
    /// The unit of all coordinates. It is the root mean square distance of the points from their mean.
    scale: f64,
    points: Dense,
    /// The coefficients δ of each penalised function.
    radial: Dense,
    /// The coefficients of the functions t in each penalised function.
    polynomial: Dense,
}

fn eta(columns: usize, square: f64) -> f64 {
    let eight_pi = 8.0 * std::f64::consts::PI;
    match columns {
        1 => square * square.sqrt() / 12.0,
        // r² log r tends to 0.
        2 if square == 0.0 => 0.0,
        2 => 0.5 * square * square.ln() / eight_pi,
        _ => -square.sqrt() / eight_pi,
    }
}

/// Returns the eigenvalues in increasing order, and the eigenvectors.
fn eigen(matrix: &Dense) -> Result<(Vec<f64>, Dense), Error> {
    let found = (matrix.view().self_adjoint_eigen(Side::Lower))
        .map_err(|_| Error::Prior("a matrix of the smooth has no eigenvectors".to_owned()))?;
    let n = matrix.rows;
    let values = (0..n).map(|k| found.S()[k]).collect();
    let vectors = Dense::from_fn(n, n, |i, j| found.U()[(i, j)]);
    Ok((values, vectors))
}

fn transposed(a: &Dense) -> Dense {
    Dense::from_fn(a.cols, a.rows, |i, j| a.get(j, i))
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Returns the distinct points, and at most `most` of them: first the point nearest to the mean, and then always the point
/// that is farthest from those before it.
fn chosen(mut points: Vec<Vec<f64>>, most: usize) -> Vec<Vec<f64>> {
    let order = |a: &Vec<f64>, b: &Vec<f64>| {
        let each = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
        each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    };
    points.sort_by(order);
    points.dedup();
    if points.len() <= most {
        return points;
    }
    let zero = vec![0.0; points[0].len()];
    let size = |p: &Vec<f64>| squared_distance(p, &zero);
    let first = (0..points.len()).min_by(|a, b| size(&points[*a]).total_cmp(&size(&points[*b])));
    let mut next = first.unwrap_or(0);
    let mut away = vec![f64::INFINITY; points.len()];
    let mut list = Vec::with_capacity(most);
    while list.len() < most {
        list.push(points[next].clone());
        let mut farthest = 0;
        for i in 0..points.len() {
            away[i] = away[i].min(squared_distance(&points[i], &points[next]));
            if away[i] > away[farthest] {
                farthest = i;
            }
        }
        next = farthest;
    }
    list
}

impl Radial {
    /// Creates the spline of k functions, of which the flat ones are 1 and the coordinates, from the coordinates of all rows.
    /// Also returns the number of distinct points if only a subset of them is used.
    ///
    /// # Errors
    /// Fails if the points are on a line or a plane, or if there are fewer distinct points than functions.
    pub fn new(
        columns: Vec<String>,
        rows: &[Vec<f64>],
        functions: Option<usize>,
    ) -> Result<(Self, Option<usize>), Error> {
        let d = columns.len();
        let n = rows.len().max(1) as f64;
        let centre: Vec<f64> = (0..d)
            .map(|c| rows.iter().map(|row| row[c]).sum::<f64>() / n)
            .collect();
        let squares = rows.iter().map(|row| squared_distance(row, &centre));
        let scale = (squares.sum::<f64>() / n).sqrt();
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(Error::Prior("all its points are equal".to_owned()));
        }
        let mut out = Self {
            columns,
            centre,
            scale,
            points: Dense::zeros(0, d),
            radial: Dense::zeros(0, 0),
            polynomial: Dense::zeros(d + 1, 0),
        };
        let scaled: Vec<Vec<f64>> = rows.iter().map(|row| out.scaled(row)).collect();
        let mut distinct = scaled.clone();
        distinct.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        distinct.dedup();
        let points = chosen(scaled, MOST_POINTS);
        let subset = (points.len() < distinct.len()).then_some(distinct.len());
        let k = functions.unwrap_or(FUNCTIONS[d - 1].min(points.len()));
        if k <= d + 1 || k > points.len() {
            return Err(Error::Prior(format!(
                "{k} functions are not possible; `basis` is between {} and the number of distinct points, {}",
                d + 2,
                points.len()
            )));
        }
        out.points = Dense::from_fn(points.len(), d, |i, c| points[i][c]);
        out.fit(k)?;
        Ok((out, subset))
    }

    fn scaled(&self, row: &[f64]) -> Vec<f64> {
        let each = row.iter().zip(&self.centre);
        each.map(|(x, centre)| (x - centre) / self.scale).collect()
    }

    /// Computes the coefficients of k − M penalised functions. Their typical variance at the points is 1: the geometric mean
    /// over the points of the sum of their squares.
    fn fit(&mut self, k: usize) -> Result<(), Error> {
        let (n, d) = (self.points.rows, self.points.cols);
        let point = |i: usize| -> Vec<f64> { (0..d).map(|c| self.points.get(i, c)).collect() };
        let points: Vec<Vec<f64>> = (0..n).map(point).collect();
        let e = Dense::from_fn(n, n, |i, j| {
            eta(d, squared_distance(&points[i], &points[j]))
        });
        let t = Dense::from_fn(n, d + 1, |i, c| if c == 0 { 1.0 } else { points[i][c - 1] });
        let (sizes, turn) = eigen(&times(&transposed(&t), &t))?;
        if sizes[0] <= FLAT * sizes[d] {
            return Err(Error::Prior(
                "all its points are on a line or in a plane; use a smooth of the position along it"
                    .to_owned(),
            ));
        }
        let (values, vectors) = eigen(&e)?;
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|a, b| values[*b].abs().total_cmp(&values[*a].abs()));
        let kept = Dense::from_fn(n, k, |i, j| vectors.get(i, order[j]));
        // The coefficients of the eigenvectors that are orthogonal to the functions t.
        let across = times(&transposed(&t), &kept);
        let (_, all) = eigen(&times(&transposed(&across), &across))?;
        let free = Dense::from_fn(k, k - d - 1, |i, j| all.get(i, j));
        let weighted = Dense::from_fn(k, free.cols, |i, j| values[order[i]] * free.get(i, j));
        let (penalty, directions) = eigen(&times(&transposed(&free), &weighted))?;
        if penalty[0] <= 0.0 {
            return Err(Error::Prior(
                "two of its points are too close to each other; round the columns".to_owned(),
            ));
        }
        let unit = Dense::from_fn(free.cols, free.cols, |i, j| {
            directions.get(i, j) / penalty[j].sqrt()
        });
        let radial = times(&kept, &times(&free, &unit));
        // The least-squares combination of the functions t at the points, with TᵀT = V S Vᵀ.
        let own = times(&e, &radial);
        let inner = times(&transposed(&turn), &times(&transposed(&t), &own));
        let shares = Dense::from_fn(d + 1, own.cols, |i, j| inner.get(i, j) / sizes[i]);
        let polynomial = times(&turn, &shares);
        let fitted = times(&t, &polynomial);
        let variance = |i: usize| -> f64 {
            let squares = (0..own.cols).map(|j| (own.get(i, j) - fitted.get(i, j)).powi(2));
            squares.sum::<f64>().max(f64::MIN_POSITIVE).ln()
        };
        let typical = ((0..n).map(variance).sum::<f64>() / n as f64).exp().sqrt();
        let divided = |mut matrix: Dense| {
            matrix.data.iter_mut().for_each(|x| *x /= typical);
            matrix
        };
        (self.radial, self.polynomial) = (divided(radial), divided(polynomial));
        Ok(())
    }

    /// Returns the number of functions. The penalised functions come first, then 1 and the coordinates.
    pub fn len(&self) -> usize {
        self.radial.cols + self.polynomial.rows
    }

    /// Whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the position of the coefficient of the function 1.
    pub(super) fn level(&self) -> usize {
        self.radial.cols
    }

    /// Returns the values of all functions at a point.
    fn weights(&self, row: &[f64]) -> Vec<(usize, f64)> {
        let (n, d) = (self.points.rows, self.points.cols);
        let x = self.scaled(row);
        let kernel: Vec<f64> = (0..n)
            .map(|i| {
                let squares = (0..d).map(|c| (x[c] - self.points.get(i, c)).powi(2));
                eta(d, squares.sum())
            })
            .collect();
        let polynomials: Vec<f64> = std::iter::once(1.0).chain(x).collect();
        let penalised = (0..self.radial.cols)
            .map(|j| dot(self.radial.col(j), &kernel) - dot(self.polynomial.col(j), &polynomials));
        penalised
            .chain(polynomials.iter().copied())
            .enumerate()
            .collect()
    }

    /// Returns the values of the functions in rows of a table.
    ///
    /// # Errors
    /// Fails if a value is missing.
    pub(super) fn rows(
        &self,
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<Vec<Vec<(usize, f64)>>, String> {
        let all = coordinates(source, &self.columns, rows)?;
        Ok(all.iter().map(|row| self.weights(row)).collect())
    }
}

fn coordinates(
    source: &dyn Source,
    columns: &[String],
    rows: &[usize],
) -> Result<Vec<Vec<f64>>, String> {
    let columns = columns
        .iter()
        .map(|column| complete(source, column, rows))
        .collect::<Result<Vec<_>, _>>()?;
    let row = |i: usize| columns.iter().map(|column| column[i]).collect();
    Ok((0..rows.len()).map(row).collect())
}

impl Builder<'_, '_> {
    /// Builds a thin-plate regression spline.
    pub(super) fn radial(&self, notes: &mut Vec<String>) -> Result<(Reader, Body), SpecError> {
        let known = self.known;
        known.at_most(0)?;
        let at_call = |message: String| known.error(&known.call.name.span, message);
        let columns: Vec<String> = match known.list("on") {
            Some(words) if (1..=FUNCTIONS.len()).contains(&words.len()) => {
                words.iter().map(|word| word.text.clone()).collect()
            }
            _ => return Err(known.misused("`tp` needs one to three columns")),
        };
        let functions = known
            .one("basis")?
            .map(|word| known.count(word))
            .transpose()?;
        let rows = coordinates(self.source, &columns, self.rows).map_err(at_call)?;
        let failed = |error: Error| at_call(format!("`tp`: {error}"));
        let (radial, subset) = Radial::new(columns, &rows, functions).map_err(failed)?;
        if let Some(distinct) = subset {
            notes.push(format!(
                "{}: {MOST_POINTS} of the {distinct} distinct points define its functions",
                self.label
            ));
        }
        let penalised = radial.radial.cols;
        let entries: Triplets = (0..radial.len())
            .map(|i| (i, i, f64::from(u8::from(i < penalised))))
            .collect();
        let flat = Dense::from_fn(radial.len(), radial.polynomial.rows, |i, j| {
            f64::from(u8::from(i == penalised + j))
        });
        let mut field = Field::scaled(radial.len(), entries, flat, None, None).map_err(failed)?;
        // The typical variance at a precision of 1 is 1, so the prior of the standard deviation needs no factor.
        field.settings_mut()[0] = self.setting("precision", None)?;
        Ok((Reader::Radial(Arc::new(radial)), Body::Field(field)))
    }
}
