"""Gradients of likelihoods of many rows, and of the programs in folders, beside stanli in one run.

    pip install stanli==0.24.0 numpy
    python tools/peers/regressions.py target/release/jensen [--rows 100000] [--models models]

The script writes four programs with simulated data (logistic, Poisson and negative-binomial regressions on 8 predictors and a
two-parameter item-response model) to a temporary folder, and times the gradient at a draw. `jensen bench density` evaluates 64
draws at a time, and stanli evaluates 64 draws of the same distribution one after another. Both run on one thread, in turns, and
the table has the shortest wall-clock time of three. With `--models` the script also times every folder that has model.stan and
data.json, and names the programs that stanli rejects.
"""

import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import stanli

DATA = "data { int N; int K; matrix[N, K] X; array[N] int y; }\n"
LOCATION = "parameters { real alpha; vector[K] beta; "
PRIORS = "model { alpha ~ normal(0, 2); beta ~ normal(0, 1); "
PROGRAMS = {
    "logistic": DATA + LOCATION + "}\n" + PRIORS + "y ~ bernoulli_logit(alpha + X * beta); }\n",
    "poisson": DATA + LOCATION + "}\n" + PRIORS + "y ~ poisson_log(alpha + X * beta); }\n",
    "negative_binomial": DATA + LOCATION + "real<lower=0> phi; }\n" + PRIORS
    + "phi ~ gamma(2, 0.1); y ~ neg_binomial_2_log(alpha + X * beta, phi); }\n",
    "item_response": """data { int N; int J; int I; array[N] int jj; array[N] int ii; array[N] int y; }
parameters { vector[J] theta; vector<lower=0>[I] a; vector[I] b; }
model { theta ~ normal(0, 1); a ~ lognormal(0, 0.5); b ~ normal(0, 2);
  y ~ bernoulli_logit(a[ii] .* (theta[jj] - b[ii])); }
""",
}


def data(name, rows, rng):
    if name == "item_response":
        people, items = 500, 40
        j, i = rng.integers(people, size=rows), rng.integers(items, size=rows)
        eta = rng.lognormal(0, 0.5, items)[i] * (rng.normal(size=people)[j] - rng.normal(size=items)[i])
        y = rng.random(rows) < 1 / (1 + np.exp(-eta))
        return {"N": rows, "J": people, "I": items, "jj": (j + 1).tolist(), "ii": (i + 1).tolist(), "y": y.astype(int).tolist()}
    x = rng.normal(size=(rows, 8)).round(4)
    eta = 0.3 + x @ rng.normal(scale=0.2, size=8)
    mean = np.exp(eta)
    y = {"logistic": lambda: rng.random(rows) < 1 / (1 + np.exp(-eta)), "poisson": lambda: rng.poisson(mean),
         "negative_binomial": lambda: rng.poisson(rng.gamma(3.0, mean / 3.0))}[name]()
    return {"N": rows, "K": 8, "X": x.tolist(), "y": y.astype(int).tolist()}


def jensen(command, folder):
    run = [command, "bench", "density", folder / "model.stan", folder / "data.json", "--lanes", "64", "--json"]
    return json.loads(subprocess.run(run, capture_output=True, check=True).stdout)


def seconds(model, points):
    """Seconds of one gradient, averaged over draws, because the work of a solver depends on the draw."""
    rounds, start = 0, time.perf_counter()
    while time.perf_counter() - start < 0.3:
        for point in points:
            with contextlib.suppress(ValueError, RuntimeError):  # a draw that the program rejects
                model.log_prob_grad(point)
        rounds += 1
    return (time.perf_counter() - start) / rounds / len(points)


def measure(command, folder):
    model = stanli.Model(stan_code=(folder / "model.stan").read_text(), data=str(folder / "data.json"))
    ours, theirs = [], []
    for _ in range(3):
        answer = jensen(command, folder)
        ours.append(answer["seconds_per_gradient"])
        # As `jensen bench density` draws: standard normal, scaled by one half.
        points = np.random.default_rng(1).normal(scale=0.5, size=(64, answer["dim"]))
        theirs.append(seconds(model, points))
    return min(ours), min(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jensen")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--models", type=pathlib.Path)
    asked = parser.parse_args()
    ratios = []
    print("| program | Jensen (µs) | stanli (µs) | stanli / Jensen |\n| --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as temporary:
        folders = []
        rng = np.random.default_rng(1)
        for name, program in PROGRAMS.items():
            folder = pathlib.Path(temporary) / name
            folder.mkdir()
            (folder / "model.stan").write_text(program)
            (folder / "data.json").write_text(json.dumps(data(name, asked.rows, rng)))
            folders.append(folder)
        folders += sorted(path.parent for path in asked.models.glob("*/model.stan")) if asked.models else []
        for folder in folders:
            try:
                ours, theirs = measure(asked.jensen, folder)
            except Exception as error:  # errors of stanli have no common type
                print(f"| {folder.name} | | | {str(error).splitlines()[0][:60]} |")
                continue
            ratios.append(theirs / ours)
            print(f"| {folder.name} | {1e6 * ours:.2f} | {1e6 * theirs:.2f} | {theirs / ours:.1f} |", flush=True)
    print(f"\n{len(ratios)} programs: median {statistics.median(ratios):.1f}, from {min(ratios):.1f} to {max(ratios):.1f}")


if __name__ == "__main__":
    main()
