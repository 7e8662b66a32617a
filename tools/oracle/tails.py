"""Computes values, gradients and second derivatives of distribution functions and special functions with parameters, at points inside and
far in both tails, by mpmath with 40 digits.

    pip install mpmath; python tails.py > ../../crates/stan/tests/reference/tails.json

Each case has a statement of a model, its real parameters with their values, and the log density. The script integrates densities, that is,
it computes the functions in another way than the Rust code.
"""

from mpmath import *

from derivatives import case, write

mp.dps = 40


def log_of(tails, which):
    """The log of a tail probability, computed from the other tail if that is smaller."""
    return log(tails[which]) if tails[which] < 0.5 else log1p(-tails[1 - which])


def integral(density, low, high):
    """Integrates between the limits, in pieces around the bulk."""
    return quad(density, linspace(low, high, 9))


def gamma_tails(a, x):
    return gammainc(a, 0, x, regularized=True), gammainc(a, x, inf, regularized=True)


def beta_tails(a, b, x):
    return betainc(a, b, 0, x, regularized=True), betainc(b, a, 0, 1 - x, regularized=True)


def swap(tails):
    return tails[1], tails[0]


def student(y, nu, mu, sigma):
    z = (y - mu) / sigma
    far = betainc(nu / 2, mpf(1) / 2, 0, nu / (nu + z * z), regularized=True) / 2
    return (far, 1 - far) if z < 0 else (1 - far, far)


def skew_normal(y, xi, omega, alpha):
    # The tail is a difference of nearly equal numbers, which needs more digits.
    with workdps(80):
        return skew_tails((y - xi) / omega, alpha)


def skew_tails(z, alpha):
    f = lambda u: exp(-z * z * (1 + u * u) / 2) / (1 + u * u) / (2 * pi)
    t = 2 * quad(f, linspace(0, alpha, 5))
    return erfc(-z / sqrt(2)) / 2 - t, erfc(z / sqrt(2)) / 2 + t


def von_mises(y, mu, kappa):
    norm = 2 * pi * besseli(0, kappa)
    f = lambda u: exp(kappa * cos(u - mu)) / norm
    return integral(f, -pi, y), integral(f, y, pi)


def exp_mod_normal(y, mu, sigma, rate):
    z, u = (y - mu) / sigma, rate * sigma
    phi = lambda x: erfc(-x / sqrt(2)) / 2
    beyond = exp(u * u / 2 - u * z) * phi(z - u)
    return phi(z) - beyond, phi(-z) + beyond


def skew_double_exponential(y, mu, sigma, tau):
    d = (y - mu) / sigma
    low = tau * exp(2 * (1 - tau) * d) if d < 0 else 1 - (1 - tau) * exp(-2 * tau * d)
    return low, 1 - low


def loglogistic(y, a, b):
    return 1 / (1 + (y / a) ** -b), 1 / (1 + (y / a) ** b)


def sums(n, last, mass):
    lower = sum(mass(k) for k in range(n + 1))
    upper = sum(mass(k) for k in range(n + 1, last + 1)) if last else 1 - lower
    return lower, upper


def beta_binomial(n, trials, a, b):
    return sums(n, trials, lambda k: binomial(trials, k) * beta(k + a, trials - k + b) / beta(a, b))


def beta_neg_binomial(n, r, a, b):
    mass = lambda k: gamma(k + r) / gamma(r) / factorial(k) * beta(k + b, r + a) / beta(a, b)
    return sums(n, None, mass)


def poisson(n, rate):
    return swap(gamma_tails(n + 1, rate))


def neg_binomial(n, a, b):
    return sums(n, None, lambda k: gamma(k + a) / gamma(a) / factorial(k) * (b / (1 + b)) ** a / (1 + b) ** k)


# Name, known arguments before the bar for an int outcome, function of all arguments, and points of the real arguments.
TAILS = [
    ("gamma", None, lambda y, a, b: gamma_tails(a, b * y), [(1.3, 2.1, 0.7), (0.01, 3.2, 1.4), (60, 2.5, 1.1), (0.4, 0.2, 3), (31, 30, 1)]),
    ("inv_gamma", None, lambda y, a, b: swap(gamma_tails(a, b / y)), [(1.3, 2.1, 0.7), (0.02, 3.2, 1.4), (90, 2.5, 1.1)]),
    ("chi_square", None, lambda y, n: gamma_tails(n / 2, y / 2), [(1.3, 2.1), (0.02, 6.4), (90, 5.5)]),
    ("inv_chi_square", None, lambda y, n: swap(gamma_tails(n / 2, 1 / y / 2)), [(1.3, 2.1), (0.01, 6.4), (90, 5.5)]),
    ("scaled_inv_chi_square", None, lambda y, n, s: swap(gamma_tails(n / 2, n * s * s / y / 2)), [(1.3, 2.1, 0.8), (0.03, 6.4, 1.2), (90, 5.5, 2)]),
    ("beta", None, lambda y, a, b: beta_tails(a, b, y), [(0.3, 2.1, 0.7), (0.001, 3.2, 5.4), (0.998, 2.5, 4.1), (0.4, 0.2, 0.3), (0.62, 80, 45)]),
    ("beta_proportion", None, lambda y, m, k: beta_tails(m * k, (1 - m) * k, y), [(0.3, 0.4, 3.7), (0.001, 0.6, 5.4), (0.995, 0.3, 9)]),
    ("student_t", None, student, [(0.3, 4.2, 0.1, 1.3), (-40, 3.1, 0.2, 0.7), (35, 2.2, 0.2, 0.7), (1, 300, 0.3, 0.9)]),
    ("skew_normal", None, skew_normal, [(0.3, 0.1, 1.2, 2.3), (-3.5, 0.2, 0.7, 1.7), (4.2, 0.1, 0.8, -1.4), (2.5, 0, 1, -3), (-2, 0.4, 1.1, -0.7)]),
    ("von_mises", None, von_mises, [(0.3, 0.1, 1.2), (-2.5, 0.4, 6), (2.9, -0.8, 14), (1, 2.8, 0.4), (-0.5, -3, 2)]),
    ("exp_mod_normal", None, exp_mod_normal, [(0.3, 0.1, 1.2, 0.8), (6, 0.2, 0.7, 1.3)]),
    ("skew_double_exponential", None, skew_double_exponential, [(0.3, 0.1, 1.2, 0.3), (-9, 0.2, 0.7, 0.6), (12, 0.1, 0.9, 0.4)]),
    ("loglogistic", None, loglogistic, [(0.3, 1.1, 1.7), (20, 0.8, 3)]),
    ("poisson", (3,), poisson, [(2.4,), (19,), (0.05,)]),
    ("binomial", (3, 9), lambda n, t, p: beta_tails(t - n, n + 1, 1 - p), [(0.4,), (0.01,), (0.97,)]),
    ("neg_binomial", (3,), neg_binomial, [(2.4, 0.7), (0.3, 1.9), (11, 0.6)]),
    ("neg_binomial_2", (3,), lambda n, m, f: neg_binomial(n, f, f / m), [(2.4, 0.7), (0.3, 6), (40, 3)]),
    ("beta_binomial", (3, 9), beta_binomial, [(2.4, 0.7), (0.3, 6), (11, 8)]),
    ("beta_neg_binomial", (3,), beta_neg_binomial, [(2.4, 0.7, 1.8), (0.3, 6, 2)]),
    ("yule_simon", (3,), lambda n, a: (1 - n * beta(n, a + 1), n * beta(n, a + 1)), [(2.4,), (0.3,)]),
]


def wiener(y, alpha, tau, beta_, delta):
    t, w = (y - tau) / alpha**2, 1 - beta_
    f = pi * fsum(k * exp(-((k * pi) ** 2) * t / 2) * sin(k * pi * w) for k in range(1, 40))
    return delta * alpha * w - delta**2 * (y - tau) / 2 - 2 * log(alpha) + log(f)


FUNCTIONS = [
    ("wiener_lpdf(x0 | x1, x2, x3, x4)", wiener, [(0.9, 1.1, 0.2, 0.4, 0.6), (0.35, 1.4, 0.2, 0.3, -0.8), (4, 1, 0.3, 0.7, 1.2)]),
    ("von_mises_lpdf(x0 | x1, x2)", lambda y, m, k: k * cos(y - m) - log(2 * pi * besseli(0, k)), [(0.3, 0.1, 1.2), (2, 0.3, 90)]),
    ("gamma_p(x0, x1)", lambda a, x: gamma_tails(a, x)[0], [(2.1, 1.3), (0.4, 3)]),
    ("gamma_q(x0, x1)", lambda a, x: gamma_tails(a, x)[1], [(2.1, 1.3), (9, 3)]),
    ("inc_beta(x0, x1, x2)", lambda a, b, x: beta_tails(a, b, x)[0], [(2.1, 1.3, 0.6), (0.4, 5, 0.01)]),
    ("inv_inc_beta(x0, x1, x2)", lambda a, b, p: findroot(lambda x: beta_tails(a, b, x)[0] - p, (mpf("0.3"), mpf("0.5")), tol=mpf(10) ** -70), [(2.1, 1.3, 0.6), (4, 5, 0.2)]),
    ("owens_t(x0, x1)", lambda h, a: integral(lambda u: exp(-h * h * (1 + u * u) / 2) / (1 + u * u) / (2 * pi), 0, a), [(0.4, 1.3), (-1.1, 0.7), (0.5, -2)]),
    ("log_modified_bessel_first_kind(x0, x1)", lambda v, x: log(besseli(v, x)), [(0.7, 1.3), (3.2, 70), (11, 4)]),
    ("bessel_first_kind(2, x0)", lambda x: besselj(2, x), [(1.3,), (14,)]),
    ("bessel_second_kind(1, x0)", lambda x: bessely(1, x), [(1.3,), (14,)]),
    ("modified_bessel_first_kind(3, x0)", lambda x: besseli(3, x), [(1.3,), (14,)]),
    ("modified_bessel_second_kind(2, x0)", lambda x: besselk(2, x), [(1.3,), (9,)]),
    ("lambert_w0(x0)", lambda x: lambertw(x).real, [(1.3,), (-0.2,)]),
    ("lambert_wm1(x0)", lambda x: lambertw(x, -1).real, [(-0.3,), (-0.01,)]),
    ("get_real(acos(to_complex(x0, x1)) * sqrt(to_complex(x1, x0)))", lambda a, b: (acos(mpc(a, b)) * sqrt(mpc(b, a))).real, [(0.4, 1.3), (-0.8, 0.2)]),
    ("matrix_exp([[x0, x1], [0.3, x0 * x1]])[1, 2]", lambda a, b: expm(matrix([[a, b], [mpf(0.3), a * b]]))[0, 1], [(0.4, 1.3), (3, -0.7)]),
    ("eigenvalues_sym([[x0, x1, 0.2], [x1, 1.5, 0.1], [0.2, 0.1, x0 * x1]])[2]", lambda a, b: sorted(eigsy(matrix([[a, b, mpf(0.2)], [b, mpf(1.5), mpf(0.1)], [mpf(0.2), mpf(0.1), a * b]]), eigvals_only=True))[1], [(0.4, 1.3)]),
]


def main():
    cases = []
    for name, known, f, points in TAILS:
        for point in points:
            names = [f"x{i}" for i in range(len(point))]
            words = [str(k) for k in known] + names if known else names
            arguments = f"{words[0]} | {', '.join(words[1:])}"
            for which, suffix in ((0, "lcdf"), (1, "lccdf")):
                g = lambda *x: log_of(f(*(known or ()), *x), which)
                cases.append(case(f"log({name}_cdf({arguments}))" if name == "loglogistic" else f"{name}_{suffix}({arguments})", g, point))
                if name == "loglogistic":
                    break
    for text, f, points in FUNCTIONS:
        for point in points:
            cases.append(case(text, f, point))
    write(cases)


main()
