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
        """The specification of the prior. A single word is the name of a kernel."""
        text = str(self.kernel).strip()
        return f"gp({text})" if text.replace("_", "").isalnum() else text

    def _search(self) -> dict[str, Any]:
        several = self.learn_hyperparameters and self.n_starts > 1
        starts = self.n_starts if several else None
        settings: dict[str, Any] = {"fixed": not self.learn_hyperparameters, "restarts": starts}
        return settings if self.learn_hyperparameters else {**settings, "hyperparameters": None}


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianProcessClassifier(Classes, _GaussianProcess):
    """Gaussian process classification with a Bernoulli, probit or multinomial likelihood, as in ``jensen latent fit``.

    The approximate posterior is the Gaussian that maximises a lower bound on the log marginal likelihood. A fit is
    trusted if checks show that the bound is tight and at its maximum. Time grows with the cube of the number of rows,
    unless the process has inducing points.

    Parameters
    ----------
    kernel : str or Kernel
        The prior: the name of a kernel (``"matern52"``), a specification in the notation of the command
        (``"gp(rbf, ard) + gp(linear)"``), or an object such as ``RBF(2.0) * Linear()``. For many rows,
        ``"svgp(rbf, ard, inducing=200)"`` has inducing points.
    link : {"logit", "probit"}
        Link function for two classes. More than two classes have multinomial logits.
    bound : str, optional
        The bound to maximise, as in ``jensen latent fit --bound``. The default, ``"exact"``, is the ELBO itself.
        ``"tilted"`` has a dual, which certifies the distance of the bound from its maximum, but learns variances that
        are too small.
    standardise : bool
        Whether to standardise columns and Gaussian responses for the fit. Results are always in the original units.
    hyperparameters : {"integrate", "point"}
        Whether to integrate over hyperparameters without a fixed value, or to maximise the bound over them.
    learn_hyperparameters : bool
        Whether to learn hyperparameters, instead of keeping their starting values.
    n_starts : int
        Number of searches for hyperparameters. The first search begins at their starting values.
    max_iter : int, optional
        Largest number of iterations.
    random_state : int, RandomState or None
        Seed of the other searches.
    threads : int, optional
        Number of threads. The default is all threads of the machine. Results do not depend on it.

    Attributes
    ----------
    classes_ : array
        Labels of the classes.
    hyperparameters_ : dict
        Hyperparameters by name, such as ``"gp.lengthscale"``.
    log_marginal_likelihood_value_ : float
        Lower bound on the log marginal likelihood, in nats.
    trusted_, verdict_, info_
        The verdict on the fit, and the contents of ``fit.json``.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianProcessRegressor(RegressorMixin, _GaussianProcess):
    """Gaussian process regression with a Gaussian or Student-t likelihood, as in ``jensen latent fit``.

    Parameters
    ----------
    noise_variance : float, optional
        Variance of the noise. By default the fit learns it.
    likelihood : str, optional
        Specification of the likelihood, such as ``"student-t"``. The default is ``"gaussian"``.

    The other parameters and attributes are those of ``GaussianProcessClassifier``.
    """

    noise_variance: float | None = None
    likelihood: str | None = None

    def fit(self, X: Any, y: Any, sd: Any = None) -> GaussianProcessRegressor:
        """Fit the process to the values y at the rows of X.

        ``sd`` holds known standard deviations of the errors of y. Predictions do not include these errors.
        """
        X, y = self._check(X, y)
        if sd is not None and (self.likelihood, self.noise_variance) != (None, None):
            raise ValueError("sd replaces the likelihood: give sd, or likelihood and noise_variance")
        values = np.asarray(y, dtype=np.float64)
        likelihood = self.likelihood or "gaussian"
        if self.noise_variance is not None:
            if self.likelihood is not None:
                raise ValueError("noise_variance is a parameter of the Gaussian likelihood: give it, or likelihood")
            likelihood = f"gaussian(variance={float(self.noise_variance)!r})"
        self._learn(X, values, likelihood, sd=sd)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return posterior means of the function at the rows of X and, with ``return_std``, its standard deviations.

        Neither includes noise.
        """
        mean, variance, _ = self._predict(X)
        return (mean[:, 0], np.sqrt(variance[:, 0])) if return_std else mean[:, 0]

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Return joint posterior draws of the function at the rows of X, without noise. Each column is one draw."""
        at_least_one("n_samples", n_samples)
        drawn: Array = self._draw(X, n_samples, random_state).T
        return drawn


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianProcessCountRegressor(Counts, _GaussianProcess):
    """Gaussian process regression of counts with a logarithmic link, as in ``jensen latent fit``.

    The likelihood is Poisson or negative binomial. ``fit`` and ``predict`` accept exposures; expected counts are
    proportional to them. ``score`` returns D², the explained share of the Poisson deviance.

    Parameters
    ----------
    likelihood : str
        ``"poisson"``, ``"negative-binomial"``, which learns its size, or ``"negative-binomial(size=…)"``.

    The other parameters and attributes are those of ``GaussianProcessClassifier``.
    """

    kernel: str | Kernel = field(default="gp(rbf) + intercept()", kw_only=False)
    likelihood: str = "poisson"

    def _observed(self) -> str:
        return self.likelihood
