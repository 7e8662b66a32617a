"""Beyond one process: many fits at a time, by processes of this machine, a Ray cluster or ranks of MPI.

Functions of the extension module do the work and depend only on their arguments. Engines only call them. Results are
the same, bit for bit, for every engine and number of workers.
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
    """Fits a Stan program to many data sets with many seeds, and writes one table with a row per fit.

    A row contains the data set's name, the seed, the verdict (``trusted``, ``not trusted`` or ``failed``), the bound, k̂,
    seconds, a message, and mean and standard deviation of every scalar. The row of a failed fit contains the message. Each
    row is stored as soon as its fit ends, so the same call continues a stopped run, and more data sets or seeds add
    rows.

    Args:
        model: The program, as a path or source text.
        datasets: Data sets by name, or a list of data sets. Each is a dictionary of values by name, a data frame, or
            the path of a JSON file.
        out: A folder for ``table.csv`` and the stored rows, or the name of a ``.parquet`` or ``.csv`` file. The folder
            of the latter has the same name with the ending ``.fits``.
        engine: ``"local"`` (processes on this machine), ``"ray"`` (a Ray cluster) or ``"mpi"`` (MPI ranks, of which the
            first is the driver).
        workers: Number of concurrent fits, each on one thread. The default is the number of processors.
        seeds: The seeds, such as ``range(1, 21)``.
        include: Folders to search for included files.
        settings: The settings of ``jensen.fit``, by name.

    Returns:
        The rows of all data sets in order; none on MPI ranks other than the driver.
    """
    program, text = read_program(model)
    place = Path(out)
    is_file = place.suffix in (".parquet", ".csv")
    if place.suffix == ".parquet":
        extra("pyarrow.parquet", "parquet")
    plan = _jensen.plan_fits(program, text, [os.fspath(folder) for folder in include], encode(settings))
    tasks = _jensen.plan_tasks([_given(name, data) for name, data in _named(datasets)], [int(seed) for seed in seeds])
    with _engines.driver(engine, workers) as workplace:
        if workplace is None:
            return []
        ledger = _jensen.Ledger(place.with_suffix(".fits") if is_file else place, plan, tasks)
        pending = ledger.pending()
        shared = workplace.share(plan)
        try:
            for at, row in _engines.each(workplace, "fit_row", [(shared, tasks[task]) for task in pending]):
                task = tasks[pending[at]]
                ledger.record(_jensen.failed_row(task, str(row)) if isinstance(row, _engines.Lost) else row)
        finally:
            # The results so far are a valid table, whatever error stopped the others.
            rows = [json.loads(row) for row in ledger.write_table()]
        if is_file:
            _write(place, rows)
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
    """Builds a corpus of shards for ``fit_topics`` with many processes that read text files.

    Workers count the words of one input file at a time. The driver adds the counts and chooses the vocabulary, and
    workers write the documents and assemble the shards. The shards have the bytes of ``jensen topics build --shards``
    on the same inputs, for any engine and number of workers. If a worker is killed, another one repeats its file. All
    machines must see the inputs and ``out`` under the same paths.

    Args:
        inputs: Files and folders of text or bags of words. One worker reads one file, so supply at least as many files
            as workers.
        out: The folder of the corpus. An earlier corpus in it is replaced.
        shards: The number of shards.
        engine: As in ``map_fits``.
        workers: Number of files read concurrently, each on one thread. The default is the number of processors.
        settings: The settings of ``jensen topics build``, by the names of its flags.

    Returns:
        The output of ``jensen topics build --json``; nothing on MPI ranks other than the driver.
    """
    given = [inputs] if isinstance(inputs, (str, os.PathLike)) else inputs
    request = {"inputs": [os.fspath(path) for path in given], **settings}
    # Workers have other working folders; the corpus names its inputs by the paths of the user.
    elsewhere = {**request, "inputs": [os.path.abspath(path) for path in given]}
    for name in ("vocabulary", "stop_words"):
        if request.get(name) not in (None, "english", "none"):
            elsewhere[name] = os.path.abspath(request[name])
    asked, place = encode(elsewhere), os.path.abspath(out)
    with _engines.driver(engine, workers) as workplace:
        if workplace is None:
            return {}

        def work(choice: str, tasks: list[str]) -> list[str]:
            shared = workplace.share(choice)
            answers: dict[int, str] = {}
            calls = [(asked, place, shared, task) for task in tasks]
            for at, answer in _engines.each(workplace, "corpus_step", calls):
                if isinstance(answer, _engines.Lost):
                    raise RuntimeError(f"the task {tasks[at]} lost {_engines.TRIES} workers ({answer})")
                answers[at] = answer
            return [answers[at] for at in range(len(tasks))]

        return json.loads(_jensen.build_corpus(encode(request), place, shards, work))  # type: ignore[no-any-return]


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
    """Learns topics from a corpus of ``jensen topics build --shards`` with many processes that share the shards.

    In every step each shard solves its share of the minibatch, and the driver adds the statistics over a fixed tree of
    shards. The results equal those of ``jensen topics fit`` on the same corpus, bit for bit, for any engine and number
    of workers. If a worker is killed, another one repeats its block of shards. All machines must see the corpus under
    the same path.

    Args:
        corpus: The folder of a corpus, or a corpus in a single file, which has one shard.
        topics: The number of topics.
        out: A folder for results and checkpoints, with the files of ``jensen topics fit --out``.
        engine: As in ``map_fits``.
        workers: Number of shards processed concurrently, each on one thread. The default is the number of processors.
        resume: Whether to resume the run in ``out`` from its last checkpoint.
        threads: Threads of the driver.
        settings: The settings of ``jensen topics fit``, by the names of its flags.

    Returns:
        The contents of ``fit.json``; nothing on MPI ranks other than the driver.
    """
    # Workers have other working folders.
    path = os.path.abspath(corpus)
    request = encode({"topics": topics, **settings})
    with _engines.driver(engine, workers) as workplace:
        if workplace is None:
            return {}

        workplace.begin()
        step = _TopicsStep(workplace, path)
        summary = _jensen.fit_corpus(
            path, request, out, resume, workplace.workers, step.room, step.solve, step.score, threads
        )
        return json.loads(summary)  # type: ignore[no-any-return]


#: A block of shards: the number, the digest and the share of documents of each.
Block = list[tuple[int, str, list[int]]]

#: Held-out documents of a shard: its number, its digest, the first document, their number, and
#: the first one's overall index.
Piece = tuple[int, str, int, int, int]


class _TopicsStep:
    """The requests of a step to workers and their answers. If the engine has shared memory, both are in memory that is kept
    from step to step.
    """

    def __init__(self, workplace: _engines.Engine, corpus: str) -> None:
        self._workplace, self._corpus = workplace, corpus
        self._ask: _engines.Room | None = None
        self._answers: list[_engines.Room | None] = []
        self._sent: Any = None

    def room(self, size: int) -> NDArray[np.uint8]:
        """The memory of the request of a step, which starts at its first byte."""
        if self._ask is None or self._ask.size < size:
            self._answers.clear()
            self._ask = self._workplace.room(size)
        self._sent = np.empty(size, np.uint8) if self._ask is None else None
        return self._sent if self._ask is None else self._ask.array()

    def _answer(self, block: int) -> _engines.Room | None:
        while self._ask is not None and len(self._answers) <= block:
            # Space for the statistics of all words, and more than the bounds of their documents need.
            self._answers.append(self._workplace.room(self._ask.size + self._ask.size // 4))
        return None if self._ask is None else self._answers[block]

    def _asked(self) -> Any:
        return self._workplace.share(self._sent) if self._ask is None else self._ask

    def _each(
        self, function: str, calls: list[tuple[Any, ...]], shards: list[list[int]]
    ) -> Iterator[tuple[int, Any]]:
        """Yields the numbers and results of the calls. A lost call raises an error that names its shards."""
        for at, found in _engines.each(self._workplace, function, calls):
            if isinstance(found, _engines.Lost):
                first, last = shards[at][0], shards[at][-1]
                which = f"shard {first}" if first == last else f"shards {first} to {last}"
                raise RuntimeError(
                    f"{which} lost {_engines.TRIES} workers ({found}): continue with resume=True once workers are back"
                )
            yield at, found

    def score(self, seed: int, calls: list[list[Piece]]) -> list[NDArray[np.float64]]:
        """The scores of pieces of held-out documents."""
        shared = self._asked()
        shards = [[number for number, *_ in pieces] for pieces in calls]
        found = dict(self._each("heldout_step", [(self._corpus, shared, seed, pieces) for pieces in calls], shards))
        return [found[at] for at in range(len(calls))]

    def solve(self, blocks: list[Block]) -> list[NDArray[np.uint8]]:
        """The parts of blocks of shards."""
        shared = self._asked()
        calls = [(self._corpus, shared, block, self._answer(at)) for at, block in enumerate(blocks)]
        parts: dict[int, NDArray[np.uint8]] = {}
        shards = [[number for number, *_ in block] for block in blocks]
        for at, part in self._each("shard_step", calls, shards):
            answer = self._answer(at)
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
    """Fits a Stan program to exchangeable records in Parquet files. Each file is a shard that a worker evaluates.

    Every minibatch contains records of all shards. Each shard evaluates its share, and the driver adds values and gradients
    over a fixed tree of shards, so the results are the same, bit for bit, for any engine, number of workers and killed
    workers. If a worker is killed, another one repeats its share. All machines must see the files under the same paths.

    Args:
        model: The program, as a path or source text.
        records: A folder of Parquet files, or files, whose rows are the records.
        data: The other data, as in ``jensen.fit``.
        exchangeable: The ``int`` data variable that counts the records.
        out: A folder for results and checkpoints.
        engine: As in ``map_fits``.
        workers: Number of shards evaluated concurrently, each on one thread. The default is the number of processors.
        resume: Whether to resume the run in ``out`` from its last checkpoint.
        threads: Threads of the driver.
        include: Folders to search for included files.
        settings: The settings of ``jensen.fit``, by name. Make ``batch`` large, with a few thousand records per shard.

    Returns:
        The contents of ``fit.json``; nothing on MPI ranks other than the driver.
    """
    program, text = read_program(model)
    request = encode({"exchangeable": exchangeable, "records": paths_of(records), **settings})
    values, path = split_data(data)
    with _engines.driver(engine, workers) as workplace:
        if workplace is None:
            return {}
        solve = _FileSteps(workplace, "record_step")
        folders = [os.fspath(folder) for folder in include]
        place = None if out is None else os.fspath(out)
        summary = _jensen.fit_shards(
            program, text, folders, values, path, request, place, resume, solve, threads
        )
        return json.loads(summary)  # type: ignore[no-any-return]


class _FileSteps:
    """Calls a function of the workers for each shard in a file.

    The arguments of the function are the settings of the run, the shard's file and digest, the request of the step,
    and the share of the step that belongs to the shard.
    """

    def __init__(self, workplace: _engines.Engine, function: str) -> None:
        self._workplace, self._function = workplace, function
        self._shared: dict[str, Any] = {}

    def __call__(self, told: str, ask: bytes, shares: list[tuple[int, str, str, bytes]]) -> list[bytes]:
        """Returns the answer of each shard. A share names its shard by number, file and digest."""
        workplace = self._workplace
        if told not in self._shared:
            self._shared[told] = workplace.share(told)
        everywhere = workplace.share(ask)
        parts: dict[int, bytes] = {}
        calls = [(self._shared[told], file, digest, everywhere, share) for _, file, digest, share in shares]
        homes = [number for number, *_ in shares]
        for at, part in _engines.each(workplace, self._function, calls, homes):
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
    """Fits a mixture to the rows of tables. Each table is a shard that a worker processes.

    In every step each shard computes the responsibilities of its rows and returns their statistics and its part of the
    bound, which the driver adds over a fixed tree of shards. The results are the same, bit for bit, for any engine,
    number of workers and killed workers. Without held-out rows they equal those of ``jensen mixture fit`` on one table
    of all rows up to rounding. If a worker is killed, another one repeats its share. All machines must see the files
    under the same paths.

    Args:
        files: One or several tables with the same columns, in the formats of ``jensen mixture fit``. A folder stands
            for all its files.
        components: The number of components, or a range such as ``"1..10"`` from which the bound chooses.
        out: A folder for results and checkpoints, with the files of ``jensen mixture fit --out``.
        engine: As in ``map_fits``.
        workers: Number of shards processed concurrently, each on one thread. The default is the number of processors.
        resume: Whether to resume the run in ``out`` from its last checkpoint.
        threads: Threads of the driver.
        settings: The settings of ``jensen mixture fit``, by the names of its flags.

    Returns:
        The contents of ``fit.json``; nothing on MPI ranks other than the driver.
    """
    tables = _tables(files)
    if components is None and not resume:
        raise TypeError("components is missing: give their number, or a range such as '1..10'")
    of_all = ("kind", "covariance", "components", "concentration", "smoothing", "image")
    own = {name for name in settings if name in of_all or name.startswith("prior_")}
    points = {name: value for name, value in settings.items() if name not in own}
    request = encode({"components": components, **{name: settings[name] for name in own}, "points": points})
    with _engines.driver(engine, workers) as workplace:
        if workplace is None:
            return {}
        workplace.begin()
        place = None if out is None else os.fspath(out)
        step = _FileSteps(workplace, "point_step")
        summary = _jensen.fit_point_shards(tables, request, place, resume, step, threads)
        return json.loads(summary)  # type: ignore[no-any-return]


def _tables(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Absolute paths, because workers have other working folders: files in the given order, files of a folder by name."""
    given = [files] if isinstance(files, (str, os.PathLike)) else files
    found: list[str] = []
    for path in given:
        place = os.path.abspath(path)
        inside = None
        if os.path.isdir(place):
            # Skips files that other programs write next to their tables, such as `_SUCCESS`.
            inside = sorted(name for name in os.listdir(place) if name[0] not in "._")
        if inside == []:
            raise ValueError(f"the folder {os.fspath(path)!r} has no files")
        found += [place] if inside is None else [os.path.join(place, name) for name in inside]
    if not found:
        raise ValueError("no files are given")
    twice = {path for path in found if found.count(path) > 1}
    if twice:
        raise ValueError(f"{min(twice)!r} appears twice, but every shard needs its own file")
    return found


def folds(data: Mapping[str, Any], k: int, *, count: str, records: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Data sets for ``map_fits``, each without one of ``k`` folds of the records.

    Args:
        data: The data by name.
        k: The number of folds; record i is in fold i modulo k.
        count: The name of the data variable with the number of records.
        records: The names of the values whose first axis is records.
    """
    n = int(data[count])
    if not 2 <= k <= n:
        raise ValueError(f"{k} folds of {n} records: expected at least 2, and no more than records")
    arrays = {name: np.asarray(data[name]) for name in records}
    for name, array in arrays.items():
        if array.ndim < 1 or len(array) != n:
            raise ValueError(f"{name!r} has shape {array.shape}: expected {n} records, as {count!r} says")
    made = {}
    for fold in range(k):
        kept = np.arange(n) % k != fold
        cut = {name: array[kept] for name, array in arrays.items()}
        made[f"without fold {fold + 1} of {k}"] = {**data, **cut, count: int(kept.sum())}
    return made


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
    raise TypeError(f"{name!r} is the path {path!r}: give paths in a list, whose names they are")


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
