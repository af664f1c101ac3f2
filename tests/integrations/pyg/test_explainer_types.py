"""Graphs of several types through PyG's Explainer."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.explain import HeteroExplanation
from torch_geometric.nn import GATConv, HeteroConv, SAGEConv, global_mean_pool, to_hetero

import butfor
from butfor.errors import InputError
from pyg_explaining import explainer_of
from sampling import slow


def two_types(authors: int = 5) -> HeteroData:
    torch.manual_seed(7)
    data = HeteroData()
    data["paper"].x, data["author"].x = torch.randn(6, 4), torch.randn(authors, 3)
    cites = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 0]])
    writes = torch.tensor([[0, 1, 2, 3, 4, 0], [0, 1, 2, 3, 4, 5]])
    data["paper", "cites", "paper"].edge_index = cites
    data["author", "writes", "paper"].edge_index = writes
    data["paper", "rev_writes", "author"].edge_index = writes.flip(0)
    return data


class Convs(torch.nn.Module):
    def __init__(self, data: HeteroData) -> None:
        super().__init__()
        torch.manual_seed(2)
        kinds = [one.size(1) for one in data.x_dict.values()]
        sizes = dict(zip(data.node_types, kinds, strict=True))
        self.first = HeteroConv({r: SAGEConv((sizes[r[0]], sizes[r[2]]), 6) for r in data.edge_types}, aggr="sum")
        self.second = HeteroConv({r: SAGEConv((6, 6), 3) for r in data.edge_types}, aggr="sum")
        self.shift = torch.zeros(3)
        with torch.no_grad():
            self.shift = self(data.x_dict, data.edge_index_dict).mean(0)

    def forward(self, x_dict, edge_index_dict, note=None):
        x_dict = {kind: x.relu() for kind, x in self.first(x_dict, edge_index_dict).items()}
        return self.second(x_dict, edge_index_dict)["paper"] - self.shift


class Sage(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 6), SAGEConv((-1, -1), 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Converted(torch.nn.Module):
    def __init__(self, data: HeteroData) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.gnn = to_hetero(Sage(), data.metadata())
        self.shift = torch.zeros(3)
        with torch.no_grad():
            self.shift = self(data.x_dict, data.edge_index_dict).mean(0)

    def forward(self, x_dict, edge_index_dict):
        return self.gnn(x_dict, edge_index_dict)["paper"] - self.shift


@pytest.mark.parametrize("kind", [Convs, slow(Converted)])
def test_edges_of_several_types_go_with_their_reverses(kind) -> None:
    data = two_types()
    model = kind(data)
    explain = explainer_of(model)
    links = [("cites", pair) for pair in data["cites"].edge_index.T.tolist()]
    links += [("writes", pair) for pair in data["writes"].edge_index.T.tolist()]

    def left(gone):
        kept = {}
        for relation, ends in data.edge_index_dict.items():
            name, turn = (relation[1].removeprefix("rev_"), relation[1].startswith("rev_"))
            stays = [(name, pair[::-1] if turn else pair) not in gone for pair in ends.T.tolist()]
            kept[relation] = ends[:, torch.tensor(stays)]
        return kept

    found = 0
    for node in range(6):
        explanation = explain(data.x_dict, data.edge_index_dict, index=node)
        assert isinstance(explanation, HeteroExplanation)
        assert explanation.validate()
        result = explanation.counterfactual
        assert (result.node_type, result.target) == ("paper", node)
        assert result == butfor.explain(model, data, node, node_type="paper")
        masks = explanation.edge_mask_dict
        assert set(masks) == set(data.edge_types)
        # An edge and its reverse go together.
        assert torch.equal(masks["author", "writes", "paper"], masks["paper", "rev_writes", "author"])
        one_way = masks["paper", "cites", "paper"].sum() + masks["author", "writes", "paper"].sum()
        assert one_way == (result.size or 0)
        kept = explanation.get_complement_subgraph()
        label = int(model(data.x_dict, data.edge_index_dict)[node].argmax())
        after = int(model(kept.x_dict, kept.edge_index_dict)[node].argmax())
        assert (after != label) == result.found
        gone = explanation.get_explanation_subgraph()
        assert gone["cites"].num_edges + gone["writes"].num_edges == (result.size or 0)
        assert gone.counterfactual is result
        fewest = None
        for size in (1, 2):
            sets = itertools.combinations(links, size)
            if any(model(data.x_dict, left(some))[node].argmax() != label for some in sets):
                fewest = size
                break
        assert fewest == (result.size if (result.size or 3) <= 2 else None)
        found += result.found
    assert found
    every = explain(data.x_dict, data.edge_index_dict, index=torch.tensor([0, 1]))
    assert list(every.counterfactuals) == [0, 1]


def test_which_nodes_are_predicted_must_follow_or_be_said() -> None:
    data = two_types(authors=6)
    model = Convs(data)
    with pytest.raises(InputError, match=r"6 outputs, and there are 6 of 'paper', 6 of 'author'.*node_type="):
        explainer_of(model)(data.x_dict, data.edge_index_dict, index=0)
    explanation = explainer_of(model, node_type="paper")(data.x_dict, data.edge_index_dict, index=0)
    assert explanation.counterfactual == butfor.explain(model, data, 0, node_type="paper")
    with pytest.raises(InputError, match="node_type is 'paper', but a whole graph is asked about"):
        explainer_of(model, level="graph", node_type="paper")(data.x_dict, data.edge_index_dict, index=0)


class Attended(torch.nn.Module):
    """Reads what the edges of each type carry, and one setting."""

    def __init__(self, data: HeteroData) -> None:
        super().__init__()
        torch.manual_seed(2)
        layers = {
            relation: GATConv(
                (data[relation[0]].x.size(1), data[relation[2]].x.size(1)), 3, edge_dim=2, add_self_loops=False
            )
            for relation in data.edge_types
        }
        self.conv = HeteroConv(layers, aggr="sum")

    def forward(self, x_dict, edge_index_dict, edge_attr_dict, sign=1):
        return sign * self.conv(x_dict, edge_index_dict, edge_attr_dict=edge_attr_dict)["paper"]


def test_what_edges_of_several_types_carry_goes_with_them() -> None:
    data = two_types()
    for relation in data.edge_types:
        data[relation].edge_attr = torch.randn(6, 2)
    model = Attended(data)
    explain = explainer_of(model)
    more = {"edge_attr_dict": data.collect("edge_attr"), "sign": -1}
    found = 0
    for node in range(6):
        explanation = explain(data.x_dict, data.edge_index_dict, index=node, **more)
        before = model(data.x_dict, data.edge_index_dict, **more)[node].argmax()
        assert explanation.counterfactual.before.label == before
        kept = explanation.get_complement_subgraph()
        after = model(kept.x_dict, kept.edge_index_dict, kept.collect("edge_attr"), -1)[node].argmax()
        assert (after != before) == explanation.counterfactual.found
        found += explanation.counterfactual.found
    assert found
    timed = Convs(data)
    timed.forward = lambda x, edges, time_dict: Convs.forward(timed, x, edges)
    explain = explainer_of(timed)
    with pytest.raises(InputError, match="the model is given time_dict, a dict"):
        explain(data.x_dict, data.edge_index_dict, index=0, time_dict={"paper": torch.ones(5)})


class Timed(Convs):
    """Reads something else of its nodes, and normalises by graph."""

    def forward(self, x_dict, edge_index_dict, time_dict=None, batch_dict=None):
        out = super().forward(x_dict, edge_index_dict)
        out = out if time_dict is None else out * time_dict["paper"]
        return out if batch_dict is None else out - global_mean_pool(out, batch_dict["paper"])[batch_dict["paper"]]


@pytest.mark.slow
def test_what_nodes_of_several_types_have_goes_with_them() -> None:
    data = two_types()
    data["paper"].time = torch.linspace(-1, 1, 6)[:, None]
    model = Timed(data)
    for more in (
        {"time_dict": data.collect("time")},
        {"batch_dict": {"paper": torch.tensor([0, 0, 0, 1, 1, 1]), "author": torch.tensor([0, 0, 0, 1, 1])}},
    ):
        found = 0
        for node in range(6):
            explanation = explainer_of(model)(data.x_dict, data.edge_index_dict, index=node, **more)
            result = explanation.counterfactual
            before = model(data.x_dict, data.edge_index_dict, **more)[node].argmax()
            kept = explanation.get_complement_subgraph()
            after = model(kept.x_dict, kept.edge_index_dict, **more)[node].argmax()
            assert (result.before.label, result.found) == (before, after != before)
            found += result.found
        assert found
    with pytest.raises(InputError, match="a tensor for each node type is needed"):
        explainer_of(model)(data.x_dict, data.edge_index_dict, index=0, batch_dict={"paper": torch.zeros(6).long()})


def test_changed_features_of_several_types_are_in_the_node_masks() -> None:
    data = two_types()
    model = Convs(data)
    space = butfor.EditSpace(features=butfor.Features(values=[-3.0, 3.0], within=1), delete=False)
    explain = explainer_of(model, space=space, nodes="attributes")
    seen = set()
    for node in range(6):
        explanation = explain(data.x_dict, data.edge_index_dict, index=node)
        assert explanation.validate()
        marked = {
            (kind, *where) for kind, mask in explanation.node_mask_dict.items() for where in mask.nonzero().tolist()
        }
        changes = explanation.counterfactual.changes
        assert marked == {(change.node_type, change.node, change.feature) for change in changes}
        seen |= {change.node_type for change in changes}
    assert seen


class OneLayer(torch.nn.Module):
    def __init__(self, data: HeteroData) -> None:
        super().__init__()
        self.layer = Convs(data).first


class Linked(OneLayer):
    def forward(self, x_dict, edge_index_dict, edge_label_index):
        z = self.layer(x_dict, edge_index_dict)
        return (z["author"][edge_label_index[0]] * z["paper"][edge_label_index[1]]).sum(-1)


class Whole(OneLayer):
    def forward(self, x_dict, edge_index_dict, batch_dict=None):
        z = self.layer(x_dict, edge_index_dict)
        pooled = [global_mean_pool(z[kind], None if batch_dict is None else batch_dict[kind]) for kind in z]
        return sum(pooled)[:, :3]


@pytest.mark.slow
def test_links_and_graphs_of_several_types() -> None:
    data = two_types()
    linked, whole = Linked(data), Whole(data)
    pairs = torch.cartesian_prod(torch.arange(5), torch.arange(6))[::4].T.contiguous()
    settings = {"level": "edge", "mode": "regression", "goal": butfor.Goal(threshold=0.0)}
    explain = explainer_of(linked, node_type=("author", "paper"), **settings)
    explanation = explain(data.x_dict, data.edge_index_dict, edge_label_index=pairs)
    found = 0
    for number, result in explanation.counterfactuals.items():
        pair = butfor.Pair(*pairs[:, number].tolist())
        assert result == butfor.explain(
            linked, data, pair, goal=butfor.Goal(threshold=0.0), node_type=("author", "paper")
        )
        found += result.found
    assert found
    with pytest.raises(InputError, match="say which the two ends of a link are of"):
        explainer_of(linked, **settings)(data.x_dict, data.edge_index_dict, edge_label_index=pairs)

    none = {kind: torch.zeros(data[kind].num_nodes, dtype=torch.long) for kind in data.node_types}
    for more in ({}, {"batch_dict": none}):
        explanation = explainer_of(whole, level="graph")(data.x_dict, data.edge_index_dict, **more)
        assert explanation.counterfactual == butfor.explain(whole, data)
    several = {kind: torch.arange(data[kind].num_nodes) % 2 for kind in data.node_types}
    with pytest.raises(InputError, match="several graphs of several node types; explain one of them at a time"):
        explainer_of(whole, level="graph")(data.x_dict, data.edge_index_dict, batch_dict=several)
