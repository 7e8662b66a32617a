#!/usr/bin/env python3
"""Writes a hierarchical model in the form of a radon model over all states, and made-up data of three sizes.

    python3 tools/corpus/radon_states.py FOLDER        (needs numpy)
    jensen fit FOLDER/radon.stan FOLDER/777.json --family meanfield

777.json has 386 counties and 12 573 houses, 2005.json 1 000 and 20 000, 10005.json 5 000 and 60 000; a file's name is
the number of dimensions. The sizes of counties differ as in the radon data.
"""

import json

import asked
import numpy as np

PROGRAM = """\
data {
  int<lower=0> N;
  int<lower=0> J;
  array[N] int<lower=1, upper=J> county_idx;
  vector[N] floor_measure;
  vector[N] log_radon;
}
parameters {
  real<lower=0> sigma_y;
  real<lower=0> sigma_alpha;
  real<lower=0> sigma_beta;
  vector[J] alpha;
  vector[J] beta;
  real mu_alpha;
  real mu_beta;
}
model {
  vector[N] mu;
  sigma_y ~ normal(0, 1);
  sigma_beta ~ normal(0, 1);
  sigma_alpha ~ normal(0, 1);
  mu_alpha ~ normal(0, 10);
  mu_beta ~ normal(0, 10);
  alpha ~ normal(mu_alpha, sigma_alpha);
  beta ~ normal(mu_beta, sigma_beta);
  for (n in 1:N)
    mu[n] = alpha[county_idx[n]] + floor_measure[n] * beta[county_idx[n]];
  target += normal_lpdf(log_radon | mu, sigma_y);
}
"""

rng = np.random.default_rng(1)


def houses(counties, count):
    share = rng.lognormal(0, 1.2, counties)
    share /= share.sum()
    # Every county has a house.
    county = np.concatenate([np.arange(counties), rng.choice(counties, count - counties, p=share)]) + 1
    floor = (rng.random(count) < 0.2).astype(float)
    level, slope = rng.normal(1.4, 0.5, counties), rng.normal(-0.6, 0.25, counties)
    radon = level[county - 1] + slope[county - 1] * floor + rng.normal(0, 0.76, count)
    return {
        "J": counties,
        "N": count,
        "county_idx": county.tolist(),
        "floor_measure": floor.tolist(),
        "log_radon": np.round(radon, 4).tolist(),
    }


folder = asked.folder(__doc__)
folder.mkdir(parents=True, exist_ok=True)
(folder / "radon.stan").write_text(PROGRAM)
for counties, count in [(386, 12_573), (1_000, 20_000), (5_000, 60_000)]:
    (folder / f"{2 * counties + 5}.json").write_text(json.dumps(houses(counties, count)))
