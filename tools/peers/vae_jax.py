"""Times passes of an auto-encoder in JAX: networks 784-500-20-500-784 with tanh units, Bernoulli data, minibatches of 100, one draw per
record, and Adagrad with step size 0.02.

    python -m venv /tmp/venv-jax && /tmp/venv-jax/bin/pip install jax numpy
    /tmp/venv-jax/bin/python tools/peers/vae_jax.py [train-images-idx3-ubyte[.gz] [t10k-images-idx3-ubyte[.gz]]] [--passes 5]

`jensen-bench neural --peer PYTHON` runs it beside the same training in Jensen. Without files the images are noise, which takes the same
time. The script prints one JSON object.
"""

import argparse
import gzip
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

WIDTH, HIDDEN, LATENT, BATCH, STEP = 784, 500, 20, 100, 0.02


def images(path):
    if path is None:
        return np.random.default_rng(0).random((60_000, WIDTH), dtype=np.float32)
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        pixels = np.frombuffer(file.read(), dtype=np.uint8)[16:]
    return pixels.reshape(-1, WIDTH).astype(np.float32) / 255.0


def initial(key):
    extents = {
        "encoder": (WIDTH, HIDDEN),
        "mean": (HIDDEN, LATENT),
        "log_variance": (HIDDEN, LATENT),
        "decoder": (LATENT, HIDDEN),
        "logits": (HIDDEN, WIDTH),
    }
    weights = {}
    for name, (inputs, outputs) in extents.items():
        key, one, two = jax.random.split(key, 3)
        weights[name] = (
            0.1 * jax.random.normal(one, (inputs, outputs)),
            0.1 * jax.random.normal(two, (outputs,)),
        )
    return weights


def layer(weights, name, x):
    matrix, offset = weights[name]
    return x @ matrix + offset


def bound(weights, x, noise):
    hidden = jnp.tanh(layer(weights, "encoder", x))
    mean, log_variance = layer(weights, "mean", hidden), layer(weights, "log_variance", hidden)
    z = mean + jnp.exp(0.5 * log_variance) * noise
    logits = layer(weights, "logits", jnp.tanh(layer(weights, "decoder", z)))
    likelihood = jnp.sum(x * logits - jax.nn.softplus(logits), axis=1)
    divergence = 0.5 * jnp.sum(mean**2 + jnp.exp(log_variance) - 1.0 - log_variance, axis=1)
    return jnp.mean(likelihood - divergence)


@jax.jit
def update(weights, squares, key, x):
    key, draw = jax.random.split(key)
    noise = jax.random.normal(draw, (x.shape[0], LATENT))
    value, slope = jax.value_and_grad(bound)(weights, x, noise)
    squares = jax.tree.map(lambda h, g: h + g * g, squares, slope)
    weights = jax.tree.map(
        lambda w, h, g: w + STEP * g / (jnp.sqrt(h) + 1e-8), weights, squares, slope
    )
    return weights, squares, key, value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("train", nargs="?")
    parser.add_argument("test", nargs="?")
    parser.add_argument("--passes", type=int, default=5)
    args = parser.parse_args()
    data = images(args.train)
    weights = initial(jax.random.key(0))
    squares = jax.tree.map(jnp.zeros_like, weights)
    key, order = jax.random.key(1), np.random.default_rng(1)
    seconds, values = [], []
    for _ in range(args.passes):
        chosen = order.permutation(len(data))
        start, cpu = time.perf_counter(), time.process_time()
        total = []
        for first in range(0, len(data), BATCH):
            x = data[chosen[first : first + BATCH]]
            weights, squares, key, value = update(weights, squares, key, x)
            total.append(value)
        jax.block_until_ready(weights)
        seconds.append((time.perf_counter() - start, time.process_time() - cpu))
        values.append(float(jnp.mean(jnp.stack(total))))
    result = {
        "seconds_per_epoch": min(wall for wall, _ in seconds),
        "processor_seconds_per_epoch": min(cpu for _, cpu in seconds),
        "bound": values,
    }
    if args.test:
        test = jnp.asarray(images(args.test))
        noise = jax.random.normal(jax.random.key(2), (len(test), LATENT))
        result["test_bound"] = float(bound(weights, test, noise))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
