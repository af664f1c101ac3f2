"""Models that read the whole graph: what is answered and proved holds, alone and in lists, and the note says so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import degree

import butfor
from butfor.methods import cf_gnn
from butfor.problem.builder import WHOLE_GRAPH
from butfor.session import Session
from claims import check_claims, check_proved
from gnns import FRAGILE, GLOBAL, question, ring, scores_without
from hand_edits import Cut, edges_of
from truth import Question, pairs_of
from votes import path

# Torch says once that its sparse tensors are new and that nobody checks them; GraphUNet makes some.
SPARSE = pytest.mark.filterwarnings("ignore:Sparse")


@pytest.mark.slow
@SPARSE
@pytest.mark.parametrize("name", GLOBAL)
def test_what_sees_all_nodes_is_searched_on_the_whole_graph(name: str) -> None:
    asked = question(name)
    truths = [asked.truths[node] for node in (0, 1, 3, 4) if not asked.truths[node].doubtful]
    assert len(truths) >= 3, "too many near ties to learn anything"
    assert any(truth.tenths for truth in truths), "no edges decide anything, so nothing was tested"
    results = check_proved(asked, truths, butfor.Exact(all_smallest=True))
    for method in (butfor.Greedy(width=2), butfor.CFGNN(epochs=10, lr=1.0)):
        for node, result in zip((1, 4), asked.ask((1, 4), method), strict=True):
            check_claims(asked, asked.truths[node], result)
            results.append(result)
            if isinstance(method, butfor.CFGNN):
                assert (cf_gnn.INSTEAD.format("Greedy") in result.note) == (not asked.kind.relaxed)
    for result in results:
        assert WHOLE_GRAPH in result.note
        assert (result.nodes, result.edges) == (5, 6)


@SPARSE
@pytest.mark.parametrize("name", GLOBAL)
def test_what_sees_all_nodes_is_found_out_on_a_large_graph_too(name: str) -> None:
    kind, data = GLOBAL[name], ring(False)
    random = np.random.default_rng(3)
    problem = Session.of(kind.make(data), data).problem(7)
    assert WHOLE_GRAPH in problem.note
    assert len(problem.edits) == len(edges_of(data, False)) == 43
    sets = [np.flatnonzero(random.random(43) < chance) for chance in (0.0, 0.2, 0.5)]
    for chosen, scores in zip(sets, problem.ask(sets).logits, strict=True):
        truth = scores_without(kind, data, pairs_of(problem.edits.records(chosen)), False)[7]
        assert torch.allclose(scores, truth, rtol=1e-5, atol=2e-5)


class Highest(nn.Module):
    """Class 1 where the highest mean of all neighbourhoods is above 5, wherever it is."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.SimpleConv(aggr="mean", combine_root="sum")

    def forward(self, x, edge_index):
        highest = pyg.global_max_pool(self.layer(x, edge_index), None).expand(len(x), 1)
        return torch.cat([torch.full_like(highest, 5.0), highest], dim=1)


def test_a_maximum_of_all_nodes_that_lies_nearby_is_no_proof() -> None:
    # The highest of all is next to node 0; at the other end two neighbours keep one down that would be higher.
    data = path(torch.zeros(13, 1))
    data.x[[0, 1, 10, 11, 12], 0] = torch.tensor([1.0, 3.0, -10.0, 10.0, -20.0])
    model = Highest()
    assert model(data.x, data.edge_index)[0].tolist() == [5, 4]
    far = [column for column, pair in enumerate(data.edge_index.T.tolist()) if 11 not in pair]
    assert model(data.x, data.edge_index[:, far])[0].tolist() == [5, 10]
    result = butfor.explain(model, data, 0)
    assert result.status.value == "optimal"
    assert set(result.removed_edges) == {(10, 11), (11, 12)}
    assert WHOLE_GRAPH in result.note


def test_an_lstm_over_neighbours_sees_how_many_any_node_has() -> None:
    kind, data = FRAGILE["LSTM"], ring(False)
    # Node 3 has the most neighbours. Without them everything else changes, far away too.
    centre = [pair for pair in edges_of(data, False) if 3 in pair]
    here, there = (scores_without(kind, data, gone, False)[20] for gone in ((), centre))
    assert float((here - there).abs().max()) > 1e-2
    session = Session.of(kind.make(data), data)
    for node in (10, 20):
        problem = session.problem(node)
        assert WHOLE_GRAPH in problem.note
        chosen = [edit for edit in range(len(problem.edits)) if pairs_of(problem.edits.records([edit]))[0] in centre]
        for number, some in enumerate(([], chosen)):
            truth = scores_without(kind, data, pairs_of(problem.edits.records(some)), False)[node]
            assert torch.allclose(problem.ask([[], chosen]).logits[number], truth, atol=2e-5)


DATA = path(torch.ones(8, 1))


def scores(values: Tensor) -> Tensor:
    return torch.stack([torch.full_like(values, 0.5), values], dim=1)


def largest(x: Tensor, edge_index: Tensor) -> Tensor:
    """The two nodes of highest degree, earlier ones first."""
    chosen = torch.zeros(len(x))
    chosen[(degree(edge_index[1], len(x)) - 0.01 * torch.arange(len(x))).topk(2).indices] = 1
    return scores(chosen)


READS = {
    "top 2 by degree": largest,
    "five edges left": lambda x, e: scores(torch.full((len(x),), float(e.size(1) == 10))),
    "lonely among few edges": lambda x, e: scores((degree(e[1], len(x)) == 0).float() * (e.size(1) <= 10)),
    "isolated nodes anywhere": lambda x, e: scores(((degree(e[1], len(x)) == 0).sum() >= 2).float().expand(len(x))),
}


class Reader(nn.Module):
    def __init__(self, read, layer: bool) -> None:
        super().__init__()
        self.read, self.layer = read, SAGEConv(1, 2) if layer else None
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out = self.read(x, edge_index)
        return out if self.layer is None else out + self.layer(x, edge_index)


# With a layer in front the neighbourhood is all that shows, unless a sample happens to show more; see certificate.md.
CASES = [(name, layer) for name in READS for layer in (False, True) if (name, layer) != ("five edges left", True)]


@dataclass(frozen=True, eq=False)
class OneByOne(Question):
    """Edited graphs one after the other: side by side each would read the others."""

    def outputs(self, chosen: np.ndarray) -> np.ndarray:
        return np.concatenate([super(OneByOne, self).outputs(chosen[[row]]) for row in range(len(chosen))])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layer"), CASES)
def test_nothing_false_is_answered_or_proved(name: str, layer: bool) -> None:
    acts = tuple(Cut((edge,)) for edge in edges_of(DATA, directed=False))
    asked = OneByOne(name, Reader(READS[name], layer).eval(), DATA, acts)
    assert len(asked.clear) == DATA.num_nodes
    listed = asked.ask(asked.targets, butfor.Exact())
    for truth, result in zip(asked.clear, listed, strict=True):
        check_claims(asked, truth, result)
        assert result.status.value == ("impossible" if truth.tenths is None else "optimal")
    assert [listed[node] for node in (0, 4)] == [asked.ask([node], butfor.Exact())[0] for node in (0, 4)]
    check_proved(asked, asked.clear, butfor.Exact(all_smallest=True))
