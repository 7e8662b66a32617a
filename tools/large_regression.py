"""Writes a table for a regression with many rows and groups, and fits it with `jensen regress`.

    python tools/large_regression.py --rows 1000000 --groups 10000 --jensen target/release/jensen

Writes TABLE (bernoulli: three predictors, an intercept for each group) and, with `--jensen`, fits `y ~ x1 + x2 + x3 + (1 | g)`. Prints
wall-clock seconds, processor seconds, the peak resident memory, and each estimate beside its true value. Needs numpy.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import time

import numpy as np

TRUTH = {"Intercept": -0.4, "b[x1]": 0.6, "b[x2]": -0.3, "b[x3]": 0.1, "sd_g[Intercept]": 0.7}


def write(path, rows, groups, seed):
    rng = np.random.default_rng(seed)
    x = np.round(rng.standard_normal((rows, 3)), 3)
    g = rng.integers(groups, size=rows)
    effects = TRUTH["sd_g[Intercept]"] * rng.standard_normal(groups)
    slopes = np.array([TRUTH[f"b[x{k}]"] for k in (1, 2, 3)])
    y = rng.random(rows) < 1 / (1 + np.exp(-(TRUTH["Intercept"] + x @ slopes + effects[g])))
    with path.open("w") as file:
        file.write("y,x1,x2,x3,g\n")
        for (a, b, c), group, value in zip(x.tolist(), g.tolist(), y.astype(int).tolist(), strict=True):
            file.write(f"{value},{a},{b},{c},g{group}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", type=pathlib.Path, default=pathlib.Path("large.csv"))
    parser.add_argument("--jensen")
    parser.add_argument("more", nargs="*", help="more flags of `jensen regress`, after --")
    asked = parser.parse_args()
    write(asked.table, asked.rows, asked.groups, asked.seed)
    if not asked.jensen:
        return
    line = [asked.jensen, "regress", str(asked.table), "y ~ x1 + x2 + x3 + (1 | g)", "--family", "bernoulli", "--json", *asked.more]
    begun = time.monotonic()
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{asked.rows} rows, {asked.groups} groups: {seconds:.1f} s wall clock, {used.ru_utime + used.ru_stime:.1f} processor s, {used.ru_maxrss / 1024:.0f} MB")
    if done.returncode not in (0, 4):
        raise SystemExit(done.stderr)
    answer = json.loads(done.stdout)
    print(f"trusted: {answer['trusted']}")
    for p in answer["parameters"]:
        name = p.get("label", p["name"])
        if name in TRUTH:
            print(f"{name:16} {p['mean']:9.4f} ± {p['sd']:.4f}, drawn with {TRUTH[name]}")


if __name__ == "__main__":
    main()
