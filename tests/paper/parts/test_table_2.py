"""Table 2: every method beside the paper's numbers, by two protocols."""

from __future__ import annotations

import csv
from itertools import product

import numpy as np
import pytest

from reproduction import (
    METHODS,
    NAMES,
    Done,
    Published,
    as_close,
    markdown,
    metrics,
    nodes_of,
    number,
    table,
    tables,
)

# PAPER_NOTES.md, "Published results", Tree-Cycles: found, fidelity, size ± std, sparsity ± std, accuracy.
PAPER: dict[str, tuple[float | None, ...]] = {
    "random": (175, 0.00, 4.70, 4.28, 0.79, 0.07, 0.63),
    "1hop": (119, 0.32, 15.64, 12.36, 0.13, 0.06, 0.45),
    "rm-1hop": (94, 0.46, 2.11, 1.04, 0.89, 0.04, None),
    "cf-gnn": (139, 0.21, 2.09, 2.21, 0.90, 0.07, 0.94),
    "cf-gnn-paper": (139, 0.21, 2.09, 2.21, 0.90, 0.07, 0.94),
    "greedy": (None,) * 7,
    "exact": (None,) * 7,
}
PAPER_COLUMNS = [
    "paper_found",
    "paper_fidelity",
    "paper_size",
    "paper_size_std",
    "paper_sparsity",
    "paper_sparsity_std",
    "paper_accuracy",
]

pytestmark = pytest.mark.published


@pytest.mark.parametrize("name", [f"table-2-{s}-{p}" for s in ("published", "fresh") for p in ("all", "motif")])
def test_table_2_has_every_method_once_and_its_numbers_parse(run: Done, name: str) -> None:
    rows = table(run.folder, name)
    assert [row["method"] for row in rows] == METHODS
    for row in rows:
        assert row["dataset"] == "tree-cycles"
        values = {key: number(row[key]) for key in row if key not in ("dataset", "source", "protocol", "method")}
        for share in ("fidelity", "sparsity", "accuracy", "strict"):
            assert values[share] is None or 0 <= values[share] <= 1
        assert 0 <= values["proved"] <= values["found"] <= values["total"]
        assert values["fidelity"] == pytest.approx(1 - values["found"] / values["total"])
    cells = markdown(run.folder, name)[1]
    assert [row[1] for row in cells[1 : 1 + len(NAMES)]] == NAMES
    for row, shown in zip(rows, cells[1:], strict=False):
        assert f"{row['found']}/{row['total']}" in shown
        if row["size"]:
            assert any(cell.startswith(f"{float(row['size']):.2f} ") for cell in shown), shown


def test_means_over_seeds_and_what_others_published_are_in_the_file_too(run: Done) -> None:
    with (run.folder / "tables/table-2-fresh-all.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    means = {row["method"]: row for row in rows if row["source"] == "all seeds"}
    for row in table(run.folder, "table-2-fresh-all"):
        assert means[row["method"]]["size"] == row["size"]
        assert means[row["method"]]["size_spread"] == ""  # one seed has none
        for metric in ("fidelity", "size", "sparsity", "accuracy"):
            ours, theirs = number(row[metric]), number(row[f"paper_{metric}"])
            expected = None if ours is None or theirs is None else ours - theirs
            assert as_close(number(means[row["method"]][f"difference_{metric}"]), expected)
    others = (run.folder / "tables/table-2-published-motif.csv").read_text(encoding="utf-8")
    assert others.count("InduCE") == 2


@pytest.mark.parametrize("source", ["published", "fresh"])
def test_the_published_numbers_stand_beside_ours(run: Done, source: str) -> None:
    for row in table(run.folder, f"table-2-{source}-all"):
        assert tuple(number(row[column]) for column in PAPER_COLUMNS) == PAPER[row["method"]]


@pytest.mark.parametrize("source", ["published", "fresh"])
def test_a_difference_is_ours_less_theirs(run: Done, source: str) -> None:
    headings, *shown = markdown(run.folder, f"table-2-{source}-all")[1]
    places = [place for place, heading in enumerate(headings) if heading == "Δ"]
    assert len(places) == 4
    for row, cells in zip(table(run.folder, f"table-2-{source}-all"), shown, strict=True):
        for place, metric in zip(places, ("fidelity", "size", "sparsity", "accuracy"), strict=True):
            assert headings[place - 1] == "paper"
            assert headings[place - 2][:3] == metric[:3]
            ours, theirs = number(row[metric]), number(row[f"paper_{metric}"])
            if ours is None or theirs is None:
                assert cells[place] == "–"
            else:
                assert float(cells[place].replace("−", "-")) == pytest.approx(ours - theirs, abs=0.0101)


def test_fidelity_size_sparsity_and_accuracy_are_those_of_the_results(run: Done, published: Published) -> None:
    rows = {row["method"]: row for row in table(run.folder, "table-2-published-all")}
    for method in METHODS:
        for name, value in metrics(nodes_of(run.folder, method, published), published.predicted).items():
            assert as_close(number(rows[method][name]), value), (method, name, rows[method][name], value)


def test_the_other_protocol_is_about_correctly_classified_motif_nodes_only(run: Done, published: Published) -> None:
    rows = {row["method"]: row for row in table(run.folder, "table-2-published-motif")}
    right = {node for node in published.test if published.y[node] != 0 and published.predicted[node] != 0}
    for method in METHODS:
        nodes = [node for node in nodes_of(run.folder, method, published) if node.target in right]
        assert 0 < len(nodes) < 18
        for name, value in metrics(nodes, published.predicted).items():
            assert as_close(number(rows[method][name]), value), (method, name, rows[method][name], value)


def test_strict_accuracy_asks_that_all_removed_edges_are_inside_motifs(run: Done, published: Published) -> None:
    for row in table(run.folder, "table-2-published-all"):
        targets = [
            node
            for node in nodes_of(run.folder, row["method"], published)
            if node.removed and published.predicted[node.target] != 0
        ]
        inside = [all(published.y[end] != 0 for edge in node.removed for end in edge) for node in targets]
        assert as_close(number(row["strict"]), float(np.mean(inside)) if inside else None), row["method"]


def test_the_two_protocols_are_never_mixed(run: Done) -> None:
    for source, protocol in product(("published", "fresh"), ("all", "motif")):
        rows = table(run.folder, f"table-2-{source}-{protocol}")
        assert {row["protocol"] for row in rows} == {protocol}
        assert {row["source"] for row in rows} == {"published" if source == "published" else "seed-0"}
        assert len({row["total"] for row in rows}) == 1
        # The paper's numbers are about all test nodes.
        assert any(key.startswith("paper") for row in rows for key in row) == (protocol == "all")
        headings = markdown(run.folder, f"table-2-{source}-{protocol}")[1][0]
        assert ("paper" in headings, "Δ" in headings) == (protocol == "all", protocol == "all")
    titles = {markdown(run.folder, name.removesuffix(".md"))[0] for name in tables(run.folder) if name.endswith(".md")}
    assert len(titles) == len([name for name in tables(run.folder) if name.endswith(".md")])
