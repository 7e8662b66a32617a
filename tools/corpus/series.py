#!/usr/bin/env python3
"""Writes programs that build series from standard normal shocks, and simulated data.

    python3 tools/corpus/series.py FOLDER
    jensen fit FOLDER/walk/model.stan FOLDER/walk/data.json
"""

import json
import math
import random

import asked

GUIDE = """\
data {
  int<lower=1> T;
  vector[T] y;
}
parameters {
  real mu;
  real<lower=-1, upper=1> phi;
  real<lower=0> sigma;
  vector[T] shock;
}
transformed parameters {
  vector[T] h = shock * sigma;
  h[1] /= sqrt(1 - phi * phi);
  h += mu;
  for (t in 2 : T) {
    h[t] += phi * (h[t - 1] - mu);
  }
}
model {
  phi ~ uniform(-1, 1);
  sigma ~ cauchy(0, 5);
  mu ~ cauchy(0, 10);
  shock ~ std_normal();
  y ~ normal(0, exp(h / 2));
}
"""

WALK = """\
data {
  int<lower=1> T;
  array[T] int<lower=0> y;
}
parameters {
  real level;
  real<lower=0> sd_step;
  vector[T] shock;
}
model {
  level ~ normal(0, 2);
  sd_step ~ normal(0, 1);
  shock ~ std_normal();
  y ~ poisson_log(level + cumulative_sum(sd_step * shock));
}
"""

LEVEL = """\
data {
  int<lower=1> T;
  vector[T] y;
}
parameters {
  real start;
  vector[T] shock;
  real<lower=0> sd_step;
  real<lower=0> sd_noise;
}
transformed parameters {
  vector[T] x;
  x[1] = start + sd_step * shock[1];
  for (t in 2 : T) {
    x[t] = x[t - 1] + sd_step * shock[t];
  }
}
model {
  start ~ normal(0, 5);
  shock ~ normal(0, 1);
  sd_step ~ exponential(1);
  sd_noise ~ exponential(1);
  y ~ normal(x, sd_noise);
}
"""

TREND = """\
data {
  int<lower=1> T;
  vector[T] y;
}
parameters {
  real start;
  real start_slope;
  vector[T] shock;
  vector[T] turn;
  real<lower=0> sd_level;
  real<lower=0> sd_slope;
  real<lower=0> sd_noise;
}
transformed parameters {
  vector[T] level;
  vector[T] slope;
  slope[1] = start_slope + sd_slope * turn[1];
  level[1] = start + slope[1] + sd_level * shock[1];
  for (t in 2 : T) {
    slope[t] = slope[t - 1] + sd_slope * turn[t];
    level[t] = level[t - 1] + slope[t] + sd_level * shock[t];
  }
}
model {
  start ~ normal(0, 5);
  start_slope ~ normal(0, 1);
  shock ~ std_normal();
  turn ~ std_normal();
  sd_level ~ normal(0, 0.5);
  sd_slope ~ normal(0, 0.1);
  sd_noise ~ exponential(1);
  y ~ normal(level, sd_noise);
}
"""

AUTOREGRESSION = """\
data {
  int<lower=2> T;
  int<lower=1> n;
  array[T] int<lower=0, upper=n> y;
}
parameters {
  real mu;
  real a;
  real b;
  real<lower=0> s;
  vector[T] shock;
}
transformed parameters {
  vector[T] x;
  x[1] = s * shock[1];
  x[2] = a * x[1] + s * shock[2];
  for (t in 3 : T) {
    x[t] = a * x[t - 1] + b * x[t - 2] + s * shock[t];
  }
}
model {
  mu ~ normal(0, 2);
  a ~ normal(0, 0.5);
  b ~ normal(0, 0.5);
  s ~ normal(0, 1);
  shock ~ std_normal();
  y ~ binomial_logit(n, mu + x);
}
"""


def walk(rng, days, start, sd, keep=1.0):
    values = [start]
    while len(values) < days:
        values.append(keep * values[-1] + rng.gauss(0, sd))
    return values


def poisson(rng, mean):
    count, product = 0, rng.random()
    while product > math.exp(-mean):
        count, product = count + 1, product * rng.random()
    return count


def programs(rng):
    volatility = walk(rng, 1000, 0, 0.25, 0.95)
    yield "guide", GUIDE, {"T": 1000, "y": [math.exp((h - 1) / 2) * rng.gauss(0, 1) for h in volatility]}
    rates = walk(rng, 1000, 1.0, 0.1)
    yield "walk", WALK, {"T": 1000, "y": [poisson(rng, math.exp(x)) for x in rates]}
    yield "level", LEVEL, {"T": 800, "y": [x + rng.gauss(0, 0.5) for x in walk(rng, 800, 0.5, 0.15)]}
    slopes, level, seen = walk(rng, 400, 0.02, 0.02), 0.0, []
    for slope in slopes:
        level += slope + rng.gauss(0, 0.1)
        seen.append(level + rng.gauss(0, 0.5))
    yield "trend", TREND, {"T": 400, "y": seen}
    x = [0.0, 0.0]
    while len(x) < 600:
        x.append(0.8 * x[-1] + 0.1 * x[-2] + rng.gauss(0, 0.3))
    y = [sum(rng.random() < 1 / (1 + math.exp(-v)) for _ in range(20)) for v in x]
    yield "autoregression", AUTOREGRESSION, {"T": 600, "n": 20, "y": y}


def main():
    out = asked.folder(__doc__)
    for name, program, data in programs(random.Random(3)):
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.stan").write_text(program)
        (folder / "data.json").write_text(json.dumps(data))


if __name__ == "__main__":
    main()
