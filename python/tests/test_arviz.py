"""Groups and functions of ArviZ, of 0.x and of 1.x, whichever is installed."""

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
    assert set(made["constant_data"].data_vars) == {"N", "x"}
    assert np.array_equal(made["approximation"]["log_weight"].values[0], fit.log_p - fit.log_q)


def test_the_file_of_the_command_has_the_same_groups(line, tmp_path):
    fit = jensen.fit(LINE, line, seed=2, out=tmp_path / "out")
    made, read = fit.to_arviz(), arviz.from_netcdf(tmp_path / "out" / "draws.nc")
    assert groups_of(read) - {""} == (groups_of(made) | {"sample_stats"}) - {""}
    for group in groups_of(made) - {""}:
        assert set(read[group].data_vars) == set(made[group].data_vars), group
        for name in made[group].data_vars:
            ours, theirs = read[group][name].values, made[group][name].values
            # ArviZ 0.x makes vectors of scalars.
            assert np.array_equal(ours, theirs if ours.ndim else theirs.reshape(())), (group, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, theirs = arviz.loo(made), arviz.loo(read)
    assert (mine.elpd_loo == theirs.elpd_loo) if OLD else (mine.elpd == theirs.elpd)


def test_functions_run_on_a_fit(line):
    fit = jensen.fit(LINE, line, seed=2)
    made = fit.to_arviz()
    with warnings.catch_warnings():
        # Some functions of ArviZ ask for two chains; draws that are independent have one.
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
    # Leaving one of thirty out costs about as many nats as there are parameters.
    assert 0 < by_hand - elpd < 5
    assert pair is not None and trace is not None and predictive is not None


def test_refined_draws_have_no_group_of_the_approximation():
    fit = jensen.fit("parameters { real<lower=0> x; } model { x ~ exponential(1); }", refine="always", seed=1)
    assert fit.refined and "approximation" not in groups_of(fit.to_arviz())


def test_names_can_be_given(line):
    program = LINE.replace("y_rep", "again").replace("log_lik", "score")
    fit = jensen.fit(program, line)
    made = fit.to_arviz(posterior_predictive=["again"], log_likelihood=["score"], observed={"again": line["y"]})
    assert list(made["posterior_predictive"].data_vars) == ["again"]
    assert list(made["log_likelihood"].data_vars) == ["score"]
    assert list(made["observed_data"].data_vars) == ["again"]
    with pytest.raises(KeyError, match="no variable of the fit"):
        fit.to_arviz(log_likelihood=["nothing"])
