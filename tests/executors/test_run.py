"""Whatever happens to workers, every item is done, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

import pytest

from butfor.errors import InputError
from butfor.executors import Executor, Processes, Serial, chosen_executor
from butfor.executors.run import run
from shard_work import DeadlyToMake, Killer, Squares, Unwelcome, raising

if TYPE_CHECKING:
    from butfor.executors.base import Luggage, Worker

SHARDS = [list(range(start, start + 7)) for start in range(0, 70, 7)]


def squares(executor: Executor, work: Squares, shards: list[list[int]] = SHARDS) -> dict[int, int | None]:
    """The square of each item, None for those that were given up; each must come once."""
    found: dict[int, int | None] = {}
    for items, results in run(executor, work, shards):
        for item, square in zip(items, [(None, 0)] if results is None else results, strict=True):
            assert item not in found
            found[item] = square[0]
    return found


@pytest.mark.parametrize("executor", [Serial(), Processes(1), Processes(3)])
def test_every_item_is_done_once(executor: Executor) -> None:
    assert squares(executor, Squares()) == {item: item**2 for item in range(70)}
    assert squares(executor, Squares(), []) == {}


def test_work_is_done_in_other_processes_of_which_none_is_left() -> None:
    pids = {pid for _, results in run(Processes(2), Squares(seconds=0.01), SHARDS) for _, pid in results}
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be blocked here")
def test_not_even_the_first_process_hears_ctrl_c() -> None:
    """In a new interpreter, where the trackers of multiprocessing have yet to start."""
    code = (
        "import signal\n"
        "from butfor.executors import Processes\n"
        "from butfor.executors.run import run\n"
        "def blocked(items):\n"
        "    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
        "print([deaf for _, deaf in run(Processes(1), blocked, [[1], [2]])])\n"
        "print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[True, True]\nFalse\n", "")


def test_whoever_stops_early_stops_the_workers() -> None:
    running = run(Processes(2), Squares(seconds=0.01), SHARDS)
    _, results = next(running)
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(results[0][1], 0)


def test_an_item_that_kills_its_workers_is_found_and_the_rest_is_done() -> None:
    expected = {item: None if item in (3, 38) else item**2 for item in range(70)}
    assert squares(Processes(2), Squares(deadly=(3, 38))) == expected


@pytest.mark.slow
def test_workers_that_are_killed_at_twenty_random_moments() -> None:
    killer = Killer(20, seed=0, pause=0.05)
    shards = [list(range(start, start + 5)) for start in range(0, 1500, 5)]
    found: dict[int, int] = {}
    for items, results in run(Processes(2), Squares(seconds=0.01), shards):
        for item, (square, _) in zip(items, results, strict=True):
            assert item not in found
            found[item] = square
        killer.saw(results[-1][1])
    assert killer.killed == 20
    assert found == {item: item**2 for item in range(1500)}


class _Waiting:
    """A worker that no cluster has a place for."""

    def submit(self, items: tuple[int, ...]) -> Future[None]:
        return Future()

    def stop(self) -> None:
        pass


class _Crowded(Serial):
    """One worker of three gets a place."""

    size = 3

    def start(self, luggage: Luggage) -> Worker:
        first = not vars(luggage).get("taken")
        vars(luggage)["taken"] = True
        return super().start(luggage) if first else _Waiting()


def test_nobody_waits_for_workers_that_find_no_place() -> None:
    assert squares(_Crowded(), Squares()) == {item: item**2 for item in range(70)}


@pytest.mark.parametrize("executor", [Serial(), Processes(2)])
def test_an_error_of_the_work_is_raised(executor: Executor) -> None:
    with pytest.raises(ZeroDivisionError, match="of"):
        list(run(executor, raising, SHARDS))


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (Unwelcome(), r"cannot make the model.* ready \(ImportError: there is no such model here\).*jobs=1"),
        (DeadlyToMake(), "5 workers in a row ended before they were ready"),
        (threading.Lock(), r"cannot be sent to another process \(TypeError: .*lock.*\).*jobs=1"),
    ],
)
def test_work_that_cannot_travel(work: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(run(Processes(2), work, SHARDS))


def test_what_may_be_asked_for() -> None:
    assert chosen_executor(1, None) is None
    assert chosen_executor(3, None) == Processes(3)
    assert chosen_executor(1, Serial()) == Serial()
    for jobs, executor, message in [
        (0, None, "jobs is 0"),
        (1.5, None, "jobs is 1.5"),
        (2, Serial(), "given together"),
        (1, "ray", "executor is 'ray'"),
    ]:
        with pytest.raises(InputError, match=message):
            chosen_executor(jobs, executor)
    with pytest.raises(InputError, match="jobs is 0"):
        Processes(0)
