"""Computes values and gradients of Stan's functions at the bounds of their domains: `crates/stan/tests/reference/boundaries.tsv`.

    python boundaries.py

The script needs the package stanli (0.24). A line has an expression in the vector x, a point, the resulting log density and its
gradient. The file has only points with finite values and gradients.
"""

import math
from pathlib import Path

import stanli

OUT = Path(__file__).parent.parent.parent / "crates/stan/tests/reference/boundaries.tsv"

# A number that has underflowed to 0, with a slope that has, too.
GONE = "exp(-1e4 * exp(x[1]))"
ALSO = "exp(-1e4 * exp(x[2]))"

AT_ZERO = [
    "sqrt(x[1])", "x[1]^0.5", "pow(x[1], 0.5)", "x[1]^2", "x[1]^3", "x[1]^1.5", "x[1]^0", "x[1]^1", "square(x[1])", "abs(x[1])",
    "hypot(x[1], x[2])", "lmultiply(x[1], x[1])", "squared_distance(x, [0, 0]')", "sqrt(dot_self(x))",
    "sqrt(squared_distance(x, [0, 0]'))", "fdim(x[1], x[2])", "log1p_exp(x[1])", "log_sum_exp(x[1], x[2])", "log_sum_exp(x)",
    "sd(x)", "variance(x)", "sqrt(variance(x))", "prod(x)", "expm1(x[1])", "log1p(x[1])", "inv_logit(x[1])", "tanh(x[1])",
    "erf(x[1])", "Phi(x[1])", "Phi_approx(x[1])", "asinh(x[1])", "tgamma(x[1] + 1)", "beta(x[1] + 1, x[2] + 1)",
    "inv_cloglog(x[1])", "sqrt(abs(x[1]))", "abs(x[1])^1.5", "x[1]^2.5", "(x[1]^2)^0.5", "sqrt(x[1]^2 + x[2]^2)", "exp(x[1])^0",
    "sqrt(x[1] * x[1])", "quad_form([[1.0, 0], [0, 1]], x)", "sqrt(quad_form([[1.0, 0], [0, 1]], x))", "sqrt(fmax(0, x[1]))",
    "gp_exp_quad_cov({x[1], x[2]}, 1.0, 1.0)[1, 2]", "gp_exponential_cov({x[1], x[2]}, 1.0, 1.0)[1, 2]",
    "gp_matern32_cov({x[1], x[2]}, 1.0, 1.0)[1, 2]", "gp_matern52_cov({x[1], x[2]}, 1.0, 1.0)[1, 2]",
    "gp_matern32_cov({x[1], x[2]}, exp(x[1]), exp(x[2]))[1, 1]", f"sqrt({GONE})", f"{GONE}^0.5", f"{GONE}^0.3",
    f"hypot({GONE}, 0)", f"log1m({GONE})", f"cbrt({GONE})", f"{GONE}^exp(x[2])", f"sqrt({GONE} + {ALSO})",
    f"sd([{GONE}, {ALSO}]')", f"{GONE} / (1 + {ALSO})", f"sqrt(dot_self([{GONE}, {ALSO}]'))",
    "weibull_cdf(x[1] | 2, 1)", "bernoulli_lpmf(0 | x[1])", "binomial_lpmf(0 | 3, x[1])", "double_exponential_lpdf(x[1] | x[2], 1)",
    "log_mix(0.5, x[1], x[2])", "log_sum_exp(negative_infinity() + x[1], x[2])", "uniform_lpdf(x[1] | -1, 1)",
    "exponential_lpdf(x[1] | 1)", "lambert_w0(x[1])", "owens_t(x[1], x[2])", "gamma_p(2, x[1])", "gamma_p(1.5 + x[2], x[1])",
    "gamma_p(3, x[1] * x[1])", "gamma_q(2, x[1])", "gamma_q(1, x[1])", "gamma_p(2, 700 + x[1])", "gamma_q(3, 800 + x[1])",
    "exponential_lccdf(x[1] | 1)", "exponential_lccdf(x[1] | 2 + x[2])",
    "rayleigh_lccdf(x[1] | 1)", "pareto_lccdf(1 + x[1] | 1, 2)", "pareto_lccdf(1 + x[1] | 1 + x[2], 2)",
    "pareto_type_2_lccdf(x[1] | 0, 1, 2)", "pareto_type_2_lccdf(x[1] | x[2], 1, 2)", "uniform_lccdf(x[1] | 0, 1)",
    "uniform_lcdf(1 + x[1] | 0, 1)", "gamma_lccdf(x[1] | 2, 1)", "gamma_cdf(x[1] | 2, 1)", "chi_square_lccdf(x[1] | 3)",
    "chi_square_cdf(x[1] | 4)", "inv_gamma_cdf(x[1] | 2, 1)", "lognormal_lccdf(x[1] | 0, 1)", "lognormal_cdf(x[1] | 0, 1)",
    "loglogistic_cdf(x[1] | 1, 2)", "beta_cdf(x[1] | 2, 3)", "beta_cdf(1 + x[1] | 2, 3)", "beta_lccdf(x[1] | 2, 3)",
    "beta_lcdf(1 + x[1] | 2, 3)", "inv_chi_square_cdf(x[1] | 3)", "scaled_inv_chi_square_cdf(x[1] | 3, 1)",
    "beta_lccdf(x[1] | 1, 3)", "beta_lccdf(x[1] | 1.5, 3)", "beta_lccdf(x[1] | 2, 3 + x[2])", "beta_lcdf(1 + x[1] | 2, 1)",
    "beta_cdf(x[1] | 1, 2)", "frechet_cdf(1e-3 + x[1] | 2 + x[2], 1)",
    "frechet_cdf(0.02 + x[1] | 2 + x[2], 1)", "frechet_cdf(0.02 + x[1] | 2, 1 + x[2])", "frechet_lccdf(0.02 + x[1] | 2 + x[2], 1)",
    "gamma_p(2 + x[1], 0)", "gamma_p(2 + x[1], x[2])", "gamma_p(2.5 + x[2], 1e-300 + x[1])", "gamma_p(1 + x[1], 0)",
    "log_diff_exp(x[1], negative_infinity())", "poisson_lccdf(0 | 1 + x[1])", "neg_binomial_2_lccdf(0 | 1 + x[1], 2 + x[2])",
    "neg_binomial_lccdf(0 | 1 + x[1], 2 + x[2])", "neg_binomial_2_lcdf(0 | 1 + x[1], 2 + x[2])",
    "log_sum_exp(x[1], multinomial_lpmf({1, 1, 1} | [inv_logit(x[2]), inv_logit(-x[2]), 0]'))",
    "multinomial_lpmf({1, 1, 0} | [inv_logit(x[2]), inv_logit(-x[2]), 0]')",
    "poisson_cdf(0 | x[1])", "binomial_lcdf(1 | 3, x[1])", "binomial_lcdf(0 | 3, x[1])", "binomial_lccdf(2 | 3, 1 + x[1])",
]

FAR = [
    "inv_logit(x[1])", "log_inv_logit(x[1])", "log1m_inv_logit(x[1])", "log1p_exp(x[1])", "Phi(x[1])", "Phi_approx(x[1])",
    "erfc(x[1])", "tanh(x[1])", "inv_cloglog(x[1])", "log_sum_exp(x[1], x[2])", "bernoulli_logit_lpmf(1 | x[1])", "atan(x[1])",
    "asinh(x[1])", "log_softmax(x)[1]", "softmax(x)[1]", "binomial_logit_lpmf(3 | 3, x[1])", "binomial_logit_lpmf(0 | 3, x[1])",
    "inv(1 + exp(-x[1]))", "log_mix(inv_logit(x[1]), 1, x[2])", "double_exponential_lcdf(x[1] | 0, 1)",
    "log_diff_exp(x[1] + 800, x[1])", "log1m_exp(-exp(x[1]))", "cauchy_lcdf(x[1] | 0, 1)", "expm1(x[1])", "logistic_lcdf(x[1] | 0, 1)",
]


def main():
    rows = []
    points = [(e, (0.0, 0.0)) for e in AT_ZERO] + [(e, (z, 0.3)) for e in FAR for z in (-750.0, -40.0, 40.0, 750.0)]
    models = {}
    for expression, point in points:
        program = f"parameters {{ vector[2] x; }} model {{ target += {expression}; }}"
        if expression not in models:
            models[expression] = stanli.Model(stan_code=program)
        value, gradient = models[expression].log_prob_grad(list(point))
        numbers = [*point, float(value), *map(float, gradient)]
        if all(map(math.isfinite, numbers)):
            rows.append("\t".join([expression, *map(repr, numbers)]))
    OUT.write_text("\n".join(rows) + "\n")
    print(len(rows), "of", len(points))


if __name__ == "__main__":
    main()
