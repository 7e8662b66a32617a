#!/usr/bin/env python3
"""Measures milliseconds per iteration of stochastic variational inference in NumPyro and in Jensen, in one run.

    python3 -m venv venv && venv/bin/pip install numpy numpyro "jax[cpu]"
    venv/bin/python tools/peers/minibatch.py DATA --jensen target/release/jensen

DATA has tennis/log1960.npz and mnist/train-*-ubyte.gz, as for `jensen reproduce joint-cv`. Both programs use batches of 100, one draw, a
mean-field normal and Adam. NumPyro runs subsampled plates, AutoNormal and Trace_ELBO in one jitted lax.scan for each block of iterations,
in single precision (its default) and in double precision (as Jensen). The programs take turns. The fastest fifth of the blocks counts on
both sides, because other load on the machine can only slow a block down.
"""

import argparse
import gzip
import json
import os
import subprocess
import tempfile
import time

import numpy as np


def tennis(folder):
    log = np.load(os.path.join(folder, "tennis/log1960.npz"))
    winners, losers = log["winner_ids"].astype(np.int32), log["loser_ids"].astype(np.int32)
    return winners, losers


def digits(folder):
    def read(name, offset):
        with gzip.open(os.path.join(folder, "mnist", name)) as file:
            return np.frombuffer(file.read(), np.uint8, offset=offset)

    images = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 784)
    return images, read("train-labels-idx1-ubyte.gz", 8).astype(np.int32)


def numpyro_block(task, folder, iterations, double):
    """A function that runs a block of iterations and returns its seconds."""
    import jax

    jax.config.update("jax_enable_x64", double)
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    real = jnp.float64 if double else jnp.float32
    if task == "Tennis":
        winners, losers = (jnp.asarray(ids) for ids in tennis(folder))
        players = int(max(winners.max(), losers.max())) + 1

        def model():
            theta = numpyro.sample("theta", dist.Normal(jnp.zeros(players, real), 1).to_event(1))
            with numpyro.plate("matches", winners.shape[0], subsample_size=100) as batch:
                logits = theta[winners[batch]] - theta[losers[batch]]
                numpyro.sample("win", dist.Bernoulli(logits=logits), obs=jnp.ones(100))

    else:
        images, labels = digits(folder)
        images, labels = jnp.asarray(images.astype(real) / 255), jnp.asarray(labels)

        def model():
            w = numpyro.sample("w", dist.Normal(jnp.zeros((784, 10), real), 1).to_event(2))
            with numpyro.plate("images", images.shape[0], subsample_size=100) as batch:
                logits = images[batch] @ w
                numpyro.sample("label", dist.Categorical(logits=logits), obs=labels[batch])

    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(1e-2), Trace_ELBO())
    state = svi.init(jax.random.PRNGKey(0))

    @jax.jit
    def block(state):
        return jax.lax.scan(lambda state, _: svi.update(state), state, None, length=iterations)

    def run():
        nonlocal state
        begin = time.perf_counter()
        state, losses = jax.block_until_ready(block(state))
        assert np.isfinite(np.asarray(losses)).all()
        return time.perf_counter() - begin

    run()
    return run


def numpyro_child(task, folder, iterations, double):
    """Serves blocks on request, so that precisions do not share a process."""
    run = numpyro_block(task, folder, iterations, double)
    print("ready", flush=True)
    while input() == "go":
        print(run(), flush=True)


class Peer:
    def __init__(self, task, folder, iterations, double):
        command = ["python3", __file__, folder, "--child", task, "--iterations", str(iterations)]
        command[0] = os.sys.executable
        if double:
            command.append("--double")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline().strip() == "ready"
        self.iterations = iterations

    def milliseconds(self, blocks=50):
        times = []
        for _ in range(blocks):
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
            times.append(1e3 * float(self.process.stdout.readline()) / self.iterations)
        return float(np.mean(sorted(times)[: blocks // 5]))


def jensen(binary, task, folder):
    """Milliseconds an iteration of every estimator, from the reproduction's own timing."""
    with tempfile.TemporaryDirectory() as out:
        part = f"table3-{task.lower()}"
        command = [binary, "reproduce", "joint-cv", "--only", part, "--data", folder, "--out", out]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rows = json.load(open(os.path.join(out, "results.json")))["rows"]
    head = f"Table 3, {task}: an iteration of "
    return {r["what"][len(head) :]: r["ours"] for r in rows if r["what"].startswith(head) and r["ours"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--jensen", default="target/release/jensen")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--double", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        numpyro_child(args.child, args.data, args.iterations, args.double)
        return
    print("| task | NumPyro, f32 | NumPyro, f64 | naive | joint | f32 / naive |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for task in ["Tennis", "MNIST"]:
        single, double = (Peer(task, args.data, args.iterations, d) for d in (False, True))
        best = {"f32": np.inf, "f64": np.inf}
        for _ in range(args.rounds):
            found = jensen(args.jensen, task, args.data)
            found.update(f32=single.milliseconds(), f64=double.milliseconds())
            best = {name: min(ms, best.get(name, np.inf)) for name, ms in found.items()}
        times = " | ".join(f"{best[name]:.3f}" for name in ("f32", "f64", "naive", "joint"))
        print(f"| {task} | {times} | {best['f32'] / best['naive']:.1f} |", flush=True)
        for peer in (single, double):
            peer.process.kill()


if __name__ == "__main__":
    main()
