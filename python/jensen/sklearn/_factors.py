"""Binary factors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from ._base import Array, Scored, matrix
from ._points import Points


@dataclass(eq=False, repr=False, kw_only=True)
class FactorialMixture(Scored, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Points):
    """A factorial mixture model with binary factors, as in ``jensen factors fit``.

    Each row of X is the sum of the active factors, plus Gaussian noise.

    Parameters
    ----------
    n_components : int
        Number of factors.
    noise_variance : float
        Variance of the noise in each column.
    factor_variance : float, optional
        Prior variance of the factors' elements. The default is the mean square of X.
    activation : float
        Prior probability that a factor is active.
    n_init, temper, max_iter, tol, random_state, threads
        As for ``BayesianGaussianMixture``. The default is 5 starts. With a temperature policy, 1 start suffices.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Posterior means of the factors.
    lower_bound_, converged_, n_iter_, trusted_, verdict_, info_
        As for ``BayesianGaussianMixture``.
    """

    n_components: int = field(default=2, kw_only=False)
    noise_variance: float = 1.0
    factor_variance: float | None = None
    activation: float = 0.3

    _kind = "factors"

    def _own(self) -> dict[str, Any]:
        return {
            "factors": self.n_components,
            "noise_variance": float(self.noise_variance),
            "factor_variance": None if self.factor_variance is None else float(self.factor_variance),
            "activation": float(self.activation),
        }

    def fit(self, X: Any, y: Any = None) -> FactorialMixture:
        """Fit factors to the rows of X."""
        self.components_ = np.array(self._learn(matrix(self, X, reset=True))["factors"])
        return self

    def transform(self, X: Any) -> Array:
        """Return the probabilities that the factors are active, one row per row of X."""
        return self._explain(X)[0]

    def inverse_transform(self, X: Any) -> Array:
        """Return the expected rows for given probabilities of the factors."""
        check_is_fitted(self)
        expected: Array = check_array(X, dtype=np.float64) @ self.components_
        return expected

    def score_samples(self, X: Any) -> Array:
        """Return a lower bound on the log predictive density of each row, in nats."""
        return self._explain(X)[1]

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])
