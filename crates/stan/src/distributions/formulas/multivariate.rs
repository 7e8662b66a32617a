//! Densities of vectors.

use std::f64::consts::PI;

use crate::distributions::formulas::Domain::{Finite, NotNan, Positive, PositiveByFormula};
use crate::distributions::formulas::{HALF_LOG_TWO_PI, Whole, WholeFormula, check};
use crate::symbolic::functions::Cx;
use crate::symbolic::functions::matrices::cholesky;
use crate::symbolic::tape::E;
use crate::symbolic::value::Sym;
use crate::value::error::FnResult;

/// Name and formula.
pub const TABLE: &[(&str, WholeFormula)] = &[
    ("multi_normal_lpdf", |w| multi_normal(w, Scale::Covariance)),
    ("multi_normal_cholesky_lpdf", |w| {
        multi_normal(w, Scale::Cholesky)
    }),
    ("multi_normal_prec_lpdf", |w| {
        multi_normal(w, Scale::Precision)
    }),
    ("multi_student_t_lpdf", |w| {
        multi_student_t(w, Scale::Covariance)
    }),
    ("multi_student_t_cholesky_lpdf", |w| {
        multi_student_t(w, Scale::Cholesky)
    }),
    ("multi_gp_lpdf", |w| multi_gp(w, Scale::Covariance)),
    ("multi_gp_cholesky_lpdf", |w| multi_gp(w, Scale::Cholesky)),
];

#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Covariance,
    Cholesky,
    Precision,
}

/// The lower triangular matrix of a scale argument, of extent k.
fn factor<'g>(w: &Whole<'g, '_>, i: usize, scale: Scale, k: usize) -> FnResult<E<'g>> {
    let cx = Cx {
        tape: w.density.tape,
        name: w.density.name,
    };
    let sym = w.passed[i].sym;
    let n = cx.square(sym)?;
    if n != k {
        return Err(cx.mismatch(w.passed[0].sym, sym));
    }
    let e = cx.e(sym)?;
    if scale == Scale::Cholesky {
        check(
            w.density.name,
            e.diagonal(n, n),
            "Cholesky factor diagonal",
            PositiveByFormula,
        )?;
        return Ok(e);
    }
    check_symmetric(w, e, n);
    cholesky(&cx, e, n)
}

/// Rejects matrices that are not symmetric, unless they are by construction.
fn check_symmetric(w: &Whole<'_, '_>, e: E<'_>, n: usize) {
    if n < 2 || e.is_constant() || crate::symbolic::known::is_symmetric(w.density.tape, e, n) {
        return;
    }
    let (low, high): (Vec<u32>, Vec<u32>) = (0..n * n)
        .filter(|at| at % n > at / n)
        .map(|at| (at as u32, (at % n * n + at / n) as u32))
        .unzip();
    let off = (e.gather(&low) - e.gather(&high)).abs();
    w.density.tape.reject_where(w.density.num(1e-8).lt(off));
}

/// Differences of outcomes and locations as columns, and their number.
fn differences<'g>(w: &Whole<'g, '_>, mu: usize) -> FnResult<(E<'g>, usize, usize)> {
    let tape = w.density.tape;
    let (y, m) = (w.passed[0].sym, w.passed[mu].sym);
    let (a, b) = (y.dims()?, m.dims()?);
    let k = a.leaf.size();
    let n = if a.count() == 0 || b.count() == 0 {
        0
    } else {
        a.count().max(b.count())
    };
    let fits = |c: usize| c == n || c == 1;
    if n > 0 && (k != b.leaf.size() || !fits(a.count()) || !fits(b.count())) {
        return Err(w.density.invalid(format!(
            "sizes do not match: {} and {}",
            y.describe(),
            m.describe()
        )));
    }
    if n * k == 0 {
        return Ok((tape.vector(&[]), k, 0));
    }
    let tile = |e: E<'g>, count: usize| {
        if count == n || e.len() == 1 {
            return e;
        }
        let index: Vec<u32> = (0..n * k).map(|at| (at % k) as u32).collect();
        e.gather(&index)
    };
    let (y, m) = (y.e(tape)?, m.e(tape)?);
    check(w.density.name, y, "Random variable", NotNan)?;
    check(w.density.name, m, "Location parameter", Finite)?;
    let difference = tile(y, a.count()) - tile(m, b.count());
    Ok((difference.repeat(n * k), k, n))
}

/// The factor of a scale argument and Σ zᵢ² where one outcome is each record's: z = L⁻¹ (y − μ), or Lᵀ (y − μ) for a
/// precision, element by element.
fn of_record<'g>(
    w: &Whole<'g, '_>,
    mu: usize,
    at: usize,
    scale: Scale,
) -> FnResult<Option<(E<'g>, E<'g>, usize)>> {
    let tape = w.density.tape;
    let (y, m) = (w.passed[0].sym, w.passed[mu].sym);
    if !y.has_records(tape) && !m.has_records(tape) {
        return Ok(None);
    }
    let (a, b) = (y.dims()?, m.dims()?);
    let k = a.leaf.size();
    if (a.count(), b.count()) != (1, 1) || k != b.leaf.size() {
        return Err(w.density.invalid(format!(
            "sizes do not match: {} and {}",
            y.describe(),
            m.describe()
        )));
    }
    let l = factor(w, at, scale, k)?;
    let entry = |i: usize, j: usize| l.at(j * k + i);
    let (y, m) = (y.elements(tape)?, m.elements(tape)?);
    for (y, m) in y.iter().zip(&m) {
        check(w.density.name, *y, "Random variable", NotNan)?;
        check(w.density.name, *m, "Location parameter", Finite)?;
    }
    let x: Vec<E<'g>> = y.iter().zip(&m).map(|(y, m)| *y - *m).collect();
    let mut z: Vec<E<'g>> = Vec::with_capacity(k);
    for i in 0..k {
        z.push(if scale == Scale::Precision {
            let terms: Vec<E<'g>> = (i..k).map(|j| entry(j, i) * x[j]).collect();
            tape.add_all(&terms)
        } else {
            let before: Vec<E<'g>> = (0..i).map(|j| entry(i, j) * z[j]).collect();
            (x[i] - tape.add_all(&before)) / entry(i, i)
        });
    }
    let squares: Vec<E<'g>> = z.into_iter().map(E::square).collect();
    Ok(Some((l, tape.add_all(&squares), k)))
}

fn multi_normal(w: &mut Whole<'_, '_>, scale: Scale) -> FnResult<()> {
    if let Some((l, squares, k)) = of_record(w, 1, 2, scale)? {
        let d = &mut w.density;
        d.term(&[0, 1, 2], -0.5 * squares);
        let log_det = l.diagonal(k, k).log().sum();
        let sign = if scale == Scale::Precision { 1.0 } else { -1.0 };
        d.term(&[2], sign * log_det);
        d.term(&[], d.num(-HALF_LOG_TWO_PI * k as f64));
        return Ok(());
    }
    let (difference, k, n) = differences(w, 1)?;
    if n == 0 {
        return Ok(());
    }
    let l = factor(w, 2, scale, k)?;
    let z = match scale {
        // xᵀ L Lᵀ x = ‖Lᵀ x‖²
        Scale::Precision => l.matmul_with(difference, k, k, n, true, false),
        _ => l.tri_solve(difference, k, n, false),
    };
    let d = &mut w.density;
    d.term(&[0, 1, 2], -0.5 * z.square().sum());
    let log_det = l.diagonal(k, k).log().sum();
    let sign = if scale == Scale::Precision {
        n as f64
    } else {
        -(n as f64)
    };
    d.term(&[2], sign * log_det);
    d.term(&[], d.num(-HALF_LOG_TWO_PI * (k * n) as f64));
    Ok(())
}

fn multi_student_t(w: &mut Whole<'_, '_>, scale: Scale) -> FnResult<()> {
    let own = of_record(w, 2, 3, scale)?;
    let (difference, k, n) = match own {
        Some((_, squares, k)) => (squares, k, 1),
        None => differences(w, 2)?,
    };
    if n == 0 {
        return Ok(());
    }
    let l = match own {
        Some((l, ..)) => l,
        None => factor(w, 3, scale, k)?,
    };
    let nu = w.passed[1].sym.e(w.density.tape)?;
    check(w.density.name, nu, "Degrees of freedom parameter", Positive)?;
    let (kf, nf) = (k as f64, n as f64);
    let quadratic = match own {
        Some((_, squares, _)) => squares,
        None => {
            let squares = l.tri_solve(difference, k, n, false).square();
            let ones = w.density.tape.vector(&vec![1.0; k]);
            squares.matmul_with(ones, n, k, 1, true, false)
        }
    };
    let d = &mut w.density;
    let half = 0.5 * (nu + kf);
    d.term(&[0, 1, 2, 3], -(half * (quadratic / nu).log1p().sum()));
    d.term(&[3], -nf * l.diagonal(k, k).log().sum());
    d.term(
        &[1],
        nf * (half.lgamma() - (0.5 * nu).lgamma() - 0.5 * kf * nu.log()),
    );
    d.term(&[], d.num(-0.5 * kf * nf * PI.ln()));
    Ok(())
}

/// Rows of y are independent with covariance Σ / wᵢ.
fn multi_gp(w: &mut Whole<'_, '_>, scale: Scale) -> FnResult<()> {
    let tape = w.density.tape;
    let y: &Sym = w.passed[0].sym;
    let (rows, cols) = y.dims()?.leaf.extents();
    if rows * cols == 0 {
        return Ok(());
    }
    let l = factor(w, 1, scale, cols)?;
    let weights = w.passed[2].sym.e(tape)?;
    if weights.len() != rows {
        return Err(w.density.invalid(format!(
            "sizes do not match: {} and {}",
            y.describe(),
            w.passed[2].sym.describe()
        )));
    }
    check(w.density.name, weights, "Kernel scales", Positive)?;
    let columns = y.e(tape)?.transpose(rows, cols);
    let squares = l.tri_solve(columns, cols, rows, false).square();
    let ones = tape.vector(&vec![1.0; cols]);
    let quadratic = squares.matmul_with(ones, rows, cols, 1, true, false);
    let (m, k) = (rows as f64, cols as f64);
    let d = &mut w.density;
    d.term(&[0, 1, 2], -0.5 * (weights * quadratic).sum());
    d.term(&[1], -m * l.diagonal(cols, cols).log().sum());
    d.term(&[2], 0.5 * k * weights.log().sum());
    d.term(&[], d.num(-HALF_LOG_TWO_PI * m * k));
    Ok(())
}
