"""Bayesian linear models with a Gaussian posterior of full covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from ._base import Array
from ._latent import Classes, Counts, LatentGaussian

#: Prior variance of the intercept, in squares of the response's scale: next to flat.
WIDE = 1000.0


@dataclass(eq=False, repr=False, kw_only=True)
class _Linear(LatentGaussian):
    prior_variance: float | None = None
    fit_intercept: bool = True
    intercept_variance: float | None = None

    def _names(self) -> list[str]:
        # No names of the user's can be mistaken in a specification.
        return self._numbered()

    def _prior(self, scale: float) -> str:
        spread = "variance~1" if self.prior_variance is None else f"variance={float(self.prior_variance)!r}"
        prior = f"fixed({', '.join(self._columns)}, {spread})"
        if self.fit_intercept:
            wide = WIDE * scale if self.intercept_variance is None else float(self.intercept_variance)
            prior += f" + intercept(variance={wide!r})"
        return prior

    def _read(self, info: dict[str, Any]) -> None:
        """The effects: a row a predictor, of which a regression has one."""
        rows = {row["name"]: (row["mean"], row["sd"]) for row in info["parameters"]}
        several = "fixed[x1]" not in rows
        times = sum(name.startswith("fixed[x1].") for name in rows) if several else 1
        ends = [f".{k + 1}" for k in range(times)] if several else [""]
        effects = np.array([[rows[f"fixed[{name}]{end}"] for name in self._columns] for end in ends])
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
        Prior variance of the coefficients, which have mean 0; learnt by maximising the marginal likelihood unless
        given.
    noise_variance : float, optional
        Variance of the noise; learnt likewise.
    fit_intercept : bool
        Add an intercept.
    intercept_variance : float, optional
        Its prior variance; a thousand times the mean square of y unless given.
    bound, max_iter, random_state, threads
        As for ``GaussianProcessClassifier``.

    Attributes
    ----------
    coef_, coef_std_ : array of shape (n_features,)
        Posterior means and standard deviations of the coefficients.
    intercept_, intercept_std_ : float
        Those of the intercept.
    log_marginal_likelihood_value_ : float
        The log marginal likelihood at these variances, in nats.
    hyperparameters_, trusted_, verdict_, info_
        The variances; what the fit is worth, and ``fit.json``.
    """

    noise_variance: float | None = None

    def fit(self, X: Any, y: Any) -> BayesianLinear:
        """Fits the regression of y on the columns of X."""
        X, y = self._check(X, y)
        values = np.asarray(y, dtype=np.float64)
        square = float(np.mean(values**2)) or 1.0
        noise = self.noise_variance
        likelihood = f"gaussian(variance={float(noise)!r})" if noise is not None else f"gaussian(variance~{square!r})"
        self._learn(X, values, likelihood, scale=square)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Posterior means at the rows of X; with ``return_std`` also standard deviations of a new observation, noise
        included, as of scikit-learn's ``BayesianRidge``."""
        mean, variance, _ = self._predict(X)
        if not return_std:
            return mean[:, 0]
        return mean[:, 0], np.sqrt(variance[:, 0] + self.hyperparameters_["likelihood.variance"])


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianLogistic(Classes, _Linear):
    """Logistic or probit regression with normal priors; multinomial with more than two classes.

    ``coef_`` and its standard deviations have a row for two classes, and for more one for each class but the last,
    against which their log odds are.

    Parameters
    ----------
    prior_variance : float or None
        Prior variance of the coefficients; None learns it, which runs away where the classes can be separated. 1 is
        what ``C=1`` means in scikit-learn's ``LogisticRegression``.
    link : {"logit", "probit"}
        Of two classes.
    bound : str, optional
        What is maximised: ``"exact"`` is the expectation itself, and gives the Gaussian closest to the posterior by
        its divergence.
    fit_intercept, intercept_variance, max_iter, random_state, threads
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

    Parameters and attributes are those of ``BayesianLinear``, without noise. ``fit`` and ``predict`` take exposures,
    of which expected counts are multiples; ``score`` is the share of the Poisson deviance that predictions explain.
    """
