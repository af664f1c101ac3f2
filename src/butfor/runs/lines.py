"""Result files as text: one counterfactual per line, and what can be wrong with one."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from butfor.boundary.reading import from_json, reading
from butfor.errors import StoreError
from butfor.result.counterfactual import Counterfactual
from butfor.result.schema import SCHEMA
from butfor.result.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

__all__ = ["Line", "read_lines", "to_line", "why"]

# What every line begins with, and how it looks. Lines are written and recognised by this, so that a file of another
# kind whose last line has no end is never taken for ours.
_HEAD = {
    "schema": str(SCHEMA),
    "target": r"(?:\d+|\[\d+, \d+\])",
    "status": f'"(?:{"|".join(status.value for status in Status)})"',
}
_OURS = re.compile(("{" + ", ".join(f'"{name}": {look}' for name, look in _HEAD.items()) + "[,}]").encode())
LONGEST = 64 * 2**20  # no result is that long, and a foreign file without line ends is not read into memory
_BEGINNING = json.dumps({"schema": SCHEMA})[:-1].encode()


@dataclass(frozen=True)
class Line:
    """One line of a result file.

    Attributes:
        number: counted from 1.
        start: the byte it starts at.
        result: what it holds; None for a line that breaks off.
        complete: whether it has its end; only the last line of a file may lack it.
        certain: whether the line itself shows that it is of a result.
    """

    number: int
    start: int
    result: Counterfactual | None
    complete: bool = True
    certain: bool = True


def to_line(result: Counterfactual) -> bytes:
    """The line of one result, with its end."""
    plain = result.to_dict()
    ordered = {name: plain[name] for name in _HEAD} | plain
    return json.dumps(ordered, allow_nan=False).encode() + b"\n"


def read_lines(path: Path, file: IO[bytes]) -> Iterator[Line]:
    """All lines of an open result file.

    Raises:
        StoreError: a line is damaged, or this is no file of results at all.
    """
    start = number = 0
    while True:
        with reading(path, StoreError):
            number, raw = number + 1, file.readline(LONGEST)
        if not raw:
            return
        if len(raw) == LONGEST:
            raise _foreign(path, number)
        if raw.endswith(b"\n"):
            yield Line(number, start, _parse(path, number, raw))
        elif raw.startswith(_BEGINNING) or _BEGINNING.startswith(raw):
            yield Line(number, start, _whole(path, number, raw), complete=False, certain=bool(_OURS.match(raw)))
        else:
            raise _foreign(path, number)
        start += len(raw)


def _whole(path: Path, number: int, raw: bytes) -> Counterfactual | None:
    """What a last line holds of which nothing but the end is missing."""
    try:
        return _parse(path, number, raw)
    except StoreError:
        return None


def _parse(path: Path, number: int, raw: bytes) -> Counterfactual:
    try:
        with reading(path, StoreError):
            plain = from_json(raw)
    except StoreError as problem:
        if number == 1 and not raw.startswith(_BEGINNING):
            raise _foreign(path, number) from problem
        raise StoreError(
            f"line {number} of {path} is damaged: restore the file, or delete that line to have it done again"
        ) from problem
    try:
        return Counterfactual.from_dict(plain)
    except StoreError as problem:
        raise StoreError(f"line {number} of {path} cannot be read: {problem}") from problem


def _foreign(path: Path, number: int) -> StoreError:
    return StoreError(
        f"line {number} of {path} is no result: this is not a file of results (JSON Lines), choose another"
    )


def why(problem: OSError) -> str:
    """What the operating system says is wrong, in its own words."""
    return problem.strerror or str(problem)
