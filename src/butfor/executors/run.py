"""Give shards to workers until all are done, whatever happens to workers."""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from butfor.errors import ButforError, InputError, one_line
from butfor.executors.base import Luggage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from concurrent.futures import Future

    from butfor.executors.base import Executor, Worker

__all__ = ["run"]

# A shard whose workers die so often is halved; an item that is alone in its shard is given up a little later, since
# workers also die for other reasons, and there is no way back.
PATIENCE, LAST_PATIENCE = 2, 3
# So many workers in a row may die before they are ready.
STARTS = 5


@dataclass(frozen=True)
class _Shard:
    items: tuple[Any, ...]
    deaths: int = 0

    def after_death(self) -> list[_Shard]:
        """What is to be tried now; nothing if the item is to be given up."""
        deaths, size = self.deaths + 1, len(self.items)
        if deaths < (PATIENCE if size > 1 else LAST_PATIENCE):
            return [replace(self, deaths=deaths)]
        return [_Shard(self.items[: size // 2]), _Shard(self.items[size // 2 :])] if size > 1 else []


# A new worker's first shard: it only makes itself ready.
_NOTHING = _Shard(())


def run(
    executor: Executor, work: Callable[[Sequence[Any]], Any], shards: Sequence[Sequence[Any]]
) -> Generator[tuple[tuple[Any, ...], Any]]:
    """The items of each shard with what the work returned for them, in the order in which they are done.

    An item that kills every worker comes alone, with None. A shard is otherwise done once, or again if its worker died
    on it: nothing of it was handed over then.

    Raises:
        InputError: the work cannot be sent to workers, or they die before they are ready.
    """
    todo = deque(_Shard(tuple(items)) for items in shards if items)
    luggage, size = Luggage(work), executor.size
    busy: dict[Future[Any], tuple[Worker, _Shard]] = {}
    idle: list[Worker] = []
    done: list[tuple[tuple[Any, ...], Any]] = []
    failed_starts = 0
    try:
        while True:
            while idle and todo:
                worker, shard = idle.pop(), todo.popleft()
                try:
                    busy[worker.submit(shard.items)] = worker, shard
                except executor.deaths:  # it died while it was idle
                    worker.stop()
                    todo.appendleft(shard)
            while len(busy) + len(idle) < min(size, len(busy) + len(todo)):
                worker = executor.start(luggage)
                busy[worker.submit(())] = worker, _NOTHING
            # Only now, so that no worker has to wait for whoever takes the results.
            while done:
                yield done.pop()
            # Nobody waits for a worker that is still to be ready, perhaps never: a cluster may be full.
            if not todo and all(shard is _NOTHING for _, shard in busy.values()):
                return
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                worker, shard = busy.pop(future)
                try:
                    result = future.result()
                except executor.deaths as problem:
                    worker.stop()
                    if shard is _NOTHING:
                        failed_starts += 1
                        if failed_starts == STARTS:
                            raise InputError(
                                f"{STARTS} workers in a row ended before they were ready ({one_line(problem)}); "
                                "if memory ran out, ask for fewer"
                            ) from problem
                    else:
                        left = shard.after_death()
                        todo.extendleft(reversed(left))
                        done += [] if left else [(shard.items, None)]
                except ButforError:
                    raise
                except Exception as problem:
                    if shard is not _NOTHING:
                        raise
                    cause = getattr(problem, "cause", problem)  # Ray wraps errors in its own
                    raise InputError(
                        f"a worker cannot make the model, graph or method ready ({one_line(cause)}); "
                        "explain in this process: jobs=1"
                    ) from problem
                else:
                    idle.append(worker)
                    if shard is _NOTHING:
                        failed_starts = 0
                    else:
                        done.append((shard.items, result))
    finally:
        for worker in [*idle, *(worker for worker, _ in busy.values())]:
            worker.stop()
