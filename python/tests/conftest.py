import signal
from pathlib import Path

import numpy as np
import pytest

# Background jobs of a shell ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[2]
SCHOOLS = ROOT / "data" / "eight_schools"

#: A regression with flat priors and unit noise, whose posterior is known.
LINE = """
data { int<lower=0> N; vector[N] x; vector[N] y; }
parameters { real alpha; real beta; }
model { y ~ normal(alpha + beta * x, 1); }
generated quantities {
  vector[N] log_lik;
  array[N] real y_rep = normal_rng(alpha + beta * x, 1);
  for (n in 1:N) log_lik[n] = normal_lpdf(y[n] | alpha + beta * x[n], 1);
}
"""


@pytest.fixture
def line():
    rng = np.random.default_rng(3)
    x = rng.normal(size=30)
    return {"N": 30, "x": x, "y": 1.0 + 2.0 * x + rng.normal(size=30)}


@pytest.fixture
def exact(line):
    """Mean and covariance of the posterior of ``line``."""
    design = np.stack([np.ones(line["N"]), line["x"]], axis=1)
    covariance = np.linalg.inv(design.T @ design)
    return covariance @ design.T @ line["y"], covariance
