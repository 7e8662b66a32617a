"""Units of X and y do not matter: other origins and scales change densities by the Jacobian, and predictions by the map."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from jensen.sklearn import (  # noqa: E402
    RBF,
    AutoEncoder,
    BayesianGaussianMixture,
    BayesianLinear,
    BayesianLogistic,
    BayesianPoisson,
    Constant,
    FactorialMixture,
    GaussianProcessClassifier,
    GaussianProcessCountRegressor,
    GaussianProcessRegressor,
    HiddenMarkov,
    Linear,
    Matern,
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


def moved_as(columns, others, units):
    """Returns columns in the units of `moved(others, units)`."""
    scales = np.array([scale for _, scale in units])
    return np.array([origin for origin, _ in units]) * others.std(0) * np.abs(scales) + scales * columns


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_mixtures(units, covariance_type):
    there, log = moved(GROUPS, units)
    make = BayesianGaussianMixture(3, covariance_type=covariance_type, random_state=0)
    one, shares, means = make.fit(GROUPS).score_samples(GROUPS), make.predict_proba(GROUPS), make.means_
    assert np.abs(make.fit(there).score_samples(there) + log - one).max() < 1e-5
    assert np.abs(make.predict_proba(there) - shares).max() < 1e-5
    assert (np.abs(make.means_ - moved_as(means, GROUPS, units)) < 1e-5 * there.std(0)).all()


def in_order(states):
    """Returns the probabilities of the states in the order of their first steps, as two starts may find one optimum."""
    return states[:, np.argsort((states > 0.5).argmax(axis=0))]


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("lengths", [None, [40, 50]], ids=["one sequence", "two"])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_chains(units, covariance_type, lengths):
    there, log = moved(GROUPS, units)
    make = HiddenMarkov(3, covariance_type=covariance_type, random_state=0)
    one = make.fit(GROUPS, lengths=lengths).score(GROUPS, lengths=lengths)
    states = in_order(make.predict_proba(GROUPS, lengths=lengths))
    other = make.fit(there, lengths=lengths).score(there, lengths=lengths)
    assert abs(other + log - one) < 1e-5
    assert np.abs(in_order(make.predict_proba(there, lengths=lengths)) - states).max() < 1e-5


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
@pytest.mark.parametrize("missing", [0, 9], ids=["complete", "missing"])
@pytest.mark.parametrize("decoder", ["gaussian=free", "student-t=4"])
def test_autoencoders(decoder, missing, units):
    # With a negative scale the networks see the mirror image, and learn other weights.
    units = [(origin, abs(scale)) for origin, scale in units]
    (there, log), here = moved(GROUPS, units), GROUPS.copy()
    for rows in (here, there):
        rows[:missing, 1] = np.nan
    make = AutoEncoder(1, hidden=(8,), decoder=decoder, max_iter=20, batch_size=10, optimizer="adam", learning_rate=0.02, random_state=0)
    one, filled = make.fit(here).score_samples(here), make.impute(here)
    other, filled_there = make.fit(there).score_samples(there), make.impute(there)
    logs = log - np.log(units[1][1]) * (np.arange(90) < missing)
    # Training has some hundred steps in single precision.
    assert np.abs(other + logs - one).max() < 2e-2
    sd = np.array([scale for _, scale in units]) * GROUPS.std(0)
    assert (np.abs(filled_there - moved_as(filled, GROUPS, units)) < 2e-2 * sd).all()


REGRESSIONS = {
    "linear": BayesianLinear(),
    "point estimates": BayesianLinear(hyperparameters="point"),
    "process": GaussianProcessRegressor("gp(rbf) + intercept()"),
    "several lengthscales": GaussianProcessRegressor(Matern(nu=2.5, ard=True) + Constant()),
    "product": GaussianProcessRegressor(RBF(on=["x1"]) * Linear(on=["x2"]) + Constant()),
    "heavy tails": GaussianProcessRegressor("gp(rbf) + intercept()", likelihood="student-t(degrees=4)"),
}


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("make", REGRESSIONS.values(), ids=REGRESSIONS)
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


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("make", [BayesianLinear(), GaussianProcessRegressor("gp(rbf) + intercept()")], ids=["linear", "process"])
def test_known_errors(make, units):
    sd = np.linspace(0.3, 0.8, 90)
    one = make.fit(X, NUMBERS, sd=sd).predict(X, return_std=True)
    evidence = make.log_marginal_likelihood_value_
    there, _ = moved(X, units)
    for a, b in [(1e6, 1e-6), (-1e6, 1e6)]:
        origin, unit = a * NUMBERS.std() * b, NUMBERS.std() * b
        other = make.fit(there, origin + b * NUMBERS, sd=b * sd).predict(there, return_std=True)
        assert np.abs(other[0] - origin - b * one[0]).max() < 1e-3 * unit
        assert np.abs(other[1] - b * one[1]).max() < 1e-3 * unit
        assert abs(make.log_marginal_likelihood_value_ + 90 * np.log(b) - evidence) < 1e-2


def test_regressions_through_the_origin_have_scales():
    make = BayesianLinear(fit_intercept=False)
    one = make.fit(X, NUMBERS).predict(X, return_std=True)
    scales = np.array([1e-6, 1e6, -1e3])
    for b in (1e-6, -1e6):
        other = make.fit(scales * X, b * NUMBERS).predict(scales * X, return_std=True)
        assert np.abs(other[0] / b - one[0]).max() < 1e-3
        assert np.abs(other[1] / abs(b) - one[1]).max() < 1e-3


@pytest.mark.parametrize("units", UNITS)
def test_draws_of_processes(units):
    make = GaussianProcessRegressor("gp(rbf) + intercept()")
    one = make.fit(X, NUMBERS).sample_y(X[:5], 400)
    there, _ = moved(X, units)
    origin, b = 1e6 * NUMBERS.std() * 1e-6, 1e-6
    other = (make.fit(there, origin + b * NUMBERS).sample_y(there[:5], 400) - origin) / b
    sd = one.std(1)
    assert (np.abs(other.mean(1) - one.mean(1)) < 0.3 * sd).all()
    assert (np.abs(other.std(1) / sd - 1) < 0.2).all()


CLASSIFIERS = {
    "logistic": BayesianLogistic(),
    "probit": BayesianLogistic(prior_variance=None, link="probit"),
    "process": GaussianProcessClassifier(),
    "kernels": GaussianProcessClassifier(Matern(ard=True) + Linear(), link="probit"),
}


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classes(make, units):
    one = make.fit(X, CLASSES).predict_proba(X)
    there, _ = moved(X, units)
    assert np.abs(make.fit(there, CLASSES).predict_proba(there) - one).max() < 1e-3


@pytest.mark.parametrize("units", UNITS)
def test_several_classes(units):
    # The coefficients of a class depend on its scale alone, so that the probabilities do not depend on units.
    make, there = BayesianLogistic(), moved(GROUPS, units)[0]
    one, coefficients = make.fit(GROUPS, GROUP).predict_proba(GROUPS), make.coef_
    assert np.abs(make.fit(there, GROUP).predict_proba(there) - one).max() < 1e-3
    assert np.abs(make.coef_ * [scale for _, scale in units] - coefficients).max() < 1e-2


COUNT_MODELS = {
    "linear": BayesianPoisson(),
    "process": GaussianProcessCountRegressor(),
    "overdispersed": GaussianProcessCountRegressor(likelihood="negative-binomial"),
}


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("exposed", [False, True], ids=["counts", "rates"])
@pytest.mark.parametrize("make", COUNT_MODELS.values(), ids=COUNT_MODELS)
def test_counts(make, exposed, units):
    exposure = np.linspace(0.5, 2, 90) if exposed else None
    one = make.fit(X, COUNTS, exposure=exposure).predict(X)
    there, _ = moved(X, units)
    assert np.abs(make.fit(there, COUNTS, exposure=exposure).predict(there) / one - 1).max() < 1e-3
    if exposed and isinstance(make, BayesianPoisson):
        # Another unit of time shifts the intercept, whose prior has a variance of 1000.
        later = make.fit(X, COUNTS, exposure=1e6 * exposure).predict(X)
        assert np.abs(1e6 * later / one - 1).max() < 1e-2


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
