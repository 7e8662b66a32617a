"""Settings, as the extension module reads them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def encode(request: Mapping[str, Any]) -> str:
    """Encodes a request as JSON. It omits settings that are None, so that they keep their defaults."""
    return json.dumps(_given(request), default=_plain)


def _given(request: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in request.items():
        if isinstance(value, Mapping):
            given[name] = _given(value)
        elif value is not None:
            _check(name, value)
            given[name] = value
    return given


def _check(name: str, value: Any) -> None:
    if isinstance(value, (int, np.integer)) and value < 0:
        raise ValueError(f"{name} is {value}: expected a whole number of at least 0")
    if isinstance(value, (float, np.floating)) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}: expected a finite number")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} of type {type(value).__name__} is not a valid setting")
