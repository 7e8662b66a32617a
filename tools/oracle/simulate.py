"""Simulates data from known parameters for the models without free real data.

The functions use only `random.Random` with a fixed seed, whose streams are the same on every platform and Python version.
"""

import math
import random


def _inv_logit(x):
    return 1 / (1 + math.exp(-x))


def irt_2pl():
    """Answers of 100 persons to 20 items under the two-parameter logistic model."""
    rng = random.Random(20)
    items, persons = 20, 100
    a = [rng.lognormvariate(0, 0.5) for _ in range(items)]
    b = [rng.gauss(0.3, 1.2) for _ in range(items)]
    theta = [rng.gauss(0, 1) for _ in range(persons)]
    y = [[int(rng.random() < _inv_logit(a[i] * (theta[j] - b[i]))) for j in range(persons)]
         for i in range(items)]
    return {"I": items, "J": persons, "y": y}


def capture_recapture_mb():
    """80 animals on five occasions, caught more readily once caught; 60 rows of
    zeros added."""
    rng = random.Random(5)
    histories = []
    for _ in range(80):
        row = []
        for _ in range(5):
            row.append(int(rng.random() < (0.45 if any(row) else 0.3)))
        histories.append(row)
    return _augmented(histories, 5, 60)


def capture_recapture_mt():
    """100 animals on four occasions with different chances of capture; 70 rows of
    zeros added."""
    rng = random.Random(4)
    chance = [0.25, 0.4, 0.15, 0.5]
    return _augmented([[int(rng.random() < p) for p in chance] for _ in range(100)], 4, 70)


def _augmented(histories, occasions, extra):
    seen = [row for row in histories if any(row)]
    y = seen + [[0] * occasions for _ in range(extra)]
    return {"M": len(y), "T": occasions, "y": y}


def _path(rates, state, times, step=1e-3):
    """States at the times by the classical Runge-Kutta method with a fixed step."""
    t, found = 0.0, []
    for end in times:
        count = max(1, math.ceil((end - t) / step))
        h = (end - t) / count
        for _ in range(count):
            shift = lambda k, c: [y + c * h * d for y, d in zip(state, k)]
            k1 = rates(state)
            k2 = rates(shift(k1, 0.5))
            k3 = rates(shift(k2, 0.5))
            k4 = rates(shift(k3, 1))
            state = [y + h / 6 * (a + 2 * b + 2 * c + d) for y, a, b, c, d in zip(state, k1, k2, k3, k4)]
        t = end
        found.append(state)
    return found


def one_compartment():
    """Concentrations after a dose of 10, eliminated at most at 2.5 an hour."""
    rng = random.Random(31)
    dose, volume = 10.0, 2.0
    hours = [0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 10, 12]
    rates = lambda y: [-1.2 * y[0], 1.2 * y[0] - 2.5 * (y[1] / volume) / (1.8 + y[1] / volume)]
    exact = [y[1] / volume for y in _path(rates, [dose, 0.0], hours)]
    return {"N": len(hours), "dose": dose, "hours": hours,
            "concentration": [round(c * rng.lognormvariate(0, 0.1), 4) for c in exact]}


def soil_carbon():
    """Carbon respired over 150 days by soil with 10 mg, a fifth of it in a fast pool."""
    rng = random.Random(32)
    days = [1, 2, 4, 7, 10, 15, 20, 30, 45, 60, 75, 90, 105, 120, 135, 150]
    rates = lambda c: [0.2 * 0.015 * c[1] - 0.25 * c[0], 0.3 * 0.25 * c[0] - 0.015 * c[1]]
    exact = [10 - sum(c) for c in _path(rates, [2.0, 8.0], days, 0.02)]
    return {"N": len(days), "total": 10.0, "days": days,
            "respired": [round(max(0.0, x + rng.gauss(0, 0.1)), 4) for x in exact]}


def robertson():
    """Concentrations of two substances of Robertson's reaction, the second 20 000-fold."""
    rng = random.Random(33)
    times = [0.1, 0.4, 1, 2, 4, 7, 10, 20, 30, 40]

    def rates(y):
        slow, back, fast = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
        return [back - slow, slow - back - fast, fast]

    exact = _path(rates, [1.0, 0.0, 0.0], times, 2e-4)
    return {"N": len(times), "times": times,
            "first": [round(y[0] + rng.gauss(0, 0.02), 4) for y in exact],
            "second": [round(2e4 * y[1] + rng.gauss(0, 0.02), 4) for y in exact]}


def repression():
    """Levels of two genes at twelve doses of an inducer."""
    rng = random.Random(34)
    dose, level = [0.25 * k for k in range(12)], []
    for d in dose:
        u, v = 1.0, 1.0
        for _ in range(4000):
            u += 0.02 * (3 / (1 + v ** 1.5) + 0.1 - u)
            v += 0.02 * (2.5 * u / (1 + u + d * 0.8) - v)
        level.append([round(x * rng.lognormvariate(0, 0.15), 4) for x in (u, v)])
    return {"N": len(dose), "dose": dose, "level": level}


def survival_hazard():
    """Times of 40 units under a rising hazard that swings, watched for 12 units of time."""
    rng = random.Random(35)
    time, failed = [], []
    for _ in range(40):
        left, t, step = rng.expovariate(1), 0.0, 1e-3
        while left > 0 and t < 12:
            left -= step * math.exp(-2.5 + 0.3 * math.sqrt(t) + 0.5 * math.sin(t))
            t += step
        time.append(round(t, 3))
        failed.append(int(left <= 0))
    return {"N": len(time), "time": time, "failed": failed}
