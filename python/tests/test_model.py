import pickle

import jensen
import numpy as np
import pytest
from scipy.optimize import minimize

from conftest import LINE, SCHOOLS


def test_a_program_is_checked_before_there_are_data(line):
    program = jensen.Model(LINE)
    assert program.inputs == {"N": "int", "x": "vector", "y": "vector"} and program.source == LINE
    with pytest.raises(jensen.StanError, match="unknown|not declared|undeclared|y"):
        jensen.Model("parameters { real x; }\nmodel { y ~ normal(0, 1); }")
    with pytest.raises(FileNotFoundError, match="none.stan"):
        jensen.Model("none.stan")
    # A program can bind several data sets, and fits like its text.
    other = {"N": 2, "x": [0.0, 1.0], "y": [1.0, 3.0]}
    assert program.bind(line).log_density([0.0, 0.0]) != program.bind(other).log_density([0.0, 0.0])
    fit = program.fit(line, seed=4)
    assert np.array_equal(fit["y_rep"], jensen.fit(LINE, line, seed=4)["y_rep"])
    assert np.array_equal(fit["y_rep"], jensen.fit(program, line, seed=4)["y_rep"])
    with pytest.raises(jensen.StanError, match="x"):
        program.bind({"N": 2, "y": [1.0, 3.0]})
    from_path = jensen.Model(SCHOOLS / "eight_schools.stan")
    assert from_path.name.endswith("eight_schools.stan") and "J" in from_path.inputs


def test_the_density_of_the_line_is_exact(line):
    model = jensen.Model(LINE).bind(line)
    assert model.dim == 2 and model.unconstrained_names == ["alpha", "beta"]
    assert model.names[:3] == ["alpha", "beta", "log_lik[1]"] and model.dims["log_lik"] == (30,)
    assert len(model.names) == 62
    points = np.random.default_rng(0).normal(size=(5, 2))
    residuals = line["y"] - points[:, :1] - points[:, 1:] * line["x"]
    expected = -0.5 * (residuals**2).sum(axis=1) - 15 * np.log(2 * np.pi)
    assert model.log_density(points, propto=False) == pytest.approx(expected, rel=1e-12)
    # Log densities omit constants by default, as in BridgeStan.
    assert model.log_density(points) == pytest.approx(expected + 15 * np.log(2 * np.pi), rel=1e-12)
    design = np.stack([np.ones(30), line["x"]], axis=1)
    values, gradients = model.gradient(points, propto=False)
    assert values == pytest.approx(expected, rel=1e-12)
    assert gradients == pytest.approx(residuals @ design, rel=1e-10)
    v = np.ones((5, 2))
    assert model.hessian_vector(points, v) == pytest.approx(-v @ design.T @ design, rel=1e-10)
    one, slope = model.gradient(points[0], propto=False)
    assert one == values[0] and np.array_equal(slope, gradients[0])


def test_an_optimiser_of_the_ecosystem_finds_the_mode(line, exact):
    model = jensen.Model(LINE).bind(line)
    found = minimize(lambda z: tuple(-part for part in model.gradient(z)), np.zeros(2), jac=True)
    assert found.x == pytest.approx(exact[0], abs=1e-5)


def test_constrain_and_unconstrain_are_inverses():
    program = """
    parameters { real<lower=0> s; matrix[2, 3] m; simplex[3] p; }
    model { s ~ exponential(1); to_vector(m) ~ normal(0, s); }
    """
    model = jensen.Model(program).bind()
    values = {"s": 0.5, "m": np.arange(6.0).reshape(2, 3), "p": [0.2, 0.3, 0.5]}
    point = model.param_unconstrain(values)
    assert point.shape == (model.dim,) and point[0] == pytest.approx(np.log(0.5))
    again = model.param_constrain(point)
    for name, value in values.items():
        assert again[name] == pytest.approx(np.asarray(value))
    # One row per point, as for the other methods.
    many = model.param_constrain(np.stack([point, 0 * point]))
    assert many["m"].shape == (2, 2, 3) and np.array_equal(many["m"][0], again["m"]) and many["s"].tolist() == [0.5, 1.0]
    # The log-Jacobian of exp is the unconstrained value itself.
    shift = np.zeros(model.dim)
    shift[0] = 0.1
    with_it, without = (
        np.diff(model.log_density(np.stack([point, point + shift]), jacobian=jacobian))[0] for jacobian in (True, False)
    )
    assert with_it - without == pytest.approx(0.1)
    constants = model.log_density(point, propto=False) - model.log_density(point)
    assert constants == pytest.approx(-3 * np.log(2 * np.pi))


def test_constrained_values_have_the_requested_parts(line):
    program = """
    parameters { real z; }
    transformed parameters { real s = exp(z); }
    model { z ~ std_normal(); }
    generated quantities { real r = normal_rng(s, 1); }
    """
    model = jensen.Model(program).bind()
    assert list(model.param_constrain([0.5])) == ["z", "s", "r"]
    assert all(isinstance(value, np.ndarray) for value in model.param_constrain([0.5]).values())
    assert list(model.param_constrain([0.5], include_tp=False, include_gq=False)) == ["z"]
    assert list(model.param_constrain([0.5], include_gq=False)) == ["z", "s"]
    # Random numbers depend on the seed and the row.
    rows = model.param_constrain(np.zeros((3, 1)), seed=2)
    assert len(set(rows["r"])) == 3 and rows["r"][0] == model.param_constrain([0.0], seed=2)["r"]
    assert rows["r"][0] != model.param_constrain([0.0], seed=3)["r"]
    # At the draws of a fit, the model gives the values of the fit.
    fit = jensen.fit(LINE, line, seed=1, draws=20)
    points = np.column_stack([fit["alpha"], fit["beta"]])
    bound = jensen.Model(LINE).bind(line)
    assert np.array_equal(bound.param_constrain(points)["log_lik"], fit["log_lik"])
    assert bound.log_density(points, propto=False) == pytest.approx(fit.log_p, rel=1e-12)


def test_models_survive_pickling(line):
    model = jensen.Model(LINE).bind(line)
    again = pickle.loads(pickle.dumps(model))
    point = np.array([0.3, -1.0])
    assert again.log_density(point) == model.log_density(point)
    batches = pickle.loads(pickle.dumps(jensen.minibatch(LOGISTIC, logistic(), "N")))
    assert batches.records == 12


LOGISTIC = """
data { int<lower=0> N; matrix[N, 2] x; array[N] int<lower=0, upper=1> y; }
parameters { vector[2] b; }
model { b ~ normal(0, 2); y ~ bernoulli_logit(x * b); }
"""


def logistic():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 2))
    return {"N": 12, "x": x, "y": (rng.random(12) < 0.5).astype(int)}


def test_minibatches_average_to_the_log_density():
    data = logistic()
    model = jensen.minibatch(LOGISTIC, data, "N")
    whole = jensen.Model(LOGISTIC).bind(data)
    assert model.records == 12 and model.dim == 2 and model.names == ["b[1]", "b[2]"]
    points = np.random.default_rng(1).normal(size=(5, 2))
    values, gradients = model.gradient(points)
    assert values == pytest.approx(whole.log_density(points), rel=1e-12)
    assert gradients == pytest.approx(whole.gradient(points)[1], rel=1e-10)
    batches = np.random.default_rng(2).permutation(12).reshape(3, 4)
    estimates = [model.estimate_gradient(points, batch) for batch in batches]
    assert np.mean([value for value, _ in estimates], axis=0) == pytest.approx(values, rel=1e-12)
    assert np.mean([slope for _, slope in estimates], axis=0) == pytest.approx(gradients, rel=1e-10)
    # The estimate has the prior, and one record with the weight of all.
    b, record = points[0], 7
    eta = data["x"][record] @ b
    likelihood = data["y"][record] * eta - np.log1p(np.exp(eta))
    assert model.estimate(b, [record]) == pytest.approx(-(b @ b) / 8 + 12 * likelihood, rel=1e-10)
    # The fit equals a fit with the same settings, and the warning names this file.
    with pytest.warns(jensen.TrustWarning, match="50 iterations") as warned:
        fit = model.fit(batch=4, seed=1, max_iters=50)
        same = jensen.fit(LOGISTIC, data, exchangeable="N", batch=4, seed=1, max_iters=50)
    assert {warning.filename for warning in warned} == {__file__}
    assert np.array_equal(fit["b"], same["b"])


def test_wrong_minibatches_are_errors(line):
    model = jensen.minibatch(LOGISTIC, logistic(), "N")
    point = np.zeros(2)
    with pytest.raises(IndexError, match="0 to 12: expected 0 to 11"):
        model.estimate(point, [0, 12])
    with pytest.raises(IndexError, match="from -1"):
        model.estimate(point, [-1])
    for records in ([], [0.5], 3, [[1]]):
        with pytest.raises(ValueError, match="one whole number or more"):
            model.estimate(point, records)
    with pytest.raises(jensen.StanError, match="M"):
        jensen.minibatch(LOGISTIC, logistic(), "M")
    dependent = LINE.replace("model {", "model { sum(y) ~ normal(alpha, 1); for (n in 2:N) y[n] ~ normal(y[n - 1], 1);")
    with pytest.raises(jensen.StanError, match="record"):
        jensen.minibatch(dependent, line, "N")


def test_wrong_shapes_are_errors(line):
    model = jensen.Model(LINE).bind(line)
    with pytest.raises(ValueError, match=r"\(4, 3\): expected \(n, 2\)"):
        model.log_density(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="3 directions for 4 points"):
        model.hessian_vector(np.zeros((4, 2)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="expected \\(n, dim\\)"):
        model.log_density(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match=r"\(1, 1\): expected \(n, 2\)"):
        model.param_constrain([1.0])
    with pytest.raises(TypeError, match="points of type str"):
        model.gradient("here")
    with pytest.raises(ValueError, match="beta"):
        model.param_unconstrain({"alpha": 1.0})
    with pytest.raises(ValueError, match="threads"):
        jensen.Model(LINE).bind(line, threads=0)
