"""Gaussian processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ._base import Array, at_least_one
from ._kernels import Kernel
from ._latent import Classes, Counts, LatentGaussian


@dataclass(eq=False, repr=False, kw_only=True)
class _GaussianProcess(LatentGaussian):
    kernel: str | Kernel = field(default="gp(rbf)", kw_only=False)
    learn_hyperparameters: bool = True
    n_starts: int = 1

    def _prior(self) -> str:
        """The prior's specification; a bare word is a kernel."""
        text = str(self.kernel).strip()
        return f"gp({text})" if text.replace("_", "").isalnum() else text

    def _search(self) -> dict[str, Any]:
        several = self.learn_hyperparameters and self.n_starts > 1
        starts = self.n_starts if several else None
        settings: dict[str, Any] = {"fixed": not self.learn_hyperparameters, "restarts": starts}
        return settings if self.learn_hyperparameters else {**settings, "hyperparameters": None}


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianProcessClassifier(Classes, _GaussianProcess):
    """Gaussian process classification: ``jensen latent fit`` with a Bernoulli, probit or multinomial likelihood.

    The posterior is the Gaussian that maximises a lower bound on the log marginal likelihood, and a fit is trusted when
    its checks show that the bound is at its maximum and tight. Time grows with the cube of the number of rows.

    Parameters
    ----------
    kernel : str or Kernel
        A prior as the command takes it (``"gp(rbf, ard) + gp(linear)"``), a kernel's name (``"matern52"``), or an
        object such as ``RBF(2.0) * Linear()``.
    link : {"logit", "probit"}
        The link for two classes; more than two classes have multinomial logits.
    bound : str, optional
        The objective. The default is the expectation itself. ``"tilted"`` has a dual, which certifies the distance of
        the bound from its maximum, but it learns variances that are too small.
    standardise : bool
        Standardise columns and normal responses for the fit; results are in the units of the data.
    hyperparameters : {"integrate", "point"}
        Whether to integrate over hyperparameters without a fixed value, or to maximise the bound over them.
    learn_hyperparameters : bool
        Whether it is learnt at all.
    n_starts : int
        Searches for hyperparameters, the first from their starting values.
    max_iter : int, optional
        Largest number of iterations.
    random_state : int, RandomState or None
        Seed of the starts beyond the first.
    threads : int, optional
        The default is all cores of the machine.

    Attributes
    ----------
    classes_ : array
        The classes.
    hyperparameters_ : dict
        Hyperparameters by name, such as ``"gp.lengthscale"``.
    log_marginal_likelihood_value_ : float
        The lower bound on the log marginal likelihood, in nats.
    trusted_, verdict_, info_
        Whether the fit is trusted, its verdict, and the contents of ``fit.json``.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianProcessRegressor(RegressorMixin, _GaussianProcess):
    """Gaussian process regression: ``jensen latent fit`` with a Gaussian or Student-t likelihood.

    Parameters
    ----------
    noise_variance : float, optional
        Variance of the noise. By default the fit learns it.
    likelihood : str, optional
        Another likelihood than ``gaussian``, such as ``"student-t"``.

    The other parameters and attributes are those of ``GaussianProcessClassifier``.
    """

    noise_variance: float | None = None
    likelihood: str | None = None

    def fit(self, X: Any, y: Any) -> GaussianProcessRegressor:
        """Fits the process to the values y of the rows of X."""
        X, y = self._check(X, y)
        values = np.asarray(y, dtype=np.float64)
        likelihood = self.likelihood or "gaussian"
        if self.noise_variance is not None:
            if self.likelihood is not None:
                raise ValueError("noise_variance is a parameter of the Gaussian likelihood: give it, or likelihood")
            likelihood = f"gaussian(variance={float(self.noise_variance)!r})"
        self._learn(X, values, likelihood)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Posterior means of the function at the rows of X, and its standard deviations with ``return_std``, all
        without noise."""
        mean, variance, _ = self._predict(X)
        return (mean[:, 0], np.sqrt(variance[:, 0])) if return_std else mean[:, 0]

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Joint draws of the function at the rows of X from its posterior, without noise. Each column is one draw."""
        at_least_one("n_samples", n_samples)
        drawn: Array = self._draw(X, n_samples, random_state).T
        return drawn


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianProcessCountRegressor(Counts, _GaussianProcess):
    """Gaussian process regression of counts, with a logarithmic link: ``jensen latent fit`` with a Poisson or negative
    binomial likelihood.

    ``fit`` and ``predict`` take exposures, of which expected counts are multiples. ``score`` is the share of the
    Poisson deviance that predictions explain.

    Parameters
    ----------
    likelihood : str
        ``"poisson"``, ``"negative-binomial"`` (its size is learnt) or ``"negative-binomial(size=…)"``.

    The other parameters and attributes are those of ``GaussianProcessClassifier``.
    """

    kernel: str | Kernel = field(default="gp(rbf) + intercept()", kw_only=False)
    likelihood: str = "poisson"

    def _observed(self) -> str:
        return self.likelihood
