"""Mixtures of Gaussians."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ._base import Array, Scored, at_least_one, matrix
from ._points import Points, covariances, shape_of


@dataclass(eq=False, repr=False, kw_only=True)
class BayesianGaussianMixture(Scored, DensityMixin, Points):
    """A Bayesian mixture of Gaussians by variational inference, as in ``jensen mixture fit``.

    NaN marks a missing value, which the fit integrates out.

    Parameters
    ----------
    n_components : int
        Number of components.
    covariance_type : {"full", "tied", "diag", "spherical"}
        Structure of the covariance matrices. With ``"tied"`` all components have the same matrix. With ``"spherical"``
        all columns of a component have the same variance in standardised units.
    weight_concentration_prior_type : {"dirichlet_distribution", "dirichlet_process"}
        Prior of the weights. With ``"dirichlet_process"``, ``n_components`` is the largest number of components, and
        components without points are left empty.
    weight_concentration_prior : float, optional
        Dirichlet parameter of the weights, or concentration of the process. The default is 1.
    mean_precision_prior : float, optional
        Weight of the prior mean, in points. The prior mean is the mean of the data. The default is 0.1.
    variance_prior : float, optional
        Prior variance within a component, as a share of each column's variance. The default is 0.1.
    variance_prior_weight : float, optional
        Weight of the prior variance, in points. The default is 2.
    standardise : bool
        Whether to standardise the columns. Results are always in the units of X.
    n_init : int, optional
        Number of starts. The fit keeps the start with the best bound. The default is 5, or 1 with
        ``batch_size``.
    temper : str
        Temperature policy, in the notation of the command: ``"none"``, ``"anneal=ITERATIONS[:FROM]"``, ``"schedule=ITERATION:T,…"``,
        ``"global[=ITERATIONS[:HOTTEST[:TEMPERATURES]]]"`` or ``"local[=ITERATIONS[:TEMPERATURES[:A:B]]]"``.
    batch_size : int, optional
        Number of points in a minibatch. By default each iteration uses all points.
    max_iter : int
        Largest number of iterations, or of passes over the points with ``batch_size``.
    tol : float
        Convergence tolerance: the fit ends when the bound changes by less than this relative amount in three iterations.
    random_state : int, RandomState or None
        Seed. None draws a seed from NumPy's global generator.
    threads : int, optional
        Number of threads. The default is all threads of the machine. Results do not depend on it.

    Attributes
    ----------
    weights_, means_, covariances_ : array
        Posterior means of the weights and means, and inverses of the expected precisions. Components are in order of
        decreasing weight. ``covariances_`` has one matrix for each component, one matrix for all components with
        ``"tied"``, or the variances of the columns in each component with ``"diag"`` and ``"spherical"``.
    lower_bound_ : float
        Evidence lower bound, in nats.
    converged_, n_iter_
        Whether the bound converged, and the number of iterations.
    trusted_, verdict_, info_
        The verdict on the fit, and the contents of ``fit.json``.
    """

    covariance_type: str = "full"
    standardise: bool = True
    weight_concentration_prior_type: str = "dirichlet_distribution"
    weight_concentration_prior: float | None = None
    mean_precision_prior: float | None = None
    variance_prior: float | None = None
    variance_prior_weight: float | None = None
    batch_size: int | None = None

    _kind = "mixture"
    _finite = "allow-nan"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _own(self) -> dict[str, Any]:
        return {
            "components": self.n_components,
            "covariance": shape_of(self.covariance_type),
            "standardise": "on" if self.standardise else "off",
            "mixing": _mixing(self.weight_concentration_prior_type),
            "concentration": self.weight_concentration_prior,
            "prior_mean_weight": self.mean_precision_prior,
            "prior_variance": self.variance_prior,
            "prior_variance_weight": self.variance_prior_weight,
        }

    def _method(self) -> dict[str, Any]:
        batches = {"batch": self.batch_size, "passes": float(self.max_iter), "max_iters": None}
        return super()._method() | (batches if self.batch_size else {})

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BayesianGaussianMixture:
        """Fit the mixture to the rows of X. A row with ``sample_weight`` k counts as k equal rows."""
        X = matrix(self, X, reset=True, ensure_all_finite=self._finite)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        info = self._learn(X, weights=weights)
        rows = info["components"]
        self.weights_ = np.array([row["weight"] for row in rows])
        self.means_ = np.array([row["mean"] for row in rows])
        self.covariances_ = covariances(rows, X.shape[1], self.covariance_type)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> npt.NDArray[np.int64]:
        """Fit the mixture, and return the most probable component of each row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def predict_proba(self, X: Any) -> Array:
        """Return the posterior predictive probabilities of the components, one row per row of X."""
        return self._explain(X)[0]

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the most probable component of each row."""
        labels: npt.NDArray[np.int64] = self.predict_proba(X).argmax(axis=1)
        return labels

    def score_samples(self, X: Any) -> Array:
        """Return the posterior predictive log density of each row, in nats. The density is a mixture of Student's t."""
        return self._explain(X)[1]

    def sample(self, n_samples: int = 1) -> tuple[Array, npt.NDArray[np.int64]]:
        """Return random points from Gaussians with ``means_`` and ``covariances_``, and the component of each point."""
        at_least_one("n_samples", n_samples)
        check_is_fitted(self)
        rng = check_random_state(self.random_state)
        labels = rng.choice(len(self.weights_), size=n_samples, p=self.weights_ / self.weights_.sum())
        tied = self.covariance_type == "tied"
        drawn = np.array([_draw(rng, self.means_[k], self.covariances_ if tied else self.covariances_[k]) for k in labels])
        return drawn, labels


def _mixing(prior: str) -> str:
    """Returns the library's name of a prior of the weights."""
    names = {"dirichlet_distribution": "dirichlet", "dirichlet_process": "process"}
    if prior not in names:
        raise ValueError(f"weight_concentration_prior_type={prior!r}: expected one of {', '.join(names)}")
    return names[prior]


def _draw(rng: Any, mean: Array, covariance: Array) -> Array:
    """Draws a point from a normal distribution with this covariance matrix, or these variances."""
    z = rng.standard_normal(len(mean))
    if covariance.ndim == 1:
        drawn: Array = mean + np.sqrt(covariance) * z
        return drawn
    # The covariance is singular if a column is constant or a multiple of another.
    variances, axes = np.linalg.eigh(covariance)
    draw: Array = mean + axes @ (np.sqrt(np.maximum(variances, 0.0)) * z)
    return draw
