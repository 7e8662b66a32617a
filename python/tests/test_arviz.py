import jensen
import numpy as np
import pytest

from conftest import LINE

arviz = pytest.importorskip("arviz")
OLD = int(arviz.__version__.split(".")[0]) < 1


@pytest.mark.parametrize("loaded", [False, True])
def test_groups_and_functions(line, loaded, tmp_path):
    fit = jensen.fit(LINE, line, seed=2, out=tmp_path / "out")
    if loaded:
        fit = jensen.load(tmp_path / "out")
    made = fit.to_arviz(coords={"row": np.arange(30)}, dims={"log_lik": ["row"]})
    groups = set(made.groups()) if OLD else {name.strip("/") for name in made.groups}
    expected = {"posterior", "posterior_predictive", "log_likelihood", "observed_data", "constant_data", "approximation"}
    assert expected <= groups
    assert made["posterior"]["alpha"].shape == (1, 1000)
    assert made["log_likelihood"]["log_lik"].dims == ("chain", "draw", "row")
    assert np.array_equal(made["observed_data"]["y"].values, line["y"])
    table = arviz.summary(made, var_names=["alpha", "beta"])
    assert table.loc["alpha", "mean"] == pytest.approx(fit["alpha"].mean(), abs=0.01)
    scored = arviz.loo(made)
    by_hand = np.log(np.exp(fit["log_lik"]).mean(axis=0)).sum()
    elpd = scored.elpd_loo if OLD else scored.elpd
    assert abs(elpd - by_hand) < 5
    if OLD:
        import matplotlib

        matplotlib.use("Agg")
        arviz.plot_trace(made, var_names=["alpha"])
        arviz.plot_pair(made, var_names=["alpha", "beta"])
        arviz.plot_ppc(made, data_pairs={"y": "y_rep"})
