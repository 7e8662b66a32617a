"""Writes logistic regressions with loops, and the same programs with vectors, for `jensen bench density`.

    python tools/loops.py FOLDER 100000
    /usr/bin/time -v jensen bench density FOLDER/double_loop.stan FOLDER/predictors.json --lanes 64

The folder receives vectors.stan, double_loop.stan and dot_product.stan with predictors.json (8 predictors), and groups_vectors.stan
and groups_loop.stan with groups.json (5 predictors, 100 groups). The data are simulated from the models.
"""

import json
import math
import pathlib
import random
import sys

DATA = "data { int N; int K; matrix[N, K] X; array[N] int<lower=0, upper=1> y; }"
GROUPS = ("data { int N; int K; int G; matrix[N, K] X; array[N] int<lower=0, upper=1> y; "
          "array[N] int<lower=1, upper=G> g; }")
PARAMETERS = "parameters { real a; vector[K] b; }"
GROUPED = "parameters { real m; real<lower=0> s; vector[G] a; vector[K] b; }"
PRIORS = "a ~ normal(0, 2); b ~ normal(0, 1);"
HIERARCHY = "m ~ normal(0, 2); s ~ normal(0, 1); a ~ normal(m, s); b ~ normal(0, 1);"

PROGRAMS = {
    "vectors": (DATA, PARAMETERS, PRIORS, "y ~ bernoulli_logit(a + X * b);"),
    "double_loop": (DATA, PARAMETERS, PRIORS, "for (n in 1:N) { real eta = a; for (k in 1:K) eta += X[n, k] * b[k]; "
                    "y[n] ~ bernoulli_logit(eta); }"),
    "dot_product": (DATA, PARAMETERS, PRIORS, "for (n in 1:N) y[n] ~ bernoulli_logit(a + dot_product(X[n], b));"),
    "groups_vectors": (GROUPS, GROUPED, HIERARCHY, "y ~ bernoulli_logit(a[g] + X * b);"),
    "groups_loop": (GROUPS, GROUPED, HIERARCHY, "for (n in 1:N) { real eta = a[g[n]]; for (k in 1:K) eta += X[n, k] * b[k]; "
                    "y[n] ~ bernoulli_logit(eta); }"),
}


def rows(rng, count, predictors, groups):
    slopes = [rng.gauss(0, 0.5) for _ in range(predictors)]
    levels = [rng.gauss(-0.3, 0.8 if groups > 1 else 0.0) for _ in range(groups)]
    x = [[round(rng.gauss(0, 1), 4) for _ in range(predictors)] for _ in range(count)]
    g = [rng.randrange(groups) for _ in range(count)]
    eta = [levels[k] + sum(b * v for b, v in zip(slopes, row)) for row, k in zip(x, g)]
    y = [int(rng.random() < 1 / (1 + math.exp(-e))) for e in eta]
    return {"N": count, "K": predictors, "X": x, "y": y, "G": groups, "g": [k + 1 for k in g]}


def main():
    folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (data, parameters, priors, likelihood) in PROGRAMS.items():
        (folder / f"{name}.stan").write_text(f"{data}\n{parameters}\nmodel {{\n  {priors}\n  {likelihood}\n}}\n")
    rng = random.Random(1)
    (folder / "predictors.json").write_text(json.dumps(rows(rng, count, 8, 1)))
    (folder / "groups.json").write_text(json.dumps(rows(rng, count, 5, 100)))


if __name__ == "__main__":
    main()
