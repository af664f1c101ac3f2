"""The significance tables: t-tests computed here once more."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy import stats

from reproduction import METHODS, Done, Published, markdown, nodes_of, table

pytestmark = pytest.mark.published


@pytest.mark.slow
def test_t_tests_are_welch_s_and_paired_on_the_nodes_both_solve(run: Done, published: Published) -> None:
    rows = table(run.folder, "significance")
    baselines = ["random", "1hop", "rm-1hop"]
    pairs = {(row["first"], row["second"], row["metric"]) for row in rows}
    assert pairs >= set(product(["cf-gnn", "greedy", "exact"], baselines, ["size", "sparsity"]))
    assert pairs >= set(product(["greedy", "exact"], ["cf-gnn"], ["size", "sparsity"]))
    solved = {
        method: {node.target: node for node in nodes_of(run.folder, method, published) if node.removed}
        for method in METHODS
    }
    for row in rows:
        first, second = (
            {n: getattr(node, row["metric"]) for n, node in solved[row[k]].items()} for k in ("first", "second")
        )
        both = sorted(first.keys() & second.keys())
        assert (int(row["first_nodes"]), int(row["second_nodes"])) == (len(first), len(second))
        assert int(row["paired_nodes"]) == len(both)
        a, b = list(first.values()), list(second.values())
        assert float(row["difference"]) == pytest.approx(np.mean(a) - np.mean(b))
        assert float(row["p"]) == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)
        a, b = [first[node] for node in both], [second[node] for node in both]
        assert float(row["paired_difference"]) == pytest.approx(np.mean(a) - np.mean(b))
        if a == b:
            assert float(row["paired_p"]) == 1
        else:
            assert float(row["paired_p"]) == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_an_asterisk_marks_p_below_a_hundredth(run: Done) -> None:
    title, (headings, *shown) = markdown(run.folder, "significance")
    assert "0.01" in title
    places = [place for place, heading in enumerate(headings) if heading == "p" or heading.startswith("p,")]
    assert len(places) == 4
    by_metric = {
        metric: [row for row in table(run.folder, "significance") if row["metric"] == metric]
        for metric in ("size", "sparsity")
    }
    marks = Counter()
    for size, sparsity, cells in zip(by_metric["size"], by_metric["sparsity"], shown, strict=True):
        ps = [float(row[key]) for row in (size, sparsity) for key in ("p", "paired_p")]
        for place, p in zip(places, ps, strict=True):
            assert cells[place].endswith("*") == (p < 0.01), (cells, p)
            marks[p < 0.01] += 1
    assert marks[True]
    assert marks[False]


def test_sizes_are_also_given_on_the_nodes_that_all_methods_solve(run: Done, published: Published) -> None:
    solved = {
        method: {node.target: node.size for node in nodes_of(run.folder, method, published) if node.removed}
        for method in METHODS
    }
    rows = table(run.folder, "significance-common")
    assert len({row["solved_by"] for row in rows}) == len(rows)
    assert all(rows[0][f"size_{method}"] for method in METHODS)
    for row in rows:
        compared = [method for method in METHODS if row[f"size_{method}"]]
        common = set.intersection(*(set(solved[method]) for method in compared))
        assert int(row["nodes"]) == len(common) > 0
        for method in compared:
            assert float(row[f"size_{method}"]) == pytest.approx(np.mean([solved[method][node] for node in common]))
