import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__version__: str

Array = npt.NDArray[np.float64]
Progress = Callable[[int, str, float, float], None]
Path = str | os.PathLike[str]
Besides = tuple[Array | None, str, float]

class StanError(ValueError): ...
class FitError(RuntimeError): ...

class Program:
    @staticmethod
    def compile(
        name: str,
        text: str,
        include: Sequence[Path],
        data: dict[str, Any] | None,
        data_file: Path | None,
        request: str,
        threads: int | None,
    ) -> Program: ...
    @staticmethod
    def stored(folder: Path, request: str, threads: int | None) -> Program: ...
    def remarks(self) -> list[str]: ...
    def variables(self) -> list[tuple[str, list[int], str, bool]]: ...
    def data(self) -> dict[str, Any]: ...
    def fit(
        self,
        out: Path | None,
        resume: bool,
        force: bool,
        point: list[float] | None,
        values: dict[str, Any] | None,
        progress: Progress | None,
    ) -> Fitted: ...

class Fitted:
    def summary(self) -> str: ...
    def variables(self) -> list[tuple[str, list[int], str, bool]]: ...
    def draws(self) -> tuple[Array, Array, Array]: ...
    def besides(self) -> Besides: ...
    def more_draws(self, draws: int, seed: int | None, resample: bool) -> tuple[Array, Array, Array]: ...
    def refined(self) -> bool: ...
    def report(self) -> str: ...
    def history(self) -> list[tuple[int, str, float, float]]: ...

class Model:
    @staticmethod
    def compile(
        name: str,
        text: str,
        include: Sequence[Path],
        data: dict[str, Any] | None,
        data_file: Path | None,
        seed: int,
        propto: bool,
        jacobian: bool,
        threads: int,
    ) -> Model: ...
    def dim(self) -> int: ...
    def unconstrained_names(self) -> list[str]: ...
    def variables(self) -> list[tuple[str, list[int]]]: ...
    def log_density(self, points: Array) -> Array: ...
    def gradient(self, points: Array) -> tuple[Array, Array]: ...
    def hessian_vector(self, points: Array, directions: Array) -> Array: ...
    def constrain(self, point: list[float], seed: int) -> Array: ...
    def unconstrain(self, values: dict[str, Any]) -> Array: ...

def fit_density(
    function: Callable[[Array], tuple[Array, Array]],
    products: Callable[[Array, Array], Array] | None,
    names: Sequence[str],
    variables: Sequence[tuple[str, Sequence[int], str]],
    constrain: Callable[[Array], Array] | None,
    request: str,
    point: list[float] | None,
    threads: int | None,
    progress: Progress | None,
) -> Fitted: ...
def read_draws(path: Path) -> tuple[tuple[Array, Array, Array], Besides]: ...
def write_draws(
    path: Path,
    variables: Sequence[tuple[str, Sequence[int]]],
    draws: Array,
    log_p: Array,
    log_q: Array,
    mean: Array,
    above: str,
    eta: float,
) -> None: ...
def command(arguments: Sequence[str]) -> int: ...
