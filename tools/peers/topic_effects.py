#!/usr/bin/env python3
"""Compares effects of covariates on topics with those of tomotopy's DMRModel, on simulated documents with known effects.

    python3 -m venv venv && venv/bin/pip install numpy scipy tomotopy
    venv/bin/python tools/peers/topic_effects.py target/release/jensen

The 3000 documents of 60 words come from eight topics over 400 words, with a number and a group of three levels as covariates. Both programs
learn the topics from the documents, which are matched to the true ones by their words. DMRModel makes 1000 iterations with the groups alone,
because its metadata are categories. The script prints root mean square errors of the changes of log shares and processor seconds.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import tomotopy
from scipy.optimize import linear_sum_assignment

TOPICS, WORDS, DOCUMENTS, TOKENS = 8, 400, 3000, 60
COLUMNS = ["x", "gg1", "gg2"]


def simulated(rng):
    words = rng.dirichlet(np.full(WORDS, 0.05), TOPICS)
    x, group = rng.normal(size=DOCUMENTS), rng.integers(0, 3, DOCUMENTS)
    coefficients = np.zeros((TOPICS, 4))
    coefficients[:, 0] = -1.5 + 0.4 * rng.normal(size=TOPICS)
    coefficients[:, 1] = 0.6 * rng.normal(size=TOPICS)
    coefficients[:, 2:] = 0.8 * rng.normal(size=(TOPICS, 2))
    design = np.c_[np.ones(DOCUMENTS), x, group == 1, group == 2].astype(float)
    theta = [rng.dirichlet(alpha) for alpha in np.exp(design @ coefficients.T)]
    drawn = [[f"w{rng.choice(WORDS, p=words[k])}" for k in rng.choice(TOPICS, TOKENS, p=p)] for p in theta]
    alpha = np.exp(coefficients @ design.mean(0))
    share = alpha / alpha.sum()
    return words, x, group, drawn, share, coefficients[:, 1:] - share @ coefficients[:, 1:]


def order(words, found):
    """Returns the found topic of each true topic, by the Bhattacharyya coefficients of their words."""
    rows, columns = linear_sum_assignment(-np.sqrt(found[:, None, :] * words[None]).sum(2))
    return rows[np.argsort(columns)]


def run(binary, *args):
    before = os.times().children_user
    done = subprocess.run([binary, "topics", *args], capture_output=True, text=True, check=True)
    return done.stdout, os.times().children_user - before


def main():
    words, x, group, drawn, share, truth = simulated(np.random.default_rng(3))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("d.jsonl", "w") as file:
            file.writelines(json.dumps({"text": document}) + "\n" for document in drawn)
        with open("d.csv", "w") as file:
            file.write("x,g\n" + "".join(f"{a},g{b}\n" for a, b in zip(x, group, strict=True)))
        binary = sys.argv[1]
        run(binary, "build", "d.jsonl", "--min-df", "1", "--max-df", "1.0", "--out", "c", "--quiet")
        run(binary, "fit", "c", "--topics", str(TOPICS), "--out", "t", "--quiet", "--seed", "1", "--passes", "20")
        printed, seconds = run(binary, "effects", "t", "d.jsonl", "--table", "d.csv", "--formula", "~ x + g", "--json")
        run(binary, "export", "t", "--out", "b.csv")
        head, *lines = open("b.csv").read().splitlines()
    found = np.zeros((TOPICS, WORDS))
    found[:, [int(word[1:]) for word in head.split(",")]] = [[float(p) for p in line.split(",")] for line in lines]
    rows = {(row["topic"], row["column"]): row for row in json.loads(printed)["effects"]}
    of = lambda key: np.array([[rows[k, column][key] for column in COLUMNS] for k in order(words, found)])
    error, sd = of("mean") - truth, of("sd")
    inside = np.mean(np.abs(error) < 1.645 * sd)
    rmse = lambda e: np.sqrt(np.mean(e**2))
    print(f"jensen: {seconds:.1f} s, error {rmse(error):.3f}, of groups {rmse(error[:, 1:]):.3f}, mean sd {sd.mean():.3f}, {inside:.0%} in 90 % intervals")

    model = tomotopy.DMRModel(k=TOPICS, seed=1, sigma=1.0)
    for document, level in zip(drawn, group, strict=True):
        model.add_doc(document, metadata=f"g{level}")
    begun = time.process_time()
    model.train(1000, workers=1)
    seconds = time.process_time() - begun
    found = np.zeros((TOPICS, WORDS))
    for k in range(TOPICS):
        found[k, [int(word[1:]) for word in model.used_vocabs]] = model.get_topic_word_dist(k)
    levels = [list(model.metadata_dict).index(f"g{level}") for level in range(3)]
    by_level = np.array(model.lambdas)[order(words, found)][:, levels]
    effects = by_level[:, 1:] - by_level[:, :1]
    print(f"tomotopy: {seconds:.1f} s, error of groups {rmse(effects - share @ effects - truth[:, 1:]):.3f}")


if __name__ == "__main__":
    main()
