"""What latent Gaussian models share: a fit to the columns of a matrix, and predictions from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from .. import _jensen
from ._base import Array, Judged, matrix, seed_of, settings

#: Columns beside the matrix, by name.
More = list[tuple[str, list[float]]]


class LatentGaussian(Judged):
    """A latent Gaussian model of y given the columns of X.

    Predictions need what the posterior is conditioned on, so that the data are kept, as in scikit-learn's Gaussian
    processes.
    """

    bound: str | None
    learn_hyperparameters: bool
    max_iter: int | None
    random_state: Any
    threads: int | None

    def _check(self, X: Any, y: Any) -> tuple[Array, npt.NDArray[Any]]:
        """X and y, checked and kept."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", y_numeric=False)
        return X, column_or_1d(y, warn=True)

    def _names(self) -> list[str]:
        """What the columns are called in specifications."""
        return [str(name) for name in getattr(self, "feature_names_in_", self._numbered())]

    def _numbered(self) -> list[str]:
        return [f"x{i + 1}" for i in range(self.n_features_in_)]

    def _learn(
        self,
        X: Array,
        response: Array,
        prior: str,
        likelihood: str,
        *,
        exposure: Any = None,
        n_starts: int = 1,
        bound: str | None = None,
    ) -> dict[str, Any]:
        """Fits; keeps data, request and posterior."""
        self._columns = self._names()
        more: More = [(self._free("y"), response.tolist())]
        if exposure is not None:
            more.append((self._free("exposure"), _positive("exposure", exposure, response).tolist()))
        several = self.learn_hyperparameters and n_starts > 1
        self._request = settings(
            prior=prior,
            likelihood=likelihood,
            response=more[0][0],
            exposure=None if exposure is None else more[1][0],
            bound=bound,
            optimise_hyperparameters=self.learn_hyperparameters,
            restarts=n_starts if several else None,
            max_iters=self.max_iter,
            seed=seed_of(self.random_state),
        )
        self._X, self._more = X, more
        summary, self._posterior = _jensen.fit_latent(self._columns, X, more, self._request, self.threads)
        info = self._judge(summary)
        self.log_marginal_likelihood_value_ = float("nan") if info["bound"] is None else float(info["bound"])
        self.hyperparameters_ = {row["name"]: row["value"] for row in info["hyperparameters"]}
        self.n_iter_ = int(info["iterations"])
        return info

    def _predict(self, X: Any, exposure: Any = None) -> tuple[Array, Array, Array]:
        """Means and variances of the linear predictors, means of observations, at the rows of X."""
        check_is_fitted(self)
        X = matrix(self, X, reset=False)
        beside: More = []
        if exposure is not None:
            beside.append((self._free("exposure"), _positive("exposure", exposure, X).tolist()))
        made = _jensen.predict_latent(
            self._columns, self._X, self._more, self._request, self._posterior, X, beside, self.threads
        )
        return made[0], made[1], made[2]

    def _free(self, name: str) -> str:
        """A column's name that no column of X has."""
        while name in self._columns:
            name += "_"
        return name


def _positive(what: str, values: Any, like: Any) -> Array:
    column: Array = column_or_1d(np.asarray(values, dtype=np.float64))
    check_consistent_length(column, like)
    if not (np.isfinite(column).all() and (column > 0).all()):
        raise ValueError(f"{what} must be positive and finite")
    return column


def counts(y: npt.NDArray[Any]) -> Array:
    """A response of counts."""
    values = np.asarray(y, dtype=np.float64)
    if (values < 0).any() or (values != np.floor(values)).any():
        raise ValueError("y must be counts: 0, 1, 2, …")
    return values


def categories(y: npt.NDArray[Any], link: str) -> tuple[npt.NDArray[Any], Array, str]:
    """The classes, each row's number among them, and the likelihood that they need."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError("a classifier needs samples of at least 2 classes, but y has one class")
    if link not in ("logit", "probit"):
        raise ValueError(f"link={link!r}: expected 'logit' or 'probit'")
    if len(classes) > 2 and link == "probit":
        raise ValueError(f"y has {len(classes)} classes, and link='probit' is for two")
    likelihood = "multinomial" if len(classes) > 2 else {"logit": "bernoulli", "probit": "probit"}[link]
    return classes, codes.astype(np.float64), likelihood


def probabilities(means: Array) -> Array:
    """A column a class, from the probability of the second or from all."""
    return np.column_stack([1.0 - means[:, 0], means[:, 0]]) if means.shape[1] == 1 else means
