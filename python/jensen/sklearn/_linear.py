"""Bayesian linear models with a Gaussian posterior of full covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from ._base import Array
from ._latent import Classes, Counts, LatentGaussian


@dataclass(eq=False, repr=False, kw_only=True)
class _Linear(LatentGaussian):
    prior_variance: float | None = None
    fit_intercept: bool = True
    intercept_variance: float | None = None

    def _names(self) -> list[str]:
        # These names cannot clash with syntax of a specification, as the names of a user could.
        return self._numbered()

    def _prior(self) -> str:
        spread = "variance~1" if self.prior_variance is None else f"variance={float(self.prior_variance)!r}"
        prior = f"fixed({', '.join(self._columns)}, {spread})"
        if self.fit_intercept:
            wide = "" if self.intercept_variance is None else f"variance={float(self.intercept_variance)!r}"
            prior += f" + intercept({wide})"
        return prior

    def _read(self, info: dict[str, Any]) -> None:
        """The effects, one row per predictor. A regression has one predictor."""
        rows = {row["name"]: (row["mean"], row["sd"]) for row in info["parameters"]}
        several = max(len(getattr(self, "classes_", ())) - 1, 1)
        ends = [f".{k + 1}" for k in range(several)] if several > 1 else [""]
        # Constant columns and copies of other columns have no separate effect, so they are omitted.
        none = (0.0, 0.0)
        effects = np.array([[rows.get(f"fixed[{name}]{end}", none) for name in self._columns] for end in ends])
        level = np.array([rows[f"intercept{end}"] if self.fit_intercept else (0.0, 0.0) for end in ends])
        self.coef_: Array = effects[..., 0]
        self.coef_std_: Array = effects[..., 1]
        self.intercept_: Any = level[:, 0]
        self.intercept_std_: Any = level[:, 1]
        if not isinstance(self, ClassifierMixin):
            self.coef_, self.coef_std_ = self.coef_[0], self.coef_std_[0]
            self.intercept_, self.intercept_std_ = float(level[0, 0]), float(level[0, 1])


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianLinear(RegressorMixin, _Linear):
    """Linear regression with normal priors. Given the variances, the posterior is exact.

    Parameters
    ----------
    prior_variance : float, optional
        Prior variance of the effect of one standard deviation of a column (of the coefficients themselves with
        ``standardise=False``), which has mean 0. By default the fit integrates over it.
    noise_variance : float, optional
        Variance of the noise. By default the fit integrates over it.
    fit_intercept : bool
        Whether to add an intercept.
    intercept_variance : float, optional
        Prior variance of the intercept. The default is a thousand times the variance of y.
    standardise : bool
        Whether to fit y and the columns in standard deviations from their means. Results are in the original units.
    hyperparameters : {"integrate", "point"}
        Whether to integrate over variances without a given value, or to maximise the marginal likelihood over them.
    bound, max_iter, random_state, threads
        As for ``GaussianProcessClassifier``.

    Attributes
    ----------
    coef_, coef_std_ : array of shape (n_features,)
        Posterior means and standard deviations of the coefficients.
    intercept_, intercept_std_ : float
        Posterior mean and standard deviation of the intercept.
    log_marginal_likelihood_value_ : float
        The log marginal likelihood at these variances, in nats.
    hyperparameters_, trusted_, verdict_, info_
        The variances, the verdict on the fit, and the contents of ``fit.json``.
    """

    noise_variance: float | None = None

    def fit(self, X: Any, y: Any) -> BayesianLinear:
        """Fits the regression of y on the columns of X."""
        X, y = self._check(X, y)
        noise = self.noise_variance
        likelihood = "gaussian" if noise is None else f"gaussian(variance={float(noise)!r})"
        self._learn(X, np.asarray(y, dtype=np.float64), likelihood)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Posterior means at the rows of X; with ``return_std`` also standard deviations of a new observation,
        including noise, as in scikit-learn's ``BayesianRidge``."""
        mean, variance, _ = self._predict(X)
        if not return_std:
            return mean[:, 0]
        return mean[:, 0], np.sqrt(variance[:, 0] + self._means["likelihood.variance"])


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianLogistic(Classes, _Linear):
    """Logistic or probit regression with normal priors; multinomial with more than two classes.

    ``coef_`` and its standard deviations have one row for two classes, and otherwise one row for each class but the
    last. The log odds are relative to the last class.

    Parameters
    ----------
    prior_variance : float or None
        Prior variance of the effect of one standard deviation of a column; None integrates over it. 1 corresponds to
        ``C=1`` of scikit-learn's ``LogisticRegression`` for standardised columns.
    link : {"logit", "probit"}
        The link for two classes.
    bound : str, optional
        The objective: ``"exact"`` is the expectation itself, and gives the Gaussian closest to the posterior in
        Kullback–Leibler divergence.
    fit_intercept, intercept_variance, standardise, hyperparameters, max_iter, random_state, threads
        As for ``BayesianLinear``.

    Attributes
    ----------
    classes_ : array
        The classes.
    coef_, coef_std_, intercept_, intercept_std_ : array
        Posterior means and standard deviations.
    log_marginal_likelihood_value_ : float
        A lower bound on the log marginal likelihood, in nats.
    hyperparameters_, trusted_, verdict_, info_
        As for ``BayesianLinear``.
    """

    prior_variance: float | None = 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianPoisson(Counts, _Linear):
    """Poisson regression with normal priors and a logarithmic link.

    Parameters and attributes are those of ``BayesianLinear``, without noise. ``fit`` and ``predict`` accept exposures,
    to which expected counts are proportional. ``score`` is the share of the Poisson deviance that predictions explain.
    """
