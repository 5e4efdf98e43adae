"""A learner's process gives what the task gives, survives its own death, and not its node's."""

import dataclasses
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import coopbandits as cb
from coopbandits.errors import LocalProtocolError, ParameterError
from coopbandits.fleet.learner import InlineLearner, LearningError, ProcessLearner

NETWORK = cb.Network.complete(5)
POLICY = cb.EagerKernelUCB(
    cb.kernels.Linear(),
    features=cb.features.Exact(),
    eta=0.3,
    similarity=cb.similarity.Evidence(chains=2),
)
PATIENCE = 20.0


def agent_with_news(rng, size=10):
    agent = POLICY.agent(1, NETWORK)
    for origin in range(5):
        agent.hear(origin, rng.normal(size=(size, 3)), rng.normal(size=size))
    return agent


@dataclasses.dataclass(frozen=True)
class Naps:
    """In the place of a task: takes its time."""

    seconds: float

    def run(self):
        time.sleep(self.seconds)


@dataclasses.dataclass(frozen=True)
class Raises:
    """In the place of a task: fails with what cannot be pickled."""

    def run(self):
        class LocalError(Exception):
            pass

        raise LocalError("no number is left")


@dataclasses.dataclass(frozen=True)
class Tells:
    """In the place of a task: says how its process is, instead of a result."""

    def run(self):
        pools = __import__("threadpoolctl").threadpool_info()
        threads = [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]
        ignored = [signal.getsignal(s) is signal.SIG_IGN for s in (signal.SIGINT, signal.SIGTERM)]
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        raise RuntimeError(repr((os.nice(0), threads, ignored, sorted(blocked))))


class Running:
    """A learner, and what it has finished."""

    def __init__(self, learner):
        self.learner, self.finished = learner, queue.Queue()
        learner.start(lambda number, outcome: self.finished.put((number, outcome)))

    def outcome(self, number, task):
        self.learner.submit(number, task)
        found, outcome = self.finished.get(timeout=PATIENCE)
        assert found == number
        return outcome


@pytest.fixture(scope="module")
def process():
    with pytest.MonkeyPatch.context() as patch:
        # which the process is to change
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            patch.setenv(name, "2")
        running = Running(ProcessLearner())
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(running.learner.pid, number)  # while it starts
    yield running
    running.learner.close()


@pytest.fixture(params=["inline", "process"])
def running(request, process):
    if request.param == "process":
        return process
    return Running(InlineLearner())


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for(condition, seconds=PATIENCE):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_result_is_to_the_bit_what_the_task_gives(running, rng):
    agent = agent_with_news(rng)
    restored = cb.Agent.from_bytes(agent.to_bytes(), policy=POLICY, network=NETWORK)
    for number in range(3):
        result = running.outcome(number, agent.learning_task())
        agent.adopt(result)
        restored.adopt(restored.learning_task().run())
        assert agent.to_bytes() == restored.to_bytes()
        X, y = rng.normal(size=(5, 3)), rng.normal(size=5)
        for one in (agent, restored):
            one.hear(2, X, y)
    contexts = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(
        agent.predict(contexts, learn=False).mean, restored.predict(contexts, learn=False).mean
    )


def test_a_task_that_fails_is_told_and_the_next_one_runs(running, rng):
    failed = running.outcome(1, Raises())
    assert isinstance(failed, Exception)
    assert "no number is left" in str(failed)
    task = agent_with_news(rng).learning_task()
    assert running.outcome(2, task).number == task.run().number


def test_a_task_that_cannot_be_pickled_is_told_and_the_next_one_runs(process, rng):
    failed = process.outcome(1, lambda: None)
    assert isinstance(failed, LearningError)
    assert "learning task 1 failed" in str(failed)
    assert process.outcome(2, agent_with_news(rng).learning_task()).known == 50


def test_the_process_leaves_signals_to_the_node_and_cores_to_decisions(process):
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(process.learner.pid, number)
    told = str(process.outcome(1, Tells()))
    threads = told.partition("[")[2].partition("]")[0].split(", ")
    assert set(threads) == {"1"}
    nice = os.nice(0) + 5
    assert f"({nice}, " in told
    assert told.endswith("[True, True], [])")


def test_submitting_never_waits_and_takes_one_at_a_time(process):
    process.learner.submit(1, Naps(1.0))
    assert process.finished.empty()
    with pytest.raises(LocalProtocolError, match="task 2 was submitted while another runs"):
        process.learner.submit(2, Naps(0))
    assert process.finished.get(timeout=PATIENCE)[0] == 1


def test_a_process_that_is_killed_is_told_of_and_started_again(rng):
    running = Running(ProcessLearner())
    try:
        pid = running.learner.pid
        running.learner.submit(1, Naps(60))
        time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        number, outcome = running.finished.get(timeout=PATIENCE)
        assert number == 1
        assert isinstance(outcome, LearningError)
        assert "learning task 1 ended before its result (exit code -9)" in str(outcome)
        wait_for(lambda: running.learner.pid not in (pid, None))
        # and once more, while it has nothing to do
        second = running.learner.pid
        os.kill(second, signal.SIGKILL)
        wait_for(lambda: not alive(second))
        task = agent_with_news(rng).learning_task()
        result = running.outcome(2, task)
        np.testing.assert_array_equal(result.posterior.mean, task.run().posterior.mean)
        assert running.learner.pid not in (pid, second)
    finally:
        running.learner.close()


def test_closing_ends_the_process_whatever_it_runs():
    before = threading.active_count()
    running = Running(ProcessLearner())
    pid = running.learner.pid
    running.learner.submit(1, Naps(60))
    begun = time.monotonic()
    running.learner.close()
    assert time.monotonic() - begun < PATIENCE  # it naps for longer
    assert not alive(pid)
    assert threading.active_count() == before
    running.learner.close()
    running.learner.submit(2, Naps(0))
    time.sleep(0.1)
    assert running.finished.empty()
    with pytest.raises(LocalProtocolError, match="started already"):
        running.learner.start(print)


def test_learners_start_before_they_take_tasks():
    for learner in (InlineLearner(), ProcessLearner()):
        with pytest.raises(LocalProtocolError, match="call start before submit"):
            learner.submit(1, Naps(0))
        learner.close()
    with pytest.raises(ParameterError, match="context must be"):
        ProcessLearner("threads")


def test_a_process_with_threads_is_not_forked():
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    try:
        with pytest.raises(ParameterError, match="start the learner first"):
            ProcessLearner("fork").start(print)
    finally:
        stop.set()
        other.join()


NODE = """
import sys, threading, time
sys.path.insert(0, {folder!r})
import test_learner
from coopbandits.fleet.learner import ProcessLearner

if __name__ == "__main__":
    learner = ProcessLearner({context!r})
    done = threading.Event()
    learner.start(lambda number, outcome: done.set())
    if {ending!r} == "kill in a task":
        learner.submit(1, test_learner.Naps(60))
    else:
        learner.submit(1, test_learner.Naps(0))
        done.wait(20)
    time.sleep(0.2)
    print(learner.pid, flush=True)
    if {ending!r}.startswith("kill"):
        time.sleep(60)
"""


@pytest.mark.parametrize(
    ("context", "ending"),
    [
        ("fork", "kill in a task"),
        ("spawn", "kill in a task"),
        pytest.param("fork", "kill without one", marks=pytest.mark.slow),
        pytest.param("spawn", "kill without one", marks=pytest.mark.slow),
        ("fork", "no close"),
        pytest.param("spawn", "no close", marks=pytest.mark.slow),
    ],
)
def test_no_process_outlives_its_node(tmp_path, context, ending):
    script = tmp_path / "node.py"
    script.write_text(
        NODE.format(folder=str(Path(__file__).parent), context=context, ending=ending)
    )
    node = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        child = int(node.stdout.readline())
        assert ending == "no close" or alive(child)
        if ending != "no close":
            node.kill()
        assert node.wait(timeout=PATIENCE) == (0 if ending == "no close" else -9)
        wait_for(lambda: not alive(child))
    finally:
        node.kill()
        node.wait()
        node.stdout.close()
