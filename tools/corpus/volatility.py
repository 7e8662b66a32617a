#!/usr/bin/env python3
"""Writes a centred stochastic volatility model, and simulated data of 1000, 3000 and 10 000 days.

    python3 tools/corpus/volatility.py FOLDER
    jensen fit FOLDER/1000/model.stan FOLDER/1000/data.json
"""

import json
import math
import random

import asked

PROGRAM = """\
data {
  int<lower=1> T;
  vector[T] y;
}
parameters {
  real mu;
  real<lower=-1, upper=1> phi;
  real<lower=0> sigma;
  vector[T] h;
}
model {
  mu ~ normal(0, 5);
  phi ~ uniform(-1, 1);
  sigma ~ normal(0, 1);
  h[1] ~ normal(mu, sigma / sqrt(1 - square(phi)));
  h[2 : T] ~ normal(mu + phi * (h[1 : T - 1] - mu), sigma);
  y ~ normal(0, exp(h / 2));
}
"""

MU, PHI, SIGMA = -1, 0.95, 0.25


def days(count):
    rng = random.Random(7)
    h, y = MU + rng.gauss(0, SIGMA / math.sqrt(1 - PHI * PHI)), []
    for day in range(count):
        if day:
            h = MU + PHI * (h - MU) + rng.gauss(0, SIGMA)
        y.append(rng.gauss(0, math.exp(h / 2)))
    return y


def main():
    out = asked.folder(__doc__)
    for count in (1000, 3000, 10000):
        folder = out / str(count)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.stan").write_text(PROGRAM)
        (folder / "data.json").write_text(json.dumps({"T": count, "y": days(count)}))


main()
