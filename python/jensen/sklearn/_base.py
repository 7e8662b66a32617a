"""What all estimators share."""

from __future__ import annotations

import json
import numbers
import sys
import warnings
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._fit import Array, TrustWarning, _encode, verdict

__all__ = ["Array", "Judged", "matrix", "seed_of", "settings"]


class Judged(BaseEstimator):
    """An estimator whose fits are judged."""

    info_: dict[str, Any]
    trusted_: bool
    verdict_: str

    def _judge(self, summary: str) -> dict[str, Any]:
        """Keeps what a study says of its fit, and warns where it is not to be trusted."""
        self.info_ = json.loads(summary)
        self.trusted_ = bool(self.info_["trusted"])
        self.verdict_ = verdict(self.info_)
        if not self.trusted_:
            warnings.warn(self.verdict_, TrustWarning, stacklevel=_level_of_caller())
        return self.info_


def _level_of_caller() -> int:
    """The level of the first frame above the caller's that is neither of these estimators nor of scikit-learn."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith(("jensen.sklearn", "sklearn.")):
        level, frame = level + 1, frame.f_back
    return level


def settings(**given: Any) -> str:
    """A request as JSON, of what is given."""
    return _encode({name: value for name, value in given.items() if value is not None})


def seed_of(random_state: Any) -> int:
    """The seed: a whole number is one, and a generator (by default NumPy's own) draws one."""
    if isinstance(random_state, numbers.Integral):
        if random_state < 0:
            raise ValueError(f"random_state={random_state}: expected a seed of at least 0")
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def matrix(estimator: Any, X: Any, *, reset: bool, **checks: Any) -> Array:
    """The rows of X as a matrix of float64 in C order, checked against those of the fit."""
    if not reset:
        check_is_fitted(estimator)
    checked = validate_data(estimator, X, reset=reset, dtype=np.float64, order="C", **checks)
    return cast(Array, checked)
