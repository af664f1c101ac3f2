"""Properties over random graphs and models, checked without any of the library's own code.

Edges are deleted in networkx and a freshly built model is run on what is left.
"""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GIN, GraphSAGE
from torch_geometric.nn.models import GAT

import butfor
from butfor.edits.space import EditSpace
from butfor.models import PaperGCN
from butfor.result.status import Status
from butfor.testing import random_problem
from method_list import ALL

ARCHITECTURES = {
    "PaperGCN": lambda: PaperGCN(3, 3),
    "GCN": lambda: GCN(3, 6, 2, 3),
    "GIN": lambda: GIN(3, 6, 2, 3),
    "GraphSAGE": lambda: GraphSAGE(3, 6, 2, 3),
    "GAT": lambda: GAT(3, 6, 2, 3),
}
WITH_GRADIENTS = ("PaperGCN", "GCN")
METHODS = [
    *(method for name, method in ALL.items() if name not in ("prbcd", "grbcd", "remove-subgraph")),
    butfor.Greedy(width=4),
    butfor.CFGNN.published(epochs=15, lr=0.5, momentum=0.9),
]
quick = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])


def build(name: str, seed: int) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ARCHITECTURES[name]().eval()


@st.composite
def problems(draw):
    directed = draw(st.booleans())
    nodes = draw(st.integers(2, 10))
    pair = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda p: p[0] != p[1])
    graph = (nx.DiGraph if directed else nx.Graph)(draw(st.lists(pair, max_size=20)))
    graph.add_nodes_from(range(nodes))
    return directed, graph, draw(st.sampled_from(sorted(ARCHITECTURES))), draw(st.integers(0, 10**6))


def as_data(graph: nx.Graph, seed: int) -> Data:
    pairs = sorted(graph.to_directed().edges)
    edge_index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T.contiguous()
    x = torch.randn(graph.number_of_nodes(), 3, generator=torch.Generator().manual_seed(seed))
    return Data(x=x, edge_index=edge_index)


def predict(graph: nx.Graph, name: str, seed: int) -> torch.Tensor:
    data = as_data(graph, seed)
    with torch.no_grad():
        return build(name, seed)(data.x, data.edge_index)


@pytest.mark.slow
@quick
@given(problems(), st.sampled_from(METHODS))
def test_no_invalid_counterfactual(problem, method) -> None:
    directed, graph, name, seed = problem
    if isinstance(method, butfor.CFGNN) and name not in WITH_GRADIENTS:
        name = "GCN"
    before = predict(graph, name, seed).argmax(1)
    for result in butfor.explain(build(name, seed), as_data(graph, seed), graph.nodes, method, directed=directed):
        assert result.before.label == before[result.target]
        if result.found:
            edited = graph.copy()
            edited.remove_edges_from(result.removed_edges)
            assert edited.number_of_edges() == graph.number_of_edges() - result.size
            after = predict(edited, name, seed)[result.target]
            assert int(after.argmax()) == result.after.label != result.before.label


@pytest.mark.slow
@quick
@given(problems(), st.randoms(use_true_random=False))
def test_protected_edges_stay(problem, random) -> None:
    directed, graph, name, seed = problem
    protected = [edge for edge in sorted(graph.edges) if random.random() < 0.5]
    data = as_data(graph, seed)
    space = EditSpace(protected=protected)
    for result in butfor.explain(build(name, seed), data, graph.nodes, space=space, directed=directed):
        kept = {frozenset(edge) if not directed else edge for edge in protected}
        assert not kept & {frozenset(edge) if not directed else edge for edge in result.removed_edges}


@pytest.mark.slow
@quick
@given(problems(), st.randoms(use_true_random=False))
def test_relabelling_nodes_changes_nothing(problem, random) -> None:
    directed, graph, name, seed = problem
    name = name if name in WITH_GRADIENTS else "GCN"
    model, data = build(name, seed), as_data(graph, seed)
    order = list(range(data.num_nodes))
    random.shuffle(order)
    moved = torch.tensor(order)
    x = torch.empty_like(data.x)
    x[moved] = data.x
    other = Data(x=x, edge_index=moved[data.edge_index])
    for node in graph.nodes:
        one = butfor.explain(model, data, node, directed=directed)
        two = butfor.explain(model, other, order[node], directed=directed)
        assert (one.status, one.size, one.lower_bound) == (two.status, two.size, two.lower_bound)


def test_duplicates_self_loops_weights_and_isolated_nodes_together() -> None:
    model, _ = random_problem(0)
    pairs = [(0, 1), (1, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3)]
    weights = torch.tensor([1.0, 1.0, 0.5, 0.5, 2.0, 1.5, 1.5, 1.0, 1.0, 3.0, 3.0])
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    data = Data(x=x, edge_index=torch.tensor(pairs).T.contiguous(), edge_weight=weights)
    for method in (butfor.Greedy(), butfor.CFGNN(epochs=50), butfor.RandomPerturbation()):
        results = butfor.explain(model, data, range(6), method)
        assert results[4].status is results[5].status is Status.IMPOSSIBLE
        for result in results:
            if result.after is None:
                continue
            gone = {pair for u, v in result.removed_edges for pair in ((u, v), (v, u))}
            kept = [number for number, pair in enumerate(pairs) if pair not in gone]
            with torch.no_grad():
                after = model(x, data.edge_index[:, kept], weights[kept])[result.target]
            assert int(after.argmax()) == result.after.label != result.before.label
            assert result.after.probability == pytest.approx(float(after.softmax(0).max()), abs=1e-5)
    assert any(result.found for result in butfor.explain(model, data, range(6)))
