"""Results on disk in a notebook: a table of the first of them, without reading them all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

import butfor
from butfor import ResultList
from sample_results import NOTHING, RESULT

if TYPE_CHECKING:
    from pathlib import Path

    from butfor.runs import Results


@pytest.fixture
def many(tmp_path: Path) -> Results:
    ResultList(replace(NOTHING if number % 2 else RESULT, target=number) for number in range(100)).save(
        tmp_path / "many.jsonl"
    )
    return butfor.load_results(tmp_path / "many.jsonl")


def test_they_are_told_in_a_line(many: Results) -> None:
    assert repr(many) == f"<Results in {many.path}>"
    chosen = many.where(targets=[1, 2], status=["unknown", "found"])
    assert repr(chosen) == f"<Results in {many.path} of 2 targets that are found or unknown>"


def test_they_are_a_table(many: Results) -> None:
    page = many._repr_html_()
    assert len(list(ElementTree.fromstring(page).iter("tr"))) == 41
    assert "and more" in page
    assert len(many) == 100
    assert "and 60 more" in many._repr_html_(), "once they are counted"
    assert "more" not in many.where(targets=range(40))._repr_html_()
    assert type(many[:3]) is ResultList
