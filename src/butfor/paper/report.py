"""The report that a reproduction leaves in its folder: tables, a page, and a record of the commands that made it."""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from butfor.boundary.atomic import atomic_write
from butfor.boundary.json_values import Misfit, items, number, record, text
from butfor.boundary.reading import read_json
from butfor.errors import StoreError
from butfor.paper.page import render_page
from butfor.paper.parts import PARTS
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from butfor.paper.experiment import Experiment

__all__ = ["CommandRecord", "write_report"]

TITLE = "CF-GNNExplainer, reproduced"
LEAD = (
    "The evaluation of “CF-GNNExplainer: Counterfactual Explanations for Graph Neural Networks” (AISTATS 2022), run "
    "again by butfor and compared with the published numbers. Every counterfactual counted here was verified: the "
    "edges were removed from the whole graph, and the unmodified model was run on it."
)
PACKAGES = (
    *("butfor", "torch", "torch_geometric", "numpy", "scipy", "numba", "polars", "matplotlib", "loky"),
    *("optuna", "captum"),
)


class CommandRecord:
    """A record of one call of the command: its settings, the versions of packages, and how long it took."""

    def __init__(self, experiment: Experiment, parts: Sequence[str], processes: int, command: str) -> None:
        self.started = time.monotonic()
        self.values: dict[str, Any] = {
            "command": command,
            "date": time.strftime("%Y-%m-%d"),
            "parts": list(parts),
            "datasets": list(experiment.datasets),
            "seeds": {name: [one.seed for one in experiment.fresh(name)] for name in experiment.datasets},
            "published graphs": os.path.relpath(experiment.reference) if experiment.reference else None,
            "quick": experiment.quick,
            "processes": processes,
            "cores": os.cpu_count(),
            "platform": platform.platform(),
            "python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
        }

    def to_dict(self) -> dict[str, Any]:
        """The record with the seconds that have passed, for JSON."""
        return {**self.values, "seconds": round(time.monotonic() - self.started, 1)}


def write_report(experiment: Experiment, sections: Sequence[Section], command: CommandRecord) -> None:
    """Write the files of these sections, then the page and the Markdown of all sections in the folder.

    Raises:
        StoreError: the folder cannot be written, or holds a damaged section.
    """
    folder = experiment.folder
    try:
        for section in sections:
            _write_section(folder, section)
        commands = [*_earlier_commands(folder / "settings.json"), command.to_dict()]
        _write(folder / "settings.json", json.dumps({"runs": commands}, indent=2, ensure_ascii=False) + "\n")
        saved = [_read_section(folder / "parts" / f"{name}.json") for name in PARTS]
        complete = [section for section in saved if section is not None and _has_pictures(section, folder)]
        _write(folder / "report.md", _markdown(complete, commands))
        page = render_page(complete, folder / "figures", _facts(commands), title=TITLE, lead=LEAD)
        _write(folder / "index.html", page)
    except OSError as problem:
        if isinstance(problem, StoreError):
            raise
        raise StoreError(f"cannot write {problem.filename or folder}: {problem.strerror}") from problem


def _write_section(folder: Path, section: Section) -> None:
    _delete_tables(folder, section.name)
    for table in section.tables:
        _write(folder / "tables" / f"{table.name}.md", table.markdown())
        _write(folder / "tables" / f"{table.name}.csv", table.csv())
    content = json.dumps(section.to_dict(), indent=1, ensure_ascii=False)
    _write(folder / "parts" / f"{section.name}.json", content)


def _delete_tables(folder: Path, part: str) -> None:
    """Delete the tables of an earlier run of this part, which may have had more of them."""
    path = folder / "parts" / f"{part}.json"
    for table in section.tables if (section := _read_section(path)) else ():
        for kind in ("md", "csv"):
            (folder / "tables" / f"{table.name}.{kind}").unlink(missing_ok=True)


def _has_pictures(section: Section, folder: Path) -> bool:
    """Whether the pictures of a section are still there; it may be of an earlier run."""
    return all((folder / "figures" / f"{picture.name}.svg").exists() for picture in section.pictures)


def _markdown(sections: Sequence[Section], commands: Sequence[dict[str, Any]]) -> str:
    blocks = [f"# {TITLE}", LEAD, "Made by:"]
    blocks.append("\n".join(f"- {_describe_command(command)}" for command in commands))
    for section in sections:
        blocks += [f"## {section.title}", f"*{section.settings[:1].upper()}{section.settings[1:]}.*", *section.text]
        blocks += [table.markdown().rstrip() for table in section.tables]
        blocks += [f"![{picture.caption}](figures/{picture.name}.png)" for picture in section.pictures]
    return "\n\n".join(blocks) + "\n"


def _facts(commands: Sequence[dict[str, Any]]) -> dict[str, str]:
    """All commands, then the settings and versions of the last one."""
    last = {name: value for name, value in commands[-1].items() if name not in ("command", "date", "seconds")}
    return {
        "made by": "; then ".join(map(_describe_command, commands)),
        **{name: _in_words(value) for name, value in last.items()},
    }


def _describe_command(command: dict[str, Any]) -> str:
    return f"`{command['command']}` ({command['seconds']:.0f} s, {command['date']})"


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_in_words(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content.encode())


def _read_section(path: Path) -> Section | None:
    """The section that an earlier run saved. Its names are checked, because files of these names get deleted."""
    if not os.path.lexists(path):
        return None
    values = read_json(path, StoreError)
    with _refuse_damaged(path):
        section = Section.from_dict(values)
        if section.name != path.stem:
            raise Misfit(f"it is named {section.name}")
    return section


def _earlier_commands(path: Path) -> list[dict[str, Any]]:
    """The records of the commands that wrote to this folder before."""
    if not os.path.lexists(path):
        return []
    values = read_json(path, StoreError)
    with _refuse_damaged(path):
        commands = [record(run, "a run") for run in items(record(values, "it").get("runs"), "runs")]
        complete = [command for command in commands if {"command", "seconds", "date"} <= command.keys()]
        for command in complete:
            text(command["command"], "command")
            text(command["date"], "date")
            command["seconds"] = number(command["seconds"], "seconds", 0)
    return complete


@contextmanager
def _refuse_damaged(path: Path) -> Iterator[None]:
    try:
        yield
    except Misfit as problem:
        raise StoreError(f"{path} is damaged ({problem}): delete it, and run the same command again") from problem


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
