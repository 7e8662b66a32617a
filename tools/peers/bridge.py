"""Compares log evidences of refinements with bridge sampling on draws of NUTS (stanli), and checks their standard errors.

    pip install stanli==0.24.0 numpy
    python tools/peers/bridge.py BINARY [--models models] [--names NAME ...] [--seeds 20] [--chains 8] [--draws 2000] [--workers 2]

Bridge sampling (Meng and Wong 1996) connects the posterior with a normal on the unconstrained scale. The normal has the moments of half of
the draws of each chain. The script bridges the other halves with as many draws of the normal, separately for each chain, and the spread of
the chains' estimates gives the standard error. stanli omits constants from densities. The script computes them as the difference from
`log_p__` in the draws.csv of a fit, which must be the same for all draws.

A row has the estimate of the bridge, the estimate of `jensen fit --refine always` with seed 1, and their distance in combined standard
errors. It also has two results over all seeds. The first is the ratio of the estimates' standard deviation to the root mean square of
their standard errors, which is near 1 if these are correct (between 0.68 and 1.32 for 19 of 20 tables of twenty seeds). The second is the
largest distance from the bridge.
"""

import argparse
import contextlib
import csv
import io
import json
import math
import pathlib
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import stanli

NAMES = ("kidscore_momiq", "mesquite_logs", "eight_schools_noncentred", "dugongs_growth", "beetles_logit", "garch_1_1", "ar_k",
         "dyes_standardised", "rats_growth", "pump_gamma_poisson", "dyes_variance_components")


def fitted(binary, folder, seed, out, flags):
    files = [str(folder / name) for name in ("model.stan", "data.json") if (folder / name).exists()]
    command = [binary, "fit", *files, "--seed", str(seed), "--threads", "1", "--out", str(out), "-q", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 4), done.stderr
    return json.loads((out / "fit.json").read_text())


def evidence(binary, folder, seed):
    """Returns the refinement's log evidence, its standard error, and whether the fit is trusted."""
    with tempfile.TemporaryDirectory() as scratch:
        fit = fitted(binary, folder, seed, pathlib.Path(scratch) / "fit", ["--refine", "always", "--draws", "1"])
    refinement = fit["refinement"]
    return refinement["log_evidence"], refinement["log_evidence_se"], fit["trusted"]


def lacking(binary, folder, model):
    """Returns names of the parameters, and the constants that the model's log density omits."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        fitted(binary, folder, 1, scratch / "fit", ["--refine", "none", "--centring", "off", "--draws", "20", "--inits-out", str(scratch / "inits.json")])
        names = list(json.loads((scratch / "inits_1.json").read_text()))
        with open(scratch / "fit" / "draws.csv") as file:
            rows = list(csv.reader(line for line in file if not line.startswith("#")))
    head, rows = rows[0], rows[2:]
    columns = {name: [i for i, column in enumerate(head) if column.split(".")[0] == name] for name in names}
    differences = []
    for row in rows:
        point = {name: [float(row[i]) for i in own] for name, own in columns.items()}
        point = {name: values if f"{name}.1" in head else values[0] for name, values in point.items()}
        differences.append(float(row[head.index("log_p__")]) - model.log_prob_grad(model.unconstrain(point))[0])
    assert np.ptp(differences) < 1e-5, f"{folder}: {differences}"
    return names, float(np.mean(differences))


def bridge(model, names, args):
    """The log evidence without constants, and its standard error."""
    with contextlib.redirect_stdout(io.StringIO()):
        fit = model.sample(chains=args.chains, samples=args.draws, seed=1, parallel_chains=1)
    draws = {name: np.asarray(fit.draws(name)) for name in names}
    flat = lambda values: float(values) if values.ndim == 0 else values.flatten(order="F").tolist()
    z = np.array([[model.unconstrain({name: flat(values[c, t]) for name, values in draws.items()}) for t in range(args.draws)]
                  for c in range(args.chains)])
    dim, half = z.shape[2], args.draws // 2
    first = z[:, :half].reshape(-1, dim)
    mean, root = first.mean(0), np.linalg.cholesky(np.cov(first.T).reshape(dim, dim))
    rng = np.random.default_rng(1)

    def log_normal(points):
        solved = np.linalg.solve(root, (points - mean).T)
        return -0.5 * (solved**2).sum(0) - np.log(np.diag(root)).sum() - 0.5 * dim * math.log(2 * math.pi)

    def log_density(points):
        values = np.array([model.log_prob_grad(point)[0] for point in points])
        return np.where(np.isfinite(values), values, -np.inf)

    estimates = []
    for chain in z[:, half:]:
        proposed = mean + rng.standard_normal((half, dim)) @ root.T
        own, others = (log_density(points) - log_normal(points) for points in (chain, proposed))
        # Use the effective sample size of the slowest coordinate.
        share = min(1.0, effective(chain) / half)
        top, log_r = np.median(own), 0.0
        for _ in range(1000):
            weights = (share / (1 + share), 1 / (1 + share))
            above = np.exp(others - top) / (weights[0] * np.exp(others - top) + weights[1] * math.exp(log_r))
            below = 1 / (weights[0] * np.exp(own - top) + weights[1] * math.exp(log_r))
            before, log_r = log_r, math.log(above.mean() / below.mean())
            if abs(log_r - before) < 1e-10:
                break
        estimates.append(top + log_r)
    return float(np.mean(estimates)), float(np.std(estimates, ddof=1) / math.sqrt(len(estimates))), dim


def effective(chain):
    """Effective sample size of the slowest coordinate, by batch means."""
    batches = np.array_split(chain, 20)
    of_means = np.var([batch.mean(0) for batch in batches], axis=0, ddof=1) * len(batches[0])
    return float((len(chain) * chain.var(0) / of_means).min())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("models"))
    parser.add_argument("--names", nargs="+", default=NAMES)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--chains", type=int, default=8)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    print("| program | dimension | bridge sampling | refinement, seed 1 | apart, standard errors | spread over stated error | most apart | trusted seeds |")
    print("|" + " --- |" * 8, flush=True)
    for name in args.names:
        folder = args.models / name
        data = folder / "data.json"
        model = stanli.Model(stan_file=str(folder / "model.stan"), data=str(data) if data.exists() else None)
        names, constant = lacking(args.binary, folder, model)
        theirs, theirs_se, dim = bridge(model, names, args)
        theirs += constant
        with ThreadPoolExecutor(args.workers) as pool:
            found = list(pool.map(lambda seed: evidence(args.binary, folder, seed), range(1, args.seeds + 1)))
        values, errors = np.array([row[0] for row in found]), np.array([row[1] for row in found])
        apart = (values - theirs) / np.hypot(errors, theirs_se)
        spread = values.std(ddof=1) / math.sqrt((errors**2).mean()) if len(found) > 1 else math.nan
        trusted = sum(row[2] for row in found)
        print(f"| `{name}` | {dim} | {theirs:.3f} ± {theirs_se:.3f} | {values[0]:.3f} ± {errors[0]:.3f} | {apart[0]:+.1f} | {spread:.2f} | "
              f"{apart[np.abs(apart).argmax()]:+.1f} | {trusted} of {len(found)} |", flush=True)


if __name__ == "__main__":
    main()
