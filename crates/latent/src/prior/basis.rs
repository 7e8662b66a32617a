//! Basis functions of a Hilbert-space Gaussian process: sine functions on a box around the table's rows (Solin and
//! Särkkä 2020, equations 55 and 56).

use std::f64::consts::PI;

use super::inputs::{Covariate, Source, matrix};
use crate::Dense;

/// Products of sine functions, `φ_j(x) = Π_d L_d^(−½) sin(ω_jd (x_d − c_d + L_d))` with `ω_jd = π j_d / (2 L_d)`. They
/// are the eigenfunctions of the Laplacian on the box c ± L that are zero at the border of the box.
#[derive(Clone, Debug, PartialEq)]
pub struct Basis {
    /// The coordinates.
    pub inputs: Vec<Covariate>,
    /// The centre of the rows' range in each coordinate.
    pub centre: Vec<f64>,
    /// Half the rows' range.
    pub range: Vec<f64>,
    /// The half width of the box divided by half of the rows' range. It is more than 1.
    pub boundary: f64,
    /// Number of functions along each coordinate.
    pub counts: Vec<usize>,
}

impl Basis {
    /// Number of functions.
    pub fn len(&self) -> usize {
        self.counts.iter().product()
    }

    /// Whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the half width of the box along a coordinate.
    fn half(&self, d: usize) -> f64 {
        self.boundary * self.range[d]
    }

    /// Returns ω, with one row per function and one column per coordinate.
    pub(super) fn frequencies(&self) -> Dense {
        Dense::from_fn(self.len(), self.counts.len(), |j, d| {
            PI * self.number(j, d) as f64 / (2.0 * self.half(d))
        })
    }

    /// Returns the number j_d of a function, which starts at 1. The numbers of the first coordinate change fastest.
    fn number(&self, j: usize, d: usize) -> usize {
        let before: usize = self.counts[..d].iter().product();
        j / before % self.counts[d] + 1
    }

    /// Computes the functions at points. `points` has one row per point and one column per coordinate.
    pub(super) fn at(&self, points: &Dense) -> Dense {
        let n = points.rows;
        let mut out = Dense::zeros(n, self.len());
        if n == 0 {
            return out;
        }
        // Along each coordinate, sin(jθ) by the recurrence of Chebyshev polynomials would lose digits, so each is computed.
        let along: Vec<Dense> = (0..self.counts.len())
            .map(|d| {
                let half = self.half(d);
                Dense::from_fn(n, self.counts[d], |i, j| {
                    let angle = PI * (points.get(i, d) - self.centre[d] + half) / (2.0 * half);
                    (angle * (j + 1) as f64).sin() / half.sqrt()
                })
            })
            .collect();
        for (j, column) in out.data.chunks_mut(n).enumerate() {
            column.fill(1.0);
            for (d, along) in along.iter().enumerate() {
                let own = along.col(self.number(j, d) - 1);
                column.iter_mut().zip(own).for_each(|(x, s)| *x *= s);
            }
        }
        out
    }

    /// Computes the functions at rows of a table.
    ///
    /// # Errors
    /// Fails if a value is missing or a row is outside the box.
    pub(super) fn values(&self, source: &dyn Source, rows: &[usize]) -> Result<Dense, String> {
        let points = matrix(&self.inputs, source, rows)?;
        for (d, input) in self.inputs.iter().enumerate() {
            // Half-way to the border, where all functions are zero.
            let reach = 0.5 * (1.0 + self.boundary) * self.range[d];
            let outside = |x: &f64| (x - self.centre[d]).abs() > reach * (1.0 + 1e-9);
            if let Some(i) = points.col(d).iter().position(outside) {
                let table = |x: f64| input.centre + input.scale * x;
                return Err(format!(
                    "row {} has `{}` = {}, but the functions of `hsgp` represent the process from {:.6} to {:.6} \
                     only; fit with a larger `boundary`",
                    rows[i] + 1,
                    input.column,
                    table(points.get(i, d)),
                    table(self.centre[d] - reach),
                    table(self.centre[d] + reach)
                ));
            }
        }
        Ok(self.at(&points))
    }

    /// Returns a grid of points over the rows' range, including its ends.
    pub(super) fn probes(&self) -> Dense {
        let dimensions = self.counts.len();
        let along = PROBES[dimensions - 1];
        let total = along.pow(dimensions as u32);
        Dense::from_fn(total, dimensions, |i, d| {
            let number = i / along.pow(d as u32) % along;
            let share = number as f64 / (along - 1) as f64;
            self.centre[d] + (2.0 * share - 1.0) * self.range[d]
        })
    }
}

/// Covariances are compared at this many points per coordinate, for one, two and three coordinates. There are at most
/// 64 points in total.
const PROBES: [usize; 3] = [41, 7, 4];
