"""Measures the costs on the book's page on Python: `python tools/python_costs.py path/to/jensen`, with the command of the same build."""

import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import jensen

SCHOOLS = Path(__file__).resolve().parents[1] / "data" / "eight_schools"
PROGRAM, DATA = SCHOOLS / "eight_schools.stan", SCHOOLS / "eight_schools.json"


def least(work, times):
    """Returns the shortest of several times in seconds, because other load only adds time."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def importing():
    run = lambda code: subprocess.run([sys.executable, "-c", code], check=True)  # noqa: E731
    return least(lambda: run("import jensen"), 20) - least(lambda: run("pass"), 20)


def fitting(command):
    jensen.fit(PROGRAM, DATA)
    theirs = lambda: subprocess.run([command, "fit", PROGRAM, DATA, "-q"], stdout=subprocess.DEVNULL)  # noqa: E731
    return least(lambda: jensen.fit(PROGRAM, DATA), 10), least(theirs, 10)


def calling():
    """Returns the median time between two calls of a Python density: the cost of a call and of the fit's step."""
    between, last = [], 0.0

    def density(points):
        nonlocal last
        between.append(time.perf_counter() - last)
        given = -0.5 * (points**2).sum(axis=1), -points
        last = time.perf_counter()
        return given

    # Noise never meets this rule, so the fit makes all allowed steps.
    settings = {"method": "advi", "family": "meanfield", "tol": 1e-12, "advi_iters": 20_000, "max_iters": 20_000, "threads": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jensen.fit(density=density, dim=2, **settings)
    return np.median(between)


def gradients():
    model = jensen.Model(PROGRAM).bind(DATA)
    one, many = np.zeros(model.dim), np.zeros((256, model.dim))
    rounds = 1000
    return [least(lambda: [model.gradient(z) for _ in range(rounds)], 10) / rounds for z in (one, many)]


print(f"import jensen                            {1e3 * importing():7.1f} ms")
mine, theirs = fitting(sys.argv[1])
print(f"jensen.fit, eight schools                {1e3 * mine:7.1f} ms")
print(f"jensen fit, eight schools                {1e3 * theirs:7.1f} ms")
print(f"between two calls of a Python density    {1e6 * calling():7.1f} µs")
one, many = gradients()
print(f"Model.gradient, one point                {1e6 * one:7.1f} µs")
print(f"Model.gradient, 256 points               {1e6 * many:7.1f} µs")
