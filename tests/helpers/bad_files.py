"""Files that are not what they should be: how they are made, and what reading one of them must lead to."""

from __future__ import annotations

import io
import os
import tracemalloc
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from butfor.errors import ButforError

# Far more memory than any of these files needs, far less than what some of them claim.
MOST = 60 * 2**20

# A whole number that neither 64 bits nor a float can hold.
LARGE = int("9" * 400)


def check_refused(use: Callable[[], object], error: type[ButforError], place: Path, names: str) -> None:
    """What every bad file must lead to: one line that names it, nothing written, and no memory claimed."""

    def listing() -> dict[str, tuple[int, int]]:
        return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in place.rglob("*")}

    before = listing()
    tracemalloc.start()
    try:
        with pytest.raises(error) as caught:
            use()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert "\n" not in message
    assert names in message
    assert len(message) < 1500
    assert peak < MOST
    assert listing() == before


class Asks:
    """A pickle that calls something when it is read."""

    def __init__(self, call: Any, *arguments: object) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> Any:
        return self.call, self.arguments


def bomb(mark: Path) -> Asks:
    """Unpickling this makes a folder: the proof that something ran."""
    return Asks(os.mkdir, str(mark))


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive with these files in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def npz(**changes: Any) -> bytes:
    """An .npz file of a graph with three nodes, with these arrays changed or added."""
    graph = {"edge_index": np.array([[0, 1, 2], [1, 0, 1]]), "x": np.ones((3, 2))}
    buffer = io.BytesIO()
    np.savez(buffer, **{**graph, **changes})
    return buffer.getvalue()


def pt(content: object, **options: Any) -> bytes:
    """What torch.save writes."""
    buffer = io.BytesIO()
    torch.save(content, buffer, **options)
    return buffer.getvalue()


def make_no_file(path: Path, kind: str) -> None:
    """Put something at this path that cannot be read to its end as a file can."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "broken link":
        path.symlink_to(path.parent / "nothing")
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "larger than memory":
        with path.open("wb") as file:
            file.truncate(2**40)
    elif kind == "folder":
        path.mkdir()
    else:
        raise AssertionError(kind)


# JSON files that are none, or that hold something else than an object.
NOT_JSON: dict[str, bytes] = {
    "empty": b"",
    "NUL": b"\x00\x00",
    "latin-1": b'{"a": "\xe4"}',
    "deep": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "NaN": b'{"schema": NaN}',
    "-Infinity": b"[-Infinity]",
    "too many digits": b'{"schema": ' + b"9" * 10_000 + b"}",
    "number": b"7",
    "null": b"null",
    "list": b"[]",
    "text": b'"abc"',
    "open": b'{"schema": 1,',
    "twice": b"{}{}",
}
