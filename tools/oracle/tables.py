#!/usr/bin/env python3
"""Writes models/tables: small tables with known answers, with raw scales, heavy tails, collinear and constant columns, or few rows.

    tools/oracle/tables.py models/tables

The folder receives the tables as CSV, and cases.json. Each case has the fit, the smallest bound in nats that a trusted fit may have,
whether the fit must be trusted, and words of the expected messages. For mixtures, chains and factors the smallest bound is the log density
of the rows under the true model, less log(rows) for each parameter, which is twice the cost of a posterior (Schwarz 1978). For auto-encoders
it is the mean log density of a record under independent normals with the rows' means and variances, less half a percent for each value.
"""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

LOG_2PI = math.log(2 * math.pi)


def log_normal(x, mean, sd):
    return -0.5 * (LOG_2PI + ((x - mean) / sd) ** 2) - math.log(sd)


def log_sum_exp(terms):
    top = max(terms)
    return top + math.log(sum(math.exp(t - top) for t in terms))


class Suite:
    """Reads the cases of a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.cases = []

    def table(self, name, columns, rows):
        lines = [",".join(columns)] + [",".join(repr(float(x)) for x in row) for row in rows]
        (self.folder / f"{name}.csv").write_text("\n".join(lines) + "\n")

    def case(self, name, half, request, least=None, trusted=None, says=None, refused=None, table=None):
        case = {"name": name, "table": f"{table or name}.csv", "half": half, "request": request}
        more = {"least": least, "trusted": trusted, "says": says, "refused": refused}
        self.cases.append(case | {key: value for key, value in more.items() if value is not None})

    def write(self):
        (self.folder / "cases.json").write_text(json.dumps(self.cases, indent=1) + "\n")


def clusters(rng, means, sd, each):
    """Rows of clusters in turn, and their log density."""
    rows, log = [], 0.0
    for n in range(each * len(means)):
        row = [rng.gauss(m, sd) for m in means[n % len(means)]]
        rows.append(row)
        near = [sum(log_normal(x, m, sd) for x, m in zip(row, mean)) for mean in means]
        log += log_sum_exp(near) - math.log(len(means))
    return rows, log


def moved(rows, maps):
    """Returns rows in other units, and the change of their log density."""
    there = [[c + d * x for x, (c, d) in zip(row, maps)] for row in rows]
    return there, -len(rows) * sum(math.log(abs(d)) for _, d in maps)


def parameters(k, dim):
    return k * (dim + dim * (dim + 1) / 2 + 1)


def points(suite):
    rng = random.Random(1)
    three = [[0, 0], [8, 0], [0, 8]]
    rows, log = clusters(rng, three, 1.0, 30)
    slack = parameters(3, 2) * math.log(90)
    for name, maps in {
        "micro": [(0, 1e-6), (0, 1)],
        "mega": [(5e6, 1e6), (-3e9, 1e3)],
        "far": [(1e6, 1), (1e6, 1)],
        "money": [(250000, 80000), (2.5, 0.4)],
    }.items():
        there, gain = moved(rows, maps)
        suite.table(name, ["a", "b"], there)
        least = log + gain - slack
        suite.case(name, "mixture", {"components": 3}, least=least, trusted=True)
        suite.case(f"{name}_diagonal", "mixture", {"components": 3, "covariance": "diagonal"}, least=least, trusted=True, table=name)
    suite.table("constant", ["a", "k", "b"], [[a, 3.5, b] for a, b in rows])
    suite.case("constant", "mixture", {"components": 3}, least=log - slack, trusted=True, says="`k` (3.5)")
    suite.table("copy", ["a", "b", "inches"], [[a, b, 100 + a / 2.54] for a, b in rows])
    suite.case("copy", "mixture", {"components": 3}, least=log - slack, trusted=True, says="`inches` (of `a`)")
    # One direction has a thousandth of the standard deviation, and the prior of components must have it too.
    off = [rng.gauss(0, 1e-3) for _ in rows]
    suite.table("collinear", ["a", "b", "c"], [[a, b, a + e] for (a, b), e in zip(rows, off)])
    thin = log + sum(log_normal(e, 0, 1e-3) for e in off)
    suite.case("collinear", "mixture", {"components": 3}, least=thin - parameters(3, 3) * math.log(90), trusted=True)
    suite.table("same_rows", ["a", "b"], [[1, 2]] * 20)
    suite.case("same_rows", "mixture", {"components": 2}, refused="every column is constant")
    five = [[0, 0, 0], [10, 0, 0], [0, 10, 0], [0, 0, 10], [10, 10, 10]]
    rows, log = clusters(rng, five, 1.0, 40)
    suite.table("five", ["a", "b", "c"], rows)
    least = log - parameters(5, 3) * math.log(200)
    for temper in ["none", "anneal=50", "global"]:
        for seed in range(3):
            request = {"components": 5, "points": {"temper": temper, "seed": seed}}
            suite.case(f"five_{temper.split('=')[0]}_{seed}", "mixture", request, least=least, trusted=True, table="five")
    rows, log = clusters(rng, [[0, 0]], 1.0, 80)
    suite.table("one", ["a", "b"], rows)
    for k in [1, 2, 4]:
        suite.case(f"one_as_{k}", "mixture", {"components": k}, least=log - parameters(k, 2) * math.log(80), table="one")
    tails = [[rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 1 / 1.5)) for _ in range(2)] for _ in range(150)]
    density = lambda x: math.lgamma(2) - math.lgamma(1.5) - 0.5 * math.log(3 * math.pi) - 2 * math.log1p(x * x / 3)
    log = sum(density(x) for row in tails for x in row)
    suite.table("tails", ["a", "b"], tails)
    # Two normals are not the true distribution, which costs up to a tenth of a nat per value.
    suite.case("tails", "mixture", {"components": 2}, least=log - 0.1 * 300 - parameters(2, 2) * math.log(150))
    rows, log = clusters(rng, [[0, 0, 0], [9, 9, 9]], 1.0, 4)
    suite.table("few_rows", ["a", "b", "c"], rows)
    suite.case("few_rows", "mixture", {"components": 2}, least=log - parameters(2, 3) * math.log(8))
    rows = [[round(rng.gauss(3 if n % 2 else 20, 1)), round(rng.gauss(0, 2))] for n in range(100)]
    suite.table("rounded", ["count", "score"], rows)
    suite.case("rounded", "mixture", {"components": 2}, trusted=True)
    # Chains with two states that last for twenty steps.
    path = [n // 20 % 2 for n in range(200)]
    rows = [[rng.gauss(4 * s, 1), rng.gauss(-3 * s, 0.5)] for s in path]
    log = sum(log_normal(a, 4 * s, 1) + log_normal(b, -3 * s, 0.5) for (a, b), s in zip(rows, path))
    log += 190 * math.log(0.95) + 9 * math.log(0.05) + math.log(0.5)
    slack = (parameters(2, 2) + 3) * math.log(200)
    for name, maps in {"chain": [(0, 1), (0, 1)], "chain_far": [(1e6, 1), (-1e3, 1e-6)]}.items():
        there, gain = moved(rows, maps)
        suite.table(name, ["a", "b"], there)
        suite.case(name, "hmm", {"states": 2}, least=log + gain - slack, trusted=True)
    # Factor analysis: one factor of four columns.
    rows, log = [], 0.0
    weights, sds = [1, 0.8, -0.7, 0.5], [0.4, 0.5, 0.4, 0.6]
    for _ in range(120):
        z = rng.gauss(0, 1)
        rows.append([w * z + rng.gauss(0, s) for w, s in zip(weights, sds)])
    strength = sum((w / s) ** 2 for w, s in zip(weights, sds))
    for row in rows:
        own = sum(log_normal(x, 0, s) for x, s in zip(row, sds))
        pull = sum(w * x / s**2 for x, w, s in zip(row, weights, sds))
        log += own - 0.5 * math.log1p(strength) + 0.5 * pull**2 / (1 + strength)
    # One noise variance for four columns costs up to a twentieth of a nat per value.
    slack = 12 * math.log(120) + 0.05 * 480
    for name, maps in {
        "factor": [(0, 1)] * 4,
        "factor_scales": [(0, 1e4), (5, 1), (0, 1e-3), (-2, 1)],
        "factor_far": [(0, 1e10), (0, 1), (3, 1e-6), (1e6, 1)],
    }.items():
        there, gain = moved(rows, maps)
        suite.table(name, ["a", "b", "c", "d"], there)
        suite.case(name, "factor-analysis", {"factors": 1}, least=log + gain - slack, trusted=True)
    suite.table("factor_copy", ["a", "b", "c", "d", "e"], [row + [7.0] for row in rows])
    suite.case("factor_copy", "factor-analysis", {"factors": 1}, least=log - slack, trusted=True, says="`e` (7)")
    suite.case("factor_same_rows", "factor-analysis", {"factors": 1}, refused="every column is constant", table="same_rows")
    few = [[rng.gauss(0, 1) for _ in range(4)] for _ in range(3)]
    suite.table("three_rows", ["a", "b", "c", "d"], few * 15)
    suite.case("three_rows", "factor-analysis", {"factors": 2}, trusted=False, says="no bound")
    # Binary factors.
    rows, log = [], 0.0
    for _ in range(150):
        on = [rng.random() < 0.3 for _ in range(2)]
        row = [3 * on[0] + rng.gauss(0, 0.3), 4 * on[1] + rng.gauss(0, 0.3), 3 * on[0] + 4 * on[1] + rng.gauss(0, 0.3)]
        rows.append(row)
        ways = []
        for i in range(2):
            for j in range(2):
                means = [3 * i, 4 * j, 3 * i + 4 * j]
                prior = sum(math.log(0.3 if z else 0.7) for z in (i, j))
                ways.append(prior + sum(log_normal(x, m, 0.3) for x, m in zip(row, means)))
        log += log_sum_exp(ways)
    suite.table("binary", ["a", "b", "c"], rows)
    for seed in range(5):
        request = {"factors": 2, "noise_variance": 0.09, "points": {"seed": seed}}
        suite.case(f"binary_{seed}", "factors", request, least=log - 6 * math.log(150), table="binary")
    suite.table("binary_far", ["a", "b", "c"], [[x + 1000 for x in row] for row in rows])
    suite.case("binary_far", "factors", {"factors": 2, "noise_variance": 0.09}, trusted=False, says="independent normal columns")


def independent(rows):
    """Mean log density of rows under normals with their moments, less half a percent for each value, without constant columns."""
    total = 0.0
    for column in zip(*rows):
        mean = math.fsum(column) / len(column)
        variance = math.fsum((x - mean) ** 2 for x in column) / len(column)
        if variance > 0:
            total -= 0.5 * (LOG_2PI + math.log(variance) + 1) + 0.005
    return total


def vae(suite):
    rng = random.Random(2)
    small = {"latent": 2, "hidden": "16", "decoder": "gaussian", "batch": 20, "optimizer": "adam", "step_size": 0.01}

    def add(name, columns, rows, epochs=60, **more):
        suite.table(name, columns, rows)
        suite.case(name, "vae", small | {"epochs": epochs}, least=independent(rows), **more)

    rows = []
    for _ in range(200):
        z = rng.gauss(0, 1)
        area, rooms = 70 + 25 * z + rng.gauss(0, 5), 3 + z + rng.gauss(0, 0.5)
        rows.append([area, rooms, 1e5 + 1500 * area + 8000 * rooms + rng.gauss(0, 2e4), rng.gauss(40, 15)])
    add("houses", ["area", "rooms", "price", "age"], rows)
    add("houses_short", ["area", "rooms", "price", "age"], rows, epochs=1)
    add("houses_far", ["area", "rooms", "price", "age"], [[1e8 + a, 1e-6 * b, c, d] for a, b, c, d in rows])
    add("houses_constant", ["area", "country", "price"], [[a, 7, c] for a, _, c, _ in rows], says="`country` (7)")
    add("houses_copy", ["area", "feet", "rooms"], [[a, 10.7639 * a, b] for a, b, _, _ in rows], says="`feet` (of `area`)")
    add("noise", ["a", "b", "c"], [[rng.gauss(0, 1), rng.gauss(5, 100), rng.gauss(-3, 1e-4)] for _ in range(200)])
    add("tails", ["a", "b"], [[rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 1 / 1.5)) for _ in range(2)] for _ in range(200)])
    add("few_rows", ["a", "b", "c"], [[rng.gauss(0, 1) for _ in range(3)] for _ in range(8)])
    ring = [[10 * math.cos(t / 30), 10 * math.sin(t / 30)] for t in range(200)]
    add("ring", ["a", "b"], [[x + rng.gauss(0, 0.5), 1000 * (y + rng.gauss(0, 0.5))] for x, y in ring])
    suite.table("same_rows", ["a", "b"], [[1, 2]] * 20)
    suite.case("same_rows", "vae", small, refused="every column is constant")


def main():
    root = Path(sys.argv[1])
    for name, fill in {"points": points, "vae": vae}.items():
        suite = Suite(root / name)
        fill(suite)
        suite.write()
        print(f"{name}: {len(suite.cases)} cases")


if __name__ == "__main__":
    main()
