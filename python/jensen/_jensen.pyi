import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__version__: str

Array = npt.NDArray[np.float64]
Progress = Callable[[int, str, float, float], None]
Path = str | os.PathLike[str]
Besides = tuple[Array | None, str, float]

class Error(ValueError): ...
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
    def regression(
        columns: list[Any] | None, table: str | None, regression: str, request: str, threads: int | None
    ) -> tuple[Program, list[str], list[tuple[str, str, bool]]]: ...
    @staticmethod
    def stored(folder: Path, request: str, threads: int | None) -> Program: ...
    def remarks(self) -> list[str]: ...
    def variables(self) -> list[tuple[str, list[int], str, bool]]: ...
    def labels(self) -> tuple[dict[str, list[Any]], dict[str, list[str]]]: ...
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
    def labels(self) -> tuple[dict[str, list[Any]], dict[str, list[str]]]: ...
    def draws(self) -> tuple[Array, Array, Array]: ...
    def besides(self) -> Besides: ...
    def more_draws(self, draws: int, seed: int | None, resample: bool) -> tuple[Array, Array, Array]: ...
    def refined(self) -> bool: ...
    def report(self) -> str: ...
    def history(self) -> list[tuple[int, str, float, float]]: ...

def regress_predict(
    folder: str, columns: list[Any] | None, path: str | None, seed: int | None, threads: int | None
) -> tuple[list[int], list[tuple[str, list[int]]], Array]: ...
def regress_effects(
    folder: str, columns: list[Any] | None, path: str | None, threads: int | None
) -> list[tuple[list[str | None], list[float]]]: ...
def regress_curves(folder: str, threads: int | None) -> list[tuple[list[str | None], list[float]]]: ...
def generate(
    name: str,
    text: str,
    include: Sequence[Path],
    data: dict[str, Any] | None,
    data_file: Path | None,
    variables: Sequence[tuple[str, Sequence[int]]],
    draws: Array,
    log_p: Array,
    log_q: Array,
    save: str,
    seed: int,
    threads: int | None,
) -> tuple[list[tuple[str, list[int], str, bool]], tuple[Array, Array, Array], int, str | None]: ...

class BoundModel:
    @staticmethod
    def compile(
        name: str,
        text: str,
        include: Sequence[Path],
        data: dict[str, Any] | None,
        data_file: Path | None,
        count: str | None,
        seed: int,
        propto: bool,
        jacobian: bool,
        threads: int,
    ) -> BoundModel: ...
    def dim(self) -> int: ...
    def records(self) -> int | None: ...
    def unconstrained_names(self) -> list[str]: ...
    def variables(self) -> list[tuple[str, list[int], str, bool]]: ...
    def names(self) -> list[str]: ...
    def log_density(self, points: Array, records: npt.NDArray[np.uint32] | None) -> Array: ...
    def gradient(self, points: Array, records: npt.NDArray[np.uint32] | None) -> tuple[Array, Array]: ...
    def hessian_vector(
        self, points: Array, directions: Array, records: npt.NDArray[np.uint32] | None
    ) -> Array: ...
    def constrain(self, points: Array, seed: int) -> Array: ...
    def unconstrain(self, values: dict[str, Any]) -> Array: ...

def check(name: str, text: str, include: Sequence[Path]) -> tuple[str, list[tuple[str, str]]]: ...
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
class Ledger:
    def __init__(self, folder: Path, fits: str, tasks: Sequence[str]) -> None: ...
    def pending(self) -> list[int]: ...
    def record(self, row: str) -> None: ...
    def write_table(self) -> list[str]: ...

def plan_fits(name: str, text: str, include: Sequence[Path], request: str) -> str: ...
def plan_tasks(data: Sequence[tuple[str, dict[str, Any] | None]], seeds: Sequence[int]) -> list[str]: ...
def fit_row(fits: str, task: str) -> str: ...
def failed_row(task: str, why: str) -> str: ...
def command(arguments: Sequence[str]) -> int: ...

# Functions for `jensen.sklearn`. Documents are the path of a corpus, or starts of rows, columns, counts and number of columns.
Documents = Path | tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.float32], int]
# λ (topics × terms), α by topic, η, number of steps, number of documents that the topics represent, words if known, whether inference was collapsed.
Topics = tuple[Array, list[float], float, int, float, list[str] | None, bool]
Columns = Sequence[tuple[str, list[float]]]

def fit_topics(
    documents: Documents, start: Topics | None, request: str, threads: int | None
) -> tuple[str, Array, list[float], float, int, float, list[str] | None, bool]: ...
def shard_step(
    corpus: Path,
    ask: npt.NDArray[np.uint8],
    block: Sequence[tuple[int, str, Sequence[int]]],
    answer: npt.NDArray[np.uint8] | None,
) -> npt.NDArray[np.uint8] | int: ...
def corpus_step(request: str, out: Path, choice: str, task: str) -> str: ...
def build_corpus(
    request: str, out: Path, shards: int, work: Callable[[str, list[str]], list[str]]
) -> str: ...
def heldout_step(
    corpus: Path, ask: npt.NDArray[np.uint8], seed: int, pieces: Sequence[tuple[int, str, int, int, int]]
) -> Array: ...
def fit_corpus(
    corpus: Path,
    request: str,
    out: Path | None,
    resume: bool,
    workers: int,
    buffer: Callable[[int], npt.NDArray[np.uint8]],
    solve: Callable[[list[list[tuple[int, str, list[int]]]]], list[npt.NDArray[np.uint8]]],
    score: Callable[[int, list[list[tuple[int, str, int, int, int]]]], list[Array]],
    threads: int | None,
) -> str: ...
def record_step(program: str, path: str, digest: str, ask: bytes, share: bytes) -> bytes: ...
def point_step(plan: str, path: str, digest: str, ask: bytes, share: bytes) -> bytes: ...
def fit_point_shards(
    files: Sequence[str],
    request: str,
    out: str | None,
    resume: bool,
    solve: Callable[[str, bytes, list[tuple[int, str, str, bytes]]], list[bytes]],
    threads: int | None,
) -> str: ...
def fit_shards(
    name: str,
    text: str,
    include: Sequence[str],
    data: Mapping[str, Any] | None,
    data_file: str | None,
    request: str,
    out: str | None,
    resume: bool,
    solve: Callable[[str, bytes, list[tuple[int, str, str, bytes]]], list[bytes]],
    threads: int | None,
) -> str: ...
def topic_proportions(documents: Documents, model: Topics, threads: int | None) -> Array: ...
def topic_completion(
    documents: Documents, model: Topics, seed: int, threads: int | None
) -> tuple[float, float, int, int]: ...
def topic_effects(
    documents: Documents,
    model: Topics,
    words: Sequence[str],
    columns: list[Any] | None,
    path: str | None,
    formula: str,
    prior_sd: float,
    seed: int,
    threads: int | None,
) -> str: ...
def fit_points(
    x: Array,
    lengths: Sequence[int],
    request: str,
    weights: Sequence[float] | Array | None,
    labels: Sequence[int] | None,
    threads: int | None,
) -> tuple[str, bytes]: ...
def explain_points(
    x: Array, lengths: Sequence[int], request: str, kept: bytes, threads: int | None
) -> tuple[Array, Array]: ...
def fit_latent(
    names: Sequence[str], x: Array, more: Columns, request: str, threads: int | None
) -> tuple[str, bytes]: ...
def predict_latent(
    names: Sequence[str],
    x: Array,
    more: Columns,
    request: str,
    posterior: bytes,
    at: Array,
    beside: Columns,
    threads: int | None,
) -> tuple[Array, Array, Array, Array]: ...
def draw_latent(
    names: Sequence[str],
    x: Array,
    more: Columns,
    request: str,
    posterior: bytes,
    at: Array,
    draws: int,
    seed: int,
    threads: int | None,
) -> Array: ...
def fit_autoencoder(
    x: Array, names: list[str], validation: str | None, request: str, threads: int | None
) -> tuple[str, bytes]: ...
def encode(weights: bytes, x: Array, names: list[str], threads: int | None) -> tuple[Array, Array]: ...
def reconstruct(weights: bytes, x: Array, names: list[str], threads: int | None) -> Array: ...
def decode(weights: bytes, z: Array, given: list[str], threads: int | None) -> Array: ...
def export_network(weights: bytes, encoder: bool) -> bytes: ...
def draw_records(
    weights: bytes, draws: int, seed: int, means: bool, given: list[str], threads: int | None
) -> Array: ...
def score_records(
    weights: bytes, x: Array, names: list[str], draws: int, seed: int, threads: int | None
) -> Array: ...
