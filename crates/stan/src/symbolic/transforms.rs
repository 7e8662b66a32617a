//! The constraining transforms as operations of the graph. Each transform maps coordinates to constrained values, and
//! returns the log-Jacobian.
//!
//! The maps are those of [`crate::transform`], with two differences. If elements are transformed separately, a single
//! operation transforms a whole array. The logarithms of scales stay available, because `log(exp z)` is simplified to
//! `z`.

use crate::symbolic::domain::{Domain, check_values};
use crate::symbolic::known::{Fact, note};
use crate::symbolic::tape::{E, Tape};
use crate::symbolic::value::{Cell, Dims, SHORT, Sym, assemble, e_cell};
use crate::transform::Transform;
use crate::value::error::{FnError, FnResult};

/// A bound, which is a scalar or one number for each element.
#[derive(Clone, Copy, Debug)]
pub enum Bound<'g> {
    /// No element has a finite bound.
    None,
    /// The bound is finite everywhere, or unknown.
    All(E<'g>),
    /// A bound with known values. The bound is finite where the second value is 1, and infinite where the second value
    /// is 0.
    Some(E<'g>, E<'g>),
}

/// The constraint of a container whose elements are constrained separately.
#[derive(Clone, Copy, Debug)]
pub enum Bounds<'g> {
    /// Elements lie between a lower and an upper bound.
    Within(Bound<'g>, Bound<'g>),
    /// Elements are multiplied, then shifted by an offset.
    Scaled(Bound<'g>, Bound<'g>),
}

/// Reads the bound of a variable with these extents. An element that equals `infinity` imposes no bound.
///
/// # Errors
/// Fails if the bound has the wrong shape, or if it is NaN.
pub fn bound<'g>(tape: &'g Tape, sym: &Sym, dims: &Dims, infinity: f64) -> FnResult<Bound<'g>> {
    let e = sym.e(tape)?;
    if !sym.is_scalar() && e.len() != dims.size() {
        return Err(FnError::invalid(format!(
            "a bound has the shape {}, the variable {}",
            sym.describe(),
            dims.describe()
        )));
    }
    let Some(values) = e.values() else {
        return Ok(Bound::All(e));
    };
    if values.iter().any(|v| v.is_nan()) {
        return Err(FnError::domain("a bound is nan"));
    }
    let finite: Vec<f64> = values.iter().map(|v| f64::from(*v != infinity)).collect();
    Ok(if finite.iter().all(|f| *f == 1.0) {
        Bound::All(e)
    } else if finite.iter().all(|f| *f == 0.0) {
        Bound::None
    } else {
        let replaced: Vec<f64> = values
            .iter()
            .map(|v| if *v == infinity { 0.0 } else { *v })
            .collect();
        Bound::Some(tape.vector(&replaced), tape.vector(&finite))
    })
}

/// Shifts a container by an offset. Returns the shifted container and the log-Jacobian.
pub fn offset<'g>(z: E<'g>, by: Bound<'g>) -> (E<'g>, E<'g>) {
    (z + location(z, by, 0.0), z.num(0.0))
}

fn location<'g>(z: E<'g>, bound: Bound<'g>, without: f64) -> E<'g> {
    match bound {
        Bound::All(e) | Bound::Some(e, _) => e,
        Bound::None => z.num(without),
    }
}

/// Returns the constrained elements and the log-Jacobian, where each element is transformed separately.
///
/// # Errors
/// Fails if known bounds exclude all values, or a known multiplier is not positive.
pub fn elementwise<'g>(
    what: &'static str,
    z: E<'g>,
    bounds: Bounds<'g>,
) -> FnResult<(E<'g>, E<'g>)> {
    let n = z.len();
    let total = |x: E<'g>| {
        if x.len() == 1 && n != 1 {
            n as f64 * x
        } else {
            x.sum()
        }
    };
    Ok(match bounds {
        Bounds::Within(Bound::All(a), Bound::All(b)) => {
            let width = b - a;
            let wording = "upper bound minus lower bound";
            check_values(what, width, wording, Domain::Positive)?;
            let jacobian = z - 2.0 * z.log1p_exp();
            (
                a + width * z.inv_logit(),
                total(width.log()) + jacobian.sum(),
            )
        }
        Bounds::Within(Bound::None, b) => one_sided(z, b, true),
        Bounds::Within(a, Bound::None) => one_sided(z, a, false),
        Bounds::Within(a, b) => two_sided(z, a, b),
        Bounds::Scaled(m, s) => {
            let scale = location(z, s, 1.0);
            check_values(what, scale, "multiplier", Domain::Positive)?;
            z.tape.note_unit(z.id);
            let x = scale * z;
            let x = match m {
                Bound::None => x,
                m => location(z, m, 0.0) + x,
            };
            (x, total(scale.log()))
        }
    })
}

/// Returns the coordinates of elements that are constrained separately.
pub fn elementwise_free<'g>(x: E<'g>, bounds: Bounds<'g>) -> E<'g> {
    let (finite, split) = (x.num(1.0), |bound: Bound<'g>| match bound {
        Bound::None => (x.num(0.0), x.num(0.0)),
        Bound::All(e) => (e, x.num(1.0)),
        Bound::Some(e, finite) => (e, finite),
    });
    match bounds {
        Bounds::Scaled(m, s) => (x - location(x, m, 0.0)) / location(x, s, 1.0),
        Bounds::Within(Bound::All(a), Bound::All(b)) => (x - a).log() - (b - x).log(),
        Bounds::Within(a, b) => {
            let ((a, has_a), (b, has_b)) = (split(a), split(b));
            // Where there is no bound, the distance from the bound is set to 1.
            let above = has_a.select(x - a, finite).log();
            let below = has_b.select(b - x, finite).log();
            let both = has_a * has_b;
            let free = has_a.not() * has_b.not();
            free.select(x, both.select(above - below, above + below))
        }
    }
}

fn one_sided<'g>(z: E<'g>, bound: Bound<'g>, upper: bool) -> (E<'g>, E<'g>) {
    let shift = |a: E<'g>| if upper { a - z.exp() } else { z.exp() + a };
    match bound {
        Bound::None => (z, z.num(0.0)),
        Bound::All(a) => (shift(a), z.sum()),
        Bound::Some(a, finite) => (finite.select(shift(a), z), (finite * z).sum()),
    }
}

fn two_sided<'g>(z: E<'g>, a: Bound<'g>, b: Bound<'g>) -> (E<'g>, E<'g>) {
    let one = z.num(1.0);
    let split = |bound: Bound<'g>| match bound {
        Bound::None => (z.num(0.0), z.num(0.0)),
        Bound::All(e) => (e, one),
        Bound::Some(e, finite) => (e, finite),
    };
    let ((a, has_a), (b, has_b)) = (split(a), split(b));
    let width = (has_a * has_b).select(b - a, one);
    let both = a + width * z.inv_logit();
    let lower = z.exp() + a;
    let upper = b - z.exp();
    let x = has_a.select(has_b.select(both, lower), has_b.select(upper, z));
    let inner = width.log() + z - 2.0 * z.log1p_exp();
    let zero = z.num(0.0);
    let jacobian = has_a.select(has_b.select(inner, z), has_b.select(z, zero));
    (x, jacobian.sum())
}

/// Returns the cells of one constrained value, and its log-Jacobian.
pub fn structured<'g>(
    tape: &'g Tape,
    transform: &Transform,
    z: E<'g>,
    rows: usize,
    cols: usize,
) -> (Vec<Cell>, E<'g>) {
    let zero = tape.constant(0.0);
    let all = |e: E<'g>| -> Vec<Cell> { whole(e) };
    if rows * cols == 0 {
        return (Vec::new(), zero);
    }
    match transform {
        Transform::Ordered | Transform::PositiveOrdered => {
            ordered(tape, z, *transform == Transform::PositiveOrdered)
        }
        Transform::Simplex => {
            let (x, jacobian) = simplex(tape, z, rows);
            (all(x), jacobian)
        }
        Transform::UnitVector => {
            let squared = z.square().sum();
            (all(z * squared.sqrt().recip()), -0.5 * squared)
        }
        Transform::SumToZero if cols == 1 => {
            let x = zero_sum(tape, z, rows);
            tape.rotated.borrow_mut().push((x.id, z.id));
            (all(x), zero)
        }
        Transform::SumToZero => {
            if (rows - 1) * (cols - 1) == 0 {
                return (vec![Cell::Const(0.0); rows * cols], zero);
            }
            let (h, k) = (basis(tape, rows), basis(tape, cols));
            let left = h.matmul(z, rows, rows - 1, cols - 1);
            let x = left.matmul_with(k, rows, cols - 1, cols, false, true);
            // In matrices, the first row and column come last.
            let position = |i: usize, n: usize| (i + 1) % n;
            let index: Vec<u32> = (0..rows * cols)
                .map(|at| (position(at / rows, cols) * rows + position(at % rows, rows)) as u32)
                .collect();
            (all(x.gather(&index)), zero)
        }
        Transform::CholeskyFactorCorr => cholesky_corr(tape, z, rows, false),
        Transform::CorrMatrix => {
            let (l, jacobian) = cholesky_corr(tape, z, rows, true);
            (self_product(tape, &l, rows, rows), jacobian)
        }
        Transform::CholeskyFactorCov => {
            let (l, logs) = cholesky_cov(tape, z, rows, cols);
            (l, tape.add_all(&logs))
        }
        Transform::CovMatrix => {
            let (l, logs) = cholesky_cov(tape, z, rows, rows);
            let weights: Vec<f64> = (0..rows).map(|i| (rows - i + 1) as f64).collect();
            let terms: Vec<E<'g>> = logs.iter().zip(&weights).map(|(l, w)| *w * *l).collect();
            let jacobian = tape.add_all(&terms) + rows as f64 * std::f64::consts::LN_2;
            (self_product(tape, &l, rows, rows), jacobian)
        }
        Transform::ColumnStochastic => {
            let (mut cells, mut terms) = (Vec::new(), Vec::new());
            for j in 0..cols {
                let part = if rows == 1 {
                    zero
                } else {
                    pick(z, j * (rows - 1), 1, rows - 1)
                };
                let (x, jacobian) = simplex(tape, part, rows);
                cells.extend(whole(x));
                terms.push(jacobian);
            }
            (cells, tape.add_all(&terms))
        }
        Transform::RowStochastic => {
            let mut cells = vec![Cell::Const(1.0); rows * cols];
            let mut terms = Vec::new();
            for i in 0..rows {
                let part = if cols == 1 {
                    zero
                } else {
                    pick(z, i, rows, cols - 1)
                };
                let (x, jacobian) = simplex(tape, part, cols);
                for (j, cell) in whole(x).into_iter().enumerate() {
                    cells[j * rows + i] = cell;
                }
                terms.push(jacobian);
            }
            (cells, tape.add_all(&terms))
        }
        Transform::Identity
        | Transform::Lower(_)
        | Transform::Upper(_)
        | Transform::LowerUpper(..)
        | Transform::OffsetMultiplier(..) => (all(z), zero),
    }
}

fn pick(z: E<'_>, start: usize, step: usize, count: usize) -> E<'_> {
    if z.len() == 1 {
        return z;
    }
    let index: Vec<u32> = (0..count).map(|i| (start + i * step) as u32).collect();
    z.gather(&index)
}

fn whole(e: E<'_>) -> Vec<Cell> {
    match e.values() {
        Some(values) => values.into_iter().map(Cell::Const).collect(),
        None => (0..e.len()).map(|i| Cell::Elem(e.id, i as u32)).collect(),
    }
}

fn note_cells(tape: &Tape, cells: &[Cell], fact: Fact) {
    note(assemble(tape, cells), fact);
}

fn ordered<'g>(tape: &'g Tape, z: E<'g>, positive: bool) -> (Vec<Cell>, E<'g>) {
    let n = z.len();
    if n > SHORT {
        let steps = if positive {
            z.exp()
        } else {
            tape.concat(&[z.at(0), z.slice(1, n - 1).exp()])
        };
        let x = steps.cumsum();
        note(x, Fact::Ordered);
        let jacobian = if positive {
            z.sum()
        } else {
            z.slice(1, n - 1).sum()
        };
        return (whole(x), jacobian);
    }
    let mut cells = Vec::with_capacity(n);
    let mut terms = Vec::with_capacity(n);
    let mut last: Option<E<'g>> = None;
    for k in 0..n {
        let step = z.at(k);
        let next = match last {
            None if !positive => step,
            _ => {
                terms.push(step);
                last.map_or(step.exp(), |last| last + step.exp())
            }
        };
        cells.push(e_cell(next));
        last = Some(next);
    }
    note_cells(tape, &cells, Fact::Ordered);
    (cells, tape.add_all(&terms))
}

/// Returns the matrix with columns (1, …, 1, −k, 0, …, 0)/√(k (k + 1)), an orthonormal basis of the zero-sum vectors.
pub fn basis(tape: &Tape, n: usize) -> E<'_> {
    let mut elements = Vec::with_capacity(n * (n - 1));
    for k in 1..n {
        let scale = 1.0 / ((k * (k + 1)) as f64).sqrt();
        elements.extend((0..n).map(|i| match i.cmp(&k) {
            std::cmp::Ordering::Less => scale,
            std::cmp::Ordering::Equal => -(k as f64) * scale,
            std::cmp::Ordering::Greater => 0.0,
        }));
    }
    tape.vector(&elements)
}

fn zero_sum<'g>(tape: &'g Tape, z: E<'g>, n: usize) -> E<'g> {
    if n == 1 {
        return tape.constant(0.0);
    }
    if n <= SHORT {
        return basis(tape, n).matmul(z, n, n - 1, 1);
    }
    // w = z / √(k (k + 1)). Element i is the sum of the later elements of w, minus i times w at i.
    let scale: Vec<f64> = (1..n)
        .map(|k| 1.0 / ((k * (k + 1)) as f64).sqrt())
        .collect();
    let counts: Vec<f64> = (1..n).map(|k| k as f64).collect();
    let w = tape.vector(&scale) * z;
    let back: Vec<u32> = (0..n as u32 - 1).rev().collect();
    let sums = w.gather(&back).cumsum().gather(&back);
    let zero = tape.constant(0.0);
    tape.concat(&[sums, zero]) - tape.concat(&[zero, tape.vector(&counts) * w])
}

fn simplex<'g>(tape: &'g Tape, z: E<'g>, n: usize) -> (E<'g>, E<'g>) {
    if n == 1 {
        return (tape.constant(1.0), tape.constant(0.0));
    }
    let x = zero_sum(tape, z, n);
    let logs = x - x.log_sum_exp();
    let theta = logs.exp();
    note(theta, Fact::Simplex);
    (theta, logs.sum() + 0.5 * (n as f64).ln())
}

/// If a correlation matrix has at most this many rows, the sums of v are computed as a product with a matrix of masks.
/// Each mask selects the elements of v for one position.
const MASKED: usize = 16;

/// Returns the Cholesky factor of a correlation matrix with canonical partial correlations tanh z. If `matrix` is
/// false, the correlations are in row order. If `matrix` is true, the correlations are in column order, and the
/// log-Jacobian refers to the whole correlation matrix.
///
/// With v = log(1 − tanh² z), element (i, j) is tanh z · exp(½ Σ v), where the sum is over the earlier partial
/// correlations of its row. A diagonal element lacks the factor tanh z, so its logarithm is half of a sum of v.
fn cholesky_corr<'g>(tape: &'g Tape, z: E<'g>, k: usize, matrix: bool) -> (Vec<Cell>, E<'g>) {
    let zero = tape.constant(0.0);
    if k == 1 {
        return (vec![Cell::Const(1.0)], zero);
    }
    let m = k * (k - 1) / 2;
    let position = |i: usize, j: usize| {
        if matrix {
            // Column j has rows j + 1 … k − 1.
            j * (2 * k - j - 1) / 2 + (i - j - 1)
        } else {
            i * (i - 1) / 2 + j
        }
    };
    // log(1 − tanh² z) = 2 (log 2 + z − log(1 + exp 2z))
    let v = 2.0 * (z - (2.0 * z).log1p_exp() + std::f64::consts::LN_2);
    let mut weights = vec![0.0; m];
    for i in 1..k {
        for j in 0..i {
            weights[position(i, j)] = 1.0
                + 0.5
                    * if matrix {
                        (k - j - 2) as f64
                    } else {
                        (i - 1 - j) as f64
                    };
        }
    }
    let jacobian = (tape.vector(&weights) * v).sum();
    // Row sums of v up to each element: first the diagonals, then the elements with j ≥ 1.
    let later: Vec<(usize, usize)> = (2..k).flat_map(|i| (1..i).map(move |j| (i, j))).collect();
    // The product with masks for all positions costs on the order of k⁴. For large k, the sums along whole rows come
    // from another product, which costs on the order of k³.
    let all_sums = (k > MASKED).then(|| {
        let mut rows = vec![0; m];
        let mut earlier = vec![0.0; k * k];
        for (i, j) in (1..k).flat_map(|i| (0..i).map(move |j| (i, j))) {
            rows[position(i, j)] = (j * k + i) as u32;
            earlier[i * k + j] = 0.5;
        }
        v.scatter(&rows, k * k)
            .matmul(tape.vector(&earlier), k, k, k)
    });
    let sums_over = |positions: &[(usize, usize)]| -> E<'g> {
        if let Some(sums) = all_sums {
            let index: Vec<u32> = positions.iter().map(|(i, j)| (j * k + i) as u32).collect();
            return sums.gather(&index);
        }
        let count = positions.len();
        let mut mask = vec![0.0; count * m];
        for (at, (i, j)) in positions.iter().enumerate() {
            for l in 0..*j {
                mask[position(*i, l) * count + at] = 0.5;
            }
        }
        tape.vector(&mask).matmul(v, count, m, 1)
    };
    let diagonal_positions: Vec<(usize, usize)> = (1..k).map(|i| (i, i)).collect();
    let diagonal = sums_over(&diagonal_positions).exp();
    let correlations = z.tanh();
    let below = (!later.is_empty()).then(|| {
        let own: Vec<u32> = later.iter().map(|(i, j)| position(*i, *j) as u32).collect();
        correlations.gather(&own) * sums_over(&later).exp()
    });
    let mut cells = vec![Cell::Const(0.0); k * k];
    cells[0] = Cell::Const(1.0);
    let element = |e: E<'g>, at: usize| Cell::Elem(e.id, at as u32);
    for i in 1..k {
        cells[i * k + i] = element(diagonal, i - 1);
        cells[i] = element(correlations, position(i, 0));
    }
    if let Some(below) = below {
        for (at, (i, j)) in later.iter().enumerate() {
            cells[j * k + i] = element(below, at);
        }
    }
    note_cells(tape, &cells, Fact::LowerFactor);
    (cells, jacobian)
}

/// The matrix is stored row by row. The second result contains the logarithms of the diagonal.
fn cholesky_cov<'g>(tape: &'g Tape, z: E<'g>, rows: usize, cols: usize) -> (Vec<Cell>, Vec<E<'g>>) {
    let mut cells = vec![Cell::Const(0.0); rows * cols];
    let mut diagonal = Vec::with_capacity(cols);
    let mut at = 0;
    for i in 0..rows {
        for j in 0..cols.min(i + 1) {
            if i == j {
                diagonal.push(at as u32);
            } else {
                cells[j * rows + i] = Cell::Elem(z.id, at as u32);
            }
            at += 1;
        }
    }
    let logs = if z.len() == 1 { z } else { z.gather(&diagonal) };
    let scales = logs.exp();
    for j in 0..cols {
        cells[j * rows + j] = Cell::Elem(scales.id, j as u32);
    }
    if rows == cols {
        note_cells(tape, &cells, Fact::LowerFactor);
    }
    (cells, (0..cols).map(|j| logs.at(j)).collect())
}

fn self_product(tape: &Tape, l: &[Cell], rows: usize, cols: usize) -> Vec<Cell> {
    let l = assemble(tape, l);
    whole(l.matmul_with(l, rows, cols, rows, false, true))
}
