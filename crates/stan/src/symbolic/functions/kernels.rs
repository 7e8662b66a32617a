//! Covariance functions of Gaussian processes.

use crate::symbolic::functions::{Build, Cx};
use crate::symbolic::tape::E;
use crate::symbolic::value::Sym;
use crate::value::error::FnResult;

/// The functions that this file defines.
pub const TABLE: &[(&str, Build)] = &[
    ("gp_exp_quad_cov", exp_quad),
    ("gp_exponential_cov", |cx, args| {
        stationary(cx, args, |d2| {
            let d = d2.sqrt();
            (-d).exp()
        })
    }),
    ("gp_matern32_cov", |cx, args| {
        stationary(cx, args, |d2| {
            let d = (3.0 * d2).sqrt();
            (1.0 + d) * (-d).exp()
        })
    }),
    ("gp_matern52_cov", |cx, args| {
        stationary(cx, args, |d2| {
            let d = (5.0 * d2).sqrt();
            (1.0 + d + 5.0 / 3.0 * d2) * (-d).exp()
        })
    }),
    ("gp_dot_prod_cov", dot_prod),
    ("gp_periodic_cov", periodic),
];

/// Builds the squared exponential kernel α² exp(−½ ‖(x − y)/ℓ‖²).
///
/// # Errors
/// Fails as [`stationary`] does.
pub fn exp_quad(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    stationary(cx, args, |d2| (-0.5 * d2).exp())
}

fn points<'g>(cx: &Cx<'g>, x: &Sym) -> FnResult<(usize, usize, E<'g>)> {
    let dims = x.dims()?;
    let n = dims.array.first().copied().unwrap_or(0);
    Ok((n, dims.leaf.size(), cx.e(x)?))
}

fn positive(cx: &Cx<'_>, what: &str, x: E<'_>) -> FnResult<()> {
    if let Some(bad) = x
        .values()
        .and_then(|v| v.into_iter().find(|v| v.is_nan() || *v <= 0.0))
    {
        return Err(cx.domain(format!("{what} is {bad}, but must be positive!")));
    }
    if !crate::symbolic::known::range(x).positive() {
        cx.tape.reject_where(x.le(cx.num(0.0)));
    }
    Ok(())
}

/// Builds a kernel that depends on the scaled squared distance. The arguments are x, magnitude and length scale (a
/// single one, or one for each coordinate), or x₁, x₂, magnitude and length scale. The diagonal is set to the squared
/// magnitude. The diagonal is not computed from distances, because the square root of a squared distance has no
/// derivative at 0.
fn stationary(cx: &Cx<'_>, args: &[Sym], kernel: for<'g> fn(E<'g>) -> E<'g>) -> FnResult<Sym> {
    let cross = args.len() == 4;
    let (n, k, x) = points(cx, &args[0])?;
    let (m, l, y) = if cross {
        points(cx, &args[1])?
    } else {
        (n, k, x)
    };
    let (magnitude, scale) = (&args[args.len() - 2], &args[args.len() - 1]);
    let (alpha, rho) = (cx.e(magnitude)?, cx.e(scale)?);
    positive(cx, "magnitude", alpha)?;
    positive(cx, "length scale", rho)?;
    let each_scale = !scale.is_scalar();
    if (k != l && n > 0 && m > 0) || (each_scale && rho.len() != k && n > 0) {
        return Err(cx.mismatch(&args[0], scale));
    }
    if n * m == 0 {
        return Ok(cx.matrix(cx.tape.vector(&[]), n, m));
    }
    // If both sides consist of the same points, only pairs below the diagonal are needed.
    let pairs: Vec<(usize, usize)> = (0..m)
        .flat_map(|j| (0..n).map(move |i| (i, j)))
        .filter(|(i, j)| cross || i > j)
        .collect();
    let variance = alpha.square();
    let values = if pairs.is_empty() {
        cx.tape.vector(&[])
    } else {
        let difference = |c: usize| {
            let (from, to): (Vec<u32>, Vec<u32>) = pairs
                .iter()
                .map(|(i, j)| ((i * k + c) as u32, (j * k + c) as u32))
                .unzip();
            (pick(x, &from) - pick(y, &to)).square()
        };
        let distances = if each_scale {
            let terms: Vec<E<'_>> = (0..k)
                .map(|c| difference(c) * rho.at(c).recip().square())
                .collect();
            cx.tape.add_all(&terms)
        } else {
            let terms: Vec<E<'_>> = (0..k).map(difference).collect();
            cx.tape.add_all(&terms) * rho.recip().square()
        };
        (variance * kernel(distances)).repeat(pairs.len())
    };
    if cross {
        return Ok(cx.matrix(values, n, m));
    }
    // The diagonal is element 0, and the pairs follow.
    let all = cx.tape.concat(&[variance, values]);
    let mut position = vec![0_u32; n * n];
    for (at, (i, j)) in pairs.iter().enumerate() {
        position[j * n + i] = at as u32 + 1;
        position[i * n + j] = at as u32 + 1;
    }
    Ok(cx.matrix(pick(all, &position), n, n))
}

fn pick<'g>(x: E<'g>, index: &[u32]) -> E<'g> {
    if x.len() == 1 {
        x.repeat(index.len())
    } else {
        x.gather(index)
    }
}

/// σ² + ⟨x, y⟩
fn dot_prod(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let cross = args.len() == 3;
    let (n, k, x) = points(cx, &args[0])?;
    let (m, l, y) = if cross {
        points(cx, &args[1])?
    } else {
        (n, k, x)
    };
    if k != l && n > 0 && m > 0 {
        return Err(cx.mismatch(&args[0], &args[1]));
    }
    let sigma = cx.e(&args[args.len() - 1])?;
    let products = x.matmul_with(y, n, k, m, true, false);
    Ok(cx.matrix((products + sigma.square()).repeat(n * m), n, m))
}

/// α² exp(−2 sin²(π ‖x − y‖ / p) / ℓ²), with the arguments x, optionally y, magnitude, length scale and period
fn periodic(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let cross = args.len() == 5;
    let first = usize::from(cross);
    let (n, k, x) = points(cx, &args[0])?;
    let (m, l, y) = if cross {
        points(cx, &args[1])?
    } else {
        (n, k, x)
    };
    if k != l && n > 0 && m > 0 {
        return Err(cx.mismatch(&args[0], &args[1]));
    }
    let scalar = |i: usize| cx.e(&args[first + i]);
    let (alpha, rho, period) = (scalar(1)?, scalar(2)?, scalar(3)?);
    positive(cx, "magnitude", alpha)?;
    positive(cx, "length scale", rho)?;
    positive(cx, "period", period)?;
    if n * m == 0 {
        return Ok(cx.matrix(cx.tape.vector(&[]), n, m));
    }
    let difference = |c: usize| {
        let at = |points: fn(usize, usize) -> usize, k: usize| -> Vec<u32> {
            (0..n * m)
                .map(|at| (points(at, n) * k + c) as u32)
                .collect()
        };
        (pick(x, &at(|at, n| at % n, k)) - pick(y, &at(|at, n| at / n, l))).square()
    };
    let terms: Vec<E<'_>> = (0..k).map(difference).collect();
    let distances = std::f64::consts::PI * cx.tape.add_all(&terms).sqrt();
    let waves = (distances * period.recip()).sin().square();
    let values = alpha.square() * (-2.0 * (waves * rho.recip().square())).exp();
    Ok(cx.matrix(values.repeat(n * m), n, m))
}
