"""What the reproduction is built on: subjects, what is asked, the grid, the departures, the dense algorithm."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
import torch

import butfor
from butfor.paper import PAPER
from butfor.paper.dense import dense_cf_gnn
from butfor.paper.lab import Ask, Lab
from butfor.paper.parts import PARTS, departures, search
from butfor.paper.subjects import Subject, open_published
from butfor.paper.work import _each_once

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("dataset", "edges"), [("tree-cycles", 360), ("tree-grid", 961), ("ba-shapes", 480)])
def test_the_motifs_of_the_published_graphs_are_found(dataset: str, edges: int, reference: Path) -> None:
    paper = PAPER[dataset].statistics
    data = open_published(Subject(dataset), reference).data
    assert ((data.node_motif >= 0) == (data.y > 0)).all()
    motifs = torch.bincount(data.node_motif[data.node_motif >= 0])
    assert (motifs == paper.motif_nodes).all()
    assert int(data.edge_motif.sum()) // 2 == edges
    # One noise edge joins two nodes of one grid.
    assert edges - len(motifs) * paper.motif_edges == (dataset == "tree-grid")


def test_what_several_parts_ask_for_is_done_once() -> None:
    subject = Subject("tree-cycles", 0)
    some, more = butfor.Greedy(), butfor.Exact()
    asks = [Ask(subject, {"a": some}), Ask(subject, {"a": some, "b": more}), Ask(subject, {"b": more})]
    assert [list(ask.methods) for ask in _each_once(asks)] == [["a"], ["b"]]
    other = Ask(Subject("tree-cycles", 1), {"a": some})
    assert len(list(_each_once([*asks, other]))) == 3


def test_no_two_labels_of_a_subject_are_of_different_methods(tmp_path: Path) -> None:
    lab = Lab(tmp_path, tmp_path)
    methods: dict[tuple[Subject, str], str] = {}
    for part in PARTS.values():
        for ask in part.asks(lab):
            for label, method in ask.methods.items():
                assert methods.setdefault((ask.subject, label), repr(method)) == repr(method)


# Nodes of the published Tree-Cycles that are solved at once, after 100 and after 300 iterations, and never.
@pytest.mark.parametrize(("choices", "nodes"), [("code", [639, 553, 13, 10, 515]), ("paper", [516, 22, 147, 34])])
def test_one_run_tells_what_fewer_iterations_find(choices: str, nodes: list[int], reference: Path) -> None:
    ready = open_published(Subject("tree-cycles"), reference)
    setting = search.Setting(500, 0.5, 0.1, 0.0, "sgd")
    run = butfor.explain(ready.model, ready.data, nodes, setting.method(choices))
    counts = []
    for epochs in search.EPOCHS[:2]:
        method = butfor.CFGNN.published() if choices == "code" else butfor.CFGNN()
        shorter = butfor.explain(ready.model, ready.data, nodes, replace(method, epochs=epochs))
        counts.append(sum(result.found for result in shorter))
        assert counts[-1] == sum(result.found and result.evaluations <= epochs for result in run)
    assert 0 < counts[0] < counts[1] < sum(result.found for result in run) < len(nodes)


def test_beta_changes_nothing_in_the_published_code(reference: Path) -> None:
    ready = open_published(Subject("tree-cycles"), reference)
    some, others = (
        butfor.explain(ready.model, ready.data, ready.test_nodes[:10], butfor.CFGNN.published(beta=beta, epochs=100))
        for beta in search.BETAS
    )
    assert [result.edits for result in some] == [result.edits for result in others]
    assert any(result.found for result in some)


def test_the_grid_is_the_papers() -> None:
    assert len(search.GRID) == len(set(search.GRID)) == 3 * 2 * 4 * (4 + 1 + 1)
    runs = {choices: {setting.label(choices) for setting in search.GRID} for choices in search.CHOICES}
    assert {choices: len(labels) for choices, labels in runs.items()} == {"code": 24, "paper": 48}
    for dataset in PAPER:
        assert search.chosen_by_paper(Subject(dataset)) in search.GRID


def test_optuna_finds_the_best_of_an_easy_grid() -> None:
    found = {setting: int(setting.optimizer == "adam") * 10 + int(setting.epochs == 300) for setting in search.GRID}
    tried = search.ask_optuna(found)
    assert tried.best == 11 == found[tried.setting]
    assert 1 <= tried.trials <= search.TRIALS
    assert search.ask_optuna(found) == tried


def test_each_departure_is_one_switch() -> None:
    subject = Subject("ba-shapes")
    methods = departures.methods(subject)
    paper, code = methods["departures/paper"], methods["departures/code"]
    assert paper == butfor.CFGNN(momentum=0.9)
    assert code == butfor.CFGNN.published(momentum=0.9)
    assert len(methods) == 12
    for label, method in methods.items():
        base = paper if "/paper" in label else code
        changed = [item.name for item in fields(base) if getattr(base, item.name) != getattr(method, item.name)]
        assert len(changed) == (label not in ("departures/paper", "departures/code"))


@pytest.mark.parametrize("choices", ["paper", "code"])
def test_the_dense_algorithm_removes_the_same_edges(choices: str, reference: Path) -> None:
    ready = open_published(Subject("tree-cycles"), reference)
    method = replace(butfor.CFGNN() if choices == "paper" else butfor.CFGNN.published(), epochs=100)
    nodes = ready.test_nodes[::40]
    results = butfor.explain(ready.model, ready.data, nodes, method)
    assert any(result.found for result in results)
    for result in results:
        node = int(result.target)  # type: ignore[arg-type]
        edges = dense_cf_gnn(ready.model, ready.data, node, int(ready.classes[node]), method)
        assert (edges or set()) == set(result.removed_edges)
