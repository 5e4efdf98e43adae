"""Learners run learning tasks off the request path: at once, or in a process of their own.

The process ends with the node's, however that ends; Ctrl-C and SIGTERM are the node's to answer, so
it ignores them. It runs at a lower priority, with one BLAS thread.
"""

import atexit
import ctypes
import fcntl
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess, SpawnProcess
from pathlib import Path
from tempfile import gettempdir
from typing import Literal

from coopbandits.agent.learning import LearningResult, LearningTask
from coopbandits.errors import CoopBanditsError, LocalProtocolError, ParameterError

PATIENCE = 2.0  # seconds for which `close` waits

_NICE = 5
_ORPHANED = 0.25  # seconds between two looks for the parent
_TURN = 120.0  # seconds for which a first task waits for those of other nodes
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_BLAS_CALLS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
    "MKL_Set_Num_Threads",
)

Finished = Callable[[int, LearningResult | Exception], None]


class LearningError(CoopBanditsError):
    """A learning task failed in its process, or its process ended."""


class InlineLearner:
    """Runs a task when it is submitted, and says at once what came of it."""

    def __init__(self) -> None:
        self._finished: Finished | None = None
        self._closed = False

    def start(self, finished: Finished) -> None:
        """Begin; `finished` is called by `submit`."""
        if self._finished is not None or self._closed:
            raise LocalProtocolError("the learner was started already; make another")
        self._finished = finished

    def submit(self, number: int, task: LearningTask) -> None:
        """Run a task."""
        if self._closed:
            return
        if self._finished is None:
            raise LocalProtocolError("the learner was not started; call start before submit")
        outcome: LearningResult | Exception
        try:
            outcome = task.run()
        except Exception as error:  # whatever it is, it is handed to who submitted the task
            outcome = error
        self._finished(number, outcome)

    def close(self) -> None:
        """End."""
        self._closed = True


class ProcessLearner:
    """Runs tasks in one process, which is started again when it dies.

    `submit` never waits: a thread sends the task, waits for its result and calls `finished`. That
    must not raise. Tasks and results are pickled, and go through a pipe to the own child only.

    Args:
        context: How the process is started first: "spawn" takes a second or two, during which tasks
            wait; "fork" none, but nothing may have started a thread yet, Zenoh's included. If it
            dies it is spawned.
    """

    def __init__(self, context: Literal["spawn", "fork"] = "spawn") -> None:
        if context not in ("spawn", "fork"):
            raise ParameterError(f'context must be "spawn" or "fork", got {context!r}')
        self._context: Literal["spawn", "fork"] = context
        self._tasks: queue.SimpleQueue[tuple[int, LearningTask] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._busy = False
        self._closed = False
        self._child: _Child | None = None
        self._thread: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """The process's id; None if there is none."""
        child = self._child
        return None if child is None else child.pid

    def start(self, finished: Finished) -> None:
        """Start the process; `finished` is called from a thread, for one task at a time."""
        if self._thread is not None or self._closed:
            raise LocalProtocolError("the learner was started already; make another")
        if self._context == "fork" and threading.active_count() > 1:
            raise ParameterError(
                f'context="fork" with {threading.active_count()} threads running, of which a fork '
                'copies the locks but not the threads; start the learner first, or take "spawn"'
            )
        # Else the interpreter, at its end, would send the process a SIGTERM and wait for ever.
        atexit.register(self.close)
        self._child = _Child(self._context)
        self._thread = threading.Thread(target=self._work, args=(finished,), daemon=True)
        self._thread.start()

    def submit(self, number: int, task: LearningTask) -> None:
        """Let a task be run; the one before must have finished."""
        if self._closed:
            return
        if self._thread is None:
            raise LocalProtocolError("the learner was not started; call start before submit")
        with self._lock:
            if self._busy:
                raise LocalProtocolError(
                    f"task {number} was submitted while another runs; wait until that is finished"
                )
            self._busy = True
        self._tasks.put((number, task))

    def close(self) -> None:
        """Kill the process, whatever it runs, and end within about `PATIENCE`."""
        with self._lock:
            self._closed = True
            child, self._child = self._child, None
        atexit.unregister(self.close)
        if child is not None:
            child.kill()
        self._tasks.put(None)
        if self._thread not in (None, threading.current_thread()):
            self._thread.join(PATIENCE)
        if child is not None:
            child.join(PATIENCE)

    def _work(self, finished: Finished) -> None:
        while (item := self._tasks.get()) is not None:
            number, task = item
            self._renew()  # it may have died while there was nothing to do
            child = self._child
            if child is None:
                return
            outcome = child.run(number, task)
            with self._lock:
                if self._closed:
                    return
                self._busy = False
            finished(number, outcome)
            self._renew()  # so that the next task need not wait for it

    def _renew(self) -> None:
        with self._lock:
            if self._child is not None and not self._child.alive:
                self._child.kill()
                self._child = _Child("spawn")


class _Child:
    """The process, and the parent's end of its pipe."""

    def __init__(self, context: Literal["spawn", "fork"]) -> None:
        forked = context == "fork"
        ours, theirs = multiprocessing.Pipe()
        # What a forked child must close: with it open, it would not see the parent's end go.
        shut = ours if forked else None
        process = ForkProcess if forked else SpawnProcess
        self._pipe = ours
        self._process = process(
            target=_serve, args=(theirs, shut, os.getpid()), name="learner", daemon=True
        )
        if not forked:
            resource_tracker.ensure_running()  # it lets signals through again when it starts
        with _held(_SIGNALS):  # till the child ignores them
            self._process.start()
        theirs.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def run(self, number: int, task: LearningTask) -> LearningResult | LearningError:
        """Send a task, and wait for its result or what went wrong."""
        try:
            self._pipe.send(task)
            found: LearningResult | str = self._pipe.recv()
        except (OSError, EOFError):
            return LearningError(
                f"the process of learning task {number} ended before its result (exit code "
                f"{self.join(PATIENCE)}); it is started again"
            )
        except Exception as error:  # the task cannot be pickled
            found = _told(error)
        if isinstance(found, str):
            return LearningError(f"learning task {number} failed: {found}")
        return found

    def kill(self) -> None:
        self._process.kill()

    def join(self, seconds: float) -> int | None:
        """Wait for its end, and return the exit code; None if it has not ended."""
        self._process.join(seconds)
        return self._process.exitcode


def _serve(pipe: Connection, shut: Connection | None, parent: int) -> None:
    """Be the process: run one task after another till the parent is gone."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if shut is not None:
        shut.close()
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    os.nice(_NICE)
    _use_one_blas_thread()
    try:
        data = pipe.recv_bytes()
        with _turn():  # the first task compiles, and what it compiled is cached for the others
            pipe.send(_answer(data))
        while True:
            pipe.send(_answer(pipe.recv_bytes()))
    except (EOFError, OSError):
        return


@contextmanager
def _turn() -> Iterator[None]:
    """Take turns with the learners of other nodes on this machine, for a bounded time."""
    path = Path(gettempdir()) / f"coopbandits-learner-{os.getuid()}"
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:  # it is somebody else's: all compile at once
        yield
        return
    try:
        until = time.monotonic() + _TURN
        while not _locks(file) and time.monotonic() < until:
            time.sleep(_ORPHANED)
        yield
    finally:
        os.close(file)


def _locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _answer(data: bytes) -> LearningResult | str:
    """Run a task; say what went wrong in words, as not every exception can be pickled."""
    try:
        task: LearningTask = pickle.loads(data)
        return task.run()
    except Exception as error:
        return _told(error)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _follow(parent: int) -> None:
    """End the process when its parent has, even in the middle of a task."""
    while os.getppid() == parent:
        time.sleep(_ORPHANED)
    os._exit(1)


def _use_one_blas_thread() -> None:
    """Set it for libraries that are loaded later, and in those that are there already."""
    os.environ.update(dict.fromkeys(_BLAS_VARIABLES, "1"))
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    files = {line.split(maxsplit=5)[-1] for line in lines if "/" in line}
    for file in sorted(file for file in files if "openblas" in file or "libmkl_rt" in file):
        library = ctypes.CDLL(file)
        for name in _BLAS_CALLS:
            if hasattr(library, name):
                getattr(library, name)(ctypes.c_int(1))


@contextmanager
def _held(signals: tuple[signal.Signals, ...]) -> Iterator[None]:
    """Let signals wait in this thread, and in a process that it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
