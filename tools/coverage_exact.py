"""Compares intervals of hyperparameters with those of a fine grid, on tables of `coverage_latent.py`.

    python tools/coverage_exact.py BINARY MODEL [--simulations 60] [--seed 1]

The script needs NumPy. MODEL is `ar1` or `bym2`, each with a Gaussian likelihood, so that the density of a table given three hyperparameters
has a closed form. The script computes the posterior of the hyperparameters on a grid of a million points. For each hyperparameter it prints
how often 90 % intervals of the grid and of the command cover the simulated values, and the mass of the grid in the command's intervals.
Intervals of the exact posterior have a mass of 0.9. Their coverage on these tables is the bar for the coverage of the command.
"""

import argparse
import math
import tempfile
import zlib
from pathlib import Path

import numpy as np
from coverage_latent import LOW, MODELS, fitted

NOISE = np.linspace(-12, 3, 121)  # The logarithm of the variance of the noise.


def log_deviation(log_sd):
    """The log density of the logarithm of a variance whose square root has the prior pc(1, 0.1)."""
    return math.log(LOW) - LOW * np.exp(log_sd) + log_sd - math.log(2)


def sums(table, column, count):
    """The mean of each node, the number of rows of a node, and the sum of squares within nodes."""
    y, node = table.columns["y"], table.columns[column].astype(int)
    node = node - node.min()
    means = np.bincount(node, y, count) / np.bincount(node, minlength=count)
    return means, len(y) // count, ((y - means[node]) ** 2).sum()


def log_density(means, variances, level, rows, within, noise):
    """The log density of a table. The node means have `variances` and a common `level`, whose direction has the same coordinates."""
    overlap, weight = (means * level / variances).sum(-1), (level * level / variances).sum(-1)
    quadratic = (means ** 2 / variances).sum(-1) - overlap**2 / (1 + weight)
    nodes = len(means)
    constant = nodes * rows * math.log(2 * math.pi) + nodes * math.log(rows)
    return -0.5 * (constant + np.log(variances).sum(-1) + np.log1p(weight) + quadratic + nodes * (rows - 1) * noise + within / np.exp(noise))


class Autoregression:
    names = ["ar1.variance", "ar1.rho", "likelihood.variance"]
    kinds = ["deviation", "correlation", "noise"]
    axes = [np.linspace(-16, 4, 81), np.linspace(-12, 12, 97), NOISE]
    inner = [np.log, lambda rho: 2 * np.arctanh(np.clip(rho, -1 + 1e-15, 1 - 1e-15)), np.log]

    def __init__(self, table):
        self.means, self.rows, self.within = sums(table, "t", 30)

    def log_posterior(self):
        variance, correlation, noise = self.axes
        rate, apart = math.log(2) / math.sqrt(-math.log1p(-0.25)), np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
        slices = []
        for rho in np.tanh(correlation / 2):
            values, vectors = np.linalg.eigh(rho**apart)
            spread = np.exp(variance)[:, None, None] * np.maximum(values, 1e-14) + np.exp(noise)[None, :, None] / self.rows
            own = log_density(vectors.T @ self.means, spread, vectors.T @ np.ones(30), self.rows, self.within, noise)
            distance = math.sqrt(-math.log1p(-rho * rho))
            slices.append(own + math.log(rate / 4) - rate * distance + (math.log(abs(rho) / distance) if distance > 1e-6 else 0))
        return np.stack(slices, 1) + log_deviation(variance / 2)[:, None, None] + log_deviation(noise / 2)


class Map:
    names = ["bym2.precision", "bym2.phi", "likelihood.variance"]
    kinds = ["deviation", "share", "noise"]
    axes = [np.linspace(-4, 16, 81), np.linspace(-14, 14, 113), NOISE]
    inner = [np.log, lambda share: np.log(share / max(1 - share, 1e-16)), np.log]
    side = 6

    def __init__(self, table):
        nodes = self.side**2
        at = [(i, j) for i in range(self.side) for j in range(self.side)]
        near = np.array([[abs(i - k) + abs(j - l) == 1 for k, l in at] for i, j in at], dtype=float)
        values, self.vectors = np.linalg.eigh(np.diag(near.sum(1)) - near)
        root = self.vectors[:, 1:] / np.sqrt(values[1:])
        self.structured = np.append(0, 1 / values[1:]) / math.exp(np.mean(np.log((root**2).sum(axis=1))))
        self.means, self.rows, self.within = sums(table, "region", nodes)

    def log_posterior(self):
        precision, logit, noise = self.axes
        shares = 1 / (1 + np.exp(-logit))
        fine = np.linspace(-20, 20, 4001)
        steps = (1 / (1 + np.exp(-fine)))[:, None] * (self.structured - 1)
        distances = np.sqrt(np.maximum((steps - np.log1p(steps)).sum(1), 0))
        rate, slopes = math.log(3) / np.interp(0, fine, distances), np.gradient(distances, fine)
        level = self.vectors.T @ np.ones(len(self.means))
        slices = []
        for share, at in zip(shares, logit, strict=True):
            own = (1 - share) + share * self.structured
            spread = np.exp(-precision)[:, None, None] * own + np.exp(noise)[None, :, None] / self.rows
            prior = math.log(rate * np.interp(at, fine, slopes)) - rate * np.interp(at, fine, distances)
            slices.append(log_density(self.vectors.T @ self.means, spread, level, self.rows, self.within, noise) + prior)
        return np.stack(slices, 1) + log_deviation(-precision / 2)[:, None, None] + log_deviation(noise / 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("model", choices=["ar1", "bym2"])
    parser.add_argument("--simulations", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    grid = {"ar1": Autoregression, "bym2": Map}[args.model]
    covered, masses, evidence = np.zeros((3, 2)), [], []
    with tempfile.TemporaryDirectory() as location:
        for number in range(args.simulations):
            rng = np.random.default_rng([args.seed, zlib.crc32(args.model.encode()), number])
            table = MODELS[args.model](rng, Path(location))
            fit, error = fitted(args.binary, table, Path(location))
            if fit is None:
                raise SystemExit(error)
            log = grid(table).log_posterior()
            share = np.exp(log - log.max())
            total = share.sum()
            evidence.append(fit["evidence"] - log.max() - math.log(total * math.prod(axis[1] - axis[0] for axis in grid.axes)))
            found = {row["name"]: row for row in fit["hyperparameters"]}
            masses.append([])
            for k, (name, kind, axis, inner) in enumerate(zip(grid.names, grid.kinds, grid.axes, grid.inner, strict=True)):
                own = share.sum(axis=tuple({0, 1, 2} - {k})) / total
                below = np.cumsum(own) - 0.5 * own
                true, ends = inner(table.truth[kind][name]), [inner(found[name][q]) for q in ("q05", "q95")]
                covered[k] += [0.05 <= np.interp(true, axis, below) <= 0.95, ends[0] <= true <= ends[1]]
                masses[-1].append(np.interp(ends[1], axis, below) - np.interp(ends[0], axis, below))
    for k, kind in enumerate(grid.kinds):
        exact, own = 100 * covered[k] / args.simulations
        print(f"{kind}: grid {exact:.0f} %, command {own:.0f} %, mean mass of the command's intervals {np.mean(masses, axis=0)[k]:.2f}")
    print(f"evidence: median difference {np.median(np.abs(evidence)):.2f}, largest {np.max(np.abs(evidence)):.2f}")


if __name__ == "__main__":
    main()
