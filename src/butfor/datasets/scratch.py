"""Arrays of a file that may be larger than memory: they are kept in files and mapped when they are needed."""

from __future__ import annotations

import shutil
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import DTypeLike, NDArray

__all__ = ["Memory", "Scratch"]

# So many bytes are copied at a time.
PIECE = 2**20


class Memory:
    """Where arrays usually are.

    Attributes:
        limited: whether there is room for so much only (`butfor.boundary.limits`).
    """

    limited = True

    def read(self, member: IO[bytes]) -> NDArray[Any]:
        """The array of an open `.npy` file; nothing in it is unpickled."""
        return np.asarray(np.lib.format.read_array(member, allow_pickle=False))

    def cast(self, array: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
        """The array with this type of numbers."""
        return array.astype(dtype, copy=False)


class Scratch(Memory):
    """Arrays in files of a folder.

    Args:
        folder: an empty folder, which whoever made it removes.
    """

    limited = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def read(self, member: IO[bytes]) -> NDArray[Any]:
        """The array of an open `.npy` file; nothing in it is unpickled."""
        path = self._next()
        with path.open("wb") as file:
            shutil.copyfileobj(member, file, PIECE)
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))

    def cast(self, array: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
        """The array with this type of numbers, row after row."""
        if array.dtype == dtype and array.flags.c_contiguous:
            return array
        made = np.lib.format.open_memmap(self._next(), mode="w+", dtype=np.dtype(dtype), shape=array.shape)
        made[...] = array
        return np.asarray(made)

    def _next(self) -> Path:
        self._count += 1
        return self._folder / f"{self._count}.npy"
