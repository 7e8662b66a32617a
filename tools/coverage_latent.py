"""Estimates the coverage of 90 % intervals of latent Gaussian models on simulated tables.

    python tools/coverage_latent.py BINARY --out FILE [--simulations 200] [--seed 1] [--only NAME ...]

The script needs NumPy. Each row of the table is a model. For each simulation the script draws hyperparameters, effects and fields from the
priors of the fit, and then a table. On average over such tables, intervals of the exact posterior have a coverage of 90 %. Flat directions
have no proper prior, and are 0. In the rows `groups …, fixed` all tables have the same level and standard deviations, and the model has its
default priors. No theorem gives the coverage of these rows.

FILE stores each finished row, so that a stopped run continues. At the end the script prints a table of all rows in FILE: the coverage, its
standard error over simulations, and the number of fits that were not trusted.
"""

import argparse
import csv
import io
import json
import math
import subprocess
import tempfile
import zlib
from pathlib import Path

import numpy as np

LOW = -math.log(0.1)  # The rate of pc(1, 0.1): one standard deviation in ten is above 1.
DEVIATION = "pc(1, 0.1)"


def deviation(rng):
    """A standard deviation from its prior."""
    return rng.exponential(1 / LOW)


class Simulated:
    """A simulated table, with its true values."""

    def __init__(self, rng, rows):
        self.rng, self.n = rng, rows
        self.eta = np.zeros(rows)
        self.columns, self.terms, self.truth, self.flags = {}, [], {}, ["--standardise", "off"]

    def know(self, kind, name, value):
        self.truth.setdefault(kind, {})[name] = float(value)

    def add(self, term, *parts):
        self.terms.append(term)
        for part in parts:
            self.eta = self.eta + part

    def intercept(self):
        level = self.rng.normal()
        self.know("level", "intercept", level)
        self.add("intercept(variance=1)", level)

    def fixed(self):
        x, slope = self.rng.normal(size=self.n), self.rng.normal()
        self.columns["x"] = x
        self.know("slope", "fixed[x]", slope)
        self.add("fixed(x, variance=1)", slope * x)

    def groups(self, count):
        s = deviation(self.rng)
        effects = self.rng.normal(0, s, count)
        g = np.arange(self.n) % count
        self.columns["g"] = g
        for k in range(count):
            self.know("field", f"iid[{k}]", effects[k])
        self.know("deviation", "iid.variance", s**2)
        self.add(f"iid(on=g, variance~{DEVIATION})", effects[g])

    def walk(self, order, nodes):
        """Draws a random walk with mean 0 and, for order two, without slope."""
        d = np.diff(np.eye(nodes), order, axis=0)
        values, vectors = np.linalg.eigh(d.T @ d)
        root = vectors[:, order:] / np.sqrt(values[order:])
        s, typical = deviation(self.rng), math.exp(0.5 * np.mean(np.log((root**2).sum(axis=1))))
        field = root @ self.rng.normal(size=nodes - order) * s / typical
        t = np.arange(self.n) % nodes
        self.columns["t"] = t
        name = f"rw{order}"
        for k in range(nodes):
            self.know("field", f"{name}[{k}]", field[k])
        self.know("deviation", f"{name}.precision", (typical / s) ** 2)
        self.add(f"{name}(on=t, precision~{DEVIATION})", field[t])

    def ar1(self, nodes):
        s, distance = deviation(self.rng), self.rng.exponential(1 / (math.log(2) / math.sqrt(-math.log1p(-0.25))))
        rho = math.sqrt(-math.expm1(-(distance**2))) * self.rng.choice([-1, 1])
        field = self.rng.normal(size=nodes) * s
        for k in range(1, nodes):
            field[k] = rho * field[k - 1] + math.exp(-0.5 * distance**2) * field[k]
        t = np.arange(self.n) % nodes
        self.columns["t"] = t
        for k in range(nodes):
            self.know("field", f"ar1[{k}]", field[k])
        self.know("deviation", "ar1.variance", s**2)
        self.know("correlation", "ar1.rho", rho)
        self.add(f"ar1(on=t, variance~{DEVIATION}, rho~pc(0.5, 0.5))", field[t])

    def process(self):
        """Draws a Gaussian process on [0, 1]. One in twenty lengthscales is below .1."""
        s, length = deviation(self.rng), self.rng.exponential(1 / (-math.log(0.05) * math.sqrt(0.1))) ** -2
        x = np.sort(self.rng.uniform(size=self.n))
        covariance = s**2 * np.exp(-0.5 * ((x[:, None] - x) / length) ** 2)
        values, vectors = np.linalg.eigh(covariance)
        field = vectors @ (np.sqrt(np.maximum(values, 0)) * self.rng.normal(size=self.n))
        self.columns["x"] = x
        for k in range(self.n):
            self.know("field", f"eta[{k + 1}]", field[k])
        self.know("deviation", "gp.variance", s**2)
        self.know("length", "gp.lengthscale", length)
        self.add(f"gp(rbf, on=x, variance~{DEVIATION}, lengthscale~pc(0.1, 0.05))", field)

    def regions(self, kind, side, folder):
        """Draws effects of regions of a square that are similar for neighbours."""
        nodes = side * side
        at = [(i, j) for i in range(side) for j in range(side)]
        near = [[b for b, (k, l) in enumerate(at) if abs(i - k) + abs(j - l) == 1] for i, j in at]
        graph = folder / "square.graph"
        graph.write_text(f"{nodes}\n" + "".join(f"{a + 1} {len(b)} {' '.join(str(k + 1) for k in b)}\n" for a, b in enumerate(near)))
        laplacian = np.zeros((nodes, nodes))
        for a, own in enumerate(near):
            laplacian[a, a] = len(own)
            laplacian[a, own] = -1
        values, vectors = np.linalg.eigh(laplacian)
        root = vectors[:, 1:] / np.sqrt(values[1:])
        typical = math.exp(0.5 * np.mean(np.log((root**2).sum(axis=1))))
        s, structured = deviation(self.rng), root @ self.rng.normal(size=nodes - 1) / typical
        region = np.arange(self.n) % nodes
        self.columns["region"] = region + 1
        if kind == "icar":
            field, precision = s * structured, (typical / s) ** 2
            term = f"icar(graph={graph}, on=region, precision~{DEVIATION})"
        else:
            # The share has the prior of its divergence with P(share < 1/2) = 2/3.
            gammas = np.append(1 / values[1:] / typical**2, 0)
            shares = 1 / (1 + np.exp(-np.linspace(-20, 20, 4001)))
            steps = shares[:, None] * (gammas - 1)
            distances = np.sqrt(np.maximum(np.sum(steps - np.log1p(np.maximum(steps, -1 + 1e-300)), axis=1), 0))
            wanted = self.rng.exponential(np.interp(0.5, shares, distances) / math.log(3))
            share = np.interp(wanted, distances, shares)
            field = s * (math.sqrt(1 - share) * self.rng.normal(size=nodes) + math.sqrt(share) * structured)
            precision, term = s**-2, f"bym2(graph={graph}, on=region, precision~{DEVIATION})"
            self.know("share", "bym2.phi", share)
            # The reported sums of both parts sum to zero, and the level has their mean.
            middle = field.mean()
            self.truth["level"]["intercept"] += middle
            self.eta = self.eta + middle
            field = field - middle
        for k in range(nodes):
            self.know("field", f"{kind}[{k + 1}]", field[k])
        self.know("deviation", f"{kind}.precision", precision)
        self.add(term, field[region])

    def observed(self, likelihood):
        """The response, and the likelihood with its priors."""
        rng, n, eta = self.rng, self.n, self.eta
        known = lambda name, value: self.know("noise", f"likelihood.{name}", value)
        text = likelihood
        if likelihood == "gaussian":
            s = deviation(rng)
            known("variance", s**2)
            y, text = eta + rng.normal(0, s, n), f"gaussian(variance~{DEVIATION})"
        elif likelihood == "student-t":
            s, degrees = deviation(rng), rng.gamma(2, 10)
            known("scale", s)
            known("degrees", degrees)
            y, text = eta + s * rng.standard_t(degrees, n), f"student-t(scale~{DEVIATION})"
        elif likelihood == "poisson":
            y = rng.poisson(np.exp(eta))
        elif likelihood == "negative-binomial":
            size = deviation(rng) ** -2
            known("size", size)
            y, text = rng.poisson(np.exp(eta) * rng.gamma(size, 1 / size, n)), f"negative-binomial(size~{DEVIATION})"
        elif likelihood == "gamma":
            shape = deviation(rng) ** -2
            known("shape", shape)
            y, text = np.maximum(np.exp(eta) * rng.gamma(shape, 1 / shape, n), 1e-300), f"gamma(shape~{DEVIATION})"
        elif likelihood == "exponential":
            y = np.exp(eta) * rng.exponential(size=n)
        elif likelihood == "bernoulli":
            y = rng.uniform(size=n) < 1 / (1 + np.exp(-eta))
        elif likelihood == "binomial":
            trials = rng.integers(1, 10, n)
            self.columns["trials"] = trials
            self.flags += ["--trials", "trials"]
            y = rng.binomial(trials, 1 / (1 + np.exp(-eta)))
        elif likelihood == "ordinal":
            steps = np.exp(rng.normal(0, 1.5, 2))
            known("step_1", steps[0])
            known("step_2", steps[1])
            cuts, text = np.cumsum([0, *steps]), "ordinal(levels=(0, 1, 2, 3))"
            y = (eta + rng.logistic(size=n) > cuts[:, None]).sum(axis=0)
        elif likelihood == "beta-binomial":
            precision, trials = deviation(rng) ** -2, rng.integers(1, 10, n)
            known("precision", precision)
            self.columns["trials"] = trials
            self.flags += ["--trials", "trials"]
            p = 1 / (1 + np.exp(-eta))
            y = rng.binomial(trials, rng.beta(np.maximum(precision * p, 1e-9), np.maximum(precision * (1 - p), 1e-9)))
            text = f"beta-binomial(precision~{DEVIATION})"
        elif likelihood == "zero-inflated-negative-binomial":
            odds, size = np.exp(rng.normal(0, 1.5)), deviation(rng) ** -2
            known("odds", odds)
            known("size", size)
            counts = rng.poisson((1 + odds) * np.exp(eta) * rng.gamma(size, 1 / size, n))
            y, text = np.where(rng.uniform(size=n) < odds / (1 + odds), 0, counts), f"{likelihood}(size~{DEVIATION})"
        elif likelihood == "hurdle-poisson":
            odds, rate = np.exp(rng.normal(0, 1.5)), np.exp(eta)
            known("odds", odds)
            # The first event of a Poisson process, given that there is one, and the events after it.
            first = -np.log1p(rng.uniform(size=n) * np.expm1(-rate))
            y = np.where(rng.uniform(size=n) < odds / (1 + odds), 0, 1 + rng.poisson(np.maximum(rate - first, 0)))
        elif likelihood == "tweedie":
            dispersion, shape = deviation(rng) ** 2, np.exp(rng.normal(0, 1.5))
            known("dispersion", dispersion)
            known("shape", shape)
            t = shape / (shape + 1)
            rate = np.exp(t * eta) / (t * dispersion)
            number = rng.poisson(rate)
            y = np.where(number > 0, rng.gamma(np.maximum(number, 1) * shape) * np.exp(eta) / rate / shape, 0)
            text = f"tweedie(dispersion~{DEVIATION})"
        elif likelihood == "probit":
            y = rng.normal(size=n) < eta
        elif likelihood == "stochastic-volatility":
            y = np.exp(0.5 * eta) * rng.normal(size=n)
        self.columns["y"] = np.asarray(y, dtype=float)
        self.likelihood = text


def categories(rng, _):
    """Draws three categories. Two of them have an intercept, a slope and group effects, with one standard deviation."""
    one = Simulated(rng, 120)
    x, g, s = rng.normal(size=120), np.arange(120) % 10, deviation(rng)
    etas = []
    for k in (1, 2):
        level, slope, effects = rng.normal(), rng.normal(), rng.normal(0, s, 10)
        one.know("level", f"intercept.{k}", level)
        one.know("slope", f"fixed[x].{k}", slope)
        for j in range(10):
            one.know("field", f"iid[{j}].{k}", effects[j])
        etas.append(level + slope * x + effects[g])
    one.know("deviation", "iid.variance", s**2)
    weights = np.exp(np.array([*etas, np.zeros(120)]))
    cut = np.cumsum(weights / weights.sum(axis=0), axis=0)
    one.columns.update(x=x, g=g, y=(rng.uniform(size=120) > cut).sum(axis=0))
    one.terms = ["intercept(variance=1)", "fixed(x, variance=1)", f"iid(on=g, variance~{DEVIATION})"]
    one.likelihood = "multinomial"
    return one


def grouped(likelihood, groups, rows=None):
    def simulate(rng, _):
        one = Simulated(rng, rows or 8 * groups)
        one.intercept()
        one.fixed()
        one.groups(groups)
        one.observed(likelihood)
        return one

    return simulate


def at_fixed_values(groups):
    """The same level and standard deviations each time, and default priors."""

    def simulate(rng, _):
        one = Simulated(rng, 8 * groups)
        g = np.arange(one.n) % groups
        effects = rng.normal(0, 1, groups)
        one.columns.update(g=g, y=10 + effects[g] + rng.normal(0, 1, one.n))
        one.know("level", "intercept", 10)
        one.know("deviation", "iid.variance", 1)
        one.know("noise", "likelihood.variance", 1)
        for k in range(groups):
            one.know("field", f"iid[{k}]", effects[k])
        one.terms, one.flags, one.likelihood = ["intercept()", "iid(on=g)"], [], "gaussian"
        return one

    return simulate


def with_part(likelihood, rows, part, *arguments, level=True):
    def simulate(rng, folder):
        one = Simulated(rng, rows)
        if level:
            one.intercept()
        getattr(one, part)(*arguments, **({"folder": folder} if part == "regions" else {}))
        one.observed(likelihood)
        return one

    return simulate


def slopes(rng, _):
    one = Simulated(rng, 20)
    one.intercept()
    one.fixed()
    one.observed("gaussian")
    return one


MODELS = {
    **{f"{likelihood}, 10 groups": grouped(likelihood, 10) for likelihood in (
        "gaussian", "student-t", "poisson", "negative-binomial", "gamma", "exponential", "bernoulli", "binomial", "probit",
        "ordinal", "beta-binomial", "zero-inflated-negative-binomial", "hurdle-poisson", "tweedie")},
    "multinomial, 10 groups": categories,
    "stochastic-volatility, ar1": with_part("stochastic-volatility", 200, "ar1", 200),
    **{f"groups {count}": grouped("gaussian", count) for count in (4, 6, 10, 30)},
    **{f"groups {count}, binary": grouped("bernoulli", count) for count in (4, 30)},
    "fixed": slopes,
    "rw1": with_part("gaussian", 60, "walk", 1, 30),
    "rw2": with_part("gaussian", 60, "walk", 2, 30),
    "ar1": with_part("gaussian", 60, "ar1", 30),
    "gp": with_part("gaussian", 40, "process", level=False),
    "icar": with_part("gaussian", 72, "regions", "icar", 6),
    "bym2": with_part("gaussian", 72, "regions", "bym2", 6),
    "rw1, counts": with_part("poisson", 60, "walk", 1, 30),
    "rw2, counts": with_part("poisson", 60, "walk", 2, 30),
    "ar1, counts": with_part("poisson", 60, "ar1", 30),
    "gp, counts": with_part("poisson", 40, "process", level=False),
    "icar, counts": with_part("poisson", 72, "regions", "icar", 6),
    "bym2, counts": with_part("poisson", 72, "regions", "bym2", 6),
    **{f"groups {count}, fixed": at_fixed_values(count) for count in (4, 6, 10, 30)},
}


def fitted(binary, one, folder):
    """Fits a simulated table. Returns None if the command rejects it."""
    table = folder / "table.csv"
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(one.columns)
    writer.writerows(zip(*[[float(v) if v != int(v) else int(v) for v in np.asarray(c, dtype=float)] for c in one.columns.values()], strict=True))
    table.write_text(text.getvalue())
    command = [binary, "latent", "fit", "--data", table, "--prior", " + ".join(one.terms), "--likelihood", one.likelihood,
               "--response", "y", "--json", "--threads", "1", "--exit-zero", "--quiet", *one.flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip()
    return json.loads(done.stdout), ""


def held(fit, truth):
    """Returns the coverage of the intervals for each kind of quantity."""
    rows = {r["name"]: r for r in fit["parameters"] + fit["hyperparameters"]}
    shares = {}
    for kind, values in truth.items():
        own = []
        for name, value in values.items():
            row = rows[name]
            # Hyperparameters with point estimates have no interval.
            if "q05" in row:
                own.append(row["q05"] <= value <= row["q95"])
        if own:
            shares[kind] = sum(own) / len(own)
    return shares


def measure(binary, name, simulations, seed):
    found, refused, errors, plain = {}, [], [], []
    with tempfile.TemporaryDirectory() as location:
        folder = Path(location)
        for number in range(simulations):
            rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
            one = MODELS[name](rng, folder)
            fit, error = fitted(binary, one, folder)
            if fit is None:
                errors.append([number, error])
                continue
            if not fit["trusted"]:
                refused.append([number, fit["warnings"][-1]])
            if fit["plain"]:
                result = fit["plain"]
                plain.append([(result["plain"] - result["own"]) * result["observations"], (result["plain"] - result["own"]) / result["error"], result["columns"]])
            for kind, share in held(fit, one.truth).items():
                found.setdefault(kind, []).append(share)
    kinds = {kind: [float(np.mean(v)), float(np.std(v) / math.sqrt(len(v)))] for kind, v in found.items()}
    return {"simulations": simulations, "seed": seed, "held": kinds, "refused": refused, "errors": errors, "plain": plain}


def table(rows):
    kinds = ["level", "slope", "field", "deviation", "correlation", "length", "share", "noise"]
    lines = ["| model | " + " | ".join(kinds) + " | not trusted |", "| --- " + "| ---: " * (len(kinds) + 1) + "|"]
    for name in MODELS:
        if name not in rows:
            continue
        row = rows[name]
        cell = lambda kind: "{:.1f} ± {:.1f}".format(*(100 * v for v in row["held"][kind])) if kind in row["held"] else ""
        lines.append(f"| {name} | " + " | ".join(map(cell, kinds)) + f" | {len(row['refused']) + len(row['errors'])} of {row['simulations']} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=list(MODELS), choices=list(MODELS), metavar="NAME")
    args = parser.parse_args()
    rows = json.loads(args.out.read_text()) if args.out.exists() else {}
    for name in args.only:
        kept = rows.get(name)
        if kept and (kept["simulations"], kept["seed"]) == (args.simulations, args.seed):
            continue
        rows[name] = measure(args.binary, name, args.simulations, args.seed)
        args.out.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
