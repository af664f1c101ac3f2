"""A file that an earlier version wrote is shown and measured like one of today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from butfor.cli import main
from butfor.evaluation import explanation_size, fidelity
from butfor.result.lines import to_line
from butfor.runs import read_results

# What version 0.1.0 wrote (schema 2), and what it said of each line: target, verdict, sentence and note.
FORMER = Path(__file__).parents[1] / "result" / "schema_2.jsonl"
SAID = [line.split(" | ") for line in FORMER.with_suffix(".txt").read_text().splitlines()]


@pytest.fixture
def today(tmp_path: Path) -> Path:
    """The same results as they are written today."""
    path = tmp_path / "schema_2.jsonl"
    path.write_bytes(b"".join(map(to_line, read_results(FORMER))))
    return path


def test_all_results_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(FORMER)]) == 0
    printed = capsys.readouterr().out
    # The terminal is narrow: lines are wrapped.
    assert printed.split() == " ".join(sentence for _, _, sentence, _ in SAID).split()


@pytest.mark.parametrize("number", [number for number, (target, *_) in enumerate(SAID) if target.startswith("node")])
def test_one_result_is_shown(number: int, today: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, verdict, sentence, _ = SAID[number]
    assert main(["show", str(FORMER), "--node", target.removeprefix("node ")]) == 0
    former = capsys.readouterr().out
    assert (sentence.split() + verdict.split()) == former.split()[: len(f"{sentence} {verdict}".split())]
    assert main(["show", str(today), "--node", target.removeprefix("node ")]) == 0
    assert capsys.readouterr().out == former


def test_metrics_are_those_of_today(tmp_path: Path, today: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(today)]) == 0
    table = capsys.readouterr().out
    assert main(["evaluate", str(FORMER)]) == 0
    assert capsys.readouterr().out == table
    # Where nothing has to change there is nothing to be found.
    results = [result for result in read_results(FORMER) if result.status.value != "reached"]
    assert f"{sum(result.found for result in results)}/{len(results)}" in table
    assert f"{fidelity(results):.2f}" in table
    assert f"{explanation_size(results).mean:.2f}" in table
    # Beside each other they are rows of one table.
    renamed = tmp_path / "today.jsonl"
    renamed.write_bytes(today.read_bytes())
    assert main(["evaluate", str(FORMER), str(renamed)]) == 0
    rows = [line.split()[1:] for line in capsys.readouterr().out.splitlines() if ".jsonl:" in line]
    assert len(rows) == 2
    assert rows[0] == rows[1]


def test_former_and_present_results_may_stand_in_one_file(tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.jsonl"
    lines = FORMER.read_bytes().splitlines(keepends=True)
    results = read_results(FORMER)
    mixed.write_bytes(b"".join(lines[:8]) + b"".join(map(to_line, results[8:])))
    assert read_results(mixed) == results
    assert {json.loads(line)["schema"] for line in mixed.read_text().splitlines()} == {2, 3}
