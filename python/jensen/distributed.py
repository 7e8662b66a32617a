"""Fits with many processes of this machine, a Ray cluster or MPI ranks.

Workers run functions of the extension module that depend only on their arguments. Results are therefore the same, bit
for bit, for every engine and number of workers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _engines, _jensen
from ._data import Data, paths_of, read_program, split_data
from ._engines import EngineName
from ._extra import extra
from ._settings import encode

__all__ = ["build_topics", "fit_mixture", "fit_records", "fit_topics", "folds", "map_fits"]


def map_fits(
    model: str | os.PathLike[str],
    datasets: Mapping[str, Data] | Sequence[Data],
    *,
    out: str | os.PathLike[str],
    engine: EngineName = "local",
    workers: int | None = None,
    seeds: Iterable[int] = (0,),
    include: Sequence[str | os.PathLike[str]] = (),
    **settings: Any,
) -> list[dict[str, Any]]:
    """Fits a Stan program to many data sets with many seeds, and writes a table with one row per fit.

    A row has the data set's name, the seed, the verdict (``trusted``, ``not trusted`` or ``failed``), the ELBO in nats,
    k̂, seconds, a message, and mean and standard deviation of every scalar. The row of a failed fit has the error
    message. The function stores each row as soon as its fit ends, so the same call continues a stopped run. A call with
    more data sets or seeds adds rows.

    Args:
        model: The program, as a path or source text.
        datasets: Data sets by name, or a list of data sets. Each is a dictionary of values by name, a data frame, or
            the path of a JSON file.
        out: A folder for ``table.csv`` and the stored rows, or the name of a ``.parquet`` or ``.csv`` file. For a file,
            the stored rows are in a folder of the same name with the suffix ``.fits``.
        engine: ``"local"`` (processes on this machine), ``"ray"`` (a Ray cluster) or ``"mpi"`` (MPI ranks). The first
            MPI rank is the driver.
        workers: Number of concurrent fits, each on one thread. The default is the number of processors.
        seeds: The seeds, such as ``range(1, 21)``.
        include: Folders to search for included files.
        settings: The settings of ``jensen.fit``, by name.

    Returns:
        The rows of all data sets, in order. MPI ranks other than the driver return an empty list.
    """
    program, text = read_program(model)
    target = Path(out)
    is_file = target.suffix in (".parquet", ".csv")
    if target.suffix == ".parquet":
        extra("pyarrow.parquet", "parquet")
    plan = _jensen.plan_fits(program, text, [os.fspath(folder) for folder in include], encode(settings))
    tasks = _jensen.plan_tasks([_given(name, data) for name, data in _named(datasets)], [int(seed) for seed in seeds])
    with _engines.driver(engine, workers) as workplace:
        if workplace is None:
            return []
        ledger = _jensen.Ledger(target.with_suffix(".fits") if is_file else target, plan, tasks)
        pending = ledger.pending()
        shared = workplace.share(plan)
        try:
            for at, row in _engines.each(workplace, "fit_row", [(shared, tasks[task]) for task in pending]):
                task = tasks[pending[at]]
                ledger.record(_jensen.failed_row(task, str(row)) if isinstance(row, _engines.Lost) else row)
        finally:
            # The finished fits are a valid table, even if an error stopped the others.
            rows = [json.loads(row) for row in ledger.write_table()]
        if is_file:
            _write(target, rows)
        return rows


def build_topics(
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str],
    shards: int,
    engine: EngineName = "local",
    workers: int | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Builds a corpus of shards for ``fit_topics`` from text files, with many processes.

    Each worker counts the words of one input file at a time. The driver adds the counts and chooses the vocabulary.
    Workers then write the documents and assemble the shards. For any engine and number of workers, the shards equal the
    shards of ``jensen topics build --shards`` on the same inputs, byte for byte. If a worker ends unexpectedly, another
    worker repeats its file. All machines must see the inputs and ``out`` under the same paths.

    Args:
        inputs: Files and folders of text or bags of words. One worker reads one file, so supply at least as many files
            as workers.
        out: The folder of the corpus. The function replaces an earlier corpus in it.
        shards: The number of shards.
        engine: As in ``map_fits``.
        workers: Number of files read concurrently, each on one thread. The default is the number of processors.
        settings: The settings of ``jensen topics build``, by the names of its flags.

    Returns:
        The output of ``jensen topics build --json``. MPI ranks other than the driver return an empty dictionary.
    """
    given = [inputs] if isinstance(inputs, (str, os.PathLike)) else inputs
    request = {"inputs": [os.fspath(path) for path in given], **settings}
    # Workers have other working directories. The corpus names its inputs by the paths of the user.
    elsewhere = {**request, "inputs": [os.path.abspath(path) for path in given]}
    for name in ("vocabulary", "stop_words"):
        if request.get(name) not in (None, "english", "none"):
            elsewhere[name] = os.path.abspath(request[name])
    encoded, folder = encode(elsewhere), os.path.abspath(out)
    with _engines.driver(engine, workers) as workplace:
        if workplace is None:
            return {}

        def work(choice: str, tasks: list[str]) -> list[str]:
            shared = workplace.share(choice)
            answers: dict[int, str] = {}
            calls = [(encoded, folder, shared, task) for task in tasks]
            for at, answer in _engines.each(workplace, "corpus_step", calls):
                if isinstance(answer, _engines.Lost):
                    raise RuntimeError(f"the task {tasks[at]} lost {_engines.TRIES} workers ({answer})")
                answers[at] = answer
            return [answers[at] for at in range(len(tasks))]

        return json.loads(_jensen.build_corpus(encode(request), folder, shards, work))  # type: ignore[no-any-return]


def fit_topics(
    corpus: str | os.PathLike[str],
    topics: int | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    engine: EngineName = "local",
    workers: int | None = None,
    resume: bool = False,
    threads: int | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Learns topics from a corpus of ``jensen topics build --shards``, with many processes.

    In every step, workers solve each shard's share of the minibatch, and the driver adds the statistics over a fixed
    tree of shards. For any engine and number of workers, the results equal those of ``jensen topics fit`` on the same corpus, bit
    for bit. If a worker ends unexpectedly, another worker repeats its block of shards. All machines must see the corpus
    under the same path.

    Args:
        corpus: The folder of a corpus, or the file of a corpus with one shard.
        topics: The number of topics.
        out: A folder for results and checkpoints, with the files of ``jensen topics fit --out``.
        engine: As in ``map_fits``.
        workers: Number of shards processed concurrently, each on one thread. The default is the number of processors.
        resume: Whether to resume the run in ``out`` from its last checkpoint.
        threads: Number of threads of the driver.
        settings: The settings of ``jensen topics fit``, by the names of its flags.

    Returns:
        The contents of ``fit.json``. MPI ranks other than the driver return an empty dictionary.
    """
    # Workers have other working directories.
    path = os.path.abspath(corpus)
    request = encode({"topics": topics, **settings})
    with _engines.driver(engine, workers) as workplace:
        if workplace is None:
            return {}

        workplace.start_workers()
        step = _TopicsStep(workplace, path)
        summary = _jensen.fit_corpus(
            path, request, out, resume, workplace.workers, step.buffer, step.solve, step.score, threads
        )
        return json.loads(summary)  # type: ignore[no-any-return]


#: A block of shards: the number, the digest and the share of documents of each.
Block = list[tuple[int, str, list[int]]]

#: Held-out documents of a shard: the shard's number and digest, the index of the first document in the shard, the
#: number of documents, and the overall index of the first document.
Piece = tuple[int, str, int, int, int]


class _TopicsStep:
    """The requests of a step to workers, and their answers. If the engine has shared memory, all steps use the same
    memory for both.
    """

    def __init__(self, workplace: _engines.Engine, corpus: str) -> None:
        self._workplace, self._corpus = workplace, corpus
        self._request: _engines.SharedBuffer | None = None
        self._replies: list[_engines.SharedBuffer | None] = []
        self._sent: Any = None

    def buffer(self, size: int) -> NDArray[np.uint8]:
        """The memory for the request of a step, which begins at the first byte."""
        if self._request is None or self._request.size < size:
            self._replies.clear()
            self._request = self._workplace.buffer(size)
        self._sent = np.empty(size, np.uint8) if self._request is None else None
        return self._sent if self._request is None else self._request.array()

    def _reply(self, block: int) -> _engines.SharedBuffer | None:
        while self._request is not None and len(self._replies) <= block:
            # Space for the statistics of all words, and more than the bounds of the documents need.
            self._replies.append(self._workplace.buffer(self._request.size + self._request.size // 4))
        return None if self._request is None else self._replies[block]

    def _shared_request(self) -> Any:
        return self._workplace.share(self._sent) if self._request is None else self._request

    def _each(
        self, function: str, calls: list[tuple[Any, ...]], shards: list[list[int]]
    ) -> Iterator[tuple[int, Any]]:
        """Yields indices and results of the calls. A call that lost its workers raises an error with the names of its shards."""
        for at, found in _engines.each(self._workplace, function, calls):
            if isinstance(found, _engines.Lost):
                first, last = shards[at][0], shards[at][-1]
                which = f"shard {first}" if first == last else f"shards {first} to {last}"
                raise RuntimeError(
                    f"{which} lost {_engines.TRIES} workers ({found}): continue with resume=True once workers are back"
                )
            yield at, found

    def score(self, seed: int, calls: list[list[Piece]]) -> list[NDArray[np.float64]]:
        """Scores pieces of held-out documents."""
        shared = self._shared_request()
        shards = [[number for number, *_ in pieces] for pieces in calls]
        found = dict(self._each("heldout_step", [(self._corpus, shared, seed, pieces) for pieces in calls], shards))
        return [found[at] for at in range(len(calls))]

    def solve(self, blocks: list[Block]) -> list[NDArray[np.uint8]]:
        """Solves blocks of shards, and returns the statistics of each block."""
        shared = self._shared_request()
        calls = [(self._corpus, shared, block, self._reply(at)) for at, block in enumerate(blocks)]
        parts: dict[int, NDArray[np.uint8]] = {}
        shards = [[number for number, *_ in block] for block in blocks]
        for at, part in self._each("shard_step", calls, shards):
            answer = self._reply(at)
            parts[at] = answer.array()[:part] if isinstance(part, int) and answer is not None else part
        return [parts[at] for at in range(len(calls))]


def fit_records(
    model: str | os.PathLike[str],
    records: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    data: Data | None = None,
    *,
    exchangeable: str,
    out: str | os.PathLike[str] | None = None,
    engine: EngineName = "local",
    workers: int | None = None,
    resume: bool = False,
    threads: int | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    **settings: Any,
) -> dict[str, Any]:
    """Fits a Stan program to exchangeable records in Parquet files, with many processes. Each file is a shard.

    Every minibatch has records of all shards. Workers evaluate the shares of the shards, and the driver adds values and
    gradients over a fixed tree of shards. The results are therefore the same, bit for bit, for any engine and number of
    workers. If a worker ends unexpectedly, another worker repeats its share. All machines must see the files under the
    same paths.

    Args:
        model: The program, as a path or source text.
        records: Parquet files, or a folder of them, whose rows are the records.
        data: The other data, as in ``jensen.fit``.
        exchangeable: The ``int`` data variable that counts the records.
        out: A folder for results and checkpoints.
        engine: As in ``map_fits``.
        workers: Number of shards evaluated concurrently, each on one thread. The default is the number of processors.
        resume: Whether to resume the run in ``out`` from its last checkpoint.
        threads: Number of threads of the driver.
        include: Folders to search for included files.
        settings: The settings of ``jensen.fit``, by name. ``batch`` should be large: a few thousand records per shard.

    Returns:
        The contents of ``fit.json``. MPI ranks other than the driver return an empty dictionary.
    """
    program, text = read_program(model)
    request = encode({"exchangeable": exchangeable, "records": paths_of(records), **settings})
    values, path = split_data(data)
    with _engines.driver(engine, workers) as workplace:
        if workplace is None:
            return {}
        solve = _FileSteps(workplace, "record_step")
        folders = [os.fspath(folder) for folder in include]
        folder = None if out is None else os.fspath(out)
        summary = _jensen.fit_shards(
            program, text, folders, values, path, request, folder, resume, solve, threads
        )
        return json.loads(summary)  # type: ignore[no-any-return]


class _FileSteps:
    """Calls a function of the extension module in a worker for each shard, which is a file.

    The function receives the settings of the run, the file and digest of the shard, the request of the step, and the
    shard's share of it.
    """

    def __init__(self, workplace: _engines.Engine, function: str) -> None:
        self._workplace, self._function = workplace, function
        self._shared: dict[str, Any] = {}

    def __call__(self, settings: str, ask: bytes, shares: list[tuple[int, str, str, bytes]]) -> list[bytes]:
        """Returns the answers of all shards. A share has the number, file and digest of its shard."""
        workplace = self._workplace
        if settings not in self._shared:
            self._shared[settings] = workplace.share(settings)
        everywhere = workplace.share(ask)
        parts: dict[int, bytes] = {}
        calls = [(self._shared[settings], file, digest, everywhere, share) for _, file, digest, share in shares]
        groups = [number for number, *_ in shares]
        for at, part in _engines.each(workplace, self._function, calls, groups):
            if isinstance(part, _engines.Lost):
                raise RuntimeError(
                    f"the shard {shares[at][1]!r} lost {_engines.TRIES} workers ({part}): "
                    "continue with resume=True once workers are back"
                )
            parts[at] = part
        return [parts[at] for at in range(len(calls))]


def fit_mixture(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    components: int | str | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    engine: EngineName = "local",
    workers: int | None = None,
    resume: bool = False,
    threads: int | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Fits a mixture to the rows of tables, with many processes. Each table is a shard.

    In every step, workers compute the responsibilities of each shard's rows, their statistics and the shard's part of
    the ELBO. The driver adds these over a fixed tree of shards. The results are therefore the same, bit for bit, for any
    engine and number of workers. Without held-out rows, they equal those of ``jensen mixture fit`` on one table of all rows, up
    to rounding. If a worker ends unexpectedly, another worker repeats its share. All machines must see the files under
    the same paths.

    Args:
        files: One or several tables with the same columns, in the formats of ``jensen mixture fit``. A folder
            means all its files.
        components: The number of components, or a range such as ``"1..10"``, from which the fit selects by the ELBO.
        out: A folder for results and checkpoints, with the files of ``jensen mixture fit --out``.
        engine: As in ``map_fits``.
        workers: Number of shards processed concurrently, each on one thread. The default is the number of processors.
        resume: Whether to resume the run in ``out`` from its last checkpoint.
        threads: Number of threads of the driver.
        settings: The settings of ``jensen mixture fit``, by the names of its flags.

    Returns:
        The contents of ``fit.json``. MPI ranks other than the driver return an empty dictionary.
    """
    tables = _tables(files)
    if components is None and not resume:
        raise TypeError("components is missing: give a number, or a range such as '1..10'")
    of_all = ("kind", "covariance", "components", "concentration", "smoothing", "image")
    own = {name for name in settings if name in of_all or name.startswith("prior_")}
    points = {name: value for name, value in settings.items() if name not in own}
    request = encode({"components": components, **{name: settings[name] for name in own}, "points": points})
    with _engines.driver(engine, workers) as workplace:
        if workplace is None:
            return {}
        workplace.start_workers()
        folder = None if out is None else os.fspath(out)
        step = _FileSteps(workplace, "point_step")
        summary = _jensen.fit_point_shards(tables, request, folder, resume, step, threads)
        return json.loads(summary)  # type: ignore[no-any-return]


def _tables(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Returns absolute paths, because workers have other working directories. Files of a folder are in order of their names."""
    given = [files] if isinstance(files, (str, os.PathLike)) else files
    found: list[str] = []
    for path in given:
        absolute = os.path.abspath(path)
        inside = None
        if os.path.isdir(absolute):
            # Skip files that other programs write next to their tables, such as `_SUCCESS`.
            inside = sorted(name for name in os.listdir(absolute) if name[0] not in "._")
        if inside == []:
            raise ValueError(f"the folder {os.fspath(path)!r} has no files")
        found += [absolute] if inside is None else [os.path.join(absolute, name) for name in inside]
    if not found:
        raise ValueError("no files are given")
    twice = {path for path in found if found.count(path) > 1}
    if twice:
        raise ValueError(f"{min(twice)!r} appears twice, but every shard needs its own file")
    return found


def folds(data: Mapping[str, Any], k: int, *, count: str, records: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns data sets for ``map_fits``, each without one of ``k`` folds of the records.

    Args:
        data: The data by name.
        k: The number of folds. Record i is in fold i modulo k.
        count: Name of the data variable with the number of records.
        records: Names of the values whose first axis is records.
    """
    n = int(data[count])
    if not 2 <= k <= n:
        raise ValueError(f"{k} folds of {n} records: expected at least 2, and at most one per record")
    arrays = {name: np.asarray(data[name]) for name in records}
    for name, array in arrays.items():
        if array.ndim < 1 or len(array) != n:
            raise ValueError(f"{name!r} has shape {array.shape}: expected {n} records, as {count!r} says")
    data_sets = {}
    for fold in range(k):
        kept = np.arange(n) % k != fold
        cut = {name: array[kept] for name, array in arrays.items()}
        data_sets[f"without fold {fold + 1} of {k}"] = {**data, **cut, count: int(kept.sum())}
    return data_sets


def _named(datasets: Mapping[str, Data] | Sequence[Data]) -> list[tuple[str, Data]]:
    if isinstance(datasets, Mapping):
        return list(datasets.items())
    if isinstance(datasets, (str, os.PathLike)):
        raise TypeError("datasets is one path: expected a list of data sets, or data sets by name")
    paths = (str, os.PathLike)
    return [(os.fspath(data) if isinstance(data, paths) else str(i + 1), data) for i, data in enumerate(datasets)]


def _given(name: str, data: Data) -> tuple[str, dict[str, Any] | None]:
    values, path = split_data(data)
    if path is None:
        return name, values or {}
    if path == name:
        return name, None
    raise TypeError(f"{name!r} is the path {path!r}: give a list of paths, which are then the names")


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".csv":
        kept = path.with_suffix(".fits") / "table.csv"
        path.write_bytes(kept.read_bytes())
        return
    arrow, parquet = extra("pyarrow", "parquet"), extra("pyarrow.parquet", "parquet")
    text, number = arrow.string(), arrow.float64()
    kinds = {"data": text, "seed": arrow.uint64(), "verdict": text, "elbo": number, "elbo_se": number}
    kinds |= {"khat": number, "seconds": number, "message": text}
    columns = {name: arrow.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    found = [{name: pair for name, *pair in row["parameters"]} for row in rows]
    for name in dict.fromkeys(name for row in found for name in row):
        for which, of in enumerate(("mean", "sd")):
            values = [row[name][which] if name in row else None for row in found]
            columns[f"{of}({name})"] = arrow.array(values, number)
    parquet.write_table(arrow.table(columns), path)
