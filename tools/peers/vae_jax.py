"""Times passes of an auto-encoder in JAX: networks 784-500-20-500-784 with tanh units, Bernoulli data, minibatches of 100, one draw per
record, and Adagrad with step size 0.02. With `--convolutions`, the networks are those of `jensen vae fit --convolutions 32,64
--hidden 256 --activation relu`: two convolutions with windows of 4 x 4 pixels and strides of 2, a layer of 256 units, and the same in
reverse, with Adam and step size 0.001.

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
FILTERS, WINDOW, UNITS, RATE = (32, 64), 4, 256, 0.001


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


def convolutional(key):
    first, second = FILTERS
    extents = {
        "one": (WINDOW, WINDOW, 1, first),
        "two": (WINDOW, WINDOW, first, second),
        "encoder": (49 * second, UNITS),
        "mean": (UNITS, LATENT),
        "log_variance": (UNITS, LATENT),
        "codes": (LATENT, UNITS),
        "decoder": (UNITS, 49 * second),
        "two_back": (WINDOW, WINDOW, second, first),
        "one_back": (WINDOW, WINDOW, first, 1),
    }
    weights = {}
    for name, extent in extents.items():
        key, own = jax.random.split(key)
        inputs = np.prod(extent[:-1])
        weights[name] = (np.sqrt(2.0 / inputs) * jax.random.normal(own, extent), jnp.zeros(extent[-1]))
    return weights


LAYOUT = ("NHWC", "HWIO", "NHWC")


def convolutional_bound(weights, x, noise):
    relu = jax.nn.relu
    hidden = x.reshape(-1, 28, 28, 1)
    for name in ("one", "two"):
        kernel, offset = weights[name]
        hidden = relu(jax.lax.conv_general_dilated(hidden, kernel, (2, 2), "SAME", dimension_numbers=LAYOUT) + offset)
    hidden = relu(layer(weights, "encoder", hidden.reshape(len(x), -1)))
    mean, log_variance = layer(weights, "mean", hidden), layer(weights, "log_variance", hidden)
    z = mean + jnp.exp(0.5 * log_variance) * noise
    back = relu(layer(weights, "decoder", relu(layer(weights, "codes", z)))).reshape(-1, 7, 7, FILTERS[1])
    kernel, offset = weights["two_back"]
    back = relu(jax.lax.conv_transpose(back, kernel, (2, 2), "SAME", dimension_numbers=LAYOUT) + offset)
    kernel, offset = weights["one_back"]
    logits = jax.lax.conv_transpose(back, kernel, (2, 2), "SAME", dimension_numbers=LAYOUT) + offset
    logits = logits.reshape(len(x), -1)
    likelihood = jnp.sum(x * logits - jax.nn.softplus(logits), axis=1)
    divergence = 0.5 * jnp.sum(mean**2 + jnp.exp(log_variance) - 1.0 - log_variance, axis=1)
    return jnp.mean(likelihood - divergence)


@jax.jit
def adam(weights, state, key, x):
    key, draw = jax.random.split(key)
    noise = jax.random.normal(draw, (x.shape[0], LATENT))
    value, slope = jax.value_and_grad(convolutional_bound)(weights, x, noise)
    count, first, second = state
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slope)
    one, two = 1 - 0.9**count, 1 - 0.999**count
    weights = jax.tree.map(
        lambda w, m, v: w + RATE * (m / one) / (jnp.sqrt(v / two) + 1e-8), weights, first, second
    )
    return weights, (count, first, second), key, value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("train", nargs="?")
    parser.add_argument("test", nargs="?")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--convolutions", action="store_true")
    args = parser.parse_args()
    data = images(args.train)
    if args.convolutions:
        weights, step, of = convolutional(jax.random.key(0)), adam, convolutional_bound
        zeros = jax.tree.map(jnp.zeros_like, weights)
        squares = (jnp.zeros(()), zeros, zeros)
    else:
        weights, step, of = initial(jax.random.key(0)), update, bound
        squares = jax.tree.map(jnp.zeros_like, weights)
    key, order = jax.random.key(1), np.random.default_rng(1)
    seconds, values = [], []
    for _ in range(args.passes):
        chosen = order.permutation(len(data))
        start, cpu = time.perf_counter(), time.process_time()
        total = []
        for first in range(0, len(data), BATCH):
            x = data[chosen[first : first + BATCH]]
            weights, squares, key, value = step(weights, squares, key, x)
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
        result["test_bound"] = float(of(weights, test, noise))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
