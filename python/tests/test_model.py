import jensen
import numpy as np
import pytest
from scipy.optimize import minimize

from conftest import LINE


def test_the_density_is_the_line_s(line):
    model = jensen.Model(LINE, line)
    assert model.dim == 2 and model.unconstrained_names == ["alpha", "beta"]
    points = np.random.default_rng(0).normal(size=(5, 2))
    residuals = line["y"] - points[:, :1] - points[:, 1:] * line["x"]
    expected = -0.5 * (residuals**2).sum(axis=1) - 15 * np.log(2 * np.pi)
    assert model.log_density(points) == pytest.approx(expected, rel=1e-12)
    design = np.stack([np.ones(30), line["x"]], axis=1)
    values, gradients = model.gradient(points)
    assert values == pytest.approx(expected, rel=1e-12)
    assert gradients == pytest.approx(residuals @ design, rel=1e-10)
    v = np.ones((5, 2))
    assert model.hessian_vector(points, v) == pytest.approx(-v @ design.T @ design, rel=1e-10)
    one, slope = model.gradient(points[0])
    assert one == values[0] and np.array_equal(slope, gradients[0])


def test_an_optimiser_of_the_ecosystem_finds_the_mode(line, exact):
    model = jensen.Model(LINE, line)
    found = minimize(lambda z: tuple(-part for part in model.gradient(z)), np.zeros(2), jac=True)
    assert found.x == pytest.approx(exact[0], abs=1e-5)


def test_constraints_go_both_ways():
    program = """
    parameters { real<lower=0> s; matrix[2, 3] m; simplex[3] p; }
    model { s ~ exponential(1); to_vector(m) ~ normal(0, s); }
    """
    model = jensen.Model(program)
    values = {"s": 0.5, "m": np.arange(6.0).reshape(2, 3), "p": [0.2, 0.3, 0.5]}
    point = model.param_unconstrain(values)
    assert point.shape == (model.dim,) and point[0] == pytest.approx(np.log(0.5))
    again = model.param_constrain(point)
    for name, value in values.items():
        assert again[name] == pytest.approx(np.asarray(value))
    # The log-Jacobian of exp is the unconstrained value itself.
    with_it, without = jensen.Model(program), jensen.Model(program, jacobian=False)
    shift = np.zeros(model.dim)
    shift[0] = 0.1
    slope = (with_it.log_density(point + shift) - with_it.log_density(point)) - (
        without.log_density(point + shift) - without.log_density(point)
    )
    assert slope == pytest.approx(0.1)
    constants = with_it.log_density(point) - jensen.Model(program, propto=True).log_density(point)
    assert constants == pytest.approx(-3 * np.log(2 * np.pi))


def test_wrong_shapes_are_said(line):
    model = jensen.Model(LINE, line)
    with pytest.raises(ValueError, match=r"\(4, 3\): expected \(n, 2\)"):
        model.log_density(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="3 directions for 4 points"):
        model.hessian_vector(np.zeros((4, 2)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="expected \\(n, dim\\)"):
        model.log_density(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="expected 2"):
        model.param_constrain([1.0])
