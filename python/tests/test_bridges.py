"""Models of PyMC and NumPyro, compared with known answers."""

import importlib.util
import warnings

import jensen
import numpy as np
import pytest

HAS_PYMC = importlib.util.find_spec("pymc") is not None
HAS_NUMPYRO = importlib.util.find_spec("numpyro") is not None
HAS_JAX = importlib.util.find_spec("jax") is not None

BACKENDS = ["python", "numba", pytest.param("jax", marks=pytest.mark.skipif(not HAS_JAX, reason="jax is not installed"))]

pymc_only = pytest.mark.skipif(not HAS_PYMC, reason="pymc is not installed")
numpyro_only = pytest.mark.skipif(not HAS_NUMPYRO, reason="numpyro is not installed")

#: A normal mean with known noise, and a rate: both conjugate.
Y = np.random.default_rng(5).normal(2.0, 1.5, size=40)
COUNTS = np.array([3, 5, 2, 4, 6, 3])


def check_conjugate(fit):
    """Four standard errors of independent draws."""
    assert fit.trusted
    draws = len(fit["mu"])
    precision = 1 / 10**2 + 40 / 1.5**2
    mean, sd = (Y.sum() / 1.5**2) / precision, precision**-0.5
    assert abs(fit["mu"].mean() - mean) < 4 * sd / np.sqrt(draws)
    assert fit["mu"].std() == pytest.approx(sd, rel=4 / np.sqrt(2 * draws))
    # Gamma(2, 1) prior and Poisson counts. The logarithm of the rate is not normal, so a trusted fit is refined or very close.
    shape, rate = 2 + COUNTS.sum(), 1 + len(COUNTS)
    assert fit["rate"].min() > 0
    assert fit["rate"].mean() == pytest.approx(shape / rate, abs=5 * np.sqrt(shape) / rate / np.sqrt(draws))
    assert np.array_equal(fit["double"], 2 * fit["rate"])
    # The log evidence of the normal part and of the counts is known in closed form, with constants.
    assert np.isfinite(fit.elbo)


def conjugate_in_pymc():
    import pymc as pm

    with pm.Model(coords={"row": np.arange(40) + 100, "day": list("abcdef")}) as model:
        mu = pm.Normal("mu", 0, 10)
        rate = pm.Gamma("rate", 2, 1)
        pm.Deterministic("double", 2 * rate)
        noise = pm.Data("noise", np.float64(1.5))
        pm.Normal("y", mu, noise, observed=Y, dims="row")
        pm.Poisson("counts", rate, observed=COUNTS, dims="day")
    return model


@pymc_only
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_conjugate_model_of_pymc(backend):
    density = jensen.from_pymc(conjugate_in_pymc(), backend=backend)
    assert density.names == ["mu", "rate_log__"] and density.dim == 2
    fit = density.fit(draws=4000, seed=1)
    assert fit.keys() == ["mu", "rate", "double"]
    check_conjugate(fit)


@pymc_only
def test_groups_that_users_of_pymc_expect():
    arviz = pytest.importorskip("arviz")
    import pymc as pm

    model = conjugate_in_pymc()
    fit = jensen.from_pymc(model, backend="python").fit(draws=200)
    data = fit.to_arviz()
    assert set(data["posterior"].data_vars) == {"mu", "rate", "double"}
    assert data["observed_data"]["y"].dims == ("row",)
    assert list(data["observed_data"]["y"].coords["row"].values[:2]) == [100, 101]
    assert np.array_equal(data["observed_data"]["counts"].values, COUNTS)
    assert data["constant_data"]["noise"].item() == 1.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pm.compute_log_likelihood(data, model=model, progressbar=False)
        pm.sample_posterior_predictive(data, model=model, extend_inferencedata=True, progressbar=False, random_seed=1)
        assert np.isfinite(arviz.loo(data, var_name="y").elpd_loo)
    assert data["posterior_predictive"]["y"].shape == (1, 200, 40)


@pymc_only
def test_shapes_and_transforms_of_pymc():
    import pymc as pm

    with pm.Model(coords={"i": range(2), "j": range(3)}) as model:
        pm.Normal("a", dims=("i", "j"))
        pm.Dirichlet("p", np.array([8.0, 9.0, 10.0]))
        pm.Uniform("u", 2, 3)
    fit = jensen.from_pymc(model, backend="python").fit(draws=3000, seed=2)
    assert fit["a"].shape == (3000, 2, 3) and fit["p"].shape == (3000, 3)
    assert fit["p"].sum(axis=1) == pytest.approx(1)
    assert fit["u"].min() > 2 and fit["u"].max() < 3
    assert fit["p"].mean(axis=0) == pytest.approx(np.array([8, 9, 10]) / 27, abs=0.01)
    assert fit.to_arviz()["posterior"]["a"].dims == ("chain", "draw", "i", "j")


@pymc_only
def test_unsupported_models_are_errors():
    import pymc as pm

    with pm.Model() as model:
        pm.Bernoulli("z", 0.5)
        pm.Normal("x")
    with pytest.raises(ValueError, match="sum them out: z"):
        jensen.from_pymc(model)
    with pytest.raises(ValueError, match="expected 'jax'"):
        jensen.from_pymc(conjugate_in_pymc(), backend="c++")


def conjugate_in_numpyro(y, counts=None):
    import numpyro
    import numpyro.distributions as dist

    mu = numpyro.sample("mu", dist.Normal(0, 10))
    rate = numpyro.sample("rate", dist.Gamma(2, 1))
    numpyro.deterministic("double", 2 * rate)
    with numpyro.plate("row", len(y)):
        numpyro.sample("y", dist.Normal(mu, 1.5), obs=y)
    with numpyro.plate("day", len(counts)):
        numpyro.sample("counts", dist.Poisson(rate), obs=counts)


@numpyro_only
def test_a_conjugate_model_of_numpyro():
    density = jensen.from_numpyro(conjugate_in_numpyro, [Y], {"counts": COUNTS})
    assert density.names == ["mu", "rate"]
    fit = density.fit(draws=4000, seed=1)
    assert set(fit) == {"mu", "rate", "double"}
    check_conjugate(fit)
    data = fit.to_arviz()
    assert data["observed_data"]["y"].dims == ("row",)


@numpyro_only
def test_eight_schools_agree_in_numpyro_and_stan():
    import numpyro
    import numpyro.distributions as dist

    from conftest import SCHOOLS

    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    sigma = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def schools():
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfCauchy(5))
        with numpyro.plate("school", 8):
            eta = numpyro.sample("eta", dist.Normal(0, 1))
            theta = numpyro.deterministic("theta", mu + tau * eta)
            numpyro.sample("y", dist.Normal(theta, sigma), obs=y)

    density = jensen.from_numpyro(schools)
    model = jensen.Model(SCHOOLS / "eight_schools.stan").bind(SCHOOLS / "eight_schools.json")
    # NumPyro sorts by name (eta, mu, log tau), and the program declares mu, log tau, eta.
    points = np.random.default_rng(0).normal(size=(5, 10))
    theirs, slopes = density(points)
    order = [8, 9, *range(8)]
    ours, gradients = model.gradient(points[:, order])
    assert theirs - ours == pytest.approx(np.full(5, theirs[0] - ours[0]), abs=1e-9)
    assert slopes[:, order] == pytest.approx(gradients, rel=1e-9, abs=1e-9)
    directions = np.ones((5, 10))
    assert density.hvp(points, directions)[:, order] == pytest.approx(model.hessian_vector(points[:, order], directions))
    fit = density.fit(seed=3)
    assert fit.trusted and fit.to_arviz()["posterior"]["theta"].shape == (1, 1000, 8)
    assert fit["theta"].shape == (1000, 8)


@numpyro_only
def test_discrete_sites_are_errors():
    import numpyro
    import numpyro.distributions as dist

    def model():
        numpyro.sample("z", dist.Bernoulli(0.5))
        numpyro.sample("x", dist.Normal(0, 1))

    with pytest.raises(ValueError, match="sum them out: z"):
        jensen.from_numpyro(model)


def test_constrain_of_a_density_in_numpy():
    fit = jensen.fit(
        density=lambda z: (-0.5 * (z**2).sum(axis=1), -z),
        dim=2,
        constrain=lambda z: {"s": np.exp(z[0]), "m": np.array([[z[0], z[1]], [0.0, 1.0]])},
        draws=500,
    )
    assert fit.keys() == ["s", "m"] and fit["m"].shape == (500, 2, 2)
    assert np.array_equal(np.exp(fit["m"][:, 0, 0]), fit["s"])
    assert (fit["m"][:, 1] == [0.0, 1.0]).all()


def test_draws_for_which_constrain_fails_are_omitted_with_a_warning():
    def constrain(z):
        if z[0] > 0:
            raise ArithmeticError("too large")
        return {"s": z}

    with pytest.warns(jensen.TrustWarning, match="too large"):
        fit = jensen.fit(density=lambda z: (-0.5 * (z**2).sum(axis=1), -z), dim=1, constrain=constrain, draws=100)
    assert not fit.trusted and 0 < len(fit["s"]) < 100 and fit["s"].max() <= 0
