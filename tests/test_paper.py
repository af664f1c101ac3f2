"""What the reproduction is built on: benchmarks, jobs, the grid, the departures, the dense algorithm."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
import torch

import butfor
from butfor.paper import PAPER, paper_row
from butfor.paper.benchmark import Benchmark, load_benchmark
from butfor.paper.dense_cf_gnn import dense_cf_gnn
from butfor.paper.experiment import Experiment
from butfor.paper.jobs import Job, without_duplicates
from butfor.paper.parts import PARTS, departures
from butfor.paper.parts import hyperparameter_search as search

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("dataset", "edges"), [("tree-cycles", 360), ("tree-grid", 961), ("ba-shapes", 480)])
def test_the_motifs_of_the_published_graphs_are_found(dataset: str, edges: int, reference: Path) -> None:
    paper = PAPER[dataset].statistics
    data = load_benchmark(Benchmark(dataset), reference).data
    assert ((data.node_motif >= 0) == (data.y > 0)).all()
    motifs = torch.bincount(data.node_motif[data.node_motif >= 0])
    assert (motifs == paper.motif_nodes).all()
    assert int(data.edge_motif.sum()) // 2 == edges
    # One noise edge joins two nodes of one grid.
    assert edges - len(motifs) * paper.motif_edges == (dataset == "tree-grid")


def test_what_several_parts_need_is_run_once() -> None:
    benchmark = Benchmark("tree-cycles", 0)
    one, two = butfor.Greedy(), butfor.Exact()
    jobs = [Job(benchmark, {"a": one}), Job(benchmark, {"a": one, "b": two}), Job(benchmark, {"b": two})]
    assert [list(job.methods) for job in without_duplicates(jobs)] == [["a"], ["b"]]
    other = Job(Benchmark("tree-cycles", 1), {"a": one})
    assert len(list(without_duplicates([*jobs, other]))) == 3


def test_a_label_stands_for_one_method_only(tmp_path: Path) -> None:
    experiment = Experiment(tmp_path, tmp_path)
    methods: dict[tuple[Benchmark, str], str] = {}
    for part in PARTS.values():
        for job in part.jobs(experiment):
            for label, method in job.methods.items():
                assert methods.setdefault((job.benchmark, label), repr(method)) == repr(method)


def test_a_result_of_an_earlier_version_still_has_its_row_in_the_paper() -> None:
    dataset = PAPER["tree-cycles"]
    row = next(row for row in dataset.rows if row.label == "CF-GNN")
    # As it was written before CFGNN had a fallback.
    text = (
        "CFGNN(epochs=500, lr=0.1, beta=0.5, optimizer='sgd', momentum=0.0, distance_gradient=False, "
        "degrees='detached', clip=2.0, keep='first', start=1.0)"
    )
    assert paper_row(dataset, text) is row
    assert paper_row(dataset, text.replace("epochs=500", "epochs=400")) is None
    assert paper_row(dataset, text.replace("CFGNN", "Greedy")) is None
    assert paper_row(dataset, "CFGNN()") is None


# Nodes of the published Tree-Cycles that are solved at once, after 100 and after 300 iterations, and never.
@pytest.mark.parametrize(("variant", "nodes"), [("code", [639, 553, 13, 10, 515]), ("paper", [516, 22, 147, 34])])
def test_one_run_tells_what_fewer_iterations_find(variant: str, nodes: list[int], reference: Path) -> None:
    loaded = load_benchmark(Benchmark("tree-cycles"), reference)
    setting = search.Setting(500, 0.5, 0.1, 0.0, "sgd")
    run = butfor.explain(loaded.model, loaded.data, nodes, setting.method(variant))
    counts = []
    for epochs in search.EPOCHS[:2]:
        method = butfor.CFGNN.published() if variant == "code" else butfor.CFGNN()
        shorter = butfor.explain(loaded.model, loaded.data, nodes, replace(method, epochs=epochs))
        counts.append(sum(result.found for result in shorter))
        assert counts[-1] == sum(result.found and result.evaluations <= epochs for result in run)
    assert 0 < counts[0] < counts[1] < sum(result.found for result in run) < len(nodes)


def test_beta_changes_nothing_in_the_published_code(reference: Path) -> None:
    loaded = load_benchmark(Benchmark("tree-cycles"), reference)
    some, others = (
        butfor.explain(loaded.model, loaded.data, loaded.test_nodes[:10], butfor.CFGNN.published(beta=beta, epochs=100))
        for beta in search.BETAS
    )
    assert [result.edits for result in some] == [result.edits for result in others]
    assert any(result.found for result in some)


def test_the_grid_is_the_papers() -> None:
    assert len(search.GRID) == len(set(search.GRID)) == 3 * 2 * 4 * (4 + 1 + 1)
    runs = {variant: {setting.label(variant) for setting in search.GRID} for variant in search.VARIANTS}
    assert {variant: len(labels) for variant, labels in runs.items()} == {"code": 24, "paper": 48}
    for dataset in PAPER:
        assert search.paper_setting(Benchmark(dataset)) in search.GRID


def test_optuna_finds_the_best_of_an_easy_grid() -> None:
    found = {setting: int(setting.optimizer == "adam") * 10 + int(setting.epochs == 300) for setting in search.GRID}
    best = search.search_with_optuna(found)
    assert best.found == 11 == found[best.setting]
    assert 1 <= best.trial <= search.TRIALS
    assert search.search_with_optuna(found) == best


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


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_the_dense_algorithm_removes_the_same_edges(variant: str, reference: Path) -> None:
    loaded = load_benchmark(Benchmark("tree-cycles"), reference)
    method = replace(butfor.CFGNN() if variant == "paper" else butfor.CFGNN.published(), epochs=100)
    nodes = loaded.test_nodes[::40]
    results = butfor.explain(loaded.model, loaded.data, nodes, method)
    assert any(result.found for result in results)
    for result in results:
        node = int(result.target)  # type: ignore[arg-type]
        edges = dense_cf_gnn(loaded.model, loaded.data, node, int(loaded.classes[node]), method)
        assert (edges or set()) == set(result.removed_edges)
