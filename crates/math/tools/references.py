"""Reference values of the vector functions (mpmath, 60 digits): one line a point, `name x [y] value fraction`.

    pip install mpmath; python references.py [points] > ../tests/data/vector_functions.txt

Numbers are the bits of a double in hexadecimal; `fraction` is (exact - value) in hundredths of a unit in the last place
of `value`.
"""

import math
import random
import struct
import sys

from mpmath import *

mp.dps = 60
POINTS = int(sys.argv[1]) if len(sys.argv) > 1 else 120
rng = random.Random(20240229)


def bits(x):
    return f"{struct.unpack('<Q', struct.pack('<d', x))[0]:016x}"


def uniform(a, b):
    return lambda: rng.uniform(a, b)


def scale(a, b, signs=(1,)):
    """Logarithmically uniform between 10^a and 10^b."""
    return lambda: rng.choice(signs) * 10 ** rng.uniform(a, b)


def near(x, width):
    return lambda: x + rng.choice((-1, 1)) * width * 10 ** rng.uniform(-12, 0)


def inv_logit(x):
    return 1 / (1 + exp(-x))


def wide(f):
    """More digits, for functions in which mpmath itself would cancel."""

    def g(*x):
        with workdps(700):
            return f(*x)

    return g


def log_phi(x):
    if x < -1e4:
        z = x * x
        series = log(1 - 1 / z + 3 / z**2 - 15 / z**3 + 105 / z**4)
        return -z / 2 - log(-x) - log(2 * pi) / 2 + series
    if x > 0:
        return log1p(-erfc(x / sqrt(2)) / 2)
    return log(erfc(-x / sqrt(2)) / 2)


def inv_phi(p):
    if p < mpf("1e-5"):
        # Newton on the logarithm of the lower tail.
        x = -sqrt(-2 * log(p))
        for _ in range(60):
            tail = erfc(-x / sqrt(2)) / 2
            step = (log(tail) - log(p)) * tail / npdf(x)
            x -= step
            if abs(step) < mpf(10) ** -45:
                break
        return x
    return sqrt(2) * erfinv(2 * p - 1)


both = (-1, 1)
FUNCTIONS = {
    "exp": (exp, [uniform(-745, 709.7), uniform(-2, 2), scale(-20, 0, both), uniform(-745, -707)]),
    "exp2": (lambda x: mpf(2) ** x, [uniform(-1074, 1024), uniform(-2, 2), scale(-20, 0, both)]),
    "expm1": (expm1, [uniform(-45, 709), uniform(-2, 2), scale(-20, 0, both), scale(-310, -1, both)]),
    "log": (log, [scale(-323, 308), uniform(0.5, 2), near(1, 0.1)]),
    "log2": (lambda x: log(x, 2), [scale(-323, 308), uniform(0.5, 2), near(1, 0.1)]),
    "log10": (log10, [scale(-323, 308), uniform(0.5, 2), near(1, 0.1)]),
    "log1p": (log1p, [scale(-320, 308), scale(-20, -1e-9, both), uniform(-1, 2)]),
    "log1m": (lambda x: log1p(-x), [scale(-20, -1e-9, both), uniform(-2, 1)]),
    "sin": (sin, [uniform(-7, 7), uniform(-1e6, 1e6), scale(-20, 0, both), near(math.pi, 0.1), scale(6, 300)]),
    "cos": (cos, [uniform(-7, 7), uniform(-1e6, 1e6), scale(-20, 0, both), near(math.pi / 2, 0.1), scale(6, 300)]),
    "tan": (tan, [uniform(-7, 7), uniform(-1e6, 1e6), scale(-20, 0, both), near(math.pi / 2, 0.1), scale(6, 300)]),
    "asin": (asin, [uniform(-1, 1), scale(-20, 0, both), near(0.5, 0.1)]),
    "acos": (acos, [uniform(-1, 1), scale(-20, 0, both), near(0.5, 0.1), lambda: 1 - 10 ** rng.uniform(-16, -1)]),
    "atan": (atan, [uniform(-5, 5), scale(-20, 20, both), near(1, 0.5)]),
    "sinh": (sinh, [uniform(-710, 710), uniform(-2, 2), scale(-20, 0, both)]),
    "cosh": (cosh, [uniform(-710, 710), uniform(-2, 2), scale(-20, 0, both)]),
    "tanh": (tanh, [uniform(-22, 22), uniform(-2, 2), scale(-20, 0, both)]),
    "asinh": (wide(asinh), [uniform(-10, 10), scale(-20, 300, both), uniform(-1, 1)]),
    "acosh": (acosh, [uniform(1, 10), scale(0, 300), lambda: 1 + 10 ** rng.uniform(-15, 0)]),
    "atanh": (atanh, [uniform(-1, 1), scale(-20, 0, both), lambda: 1 - 10 ** rng.uniform(-15, 0)]),
    "cbrt": (lambda x: sign(x) * cbrt(abs(x)), [scale(-323, 308, both), uniform(-8, 8)]),
    "inv_logit": (inv_logit, [uniform(-745, 40), uniform(-3, 3)]),
    "logit": (lambda p: log(p) - log1p(-p), [uniform(0, 1), scale(-300, 0), near(0.5, 0.3), near(0.25, 0.1)]),
    "log1p_exp": (lambda x: log1p(exp(x)), [uniform(-745, 745), uniform(-40, 40), uniform(-2, 2)]),
    "log1m_exp": (lambda x: log(-expm1(x)) if x > -1 else log1p(-exp(x)), [uniform(-745, 0), uniform(-40, 0), scale(-300, 0, (-1,)), uniform(-2, 0)]),
    "log_inv_logit": (lambda x: -log1p(exp(-x)), [uniform(-745, 745), uniform(-40, 40), uniform(-2, 2)]),
    "log1m_inv_logit": (lambda x: -log1p(exp(x)), [uniform(-745, 745), uniform(-40, 40), uniform(-2, 2)]),
    "erf": (erf, [uniform(-7, 7), uniform(-1.5, 1.5), scale(-20, 0, both)]),
    "erfc": (erfc, [uniform(-7, 26.5), uniform(-2, 6), scale(-20, 0, both), uniform(26, 27.2)]),
    "phi": (lambda x: erfc(-x / sqrt(2)) / 2, [uniform(-38, 9), uniform(-5, 3), uniform(-38.4, -37)]),
    "log_phi": (log_phi, [uniform(-40, 38), uniform(-3, 6), scale(0, 150, (-1,)), near(0, 0.5)]),
    "inv_phi": (inv_phi, [uniform(0, 1), scale(-307, 0), lambda: 1 - 10 ** rng.uniform(-15, -1), near(0.5, 0.1), uniform(0, 0.08)]),
    "lgamma": (loggamma, [uniform(0, 12), scale(-300, 300), near(1, 0.5), near(2, 0.5), uniform(0.4, 3)]),
    "digamma": (digamma, [uniform(0, 12), scale(-300, 300), near(1.4616321449683622, 0.3), uniform(0.4, 3)]),
    "trigamma": (lambda x: polygamma(1, x), [uniform(0, 12), scale(-150, 300), uniform(0.4, 3)]),
    "pow": (power, [(scale(-3, 3), uniform(-100, 100)), (scale(-300, 300), uniform(-1.02, 1.02)), (near(1, 0.5), scale(0, 8, both)), (uniform(0.1, 10), uniform(-5, 5))]),
    "atan2": (atan2, [(uniform(-2, 2), uniform(-2, 2)), (scale(-5, 5, both), scale(-5, 5, both)), (scale(-150, 150, both), scale(-150, 150, both))]),
    "hypot": (lambda x, y: sqrt(x * x + y * y), [(uniform(-2, 2), uniform(-2, 2)), (scale(-323, 300), scale(-323, 300))]),
    "lbeta": (lambda a, b: loggamma(a) + loggamma(b) - loggamma(a + b), [(uniform(0, 20), uniform(0, 20)), (scale(-3, 3), scale(-3, 3)), (scale(-5, 8), scale(-5, 8)), (uniform(5, 30), uniform(5, 30))]),
}

for name, (f, sources) in FUNCTIONS.items():
    done = 0
    while done < POINTS:
        source = sources[done % len(sources)]
        x = [s() for s in source] if isinstance(source, tuple) else [source()]
        try:
            exact = mpf(f(*[mpf(t) for t in x]))
        except (ZeroDivisionError, ValueError, TypeError, OverflowError):
            continue
        value = float(exact)
        if not math.isfinite(value):
            continue
        fraction = int(nint(100 * (exact - mpf(value)) / mpf(math.ulp(value))))
        print(name, *[bits(t) for t in x], bits(value), fraction)
        done += 1
