"""Stan programs as objects that check themselves, bind data and evaluate log densities."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _jensen
from ._data import Data, as_array, read_program, split_data

if TYPE_CHECKING:
    from ._fit import Fit

Array = npt.NDArray[np.float64]


class Model:
    """A checked Stan program, which you can bind to any number of data sets.

    Args:
        model: The program, as a path or source text.
        include: Folders to search for included files.

    Raises:
        StanError: The program is wrong.
    """

    def __init__(self, model: str | os.PathLike[str], *, include: Sequence[str | os.PathLike[str]] = ()) -> None:
        self._name, self._text = read_program(model)
        self._include = [os.fspath(folder) for folder in include]
        self._remarks, declared = _jensen.check(self._name, self._text, self._include)
        self._inputs = dict(declared)

    @property
    def name(self) -> str:
        """The program's name in messages, which is its path if it has one."""
        return self._name

    @property
    def source(self) -> str:
        """The program's text."""
        return self._text

    @property
    def inputs(self) -> dict[str, str]:
        """Types of the data that the program declares, by name."""
        return dict(self._inputs)

    @property
    def remarks(self) -> str:
        """Remarks of the checker with their locations, or an empty string."""
        return self._remarks

    def bind(self, data: Data = None, *, seed: int = 0, threads: int = 1) -> BoundModel:
        """Binds the program to data. The result is a log density.

        Args:
            data: As for ``jensen.fit``.
            seed: Seed of random numbers in transformed data.
            threads: Largest number of threads for one evaluation. Results do not depend on it.

        Raises:
            StanError: The data do not match their declarations.
        """
        return BoundModel(self, data, seed=seed, threads=threads)

    def fit(self, data: Data = None, **settings: Any) -> Fit:
        """Fits the program to data: ``jensen.fit(model, data, ...)``."""
        from ._fit import fit

        return fit(self, data, **settings)

    def __repr__(self) -> str:
        return f"<jensen.Model {self._name}: data {', '.join(self._inputs) or 'none'}>"


class BoundModel:
    """The log density of a Stan program with data, on the unconstrained scale, for any sampler or optimiser.

    ``Model.bind`` creates it. Values are in nats. As in BridgeStan, ``propto`` drops the additive constants of ``~``
    statements, and ``jacobian`` adds the log-Jacobians of the constraining transforms. Both are on by default.
    ``fit.log_p`` of a fit has the log densities with ``propto=False``.

    Points are the rows of an array of shape ``(n, dim)``, or one array of shape ``(dim,)``. If the log density is not
    finite, its gradients and Hessian-vector products are unspecified.
    """

    def __init__(
        self, model: Model, data: Data = None, *, seed: int = 0, threads: int = 1, exchangeable: str | None = None
    ) -> None:
        if threads < 1:
            raise ValueError(f"threads is {threads}: expected at least 1")
        self._model, self._seed, self._threads, self._exchangeable = model, seed, threads, exchangeable
        self._values, self._path = split_data(data)
        # Each combination of `propto` and `jacobian` is a separate density, which its first use compiles.
        self._densities: dict[tuple[bool, bool], _jensen.BoundModel] = {}
        self._any = self._density(True, True)

    def _density(self, propto: bool, jacobian: bool) -> _jensen.BoundModel:
        known = self._densities.get((propto, jacobian))
        if known is None:
            model = self._model
            known = self._densities[propto, jacobian] = _jensen.BoundModel.compile(
                model._name,
                model._text,
                model._include,
                self._values,
                self._path,
                self._exchangeable,
                self._seed,
                bool(propto),
                bool(jacobian),
                self._threads,
            )
        return known

    @property
    def model(self) -> Model:
        """The Stan program."""
        return self._model

    @property
    def dim(self) -> int:
        """Number of unconstrained coordinates."""
        return self._any.dim()

    @property
    def unconstrained_names(self) -> list[str]:
        """Names of the unconstrained coordinates."""
        return self._any.unconstrained_names()

    @property
    def dims(self) -> dict[str, tuple[int, ...]]:
        """Shapes of parameters, transformed parameters and generated quantities, by name."""
        return {name: tuple(shape) for name, shape, *_ in self._any.variables()}

    @property
    def names(self) -> list[str]:
        """Names of all scalars, such as ``theta[1]``, in column-major order."""
        return self._any.names()

    def log_density(self, points: npt.ArrayLike, *, propto: bool = True, jacobian: bool = True) -> Array:
        """Returns log densities in nats, of shape ``(n,)``, or a scalar array for one point."""
        rows, one = _rows(points)
        values = self._density(propto, jacobian).log_density(rows, None)
        return values[0] if one else values

    def gradient(self, points: npt.ArrayLike, *, propto: bool = True, jacobian: bool = True) -> tuple[Array, Array]:
        """Returns log densities in nats and their gradients, of shapes ``(n,)`` and ``(n, dim)``."""
        rows, one = _rows(points)
        values, gradients = self._density(propto, jacobian).gradient(rows, None)
        return (values[0], gradients[0]) if one else (values, gradients)

    def hessian_vector(
        self, points: npt.ArrayLike, directions: npt.ArrayLike, *, propto: bool = True, jacobian: bool = True
    ) -> Array:
        """Returns products of the Hessian at each point with one direction per point, of shape ``(n, dim)``."""
        rows, one = _rows(points)
        along, _ = _rows(directions)
        products = self._density(propto, jacobian).hessian_vector(rows, along, None)
        return products[0] if one else products

    def param_constrain(
        self, points: npt.ArrayLike, *, seed: int = 0, include_tp: bool = True, include_gq: bool = True
    ) -> dict[str, Array]:
        """Returns values by name at unconstrained points, of shape ``(n, *shape)``, or ``shape`` for one point.

        Args:
            points: Unconstrained points, one per row.
            seed: Seed of the random numbers in generated quantities. Each row uses its own random numbers.
            include_tp: Whether to include transformed parameters.
            include_gq: Whether to include generated quantities.
        """
        rows, one = _rows(points)
        table = self._any.constrain(rows, seed)
        left_out = {"transformed parameters": not include_tp, "generated quantities": not include_gq}
        values, start = {}, 0
        for name, shape, part, _ in self._any.variables():
            size = int(np.prod(shape, dtype=int))
            if not left_out.get(part, False):
                values[name] = unfolded(table[:, start : start + size], shape)
            start += size
        return {name: value[0, ...] for name, value in values.items()} if one else values

    def param_unconstrain(self, values: Mapping[str, Any]) -> Array:
        """Returns the unconstrained point, of shape ``(dim,)``, for parameter values by name."""
        return self._any.unconstrain({str(name): as_array(str(name), value) for name, value in values.items()})

    def fit(self, **settings: Any) -> Fit:
        """Fits the program to these data: ``jensen.fit(model, data, ...)``."""
        from ._fit import fit

        data = self._path if self._values is None else self._values
        return fit(self._model, data, exchangeable=self._exchangeable, **settings)

    def __repr__(self) -> str:
        return f"<jensen.{type(self).__name__} of {self._model._name}: {self.dim} unconstrained coordinates>"

    # Pickling omits compiled densities, and the receiving process compiles them again.

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_densities": {}, "_any": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._any = self._density(True, True)


class Minibatch(BoundModel):
    """The log density of a Stan program with exchangeable records, and its estimates from minibatches.

    ``jensen.minibatch`` creates it. The methods of ``BoundModel`` use all records. ``estimate`` and
    ``estimate_gradient`` use the prior and the given records, each with weight ``records / len(given)``. Over batches
    of equal size that contain every record once, the average of the estimates is the log density, or its gradient.
    ``fit(batch=...)`` fits the program by minibatches.
    """

    @property
    def records(self) -> int:
        """The number of records."""
        return self._any.records() or 0

    def estimate(
        self, points: npt.ArrayLike, records: npt.ArrayLike, *, propto: bool = True, jacobian: bool = True
    ) -> Array:
        """Estimates log densities in nats from the records with these indices. The result has the shape ``(n,)``."""
        rows, one = _rows(points)
        values = self._density(propto, jacobian).log_density(rows, self._batch(records))
        return values[0] if one else values

    def estimate_gradient(
        self, points: npt.ArrayLike, records: npt.ArrayLike, *, propto: bool = True, jacobian: bool = True
    ) -> tuple[Array, Array]:
        """Estimates log densities in nats and their gradients from the records with these indices.

        The results have the shapes ``(n,)`` and ``(n, dim)``.
        """
        rows, one = _rows(points)
        values, gradients = self._density(propto, jacobian).gradient(rows, self._batch(records))
        return (values[0], gradients[0]) if one else (values, gradients)

    def _batch(self, records: npt.ArrayLike) -> npt.NDArray[np.uint32]:
        given = np.asarray(records)
        if given.ndim != 1 or given.dtype.kind not in "iu" or given.size == 0:
            raise ValueError(
                f"records of shape {given.shape} and type {given.dtype}: expected one whole number or more, shape (b,)"
            )
        if given.min() < 0 or given.max() >= self.records:
            raise IndexError(f"records from {given.min()} to {given.max()}: expected 0 to {self.records - 1}")
        return np.ascontiguousarray(given, dtype=np.uint32)


def minibatch(
    model: str | os.PathLike[str] | Model,
    data: Data,
    exchangeable: str,
    *,
    include: Sequence[str | os.PathLike[str]] = (),
    seed: int = 0,
    threads: int = 1,
) -> Minibatch:
    """Binds a Stan program to data with exchangeable records, for estimates from minibatches.

    Args:
        model: The program, as a path, source text or a ``Model``.
        data: As for ``jensen.fit``.
        exchangeable: The ``int`` data variable that counts the records. Data with this leading dimension are the
            records.
        include: Folders to search for included files.
        seed: Seed of random numbers in transformed data.
        threads: Largest number of threads for one evaluation. Results do not depend on it.

    Raises:
        StanError: The program or its data are wrong, or the log density is not a prior plus a sum over the records. The
            message names the line of the program.
    """
    checked = model if isinstance(model, Model) else Model(model, include=include)
    return Minibatch(checked, data, seed=seed, threads=threads, exchangeable=exchangeable)


def unfolded(columns: npt.NDArray[Any], shape: Sequence[int]) -> npt.NDArray[Any]:
    """Views the scalars of a variable, one draw per row, as an array of shape ``(rows, *shape)``."""
    # Scalars are in column-major order, so that reversing the axes gives a view.
    view = columns.reshape((len(columns), *reversed(shape)))
    array: npt.NDArray[Any] = view.transpose((0, *range(len(shape), 0, -1)))
    return array


def _rows(points: npt.ArrayLike) -> tuple[Array, bool]:
    try:
        array = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"points of type {type(points).__name__}: expected numbers of shape (n, dim), or (dim,)") from None
    if array.ndim not in (1, 2):
        raise ValueError(f"points of shape {array.shape}: expected (n, dim), or (dim,) for one")
    return np.ascontiguousarray(np.atleast_2d(array)), array.ndim == 1
