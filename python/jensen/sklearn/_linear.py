"""Bayesian generalised linear models with a Gaussian approximation of full covariance."""

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

    # The search for the variance of the coefficients starts here.
    _start = 1.0

    def _names(self) -> list[str]:
        # Unlike a user's column names, these names cannot clash with the syntax of a specification.
        return self._numbered()

    def _prior(self) -> str:
        given = self.prior_variance
        spread = f"variance~{self._start!r}" if given is None else f"variance={float(given)!r}"
        prior = f"fixed({', '.join(self._columns)}, {spread})"
        if self.fit_intercept:
            wide = "" if self.intercept_variance is None else f"variance={float(self.intercept_variance)!r}"
            prior += f" + intercept({wide})"
        return prior

    def _read(self, info: dict[str, Any]) -> None:
        """Reads coefficients and intercepts, with one row per linear predictor. A regression has one linear predictor."""
        rows = {row["name"]: (row["mean"], row["sd"]) for row in info["parameters"]}
        several = max(len(getattr(self, "classes_", ())) - 1, 1)
        ends = [f".{k + 1}" for k in range(several)] if several > 1 else [""]
        # The fit omits constant columns and copies of other columns, because they have no separate effect.
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
    """Bayesian linear regression with normal priors.

    Given the variances, the posterior is exact.

    Parameters
    ----------
    prior_variance : float, optional
        Prior variance of the coefficients, whose prior mean is 0. It refers to columns in units of their standard
        deviations or, with ``standardise=False``, to columns in their original units. By default the fit integrates
        over it.
    noise_variance : float, optional
        Variance of the noise. By default the fit integrates over it.
    fit_intercept : bool
        Whether to add an intercept.
    intercept_variance : float, optional
        Prior variance of the intercept. The default is a thousand times the variance of y.
    standardise : bool
        Whether to standardise y and the columns for the fit. Results are always in the original units.
    hyperparameters : {"integrate", "point"}
        Whether to integrate over variances without a given value, or to use the values that maximise the marginal
        likelihood.
    bound, max_iter, random_state, threads
        As for ``GaussianProcessClassifier``.

    Attributes
    ----------
    coef_, coef_std_ : array of shape (n_features,)
        Posterior means and standard deviations of the coefficients.
    intercept_, intercept_std_ : float
        Posterior mean and standard deviation of the intercept.
    log_marginal_likelihood_value_ : float
        Log marginal likelihood at ``hyperparameters_``, in nats.
    hyperparameters_, trusted_, verdict_, info_
        The variances by name, the verdict on the fit, and the contents of ``fit.json``.
    """

    noise_variance: float | None = None

    def fit(self, X: Any, y: Any, sd: Any = None) -> BayesianLinear:
        """Fit the regression of y on the columns of X.

        ``sd`` holds known standard deviations of the errors of y, as in weighted least squares.
        """
        X, y = self._check(X, y)
        values = np.asarray(y, dtype=np.float64)
        # Coefficients have the units of y. Far from their variance, the marginal likelihood is flat.
        self._start = float(values.var()) or 1.0
        noise = self.noise_variance
        if sd is not None and noise is not None:
            raise ValueError("sd replaces noise_variance: give one of them")
        likelihood = "gaussian" if noise is None else f"gaussian(variance={float(noise)!r})"
        self._learn(X, values, likelihood, sd=sd)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return posterior means at the rows of X and, with ``return_std``, standard deviations of a new observation.

        The standard deviations include noise, as in scikit-learn's ``BayesianRidge``. After a fit with ``sd`` they are
        those of the mean, because the error of a new observation is unknown.
        """
        mean, variance, _ = self._predict(X)
        if not return_std:
            return mean[:, 0]
        return mean[:, 0], np.sqrt(variance[:, 0] + self._means.get("likelihood.variance", 0.0))


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianLogistic(Classes, _Linear):
    """Bayesian logistic or probit regression with normal priors.

    With more than two classes the regression is multinomial. ``coef_`` and ``coef_std_`` have one row for two classes,
    and otherwise one row for each class except the last. Log odds are relative to the last class.

    Parameters
    ----------
    prior_variance : float or None
        Prior variance of the coefficients, as for ``BayesianLinear``. The default of 6.25, a standard deviation of 2.5,
        is that of rstanarm and of ``fixed`` in ``jensen latent fit``. 1 corresponds to ``C=1`` of scikit-learn's
        ``LogisticRegression`` with standardised columns. With None, the fit integrates over it.
    link : {"logit", "probit"}
        Link function for two classes.
    bound : str, optional
        The bound to maximise, as in ``jensen latent fit --bound``. The default, ``"exact"``, is the ELBO itself, and
        gives the Gaussian closest to the posterior in Kullback–Leibler divergence.
    fit_intercept, intercept_variance, standardise, hyperparameters, max_iter, random_state, threads
        As for ``BayesianLinear``.

    Attributes
    ----------
    classes_ : array
        Labels of the classes.
    coef_, coef_std_, intercept_, intercept_std_ : array
        Posterior means and standard deviations of coefficients and intercepts.
    log_marginal_likelihood_value_ : float
        Lower bound on the log marginal likelihood, in nats.
    hyperparameters_, trusted_, verdict_, info_
        As for ``BayesianLinear``.
    """

    prior_variance: float | None = 6.25


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianPoisson(Counts, _Linear):
    """Bayesian Poisson regression with normal priors and a logarithmic link.

    Parameters and attributes are those of ``BayesianLinear``, except the noise variance. ``fit`` and ``predict`` accept
    exposures; expected counts are proportional to them. ``score`` returns D², the explained share of the Poisson
    deviance.
    """
