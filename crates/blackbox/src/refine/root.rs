//! Square roots of covariances. A root maps positions with unit variances to positions with the covariance of a family
//! or of particles.

use jensen_math::simd::LANES;

use crate::dense::{eigen_symmetric, solve_lower_lanes};
use crate::family::Sparse;
use crate::reduce::{affine_row, axpy, combine, sum};
use crate::sizes::WIDTH;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Root {
    Diagonal(Vec<f64>),
    /// A lower triangular matrix, stored as a full square matrix together with its transpose.
    Lower {
        lower: Vec<f64>,
        transposed: Vec<f64>,
    },
    /// The matrix `D (I + V M Vᵀ)`.
    LowRank(LowRankRoot),
    /// The matrix `L⁻ᵀ` for a sparse precision `L Lᵀ`.
    Precision(PrecisionRoot),
}

#[derive(Clone, Debug)]
pub(super) struct PrecisionRoot {
    pub family: Sparse,
    pub omega: Vec<f64>,
}

impl PartialEq for PrecisionRoot {
    fn eq(&self, other: &Self) -> bool {
        self.omega == other.omega
    }
}

/// The matrix `D (I + V M Vᵀ)`, where V is a `dim × rank` matrix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LowRankRoot {
    scale: Vec<f64>,
    v: Vec<f64>,
    transposed: Vec<f64>,
    inner: Vec<f64>,
    /// The matrix M' for which `(I + V M Vᵀ)⁻¹ = I + V M' Vᵀ`.
    inverse: Vec<f64>,
    rank: usize,
}

impl Root {
    pub(super) fn lower(lower: Vec<f64>, dim: usize) -> Self {
        let mut transposed = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..=i {
                transposed[j * dim + i] = lower[i * dim + j];
            }
        }
        Self::Lower { lower, transposed }
    }

    /// Computes `A x`, where x is a `dim × lanes` matrix.
    pub(super) fn times(&self, x: &[f64], lanes: usize) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        match self {
            Self::Diagonal(scale) => scale_rows(scale, x, lanes, &mut out),
            Self::Lower { lower, .. } => multiply(Shape::Lower, lower, x, lanes, &mut out),
            Self::LowRank(root) => {
                out.copy_from_slice(x);
                root.apply(&root.inner, lanes, &mut out);
                times_rows(&root.scale, lanes, &mut out);
            }
            Self::Precision(root) => return root.family.root_times(&root.omega, x, lanes),
        }
        out
    }

    /// Computes `out = Aᵀ g`.
    pub(super) fn transposed_times(&self, g: &[f64], lanes: usize, out: &mut [f64]) {
        match self {
            Self::Diagonal(scale) => scale_rows(scale, g, lanes, out),
            Self::Lower { transposed, .. } => multiply(Shape::Upper, transposed, g, lanes, out),
            Self::LowRank(root) => {
                scale_rows(&root.scale, g, lanes, out);
                root.apply(&root.inner, lanes, out);
            }
            Self::Precision(root) => {
                let pulled = root.family.root_transposed_times(&root.omega, g, lanes);
                out.copy_from_slice(&pulled);
            }
        }
    }

    /// Computes `g ← Aᵀ g`.
    pub(super) fn pull(&self, lanes: usize, g: &mut [f64]) {
        match self {
            Self::Diagonal(scale) => times_rows(scale, lanes, g),
            Self::LowRank(root) => {
                times_rows(&root.scale, lanes, g);
                root.apply(&root.inner, lanes, g);
            }
            Self::Lower { .. } | Self::Precision(_) => {
                let given = g.to_vec();
                self.transposed_times(&given, lanes, g);
            }
        }
    }

    /// Computes `x ← A⁻¹ x`.
    pub(super) fn solve(&self, x: &mut [f64], lanes: usize) {
        let divide = |scale: &[f64], x: &mut [f64]| {
            for (row, s) in x.chunks_mut(lanes).zip(scale) {
                row.iter_mut().for_each(|x| *x /= s);
            }
        };
        match self {
            Self::Diagonal(scale) => divide(scale, x),
            Self::Lower { lower, .. } => solve_lower_lanes(lower, x.len() / lanes, x, lanes),
            Self::LowRank(root) => {
                divide(&root.scale, x);
                root.apply(&root.inverse, lanes, x);
            }
            Self::Precision(root) => {
                let solved = root.family.root_solve(&root.omega, x, lanes);
                x.copy_from_slice(&solved);
            }
        }
    }

    pub(super) fn times_root(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Diagonal(a), Self::Diagonal(b)) => {
                Self::Diagonal(a.iter().zip(b).map(|(a, b)| a * b).collect())
            }
            (Self::Lower { lower, .. }, Self::Diagonal(scale)) => {
                let dim = scale.len();
                let mut lower = lower.clone();
                for row in lower.chunks_mut(dim) {
                    row.iter_mut().zip(scale).for_each(|(x, s)| *x *= s);
                }
                Self::lower(lower, dim)
            }
            (_, Self::Lower { lower, .. }) => {
                let dim = lower.len().isqrt();
                Self::lower(self.times(lower, dim), dim)
            }
            (_, Self::LowRank(_) | Self::Precision(_))
            | (Self::LowRank(_) | Self::Precision(_), _) => {
                unreachable!(
                    "a whitening is diagonal or lower, and the root of such a family stays apart"
                )
            }
        }
    }

    pub(super) fn log_det(&self) -> f64 {
        let logs = |values: &mut dyn Iterator<Item = f64>| {
            let logs: Vec<f64> = values.map(|x| x.abs().ln()).collect();
            sum(&logs)
        };
        match self {
            Self::Diagonal(scale) => logs(&mut scale.iter().copied()),
            Self::Lower { lower, .. } => {
                let dim = lower.len().isqrt();
                logs(&mut (0..dim).map(|i| lower[i * dim + i]))
            }
            Self::LowRank(root) => {
                let (values, _) = root.spectrum();
                let scales = logs(&mut root.scale.iter().copied());
                scales + 0.5 * logs(&mut values.iter().map(|l| 1.0 + l))
            }
            Self::Precision(root) => root.family.root_log_det(&root.omega),
        }
    }
}

impl LowRankRoot {
    /// Creates the root of `D² + U Uᵀ` from the logarithms of the elements of D and from the `dim × rank` matrix U.
    pub(super) fn new(log_sd: &[f64], factors: &[f64], rank: usize) -> Self {
        let scale: Vec<f64> = log_sd.iter().map(|l| l.exp()).collect();
        let rows = factors.chunks(rank).zip(&scale);
        let v = rows.flat_map(|(row, s)| row.iter().map(move |u| u / s));
        let v: Vec<f64> = v.collect();
        let mut root = Self {
            transposed: transposed(&v, rank),
            v,
            scale,
            inner: Vec::new(),
            inverse: Vec::new(),
            rank,
        };
        let (values, vectors) = root.spectrum();
        let function = |f: &dyn Fn(f64) -> f64| {
            let mut out = vec![0.0; rank * rank];
            for (value, vector) in values.iter().zip(vectors.chunks(rank)) {
                for (a, row) in vector.iter().zip(out.chunks_mut(rank)) {
                    axpy(f(*value) * a, vector, row);
                }
            }
            out
        };
        root.inner = function(&|l| 1.0 / (1.0 + (1.0 + l).sqrt()));
        root.inverse = function(&|l| -1.0 / ((1.0 + l).sqrt() * (1.0 + (1.0 + l).sqrt())));
        root
    }

    /// Computes `x ← (I + V K Vᵀ) x`.
    fn apply(&self, k: &[f64], lanes: usize, x: &mut [f64]) {
        let mut projected = vec![0.0; self.rank * lanes];
        multiply_panel(Shape::Full, &self.transposed, x, lanes, &mut projected);
        let mut mixed = vec![0.0; self.rank * lanes];
        multiply_panel(Shape::Full, k, &projected, lanes, &mut mixed);
        multiply_panel(Shape::Full, &self.v, &mixed, lanes, x);
    }

    /// Returns the eigenvalues of `Vᵀ V`, followed by the eigenvectors, one after another.
    fn spectrum(&self) -> (Vec<f64>, Vec<f64>) {
        let rank = self.rank;
        let mut gram = vec![0.0; rank * rank];
        for row in self.v.chunks(rank) {
            for (a, out) in row.iter().zip(gram.chunks_mut(rank)) {
                axpy(*a, row, out);
            }
        }
        let (mut values, vectors) = eigen_symmetric(&gram, rank);
        // Rounding errors can make eigenvalues negative.
        values.iter_mut().for_each(|value| *value = value.max(0.0));
        (values, vectors)
    }
}

fn scale_rows(scale: &[f64], x: &[f64], lanes: usize, out: &mut [f64]) {
    for ((row, x), s) in out.chunks_mut(lanes).zip(x.chunks(lanes)).zip(scale) {
        affine_row(0.0, *s, x, row);
    }
}

fn times_rows(scale: &[f64], lanes: usize, x: &mut [f64]) {
    for (row, s) in x.chunks_mut(lanes).zip(scale) {
        row.iter_mut().for_each(|x| *x *= s);
    }
}

fn transposed(v: &[f64], rank: usize) -> Vec<f64> {
    let column = |k: usize| v.iter().skip(k).step_by(rank).copied();
    (0..rank).flat_map(column).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Lower,
    Upper,
    Full,
}

/// Computes `out = A x` for a triangular square matrix A. The function copies [`WIDTH`] lanes together, so that the
/// multiplication reads them from the cache, processes four rows at a time, and skips the
/// columns in which A is zero.
fn multiply(shape: Shape, a: &[f64], x: &[f64], lanes: usize, out: &mut [f64]) {
    let dim = x.len() / lanes;
    let (mut panel, mut product) = (vec![0.0; dim * WIDTH], vec![0.0; dim * WIDTH]);
    for first in (0..lanes).step_by(WIDTH) {
        let given = WIDTH.min(lanes - first);
        // Computing additional lanes to fill a vector costs less than treating the remainder separately.
        let width = given.next_multiple_of(LANES);
        let panel = &mut panel[..dim * width];
        for (to, x) in panel.chunks_mut(width).zip(x.chunks(lanes)) {
            to[..given].copy_from_slice(&x[first..first + given]);
            to[given..].fill(0.0);
        }
        let product = &mut product[..dim * width];
        product.fill(0.0);
        multiply_panel(shape, a, panel, width, product);
        for (out, from) in out.chunks_mut(lanes).zip(product.chunks(width)) {
            out[first..first + given].copy_from_slice(&from[..given]);
        }
    }
}

/// Adds the product to `out` for a small number of lanes. [`multiply`] calls this function for each panel.
fn multiply_panel(shape: Shape, a: &[f64], x: &[f64], lanes: usize, out: &mut [f64]) {
    let dim = x.len() / lanes;
    for (four, rows) in out.chunks_mut(4 * lanes).enumerate() {
        let i = 4 * four;
        let height = rows.len() / lanes;
        let columns = match shape {
            Shape::Lower => 0..i + height,
            Shape::Upper => i..dim,
            Shape::Full => 0..dim,
        };
        let weights = |k: usize| &a[(i + k) * dim + columns.start..(i + k) * dim + columns.end];
        let x = &x[columns.start * lanes..columns.end * lanes];
        if height == 4 {
            let mut parts = rows.chunks_mut(lanes);
            let outs = [(); 4].map(|()| parts.next().expect("four rows"));
            combine([0, 1, 2, 3].map(weights), x, lanes, 0, outs);
        } else {
            for (k, row) in rows.chunks_mut(lanes).enumerate() {
                for (w, x) in weights(k).iter().zip(x.chunks(lanes)) {
                    axpy(*w, x, row);
                }
            }
        }
    }
}
