//! Functions of complex numbers, computed from their real and imaginary parts.

use std::f64::consts::{FRAC_PI_2, LN_10, PI};

use jensen_graph::ElemOp;

use crate::program::BinaryOp;
use crate::symbolic::functions::elementwise::map;
use crate::symbolic::functions::{Build, Cx, factorisations, find, operators};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Dims, Leaf, Sym};
use crate::value::error::{FnError, FnResult, MAX_VALUE_BYTES, check_bytes};

type Z<'g> = (E<'g>, E<'g>);
type Unary = for<'g> fn(Z<'g>) -> Z<'g>;

/// Functions of complex values only.
pub const TABLE: &[(&str, Build)] = &[
    ("arg", call),
    ("conj", call),
    ("fft", call),
    ("fft2", call),
    ("get_imag", call),
    ("get_real", call),
    ("inv_fft", call),
    ("inv_fft2", call),
    ("norm", call),
    ("polar", |cx, args| {
        let (r, iteration) = (cx.e(&args[0])?, cx.e(&args[1])?);
        Ok(Sym::complex(
            (r * iteration.cos()).into(),
            (r * iteration.sin()).into(),
        ))
    }),
    ("proj", call),
    ("to_complex", |cx, args| {
        let zero = Sym::Real(0.0);
        let both = [args[0].clone(), args.get(1).unwrap_or(&zero).clone()];
        let [re, im] = [0, 1].map(|i| map(cx, &both, |e| e[i]));
        Ok(Sym::complex(re?, im?))
    }),
];

const UNARY: &[(&str, Unary)] = &[
    ("acos", |z| {
        let (a, b) = asin(z);
        (FRAC_PI_2 - a, -b)
    }),
    ("acosh", |(a, b)| {
        let product = times(sqrt((a + 1.0, b)), sqrt((a - 1.0, b)));
        log((a + product.0, b + product.1))
    }),
    ("asin", asin),
    ("asinh", asinh),
    ("atan", |(a, b)| {
        let (c, d) = atanh((-b, a));
        (d, -c)
    }),
    ("atanh", atanh),
    ("conj", |(a, b)| (a, -b)),
    ("cos", |(a, b)| (a.cos() * cosh(b), -(a.sin() * sinh(b)))),
    ("cosh", |(a, b)| (cosh(a) * b.cos(), sinh(a) * b.sin())),
    ("exp", exp),
    ("log", log),
    ("log10", |z| {
        let (a, b) = log(z);
        (a * LN_10.recip(), b * LN_10.recip())
    }),
    ("proj", |z| z),
    ("sin", |(a, b)| (a.sin() * cosh(b), a.cos() * sinh(b))),
    ("sinh", |(a, b)| (sinh(a) * b.cos(), cosh(a) * b.sin())),
    ("sqrt", sqrt),
    ("tan", |(a, b)| {
        let (c, d) = tanh((-b, a));
        (d, -c)
    }),
    ("tanh", tanh),
];

/// Functions that are applied separately to the real and the imaginary part, and that accept ints.
const BY_PART: &[&str] = &[
    "add",
    "add_diag",
    "append_array",
    "append_col",
    "append_row",
    "block",
    "col",
    "cumulative_sum",
    "diag_matrix",
    "diagonal",
    "head",
    "minus",
    "plus",
    "rep_array",
    "rep_matrix",
    "rep_row_vector",
    "rep_vector",
    "reverse",
    "row",
    "segment",
    "sub_col",
    "sub_row",
    "subtract",
    "sum",
    "tail",
    "to_array_1d",
    "to_array_2d",
    "to_matrix",
    "to_row_vector",
    "to_vector",
    "trace",
    "transpose",
];

const OF_SHAPE: &[&str] = &["cols", "dims", "num_elements", "rows", "size"];

const BILINEAR: &[&str] = &[
    "diag_post_multiply",
    "diag_pre_multiply",
    "elt_multiply",
    "multiply",
];

/// Functions that are linear in each of two arguments, after the first argument has been conjugated.
const SESQUILINEAR: &[&str] = &["columns_dot_product", "dot_product", "rows_dot_product"];

/// Products of a container with itself, each with the function that computes the product of two containers.
const SELF_PRODUCTS: &[(&str, &str)] = &[
    ("columns_dot_self", "columns_dot_product"),
    ("dot_self", "dot_product"),
    ("rows_dot_self", "rows_dot_product"),
];

fn times<'g>((a, b): Z<'g>, (c, d): Z<'g>) -> Z<'g> {
    (a * c - b * d, a * d + b * c)
}

fn over<'g>((a, b): Z<'g>, (c, d): Z<'g>) -> Z<'g> {
    let scale = (c.square() + d.square()).recip();
    ((a * c + b * d) * scale, (b * c - a * d) * scale)
}

fn sinh(x: E<'_>) -> E<'_> {
    x.op1(ElemOp::Sinh)
}

fn cosh(x: E<'_>) -> E<'_> {
    x.op1(ElemOp::Cosh)
}

fn exp<'g>((a, b): Z<'g>) -> Z<'g> {
    let r = a.exp();
    (r * b.cos(), r * b.sin())
}

fn log<'g>((a, b): Z<'g>) -> Z<'g> {
    (a.op2(ElemOp::Hypot, b).log(), b.op2(ElemOp::Atan2, a))
}

/// The root has a non-negative real part. The smaller part of the root is computed from the larger part, without
/// cancellation.
fn sqrt<'g>((a, b): Z<'g>) -> Z<'g> {
    let zero = a.num(0.0);
    let large = (0.5 * (a.op2(ElemOp::Hypot, b) + a.abs())).sqrt();
    let small = large.eq(zero).select(zero, 0.5 * b / large);
    let (left, below) = (a.lt(zero), b.lt(zero));
    let signed = below.select(-large, large);
    (left.select(small.abs(), large), left.select(signed, small))
}

fn asinh<'g>((a, b): Z<'g>) -> Z<'g> {
    let (c, d) = times((a, b), (a, b));
    let (c, d) = sqrt((c + 1.0, d));
    log((a + c, b + d))
}

fn asin<'g>((a, b): Z<'g>) -> Z<'g> {
    let (c, d) = asinh((-b, a));
    (d, -c)
}

fn atanh<'g>((a, b): Z<'g>) -> Z<'g> {
    let ((c, d), (e, f)) = (log((a + 1.0, b)), log((1.0 - a, -b)));
    (0.5 * (c - e), 0.5 * (d - f))
}

fn tanh<'g>((a, b): Z<'g>) -> Z<'g> {
    over(
        (sinh(a) * b.cos(), cosh(a) * b.sin()),
        (cosh(a) * b.cos(), sinh(a) * b.sin()),
    )
}

/// A power of the base 0 is 0.
fn power<'g>(z: Z<'g>, w: Z<'g>) -> Z<'g> {
    let zero = z.0.num(0.0);
    let none = z.0.eq(zero) * z.1.eq(zero);
    let safe = (none.select(z.0.num(1.0), z.0), z.1);
    let (a, b) = exp(times(w, log(safe)));
    (none.select(zero, a), none.select(zero, b))
}

fn each<'g>(cx: &Cx<'g>, args: &[Sym], f: impl Fn(&[E<'g>]) -> Z<'g>) -> FnResult<Sym> {
    let re = map(cx, args, |e| f(e).0)?;
    let im = map(cx, args, |e| f(e).1)?;
    Ok(Sym::complex(re, im))
}

fn pairs(a: &Sym, b: &Sym) -> [Sym; 4] {
    let ([a, b], [c, d]) = (a.as_complex(), b.as_complex());
    [a, b, c, d]
}

fn each_pair(cx: &Cx<'_>, a: &Sym, b: &Sym, f: for<'g> fn(Z<'g>, Z<'g>) -> Z<'g>) -> FnResult<Sym> {
    each(cx, &pairs(a, b), |e| f((e[0], e[1]), (e[2], e[3])))
}

fn real(cx: &Cx<'_>, name: &'static str, args: &[Sym]) -> FnResult<Sym> {
    let builder = find(name).ok_or_else(|| unsupported(cx))?;
    builder.build(&Cx { name, ..*cx }, args)
}

fn unsupported(cx: &Cx<'_>) -> FnError {
    FnError::unsupported(format!(
        "function `{}` of complex numbers that depend on parameters is not supported yet in the log density",
        cx.name
    ))
}

fn bilinear(
    cx: &Cx<'_>,
    [a, b, c, d]: &[Sym; 4],
    f: impl Fn(&Sym, &Sym) -> FnResult<Sym>,
) -> FnResult<Sym> {
    let sum = |op, x: &Sym, y: &Sym| operators::binary(cx, op, x, y);
    let re = sum(BinaryOp::Sub, &f(a, c)?, &f(b, d)?)?;
    let im = sum(BinaryOp::Add, &f(a, d)?, &f(b, c)?)?;
    Ok(Sym::complex(re, im))
}

fn negative(cx: &Cx<'_>, x: &Sym) -> FnResult<Sym> {
    map(cx, std::slice::from_ref(x), |e| -e[0])
}

/// Calls a function that has a complex argument.
///
/// # Errors
/// Fails if the sizes of the arguments do not match, or if the function is not available for complex numbers.
pub fn call(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let name = cx.name;
    let first = args.first().ok_or_else(|| unsupported(cx))?;
    let [re, im] = first.as_complex();
    let z = [re.clone(), im.clone()];
    if let Some((_, f)) = UNARY.iter().find(|(n, _)| *n == name) {
        return each(cx, &z, |e| f((e[0], e[1])));
    }
    if BY_PART.contains(&name) {
        let part = |k: usize| -> FnResult<Sym> {
            let of = |x: &Sym| {
                x.parts()
                    .map_or_else(|| x.clone(), |parts| parts[k].clone())
            };
            let args: Vec<Sym> = args.iter().map(of).collect();
            real(cx, name, &args)
        };
        return Ok(Sym::complex(part(0)?, part(1)?));
    }
    if OF_SHAPE.contains(&name) {
        return match re.known() {
            Some(_) => real(cx, name, &[im]),
            None => real(cx, name, &[re]),
        };
    }
    if let Some((_, product)) = SELF_PRODUCTS.iter().find(|(n, _)| *n == name) {
        let both = [first.clone(), first.clone()];
        return call(
            &Cx {
                name: product,
                ..*cx
            },
            &both,
        );
    }
    if let [matrix] = args
        && let Some(found) = factorisations::of_complex(cx, matrix)?
    {
        return Ok(found);
    }
    match (name, args) {
        ("get_real", _) => Ok(re),
        ("get_imag", _) => Ok(im),
        ("abs", _) => map(cx, &z, |e| e[0].op2(ElemOp::Hypot, e[1])),
        ("arg", _) => map(cx, &z, |e| e[1].op2(ElemOp::Atan2, e[0])),
        ("norm", _) => map(cx, &z, |e| e[0].square() + e[1].square()),
        ("prod", _) => prod(cx, &re, &im),
        ("symmetrize_from_lower_tri", _) => {
            let n = cx.square(&re)?;
            let signs: Vec<f64> = (0..n * n)
                .map(|at| if at / n > at % n { -1.0 } else { 1.0 })
                .collect();
            let mirrored = real(cx, name, &[im])?;
            let signs = cx.matrix(cx.tape.vector(&signs), n, n);
            let im = map(cx, &[mirrored, signs], |e| e[0] * e[1])?;
            Ok(Sym::complex(real(cx, name, &[re])?, im))
        }
        ("fft" | "inv_fft", _) => fourier(cx, &z, name == "inv_fft", false),
        ("fft2" | "inv_fft2", _) => fourier(cx, &z, name == "inv_fft2", true),
        (_, [a, b]) => pair(cx, a, b),
        _ => Err(unsupported(cx)),
    }
}

fn pair(cx: &Cx<'_>, a: &Sym, b: &Sym) -> FnResult<Sym> {
    let name = cx.name;
    let op = match name {
        "divide" => BinaryOp::Div,
        "elt_divide" => BinaryOp::EltDiv,
        "mdivide_right" => BinaryOp::Div,
        "pow" => BinaryOp::EltPow,
        "logical_eq" => BinaryOp::Eq,
        "logical_neq" => BinaryOp::Ne,
        _ => {
            let mut parts = pairs(a, b);
            if SESQUILINEAR.contains(&name) {
                parts[1] = negative(cx, &parts[1])?;
            } else if !BILINEAR.contains(&name) {
                return Err(unsupported(cx));
            }
            return bilinear(cx, &parts, |x, y| real(cx, name, &[x.clone(), y.clone()]));
        }
    };
    binary(cx, op, a, b)
}

/// Computes `a op b` with at least one complex operand.
///
/// # Errors
/// Fails if the sizes of the operands do not match, or if the operator is not defined for complex numbers.
pub fn binary(cx: &Cx<'_>, op: BinaryOp, a: &Sym, b: &Sym) -> FnResult<Sym> {
    use BinaryOp::{Add, Div, EltDiv, EltMul, EltPow, Eq, Mul, Ne, Pow, Sub};
    let parts = pairs(a, b);
    let real = |x: &Sym, y: &Sym| operators::binary(cx, op, x, y);
    match op {
        Add | Sub => {
            let [a, b, c, d] = &parts;
            Ok(Sym::complex(real(a, c)?, real(b, d)?))
        }
        Mul | EltMul => bilinear(cx, &parts, real),
        Div if matches!(parts[2].dims()?.leaf, Leaf::Matrix(..)) => right_division(cx, &parts),
        Div | EltDiv => each_pair(cx, a, b, over),
        Pow | EltPow => each_pair(cx, a, b, power),
        Eq => map(cx, &parts, |e| e[0].eq(e[2]) * e[1].eq(e[3])),
        Ne => map(cx, &parts, |e| (e[0].eq(e[2]) * e[1].eq(e[3])).not()),
        _ => Err(unsupported(cx)),
    }
}

/// Computes B A⁻¹ as the upper rows of a product of real matrices with four blocks each.
fn right_division(cx: &Cx<'_>, [b, bi, a, ai]: &[Sym; 4]) -> FnResult<Sym> {
    let n = cx.square(a)?;
    let joined = |name, x: &Sym, y: &Sym| real(cx, name, &[x.clone(), y.clone()]);
    let upper = joined("append_col", a, &negative(cx, ai)?)?;
    let blocks = joined("append_row", &upper, &joined("append_col", ai, a)?)?;
    let rows = joined("append_col", b, &negative(cx, bi)?)?;
    let both = operators::binary(cx, BinaryOp::Div, &rows, &blocks)?;
    let dims = b.dims()?;
    let m = dims.leaf.extents().0;
    let part = |from: usize| -> FnResult<Sym> {
        let index: Vec<usize> = (0..m * n).map(|at| from * m + at).collect();
        both.pick(cx.tape, &index, dims.clone())
    };
    Ok(Sym::complex(part(0)?, negative(cx, &part(n)?)?))
}

fn prod(cx: &Cx<'_>, re: &Sym, im: &Sym) -> FnResult<Sym> {
    let (re, im) = (cx.elements(re)?, cx.elements(im)?);
    let start = (cx.num(1.0), cx.num(0.0));
    let (a, b) = re.into_iter().zip(im).fold(start, times);
    Ok(Sym::complex(a.into(), b.into()))
}

fn fourier<'g>(cx: &Cx<'g>, z: &[Sym; 2], inverse: bool, rows_too: bool) -> FnResult<Sym> {
    let dims = z[0].dims()?;
    let (rows, cols) = dims.leaf.extents();
    let (mut a, mut b) = (cx.e(&z[0])?, cx.e(&z[1])?);
    if rows * cols == 0 {
        return Ok(Sym::complex(z[0].clone(), z[1].clone()));
    }
    // Waves and their sources, of n points each.
    let points = (rows.max(if rows_too { cols } else { 0 }) as f64).powi(2);
    check_bytes("the table of waves", points, 64, MAX_VALUE_BYTES)?;
    let waves = |n: usize| -> Z<'g> {
        let scale = if inverse { 1.0 / n as f64 } else { 1.0 };
        let sign = if inverse { 2.0 } else { -2.0 };
        let iteration = |at: usize| sign * PI * ((at / n * (at % n)) % n) as f64 / n as f64;
        let table = |f: fn(f64) -> f64| -> Vec<f64> {
            (0..n * n).map(|at| scale * f(iteration(at))).collect()
        };
        (
            cx.tape.vector(&table(f64::cos)),
            cx.tape.vector(&table(f64::sin)),
        )
    };
    let (c, s) = waves(rows);
    let left = |m: E<'g>, x: E<'g>| m.matmul(x, rows, rows, cols);
    (a, b) = (left(c, a) - left(s, b), left(c, b) + left(s, a));
    if rows_too {
        let (c, s) = waves(cols);
        let right = |x: E<'g>, m: E<'g>| x.matmul(m, rows, cols, cols);
        (a, b) = (right(a, c) - right(b, s), right(b, c) + right(a, s));
    }
    let part = |e: E<'g>| Sym::flat(Dims::clone(&dims), e);
    Ok(Sym::complex(part(a), part(b)))
}
