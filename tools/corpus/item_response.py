#!/usr/bin/env python3
"""Writes a two-parameter item response model, and simulated answers of five hundred and five thousand people to twenty items.

    python3 tools/corpus/item_response.py FOLDER
    jensen fit FOLDER/item_response.stan FOLDER/5000.json
"""

import json
import math
import random

import asked

PROGRAM = """\
data {
  int<lower=1> J;
  int<lower=1> I;
  int<lower=1> N;
  array[N] int<lower=1, upper=J> person;
  array[N] int<lower=1, upper=I> item;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  vector[J] ability;
  vector<lower=0>[I] discrimination;
  vector[I] difficulty;
  real<lower=0> spread;
}
model {
  ability ~ std_normal();
  discrimination ~ lognormal(0, 0.5);
  difficulty ~ normal(0, spread);
  spread ~ normal(0, 2);
  y ~ bernoulli_logit(discrimination[item] .* (ability[person] - difficulty[item]));
}
"""

ITEMS = 20


def answers(people):
    rng = random.Random(11)
    ability = [rng.gauss(0, 1) for _ in range(people)]
    discrimination = [math.exp(rng.gauss(0, 0.4)) for _ in range(ITEMS)]
    difficulty = [rng.gauss(0, 1.2) for _ in range(ITEMS)]
    rows = [(j, i) for j in range(people) for i in range(ITEMS)]
    logit = (discrimination[i] * (ability[j] - difficulty[i]) for j, i in rows)
    return {
        "J": people,
        "I": ITEMS,
        "N": len(rows),
        "person": [j + 1 for j, _ in rows],
        "item": [i + 1 for _, i in rows],
        "y": [int(rng.random() < 1 / (1 + math.exp(-x))) for x in logit],
    }


def main():
    folder = asked.folder(__doc__)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "item_response.stan").write_text(PROGRAM)
    for people in (500, 5000):
        (folder / f"{people}.json").write_text(json.dumps(answers(people)))


main()
