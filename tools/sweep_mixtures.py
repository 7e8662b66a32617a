"""Maps where mass that an approximation does not see is trusted away: mixtures by weight, scale or distance, and dimension.

    python tools/sweep_mixtures.py BINARY [--seeds 1 2 3] [--kinds scales axis modes] [--dims 1 2 5 20] [--csv FILE]

Needs nothing but Python. The posteriors, about a unit normal with the rest of the mass:

    scales    a normal s times as wide in all coordinates has mass w
    axis      a normal s times as wide in the first coordinate alone has mass w
    modes     a unit normal at distance s in the first coordinate has mass w

A cell says what the fits at all seeds did: right (told, and within the limits), told wrong (trusted, with a mean off by more
than .15 sd or an sd by more than a fifth), open (trusted, moments not told because of their tails) and refused. No allowance is
made for chance: what a fit tells that is trusted is what its reader takes for the answer.
"""

import argparse
import csv
import json
import math
import pathlib
import subprocess
import tempfile

WEIGHTS = {"scales": (0.5, 0.1, 0.01, 0.001), "axis": (0.5, 0.1, 0.01), "modes": (0.5, 0.1, 0.01)}
SIZES = {"scales": (1e-6, 0.02, 10, 30, 100, 1000, 1e6), "axis": (0.02, 10, 30, 100, 1000), "modes": (6, 10, 30, 100)}


def program(kind, weight, size, dim):
    """The program, and mean and sd of its first coordinate."""
    left, right = math.log(1 - weight), math.log(weight)
    own = "normal_lpdf(x[1] | 0, 1)" if kind != "scales" else "normal_lpdf(x | 0, 1)"
    other = {"scales": f"normal_lpdf(x | 0, {size})", "axis": f"normal_lpdf(x[1] | 0, {size})", "modes": f"normal_lpdf(x[1] | {size}, 1)"}[kind]
    rest = f"  x[2 : {dim}] ~ normal(0, 1);\n" if kind != "scales" and dim > 1 else ""
    text = f"parameters {{\n  vector[{dim}] x;\n}}\nmodel {{\n{rest}  target += log_sum_exp({left!r} + {own}, {right!r} + {other});\n}}\n"
    if kind == "modes":
        return text, weight * size, math.sqrt(1 + weight * (1 - weight) * size**2)
    return text, 0.0, math.sqrt(1 - weight + weight * size**2)


def outcome(binary, text, mean, sd, seed):
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model.stan"
        model.write_text(text)
        done = subprocess.run([binary, "fit", model, "--json", "--seed", str(seed), "--threads", "1"], capture_output=True, text=True, check=False)
    fit = json.loads(done.stdout)
    x = fit["parameters"][0]
    if not fit["trusted"]:
        return "refused"
    if x["mean"] is not None and abs(x["mean"] - mean) > 0.15 * sd:
        return "wrong"
    if x["sd"] is None:
        return "open"
    return "wrong" if abs(x["sd"] / sd - 1) > 0.2 else "right"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--kinds", nargs="+", default=list(WEIGHTS), choices=list(WEIGHTS))
    parser.add_argument("--dims", type=int, nargs="+", default=[1, 2, 5, 20])
    parser.add_argument("--csv", type=pathlib.Path)
    args = parser.parse_args()
    rows = []
    for kind in args.kinds:
        print(f"\n{kind}: told wrong / right / open / refused, of {len(args.seeds)} seeds\n")
        sizes = SIZES[kind]
        print("| dim | weight | " + " | ".join(f"{s:g}" for s in sizes) + " |\n" + "| --- " * (len(sizes) + 2) + "|")
        for dim in args.dims:
            for weight in WEIGHTS[kind]:
                cells = []
                for size in sizes:
                    found = [outcome(args.binary, *program(kind, weight, size, dim), seed) for seed in args.seeds]
                    counts = [found.count(o) for o in ("wrong", "right", "open", "refused")]
                    rows.append([kind, dim, weight, size, *counts])
                    cells.append(" / ".join(map(str, counts)))
                print(f"| {dim} | {weight} | " + " | ".join(cells) + " |", flush=True)
    total = [sum(row[4 + k] for row in rows) for k in range(4)]
    print(f"\nIn all: {total[0]} told wrong, {total[1]} right, {total[2]} open, {total[3]} refused")
    if args.csv:
        with args.csv.open("w", newline="") as file:
            csv.writer(file).writerows([["kind", "dim", "weight", "size", "wrong", "right", "open", "refused"], *rows])


if __name__ == "__main__":
    main()
