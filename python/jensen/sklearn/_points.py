"""The common parts of models whose rows of X are points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import _jensen
from ._base import Array, Judged, at_least_one, encode, matrix, number, seed_of

_SHAPES = {"full": "full", "tied": "tied", "diag": "diagonal", "spherical": "spherical"}


@dataclass(eq=False, repr=False, kw_only=True)
class Points(Judged):
    """A model of the rows of X, which keeps the best of several starts."""

    n_components: int = field(default=1, kw_only=False)
    n_init: int | None = None
    temper: str = "none"
    max_iter: int = 1000
    tol: float = 1e-7

    #: Name of the model in the library.
    _kind: ClassVar[str]
    #: Allowed values in X: True for finite values, ``"allow-nan"`` for missing values too.
    _finite: ClassVar[bool | str] = True

    def _own(self) -> dict[str, Any]:
        """The settings other than the method."""
        raise NotImplementedError

    def _method(self) -> dict[str, Any]:
        return {"temper": self.temper, "max_iters": self.max_iter, "tolerance": float(self.tol), "starts": self.n_init}

    def _request(self, seed: int) -> str:
        return encode({self._kind: {**self._own(), "points": {**self._method(), "seed": seed}}})

    def _learn(
        self,
        X: Array,
        lengths: Sequence[int] = (),
        weights: Array | None = None,
        labels: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """Fits from several starts with consecutive seeds, and keeps the best bound."""
        if self.n_init is not None:
            at_least_one("n_init", self.n_init)
        at_least_one("n_components", self.n_components)
        request = self._request(seed_of(self.random_state))
        summary, self._kept = _jensen.fit_points(X, lengths, request, weights, labels, self.threads)
        info = self._judge(summary)
        self.lower_bound_ = number(info["elbo"])
        self.converged_ = bool(info["converged"])
        self.n_iter_ = int(info["iterations"])
        return info

    def _explain(self, X: Any, lengths: Sequence[int] = ()) -> tuple[Array, Array]:
        """Returns assignments of the rows of X, and lower bounds on their log predictive densities in nats."""
        X = matrix(self, X, reset=False, ensure_all_finite=self._finite)
        return _jensen.explain_points(X, lengths, self._request(0), self._kept, self.threads)


def shape_of(covariance_type: str) -> str:
    """Returns the library's name of a covariance type."""
    if covariance_type not in _SHAPES:
        raise ValueError(f"covariance_type={covariance_type!r}: expected 'full', 'tied', 'diag' or 'spherical'")
    return _SHAPES[covariance_type]


def covariances(rows: list[dict[str, Any]], width: int, covariance_type: str) -> Array:
    """Returns covariance matrices, or variances, of the components in a summary. Tied components have one matrix."""
    flat: Array = np.array([row["covariance"] for row in rows])
    if covariance_type == "tied":
        return flat[:1].reshape(width, width)
    return flat.reshape(len(rows), width, width) if covariance_type == "full" else flat
