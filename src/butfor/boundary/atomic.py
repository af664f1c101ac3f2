"""Writing a file completely or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["atomic_write"]


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` that replaces it only if nothing went wrong.

    After an exception, a full disk or Ctrl-C, the file at `path` is as it was, and the temporary file is gone.

    Raises:
        OSError: if the folder cannot be written, the disk is full, or the path is a device, pipe or socket, which must
            not be replaced.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "it is no regular file but a pipe, socket or device", str(path))
    try:
        # Only the beginning of the name, which may already be as long as a name can be.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp")
    except ValueError as problem:  # a NUL in the name
        raise OSError(errno.EINVAL, str(problem), str(path)) from problem
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes the file private; give it the permissions that a plain open() would have given.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
