"""Mixtures, binary factors, hidden Markov chains."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from .. import _jensen
from ._base import Array, Judged, matrix, seed_of, settings

_SHAPES = {"full": "full", "diag": "diagonal"}


class _Points(Judged):
    """A model of the rows of X."""

    n_init: int
    temper: str
    max_iter: int
    tol: float
    random_state: Any
    threads: int | None

    def _method(self, seed: int, **more: Any) -> dict[str, Any]:
        method = {
            "temper": self.temper,
            "max_iters": self.max_iter,
            "tolerance": float(self.tol),
            "seed": seed,
            **more,
        }
        return {name: value for name, value in method.items() if value is not None}

    def _best(self, fit: Callable[[int], tuple[str, Array]]) -> tuple[dict[str, Any], Array]:
        """The best of several starts by the bound: seeds that follow each other, the first the seed itself."""
        if self.n_init < 1:
            raise ValueError(f"n_init={self.n_init}: expected at least 1")
        seed = seed_of(self.random_state)
        made = [fit(seed + start) for start in range(self.n_init)]
        bounds = [json.loads(summary)["elbo"] for summary, _ in made]
        ranked = [-math.inf if bound is None else bound for bound in bounds]
        summary, globals_ = made[int(np.argmax(ranked))]
        info = self._judge(summary)
        self.lower_bound_ = math.nan if info["elbo"] is None else float(info["elbo"])
        self.converged_ = bool(info["converged"])
        self.n_iter_ = int(info["iterations"])
        return info, globals_


def _shape(covariance_type: str) -> str:
    if covariance_type not in _SHAPES:
        raise ValueError(f"covariance_type={covariance_type!r}: expected 'full' or 'diag'")
    return _SHAPES[covariance_type]


def _covariances(rows: list[dict[str, Any]], width: int, covariance_type: str) -> Array:
    flat = np.array([row["covariance"] for row in rows])
    return flat.reshape(len(rows), width, width) if covariance_type == "full" else flat


def _draw(rng: Any, mean: Array, covariance: Array) -> Array:
    """A draw of a normal distribution with a covariance matrix, or variances."""
    z = rng.standard_normal(len(mean))
    drawn: Array = mean + (np.sqrt(covariance) * z if covariance.ndim == 1 else np.linalg.cholesky(covariance) @ z)
    return drawn


class BayesianGaussianMixture(DensityMixin, _Points):
    """A variational mixture of Gaussians: ``jensen mixture fit``.

    Parameters
    ----------
    n_components : int
        Number of components.
    covariance_type : {"full", "diag"}
        Shape of the covariance matrices.
    weight_concentration_prior : float, optional
        Dirichlet parameter of the weights; 1 unless given.
    n_init : int
        Starts, of which the one with the best bound is kept.
    temper : str
        Temperature policy: ``"none"``, ``"anneal=ITERATIONS"``, ``"global"`` or ``"local"``, the latter two with
        ``=ITERATIONS`` too.
    batch_size : int, optional
        Points of a minibatch; without it every iteration uses all points.
    max_iter : int
        Largest number of iterations; with ``batch_size``, passes over the points.
    tol : float
        Converged when the bound changes by less than this share of itself in three iterations.
    random_state : int, RandomState or None
        Seed; None draws one from NumPy's generator.
    threads : int, optional
        All of the machine unless given. Results do not depend on it.

    Attributes
    ----------
    weights_, means_, covariances_ : array
        Of the components, the heaviest first: expected weights and means, and inverses of expected precisions.
    lower_bound_ : float
        The evidence lower bound, in nats.
    converged_, n_iter_
        Whether the bound came to rest, and when.
    trusted_, verdict_, info_
        What the fit is worth, and ``fit.json``.
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        weight_concentration_prior: float | None = None,
        n_init: int = 1,
        temper: str = "none",
        batch_size: int | None = None,
        max_iter: int = 1000,
        tol: float = 1e-7,
        random_state: Any = None,
        threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.weight_concentration_prior = weight_concentration_prior
        self.n_init = n_init
        self.temper = temper
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.threads = threads

    def _request(self, seed: int) -> str:
        batches = {"batch": self.batch_size, "passes": float(self.max_iter), "max_iters": None}
        return settings(
            components=self.n_components,
            covariance=_shape(self.covariance_type),
            concentration=self.weight_concentration_prior,
            points=self._method(seed, **(batches if self.batch_size else {})),
        )

    def fit(self, X: Any, y: Any = None) -> BayesianGaussianMixture:
        """Fits the mixture to the rows of X."""
        X = matrix(self, X, reset=True)
        info, found = self._best(lambda seed: _jensen.fit_mixture(X, self._request(seed), self.threads))
        k = int(self.n_components)
        # The summary has the heaviest component first, and so have the globals from here on.
        weights, rest = found[:k], found[k:].reshape(k, -1)
        order = np.argsort(-weights, kind="stable")
        self._globals = np.concatenate([weights[order], rest[order].ravel()])
        rows = info["components"]
        self.weights_ = np.array([row["weight"] for row in rows])
        self.means_ = np.array([row["mean"] for row in rows])
        self.covariances_ = _covariances(rows, X.shape[1], self.covariance_type)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> npt.NDArray[np.int64]:
        """Fits the mixture and gives each row its component."""
        return self.fit(X).predict(X)

    def _explain(self, X: Any) -> tuple[Array, Array]:
        X = matrix(self, X, reset=False)
        return _jensen.explain_mixture(X, self._request(0), self._globals, self.threads)

    def predict_proba(self, X: Any) -> Array:
        """Responsibilities of the components, a row a row of X."""
        return self._explain(X)[0]

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """The component of the largest responsibility."""
        labels: npt.NDArray[np.int64] = self.predict_proba(X).argmax(axis=1)
        return labels

    def score_samples(self, X: Any) -> Array:
        """A lower bound of the log predictive density of every row, in nats: what scikit-learn's mixture gives, too."""
        return self._explain(X)[1]

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of ``score_samples``."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[Array, npt.NDArray[np.int64]]:
        """Draws of points from the expected components, and the component of each."""
        if n_samples < 1:
            raise ValueError(f"n_samples={n_samples}: expected at least 1")
        check_is_fitted(self)
        rng = check_random_state(self.random_state)
        labels = rng.choice(len(self.weights_), size=n_samples, p=self.weights_ / self.weights_.sum())
        drawn = np.array([_draw(rng, self.means_[k], self.covariances_[k]) for k in labels])
        return drawn, labels


class FactorialMixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Points):
    """Binary factors: every row is a sum of those that are on, and noise. ``jensen factors fit``.

    Parameters
    ----------
    n_components : int
        Number of factors.
    noise_variance : float
        Variance of the noise in every column.
    factor_variance : float
        Prior variance of the factors' elements.
    activation : float
        Prior probability of a factor to be on.
    n_init, temper, max_iter, tol, random_state, threads
        As for ``BayesianGaussianMixture``.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Expected factors.
    lower_bound_, converged_, n_iter_, trusted_, verdict_, info_
        As for ``BayesianGaussianMixture``.
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        noise_variance: float = 1.0,
        factor_variance: float = 1.0,
        activation: float = 0.3,
        n_init: int = 1,
        temper: str = "none",
        max_iter: int = 1000,
        tol: float = 1e-7,
        random_state: Any = None,
        threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.noise_variance = noise_variance
        self.factor_variance = factor_variance
        self.activation = activation
        self.n_init = n_init
        self.temper = temper
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.threads = threads

    def _request(self, seed: int) -> str:
        return settings(
            factors=self.n_components,
            noise_variance=float(self.noise_variance),
            factor_variance=float(self.factor_variance),
            activation=float(self.activation),
            points=self._method(seed),
        )

    def fit(self, X: Any, y: Any = None) -> FactorialMixture:
        """Fits factors to the rows of X."""
        X = matrix(self, X, reset=True)
        info, self._globals = self._best(lambda seed: _jensen.fit_factors(X, self._request(seed), self.threads))
        self.components_ = np.array(info["factors"])
        return self

    def _explain(self, X: Any) -> tuple[Array, Array]:
        X = matrix(self, X, reset=False)
        return _jensen.explain_factors(X, self._request(0), self._globals, self.threads)

    def transform(self, X: Any) -> Array:
        """Probabilities of the factors to be on, a row a row of X."""
        return self._explain(X)[0]

    def inverse_transform(self, X: Any) -> Array:
        """Expected rows, given probabilities of the factors."""
        check_is_fitted(self)
        expected: Array = check_array(X, dtype=np.float64) @ self.components_
        return expected

    def score_samples(self, X: Any) -> Array:
        """A lower bound of the log predictive density of every row, in nats."""
        return self._explain(X)[1]

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of ``score_samples``."""
        return float(self.score_samples(X).mean())

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


class HiddenMarkov(DensityMixin, _Points):
    """A hidden Markov model with Gaussian emissions: the rows of X are steps of one sequence, or with ``lengths`` of
    several, one after the other.

    Parameters
    ----------
    n_components : int
        Number of states.
    covariance_type : {"full", "diag"}
        Shape of the emissions' covariance matrices.
    concentration : float, optional
        Dirichlet parameter of the first state and of every row of transitions; 1 unless given.
    n_init, temper, max_iter, tol, random_state, threads
        As for ``BayesianGaussianMixture``.

    Attributes
    ----------
    startprob_, transmat_ : array
        Expected probabilities of the first state and of transitions.
    means_, covariances_ : array
        Of the emissions: expected means, and inverses of expected precisions.
    lower_bound_, converged_, n_iter_, trusted_, verdict_, info_
        As for ``BayesianGaussianMixture``.
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        covariance_type: str = "full",
        concentration: float | None = None,
        n_init: int = 1,
        temper: str = "none",
        max_iter: int = 1000,
        tol: float = 1e-7,
        random_state: Any = None,
        threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.concentration = concentration
        self.n_init = n_init
        self.temper = temper
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.threads = threads

    def _request(self, seed: int) -> str:
        return settings(
            states=self.n_components,
            covariance=_shape(self.covariance_type),
            concentration=self.concentration,
            points=self._method(seed),
        )

    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> HiddenMarkov:
        """Fits the chains to the sequences in X."""
        X = matrix(self, X, reset=True)
        steps = _steps(X, lengths)
        info, self._globals = self._best(lambda seed: _jensen.fit_chains(X, steps, self._request(seed), self.threads))
        chain = info["chain"]
        self.startprob_ = np.array(chain["initial"])
        self.transmat_ = np.array(chain["transitions"])
        self.means_ = np.array([row["mean"] for row in chain["emissions"]])
        self.covariances_ = _covariances(chain["emissions"], X.shape[1], self.covariance_type)
        return self

    def _explain(self, X: Any, lengths: Any) -> tuple[Array, Array]:
        X = matrix(self, X, reset=False)
        return _jensen.explain_chains(X, _steps(X, lengths), self._request(0), self._globals, self.threads)

    def predict_proba(self, X: Any, lengths: Any = None) -> Array:
        """Probabilities of the states at every step, given the whole sequence."""
        return self._explain(X, lengths)[0]

    def predict(self, X: Any, lengths: Any = None) -> npt.NDArray[np.int64]:
        """The most probable state of every step by itself."""
        states: npt.NDArray[np.int64] = self.predict_proba(X, lengths).argmax(axis=1)
        return states

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """A lower bound of the log predictive density of the sequences, in nats a step."""
        bounds = self._explain(X, lengths)[1]
        return float(bounds.sum() / len(X))


def _steps(X: Array, lengths: Any) -> list[int]:
    """Lengths of sequences."""
    if lengths is None:
        return [len(X)]
    steps = [int(n) for n in lengths]
    if min(steps, default=0) < 1 or sum(steps) != len(X):
        raise ValueError(f"lengths must be positive and add up to the {len(X)} rows of X")
    return steps
