"""Values and derivatives of a program's log density."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _jensen
from ._data import Data, as_array, read_program, split_data

Array = npt.NDArray[np.float64]


class Model:
    """A Stan program bound to data: its log density on the unconstrained scale, for any sampler.

    Values are in nats. As in BridgeStan, ``propto`` drops the additive constants of ``~`` statements, and ``jacobian``
    adds the log-Jacobians of the transforms that keep parameters within their constraints.

    Points are rows: arrays of shape ``(n, dim)``, or ``(dim,)`` for one. Where the log density is not finite, gradients
    and products are unspecified.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        data: Data = None,
        *,
        propto: bool = False,
        jacobian: bool = True,
        seed: int = 0,
        include: Sequence[str | os.PathLike[str]] = (),
        threads: int = 1,
    ) -> None:
        name, text = read_program(model)
        values, path = split_data(data)
        self._inner = _jensen.Model.compile(
            name, text, [os.fspath(folder) for folder in include], values, path, seed, propto, jacobian, threads
        )

    @property
    def dim(self) -> int:
        """The unconstrained dimension."""
        return self._inner.dim()

    @property
    def unconstrained_names(self) -> list[str]:
        """Names of the unconstrained coordinates."""
        return self._inner.unconstrained_names()

    @property
    def dims(self) -> dict[str, tuple[int, ...]]:
        """Shapes of parameters, transformed parameters and generated quantities."""
        return {name: tuple(shape) for name, shape in self._inner.variables()}

    def log_density(self, points: npt.ArrayLike) -> Array:
        """Log densities: shape ``(n,)``, or a scalar array for one point."""
        rows, one = self._rows(points)
        values = self._inner.log_density(rows)
        return values[0] if one else values

    def gradient(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """Log densities and their gradients: shapes ``(n,)`` and ``(n, dim)``."""
        rows, one = self._rows(points)
        values, gradients = self._inner.gradient(rows)
        return (values[0], gradients[0]) if one else (values, gradients)

    def hessian_vector(self, points: npt.ArrayLike, directions: npt.ArrayLike) -> Array:
        """Products of the Hessian at each point with a direction for each: shape ``(n, dim)``."""
        rows, one = self._rows(points)
        along, _ = self._rows(directions)
        products = self._inner.hessian_vector(rows, along)
        return products[0] if one else products

    def param_constrain(self, point: npt.ArrayLike, *, seed: int = 0) -> dict[str, Array]:
        """Values by name at an unconstrained point, generated quantities with the randomness of a seed."""
        flat = self._inner.constrain(list(np.asarray(point, dtype=np.float64)), seed)
        values, start = {}, 0
        for name, shape in self.dims.items():
            size = int(np.prod(shape, dtype=int))
            values[name] = flat[start : start + size].reshape(shape, order="F")
            start += size
        return values

    def param_unconstrain(self, values: Mapping[str, Any]) -> Array:
        """The unconstrained point of parameter values by name."""
        return self._inner.unconstrain({str(name): as_array(str(name), value) for name, value in values.items()})

    @staticmethod
    def _rows(points: npt.ArrayLike) -> tuple[Array, bool]:
        array = np.asarray(points, dtype=np.float64)
        if array.ndim not in (1, 2):
            raise ValueError(f"points of shape {array.shape}: expected (n, dim), or (dim,) for one")
        return np.ascontiguousarray(np.atleast_2d(array)), array.ndim == 1
