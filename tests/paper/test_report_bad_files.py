"""A folder of the reproduction in which a file is damaged, or names files outside."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bad_files import LARGE, NOT_JSON, check_refused, make_no_file
from butfor.errors import StoreError
from butfor.paper.report import _delete_tables, _earlier_commands, _read_section
from butfor.paper.sections import Section

if TYPE_CHECKING:
    from pathlib import Path


SECTION: dict[str, Any] = {
    "name": "table-1",
    "title": "a",
    "settings": "b",
    "text": ["c"],
    "tables": [
        {
            "name": "table-1-a",
            "title": "t",
            "headings": ["h", "i"],
            "rows": [["a", "b"]],
            "records": [{"a": 1, "b": None}],
            "notes": ["n"],
            "left": 1,
        }
    ],
    "pictures": [{"name": "figure-a", "caption": "c"}],
}


OUTSIDE = ["../../victim", "/victim", "a/b", "..", ".", "", "a\0b", "-a", ".hidden", "a\nb", 3, None, ["a"], "x" * 300]


def changed(kind: str, field: str, value: Any) -> dict[str, Any]:
    if kind == "section":
        return {**SECTION, field: value}
    return {**SECTION, kind: [{**SECTION[kind][0], field: value}]}


SECTIONS = [
    *(changed(kind, "name", name) for kind in ("section", "tables", "pictures") for name in OUTSIDE),
    changed("section", "name", "table-2"),
    *(changed("section", field, 3) for field in ("title", "settings", "text", "tables", "pictures")),
    *(changed("section", field, [3]) for field in ("text", "tables", "pictures")),
    *(changed("tables", field, 3) for field in ("title", "headings", "rows", "records", "notes")),
    *(changed("tables", field, [3]) for field in ("headings", "rows", "records", "notes")),
    changed("tables", "rows", [["a"]]),
    changed("tables", "rows", [["a", 3]]),
    changed("tables", "records", [{"a": []}]),
    *(changed("tables", "left", value) for value in (-1, 3, 1.0, True, None)),
    changed("pictures", "caption", None),
    changed("section", "colour", "red"),
    changed("tables", "colour", "red"),
    {key: value for key, value in SECTION.items() if key != "text"},
]


def test_a_section_survives(tmp_path: Path) -> None:
    (tmp_path / "table-1.json").write_text(json.dumps(SECTION))
    assert _read_section(tmp_path / "table-1.json") == Section.from_dict(SECTION)


@pytest.mark.parametrize("number", range(len(SECTIONS)))
def test_sections_that_are_damaged(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "out"
    (folder / "parts").mkdir(parents=True)
    (folder / "tables").mkdir()
    for end in ("md", "csv"):
        (tmp_path / f"victim.{end}").write_text("mine")
    (folder / "parts" / "table-1.json").write_text(json.dumps(SECTIONS[number]))
    check_refused(lambda: _delete_tables(folder, "table-1"), StoreError, tmp_path, "table-1.json is damaged")


RUNS: list[Any] = [
    {"runs": 3},
    {"runs": {}},
    {"runs": [3]},
    {"runs": [{"command": 1, "seconds": 1, "date": "a"}]},
    {"runs": [{"command": "a", "seconds": "1", "date": "a"}]},
    {"runs": [{"command": "a", "seconds": LARGE, "date": "a"}]},
    {"runs": [{"command": "a", "seconds": -1, "date": "a"}]},
    {"runs": [{"command": "a", "seconds": 1, "date": None}]},
    {},
]


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_settings_that_are_damaged(tmp_path: Path, number: int) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(RUNS[number]))
    check_refused(lambda: _earlier_commands(path), StoreError, tmp_path, "settings.json is damaged")


@pytest.mark.parametrize("case", NOT_JSON)
def test_files_that_are_no_json_object(tmp_path: Path, case: str) -> None:
    for name, read in (("table-1.json", _read_section), ("settings.json", _earlier_commands)):
        (tmp_path / name).write_bytes(NOT_JSON[case])
        check_refused(lambda name=name, read=read: read(tmp_path / name), StoreError, tmp_path, name)


@pytest.mark.parametrize("kind", ["pipe", "endless", "larger than memory", "folder"])
def test_files_that_are_none(tmp_path: Path, kind: str) -> None:
    for name, read in (("table-1.json", _read_section), ("settings.json", _earlier_commands)):
        make_no_file(tmp_path / name, kind)
        check_refused(lambda name=name, read=read: read(tmp_path / name), StoreError, tmp_path, name)
