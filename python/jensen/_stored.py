"""Stores a fit in one file, and renders it in a notebook."""

from __future__ import annotations

import json
import os
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _jensen

Array = npt.NDArray[np.float64]

#: Version of the file format. It changes if earlier versions of Jensen cannot read the file.
LAYOUT = 1

#: Rows of the table in a notebook.
SHOWN = 20


def write(path: str | os.PathLike[str], about: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Writes arrays and their description. An interrupted write leaves an existing file unchanged."""
    text = json.dumps({"layout": LAYOUT, **about}, default=_plain)
    named: dict[str, Any] = {"about": np.frombuffer(text.encode(), dtype=np.uint8), **arrays}
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            np.savez_compressed(file, **named)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Reads a file that :func:`write` wrote."""
    wrong = f"`{path}` is not a saved fit"
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
    except PermissionError:
        raise
    except Exception as error:
        # A damaged archive may raise any error of zip, zlib, NumPy or JSON.
        raise _jensen.Error(f"{wrong}, or is damaged ({error}): save the fit again, or restore the file") from None
    layout = about.get("layout") if isinstance(about, dict) else None
    if layout != LAYOUT:
        raise _jensen.Error(f"`{path}` has the layout {layout}, but this version reads the layout {LAYOUT}: save the fit again")
    return about, arrays


def _plain(value: Any) -> Any:
    """Converts NumPy scalars to Python numbers, and other values such as dates to text, for JSON."""
    return value.item() if isinstance(value, (np.integer, np.floating, np.bool_)) else str(value)


def page(head: str, trusted: bool, against: list[str], rows: list[tuple[dict[str, Any], Array]], more: int) -> str:
    """Renders a fit for a notebook: the verdict, its reasons, and a row with a histogram for every scalar."""
    colour = "#137333" if trusted else "#b3261e"
    word = "trusted" if trusted else "NOT to be trusted"
    reasons = "".join(f"<li>{escape(text)}</li>" for text in against)
    columns = ("mean", "sd", "q05", "q50", "q95")
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(p['name'])}</th>"
        + "".join(f"<td>{float('nan') if p[key] is None else p[key]:.4g}</td>" for key in columns)
        + f"<td>{_histogram(draws)}</td></tr>"
        for p, draws in rows
    )
    rest = f"<p>… and {more} more</p>" if more else ""
    return (
        f"<div><p><b style='color:{colour}'>{word}</b> &nbsp; {escape(head)}</p><ul>{reasons}</ul><table><tr><th></th>"
        f"<th>mean</th><th>sd</th><th>5 %</th><th>50 %</th><th>95 %</th><th></th></tr>{body}</table>{rest}</div>"
    )


def _histogram(draws: Array) -> str:
    """Draws a histogram without axes. It omits the outer hundredths, which would flatten it."""
    finite = draws[np.isfinite(draws)]
    if len(finite) == 0:
        return ""
    counts, _ = np.histogram(finite, bins=30, range=tuple(np.quantile(finite, [0.01, 0.99])))
    bars = "".join(
        f"<rect x='{4 * i}' y='{24 - height:.1f}' width='4' height='{height:.1f}'/>"
        for i, height in enumerate(24 * counts / max(1, counts.max()))
        if height > 0
    )
    return f"<svg width='120' height='24' fill='#5b8db8' role='img' aria-label='histogram'>{bars}</svg>"
