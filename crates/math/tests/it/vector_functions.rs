//! Tests of every vector function on every SIMD level of this machine. The functions are compared with 60-digit
//! references and, at special values, with the conventions of the C library. The results of AVX-512 must be bitwise
//! identical to those of AVX2.

use jensen_math::simd::Simd;
use jensen_math::vmath::slices as v;

type Unary = fn(Simd, &[f64], &mut [f64]);
type Binary = fn(Simd, &[f64], &[f64], &mut [f64]);

#[derive(Clone, Copy)]
enum Function {
    One(Unary),
    Two(Binary),
}

use Function::{One, Two};

impl Function {
    fn apply(self, simd: Simd, x: &[f64], y: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        match self {
            One(f) => f(simd, x, &mut out),
            Two(f) => f(simd, x, y, &mut out),
        }
        out
    }
}

/// Each entry contains the name, the function, and the bounds on the error on the vector levels and on the scalar
/// level, in units in the last place. For `lbeta` the bounds are absolute instead, because its terms cancel.
const FUNCTIONS: &[(&str, Function, f64, f64)] = &[
    ("exp", One(v::exp), 1.0, 2.0),
    ("exp2", One(v::exp2), 1.5, 2.0),
    ("expm1", One(v::expm1), 2.0, 2.5),
    ("log", One(v::log), 1.0, 1.5),
    ("log2", One(v::log2), 1.0, 1.5),
    ("log10", One(v::log10), 1.5, 2.0),
    ("log1p", One(v::log1p), 1.5, 2.0),
    ("log1m", One(v::log1m), 1.5, 2.0),
    ("sin", One(v::sin), 1.0, 1.5),
    ("cos", One(v::cos), 1.0, 1.5),
    ("tan", One(v::tan), 2.0, 3.0),
    ("asin", One(v::asin), 1.0, 1.5),
    ("acos", One(v::acos), 1.5, 2.0),
    ("atan", One(v::atan), 1.5, 1.5),
    ("sinh", One(v::sinh), 2.5, 3.0),
    ("cosh", One(v::cosh), 1.5, 2.5),
    ("tanh", One(v::tanh), 2.5, 3.0),
    ("asinh", One(v::asinh), 3.0, 3.5),
    ("acosh", One(v::acosh), 3.0, 3.5),
    ("atanh", One(v::atanh), 3.0, 3.5),
    ("cbrt", One(v::cbrt), 1.0, 1.5),
    ("inv_logit", One(v::inv_logit), 2.0, 3.0),
    ("logit", One(v::logit), 3.0, 3.5),
    ("log1p_exp", One(v::log1p_exp), 2.0, 3.0),
    ("log1m_exp", One(v::log1m_exp), 2.0, 3.0),
    ("log_inv_logit", One(v::log_inv_logit), 2.0, 3.0),
    ("log1m_inv_logit", One(v::log1m_inv_logit), 2.0, 3.0),
    ("erf", One(v::erf), 1.5, 2.5),
    ("erfc", One(v::erfc), 4.0, 5.0),
    ("phi", One(v::phi), 4.0, 5.0),
    ("log_phi", One(v::log_phi), 5.0, 6.0),
    ("inv_phi", One(v::inv_phi), 6.0, 8.0),
    ("lgamma", One(v::lgamma), 5.0, 7.0),
    ("digamma", One(v::digamma), 4.0, 6.0),
    ("trigamma", One(v::trigamma), 4.0, 5.0),
    ("pow", Two(v::pow), 1.5, 2.0),
    ("atan2", Two(v::atan2), 1.5, 2.0),
    ("hypot", Two(v::hypot), 1.5, 2.0),
    ("lbeta", Two(v::lbeta), 0.0, 0.0),
];

/// The arguments, the value, and the difference between the exact value and this value in units in the last place.
struct Point {
    x: f64,
    y: f64,
    value: f64,
    fraction: f64,
}

/// The script `tools/references.py` writes this file.
fn points(name: &str) -> Vec<Point> {
    let text = include_str!("../data/vector_functions.txt");
    let number = |s: &str| f64::from_bits(u64::from_str_radix(s, 16).unwrap());
    let parse = |line: &str| {
        let mut fields: Vec<&str> = line.split(' ').collect();
        let fraction = fields.pop().unwrap().parse::<f64>().unwrap() / 100.0;
        let value = number(fields.pop().unwrap());
        let x = number(fields[1]);
        let y = fields.get(2).map_or(0.0, |s| number(s));
        Point {
            x,
            y,
            value,
            fraction,
        }
    };
    text.lines()
        .filter(|l| l.split(' ').next() == Some(name))
        .map(parse)
        .collect()
}

fn ulp(x: f64) -> f64 {
    let x = x.abs().max(f64::MIN_POSITIVE);
    f64::from_bits(x.to_bits() + 1) - x
}

#[test]
fn references_are_met() {
    let mut failures = Vec::new();
    for &(name, function, bound, scalar_bound) in FUNCTIONS {
        let points = points(name);
        assert!(points.len() >= 100, "{name}: too few reference points");
        let x: Vec<f64> = points.iter().map(|p| p.x).collect();
        let y: Vec<f64> = points.iter().map(|p| p.y).collect();
        for simd in Simd::available() {
            let got = function.apply(simd, &x, &y);
            let error = |i: usize| {
                let p = &points[i];
                if name == "lbeta" {
                    // The bound is absolute, because the terms cancel.
                    let size = 1.0 + p.value.abs();
                    return ((got[i] - p.value) / (1e-14 * size)).abs();
                }
                ((got[i] - p.value) / ulp(p.value) - p.fraction).abs()
            };
            let bound = match (name, simd) {
                ("lbeta", _) => 1.0,
                (_, Simd::Scalar) => scalar_bound,
                _ => bound,
            };
            let errors: Vec<f64> = (0..points.len()).map(error).collect();
            let worst = (0..errors.len())
                .max_by(|&i, &j| errors[i].total_cmp(&errors[j]))
                .unwrap();
            if errors[worst] > bound || errors[worst].is_nan() {
                let (x, y) = (points[worst].x, points[worst].y);
                failures.push(format!(
                    "{name} on {simd}: error {:.2} > {bound} at {x:e}, {y:e}",
                    errors[worst]
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn bits(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const SPECIAL: [f64; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    1e-310,
    -1e-310,
    5e-324,
    -5e-324,
    1e-20,
    -1e-20,
    710.5,
    -746.0,
    1e300,
    -1e300,
    1e17,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

fn arguments() -> (Vec<f64>, Vec<f64>) {
    let mut state = 7;
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for _ in 0..20_000 {
        x.push(f64::from_bits(bits(&mut state)));
        y.push(f64::from_bits(bits(&mut state)));
        let moderate = |b: u64| (b as i64 as f64) * 2f64.powi(-63 + (b % 11) as i32);
        x.push(moderate(bits(&mut state)));
        y.push(moderate(bits(&mut state)));
    }
    for a in SPECIAL {
        for b in SPECIAL {
            x.push(a);
            y.push(b);
        }
    }
    (x, y)
}

#[test]
fn vector_levels_agree_bit_for_bit() {
    let levels: Vec<Simd> = Simd::available()
        .into_iter()
        .filter(|s| *s != Simd::Scalar)
        .collect();
    let (x, y) = arguments();
    for &(name, function, ..) in FUNCTIONS {
        let all: Vec<Vec<f64>> = levels
            .iter()
            .map(|&simd| function.apply(simd, &x, &y))
            .collect();
        for pair in all.windows(2) {
            for i in 0..x.len() {
                let (a, b) = (pair[0][i], pair[1][i]);
                let same = a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                assert!(same, "{name}({:e}, {:e}): {a:e} and {b:e}", x[i], y[i]);
            }
        }
    }
}

#[test]
fn scalar_level_agrees_on_what_is_finite() {
    let (x, y) = arguments();
    for &(name, function, ..) in FUNCTIONS {
        let (scalar, best) = (
            function.apply(Simd::Scalar, &x, &y),
            function.apply(Simd::detect(), &x, &y),
        );
        for i in 0..x.len() {
            let (a, b) = (scalar[i], best[i]);
            if name == "lbeta" && (x[i] < 0.0 || y[i] < 0.0) {
                continue;
            }
            // The terms of lbeta cancel, so its bound is absolute near zero.
            let size = if name == "lbeta" {
                1e-13 * (1.0 + b.abs())
            } else {
                16.0 * ulp(b)
            };
            let near = (a - b).abs() <= size || a.is_infinite() && b.abs() > 1.79e308;
            assert!(
                a == b || a.is_nan() && b.is_nan() || near,
                "{name}({:e}, {:e}): {a:e} and {b:e}",
                x[i],
                y[i]
            );
        }
    }
}

enum Reference {
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
}

#[test]
fn special_values_follow_the_c_library() {
    use libm::*;
    let references: &[(&str, Reference)] = &[
        ("exp", Reference::One(exp)),
        ("exp2", Reference::One(exp2)),
        ("expm1", Reference::One(expm1)),
        ("log", Reference::One(log)),
        ("log2", Reference::One(log2)),
        ("log10", Reference::One(log10)),
        ("log1p", Reference::One(log1p)),
        ("sin", Reference::One(sin)),
        ("cos", Reference::One(cos)),
        ("tan", Reference::One(tan)),
        ("asin", Reference::One(asin)),
        ("acos", Reference::One(acos)),
        ("atan", Reference::One(atan)),
        ("sinh", Reference::One(sinh)),
        ("cosh", Reference::One(cosh)),
        ("tanh", Reference::One(tanh)),
        ("asinh", Reference::One(asinh)),
        ("acosh", Reference::One(acosh)),
        ("atanh", Reference::One(atanh)),
        ("cbrt", Reference::One(cbrt)),
        ("erf", Reference::One(erf)),
        ("erfc", Reference::One(erfc)),
        ("lgamma", Reference::One(lgamma)),
        ("pow", Reference::Two(pow)),
        ("atan2", Reference::Two(atan2)),
        ("hypot", Reference::Two(hypot)),
    ];
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for a in SPECIAL {
        for b in SPECIAL {
            x.push(a);
            y.push(b);
        }
    }
    for (name, reference) in references {
        let &(_, function, bound, _) = FUNCTIONS.iter().find(|f| f.0 == *name).unwrap();
        for simd in Simd::available() {
            let got = function.apply(simd, &x, &y);
            for i in 0..x.len() {
                let want = match reference {
                    Reference::One(f) => f(x[i]),
                    Reference::Two(f) => f(x[i], y[i]),
                };
                let same = got[i].to_bits() == want.to_bits() || got[i].is_nan() && want.is_nan();
                let near = got[i].is_sign_negative() == want.is_sign_negative()
                    && (got[i] - want).abs() <= (bound + 2.0) * ulp(want);
                assert!(
                    same || near,
                    "{name}({:e}, {:e}) on {simd}: {:e}, not {want:e}",
                    x[i],
                    y[i],
                    got[i]
                );
            }
        }
    }
}

/// The cheaper exponential agrees with the other exponential, and its levels agree with each other.
#[test]
fn exponentials_of_negative_numbers() {
    let x: Vec<f64> = (0..5000).map(|k| -708.0 * f64::from(k) / 4999.0).collect();
    let mut first: Option<Vec<f64>> = None;
    for simd in Simd::available() {
        let got = One(v::exp_of_negative).apply(simd, &x, &x);
        for (x, got) in x.iter().zip(&got) {
            let want = x.exp();
            assert!(
                (got - want).abs() <= 2.0 * ulp(want),
                "{x:e} on {simd}: {got:e}"
            );
        }
        if simd != Simd::Scalar {
            assert_eq!(first.get_or_insert_with(|| got.clone()), &got, "{simd}");
        }
        let ends = [-708.5, f64::NEG_INFINITY, -0.0, f64::NAN];
        let got = One(v::exp_of_negative).apply(simd, &ends, &ends);
        assert_eq!(got[..3], [0.0, 0.0, 1.0], "{simd}");
        assert!(got[3].is_nan(), "{simd}");
    }
}

#[test]
fn special_values_of_the_other_functions() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases: &[(&str, f64, f64)] = &[
        ("log1m", 1.0, -inf),
        ("log1m", 2.0, nan),
        ("log1m", -inf, inf),
        ("inv_logit", inf, 1.0),
        ("inv_logit", -inf, 0.0),
        ("inv_logit", 0.0, 0.5),
        ("inv_logit", nan, nan),
        ("logit", 0.0, -inf),
        ("logit", 1.0, inf),
        ("logit", 0.5, 0.0),
        ("logit", 1.5, nan),
        ("logit", -0.5, nan),
        ("logit", nan, nan),
        ("log1p_exp", inf, inf),
        ("log1p_exp", -inf, 0.0),
        ("log1p_exp", nan, nan),
        ("log1p_exp", -800.0, 0.0),
        ("log1p_exp", 800.0, 800.0),
        ("log1m_exp", 0.0, -inf),
        ("log1m_exp", -inf, 0.0),
        ("log1m_exp", 1.0, nan),
        ("log1m_exp", nan, nan),
        ("log_inv_logit", inf, 0.0),
        ("log_inv_logit", -inf, -inf),
        ("log_inv_logit", nan, nan),
        ("log1m_inv_logit", -inf, 0.0),
        ("log1m_inv_logit", inf, -inf),
        ("log1m_inv_logit", nan, nan),
        ("phi", inf, 1.0),
        ("phi", -inf, 0.0),
        ("phi", 0.0, 0.5),
        ("phi", -1e300, 0.0),
        ("phi", nan, nan),
        ("log_phi", inf, 0.0),
        ("log_phi", -inf, -inf),
        ("log_phi", -1e300, -inf),
        ("log_phi", 1e300, 0.0),
        ("log_phi", nan, nan),
        ("inv_phi", 0.0, -inf),
        ("inv_phi", 1.0, inf),
        ("inv_phi", 0.5, 0.0),
        ("inv_phi", -0.1, nan),
        ("inv_phi", 1.1, nan),
        ("inv_phi", nan, nan),
        ("digamma", inf, inf),
        ("digamma", 0.0, nan),
        ("digamma", -3.0, nan),
        ("digamma", -0.5, 0.036_489_973_978_576_52),
        ("digamma", -10.3, 4.662_403_493_582_09),
        ("digamma", nan, nan),
        ("trigamma", inf, 0.0),
        ("trigamma", 0.0, inf),
        ("trigamma", -3.0, inf),
        ("trigamma", -0.5, 8.934_802_200_544_679),
        ("trigamma", -10.3, 14.986_887_065_722_6),
        ("trigamma", nan, nan),
    ];
    for &(name, x, want) in cases {
        let &(_, function, ..) = FUNCTIONS.iter().find(|f| f.0 == name).unwrap();
        for simd in Simd::available() {
            let got = function.apply(simd, &[x], &[x])[0];
            let near = (got - want).abs() <= 1e-13 * want.abs();
            assert!(
                got == want || got.is_nan() && want.is_nan() || near,
                "{name}({x:e}) on {simd}: {got:e}"
            );
        }
    }
    for (a, b, want) in [
        (0.0, 2.0, inf),
        (inf, 2.0, -inf),
        (nan, 2.0, nan),
        (2.0, nan, nan),
        (20.0, nan, nan),
        (nan, 20.0, nan),
        (1.0, 1.0, 0.0),
        (inf, inf, -inf),
    ] {
        for simd in Simd::available() {
            let got = Two(v::lbeta).apply(simd, &[a], &[b])[0];
            assert!(
                (got - want).abs() < 1e-15 || got == want || got.is_nan() && want.is_nan(),
                "lbeta({a}, {b}) on {simd}: {got}"
            );
        }
    }
}
