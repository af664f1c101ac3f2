"""Searches that go on while the page is looked at: started, asked how they get on, stopped."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

from butfor.boundary.printable import printable
from butfor.errors import ButforError, InputError, one_line
from butfor.problem.listener import Listener

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.problem.listener import SearchState
    from butfor.result.counterfactual import Counterfactual

__all__ = ["Searches"]

# So many searches are remembered; the page asks about the last.
KEPT = 8


class _Search(Listener):
    """One search in a thread of its own."""

    def __init__(self, find: Callable[[Listener], Counterfactual]) -> None:
        super().__init__()
        self._state: SearchState | None = None
        self._result: Counterfactual | None = None
        self._error = ""
        self._thread = threading.Thread(target=self._run, args=(find,), name="butfor-search", daemon=True)
        self._thread.start()

    def _run(self, find: Callable[[Listener], Counterfactual]) -> None:
        try:
            self._result = find(self)
        except ButforError as problem:
            self._error = str(problem)
        except Exception as problem:  # the page says what went wrong, whatever the user's model raised
            self._error = one_line(problem)

    def hear(self, state: SearchState) -> None:
        self._state = state

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    @property
    def plain(self) -> dict[str, Any]:
        """How it gets on, for the page."""
        running, state = self._thread.is_alive(), self._state
        plain: dict[str, Any] = {"running": running, "error": printable(self._error)}
        if state is not None:
            plain |= {
                "evaluations": state.evaluations,
                "seconds": round(state.seconds, 2),
                "cost": state.cost,
                "bound": state.lower_bound,
                "edits": [edit.plain for edit in state.edits],
            }
        if self._result is not None and not running:
            plain["result"] = _told(self._result)
        return plain


def _told(result: Counterfactual) -> dict[str, Any]:
    sets = [result.edits, *result.alternatives] if result.found else []
    return {
        "status": result.status.value,
        "sentence": str(result),
        "verdict": printable(result.verdict),
        "note": printable(result.note),
        "cost": result.cost if result.found else None,
        "bound": result.lower_bound,
        "verified_on": result.verified_on,
        "sets": [[edit.plain for edit in edits] for edits in sets],
        "json": result.to_dict(),
    }


class Searches:
    """The searches of one page; a new one stops those before it."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._known: dict[int, _Search] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(self, find: Callable[[Listener], Counterfactual]) -> int:
        """Begin a search; returns its number.

        Raises:
            InputError: the page has been closed.
        """
        with self._lock:
            if self._closed:
                raise InputError("the explorer has ended")
            for search in self._known.values():
                search.stop()
            number = next(self._numbers)
            self._known[number] = _Search(find)
            for old in list(self._known)[:-KEPT]:
                del self._known[old]
        return number

    def progress(self, number: object) -> dict[str, Any]:
        """How a search gets on, and its result when it is done."""
        return self._search(number).plain

    def stop(self, number: object) -> None:
        """End a search; its answer is what it has found so far."""
        self._search(number).stop()

    def close(self) -> None:
        """End all searches, wait for them, and begin no more."""
        with self._lock:
            self._closed = True
            known = list(self._known.values())
        for search in known:
            search.stop()
        for search in known:
            search.join()

    def _search(self, number: object) -> _Search:
        search = self._known.get(number) if type(number) is int else None
        if search is None:
            raise InputError("this search is not known any more; start it again")
        return search
