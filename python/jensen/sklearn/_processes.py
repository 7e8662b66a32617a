"""Gaussian processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import d2_tweedie_score

from ._base import Array
from ._kernels import Kernel
from ._latent import LatentGaussian, categories, counts, probabilities


class _GaussianProcess(LatentGaussian):
    kernel: str | Kernel
    n_starts: int

    def _prior(self) -> str:
        """The prior's specification; a bare word is a kernel."""
        text = str(self.kernel).strip()
        return f"gp({text})" if text.replace("_", "").isalnum() else text


class GaussianProcessClassifier(ClassifierMixin, _GaussianProcess):
    """Gaussian process classification: ``jensen latent fit`` with a Bernoulli, probit or multinomial likelihood.

    The posterior is the Gaussian that maximises a lower bound on the log marginal likelihood, and a fit is trusted
    where that bound is known to be at its maximum and tight. Time grows with the cube of the number of rows.

    Parameters
    ----------
    kernel : str or Kernel
        A prior as the command takes it (``"gp(rbf, ard) + gp(linear)"``), a kernel's name (``"matern52"``), or an
        object such as ``RBF(2.0) * Linear()``.
    link : {"logit", "probit"}
        Of two classes; more than two are multinomial logits.
    bound : str, optional
        What is maximised: ``"exact"`` is the expectation itself, ``None`` the likelihood's best bound with a dual,
        which certifies how close to its maximum it is.
    learn_hyperparameters : bool
        Maximise the bound over what the kernel leaves free.
    n_starts : int
        Searches for hyperparameters, the first from their starting values.
    max_iter : int, optional
        Largest number of iterations.
    random_state : int, RandomState or None
        Seed of the starts beyond the first.
    threads : int, optional
        All of the machine unless given.

    Attributes
    ----------
    classes_ : array
        The classes.
    hyperparameters_ : dict
        Hyperparameters by name, such as ``"gp.lengthscale"``.
    log_marginal_likelihood_value_ : float
        The lower bound on the log marginal likelihood, in nats.
    trusted_, verdict_, info_
        What the fit is worth, and ``fit.json``.
    """

    def __init__(
        self,
        kernel: str | Kernel = "gp(rbf)",
        *,
        link: str = "logit",
        bound: str | None = "exact",
        learn_hyperparameters: bool = True,
        n_starts: int = 1,
        max_iter: int | None = None,
        random_state: Any = None,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.link = link
        self.bound = bound
        self.learn_hyperparameters = learn_hyperparameters
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any) -> GaussianProcessClassifier:
        """Fits the process to the classes y of the rows of X."""
        X, y = self._check(X, y)
        self.classes_, codes, likelihood = categories(y, self.link)
        self._learn(X, codes, self._prior(), likelihood, n_starts=self.n_starts, bound=self.bound)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, a column each, averaged over the posterior."""
        return probabilities(self._predict(X)[2])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable classes."""
        best = self.predict_proba(X).argmax(axis=1)
        classes: npt.NDArray[Any] = self.classes_[best]
        return classes


class GaussianProcessRegressor(RegressorMixin, _GaussianProcess):
    """Gaussian process regression: ``jensen latent fit`` with a Gaussian or Student-t likelihood.

    Parameters
    ----------
    noise_variance : float, optional
        Variance of the noise; learnt unless given.
    likelihood : str, optional
        Another likelihood than ``gaussian``, such as ``"student-t"``.
    normalize_y : bool
        Fit y less its mean, by its standard deviation, and predict on the scale of y. The prior's mean is 0.

    The other parameters and attributes are those of ``GaussianProcessClassifier``.
    """

    def __init__(
        self,
        kernel: str | Kernel = "gp(rbf)",
        *,
        noise_variance: float | None = None,
        likelihood: str | None = None,
        normalize_y: bool = False,
        bound: str | None = None,
        learn_hyperparameters: bool = True,
        n_starts: int = 1,
        max_iter: int | None = None,
        random_state: Any = None,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.likelihood = likelihood
        self.normalize_y = normalize_y
        self.bound = bound
        self.learn_hyperparameters = learn_hyperparameters
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any) -> GaussianProcessRegressor:
        """Fits the process to the values y of the rows of X."""
        X, y = self._check(X, y)
        values = np.asarray(y, dtype=np.float64)
        self._centre, self._scale = 0.0, 1.0
        if self.normalize_y:
            self._centre, self._scale = float(values.mean()), float(values.std()) or 1.0
        likelihood = self.likelihood or "gaussian"
        if self.noise_variance is not None:
            if self.likelihood is not None:
                raise ValueError("noise_variance is a parameter of the Gaussian likelihood: give it, or likelihood")
            likelihood = f"gaussian(variance={float(self.noise_variance) / self._scale**2!r})"
        values = (values - self._centre) / self._scale
        self._learn(X, values, self._prior(), likelihood, n_starts=self.n_starts, bound=self.bound)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Posterior means of the function at the rows of X, and its standard deviations, without noise, if asked
        for."""
        mean, variance, _ = self._predict(X)
        means = self._centre + self._scale * mean[:, 0]
        if not return_std:
            return means
        return means, self._scale * np.sqrt(np.maximum(variance[:, 0], 0.0))


class GaussianProcessCountRegressor(RegressorMixin, _GaussianProcess):
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

    def __init__(
        self,
        kernel: str | Kernel = "gp(rbf) + intercept()",
        *,
        likelihood: str = "poisson",
        bound: str | None = None,
        learn_hyperparameters: bool = True,
        n_starts: int = 1,
        max_iter: int | None = None,
        random_state: Any = None,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.bound = bound
        self.learn_hyperparameters = learn_hyperparameters
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any, exposure: Any = None) -> GaussianProcessCountRegressor:
        """Fits the process to the counts y of the rows of X."""
        X, y = self._check(X, y)
        likelihood = self.likelihood
        self._learn(
            X, counts(y), self._prior(), likelihood, exposure=exposure, n_starts=self.n_starts, bound=self.bound
        )
        return self

    def predict(self, X: Any, exposure: Any = None, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Expected counts at the rows of X; with ``return_std`` also the standard deviations of their logarithms."""
        _, variance, expected = self._predict(X, exposure)
        if not return_std:
            return expected[:, 0]
        return expected[:, 0], np.sqrt(np.maximum(variance[:, 0], 0.0))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the Poisson deviance that predictions explain, D²."""
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
