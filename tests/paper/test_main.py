"""`butfor reproduce` goes on where it stopped, makes the parts it is asked for, and says what it lacks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from butfor.cli import main
from butfor.methods import Greedy
from reproduction import PARTS, QUICK, Done, page_of, reproduce, result_files, table, tables

if TYPE_CHECKING:
    from reproduction import Capture

pytestmark = pytest.mark.published


def test_the_same_command_again_does_nothing_anew(copy: Path, reference: Path) -> None:
    files, before = result_files(copy), tables(copy)
    reproduce(copy, *(part for part in PARTS if part != "figures"), *QUICK, "--quiet", "--reference", str(reference))
    assert result_files(copy) == files
    assert tables(copy) == before
    assert len(list((copy / "figures").glob("*.png"))) >= 5


def test_a_quiet_run_shows_no_tables(copy: Path, reference: Path, capsys: Capture) -> None:
    done = reproduce(copy, "table-1", *QUICK, "--quiet", "--reference", str(reference))
    assert "Tree-Cycles" not in done.out
    assert len(done.out.splitlines()) <= 1


def test_only_what_is_missing_is_done(copy: Path, reference: Path) -> None:
    before, files = tables(copy), result_files(copy)
    missing = "results/published/tree-cycles/random.jsonl"
    halved = "results/seed-0/tree-cycles/cf-gnn.jsonl"
    cut = "results/seed-0/tree-cycles/greedy.jsonl"
    (copy / missing).unlink()
    kept = files[halved][1].splitlines(keepends=True)[2:11]
    (copy / halved).write_bytes(b"".join(kept))
    (copy / cut).write_bytes(files[cut][1][:-200])  # as a crash in the middle of a line leaves it
    reproduce(copy, "table-2", *QUICK, "--quiet", "--reference", str(reference))
    assert tables(copy) == before
    after = result_files(copy)
    assert {name for name in after if after[name] != files[name]} == {missing, halved, cut}
    assert after[halved][1].startswith(b"".join(kept))
    assert after[cut][1].startswith(b"".join(files[cut][1].splitlines(keepends=True)[:-1]))
    for name in (missing, halved, cut):
        edits = [
            {line["target"]: line["edits"] for line in map(json.loads, text.splitlines())}
            for text in (files[name][1], after[name][1])
        ]
        assert edits[0] == edits[1]
        assert len(after[name][1].splitlines()) == 18


def test_an_interrupted_run_goes_on(
    started: Path, run: Done, reference: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = result_files(started)
    removed = {f"results/published/tree-cycles/{method}.jsonl" for method in ("greedy", "exact")}
    for name in removed:
        (started / name).unlink()
    arguments = ["reproduce", "table-2", *QUICK, "--reference", str(reference), "--out", str(started)]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Greedy, "solve", interrupt)
        assert main(arguments) == 130
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert "interrupted" in err
    kept = result_files(started)
    assert all(kept[name] == files[name] for name in files.keys() - removed)
    assert main(arguments) == 0
    for name, text in tables(started).items():
        assert text == tables(run.folder)[name]


def test_a_part_alone_makes_only_that_part(started: Path, run: Done, reference: Path) -> None:
    reproduce(started, "significance", *QUICK, "--quiet", "--reference", str(reference))
    assert set(tables(started)) == {f"significance{more}.{kind}" for more in ("", "-common") for kind in ("csv", "md")}
    assert all(text == tables(run.folder)[name] for name, text in tables(started).items())
    assert not list(started.rglob("*.svg"))
    assert len(page_of(started).tables) == 2


def test_parts_added_later_are_shown_with_the_earlier_ones(started: Path, run: Done, reference: Path) -> None:
    for part in ("significance", "table-1", "table-2"):
        reproduce(started, part, *QUICK, "--quiet", "--reference", str(reference))
    assert tables(started) == tables(run.folder)
    titles = [shown[0] for shown in page_of(started).tables]
    # In the paper's order, not in the order in which they were made.
    assert titles == [shown[0] for shown in page_of(run.folder).tables]
    recorded = json.loads((started / "settings.json").read_text(encoding="utf-8"))["runs"]
    assert [entry["parts"] for entry in recorded] == [["significance"], ["table-1"], ["table-2"]]


def test_without_the_published_graphs_it_explains_fresh_ones_and_says_so(
    run: Done, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "a" / "here"
    shutil.copytree(run.folder / "models", here / "out" / "models")
    shutil.copytree(run.folder / "results" / "seed-0", here / "out" / "results" / "seed-0")
    monkeypatch.chdir(here)
    assert main(["reproduce", "table-1", "table-2", "significance", *QUICK, "--out", "out"]) == 0
    said = "".join(capsys.readouterr())
    assert "published graphs" in said
    assert "fresh graphs only" in said
    made = tables(here / "out")
    assert not [name for name in made if "published" in name]
    assert {name for name in made if "fresh" in name} == {name for name in tables(run.folder) if "fresh" in name}
    for name in made:
        if "fresh" in name:
            assert made[name] == tables(run.folder)[name]
    assert {row["source"] for row in table(here / "out", "significance")} == {"seed-0"}
    assert {row["published_graph"] for row in table(here / "out", "table-1")} == {""}
    (entry,) = json.loads((here / "out" / "settings.json").read_text())["runs"]
    assert not entry["published graphs"] or "not" in entry["published graphs"]


def test_the_published_graphs_are_found_beside_the_project(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared").symlink_to(shared)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    reproduce(Path("out"), "table-1", *QUICK, "--quiet")
    assert {row["statistic"]: row["published_graph"] for row in table(Path("out"), "table-1")}["edges"] == "1940.0"
