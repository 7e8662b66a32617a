"""Converts the programs and data of users to the types of the extension module."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union

import numpy as np

#: Data: values by name, a data frame with named columns, or a file (Stan JSON, a CSV table or an R dump).
Data = Union[Mapping[str, Any], "os.PathLike[str]", str, None]


def read_program(model: str | os.PathLike[str]) -> tuple[str, str]:
    """Returns name and text of a program, which is a path or source text."""
    if not isinstance(model, (str, os.PathLike)):
        raise TypeError(f"a program of type {type(model).__name__}: expected a path, source text, or a jensen.Model")
    text = os.fspath(model)
    if not text.strip():
        raise ValueError("the program is empty: give a path, or source text")
    if isinstance(model, os.PathLike) or ("{" not in text and "\n" not in text):
        path = Path(text)
        try:
            return str(path), path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise FileNotFoundError(f"cannot read `{path}`: there is no such file") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"`{path}` is not UTF-8 text: see byte {error.start + 1}") from None
    return "model", text


def split_data(data: Data) -> tuple[dict[str, Any] | None, str | None]:
    """Returns arrays by name, or the path of a file."""
    if data is None:
        return None, None
    if isinstance(data, (str, os.PathLike)):
        path = os.fspath(data)
        if path.lower().endswith((".parquet", ".feather", ".xlsx")):
            raise ValueError(f"`{path}` is a table: read it with pandas or polars and give the data frame, or its columns by name")
        return None, path
    columns = getattr(data, "columns", None)
    if columns is not None and not isinstance(data, Mapping):
        # A data frame, of pandas or of polars.
        return {str(name): as_array(str(name), data[name]) for name in columns}, None
    if not isinstance(data, Mapping):
        raise TypeError(
            f"data of type {type(data).__name__}: expected a mapping of names to values, a data frame, or the path of a "
            "file: JSON, a CSV table or an R dump"
        )
    return {str(name): as_array(str(name), value) for name, value in data.items()}, None


def paths_of(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Returns absolute paths, because workers and later calls may have other working directories."""
    return [os.path.abspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]


def as_array(name: str, value: Any) -> Any:
    """Converts a value to ``int64`` or ``float64`` in C order. Complex numbers get a last axis of real and imaginary part."""
    if isinstance(value, tuple):
        return tuple(as_array(name, slot) for slot in value)
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"`{name}` has masked values: omit them, or model them as parameters")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"`{name}` has lists of different lengths, but a Stan array is rectangular") from None
    kind = array.dtype.kind
    if kind == "O":
        # The array has Python integers beyond 64 bits, strings among numbers, or missing values.
        if any(element is None for element in array.reshape(-1)):
            raise TypeError(f"`{name}` contains None: expected numbers")
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"`{name}` contains {_example(array)}: expected numbers") from None
        kind = "f"
    if kind in "bi" or (kind == "u" and array.dtype.itemsize < 8):
        return np.array(array, dtype=np.int64, order="C", ndmin=0)
    if kind == "u":
        if array.size and array.max() > np.iinfo(np.int64).max:
            raise ValueError(f"`{name}` has whole numbers beyond 64 bits")
        return np.array(array, dtype=np.int64, order="C")
    if kind == "f":
        return np.array(array, dtype=np.float64, order="C")
    if kind == "c":
        return np.ascontiguousarray(np.stack([array.real, array.imag], axis=-1), dtype=np.float64)
    raise TypeError(f"`{name}` contains {_example(array)}: expected numbers")


def _example(array: Any) -> str:
    first = array.reshape(-1)[0] if array.size else array.dtype
    return f"{first!r} ({type(first).__name__})"
