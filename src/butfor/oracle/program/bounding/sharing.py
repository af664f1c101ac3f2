"""A search that several threads share: who has nothing left to do takes over what another would look at last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.base import Sieve, Sieved

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Search", "SharedSieve"]

# Other threads take part where a search goes on for so many evaluations at a time, which takes many times as long as it
# takes to hand a part of it over.
WORTH_A_THREAD = 1024


class Search(ABC):
    """A search through a tree of branches, in one thread: at each branch an edit is made first, and excluded later."""

    @abstractmethod
    def run(self, most: int) -> None:
        """Search on until bounds have cost as much as ``most`` evaluations, enough was found, or all is done.

        This is compiled, and lets other threads run.
        """

    @abstractmethod
    def handed_over(self) -> Sieved:
        """What the last run has found, and whether that was all."""

    @property
    @abstractmethod
    def first_to_exclude(self) -> int | None:
        """How many edits are decided before the first that is made and is still to be excluded; None if none is."""

    @abstractmethod
    def given_away(self) -> Search:
        """A search of its own for all branches that exclude that edit; what is left to this one has it made."""


class SharedSieve(Sieve):
    """One search, and those that take over parts of it.

    Args:
        search: the whole of it.
        most_threads: how many there is memory for.
    """

    def __init__(self, search: Search, most_threads: int) -> None:
        self._searches, self._most_threads = [search], most_threads

    def next(self, most: int, threads: int = 1) -> Sieved:
        """Search on until bounds have cost as much as ``most`` evaluations, enough was found, or all is done.

        Each thread may spend that much. Sets do not come in the order in which one thread would find them.
        """
        if most >= WORTH_A_THREAD:
            self._share(min(threads, self._most_threads))
        _run_all(self._searches, most)
        parts = [search.handed_over() for search in self._searches]
        self._searches = [search for search, part in zip(self._searches, parts, strict=True) if not part.done]
        return _joined(parts)

    def _share(self, threads: int) -> None:
        """Let so many threads have something to do, if there is enough of it."""
        while len(self._searches) < threads:
            # The fewer edits are decided, the more there is to look at.
            places = [(search.first_to_exclude, number) for number, search in enumerate(self._searches)]
            divisible = [(place, number) for place, number in places if place is not None]
            if not divisible:
                return
            self._searches.append(self._searches[min(divisible)[1]].given_away())


def _run_all(searches: Sequence[Search], most: int) -> None:
    """Each in a thread of its own."""
    if len(searches) == 1:
        searches[0].run(most)
        return
    with ThreadPoolExecutor(len(searches)) as pool:
        list(pool.map(partial(_run, most), searches))


def _run(most: int, search: Search) -> None:
    search.run(most)


def _joined(parts: Sequence[Sieved]) -> Sieved:
    """What several searches have handed over, as if it were one."""
    begins = np.cumsum([0, *(len(part.candidates) for part in parts)])
    pointers = [part.pointers[1:] + begin for part, begin in zip(parts, begins[:-1], strict=True)]
    return Sieved(
        np.concatenate([part.prefixes for part in parts]),
        np.concatenate([part.candidates for part in parts]),
        np.concatenate([np.zeros(1, np.int64), *pointers]),
        sum(part.spent for part in parts),
        all(part.done for part in parts),
    )
