//! Sparse linear algebra for priors that are given by their precision matrix.
//!
//! A = Q + WᵀΛW has the same pattern for every λ, so the fill-reducing ordering and the symbolic factorisation are
//! computed only once. The memory is linear in the number of non-zeros of the factor. For an intrinsic prior with null
//! space N (r columns), the factorisation of Q omits the rows and columns of r latent variables J. For orthonormal N,
//! the determinant follows from `|Q_−J| = |Q|₊ |N_J|²`.

use std::collections::BTreeMap;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::LltRegularization;
use faer::sparse::linalg::SupernodalThreshold;
use faer::sparse::linalg::cholesky::supernodal::SymbolicSupernodalCholesky;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, LltRef, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering,
    factorize_symbolic_cholesky,
};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::{Conj, MatMut, Par, Side};

use super::kernels::map;
use super::selected::Order;
use super::{Block, design};
use crate::{CovarianceSensitivity, Dense, Design, Error, LatentModel, Precision, Sparse};
use jensen_math::constants::LOG_TWO_PI;

pub(crate) fn diagonal(variances: &[f64]) -> Precision {
    let mut matrix = Sparse::identity(variances.len());
    for (q, v) in matrix.value.iter_mut().zip(variances) {
        *q = 1.0 / v;
    }
    Precision {
        log_determinant: Some(-variances.iter().map(|v| v.ln()).sum::<f64>()),
        matrix,
        null_space: None,
    }
}

struct Terms {
    /// Predictor n has the terms `start[n]..start[n + 1]`.
    start: Vec<usize>,
    entry: Vec<usize>,
    /// The products `w_i w_j`.
    product: Vec<f64>,
    /// The same products, doubled for entries off the diagonal, because such an entry also stands for its mirror image.
    both: Vec<f64>,
}

pub(crate) struct SparseField {
    precision: Precision,
    null_space: Option<Dense>,
    /// The latent variables that the factorisation of an intrinsic Q omits.
    ground: Vec<usize>,
    rows: Sparse,
    /// The lower triangle of A's pattern, stored by columns.
    col_start: Vec<usize>,
    row: Vec<usize>,
    base: Vec<f64>,
    terms: Terms,
    symbolic: SymbolicCholesky<usize>,
    order: Order,
    /// The index of every entry of A in the factor's values.
    position: Vec<usize>,
    /// The values of A. The factorisation overwrites them with the values of the factor.
    values: Vec<f64>,
    factor: Vec<f64>,
    inverse: Option<Vec<f64>>,
    /// The constant log|Q|₊ + r log 2π.
    reference: f64,
}

impl SparseField {
    pub(crate) fn new(model: &LatentModel, precision: &Precision) -> Result<Self, Error> {
        let rows = design::to_sparse_transposed(&model.design, model.prior.len());
        let q = &precision.matrix;
        check_symmetric(q)?;
        let null_space = match &precision.null_space {
            Some(null) => Some(orthonormal(null, q)?),
            None => None,
        };
        check_components(q, null_space.as_ref())?;
        let ground = null_space.as_ref().map_or(Ok(Vec::new()), pivots)?;
        let (col_start, row, base, terms) = pattern(q, &rows);
        let symbolic = symbolic_factor(&col_start, &row)?;
        let SymbolicCholeskyRaw::Supernodal(supernodes) = symbolic.raw() else {
            return Err(Error::Unsupported(
                "the sparse factorisation came out without supernodes".to_owned(),
            ));
        };
        let order = Order::new(supernodes);
        let position = positions(&symbolic, supernodes, &order, &col_start, &row)?;
        let mut field = Self {
            precision: precision.clone(),
            null_space,
            ground,
            rows,
            values: vec![0.0; row.len()],
            factor: vec![0.0; symbolic.len_val()],
            col_start,
            row,
            base,
            terms,
            order,
            position,
            inverse: None,
            reference: 0.0,
            symbolic,
        };
        let nullity = field.null_space.as_ref().map_or(0, |n| n.cols) as f64;
        // A determinant that the prior supplies is used unchecked. For a long walk, rounding destroys the smallest
        // eigenvalues, and the factorisation would fail.
        let determinant = match precision.log_determinant {
            Some(given) => given,
            None => {
                field.factor_prior()?;
                field.log_determinant() - field.ground_determinant()
            }
        };
        field.reference = determinant + nullity * LOG_TWO_PI;
        Ok(field)
    }

    fn supernodes(&self) -> &SymbolicSupernodalCholesky<usize> {
        match self.symbolic.raw() {
            SymbolicCholeskyRaw::Supernodal(s) => s,
            SymbolicCholeskyRaw::Simplicial(_) => unreachable!("refused when made"),
        }
    }

    /// Computes `log |N_J N_Jᵀ|`.
    fn ground_determinant(&self) -> f64 {
        let Some(null) = &self.null_space else {
            return 0.0;
        };
        let r = null.cols;
        let mut inner = Dense::from_fn(r, r, |i, j| {
            (0..r)
                .map(|k| null.get(self.ground[i], k) * null.get(self.ground[j], k))
                .sum()
        });
        match super::kernels::cholesky(&mut inner) {
            Some(()) => super::kernels::log_determinant(&inner),
            None => f64::NAN,
        }
    }

    fn factor_prior(&mut self) -> Result<(), Error> {
        self.values.copy_from_slice(&self.base);
        let grounded = |l: usize| self.ground.contains(&l);
        if !self.ground.is_empty() {
            for j in 0..self.col_start.len() - 1 {
                for k in self.col_start[j]..self.col_start[j + 1] {
                    if grounded(j) || grounded(self.row[k]) {
                        self.values[k] = f64::from(self.row[k] == j);
                    }
                }
            }
        }
        self.factor_values().ok_or_else(|| {
            Error::Prior(
                "the prior precision is not positive definite: check that its graph is connected and its \
                 parameters are in range, or declare its null space if it is intrinsic"
                    .to_owned(),
            )
        })
    }

    fn factor_values(&mut self) -> Option<()> {
        self.inverse = None;
        let n = self.col_start.len() - 1;
        let par = Par::rayon(0);
        let pattern = SymbolicSparseColMatRef::new_checked(n, n, &self.col_start, None, &self.row);
        let a = SparseColMatRef::new(pattern, self.values.as_slice());
        let mut memory = MemBuffer::new(
            self.symbolic
                .factorize_numeric_llt_scratch::<f64>(par, Default::default()),
        );
        self.symbolic
            .factorize_numeric_llt(
                &mut self.factor,
                a,
                Side::Lower,
                LltRegularization::default(),
                par,
                MemStack::new(&mut memory),
                Default::default(),
            )
            .ok()?;
        self.log_determinant().is_finite().then_some(())
    }

    fn log_determinant(&self) -> f64 {
        let s = self.supernodes();
        let mut sum = 0.0;
        for k in 0..s.n_supernodes() {
            let cols = s.supernode_end()[k] - s.supernode_begin()[k];
            let height = cols + s.supernode(k).pattern().len();
            for j in 0..cols {
                sum += self.factor[s.col_ptr_for_val()[k] + j * (height + 1)].ln();
            }
        }
        2.0 * sum
    }

    /// Factorises A at λ (or at other weights) and returns `log|A| − log|Q|₊ − r log 2π`.
    pub(crate) fn factor(&mut self, lambda: &[f64]) -> Option<f64> {
        self.values.copy_from_slice(&self.base);
        for (n, weight) in lambda.iter().enumerate() {
            for k in self.terms.start[n]..self.terms.start[n + 1] {
                self.values[self.terms.entry[k]] += weight * self.terms.product[k];
            }
        }
        self.factor_values()?;
        Some(self.log_determinant() - self.reference)
    }

    fn invert(&mut self) {
        if self.inverse.is_none() {
            self.inverse = Some(self.order.invert(self.supernodes(), &self.factor));
        }
    }

    fn inverse(&self) -> &[f64] {
        self.inverse.as_deref().expect("inverted by the caller")
    }

    pub(crate) fn variances(&mut self) -> Vec<f64> {
        self.invert();
        let z = self.inverse();
        let (terms, position) = (&self.terms, &self.position);
        map(terms.start.len() - 1, |n| {
            (terms.start[n]..terms.start[n + 1])
                .map(|k| terms.both[k] * z[position[terms.entry[k]]])
                .sum()
        })
    }

    pub(crate) fn latent_variances(&mut self) -> Vec<f64> {
        self.invert();
        let z = self.inverse();
        (0..self.col_start.len() - 1)
            .map(|l| z[self.position[self.col_start[l]]])
            .collect()
    }

    pub(crate) fn solve_latent(&self, b: &mut [f64]) {
        let n = b.len();
        let par = Par::Seq;
        let mut memory = MemBuffer::new(self.symbolic.solve_in_place_scratch::<f64>(1, par));
        LltRef::new(&self.symbolic, &self.factor).solve_in_place_with_conj(
            Conj::No,
            MatMut::from_column_major_slice_mut(b, n, 1),
            par,
            MemStack::new(&mut memory),
        );
    }

    /// Computes `L⁻ᵀ x` in the order of the latent variables, for the current factorisation LLᵀ. If x is independent
    /// standard normal, the result is a draw with precision A.
    pub(crate) fn half_solve(&self, x: &[f64]) -> Vec<f64> {
        let s = self.supernodes();
        let mut y = x.to_vec();
        for k in (0..s.n_supernodes()).rev() {
            let (begin, end) = (s.supernode_begin()[k], s.supernode_end()[k]);
            let pattern = s.supernode(k).pattern();
            let cols = end - begin;
            let height = cols + pattern.len();
            let block = &self.factor[s.col_ptr_for_val()[k]..];
            for j in (0..cols).rev() {
                let column = &block[j * height..(j + 1) * height];
                let mut rest = y[begin + j];
                for i in j + 1..cols {
                    rest -= column[i] * y[begin + i];
                }
                for (value, row) in column[cols..].iter().zip(pattern) {
                    rest -= value * y[*row];
                }
                y[begin + j] = rest / column[j];
            }
        }
        match self.symbolic.perm() {
            Some(perm) => perm.arrays().1.iter().map(|at| y[*at]).collect(),
            None => y,
        }
    }

    /// Computes the variances `w A⁻¹ wᵀ` for the rows w of another design. If the selected inverse contains the
    /// elements that a row needs, they give the row's variance. Otherwise the row takes a solve.
    pub(crate) fn variances_of(&mut self, rows: &Design) -> Vec<f64> {
        self.invert();
        let latents = self.col_start.len() - 1;
        let rows = design::to_sparse_transposed(rows, latents);
        map(rows.cols, |n| {
            let (index, values) = rows.col(n);
            let mut sum = 0.0;
            for (a, &i) in index.iter().enumerate() {
                for (b, &j) in index.iter().enumerate().take(a + 1) {
                    let Some(position) = self.position_of(i, j) else {
                        let mut x = vec![0.0; latents];
                        for (&l, &w) in index.iter().zip(values) {
                            x[l] = w;
                        }
                        self.solve_latent(&mut x);
                        return index.iter().zip(values).map(|(&l, w)| w * x[l]).sum();
                    };
                    let times = if a == b { 1.0 } else { 2.0 };
                    sum += times * values[a] * values[b] * self.inverse()[position];
                }
            }
            sum
        })
    }

    /// Returns the position of entry (i, j) of A⁻¹ in the selected inverse.
    fn position_of(&self, i: usize, j: usize) -> Option<usize> {
        let (_, inverse) = self.symbolic.perm()?.arrays();
        let (i, j) = (inverse[i], inverse[j]);
        self.order.position(self.supernodes(), i.max(j), i.min(j))
    }

    pub(crate) fn posterior_times(&self, x: &[f64]) -> Vec<f64> {
        let mut inner = self.rows.mul(x);
        self.solve_latent(&mut inner);
        self.rows.mul_t(&inner)
    }

    /// Solves `(Σ̃ + D) x = r` subject to `NᵀWᵀx = 0`, and returns x and Σ̃x (including the part in the null space).
    /// `weight` is diag D⁻¹. If `refactor` is false, A must already be factorised at λ = weight.
    pub(crate) fn solve(
        &mut self,
        weight: &[f64],
        r: &[f64],
        refactor: bool,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        if refactor {
            self.factor(weight)?;
        }
        let weighted = Block::default().inverse_times(weight, r);
        let mut inner = self.rows.mul(&weighted);
        self.solve_latent(&mut inner);
        let product = self.rows.mul_t(&inner);
        let x = map(r.len(), |n| weight[n] * (r[n] - product[n]));
        Some((x, product))
    }

    pub(crate) fn latent_mean(&self, mean: &[f64], pull: &[f64]) -> Vec<f64> {
        let mut b = self.precision.matrix.mul(mean);
        for (b, p) in b.iter_mut().zip(pull) {
            *b += p;
        }
        self.solve_latent(&mut b);
        b
    }

    /// Computes `−½ (m−μ)(m−μ)ᵀ − ½ V + ½ Q⁻` on the pattern of Q. The last term is omitted if the prior supplies its
    /// own determinant.
    pub(crate) fn sensitivity(
        &mut self,
        model: &LatentModel,
        mean: &[f64],
    ) -> Result<CovarianceSensitivity, Error> {
        self.invert();
        let shift: Vec<f64> = mean
            .iter()
            .zip(&model.prior.mean)
            .map(|(m, p)| m - p)
            .collect();
        let mut value = Vec::with_capacity(self.precision.matrix.len());
        self.over_precision(|i, j, z| value.push(-0.5 * (shift[i] * shift[j] + z)))?;
        let given = self.precision.log_determinant.is_some();
        if !given {
            self.factor_prior()?;
            self.invert();
            let ground = self.ground.clone();
            let mut k = 0;
            self.over_precision(|i, j, z| {
                if !ground.contains(&i) && !ground.contains(&j) {
                    value[k] += 0.5 * z;
                }
                k += 1;
            })?;
        }
        if matches!(model.prior.covariance, crate::Covariance::Diagonal(_)) {
            // dQ_ll = −dvariance/variance².
            let q = &self.precision.matrix.value;
            let g = value
                .iter()
                .zip(q)
                .map(|(g, q)| -(g + 0.5 / q) * q * q)
                .collect();
            return Ok(CovarianceSensitivity::Diagonal(g));
        }
        Ok(CovarianceSensitivity::Precision {
            value,
            log_determinant: if given { 0.5 } else { 0.0 },
        })
    }

    /// Calls `f` for every stored entry of Q in order. `f` also receives the element of the selected inverse that is at
    /// the same position as the entry.
    fn over_precision(&self, mut f: impl FnMut(usize, usize, f64)) -> Result<(), Error> {
        let q = &self.precision.matrix;
        for j in 0..q.cols {
            for &i in q.col(j).0 {
                let position = self.position_of(i, j).ok_or_else(|| {
                    Error::Prior(
                        "the sparsity pattern of the precision matrix has changed".to_owned(),
                    )
                })?;
                f(i, j, self.inverse()[position]);
            }
        }
        Ok(())
    }
}

/// Computes three results: the lower triangle of the pattern of Q + WᵀW by columns, the values of Q on this pattern,
/// and the terms of every predictor.
fn pattern(q: &Sparse, rows: &Sparse) -> (Vec<usize>, Vec<usize>, Vec<f64>, Terms) {
    let n = q.cols;
    let mut columns: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); n];
    for (j, column) in columns.iter_mut().enumerate() {
        column.insert(j, 0.0);
        let (index, values) = q.col(j);
        for (&i, &x) in index.iter().zip(values) {
            if i >= j {
                *column.entry(i).or_insert(0.0) += x;
            }
        }
    }
    for p in 0..rows.cols {
        let (index, _) = rows.col(p);
        for (a, &i) in index.iter().enumerate() {
            for &j in &index[..=a] {
                columns[i.min(j)].entry(i.max(j)).or_insert(0.0);
            }
        }
    }
    let mut col_start = vec![0];
    let (mut row, mut base) = (Vec::new(), Vec::new());
    for column in &columns {
        for (&i, &x) in column {
            row.push(i);
            base.push(x);
        }
        col_start.push(row.len());
    }
    let mut terms = Terms {
        start: vec![0],
        entry: Vec::new(),
        product: Vec::new(),
        both: Vec::new(),
    };
    for p in 0..rows.cols {
        let (index, values) = rows.col(p);
        for (a, &i) in index.iter().enumerate() {
            for (b, &j) in index.iter().enumerate() {
                let (low, high) = (i.min(j), i.max(j));
                if a >= b {
                    let range = col_start[low]..col_start[low + 1];
                    let k = row[range.clone()].partition_point(|&r| r < high);
                    terms.entry.push(range.start + k);
                    let product = values[a] * values[b];
                    terms.product.push(product);
                    terms
                        .both
                        .push(if a == b { product } else { 2.0 * product });
                }
            }
        }
        terms.start.push(terms.entry.len());
    }
    (col_start, row, base, terms)
}

/// Computes the memory in bytes that a fit under a sparse precision needs in addition to its model. The estimate is
/// based on the number of non-zeros of the factor, including fill-in.
///
/// The estimate includes the pattern during construction, and A and its factor with values and positions. It also
/// includes the selected inverse with the blocks of the current level, the terms of the predictors, and the vectors of
/// a solver.
pub(crate) fn footprint(model: &LatentModel, precision: &Precision) -> Result<u64, Error> {
    let rows = design::to_sparse_transposed(&model.design, model.prior.len());
    let (col_start, row, _, terms) = pattern(&precision.matrix, &rows);
    let symbolic = symbolic_factor(&col_start, &row)?;
    let scratch = symbolic
        .factorize_numeric_llt_scratch::<f64>(Par::rayon(0), Default::default())
        .unaligned_bytes_required();
    let words =
        4 * precision.matrix.len() + 8 * row.len() + 3 * symbolic.len_val() + 3 * terms.entry.len();
    let vectors = VECTORS * (model.prior.len() + model.design_rows());
    Ok((8 * (words + vectors) + scratch) as u64)
}

/// Number of vectors of latent variables and predictors that a fit holds in memory at once, as measured.
const VECTORS: usize = 40;

fn symbolic_factor(col_start: &[usize], row: &[usize]) -> Result<SymbolicCholesky<usize>, Error> {
    let n = col_start.len() - 1;
    let pattern = SymbolicSparseColMatRef::new_checked(n, n, col_start, None, row);
    factorize_symbolic_cholesky(
        pattern,
        Side::Lower,
        SymmetricOrdering::Amd,
        CholeskySymbolicParams {
            // This threshold is below any ratio, so the factorisation is always supernodal. With faer's own constant a
            // diagonal matrix would be treated as simplicial.
            supernodal_flop_ratio_threshold: SupernodalThreshold(-1.0),
            ..Default::default()
        },
    )
    .map_err(|error| {
        Error::Prior(format!(
            "Jensen cannot analyse the sparse precision ({error:?}): it is too large for this machine"
        ))
    })
}

fn positions(
    symbolic: &SymbolicCholesky<usize>,
    supernodes: &SymbolicSupernodalCholesky<usize>,
    order: &Order,
    col_start: &[usize],
    row: &[usize],
) -> Result<Vec<usize>, Error> {
    let missing = || Error::Prior("the sparse factor does not hold the matrix".to_owned());
    let (_, inverse) = symbolic.perm().ok_or_else(missing)?.arrays();
    let mut out = Vec::with_capacity(row.len());
    for j in 0..col_start.len() - 1 {
        for &i in &row[col_start[j]..col_start[j + 1]] {
            let (a, b) = (inverse[i], inverse[j]);
            out.push(
                order
                    .position(supernodes, a.max(b), a.min(b))
                    .ok_or_else(missing)?,
            );
        }
    }
    Ok(out)
}

fn check_symmetric(q: &Sparse) -> Result<(), Error> {
    let transposed = q.transpose();
    let scale = q.value.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let same = transposed.row == q.row && transposed.col_start == q.col_start;
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-10 * scale;
    if same && q.value.iter().zip(&transposed.value).all(near) {
        return Ok(());
    }
    Err(Error::Prior(
        "the prior precision is not symmetric: store both triangles".to_owned(),
    ))
}

pub(crate) fn orthonormal_columns(columns: &Dense) -> Result<Dense, Error> {
    let mut out = columns.clone();
    let n = columns.rows;
    for k in 0..columns.cols {
        let before = super::kernels::dot(columns.col(k), columns.col(k)).sqrt();
        for _ in 0..2 {
            for j in 0..k {
                let (head, tail) = out.data.split_at_mut(k * n);
                let (other, own) = (&head[j * n..(j + 1) * n], &mut tail[..n]);
                let inner = super::kernels::dot(other, own);
                for (x, o) in own.iter_mut().zip(other) {
                    *x -= inner * o;
                }
            }
        }
        let norm = super::kernels::dot(out.col(k), out.col(k)).sqrt();
        if norm.is_nan() || norm <= 1e-8 * before {
            return Err(Error::Prior(
                "the columns that span the null space of the prior precision are linearly dependent"
                    .to_owned(),
            ));
        }
        for x in &mut out.data[k * n..(k + 1) * n] {
            *x /= norm;
        }
    }
    Ok(out)
}

/// Computes an orthonormal basis of the null space. Fails if Q does not annihilate it.
fn orthonormal(null: &Dense, q: &Sparse) -> Result<Dense, Error> {
    let out = orthonormal_columns(null)?;
    let scale = q.value.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let size = |column: &[f64]| column.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    for k in 0..out.cols {
        let off = size(&q.mul(out.col(k)));
        if off > 1e-9 * scale * size(out.col(k)) {
            return Err(Error::Prior(format!(
                "column {} of the null space is not in the null space of the prior precision",
                k + 1
            )));
        }
    }
    Ok(out)
}

/// Finds r linearly independent rows of the orthonormal matrix N by elimination with complete pivoting.
pub(crate) fn pivots(null: &Dense) -> Result<Vec<usize>, Error> {
    let mut work = null.clone();
    let n = work.rows;
    let mut out = Vec::new();
    for k in 0..work.cols {
        let (mut best, mut at) = (0.0, (0, k));
        for j in k..work.cols {
            for i in 0..n {
                let x = work.get(i, j).abs();
                if x > best && !out.contains(&i) {
                    (best, at) = (x, (i, j));
                }
            }
        }
        if best < 1e-12 {
            return Err(Error::Prior(
                "the null space of the prior precision is degenerate".to_owned(),
            ));
        }
        for i in 0..n {
            work.data.swap(at.1 * n + i, k * n + i);
        }
        let pivot = work.get(at.0, k);
        for j in k + 1..work.cols {
            let factor = work.get(at.0, j) / pivot;
            for i in 0..n {
                let x = factor * work.get(i, k);
                work.data[j * n + i] -= x;
            }
        }
        out.push(at.0);
    }
    Ok(out)
}

/// Checks that the given null space contains the level of every connected component along which Q is flat.
fn check_components(q: &Sparse, null: Option<&Dense>) -> Result<(), Error> {
    let n = q.cols;
    let mut component = vec![usize::MAX; n];
    let mut count = 0;
    for seed in 0..n {
        if component[seed] != usize::MAX {
            continue;
        }
        let mut members = vec![seed];
        component[seed] = count;
        let mut next = 0;
        while next < members.len() {
            let (index, values) = q.col(members[next]);
            for (&i, &x) in index.iter().zip(values) {
                if x != 0.0 && component[i] == usize::MAX {
                    component[i] = count;
                    members.push(i);
                }
            }
            next += 1;
        }
        // The rounding of a sum is relative to its terms, which differ between parts by many orders of magnitude.
        let flat = members.iter().all(|&l| {
            let values = q.col(l).1;
            let size: f64 = values.iter().map(|x| x.abs()).sum();
            values.iter().sum::<f64>().abs() <= 1e-12 * size
        });
        if flat {
            // The loop compares |1_C|² with the squared length of the part of 1_C inside the null space.
            let inside: f64 = null.map_or(0.0, |null| {
                (0..null.cols)
                    .map(|k| {
                        let column = null.col(k);
                        members.iter().map(|&l| column[l]).sum::<f64>().powi(2)
                    })
                    .sum()
            });
            if (members.len() as f64 - inside) > 1e-6 * members.len() as f64 {
                let whole = members.len() == n;
                return Err(Error::Prior(if whole {
                    "the prior precision is singular along the constant vector; declare its null space, or make it \
                     proper"
                        .to_owned()
                } else {
                    format!(
                        "the graph of the intrinsic prior is not connected: latent variable {} is in a \
                         component of {} of {n} without its own level; connect the components, or give each \
                         its own null vector",
                        seed + 1,
                        members.len()
                    )
                }));
            }
        }
        count += 1;
    }
    Ok(())
}
