"""Results as networkx graphs: the neighbourhood that was searched, with what is edited in it."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import networkx as nx
import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.nn import GCN, SAGEConv, global_mean_pool, to_hetero

import butfor
from butfor import Addition, Change, Deletion, EditSpace, Goal, Pair
from butfor.errors import InputError
from butfor.testing import random_problem
from pictures import reread


def found(model: Any, data: Any, **question: Any) -> butfor.Counterfactual:
    results = (butfor.explain(model, data, node, butfor.Greedy(), **question) for node in range(data.num_nodes))
    return next(result for result in results if result.found)


@pytest.mark.parametrize("directed", [False, True])
def test_a_node(directed: bool) -> None:
    model, data = random_problem(3, nodes=30, density=0.08, directed=directed)
    data.node_ids = [f"n{number}" for number in range(30)]
    result = found(model, data)
    graph = result.to_networkx()
    assert type(graph) is (nx.DiGraph if directed else nx.Graph)
    near = result._context.graph.neighbourhood(result.target, result.hops)
    assert sorted(graph) == near.nodes.tolist()
    # Exactly the edges between these nodes.
    pairs = {tuple(pair) for pair in data.edge_index.T.tolist() if set(pair) <= set(graph)}
    assert set(graph.to_directed().edges) == pairs
    removed = {edge for edge, gone in nx.get_edge_attributes(graph, "removed").items() if gone}
    assert {frozenset(edge) for edge in removed} == {frozenset(edge) for edge in result.removed_edges}
    assert not any(nx.get_edge_attributes(graph, "added").values())
    assert [node for node, is_target in graph.nodes(data="target") if is_target] == [result.target]
    hops = nx.single_target_shortest_path_length(graph, result.target) if directed else None
    hops = dict(hops) if directed else nx.single_source_shortest_path_length(graph, result.target)
    assert dict(graph.nodes(data="hops")) == hops
    with torch.no_grad():
        classes = model(data.x, data.edge_index).argmax(1).tolist()
    assert dict(graph.nodes(data="predicted")) == {node: f"class {classes[node]}" for node in graph}
    assert dict(graph.nodes(data="name")) == {node: f"n{node}" for node in graph}


def test_a_result_from_a_file_needs_its_graph() -> None:
    model, data = random_problem(3, nodes=30, density=0.08)
    result = found(model, data)
    with pytest.raises(InputError, match=r"give to_networkx\(\) the graph and the model"):
        reread(result).to_networkx()
    again = reread(result).to_networkx(data, model)
    assert nx.utils.graphs_equal(again, result.to_networkx())


def test_added_edges_and_changed_features() -> None:
    model, data = random_problem(3, nodes=30, density=0.08)
    result = found(model, data)
    u, v = result.removed_edges[0]
    near = result.to_networkx()
    other = next(node for node in near if node != result.target and not near.has_edge(result.target, node))
    edits = (Deletion(u, v), Addition(*sorted((result.target, other))), Change(u, 2, 0.0, 1.0), Change(u, 3, 1.0, 0.5))
    graph = replace(result, edits=edits).to_networkx()
    assert graph.edges[result.target, other] == {"removed": False, "added": True}
    assert graph.edges[u, v] == {"removed": True, "added": False}
    assert dict(graph.nodes(data="changed"))[u] == {2: (0.0, 1.0), 3: (1.0, 0.5)}
    assert sum(nx.get_edge_attributes(graph, "added").values()) == 1
    # A node that only the added edge leads to is in it too.
    far = butfor.explain(model, data, 3, butfor.Greedy(), space=EditSpace(delete=False, add=[(3, 17)], max_edits=1))
    edited = replace(far, after=far.before, edits=(Addition(3, 17),))
    assert edited.to_networkx().nodes[17]["hops"] == 1


class LinkModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gnn = GCN(4, 8, num_layers=2)

    def forward(self, x, edge_index, edge_label_index):
        z = self.gnn(x, edge_index)
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


def test_a_link_has_two_targets() -> None:
    _, data = random_problem(1, nodes=24, density=0.08)
    graph = butfor.explain(LinkModel().eval(), data, Pair(2, 9), goal=Goal(threshold=0.0)).to_networkx()
    assert {node for node, is_target in graph.nodes(data="target") if is_target} == {2, 9}
    assert graph.has_edge(2, 9) == ([2, 9] in data.edge_index.T.tolist())
    assert "predicted" not in graph.nodes[2]


class GraphModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gnn, self.last = GCN(4, 8, num_layers=2), torch.nn.Linear(8, 2)

    def forward(self, x, edge_index, batch=None):
        return self.last(global_mean_pool(self.gnn(x, edge_index), batch))


def test_a_whole_graph_has_no_target_and_no_distances() -> None:
    _, data = random_problem(1, nodes=12, density=0.2)
    graph = butfor.explain(GraphModel().eval(), data, method=butfor.Greedy()).to_networkx()
    assert sorted(graph) == list(range(12))
    assert not any(dict(graph.nodes(data="target")).values())
    assert all("hops" not in attributes for _, attributes in graph.nodes(data=True))


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def test_a_typed_graph_has_relations() -> None:
    data = HeteroData()
    data["author"].x, data["paper"].x = torch.randn(3, 3), torch.randn(4, 3)
    data["author"].node_ids = ["ann", "bob", "cy"]
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 1, 2], [0, 0, 1, 1]])
    data["paper", "rev_writes", "author"].edge_index = data["author", "writes", "paper"].edge_index.flip(0)
    data["author", "reviews", "paper"].edge_index = torch.tensor([[0], [0]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[1, 0], [0, 0]])
    model = to_hetero(Layers(), data.metadata()).eval()
    with torch.no_grad():
        model(data.x_dict, data.edge_index_dict)
    result = butfor.explain(model, data, 0, node_type="paper")
    writes = ("author", "writes", "paper")
    graph = replace(result, after=result.before, edits=(Deletion(1, 0, writes), Addition(2, 0, writes))).to_networkx()
    assert type(graph) is nx.MultiDiGraph
    assert graph.nodes["paper", 0]["target"]
    assert graph.nodes["author", 1]["name"] == "bob"
    assert graph.nodes["author", 1]["type"] == "author"
    assert "predicted" in graph.nodes["paper", 1]
    assert "predicted" not in graph.nodes["author", 1]
    # Edges of several relations between the same nodes, in both directions where an edge has both.
    assert set(graph["author", 0]["paper", 0]) == {"writes", "reviews"}
    assert set(graph["paper", 0]["author", 0]) == {"rev_writes"}
    assert graph.edges[("paper", 1), ("paper", 0), "cites"]["relation"] == "cites"
    assert graph.has_edge(("paper", 0), ("paper", 0), "cites")
    for edge in ((("author", 1), ("paper", 0), "writes"), (("paper", 0), ("author", 1), "rev_writes")):
        assert graph.edges[edge]["removed"]
    for edge in ((("author", 2), ("paper", 0), "writes"), (("paper", 0), ("author", 2), "rev_writes")):
        assert graph.edges[edge]["added"]
    edited = [flag for *_, attributes in graph.edges(data=True) for flag in attributes.values() if flag is True]
    assert len(edited) == 4


def test_without_networkx_the_install_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = random_problem(1)
    result = butfor.explain(model, data, 1)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(InputError, match=r"pip install 'butfor\[networkx\]'"):
        result.to_networkx()
