"""Where the published code departs from the paper: one switch for each."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.paper.benchmark import Benchmark
from butfor.paper.parts import departures
from reproduction import Done, Published, as_close, markdown, metrics, nodes_of, number, results, table

if TYPE_CHECKING:
    from pathlib import Path


def test_each_departure_is_one_switch() -> None:
    methods = departures.variants(Benchmark("ba-shapes"))
    paper, code = methods["departures/paper"], methods["departures/code"]
    assert paper == butfor.CFGNN(momentum=0.9)
    assert code == butfor.CFGNN.published(momentum=0.9)
    assert len(methods) == 12
    for label, method in methods.items():
        base = paper if "/paper" in label else code
        changed = [item.name for item in fields(base) if getattr(base, item.name) != getattr(method, item.name)]
        assert len(changed) == (label not in ("departures/paper", "departures/code"))


@pytest.mark.slow
@pytest.mark.published
def test_each_of_the_five_departures_is_switched_on_and_off(variants: Done) -> None:
    rows = table(variants.folder, "departures")
    methods = [[line["method"] for line in results(variants.folder, "published", row["method"])] for row in rows]
    assert all(method == each[0] for each in methods for method in each)
    settings = [each[0]["settings"] for each in methods]
    keys = ["distance_gradient", "degrees", "clip", "keep", "start"]
    paper, code = settings[0], settings[6]
    assert [paper[key] for key in keys[:4]] != [code[key] for key in keys[:4]]
    assert all(paper[key] != code[key] for key in keys[:4])
    for base, changed in ((paper, settings[1:6]), (code, settings[7:12])):
        for key, variant in zip(keys, changed, strict=True):
            assert [k for k in variant if variant[k] != base[k]] == [key]
            if key != "start":
                assert {variant[key], base[key]} == {paper[key], code[key]}
    # The code means to start a little below one and does not: neither the paper's choice nor what the code does.
    assert paper["start"] == code["start"] == 1
    assert {settings[5]["start"], settings[11]["start"]} == {1 - 1e-4}


@pytest.mark.slow
@pytest.mark.published
def test_the_departures_table_gives_the_metrics_of_its_results(variants: Done, other_reference: Path) -> None:
    other = Published.of(other_reference)
    rows = table(variants.folder, "departures")
    shown = markdown(variants.folder, "departures")[1]
    assert len(rows) == len(shown) - 1 == 12
    assert len({(row["found"], row["size"]) for row in rows}) > 1
    for row, cells in zip(rows, shown[1:], strict=True):
        for name, value in metrics(nodes_of(variants.folder, row["method"], other), other.predicted).items():
            assert as_close(number(row[name]), value), (row["method"], name)
        assert f"{row['found']}/{row['total']}" in cells
