"""The result store: an append-only file of verified counterfactuals that an interrupted run continues."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from butfor.errors import StoreError
from butfor.result.lines import read_lines, reason_of, to_line
from butfor.runs.sink import Sink, lock

if TYPE_CHECKING:
    from butfor.result.counterfactual import Counterfactual
    from butfor.runs.run import Run, RunOfGraphs

__all__ = ["Store", "check_output_path", "repeated"]


class Store(Sink):
    """The results of one run in one file, each appended and handed to the operating system at once.

    Opening an existing file reads it: `done` then holds the targets that need not be done again. A last line whose
    writing was interrupted is cut off, and `notice` says so, but only if it is certainly a result. Anything else that
    is wrong with the file raises an error and leaves the file unchanged. No two runs can write to one file at the same
    time. A path that exists but is not a regular file, such as a pipe, is refused without being opened.

    Use it as a context manager.

    Args:
        path: the file, new or of an earlier run with the same question.
        run: what all results have in common.
        retry_failed: whether targets that failed earlier are to be done again.

    Raises:
        StoreError: the file holds results of another run or something else, is damaged, is being written by
            another run, cannot be written, or is not a regular file.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from butfor.runs import Run, Store
        >>> session, method = butfor.prepare(model, data), butfor.Exact()
        >>> for nodes in ([597, 600], [597, 600, 605]):  # the second time only what is missing
        ...     with Store("results.jsonl", Run.of(session, method)) as store:
        ...         todo = [node for node in nodes if node not in store.done]
        ...         for _, result in session.stream(todo, method):
        ...             store.append(result)
        ...         print(todo)
        [597, 600]
        [605]
    """

    def __init__(self, path: str | os.PathLike[str], run: Run | RunOfGraphs, *, retry_failed: bool = False) -> None:
        super().__init__(Path(path), run, retry_failed)
        self._end = 0
        self._file, self._is_new = _open_for_appending(self.path)
        try:
            lock(self._file, self.path)
            self._end = self._read()
            self._forget_failures()
        except BaseException:
            os.close(self._file)
            raise

    def append(self, result: Counterfactual) -> None:
        """Write one result; if that fails, the file is as it was before.

        Raises:
            StoreError: the result belongs to another run, its target is in the file already, or the disk is full.
        """
        self._check(result)
        line = to_line(result)
        try:
            _write_all(self._file, line)
        except BaseException as problem:  # after Ctrl-C, too, every line must be complete
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            if isinstance(problem, OSError):
                raise StoreError(
                    f"cannot write {self.path}: {reason_of(problem)}; the {len(self.done)} results in it are kept"
                ) from problem
            raise
        self._end += len(line)
        self._note(result)

    def close(self) -> None:
        """Wait until everything is on the disk; a file that was created and got no results is deleted again.

        Raises:
            StoreError: the disk is full or fails.
        """
        try:
            os.fsync(self._file)
            if self._is_new and os.fstat(self._file).st_size == 0:
                self.path.unlink(missing_ok=True)
        except OSError as problem:
            raise StoreError(f"cannot write {self.path}: {reason_of(problem)}") from problem
        finally:
            os.close(self._file)

    def _read(self) -> int:
        """Find out which targets are done; return the position where the last complete line ends."""
        partial: int | None = None
        with os.fdopen(os.dup(self._file), "rb") as file:
            file.seek(0)
            for line in read_lines(self.path, file):
                if line.result is not None and (difference := self.run.difference(line.result)):
                    raise StoreError(f"{self.path} holds results of {difference}; choose another file for this run")
                if line.result is None or not line.complete:
                    # A result, if it follows results of this run or begins like one; otherwise it may be anything.
                    if not self.done and not line.certain:
                        raise StoreError(
                            f"{self.path} holds one incomplete line, which need not be a result: delete the file "
                            "if it can go, or choose another"
                        )
                    partial = line.start
                    continue
                if self._has(line.result):
                    raise repeated(self.path, line.number, line.result.target_name)
                self._note(line.result)
        if partial is None:
            return os.lseek(self._file, 0, os.SEEK_END)
        try:
            os.ftruncate(self._file, partial)
        except OSError as problem:
            raise StoreError(f"cannot write {self.path}: {reason_of(problem)}") from problem
        self.notice = f"the last line of {self.path} was incomplete: it was cut off, its target is done again"
        return partial


def check_output_path(path: Path) -> None:
    """Refuse a path that results cannot be written to, without opening it: a pipe would wait for a reader.

    Raises:
        StoreError: it is a folder, pipe, socket or device.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return  # a file that is missing or out of reach is reported when it is opened
    _check_regular(path, mode)


def _open_for_appending(path: Path) -> tuple[int, bool]:
    """The descriptor of the file, opened for appending, and whether the file is new."""
    check_output_path(path)
    try:
        is_new = not path.exists()
        if is_new and path.is_symlink():
            raise FileNotFoundError
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    except FileNotFoundError:
        if path.is_symlink():
            raise StoreError(f"cannot write {path}: it is a link to nothing; delete it, or choose a file") from None
        raise StoreError(f"cannot write {path}: there is no folder {path.parent}") from None
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the name
        raise StoreError(f"cannot write {path}: {getattr(problem, 'strerror', None) or problem}") from problem
    try:
        _check_regular(path, os.fstat(file).st_mode)
    except StoreError:
        os.close(file)
        raise
    return file, is_new


def _check_regular(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise StoreError(f"{path} is a folder; give a file such as {path / 'results.jsonl'}")
    if not stat.S_ISREG(mode):
        raise StoreError(f"{path} is no regular file but a pipe, socket or device; give a file, such as results.jsonl")


def _write_all(file: int, content: bytes) -> None:
    # A disk that fills up takes a part of the content, and fails only when it is asked to take the rest.
    while content:
        content = content[os.write(file, content) :]


def repeated(path: Path, number: int, target: str) -> StoreError:
    """What is wrong with a file in which a target has two results."""
    return StoreError(f"line {number} of {path} repeats {target}: two runs were mixed, restore or delete the file")
