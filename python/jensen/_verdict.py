"""The verdict on a fit, as text and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any


class TrustWarning(UserWarning):
    """Warns that a fit is not trusted, or shows a remark on it."""


def verdict(summary: Mapping[str, Any]) -> str:
    """Returns the verdict of a summary as text, with the reasons if the fit is not trusted."""
    if summary["trusted"]:
        return "trusted"
    return "NOT to be trusted:\n" + "\n".join(f"- {text}" for text in summary.get("warnings", []))


def warn(text: str) -> None:
    """Issues a warning at the user's line: the innermost caller outside of this package and scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith(("jensen.", "sklearn.")):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, TrustWarning, stacklevel=level)
