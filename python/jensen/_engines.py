"""Engines run pure functions of the extension module in other processes.

An engine submits calls, waits for them, and distinguishes a lost worker from an error of the call. All other code is
the same for all engines.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
import weakref
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent import futures
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _jensen
from ._extra import extra

EngineName = Literal["local", "ray", "mpi"]

#: Largest number of workers that one call may lose. The limit exists because a call may kill every worker that runs it.
TRIES = 5


class Lost(Exception):
    """A worker ended without an answer, because a user or the system killed it, or its machine stopped."""


class Engine(Protocol):
    """The interface of engines. ``workers`` is the number of simultaneous calls."""

    workers: int

    def share(self, value: Any) -> Any:
        """Prepares a value as an argument of many calls."""

    def start_workers(self) -> None:
        """Starts the workers now instead of at the first call, so that they start while the driver does other work."""

    def buffer(self, size: int) -> SharedBuffer | None:
        """Returns memory of this number of bytes that driver and workers share, as an argument of calls.

        Returns ``None`` if workers cannot share memory with the driver.
        """

    def submit(self, call: tuple[Any, ...], group: int | None = None) -> Any:
        """Starts ``run_call(*call)``. If the engine can choose workers, one worker runs all calls of a group, one after the
        other, so that they reuse its memory.
        """

    def wait(self, handles: Collection[Any]) -> Collection[Any]:
        """Waits for at least one call to finish, and returns all finished calls."""

    def result(self, handle: Any) -> Any:
        """Returns the result of the call. Raises ``Lost``, or the error of the call."""


def run_call(version: str, function: str, *arguments: Any) -> Any:
    """Calls a function of the extension module by its name, in a worker."""
    if version != _jensen.__version__:
        raise RuntimeError(
            f"the worker on {socket.gethostname()} has jensen {_jensen.__version__}, the driver {version}: "
            "install the same version everywhere"
        )
    return getattr(_jensen, function)(*arguments)


def each(
    engine: Engine, function: str, calls: Sequence[tuple[Any, ...]], groups: Sequence[int] | None = None
) -> Iterator[tuple[int, Any]]:
    """Yields indices and results of calls in the order in which they end. One worker runs all calls of a group.

    If a worker is lost, its call runs again. After ``TRIES`` lost workers, the result of the call is ``Lost``.
    """
    waiting = deque(range(len(calls)))
    tries = [0] * len(calls)
    running: dict[Any, int] = {}
    while waiting or running:
        # Calls of a group wait in the queue of its worker.
        while waiting and (groups is not None or len(running) < engine.workers):
            at = waiting.popleft()
            group = None if groups is None else groups[at]
            running[engine.submit((_jensen.__version__, function, *calls[at]), group)] = at
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
    """Opens the engine of the driver. Other MPI ranks run calls until the driver ends, and then receive ``None``."""
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}: expected at least 1")
    if engine == "local":
        return _Local(workers)
    if engine == "ray":
        return _Ray(workers)
    if engine == "mpi":
        return _Mpi(workers)
    raise ValueError(f"engine is {engine!r}: expected 'local', 'ray' or 'mpi'")


#: Size in bytes from which shared arguments use shared memory. Pipes are as fast for smaller arguments.
LARGE = 1 << 18

#: Name and bytes of the last value that this process read. All calls of one step have the same shared argument.
_received_last: tuple[str, bytes] = ("", b"")


class _InMemory:
    """A value in shared memory during the lifetime of this object. Unpickling in a worker gives ``bytes``."""

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


class SharedBuffer:
    """Shared memory during the lifetime of this object, which driver and workers can read and write. Unpickling in a worker
    gives an array.
    """

    def __init__(self, size: int) -> None:
        from multiprocessing.shared_memory import SharedMemory

        self.size = size
        self._block = SharedMemory(create=True, size=size)
        self._free = weakref.finalize(self, _free, self._block)

    def array(self) -> NDArray[np.uint8]:
        """The memory as an array, which the caller must delete before this object."""
        buffer: Any = self._block.buf
        return np.frombuffer(buffer, np.uint8, self.size)

    def __reduce__(self) -> tuple[Any, tuple[str, int]]:
        return _attached, (self._block.name, self.size)


#: Shared memory that this process has mapped, by name. Every step of a run uses the same memory.
_mappings: dict[str, Any] = {}


def _attached(name: str, size: int) -> NDArray[np.uint8]:
    if name not in _mappings:
        from multiprocessing.shared_memory import SharedMemory

        _mappings[name] = SharedMemory(name=name)
    return np.frombuffer(_mappings[name].buf, np.uint8, size)


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


def _fits_in_shared_memory(size: int) -> bool:
    """Whether shared memory has space for this number of bytes. A write beyond its limit would end the process."""
    try:
        about = os.statvfs("/dev/shm")
    except (AttributeError, OSError):
        # This system has no separate file system for shared memory.
        return True
    return bool(about.f_bavail * about.f_frsize > 2 * size)


@dataclass(eq=False)
class _Call:
    """A call of a local worker, and its result."""

    arguments: tuple[Any, ...]
    #: Its result, or its error.
    value: Any = None
    error: Exception | None = None
    ended: bool = False

    def end(self, value: Any, error: Exception | None = None) -> None:
        self.value, self.error, self.ended = value, error, True


def _serve(pipe: Connection) -> None:
    """The loop of a worker process, which ends with its driver."""
    # The driver handles interrupts and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            try:
                answer = True, run_call(*pipe.recv())
            except EOFError:
                return
            except Exception as error:
                answer = False, error
            try:
                message = pickle.dumps(answer)
            except Exception as error:
                message = pickle.dumps((False, RuntimeError(f"an answer cannot be sent: {error}")))
            pipe.send_bytes(message)


class _Process:
    """A worker process with its own pipe, which closes when the process ends, even within an answer.

    Workers of an executor share queues instead. A worker that is killed while it writes to a queue or holds its lock
    blocks the other workers and the driver.
    """

    def __init__(self) -> None:
        import multiprocessing

        # A fork would be unsafe, because this process may have threads.
        spawn = multiprocessing.get_context("spawn")
        self.pipe, other_end = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(other_end,), daemon=True)
        self._process.start()
        other_end.close()
        self.call: _Call | None = None

    def ask(self, call: _Call) -> None:
        """Sends the call. Raises ``OSError`` if the process has ended. A pickling error becomes the error of the call."""
        try:
            message = pickle.dumps(call.arguments)
        except Exception as error:
            call.end(None, error)
            return
        self.call = call
        self.pipe.send_bytes(message)

    def answer(self) -> None:
        """Receives the answer of the call. Raises ``EOFError`` or ``OSError`` if the process has ended without one."""
        call, message = self.call, self.pipe.recv_bytes()
        assert call is not None
        self.call = None
        try:
            returned, value = pickle.loads(message)
        except Exception as error:
            returned, value = False, error
        call.end(*((value,) if returned else (None, value)))

    def close(self) -> None:
        self.pipe.close()
        self._process.terminate()
        self._process.join()


class _Local(AbstractContextManager["_Local"]):
    """Worker processes on this machine."""

    def __init__(self, workers: int | None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._processes: list[_Process | None] = [None] * self.workers
        #: Waiting calls for any worker, and queues of calls for each worker.
        self._waiting: deque[_Call] = deque()
        self._own_queues: list[deque[_Call]] = [deque() for _ in range(self.workers)]
        #: Several threads of a driver may send calls at the same time. One of them reads the answers for all.
        self._lock = threading.Condition()
        self._is_read = False

    def share(self, value: Any) -> Any:
        if isinstance(value, bytes) and len(value) >= LARGE and _fits_in_shared_memory(len(value)):
            return _InMemory(value)
        return value

    def start_workers(self) -> None:
        for index in range(self.workers):
            self._process(index)

    def buffer(self, size: int) -> SharedBuffer | None:
        return SharedBuffer(size) if size >= LARGE and _fits_in_shared_memory(size) else None

    def _process(self, index: int) -> _Process:
        process = self._processes[index]
        if process is None:
            process = self._processes[index] = _Process()
        return process

    def submit(self, call: tuple[Any, ...], group: int | None = None) -> _Call:
        handle = _Call(call)
        with self._lock:
            (self._waiting if group is None else self._own_queues[group % self.workers]).append(handle)
        return handle

    def wait(self, handles: Collection[_Call]) -> Collection[_Call]:
        with self._lock:
            while True:
                self._ask()
                done = [handle for handle in handles if handle.ended]
                if done:
                    return done
                if self._is_read:
                    self._lock.wait()
                else:
                    self._read()

    def _read(self) -> None:
        """Waits for answers, while other threads may send calls."""
        busy = {process.pipe: index for index, process in enumerate(self._processes) if process and process.call}
        self._is_read = True
        self._lock.release()
        try:
            ready = connection.wait(list(busy))
        finally:
            self._lock.acquire()
            self._is_read = False
            self._lock.notify_all()
        for pipe in ready:
            index = busy[pipe]  # type: ignore[index]
            try:
                self._process(index).answer()
            except (EOFError, OSError):
                self._lose(index)

    def _ask(self) -> None:
        """Sends calls to idle workers."""
        given: list[tuple[int, _Call]] = []
        for index, process in enumerate(self._processes):
            queue = self._own_queues[index] or self._waiting
            if queue and (process is None or process.call is None):
                given.append((index, queue.popleft()))
        # Start all workers before the first call, because a start takes time.
        for index, _ in given:
            self._process(index)
        for index, call in given:
            try:
                self._process(index).ask(call)
            except OSError:
                self._lose(index)

    def _lose(self, index: int) -> None:
        process = self._process(index)
        self._processes[index] = None
        if process.call is not None:
            process.call.end(None, Lost("a worker process ended without an answer"))
        process.close()

    def result(self, handle: _Call) -> Any:
        if handle.error is not None:
            raise handle.error
        return handle.value

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process is not None:
                process.close()


class _Mpi(AbstractContextManager["_Mpi | None"]):
    """MPI ranks. Rank 0 is the driver, and the other ranks run its calls until it ends."""

    executor: futures.Executor

    def __init__(self, workers: int | None) -> None:
        self._stack = ExitStack()
        mpi = extra("mpi4py.futures", "mpi")
        communicator = extra("mpi4py.MPI", "mpi").COMM_WORLD
        # A single rank serves its own calls, in a thread.
        ranks = max(communicator.Get_size() - 1, 1)
        if workers not in (None, ranks):
            raise ValueError(f"workers is {workers}, but MPI started {ranks} besides the driver: omit it")
        self.workers = ranks
        self._pool = mpi.MPICommExecutor(communicator, root=0)

    def __enter__(self) -> _Mpi | None:
        executor = self._stack.enter_context(self._pool)
        if executor is None:
            return None
        self.executor = executor
        return self

    def share(self, value: Any) -> Any:
        return value

    def start_workers(self) -> None:
        pass

    def buffer(self, size: int) -> SharedBuffer | None:
        return None

    def submit(self, call: tuple[Any, ...], group: int | None = None) -> futures.Future[Any]:
        return self.executor.submit(run_call, *call)

    def wait(self, handles: Collection[futures.Future[Any]]) -> Collection[futures.Future[Any]]:
        return futures.wait(handles, return_when=futures.FIRST_COMPLETED).done

    def result(self, handle: futures.Future[Any]) -> Any:
        try:
            return handle.result()
        except Exception as error:
            # Executors chain the error to the worker's traceback, which has the same message.
            raise error from None

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)


class _Actor:
    """A worker of Ray that serves many calls."""

    def run_call(self, *call: Any) -> Any:
        return run_call(*call)


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Makes Ray start on the loopback address, which only this machine can reach.

    On Linux, Ray uses the machine's network address even if the caller names the loopback address. A setting for other
    systems prevents this, and Ray reads it at import.
    """
    from ray._private import ray_constants  # type: ignore[import-not-found, unused-ignore]

    name = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    before = os.environ.get(name), ray_constants.ENABLE_RAY_CLUSTER
    os.environ[name], ray_constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before[1]
        if before[0] is None:
            del os.environ[name]
        else:
            os.environ[name] = before[0]


class _Ray(AbstractContextManager["_Ray"]):
    """Workers of a Ray cluster: the connected cluster, or the cluster of ``RAY_ADDRESS``, or a cluster on this machine."""

    def __init__(self, workers: int | None) -> None:
        self._ray = extra("ray", "ray")
        self._own = not self._ray.is_initialized()
        if self._own and "RAY_ADDRESS" in os.environ:
            self._ray.init(log_to_driver=False)
        elif self._own:
            with _on_loopback():
                self._ray.init(log_to_driver=False, num_cpus=workers, include_dashboard=False)
        self.workers = workers or max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
        # Ray only reports a lost worker. `each` repeats the call, as for all engines.
        self._run_call = self._ray.remote(num_cpus=1, max_retries=0)(run_call)
        self._actor = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Actor)
        self._actors: dict[int, Any] = {}
        #: For each unfinished call of a group, the index of the actor and the actor.
        self._grouped: dict[Any, tuple[int, Any]] = {}

    def share(self, value: Any) -> Any:
        return self._ray.put(value)

    def start_workers(self) -> None:
        pass

    def buffer(self, size: int) -> SharedBuffer | None:
        return None

    def submit(self, call: tuple[Any, ...], group: int | None = None) -> Any:
        if group is None:
            return self._run_call.remote(*call)
        index = group % self.workers
        if index not in self._actors:
            self._actors[index] = self._actor.remote()
        actor = self._actors[index]
        handle = actor.run_call.remote(*call)
        self._grouped[handle] = index, actor
        return handle

    def wait(self, handles: Collection[Any]) -> Collection[Any]:
        done, _ = self._ray.wait(list(handles), num_returns=1)
        return done  # type: ignore[no-any-return]

    def result(self, handle: Any) -> Any:
        index, actor = self._grouped.pop(handle, (None, None))
        try:
            return self._ray.get(handle)
        except self._ray.exceptions.RayTaskError as error:
            raise (error.cause or error) from None
        except self._ray.exceptions.RayError as error:
            if index is not None and self._actors.get(index) is actor:
                del self._actors[index]
            raise Lost(str(error).strip().split("\n")[0]) from error

    def __exit__(self, *_: object) -> None:
        # Ray ends an actor without references.
        self._actors.clear()
        if self._own:
            self._ray.shutdown()
