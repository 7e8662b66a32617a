"""Computes values, gradients and second derivatives of the densities of exit times of Wiener processes from an interval, with varying
parameters, by mpmath with 40 digits.

    pip install mpmath; python wiener.py > ../../crates/stan/tests/reference/wiener.json

The script integrates a varying drift in closed form. `check` compares this form with the integral, and the quadrature rule with adaptive
quadrature. Densities are sums of waves at times for which the sums converge. Tails are sums of integrals of waves over time, in closed form
if the drift does not vary. All other values are integrals of these.
"""

from mpmath import *

from derivatives import case, write

mp.dps = 40


def density(t, alpha, w, delta, sigma):
    """Density of an exit through the upper boundary of (0, alpha) from beta = 1 - w, at time t > 0 with a drift from N(delta, sigma)."""
    x = t / alpha**2
    waves = pi * wave_sum(x, w)
    stretch = 1 + sigma**2 * t
    drift = ((sigma * alpha * w) ** 2 + 2 * alpha * w * delta - delta**2 * t) / (2 * stretch)
    return exp(drift) * waves / alpha**2 / sqrt(stretch)


def wave_sum(x, w):
    terms, k = [], 1
    while True:
        fall = exp(-((k * pi) ** 2) * x / 2)
        terms.append(k * fall * sin(k * pi * w))
        if k * fall < mpf(10) ** -(mp.dps + 5):
            return fsum(terms)
        k += 1


def check():
    """Compares the closed form for a varying drift with its integral."""
    args = (mpf("0.7"), mpf("1.2"), mpf("0.4"))
    normal = lambda v: exp(-(((v - mpf("0.3")) / mpf("0.8")) ** 2) / 2) / mpf("0.8") / sqrt(2 * pi)
    integral = quad(lambda v: normal(v) * density(*args, v, mpf(0)), linspace(-9, 9, 17))
    assert abs(integral / density(*args, mpf("0.3"), mpf("0.8")) - 1) < mpf(10) ** -14
    # Compare the rule with adaptive quadrature.
    f = lambda s: density(mpf("0.8") - s, mpf("1.2"), mpf("0.4"), mpf("0.3"), mpf("0.8"))
    assert abs(smooth(f, [0, mpf("0.3")]) / quad(f, [0, mpf("0.3")]) - 1) < mpf(10) ** -25


def rule(n):
    """Gauss-Legendre nodes and weights on (-1, 1)."""
    pairs = []
    for i in range(n):
        x = cos(pi * (i + mpf(3) / 4) / (n + mpf(1) / 2))
        slope = lambda: n * (legendre(n - 1, x) - x * legendre(n, x)) / (1 - x * x)
        for _ in range(8):
            x -= legendre(n, x) / slope()
        pairs.append((x, 2 / ((1 - x * x) * slope() ** 2)))
    return pairs


RULE = rule(26)


def smooth(f, points):
    """Integrates a smooth function between consecutive points, with 26 nodes for each interval."""
    half = lambda a, b: (b - a) / 2
    return fsum(half(a, b) * w * f(a + half(a, b) * (1 + x)) for a, b in zip(points, points[1:]) for x, w in RULE)


check()


def over_starts(f, w, spread):
    """The mean of f over uniform starts."""
    return smooth(f, [w - spread / 2, w + spread / 2]) / spread if spread else f(w)


def varying(y, alpha, tau, beta, delta, sigma, spread, width):
    f = lambda w, s: density(y - tau - s, alpha, w, delta, sigma)
    g = lambda w: smooth(lambda s: f(w, s), [0, width]) / width if width else f(w, 0)
    return log(over_starts(g, 1 - beta, spread))


def upper(t, alpha, w, delta):
    """The probability to leave through the upper boundary later than t, by the integrals of waves."""
    rate = lambda k: delta**2 / 2 + (k * pi / alpha) ** 2 / 2
    terms, k = [], 1
    while True:
        fall = exp(-rate(k) * t)
        terms.append(k * sin(k * pi * w) * fall / rate(k))
        if k * fall < mpf(10) ** -(mp.dps + 5):
            break
        k += 1
    return exp(delta * alpha * w) * pi / alpha**2 * fsum(terms)


def all_(alpha, w, delta):
    """The probability to leave through the upper boundary."""
    return expm1(-2 * delta * alpha * (1 - w)) / expm1(-2 * delta * alpha)


def lcdf(y, alpha, tau, beta, delta):
    w = 1 - beta
    return log(all_(alpha, w, delta) - upper(y - tau, alpha, w, delta))


def lccdf(y, alpha, tau, beta, delta):
    return log(upper(y - tau, alpha, 1 - beta, delta))


def mean_of_tails(tail, y, alpha, tau, beta, delta, sigma, spread, width):
    """The mean of a tail over drifts, starts and nondecision times."""
    over_times = lambda w, v: smooth(lambda s: tail(y - tau - s, alpha, w, v), [0, width]) / width if width else tail(y - tau, alpha, w, v)
    normal = lambda z: exp(-z * z / 2) / sqrt(2 * pi)
    over_drifts = lambda w: smooth(lambda z: normal(z) * over_times(w, delta + sigma * z), linspace(-9, 9, 10)) if sigma else over_times(w, delta)
    return log(over_starts(over_drifts, 1 - beta, spread))


below = lambda t, alpha, w, delta: all_(alpha, w, delta) - upper(t, alpha, w, delta)


def cases():
    names = "x0 | x1, x2, x3, x4, x5"
    yield f"wiener_lpdf({names})", lambda *x: varying(*x, 0, 0), [(0.9, 1.1, 0.2, 0.4, 0.6, 0.8), (0.6, 2, 0.1, 0.7, -1.5, 0.3), (4, 1, 0.3, 0.6, 1.2, 2)]
    yield f"wiener_lpdf({names}, x6, 0)", lambda *x: varying(*x, 0), [(0.9, 1.1, 0.2, 0.4, 0.6, 0.8, 0.3)]
    yield f"wiener_lpdf({names}, 0, x6)", lambda *x: varying(*x[:6], 0, x[6]), [(0.9, 1.1, 0.2, 0.4, 0.6, 0.8, 0.25)]
    yield f"wiener_lpdf({names}, 0.2, 0.3)", lambda *x: varying(*x, mpf(0.2), mpf(0.3)), [(1.1, 1.4, 0.15, 0.55, 0.7, 0.5)]
    for name, f in [("lcdf", lcdf), ("lccdf", lccdf)]:
        yield f"wiener_{name}_unnorm(x0, x1, x2, x3, x4)", f, [(0.9, 1.1, 0.2, 0.4, 0.6), (0.6, 1.4, 0.2, 0.3, -0.8), (4, 1, 0.3, 0.7, 1.2), (1.5, 2, 0.1, 0.45, 3.5)]
    for name, tail in [("lcdf", below), ("lccdf", upper)]:
        f = lambda *x, tail=tail: mean_of_tails(tail, *x, 0, 0)
        yield f"wiener_{name}_unnorm(x0, x1, 0.2, x2, x3, x4, 0, 0)", lambda y, a, b, d, s, f=f: f(y, a, mpf(0.2), b, d, s), [(0.9, 1.1, 0.4, 0.6, 0.8)]
        f = lambda *x, tail=tail: mean_of_tails(tail, *x)
        yield f"wiener_{name}_unnorm(x0, x1, 0.2, 0.4, 0.6, 0, x2, x3)", lambda y, a, s, w, f=f: f(y, a, mpf(0.2), mpf(0.4), mpf(0.6), 0, s, w), [(0.9, 1.1, 0.3, 0.25)]


write([case(text, f, point) for text, f, points in cases() for point in points])
