"""Computes log densities at extreme arguments with 60 digits by mpmath: 10⁴ points for each distribution.

    pip install mpmath; python extremes.py [NAME …] > extremes.csv
    JENSEN_EXTREMES=extremes.csv cargo test -p jensen-stan --test extremes -- --nocapture

The second command keeps the worst 200 points of each distribution in `crates/stan/tests/reference/extremes.csv`. Without the variable, the
same test compares them. A line has the distribution, its arguments, and the log density at the doubles nearest to the arguments. Arguments
have four digits to keep the text short. Half of the outcomes are in the bulk of the distribution, where terms as large as the parameters
cancel to numbers of order one. The other half is anywhere.
"""

import random
import sys

from mpmath import *

# Terms of 10²⁰ may leave a number of order one.
mp.dps = 60
COUNT = 10_000


def short(x, digits=4):
    return float(f"{x:.{digits - 1}e}")


def positive(low=-6, high=6):
    return short(10 ** random.uniform(low, high))


def real(high=6):
    return random.choice([-1, 1]) * positive(-6, high)


def probability():
    p = positive(-12, -0.3)
    return 1 - short(p, 2) if random.random() < 0.3 else p


def at(centre, scale):
    """Draws an outcome in the bulk, or anywhere."""
    y = centre + scale * random.gauss(0, 1)
    if random.random() < 0.5:
        y = centre + scale * real(3)
    # More digits than the centre has, so that outcomes differ from it.
    return short(y, random.choice([4, 9, 15]))


def above(centre, scale, low=0.0):
    for _ in range(20):
        y = at(centre, min(scale, centre))
        if y > low:
            return y
    return positive()


def count(centre, scale):
    return int(min(max(round(above(centre, scale)), 0), 2_000_000_000))


def between():
    """A number of the unit interval with its parameters."""
    a, b = positive(), positive()
    y = above(a / (a + b), (a * b) ** 0.5 / (a + b) / (a + b + 1) ** 0.5)
    return (y if 0 < y < 1 else random.uniform(0.01, 0.99)), a, b


def location_scale():
    mu, sigma = real(), positive()
    return at(mu, sigma), mu, sigma


def outcomes(centre, scale, *parameters):
    return (above(centre, scale), *parameters)


def shape_rate():
    a, b = positive(), positive()
    return outcomes(a / b, a**0.5 / b, a, b)


def shape_scale():
    a, b = positive(), positive()
    return outcomes(b / a, b / a**1.5, a, b)


def degrees():
    nu = positive()
    return outcomes(nu, (2 * nu) ** 0.5, nu)


def rate_count():
    rate = positive(-6, 9)
    return count(rate, rate**0.5), rate


def trials():
    n = int(positive(0, 9))
    p = probability()
    return min(count(n * p, (n * p * (1 - p)) ** 0.5), n), n, p


def logit_trials():
    n = int(positive(0, 9))
    eta = short(random.uniform(-20, 20))
    p = 1 / (1 + 2.718281828 ** -eta)
    return min(count(n * p, (n * p * (1 - p)) ** 0.5), n), n, eta


def beta_trials():
    n, a, b = int(positive(0, 9)), positive(), positive()
    p = a / (a + b)
    return min(count(n * p, (n * p * (1 - p)) ** 0.5 + n * p / a**0.5), n), n, a, b


def dispersed():
    mu, phi = positive(-3, 8), positive()
    return count(mu, (mu + mu * mu / phi) ** 0.5), mu, phi


def dispersed_log():
    eta, phi = short(random.uniform(-6, 18)), positive()
    mu = 2.718281828**eta
    return count(mu, (mu + mu * mu / phi) ** 0.5), eta, phi


def shaped_counts():
    a, b = positive(), positive()
    return count(a / b, (a / b * (1 + 1 / b)) ** 0.5), a, b


def logit(x):
    return -log1p(exp(-x))


def lbeta(a, b):
    return loggamma(a) + loggamma(b) - loggamma(a + b)


def lchoose(n, k):
    return loggamma(n + 1) - loggamma(k + 1) - loggamma(n - k + 1)


def neg_binomial_2(n, mu, phi):
    return lchoose(n + phi - 1, n) + n * log(mu / (mu + phi)) - phi * log1p(mu / phi)


def power_mean(y, mu, sigma):
    return -log(y * sigma * sqrt(2 * pi)) - ((log(y) - mu) / sigma) ** 2 / 2


def skew_normal(y, xi, omega, alpha):
    z = (y - xi) / omega
    return -log(omega) - log(2 * pi) / 2 - z * z / 2 + log(erfc(-alpha * z / sqrt(2)))


def exp_mod_normal(y, mu, sigma, rate):
    u = mu + rate * sigma**2 - y
    return log(rate / 2) + rate * (2 * mu + rate * sigma**2 - 2 * y) / 2 + log(erfc(u / (sqrt(2) * sigma)))


def skew_double_exponential(y, mu, sigma, tau):
    side = tau * (y - mu) if y > mu else (1 - tau) * (mu - y)
    return log(2 * tau * (1 - tau) / sigma) - 2 * side / sigma


# Name, points, log density. Error functions in the tails need more digits, which `erfc` of mpmath adds itself.
DENSITIES = [
    ("normal", location_scale, lambda y, m, s: -log(2 * pi) / 2 - log(s) - ((y - m) / s) ** 2 / 2),
    ("std_normal", lambda: (at(0, 1),), lambda y: -log(2 * pi) / 2 - y * y / 2),
    ("cauchy", location_scale, lambda y, m, s: -log(pi * s) - log1p(((y - m) / s) ** 2)),
    (
        "student_t",
        lambda: (lambda y, m, s: (y, positive(), m, s))(*location_scale()),
        lambda y, v, m, s: loggamma((v + 1) / 2) - loggamma(v / 2) - log(v * pi) / 2 - log(s) - (v + 1) / 2 * log1p(((y - m) / s) ** 2 / v),
    ),
    ("double_exponential", location_scale, lambda y, m, s: -log(2 * s) - abs(y - m) / s),
    ("logistic", location_scale, lambda y, m, s: -log(s) - abs(y - m) / s - 2 * log1p(exp(-abs(y - m) / s))),
    ("gumbel", lambda: (lambda m, s: (short(m + s * random.uniform(-6, 60), 9), m, s))(real(), positive()), lambda y, m, s: -log(s) - (y - m) / s - exp(-(y - m) / s)),
    ("lognormal", lambda: (lambda m, s: (above(2.718281828**m, s), m, s))(short(random.uniform(-40, 40)), positive(-6, 2)), power_mean),
    ("chi_square", degrees, lambda y, v: -v / 2 * log(2) - loggamma(v / 2) + (v / 2 - 1) * log(y) - y / 2),
    ("inv_chi_square", lambda: (lambda v: outcomes(1 / v, 1.4 / v**1.5, v))(positive()), lambda y, v: -v / 2 * log(2) - loggamma(v / 2) - (v / 2 + 1) * log(y) - 1 / (2 * y)),
    (
        "scaled_inv_chi_square",
        lambda: (lambda v, s: outcomes(s * s, 1.4 * s * s / v**0.5, v, s))(positive(), positive(-3, 3)),
        lambda y, v, s: v / 2 * log(v / 2) - loggamma(v / 2) + v * log(s) - (v / 2 + 1) * log(y) - v * s * s / (2 * y),
    ),
    ("exponential", lambda: (lambda b: outcomes(1 / b, 1 / b, b))(positive()), lambda y, b: log(b) - b * y),
    ("gamma", shape_rate, lambda y, a, b: a * log(b) - loggamma(a) + (a - 1) * log(y) - b * y),
    ("inv_gamma", shape_scale, lambda y, a, b: a * log(b) - loggamma(a) - (a + 1) * log(y) - b / y),
    ("weibull", lambda: (lambda a, s: outcomes(s, s / a, a, s))(positive(-3, 4), positive()), lambda y, a, s: log(a / s) + (a - 1) * log(y / s) - (y / s) ** a),
    ("frechet", lambda: (lambda a, s: outcomes(s, s / a, a, s))(positive(-3, 4), positive()), lambda y, a, s: log(a / s) - (a + 1) * log(y / s) - (y / s) ** -a),
    ("rayleigh", lambda: (lambda s: outcomes(s, s, s))(positive()), lambda y, s: log(y) - 2 * log(s) - (y / s) ** 2 / 2),
    ("pareto", lambda: (lambda m, a: (short(m * (1 + positive(-8, 4)), 15), m, a))(positive(), positive()), lambda y, m, a: log(a) + a * log(m) - (a + 1) * log(y)),
    ("pareto_type_2", lambda: (lambda m, s, a: (short(m + s * positive(-8, 4), 15), m, s, a))(real(3), positive(-3, 3), positive()), lambda y, m, s, a: log(a / s) - (a + 1) * log1p((y - m) / s)),
    ("loglogistic", lambda: (lambda a, b: outcomes(a, a / b, a, b))(positive(), positive(-3, 4)), lambda y, a, b: log(b / a) + (b - 1) * log(y / a) - 2 * log1p((y / a) ** b)),
    ("beta", between, lambda y, a, b: (a - 1) * log(y) + (b - 1) * log1p(-y) - lbeta(a, b)),
    (
        "beta_proportion",
        lambda: (lambda y, a, b: (y, min(max(short(a / (a + b)), 1e-6), 0.9999), short(a + b)))(*between()),
        lambda y, m, k: (m * k - 1) * log(y) + ((1 - m) * k - 1) * log1p(-y) - lbeta(m * k, (1 - m) * k),
    ),
    ("skew_normal", lambda: (*location_scale(), real(2)), skew_normal),
    ("exp_mod_normal", lambda: (lambda m, s, r: (short(m + s * random.uniform(-30, 100), 9), m, s, r))(real(3), positive(-3, 3), positive(-3, 3)), exp_mod_normal),
    ("skew_double_exponential", lambda: (*location_scale(), random.choice([0.5, 0.1, 0.999, short(random.uniform(0.01, 0.99))])), skew_double_exponential),
    ("von_mises", lambda: (short(random.uniform(-3.1, 3.1)), short(random.uniform(-3.1, 3.1)), positive(-6, 5)), lambda y, m, k: k * cos(y - m) - log(2 * pi * besseli(0, k))),
    ("poisson", rate_count, lambda n, r: n * log(r) - r - loggamma(n + 1)),
    ("poisson_log", lambda: (lambda e: (count(2.718281828**e, 2.718281828 ** (e / 2)), e))(short(random.uniform(-14, 21))), lambda n, e: n * e - exp(e) - loggamma(n + 1)),
    ("binomial", trials, lambda n, t, p: lchoose(t, n) + n * log(p) + (t - n) * log1p(-p)),
    ("binomial_logit", logit_trials, lambda n, t, x: lchoose(t, n) + n * logit(x) + (t - n) * logit(-x)),
    ("beta_binomial", beta_trials, lambda n, t, a, b: lchoose(t, n) + lbeta(n + a, t - n + b) - lbeta(a, b)),
    ("neg_binomial", shaped_counts, lambda n, a, b: lchoose(n + a - 1, n) + a * log(b / (1 + b)) - n * log1p(b)),
    ("neg_binomial_2", dispersed, neg_binomial_2),
    ("neg_binomial_2_log", dispersed_log, lambda n, e, f: neg_binomial_2(n, exp(e), f)),
    (
        "beta_neg_binomial",
        lambda: (lambda r, a, b: (count(r * b / a, (r * b) ** 0.5 / a), r, a, b))(positive(-3, 5), positive(-2, 5), positive(-3, 5)),
        lambda n, r, a, b: lchoose(n + r - 1, n) + lbeta(n + b, r + a) - lbeta(a, b),
    ),
    ("yule_simon", lambda: (max(count(positive(0, 9), 1), 1), positive()), lambda n, a: log(a) + lbeta(n, a + 1)),
]


def main():
    for name, points, density in DENSITIES:
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        random.seed(name)
        made = 0
        while made < COUNT:
            point = points()
            value = float(mpf(density(*(mpf(x) for x in point))))
            # Results beyond the range of doubles have no digits.
            if isfinite(value):
                made += 1
                print(",".join([name, *(repr(x) for x in point), repr(value)]))


main()
