"""Reading files that may be damaged, of another kind, or no files at all."""

from __future__ import annotations

import json
import os
import stat
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from butfor.boundary.limits import check_size
from butfor.errors import ButforError, GraphError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["check_file", "from_json", "read_bytes", "read_json", "reading"]

_LONGEST_MESSAGE = 300


@contextmanager
def reading(path: Path | str, error: type[ButforError] = GraphError, kind: str = "") -> Iterator[None]:
    """Turn whatever is raised inside into one sentence about the file.

    Put only the call of somebody else's parser inside: a damaged file can make it raise anything, while a bug of our
    own must stay visible.

    Args:
        path: the file.
        error: the class of the error.
        kind: what the file should have been, such as "as .npz".

    Raises:
        error: the file cannot be read.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # our own message about a damaged file is clearer than a parser's warnings
            yield
    except (ButforError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except OSError as problem:
        raise error(f"cannot read {path}: {_shortened(problem.strerror or problem)}") from problem
    except BaseException as problem:  # not Exception, because a panic in Rust code is none
        message = _shortened(problem) or type(problem).__name__
        raise error(f"{path} cannot be read{f' {kind}' * bool(kind)}: {message}") from problem


def _shortened(problem: object) -> str:
    """A message in one line that is not too long."""
    words = " ".join(str(problem).split())
    return words if len(words) <= _LONGEST_MESSAGE else f"{words[:_LONGEST_MESSAGE]}…"


def check_file(
    path: Path, error: type[ButforError] = GraphError, *, pipe: bool = False, any_size: bool = False
) -> None:
    """Refuse a path that is not a file, or a file larger than `limit` allows, without opening it.

    Opening a pipe waits for a writer, and a device may never end. A pipe is accepted only if ``pipe`` is set, and a
    file of ``any_size`` where it is not read as a whole.

    Raises:
        error: the message names the path.
    """
    with reading(path, error):
        found = os.stat(path)  # noqa: PTH116 (a Path with a NUL in it raises here as well)
    if stat.S_ISDIR(found.st_mode):
        raise error(f"cannot read {path}: it is a folder, not a file")
    if not stat.S_ISREG(found.st_mode) and not (pipe and stat.S_ISFIFO(found.st_mode)):
        raise error(f"cannot read {path}: it is no regular file but a pipe, socket or device")
    if not any_size:
        check_size(found.st_size, str(path), error)


def read_bytes(path: Path, error: type[ButforError] = GraphError, *, pipe: bool = False) -> bytes:
    """The whole content of a file.

    Raises:
        error: it cannot be read.
    """
    check_file(path, error, pipe=pipe)
    with reading(path, error):
        return path.read_bytes()


def read_json(path: Path, error: type[ButforError], *, pipe: bool = False) -> Any:
    """The content of a JSON file.

    Raises:
        error: it cannot be read or is not JSON.
    """
    content = read_bytes(path, error, pipe=pipe)
    with reading(path, error, "as JSON"):
        return from_json(content)


def from_json(content: bytes) -> Any:
    """Parse JSON. NaN and Infinity are refused: Python's parser would take them, but they are not JSON.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")
