"""Computes values, gradients and second derivatives of mpmath functions by finite differences in many digits, as statements of a model with
their contributions to the log density.

The other scripts of this folder use the module, and set the number of digits. With 40 digits, second derivatives have 18 correct digits.
"""

import json
import sys

from mpmath import mpf, nstr

STEP = mpf(10) ** -11


def case(statement, f, point):
    names = [f"x{i}" for i in range(len(point))]
    x = [mpf(v) for v in point]

    def at(*moves):
        moved = list(x)
        for i, s in moves:
            moved[i] += s * STEP
        return mpf(f(*moved))

    n = len(x)
    middle = at()
    gradient = [(at((i, 1)) - at((i, -1))) / (2 * STEP) for i in range(n)]
    second = [[mpf(0)] * n for _ in range(n)]
    for i in range(n):
        second[i][i] = (at((i, 1)) - 2 * middle + at((i, -1))) / STEP**2
        for j in range(i):
            cross = sum(s * t * at((i, s), (j, t)) for s in (1, -1) for t in (1, -1))
            second[i][j] = second[j][i] = cross / (4 * STEP**2)
    number = lambda v: float(nstr(v, 20))
    return {
        "statement": f"target += {statement};",
        "parameters": names,
        "at": [float(v) for v in point],
        "value": number(middle),
        "gradient": [number(v) for v in gradient],
        "second": [[number(v) for v in row] for row in second],
    }


def write(cases):
    sys.stdout.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
