"""Maps wrong answers that a fit trusts, for posteriors with mass that an approximation misses, by weight, scale or distance, and dimension.

    python tools/sweep_mixtures.py BINARY [--seeds 1 2] [--kinds scales axis modes cauchy] [--jobs 2] [--csv FILE]

The script needs only Python. The posteriors are:

    scales    a unit normal and, with weight w, a normal that is s times as wide in all coordinates
    axis      a unit normal and, with weight w, a normal that is s times as wide in the first coordinate
    modes     a unit normal and, with weight w, a unit normal at distance s in the first coordinate
    cauchy    a location under two Cauchy observations at -s and s, whose scale is w

Means and standard deviations are exact. A cell counts the fits of all seeds: wrong (trusted, with a mean off by more than .15 sd or an sd
off by more than 10 %, beyond two Monte-Carlo standard errors), right, undefined (trusted, with a reason instead of the sd), and refused
(not trusted).
"""

import argparse
import csv
import itertools
import json
import math
import multiprocessing
import pathlib
import resource
import subprocess
import sys
import tempfile

OUTCOMES = ("wrong", "right", "undefined", "refused")
# Dimensions, weights and sizes by kind.
GRID = {
    "scales": ((1, 5, 20, 70, 120), (0.5, 0.1, 0.01), (1e-6, 0.02, 30, 1000)),
    "axis": ((5, 20, 70, 120), (0.1, 0.01), (30, 1000)),
    "modes": ((1, 5, 70), (0.5, 0.1), (10, 100)),
    "cauchy": ((1,), (0.1, 1), (10, 100)),
}


def program(kind, dim, weight, size):
    """Returns the program, and mean and sd of its first coordinate."""
    if kind == "cauchy":
        text = f"parameters {{\n  real x;\n}}\nmodel {{\n  -{size} ~ cauchy(x, {weight});\n  {size} ~ cauchy(x, {weight});\n}}\n"
        return text, 0.0, math.hypot(size, weight)
    left, right = math.log(1 - weight), math.log(weight)
    own = "normal_lpdf(x[1] | 0, 1)" if kind != "scales" else "normal_lpdf(x | 0, 1)"
    other = {"scales": f"normal_lpdf(x | 0, {size})", "axis": f"normal_lpdf(x[1] | 0, {size})", "modes": f"normal_lpdf(x[1] | {size}, 1)"}[kind]
    rest = f"  x[2 : {dim}] ~ normal(0, 1);\n" if kind != "scales" and dim > 1 else ""
    text = f"parameters {{\n  vector[{dim}] x;\n}}\nmodel {{\n{rest}  target += log_sum_exp({left!r} + {own}, {right!r} + {other});\n}}\n"
    if kind == "modes":
        return text, weight * size, math.sqrt(1 + weight * (1 - weight) * size**2)
    return text, 0.0, math.sqrt(1 - weight + weight * size**2)


def judged(fit, mean, sd):
    if not fit["trusted"]:
        return "refused"
    x = fit["parameters"][0]
    if x.get("mean") is not None and abs(x["mean"] - mean) > 0.15 * sd + 2 * (x.get("mcse") or 0):
        return "wrong"
    if x.get("sd") is None:
        return "undefined"
    chance = 2 / math.sqrt(2 * x["ess"]) if x.get("ess") else 0.0
    return "wrong" if abs(x["sd"] / sd - 1) > 0.1 + chance else "right"


def outcome(task):
    binary, cell, seed = task
    text, mean, sd = program(*cell)
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model.stan"
        model.write_text(text)
        command = [binary, "fit", model, "--json", "--seed", str(seed), "--threads", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return judged(json.loads(done.stdout), mean, sd), used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--kinds", nargs="+", default=list(GRID), choices=list(GRID))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--csv", type=pathlib.Path)
    args = parser.parse_args()
    cells = [(kind, *cell) for kind in args.kinds for cell in itertools.product(*GRID[kind])]
    tasks = [(args.binary, cell, seed) for cell in cells for seed in args.seeds]
    # Each fit has a separate process, whose child has only the time of the fit.
    with multiprocessing.Pool(args.jobs, maxtasksperchild=1) as pool:
        found = []
        for (_, cell, seed), result in zip(tasks, pool.imap(outcome, tasks), strict=True):
            found.append(result)
            print(*cell, "seed", seed, *result, file=sys.stderr, flush=True)
    rows = []
    for k, cell in enumerate(cells):
        own = found[k * len(args.seeds) : (k + 1) * len(args.seeds)]
        rows.append([*cell, *([o for o, _ in own].count(name) for name in OUTCOMES), round(sum(s for _, s in own), 2)])
    print("| kind | dim | weight | size | " + " | ".join(OUTCOMES) + " | processor s |\n" + "| --- " * 9 + "|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    total = [sum(row[4 + k] for row in rows) for k in range(5)]
    print(f"\nIn all, of {len(tasks)}: " + ", ".join(f"{n} {name}" for n, name in zip(total, OUTCOMES, strict=False)) + f", {total[4]:.0f} processor s")
    if args.csv:
        with args.csv.open("w", newline="") as file:
            csv.writer(file).writerows([["kind", "dim", "weight", "size", *OUTCOMES, "seconds"], *rows])


if __name__ == "__main__":
    main()
