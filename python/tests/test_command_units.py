"""Units of a table do not matter to commands: other origins and scales change bounds by the Jacobian, and predictions by the map."""

import csv
import json
import math
import subprocess
import sys

import numpy as np
import pytest

from jensen import regress, regress_predict

#: An origin in standard deviations, and a scale, of the response and of two columns.
UNITS = [
    {"y": (1e6, 1e-6), "x": (-1e6, 1e6), "z": (1e6, 1e-6)},
    {"y": (-1e6, 1e6), "x": (1e6, 1e-6), "z": (3.0, -1e6)},
    {"y": (0.0, -3.0), "x": (1e6, 1e6), "z": (-1e3, 1e-6)},
]
MOVES = pytest.mark.parametrize("units", UNITS, ids=["small", "large", "mirrored"])

RNG = np.random.default_rng(11)
ROWS = 60
G = np.arange(ROWS) % 6
ETA = RNG.normal(0, 0.5, 6)[G]
TABLE = {"x": RNG.normal(size=ROWS), "z": RNG.uniform(-2, 2, ROWS), "t": np.arange(ROWS) // 3, "region": np.arange(ROWS) % 9 + 1, "g": G}
ETA += 0.8 * TABLE["x"] + np.sin(2 * TABLE["z"]) - 0.3
NUMBERS = {**TABLE, "y": ETA + RNG.normal(0, 0.4, ROWS)}
HEAVY = {**TABLE, "y": ETA + 0.3 * RNG.standard_t(4, ROWS)}
POSITIVE = {**TABLE, "y": np.exp(ETA) * RNG.gamma(4, 0.25, ROWS)}
COUNTS = {**TABLE, "y": RNG.poisson(np.exp(ETA))}
SIGNS = {**TABLE, "y": (RNG.logistic(size=ROWS) < ETA).astype(int)}
SHARES = {**TABLE, "y": 1 / (1 + np.exp(-ETA - RNG.normal(0, 0.5, ROWS)))}
CENTRES = np.array([[0.0, 4.0, -4.0], [4.0, -4.0, 0.0], [-4.0, 0.0, 4.0]])
GROUPS = dict(zip("xyz", (CENTRES[np.repeat([0, 1, 2], 30)] + RNG.normal(size=(90, 3))).T))


def moved(table, units):
    """Returns the table in other units, and the maps v → a + b v of its columns."""
    maps = {name: (origin * np.std(table[name]) * abs(scale), scale) for name, (origin, scale) in units.items()}
    return {name: maps[name][0] + maps[name][1] * v if name in maps else v for name, v in table.items()}, maps


def write(path, table):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*(np.asarray(column).tolist() for column in table.values())))
    return path


def jensen(*arguments):
    line = [sys.executable, "-m", "jensen._command", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


def columns(text):
    """The numbers of a table that a command writes, by column."""
    rows = list(csv.DictReader(text.splitlines()))
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]}


def in_order(predictions):
    """The probabilities of the parts, in the order of their first rows. The most likely part must be the stated one."""
    shares = np.column_stack([values for name, values in predictions.items() if name[0] == "p" and name[1:].isdigit()])
    stated = predictions.get("state", predictions.get("component"))
    assert (shares.argmax(axis=1) == stated - 1).all()
    return shares[:, np.argsort((shares > 0.5).argmax(axis=0))]


def fit(folder, command, table, *arguments):
    """Fits a table, and returns fit.json and the folder."""
    folder.mkdir()
    data = write(folder / "table.csv", table)
    made = jensen("--exit-zero", *command, "fit", data, "--json", "--out", folder / "fit", *arguments)
    return json.loads(made), folder / "fit"


def near(found, expected, tolerance):
    assert np.max(np.abs(np.asarray(found) - expected)) <= tolerance, (found, expected)


def latent(folder, table, likelihood, prior, *more):
    """Fits a latent Gaussian model, and predicts the first rows and new ones."""
    made, stored = fit(folder, ["latent"], table, "--likelihood", likelihood, "--prior", prior, "--response", "y", *more)
    return made, columns(jensen("latent", "predict", stored, "--at", write(folder / "at.csv", {name: v[::4] for name, v in table.items()})))


def same_predictions(one, other, shift, scale):
    """Predictions of rows follow the response's map within a hundredth of a standard deviation of the predictor."""
    sd = abs(scale) * one["eta_sd"].max()
    near(other["eta_mean"], shift + scale * one["eta_mean"], 0.01 * sd)
    near(other["eta_sd"], abs(scale) * one["eta_sd"], 0.01 * sd)
    low, high = ("y_q05", "y_q95") if scale > 0 else ("y_q95", "y_q05")
    near(other["y_q05"], shift + scale * one[low], 0.02 * sd)
    near(other["y_q95"], shift + scale * one[high], 0.02 * sd)
    near(other["log_density"] + math.log(abs(scale)), one["log_density"], 0.01)


LINEAR = [
    "intercept() + fixed(x, z) + iid(on=g)",
    "intercept() + fixed(x) + iid(on=g, by=(1, z))",
    "gp(rbf, ard, on=(x, z))",
    "intercept() + gp(rbf, on=x) * gp(matern52, on=z)",
    "intercept() + gp(linear, on=x) + gp(matern32, on=z)",
    "intercept() + hsgp(matern52, on=z) + fixed(x)",
    "fixed(x, z) + rw1(on=t)",
    "fixed(x, z) + rw2(on=t)",
    "intercept() + fixed(x) + ar1(on=t)",
    "intercept() + fixed(x) + ar1(on=z)",
    "fixed(x) + rw1(on=z)",
    "fixed(x) + rw2(on=z)",
    "fixed(x) + grid(rw1, 3, 3)",
    "intercept() + fixed(x) + grid(spde, 3, 3)",
    "fixed(x) + icar(graph=GRAPH, on=region)",
    "intercept() + fixed(x) + bym2(graph=GRAPH, on=region)",
    "te(on=(x, z), basis=5)",
    "intercept() + mesh(spde, on=(x, z), edge=EDGE)",
]


def square(folder):
    """The graph of nine regions in a square."""
    at = [(i, j) for i in range(3) for j in range(3)]
    near = [[b + 1 for b, (k, l) in enumerate(at) if abs(i - k) + abs(j - l) == 1] for i, j in at]
    path = folder / "square.graph"
    path.write_text("9\n" + "".join(f"{a + 1} {len(b)} {' '.join(map(str, b))}\n" for a, b in enumerate(near)))
    return path


@MOVES
@pytest.mark.parametrize("prior", LINEAR)
def test_latent_models(prior, units, tmp_path):
    prior = prior.replace("GRAPH", str(square(tmp_path)))
    table = {name: v[:9] for name, v in NUMBERS.items()} if "grid" in prior else NUMBERS
    if "mesh" in prior:
        # Distances need one unit.
        units = {**units, "z": (units["z"][0], units["x"][1])}
    one, rows = latent(tmp_path / "one", table, "gaussian", prior.replace("EDGE", "1"))
    there, maps = moved(table, units)
    other, moved_rows = latent(tmp_path / "other", there, "gaussian", prior.replace("EDGE", str(abs(units["x"][1]))))
    (a, b), jacobian = maps["y"], len(table["y"]) * math.log(abs(maps["y"][1]))
    near(other["bound"] + jacobian, one["bound"], 1e-3)
    if one["evidence"] is None:
        assert other["evidence"] is None
    else:
        near(other["evidence"] + jacobian, one["evidence"], 0.02)
    assert other["trusted"] == one["trusted"]
    same_predictions(rows, moved_rows, a, b)


def scales_of(name, b, d):
    """The factor of a hyperparameter if the response is multiplied by b and the column z by d."""
    if name in ("likelihood.scale", "gp.lengthscale"):
        return abs(d if name == "gp.lengthscale" else b)
    return {"variance": b * b, "precision": 1 / b**2}.get(name.split(".")[-1], 1.0)


@MOVES
@pytest.mark.parametrize(
    "likelihood, prior, table",
    [
        ("gaussian", "intercept() + fixed(x, z) + iid(on=g)", NUMBERS),
        ("gaussian", "gp(rbf, on=z)", NUMBERS),
        ("student-t", "intercept() + fixed(x, z) + iid(on=g)", HEAVY),
        ("student-t(degrees=4)", "gp(rbf, on=z)", HEAVY),
    ],
    ids=["groups", "process", "heavy tails, groups", "heavy tails, process"],
)
def test_intervals_of_latent_models(likelihood, prior, table, units, tmp_path):
    one, rows = latent(tmp_path / "one", table, likelihood, prior)
    there, maps = moved(table, units)
    other, moved_rows = latent(tmp_path / "other", there, likelihood, prior)
    (a, b), d = maps["y"], maps["z"][1]
    near(other["evidence"] + ROWS * math.log(abs(b)), one["evidence"], 0.02)
    same_predictions(rows, moved_rows, a, b)
    for here, there in zip(one["hyperparameters"], other["hyperparameters"]):
        if here["learnt"]:
            for value in ("value", "mean", "q05", "q95"):
                near(there[value] / scales_of(here["name"], b, d) / here[value], 1, 0.02)
    for here, there in zip(one["parameters"], other["parameters"]):
        name = here["name"]
        # The intercept and the values of the process at rows have the origin of y, and slopes have none.
        slope = {"fixed[x]": b / maps["x"][1], "fixed[z]": b / d}.get(name, b)
        shift = a if name.startswith("eta") else 0
        if name != "intercept":
            low, high = ("q05", "q95") if slope > 0 else ("q95", "q05")
            near((there["mean"] - shift) / slope, here["mean"], 0.01 * here["sd"])
            near((there["q05"] - shift) / slope, here[low], 0.02 * here["sd"])
            near((there["q95"] - shift) / slope, here[high], 0.02 * here["sd"])


#: Likelihoods whose response has no unit, with the columns of the table.
WITHOUT_UNITS = [
    ("poisson", COUNTS),
    ("negative-binomial", COUNTS),
    ("zero-inflated-poisson", COUNTS),
    ("bernoulli", SIGNS),
    ("probit", SIGNS),
    ("multinomial", {name: v[:30] for name, v in {**TABLE, "y": COUNTS["y"].clip(0, 2)}.items()}),
    ("beta", SHARES),
]


# The first two moves change columns by tiny and by huge factors, and one of them mirrors a column.
@pytest.mark.parametrize("units", UNITS[:2], ids=["small", "large"])
@pytest.mark.parametrize("likelihood, table", WITHOUT_UNITS, ids=[name for name, _ in WITHOUT_UNITS])
@pytest.mark.parametrize("prior", ["intercept() + fixed(x, z)", "intercept() + gp(rbf, on=z)"])
def test_columns_of_latent_models(likelihood, table, prior, units, tmp_path):
    # A fit with several predictors takes too long for an integration.
    flags = ["--hyperparameters", "point" if likelihood == "multinomial" else "integrate"]
    one, rows = latent(tmp_path / "one", table, likelihood, prior, *flags)
    there, _ = moved(table, {name: units[name] for name in "xz"})
    other, moved_rows = latent(tmp_path / "other", there, likelihood, prior, *flags)
    near(other["bound"], one["bound"], 1e-3)
    if one["evidence"] is not None:
        near(other["evidence"], one["evidence"], 0.02)
    for name in rows:
        if name.startswith(("eta", "mean", "log", "p")):
            near(moved_rows[name], rows[name], 0.01 * max(1, np.abs(rows[name]).max()))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("likelihood", ["lognormal", "gamma", "exponential", "weibull"])
def test_positive_responses_of_latent_models(likelihood, scale, tmp_path):
    # The unit of the response is a shift of the intercept, whose prior is N(0, 1000) and so changes the bound by a few tenths.
    prior = "intercept() + fixed(x) + iid(on=g)"
    one, rows = latent(tmp_path / "one", POSITIVE, likelihood, prior)
    other, moved_rows = latent(tmp_path / "other", {**POSITIVE, "y": scale * POSITIVE["y"]}, likelihood, prior)
    near(other["bound"] + ROWS * math.log(scale), one["bound"], 0.3)
    near(moved_rows["eta_mean"] - math.log(scale), rows["eta_mean"], 0.02 * rows["eta_sd"].max())
    near(moved_rows["mean"] / scale / rows["mean"], 1, 0.01)


FAMILIES = [["--covariance", "full"], ["--covariance", "diagonal"], ["--columns", "g=categorical"]]


@MOVES
@pytest.mark.parametrize("flags", FAMILIES, ids=["full", "diagonal", "mixed"])
@pytest.mark.parametrize("command", ["mixture", "hmm"])
def test_mixtures_and_chains(command, flags, units, tmp_path):
    table = {**GROUPS, "g": np.arange(90) % 4} if "--columns" in flags else GROUPS
    one, stored = fit(tmp_path / "one", [command], table, "-k", 3, *flags)
    there, maps = moved(table, units)
    other, moved_stored = fit(tmp_path / "other", [command], there, "-k", 3, *flags)
    log = sum(math.log(abs(scale)) for _, scale in maps.values())
    near(other["elbo"] + 90 * log, one["elbo"], 1e-4)
    near(other["baseline"]["score"] + 90 * log, one["baseline"]["score"], 1e-4)
    here = columns(jensen(command, "predict", stored, write(tmp_path / "here.csv", table)))
    away = columns(jensen(command, "predict", moved_stored, write(tmp_path / "there.csv", there)))
    # Two starts may find one optimum with its parts in another order.
    near(in_order(away), in_order(here), 1e-5)
    for name in set(here) & {"row", "log_density"}:
        near(away[name] + (log if name == "log_density" else 0), here[name], 1e-5)


FACTORS = RNG.normal(size=(90, 1)) @ [[1.0, -0.8, 0.6]] + RNG.normal(0, 0.4, (90, 3))


@MOVES
@pytest.mark.parametrize("missing", [0, 9], ids=["complete", "missing"])
def test_factor_analysis(missing, units, tmp_path):
    table = dict(zip("xyz", FACTORS.T.copy()))
    there, maps = moved(table, units)
    for rows in (table, there):
        rows["y"][:missing] = np.nan
    one, stored = fit(tmp_path / "one", ["factor-analysis"], table, "-k", 1)
    other, moved_stored = fit(tmp_path / "other", ["factor-analysis"], there, "-k", 1)
    log = sum((90 - missing * (name == "y")) * math.log(abs(scale)) for name, (_, scale) in maps.items())
    # The iterations end with a tolerance of 1e-4 nats.
    near(other["bound"] + log, one["bound"], 1e-2)
    sign = np.sign(other["loadings"][0][0] * one["loadings"][0][0] * maps["x"][1])
    for at, (a, b) in enumerate(maps[name] for name in "xyz"):
        near(other["intercepts"][at], a + b * one["intercepts"][at], 1e-2 * abs(b))
        near(sign * other["loadings"][at][0] / b, one["loadings"][at][0], 1e-2)
        near(other["noise"][at] / b**2 / one["noise"][at], 1, 1e-2)
    here, away = (columns((folder / "completed.csv").read_text()) for folder in (stored, moved_stored))
    for name, (a, b) in maps.items():
        near(away[name], a + b * here[name], 1e-2 * abs(b))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_factors_have_one_scale(scale, tmp_path):
    on = np.random.default_rng(5).random((120, 2)) < 0.3
    rows = on @ np.array([[3.0, 0.0, 3.0], [0.0, 4.0, 4.0]]) + np.random.default_rng(6).normal(0, 0.3, (120, 3))
    one, _ = fit(tmp_path / "one", ["factors"], dict(zip("xyz", rows.T)), "-k", 2, "--noise-variance", 0.09)
    other, _ = fit(tmp_path / "other", ["factors"], dict(zip("xyz", scale * rows.T)), "-k", 2, "--noise-variance", 0.09 * scale**2)
    near(other["elbo"] + 360 * math.log(scale), one["elbo"], 1e-4)
    near(np.array(other["factors"]) / scale, one["factors"], 1e-4)


DECODERS = {
    "gaussian": ["--decoder", "gaussian=free"],
    "student-t": ["--decoder", "student-t"],
    "mixed": ["--decoder", "mixed", "--columns", "x=student-t"],
    "given": ["--decoder", "gaussian=free", "--given", "z"],
}


@MOVES
@pytest.mark.parametrize("decoder", DECODERS)
def test_autoencoders(decoder, units, tmp_path):
    # With a negative scale the networks see the mirror image, and learn other weights.
    units = {name: (origin, abs(scale)) for name, (origin, scale) in units.items()}
    table = {**GROUPS, "b": np.arange(90) % 2} if decoder == "mixed" else GROUPS
    there, maps = moved(table, units)
    flags = ["--latent", 1, "--hidden", 8, "--epochs", 20, "--batch", 10, "--optimizer", "adam", "--step-size", 0.02, "--threads", 1]
    one, stored = fit(tmp_path / "one", ["vae"], table, *flags, *DECODERS[decoder])
    other, moved_stored = fit(tmp_path / "other", ["vae"], there, *flags, *DECODERS[decoder])
    log = sum(math.log(scale) for name, (_, scale) in maps.items() if (decoder, name) != ("given", "z"))
    # Training has some hundred steps in single precision.
    near(other["bound"] + log, one["bound"], 2e-2)
    near(other["baseline"]["score"] + log, one["baseline"]["score"], 1e-3)
    here, away = (
        columns(jensen("vae", "reconstruct", folder, write(tmp_path / "rows.csv", rows))) for folder, rows in ((stored, table), (moved_stored, there))
    )
    for name, one, other in zip(table, here.values(), away.values(), strict=True):
        a, b = maps.get(name, (0, 1))
        near(other, a + b * one, 2e-2 * abs(b) * np.std(table[name]))


REGRESSIONS = {
    "groups": (["y ~ x + z + (1 | g)"], "gaussian", NUMBERS),
    "outliers": (["y ~ x + z", "nu = 4"], "student", HEAVY),
    "spread": (["y ~ x + z", "sigma ~ x"], "gaussian", NUMBERS),
    "smooth": (["y ~ x + s(z, k = 5)"], "gaussian", NUMBERS),
    "process": (["y ~ x + gp(z, k = 8)"], "gaussian", NUMBERS),
    "splines": (["y ~ x + ns(z, df = 3)"], "gaussian", NUMBERS),
    "polynomial": (["y ~ x + poly(z, 2)"], "gaussian", NUMBERS),
    "interaction": (["y ~ scale(x) * scale(z)"], "gaussian", NUMBERS),
    "skew": (["y ~ x + z"], "skew_normal", NUMBERS),
    "poisson": (["y ~ x + z + (1 | g)"], "poisson", COUNTS),
    "negbinomial": (["y ~ x + z"], "negbinomial", COUNTS),
    "bernoulli": (["y ~ x + s(z, k = 5)"], "bernoulli", SIGNS),
    "beta": (["y ~ x + z"], "beta", SHARES),
    "gamma": (["y ~ x + z"], "gamma", POSITIVE),
    "lognormal": (["y ~ x + z"], "lognormal", POSITIVE),
    "weibull": (["y ~ x + z"], "weibull", POSITIVE),
}


def regression(folder, table, name, draws=200):
    """Fits a regression, and predicts every fourth row. Chains of refined draws would amplify rounding errors, so the draws are the approximation's."""
    formulas, family, _ = REGRESSIONS[name]
    made = regress(formulas, table, family=family, refine="none", seed=1, draws=draws, out=folder, threads=1)
    return made, regress_predict(folder, {name: v[::4] for name, v in table.items()}, seed=1)


@pytest.mark.filterwarnings("ignore::jensen.TrustWarning")
@MOVES
@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions(name, units, tmp_path):
    _, family, table = REGRESSIONS[name]
    if family in ("gamma", "lognormal", "weibull"):
        units = {**units, "y": (0, abs(units["y"][1]))}
    elif family not in ("gaussian", "student", "skew_normal"):
        units = {name: units[name] for name in "xz"}
    one, rows = regression(tmp_path / "one", table, name)
    # Negative scales are tested below.
    there, maps = moved(table, {name: (origin, abs(scale)) for name, (origin, scale) in units.items()})
    other, moved_rows = regression(tmp_path / "other", there, name)
    a, b = maps.get("y", (0, 1))
    near(other.elbo + ROWS * math.log(b), one.elbo, 1e-3)
    for what in ("expected", "predicted"):
        near((moved_rows[what] - a) / b, rows[what], 1e-2 * rows[what].std())


@pytest.mark.filterwarnings("ignore::jensen.TrustWarning")
@pytest.mark.parametrize("name", ["groups", "smooth", "process"])
def test_mirrored_regressions(name, tmp_path):
    # The mirror image has other random numbers, so the tolerance is that of 1000 draws.
    _, _, table = REGRESSIONS[name]
    one, rows = regression(tmp_path / "one", table, name, 1000)
    there, maps = moved(table, {"y": (1e6, -1e-6), "x": (-1e6, -1e6), "z": (1e6, -1e6)})
    other, moved_rows = regression(tmp_path / "other", there, name, 1000)
    a, b = maps["y"]
    near(other.elbo + ROWS * math.log(abs(b)), one.elbo, 0.2)
    here, away = rows["expected"], (moved_rows["expected"] - a) / b
    near(away.mean(0), here.mean(0), 0.2 * here.std(0).max())
    near(away.std(0) / here.std(0), 1, 0.15)


@pytest.mark.filterwarnings("ignore::jensen.TrustWarning")
@pytest.mark.parametrize("scales", [(1e6, 1e-6), (1e-6, 1e6)])
def test_slopes_of_groups(scales, tmp_path):
    # A group's level is its predictor at z = 0, so another origin of z is another model.
    b, d = scales
    moved_table = {**NUMBERS, "y": b * NUMBERS["y"], "z": d * NUMBERS["z"]}
    one, other = (
        regress("y ~ x + z + (z | g)", table, refine="none", seed=1, draws=200, threads=1, out=tmp_path / name)
        for name, table in (("one", NUMBERS), ("other", moved_table))
    )
    near(other.elbo + ROWS * math.log(b), one.elbo, 1e-3)
    for name, unit in (("Intercept", b), ("sd_g", [b, b / d]), ("sigma", b), ("b", [b, b / d])):
        near(np.mean(other[name], 0) / unit / np.mean(one[name], 0), 1, 1e-2)
