"""Units of X and y do not matter: other origins and scales change densities by the Jacobian, and predictions by the map."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from jensen.sklearn import (  # noqa: E402
    AutoEncoder,
    BayesianGaussianMixture,
    BayesianLinear,
    BayesianLogistic,
    BayesianPoisson,
    FactorialMixture,
    GaussianProcessClassifier,
    GaussianProcessCountRegressor,
    GaussianProcessRegressor,
    HiddenMarkov,
)

#: An origin in standard deviations, and a scale, for every column.
UNITS = [
    [(0.0, 1.0), (1e6, 1e-6), (-1e6, 1e6)],
    [(1e6, 1e6), (3.0, -1e-6), (-1e3, 2.5)],
]

RNG = np.random.default_rng(3)
GROUP = np.repeat([0, 1, 2], 30)
CENTRES = np.array([[0.0, 4.0, -4.0], [4.0, -4.0, 0.0], [-4.0, 0.0, 4.0]])
GROUPS = CENTRES[GROUP] + RNG.standard_normal((90, 3))
X = RNG.standard_normal((90, 3)) @ np.array([[1.0, 0.3, 0.0], [0.0, 1.0, 0.2], [0.0, 0.0, 1.0]])
ETA = 0.8 * X[:, 0] - 0.5 * X[:, 1] + 0.2
NUMBERS = 2 * ETA + 0.5 * RNG.standard_normal(90)
CLASSES = (ETA + RNG.logistic(size=90) > 0).astype(int)
COUNTS = RNG.poisson(np.exp(ETA))


def moved(columns, units):
    """Returns the columns in other units, and Σ log |scale|."""
    scales = np.array([scale for _, scale in units])
    origins = np.array([origin for origin, _ in units]) * columns.std(0) * np.abs(scales)
    return origins + scales * columns, np.log(np.abs(scales)).sum()


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_mixtures(units, covariance_type):
    there, log = moved(GROUPS, units)
    make = BayesianGaussianMixture(3, covariance_type=covariance_type, random_state=0)
    one, other = make.fit(GROUPS).score_samples(GROUPS), make.fit(there).score_samples(there)
    assert np.abs(other + log - one).max() < 1e-5


def in_order(states):
    """Returns the probabilities of the states in the order of their first steps, as two starts may find one optimum."""
    return states[:, np.argsort((states > 0.5).argmax(axis=0))]


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_chains(units, covariance_type):
    there, log = moved(GROUPS, units)
    make = HiddenMarkov(3, covariance_type=covariance_type, random_state=0)
    one, states = make.fit(GROUPS).score(GROUPS), in_order(make.predict_proba(GROUPS))
    assert abs(make.fit(there).score(there) + log - one) < 1e-5
    assert np.abs(in_order(make.predict_proba(there)) - states).max() < 1e-5


def test_factors_have_one_scale():
    on = RNG.random((120, 2)) < 0.3
    rows = on @ np.array([[3.0, 0.0, 3.0], [0.0, 4.0, 4.0]]) + 0.3 * RNG.standard_normal((120, 3))
    for scale in [1e-6, 1e6]:
        one = FactorialMixture(2, noise_variance=0.09, random_state=2).fit(rows)
        other = FactorialMixture(2, noise_variance=0.09 * scale**2, random_state=2).fit(scale * rows)
        assert np.abs(other.components_ / scale - one.components_).max() < 1e-5
        gap = other.score_samples(scale * rows) + 3 * np.log(scale) - one.score_samples(rows)
        assert np.abs(gap).max() < 1e-5


@pytest.mark.parametrize("units", UNITS)
def test_autoencoders(units):
    # With a negative scale the networks see the mirror image, and learn other weights.
    there, log = moved(GROUPS, [(origin, abs(scale)) for origin, scale in units])
    make = AutoEncoder(1, hidden=(8,), max_iter=20, batch_size=10, optimizer="adam", learning_rate=0.02, random_state=0)
    one, other = make.fit(GROUPS).score_samples(GROUPS), make.fit(there).score_samples(there)
    # Training has some hundred steps in single precision.
    assert np.abs(other + log - one).max() < 2e-2


REGRESSIONS = [BayesianLinear(), GaussianProcessRegressor("gp(rbf) + intercept()")]


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("make", REGRESSIONS, ids=lambda make: type(make).__name__)
def test_numbers(make, units):
    one = make.fit(X, NUMBERS).predict(X, return_std=True)
    evidence = make.log_marginal_likelihood_value_
    there, _ = moved(X, units)
    for a, b in [(1e6, 1e-6), (-1e6, 1e6), (0.0, -3.0)]:
        origin = a * NUMBERS.std() * abs(b)
        other = make.fit(there, origin + b * NUMBERS).predict(there, return_std=True)
        sd = NUMBERS.std() * abs(b)
        assert np.abs(other[0] - origin - b * one[0]).max() < 1e-3 * sd
        assert np.abs(other[1] - abs(b) * one[1]).max() < 1e-3 * sd
        assert abs(make.log_marginal_likelihood_value_ + 90 * np.log(abs(b)) - evidence) < 1e-2


CLASSIFIERS = [BayesianLogistic(), BayesianLogistic(prior_variance=None, link="probit"), GaussianProcessClassifier()]


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("make", CLASSIFIERS, ids=["logistic", "probit", "process"])
def test_classes(make, units):
    one = make.fit(X, CLASSES).predict_proba(X)
    there, _ = moved(X, units)
    assert np.abs(make.fit(there, CLASSES).predict_proba(there) - one).max() < 1e-3


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("make", [BayesianPoisson(), GaussianProcessCountRegressor()], ids=["linear", "process"])
def test_counts(make, units):
    one = make.fit(X, COUNTS).predict(X)
    there, _ = moved(X, units)
    assert np.abs(make.fit(there, COUNTS).predict(there) / one - 1).max() < 1e-3


def test_uninformative_columns_are_named():
    more = np.column_stack([X, np.full(90, 3.5), 5.0 - 1e3 * X[:, 1]])
    for make, given in [
        (BayesianLinear(), (NUMBERS,)),
        (BayesianLogistic(), (CLASSES,)),
        (BayesianPoisson(), (COUNTS,)),
        (BayesianGaussianMixture(2, random_state=0), ()),
        (HiddenMarkov(2, random_state=0), ()),
        (AutoEncoder(1, hidden=(), max_iter=50, optimizer="adam", learning_rate=0.02, batch_size=10, random_state=0), ()),
    ]:
        said = " ".join(make.fit(more, *given).info_["warnings"])
        assert "x4" in said and "x5" in said, (make, said)
        if given:
            with_more = make.predict(more)
            assert np.abs(with_more - make.fit(X, *given).predict(X)).max() < 1e-6
