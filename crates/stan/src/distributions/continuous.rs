//! Symmetric and other location-scale distributions on the real line, and the uniform one.

use std::f64::consts::{LN_2, PI};

use crate::distributions::family::{
    Domain::{Finite, NotNan, Positive, PositiveFinite},
    Family, Tails,
};
use crate::functions::elementary::log1p_exp;
use crate::functions::special::{HALF_LOG_TWO_PI, lgamma, ln_inc_beta, log_phi};
use crate::value::error::FnError;

const Y: u32 = 1;
const A: u32 = 2;
const B: u32 = 4;
const C: u32 = 8;

const LOCATION: &str = "the location parameter";
const SCALE: &str = "the scale parameter";

pub(super) static FAMILIES: &[Family] = &[
    Family::new(
        "normal",
        NotNan,
        &[(LOCATION, Finite), (SCALE, Positive)],
        |k, x| {
            let z = (x[0] - x[1]) / x[2];
            k.constant(-HALF_LOG_TWO_PI) + k.term(B, -x[2].ln()) + k.term(Y | A | B, -0.5 * z * z)
        },
    )
    .tails(|x| normal_tails((x[0] - x[1]) / x[2]))
    .sample(|r, x| x[0] + x[1] * r.normal()),
    Family::new("std_normal", NotNan, &[], |k, x| {
        k.constant(-HALF_LOG_TWO_PI) + k.term(Y, -0.5 * x[0] * x[0])
    })
    .tails(|x| normal_tails(x[0]))
    .sample(|r, _| r.normal()),
    Family::new(
        "cauchy",
        NotNan,
        &[(LOCATION, Finite), (SCALE, PositiveFinite)],
        |k, x| {
            let z = (x[0] - x[1]) / x[2];
            k.constant(-PI.ln()) + k.term(B, -x[2].ln()) + k.term(Y | A | B, -(z * z).ln_1p())
        },
    )
    .tails(|x| {
        let z = (x[0] - x[1]) / x[2];
        // The angle seen from the far end keeps the digits of both tails.
        Tails {
            lower: (1f64.atan2(-z) / PI).ln(),
            upper: (1f64.atan2(z) / PI).ln(),
        }
    })
    .sample(|r, x| x[0] + x[1] * (PI * (r.uniform() - 0.5)).tan()),
    Family::new(
        "student_t",
        NotNan,
        &[
            ("the degrees of freedom parameter", PositiveFinite),
            (LOCATION, Finite),
            (SCALE, PositiveFinite),
        ],
        |k, x| {
            let (nu, z) = (x[1], (x[0] - x[2]) / x[3]);
            k.constant(-0.5 * PI.ln())
                + k.term(
                    A,
                    lgamma(0.5 * (nu + 1.0)) - lgamma(0.5 * nu) - 0.5 * nu.ln(),
                )
                + k.term(C, -x[3].ln())
                + k.term(Y | A | B | C, -0.5 * (nu + 1.0) * (z * z / nu).ln_1p())
        },
    )
    .tails(|x| student_tails(x[1], (x[0] - x[2]) / x[3]))
    .sample(|r, x| {
        let chi = 2.0 * r.gamma(0.5 * x[0]);
        x[1] + x[2] * r.normal() * (x[0] / chi).sqrt()
    }),
    Family::new(
        "double_exponential",
        Finite,
        &[(LOCATION, Finite), (SCALE, PositiveFinite)],
        |k, x| {
            k.constant(-LN_2)
                + k.term(B, -x[2].ln())
                + k.term(Y | A | B, -(x[0] - x[1]).abs() / x[2])
        },
    )
    .tails(|x| {
        let z = (x[0] - x[1]) / x[2];
        if z < 0.0 {
            Tails::from_log_lower(z - LN_2)
        } else {
            Tails::from_log_upper(-z - LN_2)
        }
    })
    .sample(|r, x| {
        let u = r.uniform() - 0.5;
        x[0] - x[1] * u.signum() * (-2.0 * u.abs()).ln_1p()
    }),
    Family::new(
        "logistic",
        Finite,
        &[(LOCATION, Finite), (SCALE, PositiveFinite)],
        |k, x| {
            let z = (x[0] - x[1]) / x[2];
            k.term(B, -x[2].ln()) + k.term(Y | A | B, -z - 2.0 * log1p_exp(-z))
        },
    )
    .tails(|x| {
        let z = (x[0] - x[1]) / x[2];
        Tails {
            lower: -log1p_exp(-z),
            upper: -log1p_exp(z),
        }
    })
    .sample(|r, x| {
        let u = r.uniform();
        x[0] + x[1] * (u.ln() - (-u).ln_1p())
    }),
    Family::new(
        "gumbel",
        NotNan,
        &[(LOCATION, Finite), (SCALE, Positive)],
        |k, x| {
            let z = (x[0] - x[1]) / x[2];
            k.term(B, -x[2].ln()) + k.term(Y | A | B, -z - (-z).exp())
        },
    )
    .tails(|x| Tails::from_log_lower(-(-(x[0] - x[1]) / x[2]).exp()))
    .sample(|r, x| x[0] - x[1] * r.exponential().ln()),
    Family::new(
        "uniform",
        NotNan,
        &[("the lower bound", Finite), ("the upper bound", Finite)],
        |k, x| {
            if x[0] < x[1] || x[0] > x[2] {
                return f64::NEG_INFINITY;
            }
            k.term(A | B, -(x[2] - x[1]).ln())
        },
    )
    .joint(|function, p| {
        if p[1] > p[0] {
            return Ok(());
        }
        Err(FnError::domain(format!(
            "{function}: the upper bound is {}, but must be greater than {}",
            p[1], p[0]
        )))
    })
    .tails(|x| {
        if x[0] <= x[1] {
            return Tails::NOTHING;
        }
        if x[0] >= x[2] {
            return Tails::ALL;
        }
        Tails {
            lower: ((x[0] - x[1]) / (x[2] - x[1])).ln(),
            upper: ((x[2] - x[0]) / (x[2] - x[1])).ln(),
        }
    })
    .sample(|r, x| x[0] + (x[1] - x[0]) * r.uniform()),
];

/// The tails of a standard normal number.
pub(super) fn normal_tails(z: f64) -> Tails {
    Tails {
        lower: log_phi(z),
        upper: log_phi(-z),
    }
}

fn student_tails(nu: f64, t: f64) -> Tails {
    let x = nu / (nu + t * t);
    let beyond = ln_inc_beta(0.5 * nu, 0.5, x).0 - LN_2;
    if t < 0.0 {
        Tails::from_log_lower(beyond)
    } else {
        Tails::from_log_upper(beyond)
    }
}
