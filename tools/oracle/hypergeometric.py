"""Computes values, gradients and second derivatives of hypergeometric functions by mpmath with 50 digits.

    pip install mpmath; python hypergeometric.py > ../../crates/stan/tests/reference/hypergeometric.json
"""

from mpmath import *

from derivatives import case, write

mp.dps = 50

F2 = "hypergeometric_2F1(x0, x1, x2, x3)"
F3 = "hypergeometric_3F2([x0, x1, x2]', [x3, x4]', x5)"


def pfq(p, q):
    """The function with p + q + 1 arguments."""
    return lambda *x: hyper(x[:p], x[p : p + q], x[p + q])


FUNCTIONS = [
    # By the series, in both directions; along Taylor series towards 1, with a difference c - a - b that is whole, negative or
    # neither; by Pfaff's transformation, far out too; where terms cancel; and where a number of terms ends.
    (F2, hyp2f1, [(0.7, 1.3, 2.1, 0.3), (0.7, 1.3, 2.1, -0.4), (-1.6, 2.4, 0.8, 0.45), (12, 7.5, 9.25, 0.2), (0.7, 1.3, 2.1, 0.0)]),
    (F2, hyp2f1, [(0.7, 1.3, 2.1, 0.8), (0.5, 1.5, 3, 0.97), (0.5, 1.5, 2, 0.9999), (3.5, 4.25, 2.5, 0.9), (20, 0.5, 21.5, 0.95)]),
    ("hypergeometric_2F1(x0, x1, x2, 0.99999999)", lambda a, b, c: hyp2f1(a, b, c, mpf(0.99999999)), [(0.5, 0.25, 1.75), (0.7, 1.3, 1.5)]),
    (F2, hyp2f1, [(0.7, 1.3, 2.1, -0.9), (0.7, 1.3, 2.1, -3), (2.5, 0.25, 1.5, -40), (1.5, 1.5, 2.5, -1e6), (-2.5, 3.25, 1.5, -8)]),
    (F2, hyp2f1, [(30, -25.5, 1.5, 0.45), (-20.25, 24, 0.5, 0.9), (8, 9, -3.5, 0.4)]),
    (F2, hyp2f1, [(-3, 1.3, 2.1, 0.4), (-2, 0.6, 1.25, -2.5)]),
    ("hypergeometric_2F1(-3, x0, x1, x2)", lambda b, c, z: hyp2f1(-3, b, c, z), [(1.3, 2.1, 2.5), (0.4, 0.7, -9)]),
    ("hypergeometric_2F1(x0, x1, x2, 1)", lambda a, b, c: hyp2f1(a, b, c, 1), [(0.7, 0.4, 2.6), (1.5, 0.25, 3)]),
    (F3, pfq(3, 2), [(0.7, 1.3, 0.4, 2.1, 1.6, 0.35), (1.5, 2.25, 3, 4.5, 0.75, -0.5), (1.5, 2.25, 3, 4.5, 0.75, 0.9), (1.5, 2.25, 3, 4.5, 0.75, -0.85), (0.7, 1.3, 0.4, 2.1, 1.6, -0.98), (-2, 1.3, 0.4, 2.1, 1.6, 0.35)]),
    ("hypergeometric_3F2({x0, x1, x2}, {x3, x4}, 1)", lambda *x: hyper(x[:3], x[3:], 1), [(1.5, 0.25, 0.5, 4.5, 0.75)]),
    ("hypergeometric_3F2({x0, x1, x2}, {x3, x4}, -1)", lambda *x: hyper(x[:3], x[3:], -1), [(0.7, 1.3, 0.4, 2.1, 1.6)]),
    ("hypergeometric_3F2([-2, x0, x1], [x2, x3], x4)", lambda a, b, c, d, z: hyper([-2, a, b], [c, d], z), [(0.7, 1.3, 2.1, 1.6, 3.5)]),
    ("hypergeometric_pFq(x0 * rep_vector(1, 1), [x1]', x2)", pfq(1, 1), [(0.7, 1.6, 2.5), (0.7, 1.6, -30), (3.25, 0.5, 60)]),
    ("hypergeometric_pFq([x0, x1], [x2], x3)", pfq(2, 1), [(0.7, 1.3, 2.1, 0.8)]),
    ("hypergeometric_pFq([x0, x1]', {x2, x3}, x4)", pfq(2, 2), [(0.7, 1.3, 2.1, 0.6, 4), (0.7, 1.3, 2.1, 0.6, -25)]),
    ("hypergeometric_pFq({x0}, [x1, x2, x3], x4)", pfq(1, 3), [(0.7, 2.1, 0.6, 1.2, -7), (-1.5, 2.1, 0.6, 1.2, 90)]),
    ("hypergeometric_pFq(rep_array(0.0, 0), {x0}, x1)", lambda b, z: hyp0f1(b, z), [(1.5, -4), (0.5, 30)]),
    ("hypergeometric_pFq({-2.0, x0, x1}, {x2}, x3)", lambda a, b, c, z: hyper([-2, a, b], [c], z), [(0.7, 1.3, 2.1, 3.5)]),
]

write([case(text, f, point) for text, f, points in FUNCTIONS for point in points])
