"""Polynomial coefficients of the vector functions: Chebyshev fits at 60 digits (mpmath), printed as Rust constants.

    pip install mpmath; python coefficients.py

`fit(name, f, a, b, degree, centre)` gives the coefficients of f in powers of (x - centre), lowest first.
"""

from mpmath import *

mp.dps = 60


def fit(name, f, a, b, degree, centre=0):
    c, error = chebyfit(lambda t: f(t + centre), [mpf(a) - centre, mpf(b) - centre], degree + 1, error=True)
    print(f"// error {nstr(error, 2)}\nconst {name}: [f64; {degree + 1}] = [")
    for x in c[::-1]:
        print(f"    {float(x)!r},")
    print("];")


def series(term, count=60):
    total = mpf(0)
    for k in range(count):
        total += term(k)
    return total


def odd_tail(f, third):
    """(f(s) - s) / s^3 as a function of s^2."""
    return lambda z: third if abs(z) < mpf(10) ** -30 else (f(sqrt(z)) - sqrt(z)) / sqrt(z) ** 3


fit("EXP", lambda r: series(lambda k: r**k / factorial(k + 2)), -log(2) / 2, log(2) / 2, 9)
fit("LOG", lambda z: series(lambda k: 2 * z**k / (2 * k + 3)), 0, mpf(1) / 25, 7)
fit("LOG_TAIL", lambda z: series(lambda k: 2 * z**k / (2 * k + 5)), 0, mpf(1) / 25, 7)
quarter = (pi / 4) ** 2
fit("SIN", lambda z: series(lambda k: (-1) ** (k + 1) * z**k / factorial(2 * k + 3), 25), 0, quarter, 5)
fit("COS", lambda z: series(lambda k: (-1) ** k * z**k / factorial(2 * k + 4), 25), 0, quarter, 5)
fit("ATAN", odd_tail(atan, -mpf(1) / 3), 0, (sqrt(2) - 1) ** 2, 11)
fit("ASIN", odd_tail(asin, mpf(1) / 6), 0, 0.25, 12)
fit("ERF", lambda z: 2 / sqrt(pi) - 1 if z < mpf(10) ** -30 else erf(sqrt(z)) / sqrt(z) - 1, 0, 1, 11)


def erfcx(x):
    if x > 1000:
        return series(lambda k: (-1) ** k * fac2(2 * k - 1) / (2 * x * x) ** k, 20) / (x * sqrt(pi))
    return exp(x * x) * erfc(x)


def erfcx_mapped(t):
    if t >= 1:
        return 2 / sqrt(pi)
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * erfcx(x)


fit("ERFCX", erfcx_mapped, -1, 1, 24)
fit("LGAMMA", lambda y: 1 - euler if abs(y - 2) < mpf(10) ** -25 else loggamma(y) / (y - 2), 1.5, 2.5, 18, 2)


def stirling(z):
    x = 1 / sqrt(z)
    return x * (loggamma(x) - ((x - mpf(1) / 2) * log(x) - x + log(2 * pi) / 2))


tiny = mpf(10) ** -12
fit("STIRLING", stirling, tiny, 1 / mpf(8.5) ** 2, 5)
root = findroot(digamma, 1.4616)
print(f"// root {float(root)!r} + {float(root - mpf(float(root)))!r}")
fit("DIGAMMA", lambda y: polygamma(1, root) if abs(y - root) < mpf(10) ** -25 else digamma(y) / (y - root), 1, 2, 22, 1.5)
fit("DIGAMMA_FAR", lambda z: (log(1 / sqrt(z)) - sqrt(z) / 2 - digamma(1 / sqrt(z))) / z, tiny, mpf(1) / 64, 5)
fit("TRIGAMMA_FAR", lambda z: (polygamma(1, 1 / sqrt(z)) / sqrt(z) - 1 - sqrt(z) / 2) / z, tiny, mpf(1) / 64, 6)
fit("INV_CBRT", lambda m: m ** (-mpf(1) / 3), 0.75, 1.5, 7, 1)


def normal_quantile_over_q(w):
    """x / (p - 1/2) at w = -log(4 p (1 - p))."""
    if w < mpf(10) ** -30:
        return sqrt(2 * pi)
    q = sqrt(-expm1(-w))
    return sqrt(2) * erfinv(q) / (q / 2)


fit("QUANTILE", normal_quantile_over_q, 0, 5, 22, 2.5)
for name, x in {
    "LN2": log(2), "INV_LN2": 1 / log(2), "LOG10_2": log10(2), "INV_LN10": 1 / log(10), "TWO_THIRDS": mpf(2) / 3,
    "PI": pi, "HALF_PI": pi / 2,
}.items():
    # The high part keeps 26 bits for the logarithms' scale factors; the low part is the rest.
    import struct
    high = struct.unpack("<d", struct.pack("<Q", struct.unpack("<Q", struct.pack("<d", float(x)))[0] & ~0x7FFFFFF))[0]
    print(f"// {name} = {high!r} + {float(x - mpf(high))!r}; {float(x)!r} + {float(x - mpf(float(x)))!r}")
