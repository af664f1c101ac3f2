"""What the reproduction leaves in its folder: tables, a page, and a record of what was run with what."""

from __future__ import annotations

import json
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from butfor.errors import StoreError
from butfor.files.atomic import atomic_write
from butfor.files.json_values import Misfit, items, number, record, text
from butfor.files.reading import read_json
from butfor.paper.page import page
from butfor.paper.parts import PARTS
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from butfor.paper.lab import Lab

__all__ = ["Record", "write_report"]

TITLE = "CF-GNNExplainer, reproduced"
LEAD = (
    "The evaluation of “CF-GNNExplainer: Counterfactual Explanations for Graph Neural Networks” (AISTATS 2022), run "
    "again by butfor and laid beside the published numbers. Every counterfactual counted here was verified: the edges "
    "were removed from the whole graph, and the unmodified model was run on it."
)
PACKAGES = (
    *("butfor", "torch", "torch_geometric", "numpy", "scipy", "numba", "polars", "matplotlib", "joblib"),
    *("optuna", "captum"),
)


class Record:
    """What one call of the command was given, what with it ran, and how long that took."""

    def __init__(self, lab: Lab, parts: Sequence[str], jobs: int, command: str) -> None:
        self.started = time.monotonic()
        self.values: dict[str, Any] = {
            "command": command,
            "date": time.strftime("%Y-%m-%d"),
            "parts": list(parts),
            "datasets": list(lab.datasets),
            "seeds": {name: [subject.seed for subject in lab.fresh(name)] for name in lab.datasets},
            "published graphs": os.path.relpath(lab.reference) if lab.reference else None,
            "quick": lab.quick,
            "processes": jobs,
            "cores": os.cpu_count(),
            "platform": platform.platform(),
            "python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
        }

    def done(self) -> dict[str, Any]:
        """With the seconds that have passed."""
        return {**self.values, "seconds": round(time.monotonic() - self.started, 1)}


def write_report(lab: Lab, sections: Sequence[Section], record: Record) -> None:
    """Write the sections' files, then the page and the Markdown of all sections that the folder has by now.

    Raises:
        StoreError: the folder cannot be written, or holds a damaged section.
    """
    try:
        for section in sections:
            _clear(lab.folder, section.name)
            for table in section.tables:
                _write(lab.folder / "tables" / f"{table.name}.md", table.markdown())
                _write(lab.folder / "tables" / f"{table.name}.csv", table.csv())
            content = json.dumps(section.to_dict(), indent=1, ensure_ascii=False)
            _write(lab.folder / "parts" / f"{section.name}.json", content)
        runs = [*_earlier_runs(lab.folder / "settings.json"), record.done()]
        _write(lab.folder / "settings.json", json.dumps({"runs": runs}, indent=2, ensure_ascii=False) + "\n")
        kept = [_read(lab.folder / "parts" / f"{name}.json") for name in PARTS]
        every = [section for section in kept if section is not None and _is_whole(section, lab.folder)]
        _write(lab.folder / "report.md", _markdown(every, runs))
        facts = {name: _told(value) for name, value in runs[-1].items() if name not in ("command", "date", "seconds")}
        facts = {"made by": "; then ".join(_command(run) for run in runs), **facts}
        content = page(every, lab.folder / "figures", facts, title=TITLE, lead=LEAD)
        _write(lab.folder / "index.html", content)
    except OSError as problem:
        if isinstance(problem, StoreError):
            raise
        raise StoreError(f"cannot write {problem.filename or lab.folder}: {problem.strerror}") from problem


def _markdown(sections: Sequence[Section], runs: Sequence[dict[str, Any]]) -> str:
    parts = [f"# {TITLE}", LEAD, "Made by:"]
    parts.append("\n".join(f"- {_command(run)}" for run in runs))
    for section in sections:
        parts += [f"## {section.title}", f"*{section.settings[:1].upper()}{section.settings[1:]}.*", *section.text]
        parts += [table.markdown().rstrip() for table in section.tables]
        parts += [f"![{each.caption}](figures/{each.name}.png)" for each in section.pictures]
    return "\n\n".join(parts) + "\n"


def _command(run: dict[str, Any]) -> str:
    return f"`{run['command']}` ({run['seconds']:.0f} s, {run['date']})"


def _clear(folder: Path, part: str) -> None:
    """Take away the tables that this part had before: it may have fewer now."""
    path = folder / "parts" / f"{part}.json"
    for table in section.tables if (section := _read(path)) else ():
        for kind in ("md", "csv"):
            (folder / "tables" / f"{table.name}.{kind}").unlink(missing_ok=True)


def _is_whole(section: Section, folder: Path) -> bool:
    """Whether the pictures of a section from an earlier run are still there."""
    return all((folder / "figures" / f"{picture.name}.svg").exists() for picture in section.pictures)


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content.encode())


def _read(path: Path) -> Section | None:
    """What an earlier run left; its names are checked, as files of these names are deleted and shown."""
    if not os.path.lexists(path):
        return None
    plain = read_json(path, StoreError)
    try:
        section = Section.from_dict(plain)
        if section.name != path.stem:
            raise Misfit(f"it is named {section.name}")
    except Misfit as problem:
        raise StoreError(f"{path} is damaged ({problem}): delete it, and run the same command again") from problem
    return section


def _earlier_runs(path: Path) -> list[dict[str, Any]]:
    """What was run into this folder before."""
    if not os.path.lexists(path):
        return []
    plain = read_json(path, StoreError)
    try:
        runs = [record(run, "a run") for run in items(record(plain, "it").get("runs"), "runs")]
        kept = [run for run in runs if {"command", "seconds", "date"} <= run.keys()]
        for run in kept:
            text(run["command"], "command")
            text(run["date"], "date")
            run["seconds"] = number(run["seconds"], "seconds", 0)
    except Misfit as problem:
        raise StoreError(f"{path} is damaged ({problem}): delete it, and run the same command again") from problem
    return kept


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_told(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
