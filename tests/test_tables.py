"""Tables as Markdown and CSV, and the numbers in them."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest

from butfor.evaluation.tables import Table
from butfor.paper.formatting import format_difference, format_mean, format_number, format_p_value
from butfor.paper.sections import Picture, Section

TABLE = Table(
    "sizes",
    "Sizes",
    ("dataset", "method", "size"),
    (("Tree-Cycles", "A|B", "1.29"), ("", "C", "–")),
    ({"dataset": "tree-cycles", "size": 1.287}, {"dataset": "tree-cycles", "size": None, "note": 'say "no", twice'}),
    ("A note.",),
    left=2,
)


def test_markdown_has_all_cells_and_escapes_bars() -> None:
    lines = TABLE.markdown().splitlines()
    assert lines[0] == "**Sizes**"
    assert lines[2:6] == [
        "| dataset | method | size |",
        "| --- | --- | ---: |",
        "| Tree-Cycles | A\\|B | 1.29 |",
        "|  | C | – |",
    ]
    assert lines[-1] == "A note."


def test_csv_keeps_full_precision_and_missing_values() -> None:
    rows = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert rows == [
        {"dataset": "tree-cycles", "size": "1.287", "note": ""},
        {"dataset": "tree-cycles", "size": "", "note": 'say "no", twice'},
    ]


def test_csv_takes_whole_numbers_and_fractions_in_one_column() -> None:
    table = Table("t", "t", ("a",), (), ({"a": 1, "b": 0}, {"a": 2.5, "b": 0}, {"a": None, "b": 0}))
    values = [row["a"] for row in csv.DictReader(io.StringIO(table.csv()))]
    assert [float(value) if value else None for value in values] == [1, 2.5, None]


def test_a_section_survives_json() -> None:
    section = Section("part", "Part", "all nodes", ("Words.",), (TABLE,), (Picture("figure", "A figure."),))
    assert Section.from_dict(json.loads(json.dumps(section.to_dict()))) == section


def test_numbers_in_cells() -> None:
    assert format_number(1.005, 1) == "1.0"
    assert format_number(None) == format_number(math.nan) == "–"
    assert format_mean(2.094, 2.212) == "2.09 ± 2.21"
    assert format_mean(2.094, None) == "2.09"
    assert format_mean(math.nan, math.nan) == "–"
    assert format_difference(0.8, 1.0) == "−0.20"
    assert format_difference(1.0, 0.8) == "+0.20"
    assert format_difference(2.094, 2.09) == "0.00"
    assert format_difference(2.086, 2.09) == "0.00"
    assert format_difference(math.nan, 1.0) == format_difference(1.0, None) == "–"


@pytest.mark.parametrize(("p", "told"), [(0.5, "0.5000"), (0.00001, "< 0.0001"), (math.nan, "–")])
def test_probabilities_in_cells(p: float, told: str) -> None:
    assert format_p_value(p) == told
