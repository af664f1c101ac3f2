"""The result store: an append-only file of verified counterfactuals that an interrupted run continues."""

from __future__ import annotations

import importlib.util
import os
import stat
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from butfor.errors import StoreError
from butfor.result.lines import read_lines, reason_of, to_line

# Windows has no such advisory locks, so there two runs that write to one file are not noticed.
CAN_LOCK = importlib.util.find_spec("fcntl") is not None

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from torch_geometric.data import Data
    from typing_extensions import Self

    from butfor.graph.edge_keys import TargetType
    from butfor.methods import Method
    from butfor.problem.goal import Goal
    from butfor.problem.method_record import MethodRecord
    from butfor.result.counterfactual import Counterfactual
    from butfor.result.status import Status
    from butfor.session import Session

__all__ = ["Outcome", "Run", "RunOfGraphs", "Store", "check_output_path", "lock", "repeated"]


@dataclass(frozen=True)
class Run:
    """What all results of one file have in common.

    It is not written down by itself: every result repeats it, and `difference` compares. The budget is not part of it:
    it says when to stop, not what is asked. ``defaults`` holds the default of each setting of the method.
    """

    graph_id: str
    model_id: str
    method: MethodRecord
    goal: Goal
    space_id: str
    seed: int
    directed: bool
    task: str = "node"
    node_type: TargetType | None = None
    defaults: dict[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, session: Session, method: Method, seed: int = 0) -> Run:
        """The run that the results of this session and method will belong to."""
        return cls(
            graph_id=session.graph_id,
            model_id=session.model_id,
            method=method.record(),
            goal=session.goal,
            space_id=session.space_id,
            seed=seed,
            directed=session.graph.directed,
            task=session.predictor.task,
            node_type=session.predictor.node_type,
            defaults=method.default_settings(),
        )

    def difference(self, result: Counterfactual) -> str | None:
        """What shows that a result belongs to another run, in words; None if it may belong to this one."""
        words = {
            "graph_id": "graph",
            "model_id": "model",
            "space_id": "edit space",
            "directed": "reading of the graph (directed or not)",
            "node_type": "node type",
        }
        for item in fields(self):
            if not item.compare:
                continue
            theirs, ours = getattr(result, item.name), getattr(self, item.name)
            if item.name == "method":
                # A result of an earlier version lacks settings that did not exist then.
                theirs = replace(theirs, settings={**self.defaults, **theirs.settings})
                ours = replace(ours, settings={**self.defaults, **ours.settings})
            if theirs != ours:
                return f"another {words.get(item.name, item.name)} ({_shown(theirs)} instead of {_shown(ours)})"
        return None


@dataclass(frozen=True, eq=False)
class RunOfGraphs:
    """What the results of one file have in common where several graphs are explained, each as a whole.

    Each result must belong to the graph whose number it has. A graph is checked only when such a result comes up.

    Attributes:
        first: the run of any of the graphs.
        graphs: all graphs, including those that are not explained.
        directed: whether they are directed; by default this is found out for each graph.
    """

    first: Run
    graphs: Sequence[Data]
    directed: bool | None = None

    def difference(self, result: Counterfactual) -> str | None:
        """What shows that a result belongs to another run, in words; None if it may belong to this one."""
        number = result.target
        if result.task != "graph" or isinstance(number, tuple):
            return self.first.difference(result)
        if not 0 <= number < len(self.graphs):
            return f"other graphs ({result.target_name} instead of 0 to {len(self.graphs) - 1})"
        from butfor.graph.graph import Graph  # imported here because it is slow to import

        graph = Graph.of(self.graphs[number], self.directed)
        difference = replace(self.first, graph_id=graph.fingerprint(), directed=graph.directed).difference(result)
        return None if difference is None else f"{difference}: {result.target_name}"


class Outcome(NamedTuple):
    """What a summary needs to know about a result."""

    status: Status
    size: int | None


class Closing(ABC):
    """What is closed at the end of a ``with``; an error that ended it is not hidden by one of closing."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except StoreError:
            if error is None:
                raise


class Store(Closing):
    """The results of one run in one file, each appended and handed to the operating system at once.

    Opening an existing file reads it: `done` then holds the targets that need not be done again. A last line whose
    writing was interrupted is cut off, and `notice` says so, but only if it is certainly a result. Anything else that
    is wrong with the file raises an error and leaves the file unchanged. No two runs can write to one file at the same
    time. A path that exists but is not a regular file, such as a pipe, is refused without being opened.

    Use it as a context manager:

        with Store("results.jsonl", Run.of(session, method)) as store:
            for _, result in session.stream([node for node in nodes if node not in store.done], method):
                store.append(result)

    Raises:
        StoreError: the file holds results of another run or something else, is damaged, is being written by
            another run, cannot be written, or is not a regular file.
    """

    def __init__(self, path: str | os.PathLike[str], run: Run | RunOfGraphs) -> None:
        self.path = Path(path)
        self.run = run
        self.done: dict[int | tuple[int, int], Outcome] = {}
        self.notice = ""
        self._end = 0
        self._file, self._is_new = _open_for_appending(self.path)
        try:
            lock(self._file, self.path)
            self._end = self._read()
        except BaseException:
            os.close(self._file)
            raise

    def append(self, result: Counterfactual) -> None:
        """Write one result; if that fails, the file is as it was before.

        Raises:
            StoreError: the result belongs to another run, its target is in the file already, or the disk is full.
        """
        if difference := self.run.difference(result):
            raise StoreError(f"the result of {result.target_name} is of {difference}")
        if result.target in self.done:
            raise StoreError(f"{result.target_name} is in {self.path} already")
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
        self.done[result.target] = Outcome(result.status, result.size)

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
                if line.result.target in self.done:
                    raise repeated(self.path, line.number, line.result.target_name)
                self.done[line.result.target] = Outcome(line.result.status, line.result.size)
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


def lock(file: int, path: Path) -> None:
    """Keep other runs from writing to what this open file stands for.

    Raises:
        StoreError: another run is writing to it.
    """
    if not CAN_LOCK:
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreError(f"another run is writing to {path}; wait for it to end, or choose another file") from None
    except OSError:
        return  # a file system without locks


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


def _shown(value: object) -> str:
    # The default edit space has an empty fingerprint, and a graph of one node type has no node type.
    return str(value) if value not in ("", None) else "none"
