import time

import jensen
import numpy as np
import pytest

PRECISION = np.array([[2.0, 0.6], [0.6, 1.0]])


def gaussian(points):
    pulls = -points @ PRECISION
    return 0.5 * (points * pulls).sum(axis=1), pulls


def test_a_gaussian_in_numpy():
    fit = jensen.fit(density=gaussian, names=["a", "b"], draws=4000)
    assert fit.trusted and fit.keys() == ["a", "b"]
    draws = np.stack([fit["a"], fit["b"]], axis=1)
    assert np.cov(draws.T) == pytest.approx(np.linalg.inv(PRECISION), abs=0.08)
    # The ELBO of an exact family is the log evidence.
    assert fit.elbo == pytest.approx(np.log(2 * np.pi) - 0.5 * np.log(np.linalg.det(PRECISION)), abs=1e-3)


def test_the_fit_uses_hessian_vector_products():
    calls = []

    def products(points, directions):
        calls.append(len(points))
        return -directions @ PRECISION

    given = jensen.fit(density=gaussian, hvp=products, dim=2)
    assert calls and given.trusted and given.keys() == ["z1", "z2"]


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda p: 1 / 0, ZeroDivisionError, "division"),
        (lambda p: -0.5 * (p**2).sum(axis=1), TypeError, "values and gradients"),
        (lambda p: (-0.5 * (p**2).sum(axis=1), p[:, :1]), ValueError, "shape"),
        (lambda p: (np.zeros(3), p), ValueError, "3 values for"),
        (lambda p: (np.zeros(len(p), dtype=np.float32), p), TypeError, "float64"),
    ],
)
def test_a_density_that_fails_is_an_exception(wrong, kind, message):
    with pytest.raises(kind, match=message):
        jensen.fit(density=wrong, dim=2)


def test_functions_are_called_by_one_thread_at_a_time():
    inside = []

    def constrain(z):
        assert not inside, "a second thread"
        inside.append(z)
        time.sleep(1e-5)
        inside.clear()
        return {"z": z}

    fit = jensen.fit(density=gaussian, dim=2, constrain=constrain, draws=300, threads=4)
    assert fit["z"].shape == (300, 2)


def test_a_density_without_a_finite_value_cannot_be_fitted():
    with pytest.raises(jensen.FitError):
        jensen.fit(density=lambda p: (np.full(len(p), -np.inf), np.zeros_like(p)), dim=2)


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"hvp": lambda p, v: v[:, :1]}, ValueError, "products of shape"),
        ({"hvp": lambda p, v: 1 / 0}, ZeroDivisionError, "division"),
        ({"constrain": lambda z: z}, TypeError, "expected a mapping"),
        ({"constrain": lambda z: {"a b": z}}, ValueError, "cannot name a variable"),
        ({"dim": "2"}, TypeError, "dim is '2'"),
        ({"init": np.zeros(3)}, (ValueError, jensen.FitError), "3"),
        ({"progress": lambda *what: 1 / 0}, ZeroDivisionError, "division"),
    ],
)
def test_other_functions_of_a_density_that_fail(wrong, kind, message):
    def slow(points):
        time.sleep(0.02 if "progress" in wrong else 0)
        return gaussian(points)

    with pytest.raises(kind, match=message):
        jensen.fit(**{"density": slow, "dim": 2, **wrong})


def test_values_of_another_shape_are_omitted_with_the_reason():
    with pytest.warns(jensen.TrustWarning, match="returned shapes .* here"):
        jensen.fit(density=gaussian, dim=2, constrain=lambda z: {"z": z if z[0] < 0.5 else z[:1]})


def test_missing_arguments_are_named():
    with pytest.raises(TypeError, match="nothing to fit"):
        jensen.fit()
    with pytest.raises(ValueError, match="`dim=`"):
        jensen.fit(density=gaussian)
    with pytest.raises(ValueError, match="1 names for 2"):
        jensen.fit(density=gaussian, dim=2, names=["a"])
    with pytest.raises(TypeError, match="need a density"):
        jensen.fit("parameters { real x; } model { x ~ normal(0, 1); }", names=["x"])
    with pytest.raises(TypeError, match="not both"):
        jensen.fit("parameters { real x; } model { x ~ normal(0, 1); }", density=gaussian, dim=2)
