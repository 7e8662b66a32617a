"""Reference values of the scalar special functions (mpmath, 50 digits): one line a point, `name argument... value`.

    pip install mpmath; python special_references.py > ../tests/data/special_functions.txt

Numbers are the bits of a double in hexadecimal.
"""

import math
import random
import struct

from mpmath import *

mp.dps = 50
rng = random.Random(7)
POINTS = 60


def bits(x):
    return f"{struct.unpack('<Q', struct.pack('<d', x))[0]:016x}"


def u(a, b):
    return lambda: rng.uniform(a, b)


def s(a, b):
    return lambda: 10 ** rng.uniform(a, b)


def i(a, b):
    return lambda: float(rng.randint(a, b))


def near(f, spread):
    """A pair (a, x) with x within some standard deviations of the transition at a."""

    def pair():
        a = f()
        return a, max(1e-3, a + spread * rng.uniform(-1, 1) * math.sqrt(a))

    return pair


def beta_near():
    a, b = 10 ** rng.uniform(0, 4.5), 10 ** rng.uniform(0, 4.5)
    m = a / (a + b)
    sd = math.sqrt(m * (1 - m) / (a + b + 1))
    return a, b, min(0.999999, max(1e-6, m + 4 * sd * rng.uniform(-1, 1)))


def lower(a, x):
    """P(a, x) by its series of positive terms."""
    term = total = 1 / a
    n = a
    while term > total * mpf(10) ** -40:
        n += 1
        term *= x / n
        total += term
    return total * exp(a * log(x) - x - loggamma(a))


def upper(a, x):
    with workdps(80 + int(max(0, (x - a - a * log(x / a)) / 2.3)) if x > a else 80):
        return 1 - lower(a, x)


def inc_beta(a, b, x):
    """I_x(a, b) by the series of positive terms x^a (1-x)^b / (a B) sum (a+b)_n / (a+1)_n x^n."""
    if x > (a + 1) / (a + b + 2):
        return 1 - inc_beta(b, a, 1 - x)
    with workdps(60):
        term = total = mpf(1)
        n = mpf(0)
        while term > total * mpf(10) ** -45:
            term *= (a + b + n) / (a + 1 + n) * x
            total += term
            n += 1
        return total * exp(a * log(x) + b * log1p(-x) + loggamma(a + b) - loggamma(a) - loggamma(b)) / a


def owens_t(h, a):
    f = lambda x: exp(-h * h * (1 + x * x) / 2) / (1 + x * x)
    return quad(f, linspace(0, a, 12)) / (2 * pi)


def inv_erfc(x):
    return erfinv(1 - x)


def log_abs_gamma(x):
    return log(abs(gamma(x)))


def log_bessel_i(v, x):
    """The power series, whose terms are all positive."""
    z = x * x / 4
    term = total = mpf(1)
    k = 0
    while term > total * mpf(10) ** -40:
        k += 1
        term *= z / (k * (k + v))
        total += term
    return v * log(x / 2) - loggamma(v + 1) + log(total)


FUNCTIONS = {
    "lgamma": (log_abs_gamma, [[u(-20, 0)], [u(0, 30)]]),
    "tgamma": (gamma, [[u(-20, 0)], [u(0, 170)]]),
    "digamma": (digamma, [[u(-20, 0)], [u(0, 30)]]),
    "trigamma": (lambda x: polygamma(1, x), [[u(-20, 0)], [u(0, 30)]]),
    "lbeta": (lambda a, b: loggamma(a) + loggamma(b) - loggamma(a + b), [[s(-3, 6), s(-3, 6)]]),
    "lmgamma": (lambda k, x: k * (k - 1) / 4 * log(pi) + sum(loggamma(x - mpf(j) / 2) for j in range(int(k))), [[i(1, 8), u(5, 50)]]),
    "rising_factorial": (lambda x, n: rf(x, n), [[u(-5, 20), i(0, 30)]]),
    "falling_factorial": (lambda x, n: ff(x, n), [[u(-5, 20), i(0, 30)]]),
    "log_rising_factorial": (lambda x, n: loggamma(x + n) - loggamma(x), [[s(-2, 8), s(-2, 3)]]),
    "log_falling_factorial": (lambda x, n: loggamma(x + 1) - loggamma(x - n + 1), [[u(30, 100), u(0.1, 29)]]),
    "binomial_coefficient_log": (lambda n, k: loggamma(n + 1) - loggamma(k + 1) - loggamma(n - k + 1), [[i(30, 10**6), i(0, 30)], [u(10, 20), u(0, 10)]]),
    "erf": (erf, [[u(-5, 5)]]),
    "erfc": (erfc, [[u(-5, 26)]]),
    "inv_erfc": (inv_erfc, [[u(0.01, 2)]]),
    "phi": (lambda x: erfc(-x / sqrt(2)) / 2, [[u(-37, 8)]]),
    "log_phi": (lambda x: log(erfc(-x / sqrt(2)) / 2), [[u(-100, 8)]]),
    "inv_phi": (lambda p: sqrt(2) * erfinv(2 * p - 1), [[u(0, 1)], [s(-12, -1)]]),
    "phi_approx": (lambda x: 1 / (1 + exp(-(mpf(0.07056) * x**3 + mpf(1.5976) * x))), [[u(-8, 8)]]),
    "gamma_p": (lower, [[s(-3, 2), s(-3, 2)], near(s(0, 4), 4), near(s(6.1, 6.3), 3)]),
    "gamma_q": (upper, [[s(-3, 2), s(-3, 2)], near(s(0, 4), 4), near(s(6.1, 6.3), 3)]),
    "inc_beta": (inc_beta, [[s(-2, 2), s(-2, 2), u(0, 1)], beta_near]),
    "owens_t": (owens_t, [[u(0, 6), u(0, 1)], [u(0, 4), u(1, 8)]]),
    "bessel_first_kind": (lambda n, x: besselj(n, x), [[i(0, 12), u(0, 60)]]),
    "bessel_second_kind": (lambda n, x: bessely(n, x), [[i(0, 12), u(0.5, 60)]]),
    "modified_bessel_first_kind": (lambda n, x: besseli(n, x), [[i(0, 12), u(-30, 60)], [i(0, 40), s(-2, 2.8)]]),
    "modified_bessel_second_kind": (lambda n, x: besselk(n, x), [[i(0, 12), s(-3, 2.7)]]),
    "log_modified_bessel_first_kind": (log_bessel_i, [[u(0, 20), s(-3, 3)], [s(0, 2.5), s(0, 3.5)], [s(2.6, 3.5), s(5.1, 5.4)]]),
    "lambert_w0": (lambda x: lambertw(x).real, [[s(-10, 200)], [u(-0.3678, 1)]]),
    "lambert_wm1": (lambda x: lambertw(x, -1).real, [[u(-0.3678, 0)], [lambda: -(10 ** rng.uniform(-200, -1))]]),
    "log_diff_exp": (lambda x, y: log(exp(x) - exp(y)), [[u(5, 10), u(-10, 5)]]),
    "log_sum_exp": (lambda x, y: log(exp(x) + exp(y)), [[u(-50, 50), u(-50, 50)]]),
    "log1m_exp": (lambda x: log(-expm1(x)), [[u(-30, 0)]]),
    "log1p_exp": (lambda x: log1p(exp(x)), [[u(-50, 50)]]),
    "inv_cloglog": (lambda x: -expm1(-exp(x)), [[u(-30, 3)]]),
    "inv_logit": (lambda x: 1 / (1 + exp(-x)), [[u(-50, 30)]]),
    "logit": (lambda p: log(p / (1 - p)), [[u(0, 1)]]),
}

for name, (f, sources) in FUNCTIONS.items():
    done = 0
    while done < POINTS:
        source = sources[done % len(sources)]
        x = [t() for t in source] if isinstance(source, list) else list(source())
        value = float(f(*[mpf(t) for t in x]))
        if not math.isfinite(value) or 0 < abs(value) < 1e-290:
            continue
        print(name, *[bits(t) for t in x], bits(value), flush=True)
        done += 1
