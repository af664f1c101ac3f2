"""Where targets are explained: in this process, in several, or on a cluster. The results are the same."""

from __future__ import annotations

from butfor.boundary.arguments import check_whole
from butfor.errors import InputError
from butfor.executors.base import Executor, Serial
from butfor.executors.processes import Processes
from butfor.executors.ray import Ray

__all__ = ["Executor", "Processes", "Ray", "Serial"]


def chosen_executor(jobs: int, executor: Executor | None) -> Executor | None:
    """The executor that these arguments ask for; None for a plain run in this process.

    Raises:
        InputError: they make no sense, or contradict each other.
    """
    check_whole(jobs, "jobs", 1)
    if executor is None:
        return Processes(jobs) if jobs > 1 else None
    if not isinstance(executor, Executor):
        raise InputError(f"executor is {executor!r}; give one such as butfor.Processes(2) or butfor.Ray()")
    if jobs > 1:
        raise InputError(f"jobs={jobs} and an executor are given together; the executor says how many workers it has")
    return executor
