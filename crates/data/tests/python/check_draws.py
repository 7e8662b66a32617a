"""Checks that ArviZ and CmdStanPy read what jensen-data writes, bit for bit.

Run, with ArviZ 0.2x or 1.x, netCDF4 or h5netcdf, and CmdStanPy installed:

    cargo run -p jensen-data --example write_draws -- FOLDER
    python crates/data/tests/python/check_draws.py FOLDER
"""

import sys
from pathlib import Path

import arviz as az
import cmdstanpy
import numpy as np

folder = Path(sys.argv[1])
DRAWS = 50
SHAPES = {"mu": (), "theta": (8,), "Sigma": (2, 2), "a": (2, 3, 4)}


def expected():
    """Arrays (1, draw, *shape) from the formula in the example; scalars of a draw are column-major."""
    width = sum(int(np.prod(s)) for s in SHAPES.values())
    table = (100 * np.arange(DRAWS)[:, None] + np.arange(width)) / 3.0
    arrays, start = {}, 0
    for name, shape in SHAPES.items():
        count = int(np.prod(shape))
        rows = table[:, start : start + count]
        arrays[name] = np.stack([row.reshape(shape, order="F") for row in rows])[None]
        start += count
    return arrays


def same(found, wanted, what):
    found = np.asarray(found)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (what, found.shape, wanted.shape)
    assert found.tobytes() == np.ascontiguousarray(wanted).tobytes(), what


log_p = (-10.0 - np.arange(DRAWS) / 7.0)[None]
log_g = (-11.0 + np.arange(DRAWS) / 3.0)[None]


data = az.from_netcdf(str(folder / "draws.nc"))
for name, wanted in expected().items():
    same(data["posterior"][name].values, wanted, name)
assert set(data["posterior"].data_vars) == set(SHAPES)
same(data["sample_stats"]["lp"].values, log_p, "lp")
for name, wanted in {"log_p": log_p, "log_q": log_g, "log_weight": log_p - log_g}.items():
    same(data["approximation"][name].values, wanted, name)
posterior = data["posterior"]
assert posterior["a"].dims == ("chain", "draw", "a_dim_0", "a_dim_1", "a_dim_2"), posterior["a"].dims
assert list(posterior.coords["draw"].values) == list(range(DRAWS))
assert posterior.attrs["inference_library"] == "jensen" and posterior.attrs["model_name"] == "known_numbers"
assert posterior.attrs["seed"] == "7"
same(data["constant_data"]["y"].values, np.array([[1.5, 2, 3], [4, 5, 6]]), "y")
assert int(data["constant_data"]["N"]) == 3
print(az.summary(data, var_names=["mu", "Sigma"], kind="stats"))

fit = cmdstanpy.from_csv(str(folder / "draws.csv"))
for name, wanted in expected().items():
    same(fit.stan_variable(name, mean=False), wanted[0], name)
same(fit.variational_params_np[3:], np.arange(37) / 7.0, "mean")
assert fit.eta == 0.1

print("ArviZ", az.__version__, "and CmdStanPy", cmdstanpy.__version__, "read the draws bit for bit")
