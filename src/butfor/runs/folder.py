"""A folder of results: shards, each written at once, and a manifest that says what they have in common."""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from butfor.boundary.atomic import atomic_write
from butfor.boundary.reading import read_json, reading
from butfor.errors import StoreError
from butfor.graph.fingerprint import graph_fingerprint
from butfor.result.assemble import versions
from butfor.result.lines import reason_of
from butfor.runs.run import RunOfGraphs
from butfor.runs.shards import FORMATS, read_shard, write_shard
from butfor.runs.sink import Sink, lock

if TYPE_CHECKING:
    from pathlib import Path

    from butfor.problem.budget import Budget
    from butfor.result.counterfactual import Counterfactual
    from butfor.runs.run import Run
    from butfor.runs.shards import Format

__all__ = ["Folder", "check_folder", "read_manifest", "shard_paths"]

MANIFEST = "manifest.json"
LAYOUT = 1
# A shard is written when it has so many results, or after so many seconds: what it would have held is lost if the
# process is killed, and done again.
MOST, SECONDS = 1000, 10.0


class Folder(Sink):
    """The results of one run as shards in a folder; used like a `Store`.

    An existing folder is continued: `done` then holds the targets that need not be done again. A run that differs in
    anything that its manifest says, the budget included, is refused; other versions of packages are only pointed out.

    Args:
        path: the folder, new or of an earlier run with the same question.
        run: what all results have in common.
        budget: what was allowed for each target; it is written into the manifest.
        format: "jsonl" or "parquet"; by default that of the folder, or jsonl.
        retry_failed: whether targets that failed earlier are to be done again.

    Raises:
        StoreError: the folder is of another run or holds something else, another run is writing to it, or it cannot be
            written.

    Examples:
        >>> from pathlib import Path
        >>> import butfor
        >>> model, data = butfor.example()
        >>> from butfor.runs import Folder, Run
        >>> session, method = butfor.prepare(model, data), butfor.Exact()
        >>> with Folder(Path("results"), Run.of(session, method)) as folder:
        ...     for _, result in session.stream([597, 605], method):
        ...         folder.append(result)
        >>> sorted(path.suffix for path in Path("results").iterdir() if path.suffix)
        ['.json', '.jsonl']
        >>> butfor.load_results("results")
        <Results in results>
    """

    def __init__(
        self,
        path: Path,
        run: Run | RunOfGraphs,
        budget: Budget | None = None,
        format: Format | None = None,
        *,
        retry_failed: bool = False,
    ) -> None:
        super().__init__(path, run, retry_failed)
        self._waiting: list[Counterfactual] = []
        self._written = time.monotonic()
        check_folder(path)
        try:
            path.mkdir(exist_ok=True)
            self._lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            raise StoreError(f"cannot write {path}: there is no folder {path.parent}") from None
        except (OSError, ValueError) as problem:
            raise StoreError(f"cannot write {path}: {getattr(problem, 'strerror', None) or problem}") from problem
        try:
            lock(self._lock, path)
            self._manifest = {**_manifest(run, budget), "format": format or FORMATS[0], "versions": versions()}
            self._manifest = json.loads(json.dumps(self._manifest))  # as it will be read
            self._is_new = not (path / MANIFEST).exists()
            if not self._is_new:
                self._continue(format)
        except BaseException:
            os.close(self._lock)
            raise

    def append(self, result: Counterfactual) -> None:
        """Take one result; it is written with the next shard.

        Raises:
            StoreError: the result belongs to another run, its target is there already, or the disk is full.
        """
        self._check(result)
        self._waiting.append(result)
        self._note(result)
        if len(self._waiting) >= MOST or time.monotonic() - self._written > SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what has come since the last shard as another one.

        Raises:
            StoreError: the disk is full or fails.
        """
        if not self._waiting:
            return
        if self._is_new:
            self._write_manifest()
        # Named by its targets: the same shard written twice is there once.
        targets = json.dumps(sorted(result.target for result in self._waiting))
        name = f"part-{hashlib.sha256(targets.encode()).hexdigest()[:16]}.{self._manifest['format']}"
        write_shard(self.path / name, self._waiting)
        self._waiting = []
        self._written = time.monotonic()

    def close(self) -> None:
        """Write the last shard; a folder that was made and got no results is deleted again.

        Raises:
            StoreError: the disk is full or fails.
        """
        try:
            self.flush()
        finally:
            os.close(self._lock)
            if self._is_new:
                with suppress(OSError):
                    (self.path / ".lock").unlink()
                    self.path.rmdir()

    def _write_manifest(self) -> None:
        try:
            with atomic_write(self.path / MANIFEST) as file:
                file.write(json.dumps(self._manifest, indent=2).encode() + b"\n")
        except OSError as problem:
            raise StoreError(f"cannot write {self.path}: {reason_of(problem)}") from problem
        self._is_new = False

    def _continue(self, format: Format | None) -> None:
        """Check that this is the same run, and find out which targets are done."""
        theirs, ours = read_manifest(self.path), self._manifest
        for key, mine in ours.items():
            known = theirs.get(key)
            if key == "method" and isinstance(known, dict) and known.get("name") == mine["name"]:
                # A manifest of an earlier version lacks settings that did not exist then.
                known = {**known, "settings": {**_defaults(self.run), **known.get("settings", {})}}
            if key == "versions" and known != mine:
                self.notice = f"{self.path} was begun with other versions of packages; each result says which it is of"
            elif key == "format" and format is None:
                ours[key] = known
            elif known != mine and key != "versions":
                raise StoreError(
                    f"{self.path} holds results of another {key} ({_told(known)} instead of {_told(mine)}); "
                    "choose another folder for this run"
                )
        for shard in shard_paths(self.path):
            for result in read_shard(shard):
                if not self._has(result):
                    self._note(result)
        self._forget_failures()


def check_folder(path: Path) -> None:
    """Refuse a folder that holds something else than results.

    Raises:
        StoreError: naming what to give instead.
    """
    try:
        empty = not path.exists() or (path.is_dir() and all(one.name.startswith(".") for one in path.iterdir()))
        known = (path / MANIFEST).is_file()
    except (OSError, ValueError) as problem:
        raise StoreError(f"cannot write {path}: {getattr(problem, 'strerror', None) or problem}") from problem
    if not (empty or known):
        kind = "folder" if path.is_dir() else "file"
        raise StoreError(f"{path} is a {kind}; give a file such as {path / 'results.jsonl'}, or a new folder")


def shard_paths(path: Path) -> list[Path]:
    """The shards of a folder; what an interrupted run was writing is not among them."""
    with reading(path, StoreError):
        return sorted(one for one in path.glob("part-*") if one.suffix[1:] in FORMATS)


def read_manifest(path: Path) -> dict[str, Any]:
    """What the results of a folder have in common.

    Raises:
        StoreError: this is no folder of results.
    """
    if not (path / MANIFEST).is_file():
        raise StoreError(f"cannot read {path}: it is a folder, but not one of results: it has no {MANIFEST}")
    plain = read_json(path / MANIFEST, StoreError)
    if not isinstance(plain, dict) or plain.get("layout") != LAYOUT:
        raise StoreError(f"{path / MANIFEST} is not of this version, or damaged: choose another folder")
    return plain


def _manifest(run: Run | RunOfGraphs, budget: Budget | None) -> dict[str, Any]:
    """What makes a run: two of the same give the same results."""
    first = run.first if isinstance(run, RunOfGraphs) else run
    if isinstance(run, RunOfGraphs):
        every = "".join(map(graph_fingerprint, run.graphs))
        graph, directed = hashlib.sha256(every.encode()).hexdigest()[:16], run.directed
    else:
        graph, directed = run.graph_id, run.directed
    kind = first.node_type
    method = first.method.plain
    return {
        "layout": LAYOUT,
        "graph": graph,
        "model": first.model_id,
        "edit space": first.space_id,
        "goal": asdict(first.goal),
        "method": {**method, "settings": {**_defaults(run), **method["settings"]}},
        "seed": first.seed,
        "directed": directed,
        "task": first.task,
        "node type": list(kind) if isinstance(kind, tuple) else kind,
        "budget": None if budget is None else asdict(budget),
    }


def _defaults(run: Run | RunOfGraphs) -> dict[str, Any]:
    defaults = run.first.defaults if isinstance(run, RunOfGraphs) else run.defaults
    plain: dict[str, Any] = json.loads(json.dumps(defaults, default=lambda record: record.plain))
    return plain


def _told(value: object) -> str:
    return json.dumps(value) if value not in ("", None) else "none"
