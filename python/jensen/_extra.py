"""Packages that are imported when they are used."""

from __future__ import annotations

import importlib
from typing import Any


def extra(module: str, name: str) -> Any:
    """The module, or an error that names the extra that has it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this needs {module.split('.')[0]}: pip install 'jensen[{name}]'") from error
