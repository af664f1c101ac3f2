"""Workers that are actors of a Ray cluster, or of this machine where there is none."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from butfor.boundary.arguments import check_whole
from butfor.boundary.extras import optional_imports
from butfor.errors import InputError
from butfor.executors.base import Executor, Luggage, Unpacked, Worker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

__all__ = ["Ray"]


@dataclass(frozen=True)
class Ray(Executor):
    """Actors of a Ray cluster, each with one CPU: ``butfor.explain(model, data, targets, executor=butfor.Ray())``.

    Ray is started on this machine unless there is an address or it runs already. The model is sent to the workers by
    Ray; a class that it needs must be importable there, or be defined in the script that is run.

    Attributes:
        address: the cluster, as in ``ray.init``: "auto", "ray://head:10001".
        workers: how many actors; by default as many as the cluster has CPUs.

    Examples:
        >>> import butfor
        >>> executor = butfor.Ray("ray://head:10001", workers=32)
        >>> executor
        Ray(address='ray://head:10001', workers=32)
    """

    address: str | None = None
    workers: int | None = None
    _sent: dict[Luggage, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.workers is not None:
            check_whole(self.workers, "workers", 1)

    @property
    def size(self) -> int:
        """How many actors there are to be."""
        ray = self._connected()
        return self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))

    def start(self, luggage: Luggage) -> Worker:
        """A new actor; Ray finds a place for it."""
        ray = self._connected()
        if luggage not in self._sent:
            self._sent.clear()
            self._sent[luggage] = ray.put(luggage.packed)
        # Ray itself tries nothing again: whoever gives out the shards does, and knows what was lost.
        options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0}
        return _Actor(ray, ray.remote(**options)(Unpacked).remote(self._sent[luggage], tuple(sys.path)))

    @property
    def deaths(self) -> tuple[type[BaseException], ...]:
        """What Ray raises for an actor that was killed, or whose machine went away."""
        from ray import exceptions as known

        return (
            known.RayActorError,
            known.WorkerCrashedError,
            known.NodeDiedError,
            known.ObjectLostError,
            known.OutOfMemoryError,
        )

    def _connected(self) -> Any:
        with optional_imports():
            import ray

        if not ray.is_initialized():
            settings: dict[str, Any] = {} if self.address else {"num_cpus": self.workers, "include_dashboard": False}
            try:
                ray.init(self.address, log_to_driver=False, logging_level="error", **settings)
            except (ConnectionError, ValueError, RuntimeError) as problem:
                raise InputError(f"cannot reach a Ray cluster at {self.address}: {problem}") from problem
        return ray


@dataclass(frozen=True, eq=False)
class _Actor:
    ray: Any
    handle: Any

    def submit(self, items: Sequence[Any]) -> Future[Any]:
        future: Future[Any] = self.handle.__call__.remote(items).future()
        return future

    def stop(self) -> None:
        self.ray.kill(self.handle)
