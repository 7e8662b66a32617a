"""Engines: whatever runs pure functions of the extension module elsewhere. An engine submits a call, waits for some, and
tells a worker's end from a call's own error; everything else is the same for all of them.
"""

from __future__ import annotations

import os
import socket
import weakref
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent import futures
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _jensen
from ._extra import extra

EngineName = Literal["local", "ray", "mpi"]

#: Workers that one call may cost: what kills every worker that it meets is not tried for ever.
TRIES = 5


class Lost(Exception):
    """A worker ended without an answer: it was killed, or its machine was."""


class Engine(Protocol):
    """What an engine does. ``workers`` is the number of calls at a time."""

    workers: int

    def share(self, value: Any) -> Any:
        """Makes a value ready to be an argument of many calls."""

    def begin(self) -> None:
        """Has workers start while the driver does something else, where they start by calls."""

    def room(self, size: int) -> Room | None:
        """Memory of so many bytes that is an argument of calls, and an array of bytes for whoever has it; ``None`` where workers
        see no memory of the driver's.
        """

    def submit(self, call: tuple[Any, ...], home: int | None = None) -> Any:
        """Starts ``leaf(*call)``. Calls of one home go to one worker, one after the other, where the engine can say which: what
        that worker keeps in memory is found again.
        """

    def wait(self, handles: Collection[Any]) -> Collection[Any]:
        """Those that have ended, at least one."""

    def result(self, handle: Any) -> Any:
        """What it gave; raises ``Lost``, or the call's own error."""


def leaf(version: str, function: str, *arguments: Any) -> Any:
    """A call at a worker: a function of the extension module by its name."""
    if version != _jensen.__version__:
        raise RuntimeError(
            f"the worker on {socket.gethostname()} has jensen {_jensen.__version__}, the driver {version}: "
            "install the same version everywhere"
        )
    return getattr(_jensen, function)(*arguments)


def each(
    engine: Engine, function: str, calls: Sequence[tuple[Any, ...]], homes: Sequence[int] | None = None
) -> Iterator[tuple[int, Any]]:
    """The calls' numbers and results as they end, those of one home by one worker. A call whose worker is lost is made again;
    one that has cost ``TRIES`` workers has a ``Lost`` for its result.
    """
    waiting = deque(range(len(calls)))
    tries = [0] * len(calls)
    running: dict[Any, int] = {}
    while waiting or running:
        # Those with homes queue there.
        while waiting and (homes is not None or len(running) < engine.workers):
            at = waiting.popleft()
            home = None if homes is None else homes[at]
            running[engine.submit((_jensen.__version__, function, *calls[at]), home)] = at
        for handle in list(engine.wait(running)):
            at = running.pop(handle)
            try:
                result = engine.result(handle)
            except Lost as lost:
                tries[at] += 1
                if tries[at] < TRIES:
                    waiting.append(at)
                    continue
                result = lost
            yield at, result


def driver(engine: EngineName, workers: int | None) -> AbstractContextManager[Engine | None]:
    """The engine for who drives; ``None`` for ranks of MPI that have served until the driver ended."""
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}: expected at least 1")
    if engine == "local":
        return _Local(workers)
    if engine == "ray":
        return _Ray(workers)
    if engine == "mpi":
        return _Mpi(workers)
    raise ValueError(f"engine is {engine!r}: expected 'local', 'ray' or 'mpi'")


class _Executed:
    """Calls through an executor of ``concurrent.futures``."""

    executor: futures.Executor
    workers: int

    def share(self, value: Any) -> Any:
        return value

    def begin(self) -> None:
        pass

    def room(self, size: int) -> Room | None:
        return None

    def submit(self, call: tuple[Any, ...], home: int | None = None) -> futures.Future[Any]:
        return self.executor.submit(leaf, *call)

    def wait(self, handles: Collection[futures.Future[Any]]) -> Collection[futures.Future[Any]]:
        return futures.wait(handles, return_when=futures.FIRST_COMPLETED).done

    def result(self, handle: futures.Future[Any]) -> Any:
        try:
            return handle.result()
        except Exception as error:
            # Executors put the worker's trace before it, with the same message.
            raise error from None


#: Bytes from which what many calls are given lies in shared memory: less is as fast through their pipes.
LARGE = 1 << 18

#: What this process has received last, by its name: calls of one step are given the same.
_received_last: tuple[str, bytes] = ("", b"")


class _InMemory:
    """Bytes in shared memory for as long as this object lives; at a worker they are ``bytes``."""

    def __init__(self, value: bytes) -> None:
        from multiprocessing.shared_memory import SharedMemory

        block = SharedMemory(create=True, size=len(value))
        view: Any = block.buf
        view[: len(value)] = value
        del view
        self._name, self._size = block.name, len(value)
        self._free = weakref.finalize(self, _free, block)

    def __reduce__(self) -> tuple[Any, tuple[str, int]]:
        return _received, (self._name, self._size)


class Room:
    """Shared memory for as long as this object lives, to be written and read by all who have it; at a worker it is an array."""

    def __init__(self, size: int) -> None:
        from multiprocessing.shared_memory import SharedMemory

        self.size = size
        self._block = SharedMemory(create=True, size=size)
        self._free = weakref.finalize(self, _free, self._block)

    def array(self) -> NDArray[np.uint8]:
        """It must be gone before this object is."""
        buffer: Any = self._block.buf
        return np.frombuffer(buffer, np.uint8, self.size)

    def __reduce__(self) -> tuple[Any, tuple[str, int]]:
        return _entered, (self._block.name, self.size)


#: Rooms that this process has mapped, by their names: those of a run are the same in every step.
_mapped: dict[str, Any] = {}


def _entered(name: str, size: int) -> NDArray[np.uint8]:
    if name not in _mapped:
        from multiprocessing.shared_memory import SharedMemory

        _mapped[name] = SharedMemory(name=name)
    return np.frombuffer(_mapped[name].buf, np.uint8, size)


def _free(block: Any) -> None:
    block.close()
    block.unlink()


def _received(name: str, size: int) -> bytes:
    global _received_last
    if _received_last[0] != name:
        from multiprocessing.shared_memory import SharedMemory

        block = SharedMemory(name=name)
        view: Any = block.buf
        _received_last = name, bytes(view[:size])
        del view
        block.close()
    return _received_last[1]


def _has_room(size: int) -> bool:
    """Whether shared memory takes so many bytes: what is beyond its limit would end the process."""
    try:
        about = os.statvfs("/dev/shm")
    except (AttributeError, OSError):
        # It has no place of its own.
        return True
    return bool(about.f_bavail * about.f_frsize > 2 * size)


class _Local(_Executed, AbstractContextManager["_Local"]):
    """Processes of this machine."""

    def __init__(self, workers: int | None) -> None:
        self.workers = workers or os.cpu_count() or 1
        # By home, or of all calls without one.
        self._executors: dict[int | None, futures.Executor] = {}

    def share(self, value: Any) -> Any:
        if isinstance(value, bytes) and len(value) >= LARGE and _has_room(len(value)):
            return _InMemory(value)
        return value

    def begin(self) -> None:
        # One call starts them all.
        self._executors[None] = self._processes(None)
        self._executors[None].submit(os.getpid)

    def room(self, size: int) -> Room | None:
        return Room(size) if size >= LARGE and _has_room(size) else None

    def _processes(self, home: int | None) -> futures.Executor:
        import multiprocessing

        # No copies of a process that may have threads.
        spawn = multiprocessing.get_context("spawn")
        return futures.ProcessPoolExecutor(self.workers if home is None else 1, spawn)

    def submit(self, call: tuple[Any, ...], home: int | None = None) -> futures.Future[Any]:
        place = None if home is None else home % self.workers
        if place not in self._executors:
            self._executors[place] = self._processes(place)
        try:
            return self._executors[place].submit(leaf, *call)
        except futures.BrokenExecutor:
            # One that is killed takes its fellows along.
            self._executors[place] = self._processes(place)
            return self._executors[place].submit(leaf, *call)

    def result(self, handle: futures.Future[Any]) -> Any:
        try:
            return super().result(handle)
        except futures.BrokenExecutor as error:
            raise Lost("a worker process ended without an answer") from error

    def __exit__(self, *_: object) -> None:
        for executor in self._executors.values():
            executor.shutdown(cancel_futures=True)


class _Mpi(_Executed, AbstractContextManager["_Mpi | None"]):
    """Ranks of MPI: the first drives, the others serve until it has ended."""

    def __init__(self, workers: int | None) -> None:
        self._stack = ExitStack()
        mpi = extra("mpi4py.futures", "mpi")
        communicator = extra("mpi4py.MPI", "mpi").COMM_WORLD
        # A single rank serves itself, by a thread.
        ranks = max(communicator.Get_size() - 1, 1)
        if workers not in (None, ranks):
            raise ValueError(f"workers is {workers}, but MPI has started {ranks} beside the driver: leave it out")
        self.workers = ranks
        self._made = mpi.MPICommExecutor(communicator, root=0)

    def __enter__(self) -> _Mpi | None:
        executor = self._stack.enter_context(self._made)
        if executor is None:
            return None
        self.executor = executor
        return self

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)


class _Actor:
    """A worker of Ray that stays."""

    def leaf(self, *call: Any) -> Any:
        return leaf(*call)


class _Ray(AbstractContextManager["_Ray"]):
    """Workers of a Ray cluster: that which is connected or that ``RAY_ADDRESS`` names, else one of this machine."""

    def __init__(self, workers: int | None) -> None:
        self._ray = extra("ray", "ray")
        self._own = not self._ray.is_initialized()
        if self._own:
            alone = "RAY_ADDRESS" not in os.environ
            machine = {"num_cpus": workers, "include_dashboard": False} if alone else {}
            self._ray.init(log_to_driver=False, **machine)
        self.workers = workers or max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
        # Who loses a worker is told: the same loop asks again for all engines.
        self._leaf = self._ray.remote(num_cpus=1, max_retries=0)(leaf)
        self._actor = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Actor)
        self._homes: dict[int, Any] = {}
        #: Calls of homes that have not ended: the home's number, and who was asked.
        self._asked: dict[Any, tuple[int, Any]] = {}

    def share(self, value: Any) -> Any:
        return self._ray.put(value)

    def begin(self) -> None:
        pass

    def room(self, size: int) -> Room | None:
        return None

    def submit(self, call: tuple[Any, ...], home: int | None = None) -> Any:
        if home is None:
            return self._leaf.remote(*call)
        place = home % self.workers
        if place not in self._homes:
            self._homes[place] = self._actor.remote()
        actor = self._homes[place]
        handle = actor.leaf.remote(*call)
        self._asked[handle] = place, actor
        return handle

    def wait(self, handles: Collection[Any]) -> Collection[Any]:
        done, _ = self._ray.wait(list(handles), num_returns=1)
        return done  # type: ignore[no-any-return]

    def result(self, handle: Any) -> Any:
        place, actor = self._asked.pop(handle, (None, None))
        try:
            return self._ray.get(handle)
        except self._ray.exceptions.RayTaskError as error:
            raise (error.cause or error) from None
        except self._ray.exceptions.RayError as error:
            if place is not None and self._homes.get(place) is actor:
                del self._homes[place]
            raise Lost(str(error).strip().split("\n")[0]) from error

    def __exit__(self, *_: object) -> None:
        # Workers that nobody knows any more end.
        self._homes.clear()
        if self._own:
            self._ray.shutdown()
