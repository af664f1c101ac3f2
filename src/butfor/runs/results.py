"""Results as they are on disk, read one after the other: a file or a folder of them may be larger than memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, overload

from butfor.boundary.printable import printable
from butfor.boundary.reading import check_file, reading
from butfor.errors import StoreError
from butfor.result.lines import read_lines
from butfor.result.result_list import ResultList
from butfor.result.status import Status
from butfor.result.table import to_frame, to_html
from butfor.runs.folder import read_manifest, shard_paths
from butfor.runs.shards import read_shard
from butfor.runs.store import repeated

if TYPE_CHECKING:
    import os

    from butfor.result.counterfactual import Counterfactual

__all__ = ["Results", "load_results", "read_results"]


@dataclass(frozen=True, eq=False, repr=False)
class Results(Sequence["Counterfactual"]):
    """The results of a file or folder, read anew whenever they are gone through; `load_results` makes one.

    Attributes:
        path: the file or folder.
        shards: the files of the folder; None for a single file.
        targets: which targets are wanted; None for all.
        statuses: which statuses are wanted; None for all.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.explain(model, data, [597, 600, 605]).save("results.jsonl")
        >>> results = butfor.load_results("results.jsonl")
        >>> sum(cf.size for cf in results)
        4
        >>> results.where(targets=[600, 605]).to_frame().select("target", "size").rows()
        [(600, 1), (605, 2)]
    """

    path: Path
    shards: tuple[Path, ...] | None = None
    targets: frozenset[int | tuple[int, int]] | None = None
    statuses: frozenset[str] | None = None

    def where(
        self,
        *,
        targets: Iterable[int | tuple[int, int]] | None = None,
        status: Status | str | Iterable[Status | str] | None = None,
    ) -> Results:
        """Only the results of these targets, or with one of these statuses.

        Args:
            targets: nodes, pairs of nodes or numbers of graphs; by default all.
            status: one status or several, such as "optimal"; by default all.
        """
        wanted = [status] if isinstance(status, str) else status
        return replace(
            self,
            targets=self.targets if targets is None else frozenset(map(_plain, targets)),
            statuses=self.statuses if wanted is None else frozenset(str(one) for one in wanted),
        )

    def __iter__(self) -> Iterator[Counterfactual]:
        found = _from_file(self.path) if self.shards is None else _from_shards(self.shards)
        for result in found:
            if (self.targets is None or result.target in self.targets) and (
                self.statuses is None or result.status.value in self.statuses
            ):
                yield result

    def __len__(self) -> int:
        return self._length

    @cached_property
    def _length(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, position: int) -> Counterfactual: ...
    @overload
    def __getitem__(self, position: slice) -> ResultList: ...
    def __getitem__(self, position: int | slice) -> Counterfactual | ResultList:
        if isinstance(position, slice):
            return ResultList(self[number] for number in range(*position.indices(len(self))))
        if position < 0:
            position += len(self)
        for result in islice(self, max(position, 0), None):
            return result
        raise IndexError(f"there are {len(self)} results")

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def to_frame(self, kind: str = "polars") -> Any:
        """A table with one row for each result.

        Args:
            kind: "polars" or "pandas".

        Raises:
            InputError: ``kind`` is neither "polars" nor "pandas", or these are not installed.
        """
        return to_frame(self, kind)

    def __repr__(self) -> str:
        return f"<{self._told}>"

    def _repr_html_(self) -> str:
        # To count them all is to read them all; only what was counted before is counted here.
        return to_html(self, self._told, self.__dict__.get("_length"))

    @property
    def _told(self) -> str:
        chosen = [] if self.targets is None else [f"of {len(self.targets)} targets"]
        chosen += [] if self.statuses is None else [f"that are {' or '.join(sorted(self.statuses))}"]
        return " ".join(["Results in", printable(str(self.path)), *chosen])


def load_results(path: str | os.PathLike[str]) -> Results:
    """The results of a file or folder that ``butfor explain --out`` wrote, without loading them all.

    They can be gone through, counted, filtered (``where``) and turned into a table (``to_frame``). What a run that is
    still going on, or was killed, had not finished writing is left out.

    Args:
        path: a file of JSON Lines, or a folder of shards.

    Raises:
        StoreError: there is no such file or folder of results.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.explain(model, data, [600, 605, 606]).save("results.jsonl")
        >>> results = butfor.load_results("results.jsonl")
        >>> results
        <Results in results.jsonl>
        >>> len(results), results[0].size
        (3, 1)
        >>> [cf.target for cf in results.where(status="optimal")]
        [600, 605, 606]
    """
    path = Path(path)
    if path.is_dir():
        read_manifest(path)
        return Results(path, tuple(shard_paths(path)))
    check_file(path, StoreError)
    return Results(path)


def read_results(path: str | os.PathLike[str]) -> list[Counterfactual]:
    """All results of a file or folder, in the order in which they were written, those that failed behind the others.

    A last line whose writing was interrupted is left out, with a warning.

    Args:
        path: a file of JSON Lines, or a folder of shards.

    Raises:
        StoreError: the file is missing or damaged, or a target is in it twice.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.explain(model, data, [597, 600, 605]).save("results.jsonl")
        >>> from butfor.runs import read_results
        >>> [cf.target for cf in read_results("results.jsonl")]
        [597, 600, 605]
    """
    return list(load_results(path))


def _from_shards(shards: Iterable[Path]) -> Iterator[Counterfactual]:
    # Where a file system has no locks, two runs may have done the same: the results are the same too.
    return _once((result, None) for shard in shards for result in read_shard(shard))


def _from_file(path: Path) -> Iterator[Counterfactual]:
    with reading(path, StoreError):
        file = path.open("rb")
    with file:
        yield from _once(_complete_lines(path, file))


def _complete_lines(path: Path, file: IO[bytes]) -> Iterator[tuple[Counterfactual, StoreError]]:
    """The results of a file, each with what is wrong if its target has one already."""
    for line in read_lines(path, file):
        if line.result is not None and line.complete:
            yield line.result, repeated(path, line.number, line.result.target_name)
            continue
        if line.start == 0 and not line.certain:
            raise StoreError(f"{path} holds no whole result: this is not a file of results, choose another")
        warnings.warn(f"the last line of {path} is incomplete and left out", stacklevel=2)


def _once(results: Iterable[tuple[Counterfactual, StoreError | None]]) -> Iterator[Counterfactual]:
    """Each target once. A result that failed gives way to another of its target, so it comes behind all others."""
    seen: set[int | tuple[int, int]] = set()
    failed: dict[int | tuple[int, int], Counterfactual] = {}
    for result, repetition in results:
        if result.target in seen:
            if repetition is not None:
                raise repetition
        elif result.status is Status.FAILED:
            failed[result.target] = result
        else:
            seen.add(result.target)
            yield result
    yield from (result for target, result in failed.items() if target not in seen)


def _plain(target: int | tuple[int, int]) -> int | tuple[int, int]:
    return (int(target[0]), int(target[1])) if isinstance(target, tuple) else int(target)
