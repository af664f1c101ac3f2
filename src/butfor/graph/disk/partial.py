"""A folder that is there completely or not at all."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.errors import GraphError, InputError
from butfor.graph.disk.layout import HEADER, Array, Header, is_graph_folder

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import DTypeLike, NDArray
    from typing_extensions import Self

__all__ = ["ArrayFolder", "PartialFolder"]

LOCK, SCRATCH = ".lock", "scratch"

# Without advisory locks, as on Windows, it is not known whether a folder is still being written.
CAN_LOCK = importlib.util.find_spec("fcntl") is not None


class ArrayFolder:
    """A folder that arrays are written to.

    Attributes:
        path: the folder, which is there.
        arrays: what was written, by its place.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.arrays: dict[str, Array] = {}

    def array(self, place: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """A new array in the folder, to be filled."""
        path = self.path / f"{place}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        made = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
        self.arrays[place] = Array.of(made)
        return np.asarray(made)

    def put(self, place: str, values: NDArray[Any]) -> None:
        """Write an array that is in memory."""
        self.array(place, values.dtype.newbyteorder("<"), values.shape)[...] = values


class PartialFolder(ArrayFolder):
    """The folder of a graph while it is written, under another name beside its own.

    It gets its name when all is written. If that does not come to pass, by an error or Ctrl-C, it is removed. What a
    process that was killed has left is removed by the next one.

    Args:
        folder: what it is to be called.
        force: replace the graph that is there already; nothing else is ever replaced.

    Raises:
        InputError: there is something of this name, or another process is writing it.
        GraphError: the folder cannot be made.
    """

    def __init__(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        self.final = Path(folder)
        self.final = self.final.parent.resolve() / self.final.name
        super().__init__(self.final.with_name(f".{self.final.name}.partial"))
        if not self.final.name:
            raise InputError(f"{folder} cannot be the name of a folder")
        if os.path.lexists(self.final):
            if not force:
                words = "choose another folder, or replace it with force=True (--force)"
                raise InputError(f"{folder} exists already; {words}")
            if self.final.is_symlink() or not is_graph_folder(self.final):
                raise InputError(f"{folder} is not the folder of a graph, so it is not replaced: choose another one")
        if not CAN_LOCK and self.path.exists() and not force:
            raise InputError(f"{self.path} is there already: if no conversion to {folder} is running, use --force")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.path / LOCK) if CAN_LOCK else None
            self._clear()
        except BlockingIOError:
            raise InputError(
                f"another conversion to {folder} is running: wait for it to end, or choose another folder"
            ) from None
        except (OSError, ValueError) as problem:
            raise GraphError(f"cannot write {folder}: {getattr(problem, 'strerror', None) or problem}") from problem
        self._open = True

    @property
    def scratch(self) -> Path:
        """A folder for files that are needed only until all is written."""
        path = self.path / SCRATCH
        path.mkdir(exist_ok=True)
        return path

    def _clear(self) -> None:
        """Remove everything but the lock."""
        for left in self.path.iterdir():
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            elif left.name != LOCK:
                left.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._open:
            # After `commit` there is nothing under this name.
            shutil.rmtree(self.path, ignore_errors=True)
            if self._lock is not None:
                os.close(self._lock)
            self._open = False
        if isinstance(problem, OSError):
            raise GraphError(f"cannot write {self.final}: {problem.strerror or problem}") from problem

    def commit(self, header: Header) -> None:
        """Write `graph.json`, and give the folder its name."""
        shutil.rmtree(self.path / SCRATCH, ignore_errors=True)
        with (self.path / HEADER).open("w", encoding="utf-8") as file:
            file.write(header.as_json())
        for path in self.path.rglob("*"):
            if path.is_file():
                with path.open("rb") as file_to_keep:
                    os.fsync(file_to_keep.fileno())
        replaced = self.final.with_name(f".{self.final.name}.replaced")
        if self.final.exists():
            shutil.rmtree(replaced, ignore_errors=True)  # a process that was killed here has left it
            self.final.rename(replaced)
        self.path.rename(self.final)
        # Until now, whoever wants to write there finds the lock.
        (self.final / LOCK).unlink(missing_ok=True)
        shutil.rmtree(replaced, ignore_errors=True)


def _locked(path: Path) -> int:
    """A file that is open and locked, as far as the file system has locks.

    Raises:
        BlockingIOError: another process has locked it.
    """
    import fcntl

    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise
    except OSError:
        return file  # a file system without locks
    return file
