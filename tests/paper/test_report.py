"""What a run leaves in its folder and says on the screen: settings, tables, figures, and a page of them all."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from reproduction import PARTS, VERSIONS, Done, markdown, page_of, tables

pytestmark = pytest.mark.published


def test_settings_versions_and_seeds_are_written_down(run: Done, reference: Path) -> None:
    (entry,) = json.loads((run.folder / "settings.json").read_text(encoding="utf-8"))["runs"]
    assert {name: entry[name] for name in VERSIONS} == VERSIONS
    assert entry["parts"] == list(PARTS)
    assert entry["datasets"] == ["tree-cycles"]
    assert entry["seeds"] == {"tree-cycles": [0]}
    assert entry["quick"] is True
    assert Path(entry["published graphs"]).resolve() == reference.resolve()
    assert entry["command"].startswith("butfor reproduce")


def test_the_screen_shows_the_tables_and_where_everything_is(run: Done) -> None:
    assert str(run.folder / "index.html") in run.out
    for name in tables(run.folder):
        if name.endswith(".md"):
            title, cells = markdown(run.folder, name.removesuffix(".md"))
            assert " ".join(title.split()) in " ".join(run.out.split())
            assert all(cell in run.out for row in cells for cell in row)


def test_the_page_is_well_formed_and_needs_no_network(run: Done) -> None:
    text = (run.folder / "index.html").read_text(encoding="utf-8")
    assert text.lower().startswith("<!doctype html>")
    page = page_of(run.folder)
    assert len(set(page.ids)) == len(page.ids)
    assert all(value.startswith("data:") for value in page.sources)
    assert not {"script", "iframe", "object", "embed"} & {tag for tag, _ in page.elements}
    assert "@import" not in text
    assert not re.search(r"url\((?!['\"]?(data:|#))", text)
    for link in page.links:
        assert link[1:] in page.ids if link.startswith("#") else (run.folder / link).is_file(), link


def test_the_page_shows_every_table_and_every_figure(run: Done) -> None:
    page = page_of(run.folder)
    names = [name.removesuffix(".md") for name in tables(run.folder) if name.endswith(".md")]
    assert len(names) == 1 + 4 + 2
    for name in names:
        title, cells = markdown(run.folder, name)
        (shown,) = [table for table in page.tables if table[0].strip() == title]
        expected = Counter(cell.replace("`", "") for row in cells for cell in row if cell)
        assert not expected - Counter(cell.strip() for cell in shown), name
    figures = sorted(path.stem for path in (run.folder / "figures").glob("*.svg"))
    assert {"figure-2", "figure-3", "figure-4", "figure-5", "figure-frontier"} <= set(figures)
    assert figures == sorted(path.stem for path in (run.folder / "figures").glob("*.png"))
    assert len([source for source in page.sources if source.startswith("data:image/")]) == len(figures)
    for version in VERSIONS.values():
        assert version in [words for _, words in page.words]
