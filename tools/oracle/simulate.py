"""Data drawn from known parameters, for the models that have no free real data.

Only `random.Random` with a fixed seed is used, whose streams are the same on
every platform and Python version.
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
