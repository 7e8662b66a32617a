"""The verdict on a fit, as text and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any


class TrustWarning(UserWarning):
    """A fit is not trusted, or it has remarks."""


def verdict(summary: Mapping[str, Any]) -> str:
    """The verdict of a summary as text, with the reasons not to trust the fit."""
    if summary["trusted"]:
        return "trusted"
    return "NOT to be trusted:\n" + "\n".join(f"- {text}" for text in summary.get("warnings", []))


def warn(text: str) -> None:
    """Warns the user, at the line outside of this package, and of scikit-learn, that called into it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith(("jensen.", "sklearn.")):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, TrustWarning, stacklevel=level)
