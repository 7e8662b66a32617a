#!/usr/bin/env python3
"""Computes crates/latent/tests/moments.json: posterior means and standard deviations of small latent Gaussian models.

    python3 tools/oracle/latent_moments.py crates/latent/tests/moments.json

The script samples the posterior by elliptical slice sampling (Murray, Adams and MacKay 2010) in 512 independent chains. Standard errors
come from the spread of the chains' averages. The script needs numpy.
"""

import json
import sys

import numpy as np

CHAINS, BURN_IN, KEPT = 512, 300, 3000


def log_bernoulli(y, eta):
    return (y * eta - np.logaddexp(0.0, eta)).sum(-1)


def log_poisson(y, eta):
    return (y * eta - np.exp(eta)).sum(-1)


def log_volatility(y, eta):
    return (-0.5 * eta - 0.5 * y**2 * np.exp(-eta)).sum(-1)


def log_student(y, eta):
    return (-2.5 * np.log1p((y - eta) ** 2 / (4.0 * 0.25))).sum(-1)


def sample(covariance, log_likelihood, y, random):
    root = np.linalg.cholesky(covariance)
    n = len(y)
    z = random.standard_normal((CHAINS, n)) @ root.T
    at = log_likelihood(y, z)
    first, second = np.zeros((CHAINS, n)), np.zeros((CHAINS, n))
    for iteration in range(BURN_IN + KEPT):
        other = random.standard_normal((CHAINS, n)) @ root.T
        level = at + np.log(random.random(CHAINS))
        angle = 2.0 * np.pi * random.random(CHAINS)
        low, high = angle - 2.0 * np.pi, angle.copy()
        waiting = np.ones(CHAINS, bool)
        new, new_at = z.copy(), at.copy()
        while waiting.any():
            trial = z * np.cos(angle)[:, None] + other * np.sin(angle)[:, None]
            value = log_likelihood(y, trial)
            good = waiting & (value > level)
            new[good], new_at[good] = trial[good], value[good]
            waiting &= ~good
            low = np.where(waiting & (angle < 0), angle, low)
            high = np.where(waiting & (angle >= 0), angle, high)
            angle = np.where(waiting, low + (high - low) * random.random(CHAINS), angle)
        z, at = new, new_at
        if iteration >= BURN_IN:
            first += z
            second += z**2
    first, second = first / KEPT, second / KEPT
    mean = first.mean(0)
    return {
        "mean": mean.tolist(),
        "sd": np.sqrt(second.mean(0) - mean**2).tolist(),
        "se": (first.std(0, ddof=1) / np.sqrt(CHAINS)).tolist(),
    }


def main():
    random = np.random.default_rng(20130616)
    n = 10
    x = np.linspace(0.0, 4.5, n)
    smooth = lambda variance, length: variance * np.exp(-0.5 * ((x[:, None] - x) / length) ** 2) + 1e-6 * np.eye(n)
    rough = lambda variance, rho: variance * rho ** np.abs(np.arange(n)[:, None] - np.arange(n))
    models = [
        ("bernoulli", smooth(4.0, 1.0), log_bernoulli, [0, 0, 1, 0, 1, 1, 1, 1, 0, 1]),
        ("poisson", smooth(1.0, 1.5), log_poisson, [0, 1, 0, 2, 3, 1, 4, 6, 5, 3]),
        ("stochastic-volatility", rough(1.0, 0.9), log_volatility, [0.3, -0.1, 0.5, 1.9, -2.4, 1.1, 0.7, -0.2, 0.4, 0.1]),
        ("student-t", smooth(2.0, 1.0), log_student, [0.1, 0.4, 0.9, 5.0, 1.2, 0.8, 0.1, -0.6, -1.1, -0.9]),
    ]
    out = []
    for name, covariance, log_likelihood, y in models:
        moments = sample(covariance, log_likelihood, np.array(y, float), random)
        out.append({"likelihood": name, "covariance": covariance.ravel().tolist(), "response": y, **moments})
    note = f"elliptical slice sampling, {CHAINS} chains of {KEPT} steps after {BURN_IN}; tools/oracle/latent_moments.py"
    with open(sys.argv[1], "w") as file:
        json.dump({"how": note, "models": out}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
