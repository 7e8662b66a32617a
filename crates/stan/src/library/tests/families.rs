//! Tests that densities integrate to one, and to their distribution functions.

use super::{last_count, number, parameters};
use crate::distributions::{Suffix, multivariate, univariate};
use crate::functions::{self, Keep};
use crate::program::BuiltinId;
use crate::value::Value;
use jensen_math::special::gauss;

/// Computes the integral panel by panel, after a change of variable that stretches both ends of the interval. The
/// interval may be infinite.
fn integral(f: impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
    let g = |t: f64| match (low.is_finite(), high.is_finite()) {
        (true, true) => {
            // The logistic map resolves both ends, where a density may be singular.
            let p = 1.0 / (1.0 + (-t).exp());
            let q = 1.0 / (1.0 + t.exp());
            let x = if t < 0.0 {
                low + (high - low) * p
            } else {
                high - (high - low) * q
            };
            if x <= low || x >= high {
                0.0
            } else {
                f(x) * (high - low) * p * q
            }
        }
        (true, false) => f(low + t.exp()) * t.exp(),
        (false, true) => f(high - t.exp()) * t.exp(),
        (false, false) => f(t.sinh()) * t.cosh(),
    };
    gauss(
        |t| {
            let y = g(t);
            if y.is_finite() { y } else { 0.0 }
        },
        -38.0,
        38.0,
        6000,
    )
}

fn support(name: &str, p: &[f64]) -> (f64, f64) {
    match name {
        "uniform" => (p[0], p[1]),
        "beta" | "beta_proportion" => (0.0, 1.0),
        "von_mises" => (-std::f64::consts::PI, std::f64::consts::PI),
        "pareto" | "pareto_type_2" => (p[0], f64::INFINITY),
        "lognormal"
        | "chi_square"
        | "inv_chi_square"
        | "scaled_inv_chi_square"
        | "exponential"
        | "gamma"
        | "inv_gamma"
        | "weibull"
        | "frechet"
        | "rayleigh"
        | "loglogistic" => (0.0, f64::INFINITY),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

#[test]
fn continuous_families() {
    let mut count = 0;
    for family in univariate().filter(|f| !f.discrete && f.name != "wiener") {
        count += 1;
        let p = parameters(family);
        let point = |x: f64| [&[x], &p[..]].concat();
        let density = |x: f64| (family.log_density)(Keep::ALL, &point(x)).exp();
        let (low, high) = support(family.name, &p);
        // A cusp must be at the end of a panel.
        let cusp = family.name.ends_with("double_exponential").then(|| p[0]);
        let integral = |f: &dyn Fn(f64) -> f64, low: f64, high: f64| match cusp {
            Some(c) if low < c && c < high => integral(f, low, c) + integral(f, c, high),
            _ => integral(f, low, high),
        };
        let total = integral(&density, low, high);
        assert!((total - 1.0).abs() < 1e-9, "{}: total {total}", family.name);
        let Some(tails) = family.tails else { continue };
        for x in [0.35, 0.6, 0.95, 1.4, 1.9] {
            if x <= low || x >= high {
                continue;
            }
            let found = tails(&point(x));
            let (below, above) = (integral(&density, low, x), integral(&density, x, high));
            assert!(
                (found.lower.exp() - below).abs() < 1e-9,
                "{} at {x}: {} and {below}",
                family.name,
                found.lower.exp()
            );
            assert!(
                (found.upper.exp() - above).abs() < 1e-9,
                "{} at {x}: {} and {above}",
                family.name,
                found.upper.exp()
            );
        }
    }
    assert_eq!(count, 27);
}

#[test]
fn discrete_families() {
    let mut count = 0;
    for family in univariate().filter(|f| f.discrete) {
        count += 1;
        let p = parameters(family);
        let last = last_count(family.name);
        let mass = |n: i32| {
            let x = [&[f64::from(n)], &p[..]].concat();
            (family.log_density)(Keep::ALL, &x).exp()
        };
        let total: f64 = (0..=last).map(mass).sum();
        assert!(
            (total - 1.0).abs() < 1e-11,
            "{}: total {total}",
            family.name
        );
        let Some(tails) = family.tails else { continue };
        for n in [0, 2, 5] {
            if n > last {
                continue;
            }
            let found = tails(&[&[f64::from(n)], &p[..]].concat());
            let below: f64 = (0..=n).map(mass).sum();
            assert!(
                (found.lower.exp() - below).abs() < 1e-11,
                "{} at {n}: {} and {below}",
                family.name,
                found.lower.exp()
            );
            assert!(
                (found.upper.exp() - (1.0 - below)).abs() < 1e-11,
                "{} at {n}",
                family.name
            );
        }
    }
    assert_eq!(count, 14);
}

/// A row without signatures would be unreachable.
#[test]
fn rows_have_signatures() {
    let signatures = |name: &str| {
        let id = BuiltinId::from_name(name).unwrap_or_else(|| panic!("`{name}` has no signature"));
        id.signatures()
    };
    let mut absent = Vec::new();
    for row in univariate() {
        for (name, suffix) in row.functions() {
            if BuiltinId::from_name(&name).is_none() {
                absent.push(name);
                continue;
            }
            let count = row.params.len() + usize::from(suffix != Suffix::Random);
            assert!(
                signatures(&name)
                    .iter()
                    // Forms with variability between trials are refused by name.
                    .all(|s| s.params.len() == count
                        || name == "wiener_lpdf" && s.params.len() > count),
                "{name}"
            );
        }
    }
    // Stan has the distribution function of the first distribution but not its logarithms, and only the logarithms of
    // the second.
    let known = [
        "loglogistic_lcdf",
        "loglogistic_lccdf",
        "beta_proportion_cdf",
    ];
    assert_eq!(absent, known);
    for (name, _) in multivariate().flat_map(|row| row.functions()) {
        assert!(!signatures(name).is_empty(), "{name}");
    }
    for (name, _) in functions::TABLES.iter().copied().flatten() {
        assert!(!signatures(name).is_empty(), "{name}");
    }
}

#[test]
fn vectorisation() {
    let family = univariate().find(|f| f.name == "normal").expect("normal");
    let y = Value::Vector(vec![0.3, 1.2, -0.4]);
    let (mu, sigma) = (Value::Reals(vec![0.1, 0.2, 0.3]), Value::Real(1.7));
    let one = |y: f64, mu: f64| {
        number(
            "normal_lpdf",
            &[Value::Real(y), Value::Real(mu), sigma.clone()],
        )
    };
    let all = number("normal_lpdf", &[y.clone(), mu.clone(), sigma.clone()]);
    assert!((all - one(0.3, 0.1) - one(1.2, 0.2) - one(-0.4, 0.3)).abs() < 1e-14);
    assert_eq!(
        number(
            "normal_lpdf",
            &[Value::Vector(vec![]), mu.clone(), sigma.clone()].map(|v| match v {
                Value::Reals(_) => Value::Reals(vec![]),
                v => v,
            })
        ),
        0.0
    );
    let fail = |args: &[&Value]| {
        family
            .call(Suffix::Density, Keep::ALL, args)
            .expect_err("an error")
            .message
    };
    assert_eq!(
        fail(&[&y, &Value::Reals(vec![0.1]), &sigma]),
        "normal_lpdf: sizes of the arguments do not match: 3 and 1"
    );
    assert_eq!(
        fail(&[&y, &mu, &Value::Vector(vec![1.0, -1.0, 2.0])]),
        "normal_lpdf: the scale parameter[2] is -1, but must be positive"
    );
}

/// The difference between two points must be the same with and without the dropped terms.
#[test]
fn dropped_terms_are_constant() {
    for family in univariate() {
        let p = parameters(family);
        let keep = Keep::arguments((0..=p.len()).map(|i| i == 0));
        let (a, b) = if family.discrete {
            (2.0, 3.0)
        } else {
            (0.9, 0.95)
        };
        let difference = |keep: Keep| {
            let f = |x: f64| (family.log_density)(keep, &[&[x], &p[..]].concat());
            f(a) - f(b)
        };
        if family.discrete {
            // The variate is data, so all arguments are possible.
            let none = Keep::arguments((0..=p.len()).map(|_| false));
            assert!(
                difference(none).abs() < 1e-14 || difference(none).is_nan(),
                "{}",
                family.name
            );
        } else {
            assert!(
                (difference(keep) - difference(Keep::ALL)).abs() < 1e-12,
                "{}",
                family.name
            );
        }
    }
}

/// The integral is over the free element of 2 × 2 correlation matrices.
#[test]
fn lkj_integrates_to_one() {
    use crate::value::Mat;
    for eta in [0.7, 1.0, 2.6] {
        let corr = integral(
            |r| {
                let m = Value::Matrix(Mat::new(2, 2, vec![1.0, r, r, 1.0]));
                number("lkj_corr_lpdf", &[m, Value::Real(eta)]).exp()
            },
            -0.999_999_999,
            0.999_999_999,
        );
        let tolerance = if eta < 1.0 { 1e-5 } else { 1e-8 };
        assert!((corr - 1.0).abs() < tolerance, "eta {eta}: {corr}");
        let factor = integral(
            |r| {
                let l = Mat::new(2, 2, vec![1.0, r, 0.0, (1.0 - r * r).sqrt()]);
                number(
                    "lkj_corr_cholesky_lpdf",
                    &[Value::Matrix(l), Value::Real(eta)],
                )
                .exp()
            },
            -0.999_999_999,
            0.999_999_999,
        );
        assert!((factor - 1.0).abs() < tolerance, "eta {eta}: {factor}");
    }
}

/// In one dimension, a Wishart distribution is a gamma distribution.
#[test]
fn wishart_in_one_dimension() {
    use crate::value::Mat;
    let m = |x: f64| Value::Matrix(Mat::new(1, 1, vec![x]));
    let (w, nu, s) = (1.7, 3.3, 0.6);
    let args = |x: f64, s: f64| [m(x), Value::Real(nu), m(s)];
    let gamma = number(
        "gamma_lpdf",
        &[w, nu / 2.0, 1.0 / (2.0 * s)].map(Value::Real),
    );
    assert!((number("wishart_lpdf", &args(w, s)) - gamma).abs() < 1e-12);
    let inverse = number("inv_gamma_lpdf", &[w, nu / 2.0, s / 2.0].map(Value::Real));
    assert!((number("inv_wishart_lpdf", &args(w, s)) - inverse).abs() < 1e-12);
    // The factor's density has the Jacobian 2 √w.
    let jacobian = (2.0 * w.sqrt()).ln();
    let factor = number("wishart_cholesky_lpdf", &args(w.sqrt(), s.sqrt()));
    assert!((factor - gamma - jacobian).abs() < 1e-12);
    let factor = number("inv_wishart_cholesky_lpdf", &args(w.sqrt(), s.sqrt()));
    assert!((factor - inverse - jacobian).abs() < 1e-12);
}
