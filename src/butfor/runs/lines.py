"""Result files as text: one counterfactual per line, and what can be wrong with one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from butfor.counterfactual import Counterfactual
from butfor.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

__all__ = ["Line", "read_lines", "to_line", "why"]

# How every line begins. Only what begins like this may ever be cut off as an interrupted write: a file of
# another kind whose last line has no end must never lose it.
_BEGINNING = b'{"schema": '


@dataclass(frozen=True)
class Line:
    """One line of a result file.

    Attributes:
        number: counted from 1.
        start: the byte it starts at.
        result: what it holds; None for a last line whose writing was interrupted.
    """

    number: int
    start: int
    result: Counterfactual | None


def to_line(result: Counterfactual) -> bytes:
    """The line of one result, with its end."""
    return json.dumps(result.to_dict(), allow_nan=False).encode() + b"\n"


def read_lines(path: Path, file: IO[bytes]) -> Iterator[Line]:
    """All lines of an open result file.

    Raises:
        StoreError: a line is damaged, or this is no file of results at all.
    """
    start = 0
    for number, raw in enumerate(file, start=1):
        if raw.endswith(b"\n"):
            yield Line(number, start, _parse(path, number, raw))
        elif raw.startswith(_BEGINNING) or _BEGINNING.startswith(raw):
            yield Line(number, start, None)
        else:
            raise _foreign(path, number)
        start += len(raw)


def _parse(path: Path, number: int, raw: bytes) -> Counterfactual:
    try:
        return Counterfactual.from_dict(json.loads(raw))
    except StoreError as problem:
        raise StoreError(f"line {number} of {path} cannot be read: {problem}") from problem
    except (ValueError, RecursionError) as problem:
        if number == 1 and not raw.startswith(_BEGINNING):
            raise _foreign(path, number) from problem
        raise StoreError(
            f"line {number} of {path} is damaged: restore the file, or delete that line to have it done again"
        ) from problem


def _foreign(path: Path, number: int) -> StoreError:
    return StoreError(
        f"line {number} of {path} is no result: this is not a file of results (JSON Lines), choose another"
    )


def why(problem: OSError) -> str:
    """What the operating system says is wrong, in its own words."""
    return problem.strerror or str(problem)
