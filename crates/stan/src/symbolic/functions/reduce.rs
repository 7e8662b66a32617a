//! Functions of containers that return numbers.

use crate::symbolic::functions::elementwise::{lmgamma, map};
use crate::symbolic::functions::{Build, Cx};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Dims, Leaf, Sym, e_cell};
use crate::value::error::{FnResult, check_terms, check_three_two};

/// The functions that this file defines.
pub const TABLE: &[(&str, Build)] = &[
    ("hypergeometric_2F1", |cx, args| {
        hypergeometric(cx, &args[..2], &args[2..3], &args[3])
    }),
    ("hypergeometric_3F2", |cx, args| {
        let count = |x: &Sym| x.dims().map(|dims| dims.size());
        check_three_two(cx.name, count(&args[0])?, count(&args[1])?)?;
        hypergeometric(cx, &args[..1], &args[1..2], &args[2])
    }),
    ("hypergeometric_pFq", |cx, args| {
        hypergeometric(cx, &args[..1], &args[1..2], &args[2])
    }),
    ("sum", |cx, args| Ok(sum(cx, &args[0])?.into())),
    ("prod", prod),
    ("mean", mean),
    ("variance", |cx, args| Ok(variance(cx, &args[0])?.into())),
    ("sd", |cx, args| Ok(sd(cx, &args[0])?.into())),
    ("max", |cx, args| extreme(cx, args, true)),
    ("min", |cx, args| extreme(cx, args, false)),
    ("norm1", |cx, args| {
        let abs = map(cx, args, |e| e[0].abs())?;
        Ok(sum(cx, &abs)?.into())
    }),
    ("norm2", |cx, args| {
        Ok(dot(cx, &args[0], &args[0])?.sqrt().into())
    }),
    ("log_sum_exp", log_sum_exp),
    ("softmax", softmax),
    ("log_softmax", log_softmax),
    ("log_mix", log_mix),
    ("cumulative_sum", cumulative_sum),
    ("dot_product", |cx, args| {
        Ok(dot(cx, &args[0], &args[1])?.into())
    }),
    ("dot_self", |cx, args| {
        Ok(dot(cx, &args[0], &args[0])?.into())
    }),
    ("squared_distance", |cx, args| {
        Ok(squared_distance(cx, args)?.into())
    }),
    ("distance", |cx, args| {
        Ok(squared_distance(cx, args)?.sqrt().into())
    }),
    ("rows_dot_product", |cx, args| {
        by_line(cx, &args[0], &args[1], true)
    }),
    ("rows_dot_self", |cx, args| {
        by_line(cx, &args[0], &args[0], true)
    }),
    ("columns_dot_product", |cx, args| {
        by_line(cx, &args[0], &args[1], false)
    }),
    ("columns_dot_self", |cx, args| {
        by_line(cx, &args[0], &args[0], false)
    }),
    ("lmgamma", |cx, args| {
        let k = args[0].size("the dimension")?;
        check_terms("lmgamma", k as f64)?;
        map(cx, &args[1..], |e| lmgamma(k, e[0]))
    }),
];

fn hypergeometric(cx: &Cx<'_>, above: &[Sym], below: &[Sym], z: &Sym) -> FnResult<Sym> {
    let counts = above.iter().chain(below).map(|x| x.dims());
    let count: usize = counts.map(|dims| Ok(dims?.size())).sum::<FnResult<_>>()?;
    // Every pair of numbers has a second derivative.
    check_terms(cx.name, (count as f64).powi(2))?;
    let list = |all: &[Sym]| -> FnResult<Vec<E<'_>>> {
        let parts: Vec<_> = all
            .iter()
            .map(|x| cx.elements(x))
            .collect::<FnResult<_>>()?;
        Ok(parts.concat())
    };
    let (mut all, below) = (list(above)?, list(below)?);
    let (p, q) = (all.len(), below.len());
    all.extend(below);
    all.push(cx.e(z)?);
    Ok(cx.tape.concat(&all).hypergeometric(p, q).into())
}

/// Returns Σ xᵢ.
///
/// # Errors
/// Fails for tuples and complex numbers.
pub fn sum<'g>(cx: &Cx<'g>, x: &Sym) -> FnResult<E<'g>> {
    if cx.short(x) {
        return Ok(cx.tape.add_all(&cx.elements(x)?));
    }
    Ok(cx.e(x)?.sum())
}

fn prod(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let x = cx.elements(&args[0])?;
    if x.is_empty() {
        return Ok(Sym::Real(1.0));
    }
    Ok(tree(&x, &|a, b| a * b).into())
}

fn tree<'g>(x: &[E<'g>], join: &dyn Fn(E<'g>, E<'g>) -> E<'g>) -> E<'g> {
    if x.len() == 1 {
        return x[0];
    }
    let (a, b) = x.split_at(x.len() / 2);
    join(tree(a, join), tree(b, join))
}

fn count(cx: &Cx<'_>, x: &Sym) -> FnResult<f64> {
    match x.dims()?.size() {
        0 => Err(cx.domain("the container has size 0, but must have a non-zero size")),
        n => Ok(n as f64),
    }
}

fn mean(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let n = count(cx, &args[0])?;
    Ok((sum(cx, &args[0])? / n).into())
}

/// Subtracts the first element from all elements before it computes the variance, so that the variance is exactly 0 if
/// all elements are equal.
fn variance<'g>(cx: &Cx<'g>, x: &Sym) -> FnResult<E<'g>> {
    let n = count(cx, x)?;
    if n == 1.0 {
        return Ok(cx.num(0.0));
    }
    let first = if cx.short(x) {
        cx.elements(x)?[0]
    } else {
        cx.e(x)?.at(0)
    };
    // The subtracted constant does not affect derivatives.
    let first: Sym = first.pivot().into();
    let x = map(cx, &[x.clone(), first], |e| e[0] - e[1])?;
    let mean: Sym = (sum(cx, &x)? / n).into();
    let squares = map(cx, &[x, mean], |e| (e[0] - e[1]).square())?;
    Ok(sum(cx, &squares)? / (n - 1.0))
}

/// Where all elements are equal, the standard deviation has no derivative. As in Stan, the partial derivatives are then
/// 1/√n.
fn sd<'g>(cx: &Cx<'g>, x: &Sym) -> FnResult<E<'g>> {
    let n = count(cx, x)?;
    let variance = variance(cx, x)?;
    if variance.is_constant() {
        return Ok(variance.sqrt());
    }
    let equal = variance.eq(cx.num(0.0));
    let total = sum(cx, x)?;
    let slope = (total - total.pivot()) / n.sqrt();
    Ok(equal.select(slope, equal.select(cx.num(1.0), variance).sqrt()))
}

fn extreme(cx: &Cx<'_>, args: &[Sym], largest: bool) -> FnResult<Sym> {
    if args.len() == 2 {
        return map(cx, args, |e| {
            if largest {
                e[0].fmax(e[1])
            } else {
                e[0].fmin(e[1])
            }
        });
    }
    let x = &args[0];
    if x.dims()?.size() == 0 {
        return Ok(Sym::Real(if largest {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        }));
    }
    if cx.short(x) {
        let all = cx.elements(x)?.into_iter();
        let found = all.reduce(|a, b| if largest { a.fmax(b) } else { a.fmin(b) });
        return Ok(found.unwrap_or(cx.num(f64::NAN)).into());
    }
    let x = cx.e(x)?;
    Ok(if largest { x.max() } else { -(-x).max() }.into())
}

/// Returns log Σ exp(xᵢ) of the scalars `x`.
pub fn log_sum_exp_of<'g>(cx: &Cx<'g>, x: &[E<'g>]) -> E<'g> {
    match x {
        [] => cx.num(f64::NEG_INFINITY),
        [x] => *x,
        [x, y] => x.log_add_exp(*y),
        _ => {
            let shift = tree(x, &|a, b| a.fmax(b)).pivot();
            let terms: Vec<E<'g>> = x.iter().map(|x| (*x - shift).exp()).collect();
            cx.tape.add_all(&terms).log() + shift
        }
    }
}

/// Returns log Σ exp(xᵢ) over the elements of a container.
///
/// # Errors
/// Fails for tuples and complex numbers.
pub fn log_sum_exp_all<'g>(cx: &Cx<'g>, x: &Sym) -> FnResult<E<'g>> {
    if cx.short(x) {
        return Ok(log_sum_exp_of(cx, &cx.elements(x)?));
    }
    Ok(cx.e(x)?.log_sum_exp())
}

fn log_sum_exp(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    if args.len() == 2 {
        return map(cx, args, |e| e[0].log_add_exp(e[1]));
    }
    Ok(log_sum_exp_all(cx, &args[0])?.into())
}

fn log_softmax(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    count(cx, &args[0])?;
    let total: Sym = log_sum_exp_all(cx, &args[0])?.into();
    map(cx, &[args[0].clone(), total], |e| e[0] - e[1])
}

fn softmax(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    if args[0].dims()?.size() == 0 {
        return Ok(args[0].clone());
    }
    let logs = log_softmax(cx, args)?;
    map(cx, &[logs], |e| e[0].exp())
}

fn log_mix(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    if let [theta, a, b] = args {
        let (theta, a, b) = (cx.e(theta)?, cx.e(a)?, cx.e(b)?);
        return Ok((theta.log() + a).log_add_exp(theta.log1m() + b).into());
    }
    let [theta, parts] = args else {
        return Err(cx.invalid(format!("called with {} arguments", args.len())));
    };
    let (p, dims) = (theta.dims()?, parts.dims()?);
    let k = p.size();
    // In an array of vectors, each vector contains the log densities of the components of one mixture.
    let each = if dims.leaf == Leaf::Scalar {
        dims.size()
    } else {
        dims.leaf.size()
    };
    if k != each {
        return Err(cx.mismatch(theta, parts));
    }
    let weights = map(cx, std::slice::from_ref(theta), |e| e[0].log())?;
    let count = dims.size() / each.max(1);
    let mut total = Vec::with_capacity(count);
    if count == 1 {
        let terms = map(cx, &[weights, parts.clone()], |e| e[0] + e[1])?;
        return Ok(log_sum_exp_all(cx, &terms)?.into());
    }
    let (weights, parts) = (cx.elements(&weights)?, cx.elements(parts)?);
    for i in 0..count {
        let terms: Vec<E<'_>> = (0..k).map(|j| weights[j] + parts[i * k + j]).collect();
        total.push(log_sum_exp_of(cx, &terms));
    }
    Ok(cx.tape.add_all(&total).into())
}

fn cumulative_sum(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let dims = args[0].dims()?;
    if dims.size() == 0 {
        return Ok(args[0].clone());
    }
    if cx.short(&args[0]) {
        let mut cells = Vec::with_capacity(dims.size());
        let mut total: Option<E<'_>> = None;
        for x in cx.elements(&args[0])? {
            let next = total.map_or(x, |t| t + x);
            cells.push(e_cell(next));
            total = Some(next);
        }
        return Ok(Sym::cells(dims, cells));
    }
    Ok(Sym::flat(dims, cx.e(&args[0])?.cumsum()))
}

/// Returns Σ xᵢ yᵢ.
///
/// # Errors
/// Fails if the sizes differ.
pub fn dot<'g>(cx: &Cx<'g>, x: &Sym, y: &Sym) -> FnResult<E<'g>> {
    if x.dims()?.size() != y.dims()?.size() {
        return Err(cx.mismatch(x, y));
    }
    if cx.short(x) || cx.short(y) {
        let (x, y) = (cx.elements(x)?, cx.elements(y)?);
        let terms: Vec<E<'g>> = x.iter().zip(&y).map(|(x, y)| *x * *y).collect();
        return Ok(cx.tape.add_all(&terms));
    }
    Ok((cx.e(x)? * cx.e(y)?).sum())
}

fn squared_distance<'g>(cx: &Cx<'g>, args: &[Sym]) -> FnResult<E<'g>> {
    if args[0].dims()?.size() != args[1].dims()?.size() {
        return Err(cx.mismatch(&args[0], &args[1]));
    }
    if args.iter().any(|a| cx.short(a)) {
        let (x, y) = (cx.elements(&args[0])?, cx.elements(&args[1])?);
        let terms: Vec<E<'g>> = x.iter().zip(&y).map(|(x, y)| (*x - *y).square()).collect();
        return Ok(cx.tape.add_all(&terms));
    }
    Ok((cx.e(&args[0])? - cx.e(&args[1])?).square().sum())
}

/// Returns the dot products of the rows of two matrices if `rows_wise` is true, and of their columns otherwise.
fn by_line(cx: &Cx<'_>, x: &Sym, y: &Sym, rows_wise: bool) -> FnResult<Sym> {
    let (rows, cols) = cx.extents(x)?;
    if cx.extents(y)? != (rows, cols) {
        return Err(cx.mismatch(x, y));
    }
    if x.has_records(cx.tape) || y.has_records(cx.tape) {
        let (x, y) = (cx.elements(x)?, cx.elements(y)?);
        let count = if rows_wise { rows } else { cols };
        let cells = (0..count)
            .map(|i| {
                let own = (0..rows * cols)
                    .filter(|at| i == if rows_wise { at % rows } else { at / rows });
                let terms: Vec<E<'_>> = own.map(|at| x[at] * y[at]).collect();
                e_cell(cx.tape.add_all(&terms))
            })
            .collect();
        let leaf = if rows_wise {
            Leaf::Vector(rows)
        } else {
            Leaf::Row(cols)
        };
        return Ok(Sym::cells(Dims::leaf(leaf), cells));
    }
    let products = cx.e(x)? * cx.e(y)?;
    let ones = |n: usize| cx.tape.vector(&vec![1.0; n]);
    Ok(if rows_wise {
        let sums = products.matmul(ones(cols), rows, cols, 1);
        Sym::flat(Dims::leaf(Leaf::Vector(rows)), sums)
    } else {
        let sums = products.matmul_with(ones(rows), cols, rows, 1, true, false);
        Sym::flat(Dims::leaf(Leaf::Row(cols)), sums)
    })
}
