//! Distributions of positive numbers.

use std::f64::consts::LN_2;

use jensen_graph::ElemOp;
use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::special::{lgamma, log_wiener, log1p_exp};

use super::formula::{ABOVE_ZERO, DensityBuilder, TailTerms, above, above_smoothly, within};
use super::real_line::normal_tails;
use super::univariate::{LOCATION, Longer, SCALE, Tails, Univariate, VARIATE};
use super::wiener;
use crate::functions::elementary::lmultiply;
use crate::functions::special::ln_gamma_pq;
use crate::symbolic::domain::Domain::{
    Finite, NonNegative, NonNegativeFinite, NotNan, Positive, PositiveFinite, Unit,
};
use crate::symbolic::domain::guard;
use crate::symbolic::known;
use crate::symbolic::tape::E;
use crate::value::error::FnResult;

const Y: u32 = 1;
const A: u32 = 2;
const B: u32 = 4;
const C: u32 = 8;
const D: u32 = 16;

const SHAPE: &str = "the shape parameter";
const INVERSE_SCALE: &str = "the inverse scale parameter";
const FREEDOM: &str = "the degrees of freedom parameter";

const NONE: f64 = f64::NEG_INFINITY;

/// The univariate distributions that this file defines.
pub static TABLE: &[Univariate] = &[
    Univariate::new(
        "lognormal",
        NonNegative,
        &[(LOCATION, Finite), (SCALE, PositiveFinite)],
        |k, x| {
            if x[0] == 0.0 {
                return NONE;
            }
            let log_y = x[0].ln();
            let z = (log_y - x[1]) / x[2];
            // Stan keeps the constant of this density if any argument varies.
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
    .sample(|r, x| (x[0] + x[1] * r.normal()).exp())
    .lowered(Y, lower_lognormal)
    .lowered_tails(B, lower_lognormal_tails),
    Univariate::new(
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
    .sample(|r, x| 2.0 * r.gamma(0.5 * x[0]))
    .lowered(Y | A, lower_chi_square)
    .lowered_tails(0, |d| {
        let [y, nu] = d.get();
        Ok(gamma_tails(0.5 * nu, y, |y| 0.5 * y, false))
    }),
    Univariate::new(
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
    .sample(|r, x| 0.5 / r.gamma(0.5 * x[0]))
    .lowered(A, lower_inv_chi_square)
    .lowered_tails(0, |d| {
        let [y, nu] = d.get();
        Ok(gamma_tails(0.5 * nu, y, |y| 0.5 * y.recip(), true))
    }),
    Univariate::new(
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
    .sample(|r, x| 0.5 * x[0] * x[1] * x[1] / r.gamma(0.5 * x[0]))
    .lowered(A, lower_scaled_inv_chi_square)
    .lowered_tails(B, |d| {
        let [y, nu, s] = d.get();
        let half = 0.5 * nu;
        Ok(gamma_tails(
            half,
            y,
            |y| half * s.square() * y.recip(),
            true,
        ))
    }),
    Univariate::new(
        "exponential",
        NonNegative,
        &[(INVERSE_SCALE, PositiveFinite)],
        |k, x| k.term(A, x[1].ln()) + k.term(Y | A, -x[1] * x[0]),
    )
    .tails(|x| Tails::from_log_upper(-x[1] * x[0].max(0.0)))
    .sample(|r, x| r.exponential() / x[0])
    .lowered(Y, lower_exponential)
    .lowered_tails(A, lower_exponential_tails),
    Univariate::new(
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
    .sample(|r, x| r.gamma(x[0]) / x[1])
    .lowered(A, lower_gamma)
    .lowered_tails(0, |d| {
        let [y, alpha, beta] = d.get();
        Ok(gamma_tails(alpha, y, |y| beta * y, false))
    }),
    Univariate::new(
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
    .sample(|r, x| x[1] / r.gamma(x[0]))
    .lowered(A, lower_inv_gamma)
    .lowered_tails(0, |d| {
        let [y, alpha, beta] = d.get();
        Ok(gamma_tails(alpha, y, |y| beta * y.recip(), true))
    }),
    Univariate::new(
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
    .sample(|r, x| x[1] * r.exponential().powf(1.0 / x[0]))
    .lowered(0, lower_weibull)
    .lowered_tails(A, lower_weibull_tails),
    Univariate::new(
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
    .sample(|r, x| x[1] * r.exponential().powf(-1.0 / x[0]))
    .lowered(0, lower_frechet)
    .lowered_tails(A, lower_frechet_tails),
    Univariate::new("rayleigh", Positive, &[(SCALE, Positive)], |k, x| {
        let z = x[0] / x[1];
        k.term(A, -2.0 * x[1].ln()) + k.term(Y, x[0].ln()) + k.term(Y | A, -0.5 * z * z)
    })
    .tails(|x| {
        let z = x[0].max(0.0) / x[1];
        Tails::from_log_upper(-0.5 * z * z)
    })
    .sample(|r, x| x[0] * (2.0 * r.exponential()).sqrt())
    .lowered(0, lower_rayleigh)
    .lowered_tails(A, lower_rayleigh_tails),
    Univariate::new(
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
    .sample(|r, x| x[0] * (r.exponential() / x[1]).exp())
    .lowered(0, lower_pareto)
    .lowered_tails(B, lower_pareto_tails),
    Univariate::new(
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
    .sample(|r, x| x[0] + x[1] * (r.exponential() / x[2]).exp_m1())
    .lowered(0, lower_pareto_type_2)
    .lowered_tails(B | C, lower_pareto_type_2_tails),
    Univariate::new(
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
    })
    .lowered(Y, lower_loglogistic)
    .lowered_tails(0, |d| {
        let [y, alpha, beta] = d.get();
        Ok(within(y, ABOVE_ZERO, |y| {
            let z = beta * (y.log() - alpha.log());
            (-(-z).log1p_exp(), -z.log1p_exp())
        }))
    }),
    Univariate::new(
        "wiener",
        Positive,
        &[
            ("the boundary separation", PositiveFinite),
            ("the nondecision time", NonNegativeFinite),
            ("the relative starting point", Unit),
            ("the drift rate", Finite),
        ],
        |k, x| {
            let [y, alpha, tau, beta, delta] = [x[0], x[1], x[2], x[3], x[4]];
            let (time, from) = (y - tau, 1.0 - beta);
            if time <= 0.0 {
                return NONE;
            }
            let standard = log_wiener(time / (alpha * alpha), from);
            k.term(
                Y | A | B | C | D,
                delta * (alpha * from - 0.5 * delta * time) - 2.0 * alpha.ln() + standard,
            )
        },
    )
    .lowered(Y | A | B | C, lower_wiener)
    .with_longer(Longer {
        log_density: wiener::varying,
        lowered: wiener::lower_varying,
    }),
];

fn inverse_gamma_tails(shape: f64, scale: f64, y: f64) -> Tails {
    if y <= 0.0 {
        return Tails::NOTHING;
    }
    Tails::new(ln_gamma_pq(shape, scale / y)).swap()
}

/// Returns the tails of the gamma distribution at `scaled(y)`. The function `scaled` is called only with positive
/// outcomes. If `reciprocal` is true, the scaled number decreases as `y` increases, so the two tails are exchanged.
fn gamma_tails<'g>(
    shape: E<'g>,
    y: E<'g>,
    scaled: impl FnOnce(E<'g>) -> E<'g>,
    reciprocal: bool,
) -> (E<'g>, E<'g>) {
    within(y, ABOVE_ZERO, |y| {
        let x = scaled(y);
        let tails = [ElemOp::LogGammaP, ElemOp::LogGammaQ].map(|op| shape.op2(op, x));
        let [lower, upper] = tails;
        if reciprocal {
            (upper, lower)
        } else {
            (lower, upper)
        }
    })
}

/// Sets the log density to −∞ for outcomes that are not positive. For these outcomes, the formula receives a finite
/// number instead.
fn support<'g>(d: &mut DensityBuilder<'g>, y: E<'g>) {
    if !known::range(y).positive() {
        let bad = y.le(d.num(0.0));
        d.outside(bad);
    }
}

fn lower_lognormal(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, sigma] = d.get();
    let log_y = y.log();
    d.term(
        &[0, 1, 2],
        -0.5 * ((log_y - mu).square() * sigma.recip().square()),
    );
    d.term(&[0], -log_y);
    d.term(&[2], -sigma.log());
    d.term(&[0, 1, 2], d.num(-HALF_LOG_TWO_PI));
    Ok(())
}

fn lower_chi_square(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, nu] = d.get();
    let half = 0.5 * nu;
    d.term(&[1], -(half * LN_2 + half.lgamma()));
    d.term(&[0, 1], (half - 1.0) * y.log());
    d.term(&[0], -0.5 * y);
    Ok(())
}

fn lower_inv_chi_square(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, nu] = d.get();
    support(d, y);
    let half = 0.5 * nu;
    d.term(&[1], -(half * LN_2 + half.lgamma()));
    d.term(&[0, 1], -((half + 1.0) * y.log()));
    d.term(&[0], -0.5 * y.recip());
    Ok(())
}

fn lower_scaled_inv_chi_square(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, nu, s] = d.get();
    support(d, y);
    let half = 0.5 * nu;
    d.term(&[1], half * half.log() - half.lgamma());
    d.term(&[1, 2], nu * s.log());
    d.term(&[0, 1], -((half + 1.0) * y.log()));
    d.term(&[0, 1, 2], -(half * s.square() * y.recip()));
    Ok(())
}

fn lower_exponential(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, beta] = d.get();
    d.term(&[0, 1], -(beta * y));
    d.term(&[1], beta.log());
    Ok(())
}

fn lower_gamma(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, alpha, beta] = d.get();
    d.term(&[1], -alpha.lgamma());
    d.term(&[1, 2], alpha * beta.log());
    d.term(&[0, 1], (alpha - 1.0) * y.log());
    d.term(&[0, 2], -(beta * y));
    Ok(())
}

fn lower_inv_gamma(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, alpha, beta] = d.get();
    support(d, y);
    d.term(&[1], -alpha.lgamma());
    d.term(&[1, 2], alpha * beta.log());
    d.term(&[0, 1], -((alpha + 1.0) * y.log()));
    d.term(&[0, 2], -(beta * y.recip()));
    Ok(())
}

fn lower_weibull(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    d.guard(0, VARIATE, NonNegative)?;
    let [y, alpha, sigma] = d.get();
    let (log_y, log_sigma) = (y.log(), sigma.log());
    d.term(&[1], alpha.log());
    d.term(&[0, 1], (alpha - 1.0) * log_y);
    d.term(&[1, 2], -(alpha * log_sigma));
    d.term(&[0, 1, 2], -(alpha * (log_y - log_sigma)).exp());
    Ok(())
}

fn lower_frechet(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, alpha, sigma] = d.get();
    let (log_y, log_sigma) = (y.log(), sigma.log());
    d.term(&[1], alpha.log());
    d.term(&[0, 1], -((alpha + 1.0) * log_y));
    d.term(&[1, 2], alpha * log_sigma);
    d.term(&[0, 1, 2], -(alpha * (log_sigma - log_y)).exp());
    Ok(())
}

fn lower_rayleigh(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, sigma] = d.get();
    d.term(&[0, 1], -0.5 * (y.square() * sigma.recip().square()));
    d.term(&[0], y.log());
    d.term(&[1], -2.0 * sigma.log());
    Ok(())
}

fn lower_pareto(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, y_min, alpha] = d.get();
    let below = y.lt(y_min);
    d.outside(below);
    d.term(&[2], alpha.log());
    d.term(&[1, 2], alpha * y_min.log());
    d.term(&[0, 2], -((alpha + 1.0) * y.log()));
    Ok(())
}

fn lower_pareto_type_2(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, lambda, alpha] = d.get();
    guard(
        d.name,
        y - mu,
        "the random variable minus the location parameter",
        NonNegative,
    )?;
    d.term(&[3], alpha.log());
    d.term(&[2], -lambda.log());
    d.term(
        &[0, 1, 2, 3],
        -((alpha + 1.0) * ((y - mu) * lambda.recip()).log1p()),
    );
    Ok(())
}

fn lower_loglogistic(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, alpha, beta] = d.get();
    let (log_y, log_alpha) = (y.log(), alpha.log());
    d.term(&[1, 2], beta.log() - beta * log_alpha);
    d.term(&[0, 2], (beta - 1.0) * log_y);
    d.term(&[0, 1, 2], -2.0 * (beta * (log_y - log_alpha)).log1p_exp());
    Ok(())
}

/// The outcome is the time at which a process with drift leaves an interval through the upper boundary. The density is
/// computed from the density for a process without drift that leaves the interval (0, 1) through the lower boundary.
fn lower_wiener(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, alpha, tau, beta, delta] = d.get();
    let (time, from) = (y - tau, 1.0 - beta);
    guard(
        d.name,
        time,
        "the random variable minus the nondecision time",
        Positive,
    )?;
    let standard = (time / alpha.square()).op2(ElemOp::LogWiener, from);
    let drift = delta * (alpha * from - 0.5 * (delta * time));
    d.term(&[0, 1, 2, 3, 4], drift - 2.0 * alpha.log() + standard);
    Ok(())
}

fn lower_lognormal_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    d.guard(0, VARIATE, NonNegative)?;
    let [y, mu, sigma] = d.get();
    Ok(above(y, y.num(0.0), |y| {
        let z = (y.log() - mu) * sigma.recip();
        (z.log_normal_cdf(), (-z).log_normal_cdf())
    }))
}

fn lower_exponential_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    d.guard(0, VARIATE, NonNegative)?;
    let [y, beta] = d.get();
    Ok(above_smoothly(y, y.num(0.0), |y| -(beta * y)))
}

fn lower_weibull_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    d.guard(0, VARIATE, NonNegative)?;
    let [y, alpha, sigma] = d.get();
    Ok(above(y, y.num(0.0), |y| {
        let upper = -(alpha * (y.log() - sigma.log())).exp();
        (upper.log1m_exp(), upper)
    }))
}

fn lower_frechet_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let [y, alpha, sigma] = d.get();
    let lower = -(alpha * (sigma.log() - y.log())).exp();
    Ok((lower, lower.log1m_exp()))
}

fn lower_rayleigh_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    d.guard(0, VARIATE, NonNegative)?;
    let [y, sigma] = d.get();
    Ok(above(y, y.num(0.0), |y| {
        let upper = -0.5 * (y * sigma.recip()).square();
        (upper.log1m_exp(), upper)
    }))
}

fn lower_pareto_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    d.guard(0, VARIATE, NonNegative)?;
    let [y, y_min, alpha] = d.get();
    Ok(above_smoothly(y, y_min, |y| {
        alpha * (y_min.log() - y.log())
    }))
}

fn lower_pareto_type_2_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let [y, mu, lambda, alpha] = d.get();
    Ok(above_smoothly(y, mu, |y| {
        -(alpha * ((y - mu) * lambda.recip()).log1p())
    }))
}
