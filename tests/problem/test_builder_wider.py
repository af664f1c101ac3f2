"""Where edges may be added or a link is asked about, the neighbourhood reaches all that comes near."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import butfor
from butfor.edits.addition import Addition, Within
from butfor.edits.change import Change, Features
from butfor.edits.deletion import Deletion
from butfor.edits.space import EditSpace
from butfor.problem.goal import Goal
from butfor.problem.target import Pair
from butfor.result.status import Status
from butfor.session import Session
from hand_edits import Act, Cut, Join, Put, edges_of, node_scores
from mixed_cases import build
from task_cases import ForwardLinkModel, LinkModel, outputs
from votes import Votes, both

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butfor.edits.edit import Edit


def larger(directed: bool, seed: int = 0) -> Data:
    """A ring of 40 nodes with some chords."""
    random = np.random.default_rng(seed)
    pairs = [(i, (i + 1) % 40) for i in range(40)] + [(0, 5), (20, 26), (21, 30), (13, 17)]
    edge_index = torch.tensor(pairs).T.contiguous() if directed else both(pairs)
    return Data(x=torch.from_numpy(random.normal(size=(40, 3))).float(), edge_index=edge_index)


@pytest.mark.parametrize("add", [[(0, 20), (20, 10), (33, 21)], Within(hops=2, most=40)], ids=["given", "within"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("kind", ["GCN", "GraphSAGE", "GAT", "PaperGCN"])
def test_the_neighbourhood_with_additions_gives_the_scores_of_the_whole_graph(
    kind: str, directed: bool, add: object
) -> None:
    data, (model, _) = larger(directed), build(kind, 1, 3)
    if directed and isinstance(add, list):
        add = [pair[::-1] for pair in add]
    space = EditSpace(add=add, features=Features(values=[-3.0, 3.0], columns=[1], within=3))
    problem = Session.of(model, data, space=space, directed=directed).problem(0)
    inside = set(problem.edits.neighbourhood.nodes.tolist())
    assert len(inside) < 40
    if isinstance(add, list):
        assert {20, 19, 10} <= inside
        assert len(problem.edits.added.edit) == (3 if {33, 21} <= inside else 2)
    random = np.random.default_rng(0)
    count = len(problem.edits)
    new = np.flatnonzero(np.isin(np.arange(count), problem.edits.added.edit))
    sizes = [size for size in (1, 2, 3, 5, 8, 12) if size <= count]
    sets = [random.choice(count, size=size, replace=False) for size in sizes for _ in range(4)]
    sets += [[one] for one in new[:10]] + [new]
    sets = [sorted(some) for some in sets if _one_value_each(problem.edits.records(some))]
    found = problem.ask(sets).logits
    assert len(sets) > 10
    assert any(isinstance(edit, Addition) for some in sets for edit in problem.edits.records(some))
    for some, scores in zip(sets, found, strict=True):
        acts = acts_of(problem.edits.records(some))
        truth = node_scores(model, data, directed, acts, np.ones((1, len(acts)), dtype=bool))[0, 0]
        assert scores.numpy() == pytest.approx(truth, abs=1e-4), acts


def acts_of(edits: Iterable[Edit]) -> list[Act]:
    """What these records say, for brute force."""

    def act_of(edit: Edit) -> Act:
        if isinstance(edit, Change):
            return Put(edit.node, edit.feature, edit.after)
        ends = (edit.source, edit.target)
        return Cut((ends,)) if isinstance(edit, Deletion) else Join(ends)

    return [act_of(edit) for edit in edits]


def _one_value_each(edits: Iterable[Edit]) -> bool:
    slots = [(edit.node, edit.feature) for edit in edits if isinstance(edit, Change)]
    return len(set(slots)) == len(slots)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_an_edit_beyond_an_added_edge_is_found_on_a_larger_graph(directed: bool) -> None:
    # 0 must be joined to 20, and 20 rid of the vote of 19, which only two rounds see.
    data = larger(directed)
    data.x = torch.zeros(40, 1)
    data.x[0], data.x[20], data.x[19] = 0.5, -4.0, 9.0
    ways = (20, 0) if directed else (0, 20)
    model = Votes(2)
    space = EditSpace(add=[ways])
    result = butfor.explain(model, data, 0, space=space, directed=directed)
    truth = {}
    for gone in [(), *((edge,) for edge in edges_of(data, directed))]:
        for joined in ((), (ways,)):
            acts = [*(Cut((edge,)) for edge in gone), *(Join(ends) for ends in joined)]
            scores = node_scores(model, data, directed, acts, np.ones((1, len(acts)), dtype=bool))[0, 0]
            truth[(*gone, *joined)] = scores.argmax()
    least = min((len(acts) for acts, label in truth.items() if label != truth[()]), default=None)
    assert least == 2
    assert (result.cost, result.status) == (2.0, Status.OPTIMAL)
    assert result.added_edges == (ways,)
    assert truth[(*result.removed_edges, *result.added_edges)] == 0
    assert set(result.removed_edges) <= {(19, 20)}


@pytest.mark.parametrize("kind", ["SAGE", "GCN", "GAT"])
@pytest.mark.parametrize("form", [LinkModel, ForwardLinkModel])
def test_the_neighbourhood_of_a_link_gives_the_scores_of_the_whole_graph(kind: str, form: type[LinkModel]) -> None:
    random = np.random.default_rng(3)
    pairs = [(i, (i + 1) % 40) for i in range(40)] + [(0, 7), (20, 28)]
    data = Data(x=torch.from_numpy(random.normal(size=(40, 3))).float(), edge_index=both(pairs))
    torch.manual_seed(0)
    model = form(kind).eval()
    space = EditSpace(add=[(0, 20), (0, 33)])
    problem = Session.of(model, data, task="link", goal=Goal(threshold=0.0), space=space).problem(Pair(0, 20))
    assert problem.edits.neighbourhood.num_nodes < 25
    assert len(problem.edits.added.edit) == 2
    sets = [sorted(random.choice(len(problem.edits), size=size, replace=False)) for size in (1, 1, 2, 3, 4, 6, 8)]
    sets += [np.unique(problem.edits.added.edit), []]
    for some, scores in zip(sets, problem.ask(sets).logits, strict=True):
        acts = acts_of(problem.edits.records(some))
        truth = outputs(model, data, False, acts, np.ones((1, len(acts)), dtype=bool), Pair(0, 20))[0, 0, 0]
        assert float(scores[1] - scores[0]) == pytest.approx(truth, abs=1e-4)
