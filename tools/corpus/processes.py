#!/usr/bin/env python3
"""Writes programs with a Gaussian process whose values are parameters with a multivariate normal prior, and simulated data.

    python3 tools/corpus/processes.py FOLDER
    jensen fit FOLDER/counts/model.stan FOLDER/counts/data.json
"""

import json
import math
import random

import asked

PROGRAM = """\
data {
  int<lower=1> N;
  array[N] real x;
  OUTCOME
}
parameters {
  real<lower=0> rho;
  real<lower=0> alpha;
  PARAMETER
  vector[N] f;
}
model {
  matrix[N, N] K = gp_exp_quad_cov(x, alpha, rho) + diag_matrix(rep_vector(1e-6, N));
  rho ~ inv_gamma(5, 5);
  alpha ~ normal(0, 2);
  f ~ multi_normal(rep_vector(0, N), K);
  LIKELIHOOD
}
"""


def poisson(rng, mean):
    """A Poisson draw by products of uniforms."""
    limit, product, count = math.exp(-mean), rng.random(), 0
    while product >= limit:
        product *= rng.random()
        count += 1
    return count


def numbers(rng, x):
    return round(math.sin(1.5 * x) + 0.5 * x + rng.gauss(0, 0.08), 4)


def counts(rng, x):
    return poisson(rng, math.exp(0.7 + math.sin(1.5 * x)))


def signs(rng, x):
    return int(rng.random() < 1 / (1 + math.exp(-2.5 * math.sin(1.5 * x))))


KINDS = {
    "counts": ("array[N] int<lower=0> y;", "real a;", "a ~ normal(0, 2);\n  y ~ poisson_log(a + f);", counts, (20, 60)),
    "signs": ("array[N] int<lower=0, upper=1> y;", "real a;", "a ~ normal(0, 2);\n  y ~ bernoulli_logit(a + f);", signs, (50,)),
    "numbers": ("vector[N] y;", "real<lower=0> sigma;", "sigma ~ normal(0, 1);\n  y ~ normal(f, sigma);", numbers, (40,)),
}


def main():
    out = asked.folder(__doc__)
    for name, (outcome, parameter, likelihood, draw, sizes) in KINDS.items():
        program = PROGRAM.replace("OUTCOME", outcome).replace("PARAMETER", parameter).replace("LIKELIHOOD", likelihood)
        for n in sizes:
            folder = out / f"{name}_{n}"
            folder.mkdir(parents=True, exist_ok=True)
            rng = random.Random(n)
            x = [round(-3 + 6 * i / (n - 1), 4) for i in range(n)]
            (folder / "model.stan").write_text(program)
            (folder / "data.json").write_text(json.dumps({"N": n, "x": x, "y": [draw(rng, at) for at in x]}))


if __name__ == "__main__":
    main()
