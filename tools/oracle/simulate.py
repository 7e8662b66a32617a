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
