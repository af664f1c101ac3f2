"""Tables as Markdown and CSV."""

from __future__ import annotations

import csv
import io
import json

from butfor.evaluation.tables import Table

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


def test_a_table_survives_json() -> None:
    assert Table.from_dict(json.loads(json.dumps(TABLE.to_dict()))) == TABLE
