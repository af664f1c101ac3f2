"""Where only receptive fields are read, answers are those of the whole graph, and nobody runs on all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as gnn
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import coalesce, degree, to_undirected

import butfor
from butfor.errors import InputError, ModelError
from butfor.predict.batch import EditedBatch
from sampling import sampled, slow

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.predict.predictor import Scope

NODES, WIDTH, CLASSES = 120, 5, 3


def sparse_graph(directed: bool, seed: int = 0) -> Data:
    generator = torch.Generator().manual_seed(seed)
    edge_index = coalesce(torch.randint(NODES, (2, 150), generator=generator))
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    edge_index = edge_index if directed else to_undirected(edge_index)
    return Data(x=torch.randn(NODES, WIDTH, generator=generator), edge_index=edge_index)


class Read(nn.Module):
    """Two layers, and something else that is read of the graph between them."""

    def __init__(self, read: Callable[[Tensor, Tensor], Tensor], layer: Callable[..., nn.Module] = gnn.SAGEConv):
        super().__init__()
        self.first, self.second, self.read = layer(WIDTH, 8), layer(8, CLASSES), read

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = self.first(x, edge_index).relu()
        out: Tensor = self.second(hidden + self.read(hidden, edge_index), edge_index)
        return out


MODELS: dict[str, Callable[[], nn.Module]] = {
    "GCN": lambda: gnn.GCN(WIDTH, 8, 2, CLASSES),
    "GraphSAGE": lambda: gnn.GraphSAGE(WIDTH, 8, 2, CLASSES),
    "GIN": lambda: gnn.GIN(WIDTH, 8, 2, CLASSES),
    "GAT": lambda: gnn.GAT(WIDTH, 8, 2, CLASSES, heads=2),
    "by hand": lambda: Read(lambda hidden, _: hidden.sigmoid() * 0.5),
    "not followed": lambda: Read(lambda hidden, _: hidden * 1.0 if len(hidden) else hidden),
}
SPACES = {
    "delete": butfor.EditSpace(),
    "add": butfor.EditSpace(add=butfor.Within(hops=1, most=6), max_edits=2),
}


def made(model: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return model().eval()


@pytest.fixture
def nothing_runs_on_the_whole_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("the whole graph was to be run")

    monkeypatch.setattr(EditedBatch, "whole_graph", refused)


# Each model by turns with each kind of edit and direction; CI tries all together.
QUESTIONS = [(model, space, directed) for model in MODELS for space in SPACES for directed in (False, True)]


@pytest.mark.parametrize(("model", "space", "directed"), sampled(QUESTIONS, 3))
def test_answers_are_those_of_the_whole_graph(
    model: str, space: str, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, net = sparse_graph(directed), made(MODELS[model])
    nodes = range(0, NODES, 15)
    budget = butfor.Budget(evaluations=3_000)
    settings = {"budget": budget, "space": SPACES[space], "directed": directed}
    whole = butfor.explain(net, data, nodes, verify="whole-graph", **settings)
    with monkeypatch.context() as patched:
        patched.setattr(EditedBatch, "whole_graph", lambda *_, **__: pytest.fail("the whole graph was to be run"))
        fields = butfor.explain(net, data, nodes, verify="receptive-field", **settings)
    for one, other in zip(whole, fields, strict=True):
        assert other.before.label == one.before.label
        assert other.before.probability == pytest.approx(one.before.probability, abs=1e-5)
        if {one.status, other.status} <= {butfor.Status.OPTIMAL, butfor.Status.IMPOSSIBLE}:
            assert (other.status, other.cost) == (one.status, one.cost)
        if other.found:
            assert other.verified_on == f"receptive field of {4 if other.target % 16 == 0 else 3} hops"
            after = edited(data, other, directed)
            assert int(net(after.x, after.edge_index)[other.target].argmax()) == other.after.label
    assert any(one.found for one in fields) == any(one.found for one in whole)


def edited(data: Data, result: butfor.Counterfactual, directed: bool) -> Data:
    gone = {pair for u, v in result.removed_edges for pair in ((u, v), *(() if directed else ((v, u),)))}
    new = [pair for u, v in result.added_edges for pair in ((u, v), *(() if directed else ((v, u),)))]
    kept = [pair for pair in map(tuple, data.edge_index.T.tolist()) if pair not in gone]
    return Data(x=data.x, edge_index=torch.tensor(kept + new).T.contiguous())


def test_features_are_changed_in_receptive_fields_too() -> None:
    data, net = sparse_graph(False), made(MODELS["GraphSAGE"])
    space = butfor.EditSpace(delete=False, features=butfor.Features(columns=range(WIDTH), values=(-2.0, 2.0), within=1))
    whole = butfor.explain(net, data, range(0, NODES, 15), verify="whole-graph", space=space)
    fields = butfor.explain(net, data, range(0, NODES, 15), verify="receptive-field", space=space)
    assert [(one.status, one.cost, one.edits) for one in whole] == [(one.status, one.cost, one.edits) for one in fields]
    assert any(one.changes for one in fields)


def test_links_have_receptive_fields_of_two_nodes(nothing_runs_on_the_whole_graph: None) -> None:
    class Links(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = gnn.GraphSAGE(WIDTH, 8, 2, 4)

        def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
            z = self.layers(x, edge_index)
            out: Tensor = (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)
            return out

    data, net = sparse_graph(False), made(Links)
    result = butfor.explain(net, data, butfor.Pair(3, 90), goal=butfor.Goal(threshold=0.0), verify="receptive-field")
    scores = net(data.x, data.edge_index, torch.tensor([[3], [90]]))
    assert result.before.label == int(scores[0] > 0)


def test_graphs_of_several_types(nothing_runs_on_the_whole_graph: None) -> None:
    generator = torch.Generator().manual_seed(0)
    data = HeteroData()
    data["user"].x = torch.randn(60, 4, generator=generator)
    data["item"].x = torch.randn(40, 6, generator=generator)
    likes = torch.stack([torch.randint(60, (90,), generator=generator), torch.randint(40, (90,), generator=generator)])
    data["user", "likes", "item"].edge_index = likes
    data["item", "rev_likes", "user"].edge_index = likes.flip(0)
    torch.manual_seed(0)
    net = gnn.to_hetero(gnn.GraphSAGE((-1, -1), 8, 2, 3), data.metadata())
    net(data.x_dict, data.edge_index_dict)
    results = butfor.explain(net.eval(), data, range(0, 60, 8), node_type="user", verify="receptive-field")
    out = net(data.x_dict, data.edge_index_dict)["user"]
    assert [one.before.label for one in results] == out[::8].argmax(1).tolist()
    assert any(one.found for one in results)


READERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "a mean over all nodes": lambda hidden, _: hidden.mean(0),
    "a maximum over all nodes": lambda hidden, _: hidden.amax(0),
    "the number of nodes": lambda hidden, _: hidden * 0 + len(hidden) / 50,
    "the number of edges": lambda hidden, edge_index: hidden * 0 + edge_index.size(1) / 100,
    "the first node": lambda hidden, _: hidden[:1],
    "another two hops": lambda hidden, edge_index: two_hops(hidden, edge_index),
}


def two_hops(hidden: Tensor, edge_index: Tensor) -> Tensor:
    adjacency = torch.zeros(len(hidden), len(hidden)).index_put((edge_index[1], edge_index[0]), torch.ones(()))
    return adjacency @ (adjacency @ hidden)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("reader", READERS)
def test_a_model_that_reads_more_is_refused(reader: str, directed: bool) -> None:
    net = made(lambda: Read(READERS[reader]))
    with pytest.raises(ModelError, match=r"seems to read more .* verify='whole-graph'"):
        butfor.explain(net, sparse_graph(directed), range(20), verify="receptive-field", directed=directed)


def test_a_model_that_counts_the_edges_that_leave_a_node_is_refused_where_these_are_not_read() -> None:
    net = made(lambda: Read(lambda hidden, edge_index: hidden * degree(edge_index[0], len(hidden))[:, None]))
    with pytest.raises(ModelError, match="seems to read more"):
        butfor.explain(net, sparse_graph(True), range(20), verify="receptive-field", directed=True)


def test_a_model_whose_messages_cannot_be_counted_is_refused() -> None:
    class Plain(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return two_hops(x, edge_index)[:, :CLASSES]

    with pytest.raises(ModelError, match="cannot be counted how often Plain passes messages"):
        butfor.explain(Plain(), sparse_graph(False), 3, verify="receptive-field")


def test_other_scopes_are_refused() -> None:
    net = made(MODELS["GCN"])
    with pytest.raises(InputError, match="verify is 'graph'; give 'whole-graph' or 'receptive-field'"):
        butfor.explain(net, sparse_graph(False), 3, verify="graph")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="a whole graph is asked about"):
        butfor.explain(net, sparse_graph(False), verify="receptive-field")


@pytest.mark.parametrize("scope", ["whole-graph", "receptive-field"])
def test_a_target_that_is_too_large_says_so_and_others_go_on(scope: Scope) -> None:
    star = torch.stack([torch.arange(1, 81), torch.zeros(80, dtype=torch.long)])
    ring = torch.stack([torch.arange(80, 120), torch.arange(80, 120).roll(1)])
    data = Data(x=sparse_graph(False).x, edge_index=to_undirected(torch.cat([star, ring], dim=1)))
    net = made(MODELS["GCN"])
    settings: dict[str, Any] = {"verify": scope, "max_edges": 60, "budget": butfor.Budget(500)}
    results = butfor.explain(net, data, [100, 0, 101, 3], **settings)
    assert [one.target for one in results] == [100, 0, 101, 3]
    hub = results[1]
    assert hub.status is butfor.Status.UNKNOWN
    assert not hub.found
    assert hub.edges >= 80
    assert "at least 80 edges, more than max_edges=60" in hub.note
    assert hub.before.label == (int(net(data.x, data.edge_index)[0].argmax()) if scope == "whole-graph" else -1)
    assert "Node 0" in str(hub)
    assert butfor.Counterfactual.from_dict(hub.to_dict()) == hub
    for other in (results[0], results[2]):
        assert other.status is not butfor.Status.UNKNOWN
        assert other == butfor.explain(net, data, other.target, **settings)
    enough = {**settings, "max_edges": 10_000}
    assert "max_edges" not in butfor.explain(net, data, 0, **enough).note
    with pytest.raises(InputError, match="max_edges"):
        butfor.explain(net, data, 0, max_edges=0)


@pytest.mark.parametrize("model", ["GCN", slow("GraphSAGE"), slow("GAT")])
@pytest.mark.parametrize("method", [butfor.Greedy(), butfor.Exact(threads=1)])
def test_a_hub_comes_back_within_its_budget(model: str, method: butfor.Method) -> None:
    leaves = 1_500
    star = torch.stack([torch.arange(1, leaves + 1), torch.zeros(leaves, dtype=torch.long)])
    generator = torch.Generator().manual_seed(0)
    others = torch.randint(leaves, (2, leaves), generator=generator)
    edge_index = to_undirected(torch.cat([star, others], dim=1))
    data = Data(x=torch.randn(leaves + 1, WIDTH, generator=generator), edge_index=edge_index)
    result = butfor.explain(made(MODELS[model]), data, 0, method, budget=butfor.Budget(300))
    assert result.evaluations <= 300
    assert result.edges > leaves


def test_a_neighbourhood_is_not_widened_beyond_what_fits() -> None:
    net, data = made(MODELS["GraphSAGE"]), sparse_graph(False)
    session = butfor.prepare(net, data)
    problem = session.problem(4)
    wider = session.builder.widen(problem)
    assert wider is not None
    few = problem.edits.neighbourhood.num_columns
    assert wider.edits.neighbourhood.num_columns > few
    assert butfor.prepare(net, data, max_edges=few).builder.widen(problem) is None
