#!/usr/bin/env python3
"""Times GPflow's variational Gaussian process and Jensen to the same bound, for classification with a logistic likelihood.

    python3 -m venv venv && venv/bin/pip install gpflow tensorflow-cpu tf_keras
    venv/bin/python tools/peers/gaussian_process.py FILE.csv --lengthscale 2.7 --variance 7.4 --jensen target/release/jensen

FILE has no header. Its columns are inputs, then the label (0 or 1, or two words). Both programs maximise the bound with exact expectations
(`--bound exact`; Gauss-Hermite quadrature in both) at fixed hyperparameters of a squared exponential kernel. GPflow takes natural-gradient
steps on a compiled graph, its fastest method for this model. Its time excludes tracing and compilation, and the script reports the best of
several step sizes. The time of GPflow ends when its bound is within 1e-4 nats of the larger of the two final bounds. The time of Jensen
ends with the fit. The script reports the fastest of several runs, which other load on the machine changes least. Processor seconds of
Jensen are for the whole command, including reading the file.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np


def read(path):
    rows = [row for row in csv.reader(open(path)) if row]
    labels = [row[-1] for row in rows]
    words = sorted(set(labels))
    inputs = np.array([[float(x) for x in row[:-1]] for row in rows])
    return inputs, np.array([float(words.index(x)) for x in labels])[:, None]


def gpflow_curves(inputs, labels, lengthscale, variance, gamma, steps, repeats):
    """Returns seconds, processor seconds and bound after every step of each run."""
    import gpflow
    import tensorflow as tf

    kernel = gpflow.kernels.SquaredExponential(variance=variance, lengthscales=lengthscale)
    likelihood = gpflow.likelihoods.Bernoulli(invlink=tf.sigmoid)
    model = gpflow.models.VGP((inputs, labels), kernel, likelihood)
    gpflow.set_trainable(kernel, False)
    optimiser = gpflow.optimizers.NaturalGradient(gamma=gamma)
    parameters = [(model.q_mu, model.q_sqrt)]
    step = tf.function(lambda: optimiser.minimize(model.training_loss, parameters))
    bound = tf.function(model.elbo)
    start = (model.q_mu.numpy(), model.q_sqrt.numpy())
    step()  # traces and compiles
    bound()
    curves = []
    for _ in range(repeats):
        model.q_mu.assign(start[0])
        model.q_sqrt.assign(start[1])
        curve, wall, processor = [], 0.0, 0.0
        for _ in range(steps):
            began, used = time.perf_counter(), time.process_time()
            step()
            wall += time.perf_counter() - began
            processor += time.process_time() - used
            value = float(bound())
            curve.append((wall, processor, value))
            if not np.isfinite(value) or (len(curve) > 3 and abs(value - curve[-2][2]) < 1e-6):
                break
        curves.append(curve)
    return curves


def jensen(binary, path, lengthscale, variance, repeats):
    runs = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = subprocess.run(
            [binary, "latent", "fit", "--likelihood", "bernoulli", "--bound", "exact", "--data", path, "--json"]
            + ["--prior", f"gp(rbf, lengthscale={lengthscale}, variance={variance})"],
            check=True,
            capture_output=True,
        ).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        fit = json.loads(out)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        runs.append((fit["solver_seconds"], used, fit["bound"]))
    return [min(column) for column in zip(*runs)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--lengthscale", type=float, required=True)
    parser.add_argument("--variance", type=float, required=True)
    parser.add_argument("--jensen", required=True)
    parser.add_argument("--gamma", type=float, nargs="+", default=[1.0, 0.8, 0.5])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--gpflow-repeats", type=int, default=5)
    args = parser.parse_args()
    ours = jensen(args.jensen, args.file, args.lengthscale, args.variance, args.repeats)
    inputs, labels = read(args.file)
    found = {
        gamma: gpflow_curves(
            inputs, labels, args.lengthscale, args.variance, gamma, args.steps, args.gpflow_repeats
        )
        for gamma in args.gamma
    }
    finite = [v for curves in found.values() for _, _, v in curves[0] if np.isfinite(v)]
    target = max([ours[2]] + finite) - 1e-4
    print(f"rows {len(inputs)}, target {target:.6f}")
    print(f"jensen: bound {ours[2]:.6f}, {ours[0]:.3f} s, {ours[1]:.3f} processor seconds")
    for gamma, curves in found.items():
        reached = [next(((k + 1, w, p) for k, (w, p, v) in enumerate(c) if v >= target), None) for c in curves]
        if reached[0] is None:
            steps, wall = len(curves[0]), min(c[-1][0] for c in curves)
            print(f"gpflow, step {gamma}: {curves[0][-1][2]:.6f} after {steps} steps, {wall:.2f} s")
        else:
            steps, wall, processor = (min(column) for column in zip(*reached))
            print(
                f"gpflow, step {gamma}: {steps} steps, {wall:.3f} s, {processor:.3f} processor seconds: "
                f"{wall / ours[0]:.1f} times Jensen's, processor {processor / ours[1]:.1f} times"
            )


if __name__ == "__main__":
    main()
