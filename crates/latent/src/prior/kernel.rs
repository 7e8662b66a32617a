//! Covariance functions, listed in one table of shapes. For each shape, the module computes values and derivatives with
//! respect to the logarithms of the hyperparameters (Rasmussen and Williams 2006, chapters 4 and 5).
//!
//! A stationary kernel is `variance · f(s)` with `s = Σ_d (x_d − x'_d)²/ℓ_d²`. Its derivative with respect to log ℓ_d
//! is `variance · g(s) · (x_d − x'_d)²/ℓ_d²` with `g = −2 f′`.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use jensen_math::simd::Simd;
use jensen_math::vmath::slices;
use rayon::prelude::*;

use crate::Dense;

/// The shape of a covariance function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The squared exponential exp(−s/2).
    Rbf,
    /// The Matérn function exp(−√s) with smoothness 1/2.
    Matern12,
    /// The Matérn function (1 + √(3s)) exp(−√(3s)) with smoothness 3/2.
    Matern32,
    /// The Matérn function (1 + √(5s) + 5s/3) exp(−√(5s)) with smoothness 5/2.
    Matern52,
    /// The rational quadratic function (1 + s/(2α))^(−α). It is the mean of squared exponentials whose 1/ℓ² has a gamma
    /// distribution with shape α, and tends to a squared exponential for large α. The last lengthscale is α.
    RationalQuadratic,
    /// The inner product x·x′.
    Linear,
    /// The constant 1, which adds a common level.
    Constant,
    /// A function that is 1 if all coordinates are equal, and 0 otherwise. It gives each group an independent level.
    Same,
}

/// The description of a shape for specifications and for the book.
pub struct KernelRow {
    /// The shape.
    pub shape: Shape,
    /// The name of the shape in a specification.
    pub name: &'static str,
    /// Whether the shape has lengthscales.
    pub stationary: bool,
    /// Whether the inputs are the points of a circle, one for each value of a column modulo a period.
    pub periodic: bool,
}

impl Shape {
    /// The shapes that a specification can contain in `gp(…)`.
    pub const TABLE: [KernelRow; 9] = {
        const fn row(shape: Shape, name: &'static str, stationary: bool) -> KernelRow {
            KernelRow {
                shape,
                name,
                stationary,
                periodic: false,
            }
        }
        const fn periodic(row: KernelRow) -> KernelRow {
            KernelRow {
                periodic: true,
                ..row
            }
        }
        [
            row(Shape::Rbf, "rbf", true),
            row(Shape::Matern12, "matern12", true),
            row(Shape::Matern32, "matern32", true),
            row(Shape::Matern52, "matern52", true),
            row(Shape::RationalQuadratic, "rq", true),
            row(Shape::Linear, "linear", false),
            row(Shape::Constant, "constant", false),
            // On a circle, `rbf` is exp(−2 sin²(πd/period)/ℓ²) (MacKay 1998), and `linear` is cos(2πd/period).
            periodic(row(Shape::Rbf, "periodic", true)),
            periodic(row(Shape::Linear, "cosine", false)),
        ]
    };

    /// Whether the kernel depends only on distances and has lengthscales.
    pub fn is_stationary(self) -> bool {
        Self::TABLE
            .iter()
            .any(|row| row.shape == self && row.stationary)
    }

    /// Whether the shape has the parameter α, which follows the lengthscales.
    pub fn has_alpha(self) -> bool {
        self == Self::RationalQuadratic
    }

    /// Divides the parameters of a kernel into its lengthscales and α, which is 1 for shapes without this parameter.
    fn split(self, parameters: &[f64]) -> (&[f64], f64) {
        match (self.has_alpha(), parameters) {
            (true, [lengthscales @ .., alpha]) => (lengthscales, *alpha),
            _ => (parameters, 1.0),
        }
    }

    fn profile(self, simd: Simd, alpha: f64, s: &[f64], f: &mut [f64]) {
        let mut e = vec![0.0; s.len()];
        let rate = self.exponent(simd, alpha, s, &mut e);
        slices::exp(simd, &e, f);
        match self {
            Self::Matern32 => f
                .iter_mut()
                .zip(s)
                .for_each(|(f, s)| *f *= 1.0 + rate * s.sqrt()),
            Self::Matern52 => f
                .iter_mut()
                .zip(s)
                .for_each(|(f, s)| *f *= 1.0 + rate * s.sqrt() + 5.0 / 3.0 * s),
            Self::Rbf
            | Self::Matern12
            | Self::RationalQuadratic
            | Self::Linear
            | Self::Constant
            | Self::Same => {}
        }
    }

    /// Computes g for every s. If f has no slope at s = 0 (Matérn 1/2), the result there is 0, because g is always
    /// multiplied by s.
    fn slope(self, simd: Simd, alpha: f64, s: &[f64], g: &mut [f64]) {
        let mut e = vec![0.0; s.len()];
        let rate = self.exponent(simd, alpha, s, &mut e);
        slices::exp(simd, &e, g);
        match self {
            Self::Matern12 => g.iter_mut().zip(s).for_each(|(g, s)| {
                *g = if *s > 0.0 { *g / s.sqrt() } else { 0.0 };
            }),
            Self::Matern32 => g.iter_mut().for_each(|g| *g *= 3.0),
            Self::Matern52 => g
                .iter_mut()
                .zip(s)
                .for_each(|(g, s)| *g *= 5.0 / 3.0 * (1.0 + rate * s.sqrt())),
            Self::RationalQuadratic => g
                .iter_mut()
                .zip(s)
                .for_each(|(g, s)| *g /= 1.0 + 0.5 * s / alpha),
            Self::Rbf | Self::Linear | Self::Constant | Self::Same => {}
        }
    }

    /// Computes the kernel's exponents, which are −s/2, −α log(1 + s/(2α)) or −rate·√s, and returns the rate.
    fn exponent(self, simd: Simd, alpha: f64, s: &[f64], e: &mut [f64]) -> f64 {
        let rate = match self {
            Self::Matern12 => 1.0,
            Self::Matern32 => 3f64.sqrt(),
            Self::Matern52 => 5f64.sqrt(),
            Self::RationalQuadratic => {
                let shares: Vec<f64> = s.iter().map(|s| 0.5 * s / alpha).collect();
                slices::log1p(simd, &shares, e);
                e.iter_mut().for_each(|e| *e *= -alpha);
                return 0.0;
            }
            Self::Rbf | Self::Linear | Self::Constant | Self::Same => {
                e.iter_mut().zip(s).for_each(|(e, s)| *e = -0.5 * s);
                return 0.0;
            }
        };
        e.iter_mut().zip(s).for_each(|(e, s)| *e = -rate * s.sqrt());
        rate
    }
}

/// Number of matrix columns per task. The number is fixed, so that results do not depend on the number of threads.
const BLOCK: usize = 64;

/// Squared distances are computed from inner products if there are at least this many coordinates.
const MANY: usize = 12;

/// The points of a kernel evaluation, one per row, after division by the lengthscales.
struct Scaled {
    points: Dense,
    squares: Vec<f64>,
}

impl Scaled {
    /// Returns the points of a stationary kernel minus `centre`, in units of the lengthscales. Centring reduces
    /// rounding errors in inner products.
    fn stationary(points: &Dense, centre: &[f64], lengthscales: &[f64]) -> Self {
        let mut scaled = points.clone();
        if scaled.rows > 0 {
            for (d, column) in scaled.data.chunks_mut(points.rows).enumerate() {
                let inverse = 1.0 / lengthscales[d % lengthscales.len()];
                column
                    .iter_mut()
                    .for_each(|x| *x = (*x - centre[d]) * inverse);
            }
        }
        Self::plain(scaled)
    }

    fn plain(points: Dense) -> Self {
        let mut squares = vec![0.0; points.rows];
        for d in 0..points.cols {
            for (s, x) in squares.iter_mut().zip(points.col(d)) {
                *s += x * x;
            }
        }
        Self { points, squares }
    }
}

/// A covariance function between two sets of points, at fixed hyperparameters.
pub struct Kernel<'a> {
    shape: Shape,
    variance: f64,
    lengthscales: &'a [f64],
    alpha: f64,
    rows: Scaled,
    columns: Scaled,
    simd: Simd,
}

impl<'a> Kernel<'a> {
    /// Creates the kernel between `rows` and `columns`, which have one point per row. `parameters` are the lengthscales, a
    /// single one or one per coordinate, followed by α if the shape has it.
    pub fn new(
        shape: Shape,
        variance: f64,
        parameters: &'a [f64],
        rows: &Dense,
        columns: &Dense,
    ) -> Self {
        let (lengthscales, alpha) = shape.split(parameters);
        let centre: Vec<f64> = (0..columns.cols)
            .map(|d| columns.col(d).iter().sum::<f64>() / columns.rows.max(1) as f64)
            .collect();
        let scaled = |points: &Dense| match shape.is_stationary() {
            true => Scaled::stationary(points, &centre, lengthscales),
            false => Scaled::plain(points.clone()),
        };
        Self {
            shape,
            variance,
            lengthscales,
            alpha,
            rows: scaled(rows),
            columns: scaled(columns),
            simd: Simd::detect(),
        }
    }

    fn arguments(&self, block: usize, out: &mut [f64]) {
        let (n, d) = (self.rows.points.rows, self.rows.points.cols);
        let first = block * BLOCK;
        let width = out.len() / n;
        let linear = self.shape == Shape::Linear;
        if linear || d >= MANY {
            let right = self.columns.points.view().get(first..first + width, ..);
            matmul(
                MatMut::from_column_major_slice_mut(out, n, width),
                Accum::Replace,
                self.rows.points.view(),
                right.transpose(),
                1.0,
                Par::Seq,
            );
            if linear {
                return;
            }
        } else {
            out.fill(0.0);
        }
        for (column, j) in out.chunks_mut(n).zip(first..) {
            if d < MANY {
                for k in 0..d {
                    let centre = self.columns.points.get(j, k);
                    for (s, x) in column.iter_mut().zip(self.rows.points.col(k)) {
                        *s += (x - centre) * (x - centre);
                    }
                }
                continue;
            }
            let square = self.columns.squares[j];
            for ((s, i), other) in column.iter_mut().zip(0..).zip(&self.rows.squares) {
                let sum = square + other;
                let distance = sum - 2.0 * *s;
                // This difference loses digits for points that are close to each other.
                *s = if distance < 1e-4 * sum {
                    (0..d)
                        .map(|k| self.rows.points.get(i, k) - self.columns.points.get(j, k))
                        .map(|x| x * x)
                        .sum()
                } else {
                    distance
                };
            }
        }
    }

    fn block(&self, block: usize, out: &mut [f64]) {
        match self.shape {
            Shape::Constant => out.fill(1.0),
            Shape::Linear => self.arguments(block, out),
            Shape::Same => {
                self.arguments(block, out);
                out.iter_mut().for_each(|s| *s = f64::from(*s == 0.0));
            }
            _ => {
                let mut s = vec![0.0; out.len()];
                self.arguments(block, &mut s);
                self.shape.profile(self.simd, self.alpha, &s, out);
            }
        }
    }

    /// Writes the covariances of all rows with one block of columns to `out`.
    pub fn write(&self, block: usize, out: &mut [f64]) {
        self.block(block, out);
        out.iter_mut().for_each(|x| *x *= self.variance);
    }

    /// Returns the variance at each point in `rows`.
    pub fn diagonal(&self) -> Vec<f64> {
        match self.shape {
            Shape::Linear => self
                .rows
                .squares
                .iter()
                .map(|s| self.variance * s)
                .collect(),
            _ => vec![self.variance; self.rows.points.rows],
        }
    }

    /// Writes the covariances of all rows with one column to `out`.
    pub fn column(&self, column: usize, out: &mut [f64]) {
        let first = column / BLOCK * BLOCK;
        let width = BLOCK.min(self.columns.points.rows - first);
        let mut block = vec![0.0; width * out.len()];
        self.write(column / BLOCK, &mut block);
        out.copy_from_slice(&block[(column - first) * out.len()..][..out.len()]);
    }

    /// Computes `Σ_ij H_ij ∂K_ij/∂log θ` over a block of columns j, for the variance, for each lengthscale and for α.
    /// `weights` contains the same columns of H. The sum over all blocks is the contraction of the whole matrix.
    pub fn contract(&self, block: usize, weights: &[f64]) -> Vec<f64> {
        let mut k = vec![0.0; weights.len()];
        self.write(block, &mut k);
        let product: Vec<f64> = k.iter().zip(weights).map(|(k, w)| k * w).collect();
        let mut out = vec![jensen_math::sum::pairwise_sum(&product)];
        if !self.shape.is_stationary() {
            return out;
        }
        let mut s = vec![0.0; weights.len()];
        self.arguments(block, &mut s);
        let by_alpha = (self.shape.has_alpha()).then(|| self.contract_alpha(&s, &product));
        self.shape.slope(self.simd, self.alpha, &s, &mut k);
        // The weights are multiplied by the slope.
        for (k, w) in k.iter_mut().zip(weights) {
            *k *= w * self.variance;
        }
        if self.lengthscales.len() == 1 {
            k.iter_mut().zip(&s).for_each(|(k, s)| *k *= s);
            out.push(jensen_math::sum::pairwise_sum(&k));
        } else {
            out.extend(self.contract_coordinates(block, &k));
        }
        out.extend(by_alpha);
        out
    }

    /// Computes the part of the contraction for α. With u = s/(2α), the derivative of log K with respect to log α is
    /// α (u/(1 + u) − log(1 + u)). `product` contains the products of K and the weights.
    fn contract_alpha(&self, s: &[f64], product: &[f64]) -> f64 {
        let alpha = self.alpha;
        let slope = |s: f64| {
            let u = 0.5 * s / alpha;
            alpha * (u / (1.0 + u) - u.ln_1p())
        };
        let terms: Vec<f64> = s.iter().zip(product).map(|(s, p)| slope(*s) * p).collect();
        jensen_math::sum::pairwise_sum(&terms)
    }

    /// Computes the part of the contraction for the lengthscale of each coordinate. `k` contains the products of the
    /// weights, the variance and the slope.
    fn contract_coordinates(&self, block: usize, k: &[f64]) -> Vec<f64> {
        let n = self.rows.points.rows;
        // Σ_ij H_ij (x_i − z_j)² = Σ_j (Σ_i H_ij x_i² − 2 z_j Σ_i H_ij x_i + z_j² Σ_i H_ij).
        let (d, first, width) = (self.rows.points.cols, block * BLOCK, k.len() / n);
        let moments = |points: &Dense| {
            let mut out = vec![0.0; width * d];
            matmul(
                MatMut::from_column_major_slice_mut(&mut out, width, d),
                Accum::Replace,
                MatRef::from_column_major_slice(k, n, width).transpose(),
                points.view(),
                1.0,
                Par::Seq,
            );
            out
        };
        let mut squared = self.rows.points.clone();
        squared.data.iter_mut().for_each(|x| *x *= *x);
        let (linear, square) = (moments(&self.rows.points), moments(&squared));
        let totals: Vec<f64> = k.chunks(n).map(jensen_math::sum::pairwise_sum).collect();
        let of = |c: usize| -> f64 {
            let own = |j: usize| {
                let z = self.columns.points.get(first + j, c);
                square[c * width + j] + z * (z * totals[j] - 2.0 * linear[c * width + j])
            };
            (0..width).map(own).sum()
        };
        (0..d).map(of).collect()
    }
}

/// Calls `write` for every block of columns of `out`, in parallel.
pub fn for_blocks(out: &mut Dense, write: impl Fn(usize, &mut [f64]) + Sync) {
    let rows = out.rows;
    for_columns(&mut out.data, rows, write);
}

/// Calls `write` for every block of columns of a matrix with this number of rows, in parallel.
pub fn for_columns(out: &mut [f64], rows: usize, write: impl Fn(usize, &mut [f64]) + Sync) {
    if rows == 0 {
        return;
    }
    out.par_chunks_mut(BLOCK * rows)
        .enumerate()
        .for_each(|(block, columns)| write(block, columns));
}

/// Sums the results of `part` over the blocks of columns of `matrix`, in a fixed order.
pub fn sum_blocks(
    matrix: &Dense,
    length: usize,
    part: impl Fn(usize, &[f64]) -> Vec<f64> + Sync,
) -> Vec<f64> {
    let mut total = vec![0.0; length];
    if matrix.rows == 0 {
        return total;
    }
    let parts: Vec<Vec<f64>> = matrix
        .data
        .par_chunks(BLOCK * matrix.rows)
        .enumerate()
        .map(|(block, columns)| part(block, columns))
        .collect();
    for part in parts {
        for (t, x) in total.iter_mut().zip(part) {
            *t += x;
        }
    }
    total
}
