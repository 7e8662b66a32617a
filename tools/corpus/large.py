#!/usr/bin/env python3
"""Writes seven large models with simulated data: a horseshoe with thousands of predictors, a map of 2000 regions, an
election survey with six groupings, epidemics in 14 countries, a process on a grid, a process on a line, and a network.

    python3 tools/corpus/large.py FOLDER
    jensen fit FOLDER/map/model.stan FOLDER/map/data.json
"""

import json
import math
import random

import asked

HORSESHOE = """\
data {
  int<lower=1> N;
  int<lower=1> D;
  matrix[N, D] x;
  array[N] int<lower=0, upper=1> y;
  real<lower=0> typical;
}
parameters {
  real a;
  vector[D] z;
  vector<lower=0>[D] lambda;
  real<lower=0> tau;
  real<lower=0> slab;
}
transformed parameters {
  vector[D] b = z .* (tau * lambda ./ sqrt(1 + square(tau * lambda) / slab));
}
model {
  a ~ normal(0, 2);
  z ~ std_normal();
  lambda ~ cauchy(0, 1);
  tau ~ cauchy(0, typical);
  slab ~ inv_gamma(2, 8);
  y ~ bernoulli_logit_glm(x, a, b);
}
"""

MAP = """\
data {
  int<lower=1> N;
  int<lower=1> edges;
  array[edges] int<lower=1, upper=N> left;
  array[edges] int<lower=1, upper=N> right;
  array[N] int<lower=0> cases;
  vector<lower=0>[N] expected;
  vector[N] x;
  real<lower=0> scaling;
}
parameters {
  real a;
  real b;
  real<lower=0> sigma;
  real<lower=0, upper=1> share;
  vector[N] apart;
  vector[N] joint;
}
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  sigma ~ normal(0, 1);
  share ~ beta(0.5, 0.5);
  apart ~ std_normal();
  target += -0.5 * dot_self(joint[left] - joint[right]);
  sum(joint) ~ normal(0, 0.001 * N);
  cases ~ poisson_log(log(expected) + a + b * x
                      + sigma * (sqrt(1 - share) * apart + sqrt(share / scaling) * joint));
}
"""

ELECTION = """\
data {
  int<lower=1> N;
  array[N] int<lower=0, upper=1> y;
  vector[N] woman;
  array[N] int<lower=1, upper=51> state;
  array[N] int<lower=1, upper=6> age;
  array[N] int<lower=1, upper=5> education;
  array[N] int<lower=1, upper=4> group;
  array[N] int<lower=1, upper=204> group_state;
  array[N] int<lower=1, upper=30> age_education;
  vector[51] previous;
}
parameters {
  real a;
  real b_woman;
  real b_previous;
  vector<lower=0>[6] sigma;
  vector[51] z_state;
  vector[6] z_age;
  vector[5] z_education;
  vector[4] z_group;
  vector[204] z_group_state;
  vector[30] z_age_education;
}
model {
  a ~ normal(0, 1.5);
  b_woman ~ normal(0, 1);
  b_previous ~ normal(0, 2);
  sigma ~ normal(0, 1);
  z_state ~ std_normal();
  z_age ~ std_normal();
  z_education ~ std_normal();
  z_group ~ std_normal();
  z_group_state ~ std_normal();
  z_age_education ~ std_normal();
  y ~ bernoulli_logit(a + b_woman * woman + b_previous * previous[state] + sigma[1] * z_state[state]
                      + sigma[2] * z_age[age] + sigma[3] * z_education[education] + sigma[4] * z_group[group]
                      + sigma[5] * z_group_state[group_state] + sigma[6] * z_age_education[age_education]);
}
"""

EPIDEMIC = """\
data {
  int<lower=1> C;
  int<lower=1> T;
  int<lower=1> K;
  array[T, C] int<lower=0> deaths;
  array[K] matrix[T, C] measure;
  vector[T] serial;
  vector[T] delay;
  array[C] int<lower=1, upper=T> first;
}
transformed data {
  vector[T] serial_reversed = reverse(serial);
  vector[T] delay_reversed = reverse(delay);
}
parameters {
  vector<lower=0>[C] r0;
  vector<lower=0>[C] seeds;
  real<lower=0> typical_seed;
  vector<lower=0>[K] effect;
  vector[C] last;
  real<lower=0> spread_last;
  vector<lower=0>[C] fatality;
  real<lower=0> spread_r0;
  real<lower=0> size;
}
transformed parameters {
  matrix[T, C] expected;
  for (c in 1 : C) {
    vector[T] infections = rep_vector(0, T);
    vector[T] reproduction = rep_vector(0, T);
    for (k in 1 : K)
      reproduction += effect[k] * measure[k][ : , c];
    reproduction = r0[c] * exp(-reproduction - last[c] * measure[K][ : , c]);
    infections[1 : 6] = rep_vector(seeds[c], 6);
    for (t in 7 : T)
      infections[t] = reproduction[t] * dot_product(infections[1 : t - 1], serial_reversed[T - t + 2 : T]);
    expected[1, c] = 1e-9;
    for (t in 2 : T)
      expected[t, c] = 1e-9 + fatality[c] * 0.01 * dot_product(infections[1 : t - 1], delay_reversed[T - t + 2 : T]);
  }
}
model {
  typical_seed ~ exponential(0.03);
  seeds ~ exponential(1 / typical_seed);
  spread_r0 ~ normal(0, 0.5);
  r0 ~ normal(3.3, spread_r0);
  effect ~ gamma(0.5, 1);
  spread_last ~ normal(0, 0.2);
  last ~ normal(0, spread_last);
  fatality ~ normal(1, 0.1);
  size ~ normal(0, 5);
  for (c in 1 : C)
    deaths[first[c] : T, c] ~ neg_binomial_2(expected[first[c] : T, c], size);
}
"""

GRID = """\
data {
  int<lower=1> R;
  int<lower=1> C;
  array[R] real row;
  array[C] real column;
  array[R, C] int<lower=0> y;
}
parameters {
  real a;
  real<lower=0> sigma;
  real<lower=0> length_row;
  real<lower=0> length_column;
  matrix[R, C] z;
}
transformed parameters {
  matrix[R, C] f = cholesky_decompose(add_diag(gp_exp_quad_cov(row, 1, length_row), 1e-6)) * z
                   * cholesky_decompose(add_diag(gp_exp_quad_cov(column, 1, length_column), 1e-6))' * sigma;
}
model {
  a ~ normal(0, 2);
  sigma ~ normal(0, 1);
  length_row ~ inv_gamma(5, 5);
  length_column ~ inv_gamma(5, 5);
  to_vector(z) ~ std_normal();
  for (r in 1 : R)
    y[r] ~ poisson_log(a + f[r]);
}
"""

CURVE = """\
data {
  int<lower=1> N;
  array[N] real t;
  array[N] int<lower=0> y;
}
transformed data {
  matrix[N, N] L = cholesky_decompose(add_diag(gp_exp_quad_cov(t, 1.0, 0.1), 1e-4));
}
parameters {
  vector[N] f;
}
model {
  f ~ multi_normal_cholesky(rep_vector(1, N), L);
  y ~ poisson_log(f);
}
"""

NETWORK = """\
data {
  int<lower=1> N;
  int<lower=1> D;
  int<lower=1> H;
  matrix[N, D] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  matrix[D, H] w;
  vector[H] shift;
  vector[H] v;
  real a;
}
model {
  to_vector(w) ~ normal(0, 1);
  shift ~ normal(0, 1);
  v ~ normal(0, 1);
  a ~ normal(0, 1);
  y ~ bernoulli_logit(a + tanh(x * w + rep_matrix(shift', N)) * v);
}
"""


def outcome(rng, logit):
    return int(rng.random() < 1 / (1 + math.exp(-logit)))


def poisson(rng, mean):
    """Counts arrivals of a process of rate one. The cost grows with the mean."""
    count, time = 0, rng.expovariate(1)
    while time < mean:
        count, time = count + 1, time + rng.expovariate(1)
    return count


def horseshoe(predictors, rows=100, relevant=5):
    rng = random.Random(predictors)
    x = [[rng.gauss(0, 1) for _ in range(predictors)] for _ in range(rows)]
    logits = [2 * sum(row[:relevant]) for row in x]
    share = relevant / (predictors - relevant)
    return {
        "N": rows,
        "D": predictors,
        "x": x,
        "y": [outcome(rng, logit) for logit in logits],
        "typical": share * 2 / math.sqrt(rows),
    }


def lattice(rows=40, columns=50):
    """Returns counts on a lattice whose true field is smooth."""
    rng = random.Random(5)
    number = [[r * columns + c + 1 for c in range(columns)] for r in range(rows)]
    pairs = [(number[r][c], number[r][c + 1]) for r in range(rows) for c in range(columns - 1)]
    pairs += [(number[r][c], number[r + 1][c]) for r in range(rows - 1) for c in range(columns)]
    n = rows * columns
    x = [rng.gauss(0, 1) for _ in range(n)]
    expected = [math.exp(rng.gauss(1.5, 0.6)) for _ in range(n)]
    field = [math.sin(r / 6) * math.cos(c / 8) for r in range(rows) for c in range(columns)]
    log_rate = [0.4 * s + rng.gauss(0, 0.25) + 0.2 * v for s, v in zip(field, x)]
    return {
        "N": n,
        "edges": len(pairs),
        "left": [a for a, _ in pairs],
        "right": [b for _, b in pairs],
        "cases": [poisson(rng, e * math.exp(s)) for e, s in zip(expected, log_rate)],
        "expected": expected,
        "x": x,
        # The geometric mean of the variances of the field, from the eigenvalues of the lattice.
        "scaling": variance(rows, columns),
    }


def variance(rows, columns):
    """Returns the geometric mean of the marginal variances of an intrinsic field on a lattice. The eigenvectors of the
    lattice are products of cosines."""

    def waves(n):
        weight = [math.sqrt((1 if k == 0 else 2) / n) for k in range(n)]
        wave = [[weight[k] * math.cos(math.pi * k * (i + 0.5) / n) for i in range(n)] for k in range(n)]
        return [2 - 2 * math.cos(math.pi * k / n) for k in range(n)], wave

    (down, rows_of), (across, columns_of) = waves(rows), waves(columns)
    # First the sum over waves along the columns, for each wave along the rows.
    parts = [
        [
            sum(columns_of[k][c] ** 2 / (u + across[k]) for k in range(columns) if u + across[k] > 1e-12)
            for c in range(columns)
        ]
        for u in down
    ]
    logs = [
        math.log(sum(rows_of[j][r] ** 2 * parts[j][c] for j in range(rows)))
        for r in range(rows)
        for c in range(columns)
    ]
    return math.exp(sum(logs) / len(logs))


def election(rows=11000):
    rng = random.Random(3)
    sizes = {"state": 51, "age": 6, "education": 5, "group": 4, "group_state": 204, "age_education": 30}
    spread = {"state": 0.3, "age": 0.2, "education": 0.15, "group": 0.6, "group_state": 0.2, "age_education": 0.1}
    effects = {name: [rng.gauss(0, spread[name]) for _ in range(size)] for name, size in sizes.items()}
    previous = [rng.gauss(0, 0.3) for _ in range(51)]
    weights = [rng.expovariate(1) + 0.1 for _ in range(51)]
    data = {name: [] for name in ["y", "woman", *sizes]}
    for _ in range(rows):
        state = rng.choices(range(51), weights)[0]
        age, education = rng.randrange(6), rng.randrange(5)
        group = rng.choices(range(4), [70, 12, 13, 5])[0]
        cell = {
            "state": state,
            "age": age,
            "education": education,
            "group": group,
            "group_state": 51 * group + state,
            "age_education": 5 * age + education,
        }
        woman = rng.randrange(2) - 0.5
        logit = -0.2 + 0.3 * woman + previous[state] + sum(effects[name][k] for name, k in cell.items())
        data["y"].append(outcome(rng, logit))
        data["woman"].append(woman)
        for name, k in cell.items():
            data[name].append(k + 1)
    return {"N": rows, "previous": previous, **data}


def gamma_weights(days, shape, mean):
    """Returns the mass of a gamma distribution in each day, up to normalisation."""
    density = [(t + 0.5) ** (shape - 1) * math.exp(-shape * (t + 0.5) / mean) for t in range(days)]
    total = sum(density)
    return [d / total for d in density]


def epidemic(countries=14, days=90, measures=5):
    rng = random.Random(8)
    serial, delay = gamma_weights(days, 2.6, 6.5), gamma_weights(days, 5.0, 20.0)
    effects = [0.1, 0.2, 0.05, 0.15, 0.9]
    start = [sorted(rng.randrange(28, 48) for _ in range(measures)) for _ in range(countries)]
    measure = [[[int(t >= start[c][k]) for c in range(countries)] for t in range(days)] for k in range(measures)]
    deaths = [[0] * countries for _ in range(days)]
    first = []
    for c in range(countries):
        r0, last, seed = rng.gauss(3.3, 0.3), rng.gauss(0, 0.15), rng.expovariate(1 / 40)
        infections = []
        for t in range(days):
            if t < 6:
                infections.append(seed)
                continue
            total = sum(effects[k] * measure[k][t][c] for k in range(measures)) + last * measure[-1][t][c]
            pressure = sum(infections[s] * serial[t - s - 1] for s in range(t))
            infections.append(r0 * math.exp(-total) * pressure)
        for t in range(1, days):
            mean = 0.01 * sum(infections[s] * delay[t - s - 1] for s in range(t))
            deaths[t][c] = poisson(rng, mean * rng.gammavariate(8, 1 / 8))
        sums = [sum(deaths[s][c] for s in range(t + 1)) for t in range(days)]
        first.append(max(2, next((t + 1 for t, total in enumerate(sums) if total >= 10), days) - 10))
    return {
        "C": countries,
        "T": days,
        "K": measures,
        "deaths": deaths,
        "measure": measure,
        "serial": serial,
        "delay": delay,
        "first": first,
    }


def curve(points=450):
    rng = random.Random(2)
    t = [i / points for i in range(points)]
    return {"N": points, "t": t, "y": [poisson(rng, math.exp(1 + math.sin(8 * x))) for x in t]}


def grid(rows=18, columns=24):
    rng = random.Random(9)
    row = [4 * r / rows - 2 for r in range(rows)]
    column = [4 * c / columns - 2 for c in range(columns)]
    y = [[poisson(rng, math.exp(1 + 0.7 * math.sin(2 * u) * math.cos(1.5 * v))) for v in column] for u in row]
    return {"R": rows, "C": columns, "row": row, "column": column, "y": y}


def network(rows=300, inputs=6, hidden=10):
    rng = random.Random(12)
    x = [[rng.gauss(0, 1) for _ in range(inputs)] for _ in range(rows)]
    logits = [3 * math.tanh(2 * row[0] * row[1]) + row[2] for row in x]
    return {"N": rows, "D": inputs, "H": hidden, "x": x, "y": [outcome(rng, logit) for logit in logits]}


def main():
    out = asked.folder(__doc__)
    models = {
        "horseshoe_3000": (HORSESHOE, lambda: horseshoe(3000)),
        "horseshoe_12000": (HORSESHOE, lambda: horseshoe(12000)),
        "map": (MAP, lattice),
        "election": (ELECTION, election),
        "epidemic": (EPIDEMIC, epidemic),
        "grid": (GRID, grid),
        "curve": (CURVE, curve),
        "network": (NETWORK, network),
    }
    for name, (program, data) in models.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.stan").write_text(program)
        (folder / "data.json").write_text(json.dumps(data()))


main()
