"""Groups and functions of the installed ArviZ, 0.x or 1."""

import json
import subprocess
import sys
import warnings

import jensen
import numpy as np
import pytest

from conftest import LINE

arviz = pytest.importorskip("arviz")
OLD = int(arviz.__version__.split(".")[0]) < 1


@pytest.fixture(autouse=True)
def no_window():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def groups_of(data):
    return set(data.groups()) if OLD else {name.strip("/") for name in data.groups}


@pytest.mark.parametrize("loaded", [False, True])
def test_groups_have_names_dimensions_and_coordinates(line, loaded, tmp_path):
    fit = jensen.fit(LINE, line, seed=2, out=tmp_path / "out")
    if loaded:
        fit = jensen.load(tmp_path / "out")
    made = fit.to_arviz(coords={"row": np.arange(30) + 5}, dims={"log_lik": ["row"], "y": ["row"]})
    expected = {"posterior", "posterior_predictive", "log_likelihood", "observed_data", "constant_data", "approximation"}
    assert expected <= groups_of(made)
    assert made["posterior"]["alpha"].shape == (1, 1000)
    assert set(made["posterior"].data_vars) == {"alpha", "beta"}
    assert np.array_equal(made["posterior"]["beta"].values[0], fit["beta"])
    assert made["log_likelihood"]["log_lik"].dims == ("chain", "draw", "row")
    assert made["log_likelihood"]["log_lik"].coords["row"].values[0] == 5
    assert np.array_equal(made["observed_data"]["y"].values, line["y"])
    # N is the size of the dimension of x.
    assert set(made["constant_data"].data_vars) == {"x"} and made["constant_data"].sizes["N"] == 30
    assert np.array_equal(made["approximation"]["log_weight"].values[0], fit.log_p - fit.log_q)


def test_the_file_of_the_command_has_the_same_groups(line, tmp_path):
    fit = jensen.fit(LINE, line, seed=2, out=tmp_path / "out")
    made, read = fit.to_arviz(), arviz.from_netcdf(tmp_path / "out" / "draws.nc")
    assert groups_of(read) - {""} == (groups_of(made) | {"sample_stats"}) - {""}
    for group in groups_of(made) - {""}:
        assert set(read[group].data_vars) == set(made[group].data_vars), group
        for name in made[group].data_vars:
            ours, theirs = read[group][name].values, made[group][name].values
            # ArviZ 0.x converts scalars to vectors.
            assert np.array_equal(ours, theirs if ours.ndim else theirs.reshape(())), (group, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, theirs = arviz.loo(made), arviz.loo(read)
    assert (mine.elpd_loo == theirs.elpd_loo) if OLD else (mine.elpd == theirs.elpd)


def command(*arguments):
    subprocess.run([sys.executable, "-m", "jensen._command", *map(str, arguments)], check=True)


def test_the_command_names_and_labels_dimensions(line, tmp_path):
    (tmp_path / "line.stan").write_text(LINE)
    (tmp_path / "line.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in zip(line["x"], line["y"])))
    labels = [f"day {row}" for row in range(30)]
    (tmp_path / "coords.json").write_text(json.dumps({"coords": {"N": labels, "replicate": labels}, "dims": {"y_rep": ["replicate"]}}))
    out = tmp_path / "out"
    command("fit", tmp_path / "line.stan", tmp_path / "line.csv", "--out", out, "--coords", tmp_path / "coords.json", "--quiet")
    command("draws", out, "--draws", 7, "--out", tmp_path / "more.nc")
    for file, draws in ((out / "draws.nc", 1000), (tmp_path / "more.nc", 7)):
        read = arviz.from_netcdf(file)
        assert read["log_likelihood"]["log_lik"].dims == ("chain", "draw", "N")
        assert read["log_likelihood"]["log_lik"].shape == (1, draws, 30)
        assert list(read["log_likelihood"]["N"].values) == labels
        assert read["posterior_predictive"]["y_rep"].dims == ("chain", "draw", "replicate")
    read = arviz.from_netcdf(out / "draws.nc")
    assert read["observed_data"]["y"].dims == read["constant_data"]["x"].dims == ("N",)
    assert float(read["observed_data"]["y"].sel(N="day 4")) == line["y"][4]
    made = jensen.load(out).to_arviz()
    assert list(made["log_likelihood"]["N"].values) == labels


def test_functions_accept_the_file_of_the_command(line, tmp_path):
    jensen.fit(LINE, line, seed=2, refine="none", out=tmp_path / "out")
    read = arviz.from_netcdf(tmp_path / "out" / "draws.nc")
    drawn = read["approximation"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = arviz.loo(read, pointwise=True)
        assert arviz.plot_khat(plain) is not None
        if OLD:
            assert arviz.plot_ppc(read, data_pairs={"y": "y_rep"}) is not None
            pit = arviz.loo_pit(read, y="y", y_hat="y_rep")
        else:
            # The approximation is close to the posterior, so importance weights change little.
            weighed = arviz.loo_approximate_posterior(read, log_p=drawn["log_p"], log_q=drawn["log_q"], pointwise=True)
            assert abs(plain.elpd - weighed.elpd) < 0.5
            # ArviZ 1 uses one name in all groups.
            for group, name in (("posterior_predictive", "y_rep"), ("log_likelihood", "log_lik")):
                read[group] = read[group].to_dataset().rename({name: "y"})
            assert arviz.plot_ppc_dist(read) is not None
            pit = arviz.loo_pit(read)["y"].values
    assert pit.shape == (30,) and ((0 <= pit) & (pit <= 1)).all()


def test_functions_run_on_a_fit(line):
    fit = jensen.fit(LINE, line, seed=2)
    made = fit.to_arviz()
    with warnings.catch_warnings():
        # Some functions of ArviZ need two chains, but independent draws are one chain.
        warnings.simplefilter("ignore")
        table = arviz.summary(made, var_names=["alpha", "beta"])
        scored = arviz.loo(made)
        pair = arviz.plot_pair(made, var_names=["alpha", "beta"])
        trace = arviz.plot_trace(made, var_names=["alpha"])
        if OLD:
            predictive = arviz.plot_ppc(made, data_pairs={"y": "y_rep"})
        else:
            observed = fit.to_arviz(observed={"y_rep": line["y"]})
            predictive = arviz.plot_ppc_dist(observed, var_names=["y_rep"])
    assert float(table.loc["alpha", "mean"]) == pytest.approx(fit["alpha"].mean(), abs=0.01)
    by_hand = np.log(np.exp(fit["log_lik"]).mean(axis=0)).sum()
    elpd = scored.elpd_loo if OLD else scored.elpd
    # Leave-one-out predictions lose about one nat per parameter.
    assert 0 < by_hand - elpd < 5
    assert pair is not None and trace is not None and predictive is not None


def test_refined_draws_have_no_group_of_the_approximation():
    fit = jensen.fit("parameters { real<lower=0> x; } model { x ~ exponential(1); }", refine="always", seed=1)
    assert fit.refined and "approximation" not in groups_of(fit.to_arviz())


def test_users_can_name_groups(line):
    program = LINE.replace("y_rep", "again").replace("log_lik", "score")
    fit = jensen.fit(program, line)
    made = fit.to_arviz(posterior_predictive=["again"], log_likelihood=["score"], observed={"again": line["y"]})
    assert list(made["posterior_predictive"].data_vars) == ["again"]
    assert list(made["log_likelihood"].data_vars) == ["score"]
    assert list(made["observed_data"].data_vars) == ["again"]
    with pytest.raises(KeyError, match="the fit has no variable"):
        fit.to_arviz(log_likelihood=["nothing"])
