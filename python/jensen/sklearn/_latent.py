"""The common parts of latent Gaussian models: fits and predictions, by type of response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from .. import _jensen
from ._base import Array, Judged, encode, matrix, number, seed_of

#: Columns in addition to the matrix, by name.
More = list[tuple[str, list[float]]]


@dataclass(eq=False, repr=False, kw_only=True)
class LatentGaussian(Judged):
    """A latent Gaussian model of y given the columns of X.

    A subclass for the response (``Classes``, ``Counts``, or the ``fit`` of a regression) provides the likelihood, and
    ``_prior`` provides the prior. Predictions need the data, so the estimator keeps them, as scikit-learn's Gaussian
    processes do.
    """

    bound: str | None = None
    max_iter: int | None = None
    standardise: bool = True
    hyperparameters: str = "integrate"

    def _prior(self) -> str:
        """The specification of the prior."""
        raise NotImplementedError

    def _search(self) -> dict[str, Any]:
        """Settings of the search for hyperparameters."""
        return {}

    def _read(self, info: dict[str, Any]) -> None:
        """Sets attributes from the results of the fit."""

    def _check(self, X: Any, y: Any) -> tuple[Array, npt.NDArray[Any]]:
        """Checks X and y, and returns them."""
        # The standard deviation of a single row does not exist.
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", y_numeric=False, ensure_min_samples=2)
        return X, column_or_1d(y, warn=True)

    def _names(self) -> list[str]:
        """The names of the columns in specifications."""
        return [str(name) for name in getattr(self, "feature_names_in_", self._numbered())]

    def _numbered(self) -> list[str]:
        return [f"x{i + 1}" for i in range(self.n_features_in_)]

    def _learn(
        self, X: Array, response: Array, likelihood: str, *, exposure: Any = None, sd: Any = None
    ) -> None:
        """Fits the model, and keeps data, request and posterior. With ``sd``, the likelihood has known errors."""
        self._columns = self._names()
        more: More = [(self._free("y"), response.tolist())]
        if exposure is not None:
            more.append((self._free("exposure"), _positive("exposure", exposure, response).tolist()))
        if sd is not None:
            more.append((self._free("sd"), _positive("sd", sd, response).tolist()))
            likelihood = f"gaussian(sd={more[-1][0]})"
        self._request = encode(
            {
                "prior": self._prior(),
                "likelihood": likelihood,
                "response": more[0][0],
                "exposure": None if exposure is None else more[1][0],
                "bound": self.bound,
                "max_iters": self.max_iter,
                "seed": seed_of(self.random_state),
                "standardise": "on" if self.standardise else "off",
                **({} if self.hyperparameters == "integrate" else {"hyperparameters": self.hyperparameters}),
                **self._search(),
            }
        )
        self._X, self._more = X, more
        summary, self._posterior = _jensen.fit_latent(self._columns, X, more, self._request, self.threads)
        info = self._judge(summary)
        self.log_marginal_likelihood_value_ = number(info["bound"])
        self.hyperparameters_ = {row["name"]: row["value"] for row in info["hyperparameters"]}
        self._means = {row["name"]: row.get("mean", row["value"]) for row in info["hyperparameters"]}
        self.n_iter_ = int(info["iterations"])
        self._read(info)

    def _predict(self, X: Any, exposure: Any = None) -> tuple[Array, Array, Array]:
        """Returns means and variances of the linear predictors, and expected observations, at the rows of X."""
        X = matrix(self, X, reset=False)
        columns: More = []
        if exposure is not None:
            columns.append((self._free("exposure"), _positive("exposure", exposure, X).tolist()))
        mean, variance, expected, _ = _jensen.predict_latent(
            self._columns, self._X, self._more, self._request, self._posterior, X, columns, self.threads
        )
        return mean, np.maximum(variance, 0.0), expected

    def _draw(self, X: Any, draws: int, random_state: Any) -> Array:
        """Returns joint draws of the linear predictors at the rows of X, one draw per row."""
        X = matrix(self, X, reset=False)
        seed = seed_of(random_state)
        return _jensen.draw_latent(
            self._columns, self._X, self._more, self._request, self._posterior, X, draws, seed, self.threads
        )

    def _free(self, name: str) -> str:
        """Returns a name that no column of X has."""
        while name in self._columns:
            name += "_"
        return name


@dataclass(eq=False, repr=False, kw_only=True)
class Classes(ClassifierMixin, LatentGaussian):
    """A categorical response with a Bernoulli, probit or multinomial likelihood."""

    link: str = "logit"

    def fit(self, X: Any, y: Any) -> Any:
        """Fit the model to the classes y of the rows of X."""
        X, y = self._check(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        several = len(self.classes_) > 2
        if len(self.classes_) < 2:
            raise ValueError("a classifier needs samples of at least 2 classes, but y has one class")
        if self.link not in ("logit", "probit"):
            raise ValueError(f"link={self.link!r}: expected 'logit' or 'probit'")
        if several and self.link == "probit":
            raise ValueError(f"y has {len(self.classes_)} classes, and link='probit' is for two")
        two = {"logit": "bernoulli", "probit": "probit"}[self.link]
        self._learn(X, codes.astype(np.float64), "multinomial" if several else two)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, averaged over the posterior, with one column for each class."""
        means = self._predict(X)[2]
        # For two classes, the fit has only the probability of the second.
        return np.column_stack([1.0 - means[:, 0], means[:, 0]]) if means.shape[1] == 1 else means

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        classes: npt.NDArray[Any] = self.classes_[best]
        return classes


@dataclass(eq=False, repr=False, kw_only=True)
class Counts(RegressorMixin, LatentGaussian):
    """A response of counts with exposures and a logarithmic link."""

    def _observed(self) -> str:
        """The specification of the likelihood."""
        return "poisson"

    def fit(self, X: Any, y: Any, exposure: Any = None) -> Any:
        """Fit the model to the counts y of the rows of X."""
        X, y = self._check(X, y)
        values = np.asarray(y, dtype=np.float64)
        if (values < 0).any() or (values != np.floor(values)).any():
            raise ValueError("y must be counts: 0, 1, 2, …")
        self._learn(X, values, self._observed(), exposure=exposure)
        return self

    def predict(self, X: Any, exposure: Any = None, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return expected counts at the rows of X, averaged over the posterior.

        With ``return_std``, also return the posterior standard deviations of the log rates.
        """
        _, variance, expected = self._predict(X, exposure)
        return (expected[:, 0], np.sqrt(variance[:, 0])) if return_std else expected[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return D², the explained share of the Poisson deviance."""
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def _positive(what: str, values: Any, like: Any) -> Array:
    column: Array = column_or_1d(np.asarray(values, dtype=np.float64))
    check_consistent_length(column, like)
    if not (np.isfinite(column).all() and (column > 0).all()):
        raise ValueError(f"{what} must be positive and finite")
    return column
