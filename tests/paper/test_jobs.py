"""What is explained by which method: each once, and what is saved of it is verified here once more."""

from __future__ import annotations

import pytest

import butfor
from butfor.paper.benchmark import Benchmark
from butfor.paper.jobs import Job, without_duplicates
from butfor.runs import read_results
from reproduction import METHODS, VERSIONS, Done, Published, classes, lines, nodes_of, results, without


def test_what_several_parts_need_is_run_once() -> None:
    benchmark = Benchmark("tree-cycles", 0)
    one, two = butfor.Greedy(), butfor.Exact()
    jobs = [Job(benchmark, {"a": one}), Job(benchmark, {"a": one, "b": two}), Job(benchmark, {"b": two})]
    assert [list(job.methods) for job in without_duplicates(jobs)] == [["a"], ["b"]]
    other = Job(Benchmark("tree-cycles", 1), {"a": one})
    assert len(list(without_duplicates([*jobs, other]))) == 3


@pytest.mark.published
def test_every_result_can_be_read_back_and_says_what_made_it(run: Done, published: Published) -> None:
    for source in ("published", "seed-0"):
        targets = []
        for method in METHODS:
            path = run.folder / "results" / source / "tree-cycles" / f"{method}.jsonl"
            read = read_results(path)
            assert len(read) == 18
            targets.append(sorted(result.target for result in read))
            assert [result.target for result in read] == [line["target"] for line in lines(path)]
            for line in lines(path):
                assert line["versions"] == VERSIONS
                assert isinstance(line["seed"], int)
                assert line["method"]
        assert all(nodes == targets[0] for nodes in targets)
        assert len(set(targets[0])) == 18
        if source == "published":
            assert set(targets[0]) <= set(published.test)


@pytest.mark.published
@pytest.mark.parametrize("method", METHODS)
def test_every_counterfactual_changes_the_class(run: Done, published: Published, method: str) -> None:
    for line in results(run.folder, "published", method):
        node = line["target"]
        assert line["before"]["label"] == published.predicted[node]
        removed = {(u, v) for kind, u, v in line["edits"] if kind == "delete"}
        assert len(removed) == len(line["edits"])
        assert removed <= {(u, v) for u, v in published.edge_index.T.tolist()}
        if removed:
            after = classes(published.x, without(published.edge_index, removed), published.weights)[node]
            assert after == line["after"]["label"] != line["before"]["label"]


@pytest.mark.published
def test_1hop_keeps_the_ego_graph_and_rm_1hop_removes_it(run: Done, published: Published) -> None:
    for method in ("1hop", "rm-1hop"):
        for node in nodes_of(run.folder, method, published):
            if node.removed:
                ego = {node.target, *published.neighbours[node.target]}
                kept = {(u, v) for u in ego for v in published.neighbours[u] & ego if u < v}
                in_ego = {edge for edge in node.removed if set(edge) <= ego}
                assert in_ego == (kept if method == "rm-1hop" else set())
                assert node.size == (len(kept) if method == "rm-1hop" else node.edges - len(kept))


@pytest.mark.published
def test_no_method_beats_the_proved_optimum(run: Done) -> None:
    for source in ("published", "seed-0"):
        best = {line["target"]: line["cost"] for line in results(run.folder, source, "exact")}
        for method in METHODS:
            for line in results(run.folder, source, method):
                assert not line["edits"] or line["cost"] >= best[line["target"]]
