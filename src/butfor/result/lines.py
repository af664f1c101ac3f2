"""The lines of a result file: one counterfactual each, and what can be wrong with them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from butfor.boundary.reading import from_json, reading
from butfor.errors import StoreError
from butfor.result.counterfactual import Counterfactual
from butfor.result.schema import READABLE
from butfor.result.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

__all__ = ["Line", "read_lines", "reason_of", "to_line"]

# The fields that every line begins with, and the patterns of their values. Lines are written in this order and
# recognised by it, so that a file of another kind whose last line has no end is never taken for a result file.
_FIRST_FIELDS = {
    "schema": f"(?:{'|'.join(map(str, READABLE))})",
    "target": r"(?:\d+|\[\d+, \d+\])",
    "status": f'"(?:{"|".join(status.value for status in Status)})"',
}
_RESULT = re.compile(
    ("{" + ", ".join(f'"{name}": {pattern}' for name, pattern in _FIRST_FIELDS.items()) + "[,}]").encode()
)
LONGEST = 64 * 2**20  # longer than any result; a foreign file without line ends is not read into memory
_BEGINNINGS = tuple(json.dumps({"schema": schema})[:-1].encode() for schema in READABLE)


@dataclass(frozen=True)
class Line:
    """One line of a result file.

    Attributes:
        number: counted from 1.
        start: the position of its first byte in the file.
        result: the result in it; None if the line breaks off in the middle.
        complete: whether it ends with a line end; only the last line of a file may lack it.
        certain: whether its beginning alone shows that it is a result.
    """

    number: int
    start: int
    result: Counterfactual | None
    complete: bool = True
    certain: bool = True


def to_line(result: Counterfactual) -> bytes:
    """The line of one result, with its line end."""
    plain = result.to_dict()
    ordered = {name: plain[name] for name in _FIRST_FIELDS} | plain
    return json.dumps(ordered, allow_nan=False).encode() + b"\n"


def read_lines(path: Path, file: IO[bytes]) -> Iterator[Line]:
    """All lines of an open result file.

    Raises:
        StoreError: a line is damaged, or this is not a result file at all.
    """
    start = number = 0
    while True:
        with reading(path, StoreError):
            number, raw = number + 1, file.readline(LONGEST)
        if not raw:
            return
        if len(raw) == LONGEST:
            raise _not_a_result(path, number)
        if raw.endswith(b"\n"):
            yield Line(number, start, _parse(path, number, raw))
        elif raw.startswith(_BEGINNINGS) or any(beginning.startswith(raw) for beginning in _BEGINNINGS):
            yield Line(number, start, _parse_last(path, number, raw), complete=False, certain=bool(_RESULT.match(raw)))
        else:
            raise _not_a_result(path, number)
        start += len(raw)


def _parse_last(path: Path, number: int, raw: bytes) -> Counterfactual | None:
    """The result in a last line that may lack nothing but its line end; None if it lacks more."""
    try:
        return _parse(path, number, raw)
    except StoreError:
        return None


def _parse(path: Path, number: int, raw: bytes) -> Counterfactual:
    try:
        with reading(path, StoreError):
            plain = from_json(raw)
    except StoreError as problem:
        if number == 1 and not raw.startswith(_BEGINNINGS):
            raise _not_a_result(path, number) from problem
        raise StoreError(
            f"line {number} of {path} is damaged: restore the file, or delete that line to have it done again"
        ) from problem
    try:
        return Counterfactual.from_dict(plain)
    except StoreError as problem:
        raise StoreError(f"line {number} of {path} cannot be read: {problem}") from problem


def _not_a_result(path: Path, number: int) -> StoreError:
    return StoreError(
        f"line {number} of {path} is no result: this is not a file of results (JSON Lines), choose another"
    )


def reason_of(problem: OSError) -> str:
    """The operating system's own words for what is wrong."""
    return problem.strerror or str(problem)
