//! Distributions of positive numbers and of numbers between 0 and 1.

use std::f64::consts::LN_2;

use crate::distributions::continuous::normal_tails;
use crate::distributions::family::{
    Domain::{Finite, NonNegative, NotNan, Positive, PositiveFinite, Unit},
    Family, Tails,
};
use crate::functions::elementary::{lmultiply, log1p_exp};
use crate::functions::special::{HALF_LOG_TWO_PI, lbeta, lgamma, ln_gamma_pq, ln_inc_beta};
use crate::value::error::FnError;

const Y: u32 = 1;
const A: u32 = 2;
const B: u32 = 4;
const C: u32 = 8;

const SHAPE: &str = "the shape parameter";
const SCALE: &str = "the scale parameter";
const INVERSE_SCALE: &str = "the inverse scale parameter";
const LOCATION: &str = "the location parameter";
const FREEDOM: &str = "the degrees of freedom parameter";

const NONE: f64 = f64::NEG_INFINITY;

pub(super) static FAMILIES: &[Family] = &[
    Family::new(
        "lognormal",
        NonNegative,
        &[(LOCATION, Finite), (SCALE, PositiveFinite)],
        |k, x| {
            if x[0] == 0.0 {
                return NONE;
            }
            let log_y = x[0].ln();
            let z = (log_y - x[1]) / x[2];
            // Stan keeps the constant of this density whenever any argument varies.
            k.term(Y | A | B, -HALF_LOG_TWO_PI - 0.5 * z * z)
                + k.term(B, -x[2].ln())
                + k.term(Y, -log_y)
        },
    )
    .tails(|x| {
        if x[0] <= 0.0 {
            return Tails::NOTHING;
        }
        normal_tails((x[0].ln() - x[1]) / x[2])
    })
    .sample(|r, x| (x[0] + x[1] * r.normal()).exp()),
    Family::new(
        "chi_square",
        NonNegative,
        &[(FREEDOM, PositiveFinite)],
        |k, x| {
            let half = 0.5 * x[1];
            k.term(A, -half * LN_2 - lgamma(half))
                + k.term(Y | A, lmultiply(half - 1.0, x[0]))
                + k.term(Y, -0.5 * x[0])
        },
    )
    .tails(|x| Tails::new(ln_gamma_pq(0.5 * x[1], (0.5 * x[0]).max(0.0))))
    .sample(|r, x| 2.0 * r.gamma(0.5 * x[0])),
    Family::new(
        "inv_chi_square",
        NotNan,
        &[(FREEDOM, PositiveFinite)],
        |k, x| {
            if x[0] <= 0.0 {
                return NONE;
            }
            let half = 0.5 * x[1];
            k.term(A, -half * LN_2 - lgamma(half))
                + k.term(Y | A, -(half + 1.0) * x[0].ln())
                + k.term(Y, -0.5 / x[0])
        },
    )
    .tails(|x| inverse_gamma_tails(0.5 * x[1], 0.5, x[0]))
    .sample(|r, x| 0.5 / r.gamma(0.5 * x[0])),
    Family::new(
        "scaled_inv_chi_square",
        NotNan,
        &[(FREEDOM, PositiveFinite), (SCALE, PositiveFinite)],
        |k, x| {
            if x[0] <= 0.0 {
                return NONE;
            }
            let half = 0.5 * x[1];
            k.term(A, half * half.ln() - lgamma(half))
                + k.term(A | B, x[1] * x[2].ln())
                + k.term(Y | A, -(half + 1.0) * x[0].ln())
                + k.term(Y | A | B, -half * x[2] * x[2] / x[0])
        },
    )
    .tails(|x| inverse_gamma_tails(0.5 * x[1], 0.5 * x[1] * x[2] * x[2], x[0]))
    .sample(|r, x| 0.5 * x[0] * x[1] * x[1] / r.gamma(0.5 * x[0])),
    Family::new(
        "exponential",
        NonNegative,
        &[(INVERSE_SCALE, PositiveFinite)],
        |k, x| k.term(A, x[1].ln()) + k.term(Y | A, -x[1] * x[0]),
    )
    .tails(|x| Tails::from_log_upper(-x[1] * x[0].max(0.0)))
    .sample(|r, x| r.exponential() / x[0]),
    Family::new(
        "gamma",
        PositiveFinite,
        &[(SHAPE, PositiveFinite), (INVERSE_SCALE, PositiveFinite)],
        |k, x| {
            k.term(A, -lgamma(x[1]))
                + k.term(A | B, x[1] * x[2].ln())
                + k.term(Y | A, (x[1] - 1.0) * x[0].ln())
                + k.term(Y | B, -x[2] * x[0])
        },
    )
    .tails(|x| Tails::new(ln_gamma_pq(x[1], (x[2] * x[0]).max(0.0))))
    .sample(|r, x| r.gamma(x[0]) / x[1]),
    Family::new(
        "inv_gamma",
        NotNan,
        &[(SHAPE, PositiveFinite), (SCALE, PositiveFinite)],
        |k, x| {
            if x[0] <= 0.0 {
                return NONE;
            }
            k.term(A, -lgamma(x[1]))
                + k.term(A | B, x[1] * x[2].ln())
                + k.term(Y | A, -(x[1] + 1.0) * x[0].ln())
                + k.term(Y | B, -x[2] / x[0])
        },
    )
    .tails(|x| inverse_gamma_tails(x[1], x[2], x[0]))
    .sample(|r, x| x[1] / r.gamma(x[0])),
    Family::new(
        "weibull",
        Finite,
        &[(SHAPE, PositiveFinite), (SCALE, PositiveFinite)],
        |k, x| {
            if x[0] < 0.0 {
                return NONE;
            }
            k.term(A, x[1].ln())
                + k.term(Y | A, lmultiply(x[1] - 1.0, x[0]))
                + k.term(A | B, -x[1] * x[2].ln())
                + k.term(Y | A | B, -(x[0] / x[2]).powf(x[1]))
        },
    )
    .tails(|x| Tails::from_log_upper(-(x[0].max(0.0) / x[2]).powf(x[1])))
    .sample(|r, x| x[1] * r.exponential().powf(1.0 / x[0])),
    Family::new(
        "frechet",
        Positive,
        &[(SHAPE, PositiveFinite), (SCALE, PositiveFinite)],
        |k, x| {
            k.term(A, x[1].ln())
                + k.term(Y | A, -(x[1] + 1.0) * x[0].ln())
                + k.term(A | B, x[1] * x[2].ln())
                + k.term(Y | A | B, -(x[0] / x[2]).powf(-x[1]))
        },
    )
    .tails(|x| {
        if x[0] <= 0.0 {
            return Tails::NOTHING;
        }
        Tails::from_log_lower(-(x[0] / x[2]).powf(-x[1]))
    })
    .sample(|r, x| x[1] * r.exponential().powf(-1.0 / x[0])),
    Family::new("rayleigh", Positive, &[(SCALE, Positive)], |k, x| {
        let z = x[0] / x[1];
        k.term(A, -2.0 * x[1].ln()) + k.term(Y, x[0].ln()) + k.term(Y | A, -0.5 * z * z)
    })
    .tails(|x| {
        let z = x[0].max(0.0) / x[1];
        Tails::from_log_upper(-0.5 * z * z)
    })
    .sample(|r, x| x[0] * (2.0 * r.exponential()).sqrt()),
    Family::new(
        "pareto",
        NotNan,
        &[(SCALE, PositiveFinite), (SHAPE, PositiveFinite)],
        |k, x| {
            if x[0] < x[1] {
                return NONE;
            }
            k.term(B, x[2].ln())
                + k.term(A | B, x[2] * x[1].ln())
                + k.term(Y | B, -(x[2] + 1.0) * x[0].ln())
        },
    )
    .tails(|x| {
        if x[0] < x[1] {
            return Tails::NOTHING;
        }
        Tails::from_log_upper(x[2] * (x[1] / x[0]).ln())
    })
    .sample(|r, x| x[0] * (r.exponential() / x[1]).exp()),
    Family::new(
        "pareto_type_2",
        NotNan,
        &[
            (LOCATION, Finite),
            (SCALE, PositiveFinite),
            (SHAPE, PositiveFinite),
        ],
        |k, x| {
            if x[0] < x[1] {
                return NONE;
            }
            k.term(C, x[3].ln())
                + k.term(B, -x[2].ln())
                + k.term(
                    Y | A | B | C,
                    -(x[3] + 1.0) * ((x[0] - x[1]) / x[2]).ln_1p(),
                )
        },
    )
    .tails(|x| {
        if x[0] < x[1] {
            return Tails::NOTHING;
        }
        Tails::from_log_upper(-x[3] * ((x[0] - x[1]) / x[2]).ln_1p())
    })
    .sample(|r, x| x[0] + x[1] * (r.exponential() / x[2]).exp_m1()),
    Family::new(
        "loglogistic",
        NonNegative,
        &[(SCALE, PositiveFinite), (SHAPE, PositiveFinite)],
        |k, x| {
            let (log_y, log_a) = (x[0].ln(), x[1].ln());
            k.term(A | B, x[2].ln() - x[2] * log_a)
                + k.term(
                    Y | A | B,
                    (x[2] - 1.0) * log_y - 2.0 * log1p_exp(x[2] * (log_y - log_a)),
                )
        },
    )
    .tails(|x| {
        if x[0] <= 0.0 {
            return Tails::NOTHING;
        }
        let z = x[2] * (x[0].ln() - x[1].ln());
        Tails {
            lower: -log1p_exp(-z),
            upper: -log1p_exp(z),
        }
    })
    .sample(|r, x| {
        let u = r.uniform();
        x[0] * ((u.ln() - (-u).ln_1p()) / x[1]).exp()
    }),
    Family::new(
        "beta",
        Unit,
        &[
            ("the first shape parameter", PositiveFinite),
            ("the second shape parameter", PositiveFinite),
        ],
        |k, x| {
            let (a, b) = (lgamma(x[1]), lgamma(x[2]));
            // The terms are apart because constants are dropped apart; their sum is −log B, which is more exact.
            let both = a + b - lbeta(x[1], x[2]);
            k.term(A, -a)
                + k.term(B, -b)
                + k.term(A | B, both)
                + k.term(Y | A, (x[1] - 1.0) * x[0].ln())
                + k.term(Y | B, (x[2] - 1.0) * (-x[0]).ln_1p())
        },
    )
    .tails(|x| beta_tails(x[1], x[2], x[0]))
    .sample(|r, x| r.beta(x[0], x[1])),
    Family::new(
        "beta_proportion",
        Unit,
        &[
            (LOCATION, Unit),
            ("the precision parameter", PositiveFinite),
        ],
        |k, x| {
            let (a, b) = (x[1] * x[2], (1.0 - x[1]) * x[2]);
            k.term(B, lgamma(x[2]))
                + k.term(A | B, -lgamma(a) - lgamma(b))
                + k.term(
                    Y | A | B,
                    (a - 1.0) * x[0].ln() + (b - 1.0) * (-x[0]).ln_1p(),
                )
        },
    )
    .joint(|function, p| {
        if p[0] > 0.0 && p[0] < 1.0 {
            return Ok(());
        }
        Err(FnError::domain(format!(
            "{function}: {LOCATION} is {}, but must be greater than 0 and less than 1",
            p[0]
        )))
    })
    .tails(|x| beta_tails(x[1] * x[2], (1.0 - x[1]) * x[2], x[0]))
    .sample(|r, x| r.beta(x[0] * x[1], (1.0 - x[0]) * x[1])),
];

fn inverse_gamma_tails(shape: f64, scale: f64, y: f64) -> Tails {
    if y <= 0.0 {
        return Tails::NOTHING;
    }
    Tails::new(ln_gamma_pq(shape, scale / y)).swap()
}

fn beta_tails(a: f64, b: f64, y: f64) -> Tails {
    Tails::new(ln_inc_beta(a, b, y.clamp(0.0, 1.0)))
}
