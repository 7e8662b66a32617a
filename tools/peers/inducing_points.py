#!/usr/bin/env python3
"""Compares Gaussian processes by inducing points in Jensen and GPflow on simulated tables with five columns.

    python3 -m venv venv && venv/bin/pip install gpflow tensorflow-cpu tf_keras scikit-learn
    venv/bin/python tools/peers/inducing_points.py --rows 20000 --points 300 --seconds 150 --jensen target/release/jensen

The kernel is Matérn 3/2 with a lengthscale for each column. Jensen maximises the bound on all rows (`svgp`, `--hyperparameters point`).
GPflow's SVGP takes natural-gradient steps for the values at the inducing points and steps of Adam (0.01) for the hyperparameters and the
inducing points, which start at k-means centres, on minibatches of 1024 rows. It stops after the given processor seconds. The score is the
mean log density of 5 000 new responses, in nats. Both bounds are those of all rows, in the units of the response.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

ROWS = (2000, 20_000, 100_000)


def tables():
    """Training tables of each size and a test table: inputs and responses."""
    rng = np.random.default_rng(0)

    def made(n):
        x = rng.normal(size=(n, 5))
        smooth = np.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1] * np.cos(x[:, 2]) + 0.3 * x[:, 3] ** 2
        return x, smooth + rng.normal(0, 0.3, n)

    train = {n: made(n) for n in ROWS}
    return train, made(5000)


def write(path, x, y):
    columns = [f"x{k}" for k in range(x.shape[1])] + ["y"]
    np.savetxt(path, np.column_stack([x, y]), delimiter=",", header=",".join(columns), comments="", fmt="%.7g")


def jensen(binary, train, test, points):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        write(folder / "train.csv", *train)
        write(folder / "test.csv", *test)
        prior = f"intercept() + svgp(matern32, ard, inducing={points})"
        fit = [binary, "latent", "fit", "--data", folder / "train.csv", "--response", "y", "--likelihood", "gaussian"]
        fit += ["--prior", prior, "--hyperparameters", "point", "--out", folder / "fit", "--json"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        found = json.loads(subprocess.run(fit, capture_output=True, text=True).stdout)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        predict = [binary, "latent", "predict", folder / "fit", "--at", folder / "test.csv"]
        text = subprocess.run(predict, capture_output=True, text=True, check=True).stdout
        scores = [float(row["log_density"]) for row in csv.DictReader(text.splitlines())]
        return found["bound"], float(np.mean(scores)), seconds


def gpflow_svgp(train, test, points, seconds):
    import gpflow
    import tensorflow as tf
    from sklearn.cluster import MiniBatchKMeans

    (x, y), (x_test, y_test) = train, test
    mean, sd, level, scale = x.mean(0), x.std(0), y.mean(), y.std()
    x, x_test = (x - mean) / sd, (x_test - mean) / sd
    y, y_test = ((y - level) / scale)[:, None], ((y_test - level) / scale)[:, None]

    def score():
        m, v = (a.numpy() for a in model.predict_y(x_test))
        return float(np.mean(-0.5 * np.log(2 * np.pi * v) - 0.5 * (y_test - m) ** 2 / v) - np.log(scale))

    began = time.process_time()
    centres = MiniBatchKMeans(points, random_state=0, n_init=1).fit(x).cluster_centers_
    kernel = gpflow.kernels.Matern32(lengthscales=np.full(5, 5**0.5))
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.1), centres, num_data=len(x))
    gpflow.set_trainable(model.q_mu, False)
    gpflow.set_trainable(model.q_sqrt, False)
    batches = iter(tf.data.Dataset.from_tensor_slices((x, y)).repeat().shuffle(20_000, seed=0).batch(1024))
    loss = model.training_loss_closure(batches, compile=True)
    adam, natural = tf.optimizers.Adam(0.01), gpflow.optimizers.NaturalGradient(0.1)

    @tf.function
    def step():
        natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
        slopes = tf.gradients(loss(), model.trainable_variables)
        adam.apply_gradients(zip(slopes, model.trainable_variables))

    shown = 10.0
    while time.process_time() - began < seconds:
        step()
        if time.process_time() - began > shown:
            print(f"| GPflow | {time.process_time() - began:.0f} | | {score():.4f} |", flush=True)
            shown *= 1.6
    spent = time.process_time() - began
    return float(model.elbo((x, y))) - len(x) * np.log(scale), score(), spent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, choices=ROWS, default=20_000)
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--jensen", required=True)
    args = parser.parse_args()
    train, test = tables()
    print("| | processor seconds | bound | score |\n| --- | ---: | ---: | ---: |")
    for name, run in [
        ("Jensen", lambda: jensen(args.jensen, train[args.rows], test, args.points)),
        ("GPflow", lambda: gpflow_svgp(train[args.rows], test, args.points, args.seconds)),
    ]:
        bound, score, seconds = run()
        print(f"| {name} | {seconds:.0f} | {bound:.1f} | {score:.4f} |", flush=True)


if __name__ == "__main__":
    main()
