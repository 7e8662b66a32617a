"""The common parts of all estimators.

An estimator is a data class whose fields are its parameters, so that ``__init__``, ``get_params`` and ``clone`` follow
from them. ``fit`` sets the attributes of a fit.
"""

from __future__ import annotations

import json
import math
import numbers
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._fit import Array
from .._settings import encode
from .._verdict import verdict, warn

__all__ = ["Array", "Judged", "Scored", "at_least_one", "encode", "matrix", "number", "seed_of"]


@dataclass(eq=False, repr=False, kw_only=True)
class Judged(BaseEstimator):
    """An estimator whose fits have a verdict."""

    random_state: Any = None
    threads: int | None = None

    def _judge(self, summary: str) -> dict[str, Any]:
        """Stores the verdict of a fit job, and warns if the fit is not trusted."""
        info: dict[str, Any] = json.loads(summary)
        self.info_ = info
        self.trusted_ = bool(info["trusted"])
        self.verdict_ = verdict(info)
        if not self.trusted_:
            warn(self.verdict_)
        return info


class Scored:
    """A model with the log density of each row, or a lower bound on it."""

    def score_samples(self, X: Any) -> Array:
        """Return a lower bound on the log predictive density of each row, in nats."""
        raise NotImplementedError

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of ``score_samples``, in nats."""
        return float(self.score_samples(X).mean())


def number(value: float | None) -> float:
    """Converts None, which summaries have for an undefined number, to NaN."""
    return math.nan if value is None else float(value)


def at_least_one(name: str, value: int) -> None:
    """Raises an error unless the value is a positive whole number."""
    if not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r}: expected a whole number")
    if value < 1:
        raise ValueError(f"{name}={value}: expected at least 1")


def seed_of(random_state: Any) -> int:
    """Returns the seed for ``random_state``. A generator, by default NumPy's global one, draws a seed."""
    if isinstance(random_state, numbers.Integral):
        if random_state < 0:
            raise ValueError(f"random_state={random_state}: expected a seed of at least 0")
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def matrix(estimator: Any, X: Any, *, reset: bool, **checks: Any) -> Array:
    """Checks X against the fit, and returns it as a float64 matrix in C order."""
    if not reset:
        check_is_fitted(estimator)
    else:
        # The standard deviation of a single row does not exist.
        checks.setdefault("ensure_min_samples", 2)
    checked = validate_data(estimator, X, reset=reset, dtype=np.float64, order="C", **checks)
    return cast(Array, checked)
