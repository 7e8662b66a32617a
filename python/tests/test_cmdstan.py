"""CmdStanPy reads ``draws.csv``, without CmdStan."""

import pickle
import subprocess
import sys
import warnings

import jensen
import numpy as np
import pytest

from conftest import LINE, SCHOOLS

cmdstanpy = pytest.importorskip("cmdstanpy")

SHAPES = """
parameters { real<lower=0> s; array[2] matrix[3, 2] a; simplex[3] p; }
model { s ~ lognormal(0.5, 0.1); for (i in 1:2) to_vector(a[i]) ~ normal(i, 1); }
generated quantities { real twice = 2 * s; int one = 1; }
"""


def same(read, fit):
    """Asserts that CmdStanPy reads every draw of every variable with all bits and its shape."""
    assert isinstance(read, cmdstanpy.CmdStanVB)
    assert set(read.metadata.stan_vars) == set(fit)
    for name in fit:
        draws = read.stan_variable(name, mean=False)
        assert draws.shape == fit[name].shape and np.array_equal(draws, fit[name]), name
    stats = read.variational_sample_pd
    assert np.array_equal(stats["log_p__"], fit.log_p) and np.array_equal(stats["log_g__"], fit.log_q)
    assert (stats["lp__"] == 0).all() and (read.variational_params_np[:3] == 0).all()


def test_draws_shapes_and_means(tmp_path):
    out = tmp_path / "out"
    with warnings.catch_warnings():
        # Independent normals are slightly inaccurate for a simplex.
        warnings.simplefilter("ignore", jensen.TrustWarning)
        fit = jensen.fit(SHAPES, out=out, seed=3, draws=200, refine="none")
    read = cmdstanpy.from_csv(str(out / "draws.csv"), method="variational")
    same(read, fit)
    config = read.metadata.cmdstan_config
    assert config["output_samples"] == 200 and config["seed"] == 3 and config["iter"] == 10000
    assert config["jensen_draws_of"] == "approximation" and config["jensen_refine"] == "none"
    # The first row has the mean of the approximation. The mean of log s is known exactly, and transforms to the median of s.
    mean = {name: read.stan_variable(name, mean=True) for name in fit}
    assert mean["s"] == pytest.approx(np.exp(0.5), abs=0.01)
    assert mean["twice"] == 2 * mean["s"] and mean["one"] == 1
    assert mean["a"] == pytest.approx(np.stack([np.full((3, 2), 1.0), np.full((3, 2), 2.0)]), abs=0.02)
    assert mean["p"].sum() == pytest.approx(1)
    assert read.column_names[:5] == ("lp__", "log_p__", "log_g__", "s", "a[1,1,1]")


def test_every_fit_writes_the_file_of_the_command(line, tmp_path):
    out = tmp_path / "out"
    fit = jensen.fit(LINE, line, out=out)
    expected = (out / "draws.csv").read_bytes()
    for other in (fit, jensen.load(out), pickle.loads(pickle.dumps(fit))):
        other.to_cmdstan_csv(tmp_path / "again.csv")
        assert (tmp_path / "again.csv").read_bytes() == expected


def test_refined_draws_keep_the_layout(tmp_path):
    fit = jensen.fit(SCHOOLS / "eight_schools.stan", SCHOOLS / "eight_schools.json", seed=4)
    assert fit.refined
    beside = sorted(SCHOOLS.iterdir())
    fit.to_cmdstan_csv(tmp_path / "schools.csv")
    read = cmdstanpy.from_csv(str(tmp_path / "schools.csv"))
    same(read, fit)
    assert read.metadata.cmdstan_config["jensen_draws_of"] == "refined"
    # CmdStanPy names files after the model, so a path would put them in the program's folder.
    assert read.metadata.cmdstan_config["model"] == "eight_schools_model" and sorted(SCHOOLS.iterdir()) == beside
    # The first row averages more refined draws than the file has, so it is within five standard errors of their mean.
    error = fit["mu"].std() / np.sqrt(len(fit["mu"]))
    assert read.stan_variable("mu", mean=True) == pytest.approx(fit["mu"].mean(), abs=5 * error)


def test_the_file_has_the_settings_of_advi(line, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = jensen.fit(LINE, line, method="advi", family="fullrank", grad_samples=4, advi_iters=3000, out=tmp_path / "out")
    read = cmdstanpy.from_csv(str(tmp_path / "out" / "draws.csv"))
    same(read, fit)
    config = read.metadata.cmdstan_config
    assert (config["algorithm"], config["grad_samples"], config["iter"]) == ("fullrank", 4, 3000)
    # The step size is one of the scales that Stan's search tries, and is the same for further draws.
    assert read.eta in (100, 10, 1, 0.1, 0.01)
    more = tmp_path / "more.csv"
    command = [sys.executable, "-m", "jensen._command", "draws", tmp_path / "out", "--draws", "5", "--out", more]
    subprocess.run(command, check=True)
    again = cmdstanpy.from_csv(str(more))
    assert again.eta == read.eta and again.metadata.cmdstan_config["iter"] == 3000
    assert np.array_equal(again.variational_sample, read.variational_sample[:5])
    assert np.array_equal(again.variational_params_np, read.variational_params_np)


def test_a_low_rank_family_is_named_after_the_full_one(tmp_path):
    program = "parameters { vector[6] x; } model { x ~ normal(0, 1); sum(x) ~ normal(0, 0.5); }"
    with pytest.warns(jensen.TrustWarning, match="lowrank=2"):
        fit = jensen.fit(program, family="lowrank=2", refine="none", out=tmp_path / "out")
    read = cmdstanpy.from_csv(str(tmp_path / "out" / "draws.csv"))
    same(read, fit)
    config = read.metadata.cmdstan_config
    assert config["algorithm"] == "fullrank" and config["jensen_fitted_family"] == "lowrank 2"


def test_a_density_in_python_has_the_row_of_the_mean(tmp_path):
    fit = jensen.fit(density=lambda z: (-0.5 * (z**2).sum(axis=1), -z), names=["a", "b"])
    fit.to_cmdstan_csv(tmp_path / "draws.csv")
    same(cmdstanpy.from_csv(str(tmp_path / "draws.csv")), fit)


def test_a_model_that_rejects_the_mean_has_no_row_of_it(tmp_path):
    program = """
    parameters { real x; }
    model { x ~ normal(0, 1); }
    generated quantities { if (abs(x) < 1e-3) reject("too near"); }
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = jensen.fit(program, out=tmp_path / "out")
    read = cmdstanpy.from_csv(str(tmp_path / "out" / "draws.csv"))
    assert np.isnan(read.variational_params_np[3:]).all()
    same(read, fit)
