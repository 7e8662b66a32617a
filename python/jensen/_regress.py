"""Regressions by a formula and a table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

import numpy as np
import numpy.typing as npt

from . import _jensen
from ._fit import Fit, Progress, _judged, _Progress
from ._settings import encode
from ._verdict import warn

#: A data frame of pandas or polars, columns by name, or the path of a CSV, TSV, NPY, NPZ or Parquet file.
Table = Union[Mapping[str, Any], "os.PathLike[str]", str, Any]


def regress(
    formula: str | Sequence[str],
    data: Table,
    *,
    family: str | None = None,
    priors: Sequence[str] = (),
    contrasts: Literal["treatment", "sum", "helmert"] | None = None,
    prior_only: bool = False,
    pointwise: bool | None = None,
    approximation: str | None = None,
    refine: Literal["auto", "none", "always"] | None = None,
    max_seconds: float | None = None,
    memory_limit: int | None = None,
    draws: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
) -> Fit:
    """Fits a regression to a table.

    A fit that is not trusted issues a ``TrustWarning``.

    Args:
        formula: A formula such as ``"y ~ x + (1 | g)"``, or a list of formulas. The first formula is for the response,
            and the others are for further parameters of the family, such as ``"sigma ~ x"`` or ``"nu = 4"``.
        data: A data frame of pandas or polars, columns by name, or the path of a table. Columns of
            strings or categories are factors. The fit omits rows with missing values, and a warning gives their number.
        family: The family of the response, with its link unless it is the default: ``"poisson"``, ``"binomial(probit)"``.
        priors: Priors such as ``"b ~ normal(0, 1)"``. All other parameters have default priors.
        contrasts: The coding of factors. The default is ``"treatment"``.
        prior_only: Whether to omit the likelihood, so that draws come from the prior.
        pointwise: Whether to compute the log likelihood and a posterior predictive replicate of every row. By default
            tables of up to 2000 rows have them.
        approximation: The approximating family, ``family`` of ``jensen.fit``.
        out: A folder for results, with the files of ``jensen regress --out``. ``regress_predict`` needs one.

    ``jensen.fit`` describes the other settings. The same seed gives the draws of the command, bit for bit.

    Raises:
        ValueError: A formula, a prior or the table is wrong.
    """
    regression = {
        "formulas": [formula] if isinstance(formula, str) else list(formula),
        "family": family,
        "priors": list(priors),
        "contrasts": contrasts,
        "prior_only": prior_only,
        "pointwise": pointwise,
    }
    settings = {
        "family": approximation,
        "refine": refine,
        "max_seconds": max_seconds,
        "memory_limit": memory_limit,
        "draws": draws,
        "seed": seed,
    }
    columns, path = _columns(data)
    program, notes, _ = _jensen.Program.regression(columns, path, encode(regression), encode(settings), threads)
    for note in notes:
        warn(note)
    folder = None if out is None else os.fspath(out)
    with _Progress(progress) as callback:
        result = program.fit(folder, False, False, None, None, callback)
    return _judged(result, program.data())


def regress_predict(
    folder: str | os.PathLike[str], data: Table, *, seed: int | None = None, threads: int | None = None
) -> dict[str, npt.NDArray[np.float64]]:
    """Predicts the rows of a table with the regression in a folder.

    Rows with missing values have no predictions. The effect of a new level of a group comes from the distribution of
    the group's effects.

    Returns:
        Arrays by name. ``linear`` (linear predictors), ``expected`` (expected responses, or probabilities of
        categories) and ``predicted`` (simulated responses) have the shape ``(draws, rows, …)``. ``rows`` has the row of
        the table for each prediction.

    Raises:
        ValueError: A column is missing, or has values that did not occur in the fit.
    """
    columns, path = _columns(data)
    rows, variables, draws = _jensen.regress_predict(os.fspath(folder), columns, path, seed, threads)
    result: dict[str, npt.NDArray[np.float64]] = {"rows": np.asarray(rows)}
    first = 0
    for name, shape in variables:
        size = int(np.prod(shape, dtype=int))
        # Matrices are in column-major order.
        result[name] = draws[:, first : first + size].reshape((len(draws), *reversed(shape))).transpose(
            0, *range(len(shape), 0, -1)
        )
        first += size
    return result


def regress_effects(
    folder: str | os.PathLike[str], data: Table, *, threads: int | None = None
) -> list[dict[str, str | float | None]]:
    """Computes average marginal effects over the rows of a table with the regression in a folder.

    The effect of a numeric column is the mean slope of the expected response, and its ``contrast`` is ``dY/dX``. The
    effect of a level of a factor is the mean difference from the first level. The effects include group effects.

    Returns:
        Rows for a data frame. ``estimate``, ``sd``, ``q05`` and ``q95`` describe the posterior of an effect.
        ``category`` names the category of a categorical response.

    Raises:
        ValueError: A column is missing, or has values that did not occur in the fit.
    """
    columns, path = _columns(data)
    found = _jensen.regress_effects(os.fspath(folder), columns, path, threads)
    return [_row(("column", "contrast", "category"), words, "estimate", numbers) for words, numbers in found]


def regress_curves(folder: str | os.PathLike[str], *, threads: int | None = None) -> list[dict[str, str | float | None]]:
    """Computes conditional effects of the regression in a folder: the expected response along each column.

    Other columns are at their means or first levels, and the curves omit group effects.

    Returns:
        Rows for a data frame. ``by`` is a column that interacts with ``column``, with one curve for each ``by_value``.
        ``expected``, ``sd``, ``q05`` and ``q95`` describe the posterior of the expected response.
    """
    names = ("column", "value", "by", "by_value", "category")
    found = _jensen.regress_curves(os.fspath(folder), threads)
    return [_row(names, words, "expected", numbers) for words, numbers in found]


def _row(
    names: Sequence[str], words: Sequence[str | None], of: str, numbers: Sequence[float]
) -> dict[str, str | float | None]:
    """Returns a row with labels and a summary of a posterior."""
    row: dict[str, str | float | None] = dict(zip(names, words, strict=True))
    row.update(zip((of, "sd", "q05", "q95"), numbers, strict=True))
    return row


def _columns(data: Table) -> tuple[list[Any] | None, str | None]:
    """Returns columns in the format of the extension module, or the path of a file."""
    if isinstance(data, (str, os.PathLike)):
        return None, os.fspath(data)
    names = data.keys() if isinstance(data, Mapping) else getattr(data, "columns", None)
    if names is None:
        raise TypeError(f"data of type {type(data).__name__}: expected a data frame, columns by name, or the path of a table")
    return [_column(str(name), data[name]) for name in names], None


def _column(name: str, values: Any) -> tuple[str, npt.NDArray[np.float64], bool, tuple[list[str], bool] | None]:
    """Returns the name, the numbers, whether they are Booleans, and levels with whether they are ordered."""
    kind = str(getattr(values, "dtype", ""))
    if kind == "category":
        codes = np.asarray(values.cat.codes, dtype=np.float64)
        codes[codes < 0] = np.nan
        return name, codes, False, ([str(level) for level in values.cat.categories], bool(values.cat.ordered))
    if kind.startswith(("Categorical", "Enum")):
        values = values.to_list()
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"the column `{name}` has the shape {array.shape}: expected one value per row")
    if array.dtype.kind == "M":
        # The column stays text, so that a formula that uses it is an error, as for dates in a file.
        array = np.datetime_as_string(array.astype("datetime64[D]")).astype(object)
    if array.dtype.kind in "biuf":
        return name, array.astype(np.float64), array.dtype.kind == "b", None
    items = [None if item is None or item != item or str(item) == "<NA>" else item for item in array.tolist()]
    present = [item for item in items if item is not None]
    if all(isinstance(item, (bool, np.bool_)) for item in present):
        return name, np.array([np.nan if item is None else float(item) for item in items]), True, None
    if all(isinstance(item, (int, float, np.number)) for item in present):
        return name, np.array([np.nan if item is None else float(item) for item in items]), False, None
    levels = sorted({str(item) for item in present})
    position = {level: at for at, level in enumerate(levels)}
    codes = np.array([np.nan if item is None else float(position[str(item)]) for item in items])
    return name, codes, False, (levels, False)
