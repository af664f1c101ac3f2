"""A folder that is there completely or not at all."""

from __future__ import annotations

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

    It gets its name when all is written. If that does not come to pass, by an error or Ctrl-C, it is removed.

    Args:
        folder: what it is to be called.
        force: replace the graph that is there already; nothing else is ever replaced.

    Raises:
        InputError: there is something of this name, or half of another graph on its way there.
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
                raise InputError(f"{folder} exists already; choose another folder, or replace it with --force")
            if self.final.is_symlink() or not is_graph_folder(self.final):
                raise InputError(f"{folder} is not the folder of a graph, so it is not replaced: choose another one")
        if self.path.exists() and not force:
            raise InputError(
                f"{self.path} is there already: another conversion to {folder} is running or was cut off; if it is "
                "not running, use --force"
            )
        try:
            if self.path.exists():
                shutil.rmtree(self.path)
            self.path.mkdir(parents=True)
        except (OSError, ValueError) as problem:
            raise GraphError(f"cannot write {folder}: {getattr(problem, 'strerror', None) or problem}") from problem

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # After `commit` there is nothing under this name.
        shutil.rmtree(self.path, ignore_errors=True)
        if isinstance(problem, OSError):
            raise GraphError(f"cannot write {self.final}: {problem.strerror or problem}") from problem

    def commit(self, header: Header) -> None:
        """Write `graph.json`, and give the folder its name."""
        with (self.path / HEADER).open("w", encoding="utf-8") as file:
            file.write(header.as_json())
        for path in self.path.rglob("*"):
            if path.is_file():
                with path.open("rb") as file_to_keep:
                    os.fsync(file_to_keep.fileno())
        replaced = self.final.with_name(f".{self.final.name}.replaced")
        if self.final.exists():
            self.final.rename(replaced)
        self.path.rename(self.final)
        shutil.rmtree(replaced, ignore_errors=True)
