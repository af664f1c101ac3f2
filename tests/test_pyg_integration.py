"""butfor as an algorithm of PyG's own Explainer."""

from __future__ import annotations

import copy
import itertools
import logging
import pickle

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.explain import Explainer, Explanation, HeteroExplanation
from torch_geometric.nn import (
    GAT,
    GCN,
    GIN,
    GATConv,
    GCNConv,
    GraphNorm,
    GraphSAGE,
    HeteroConv,
    SAGEConv,
    global_add_pool,
    to_hetero,
)

import butfor
from butfor.errors import InputError, ModelError
from butfor.integrations.pyg import CounterfactualExplainer
from butfor.models import fingerprint

MULTICLASS = "multiclass_classification"
BINARY = "binary_classification"
KINDS = {"GCN": GCN, "GAT": GAT, "GraphSAGE": GraphSAGE, "GIN": GIN}
ENDS = {
    "raw": torch.nn.Identity(),
    "probs": torch.nn.Softmax(dim=-1),
    "log_probs": torch.nn.LogSoftmax(dim=-1),
}


def small_graph(seed: int = 0, nodes: int = 7, links: int = 8) -> Data:
    """A random undirected graph, few enough edges for brute force."""
    torch.manual_seed(seed)
    every = torch.combinations(torch.arange(nodes))
    ends = every[torch.randperm(len(every))[:links]].T
    return Data(x=torch.randn(nodes, 4), edge_index=torch.cat([ends, ends.flip(0)], dim=1))


class Classifier(torch.nn.Module):
    """A node classifier whose classes are evenly matched, returning what ``end`` makes of its scores."""

    def __init__(self, kind: str, data: Data, end: str = "raw", classes: int = 3) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.gnn, self.end = KINDS[kind](4, 8, 2, classes).eval(), ENDS[end]
        with torch.no_grad():
            self.shift = torch.nn.Parameter(-self.gnn(data.x, data.edge_index).mean(0))

    def forward(self, x, edge_index, edge_weight=None):
        more = {} if edge_weight is None else {"edge_weight": edge_weight}
        return self.end(self.gnn(x, edge_index, **more) + self.shift)


def explainer_of(model, mode=MULTICLASS, level="node", returns="raw", nodes=None, threshold=None, **settings):
    return Explainer(
        model,
        algorithm=CounterfactualExplainer(**settings),
        explanation_type="model",
        node_mask_type=nodes,
        edge_mask_type="object",
        model_config={"mode": mode, "task_level": level, "return_type": returns},
        threshold_config=threshold,
    )


def links_of(edge_index):
    return sorted({(min(u, v), max(u, v)) for u, v in edge_index.T.tolist() if u != v})


def without(edge_index, links):
    """The columns that are left when these undirected links go."""
    pairs = edge_index.T.tolist()
    return torch.tensor([(min(u, v), max(u, v)) not in links for u, v in pairs], dtype=torch.bool)


@torch.no_grad()
def check(explanation, label, edge_index=None):
    """The masked edges change the class, both directions go together, and no fewer (of up to 2) would do.

    ``label`` gives the predicted class from the mask of the columns that are left.
    """
    edge_index = explanation.edge_index if edge_index is None else edge_index
    mask = explanation.edge_mask
    assert mask.shape == (edge_index.size(1),)
    assert set(mask.tolist()) <= {0.0, 1.0}
    removed = links_of(edge_index[:, mask > 0])
    assert torch.equal(without(edge_index, removed), mask == 0)
    result = explanation.counterfactual
    assert result.status in (butfor.Status.OPTIMAL, butfor.Status.IMPOSSIBLE)
    assert len(removed) == (result.size or 0)
    before = label(torch.ones(edge_index.size(1), dtype=torch.bool))
    assert (label(mask == 0) != before) == result.found
    for size in range(1, min(result.size or 3, 3)):
        for links in itertools.combinations(links_of(edge_index), size):
            assert label(without(edge_index, links)) == before


@pytest.fixture(autouse=True)
def _same_start():
    torch.manual_seed(0)


@pytest.mark.parametrize("returns", ENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_nodes(kind, returns) -> None:
    data = small_graph(1)
    model = Classifier(kind, data, returns)
    explain = explainer_of(model, returns=returns)
    sizes = []
    for node in range(0, 7, 3):
        explanation = explain(data.x, data.edge_index, index=node)
        assert isinstance(explanation, Explanation)
        assert explanation.validate(raise_on_error=True)
        assert explanation.available_explanations == ["edge_mask"]

        def label(kept, node=node):
            return int(model(data.x, data.edge_index[:, kept])[node].argmax())

        check(explanation, label)
        result = explanation.counterfactual
        probabilities = {"raw": None, "probs": True, "log_probs": None}[returns]
        assert result == butfor.explain(model, data, node, probabilities=probabilities)
        assert result.target == node
        assert result.before.label == explanation.target[node]
        if result.found:
            sizes.append(result.size)
            kept = explanation.get_complement_subgraph()
            assert kept.num_nodes == 7
            assert model(kept.x, kept.edge_index)[node].argmax() == result.after.label
            gone = explanation.get_explanation_subgraph()
            assert gone.num_edges == 2 * result.size
            assert links_of(gone.edge_index) == sorted(result.removed_edges)
    assert sizes


def test_what_the_model_returns_is_what_was_said() -> None:
    # Raw scores that happen to look like probabilities.
    data = small_graph(1)
    model = Classifier("GCN", data, "probs")
    out = model(data.x, data.edge_index)[3].detach()
    for returns, probabilities in (("raw", out.softmax(-1)), ("probs", out)):
        result = explainer_of(model, returns=returns)(data.x, data.edge_index, index=3).counterfactual
        assert result.before.probability == pytest.approx(float(probabilities.max()), abs=1e-5)


def test_the_snippet_of_the_manual() -> None:
    data = small_graph(2, nodes=14, links=18)
    model = Classifier("GCN", data, "log_probs")
    explainer = Explainer(
        model,
        algorithm=CounterfactualExplainer(method=butfor.Greedy()),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "log_probs"},
    )
    explanation = explainer(data.x, data.edge_index, index=10)
    assert explanation.counterfactual.found
    assert explanation.edge_mask.sum() == 2 * explanation.counterfactual.size
    kept = explanation.get_complement_subgraph()
    assert model(kept.x, kept.edge_index)[10].argmax() == explanation.counterfactual.after.label


def test_an_index_may_be_written_in_many_ways() -> None:
    data = small_graph(1)
    explain = explainer_of(Classifier("GCN", data))
    mask = torch.arange(7) == 3
    given = [3, torch.tensor(3), torch.tensor([3]), torch.tensor([[3]]), torch.tensor([3, 3]), mask]
    found = [explain(data.x, data.edge_index, index=index) for index in given]
    for explanation in found:
        assert list(explanation.counterfactuals) == [3]
        assert explanation.counterfactual == found[0].counterfactual == explanation.counterfactuals[3]
        assert torch.equal(explanation.edge_mask, found[0].edge_mask)


def test_several_indices_have_a_result_each_and_one_mask() -> None:
    data = small_graph(1)
    explain = explainer_of(Classifier("GCN", data))
    several = explain(data.x, data.edge_index, index=torch.tensor([6, 0, 3]))
    assert list(several.counterfactuals) == [6, 0, 3]
    assert "counterfactual" not in several
    alone = [explain(data.x, data.edge_index, index=node) for node in (6, 0, 3)]
    assert [one.counterfactual for one in alone] == list(several.counterfactuals.values())
    assert torch.equal(several.edge_mask, torch.stack([one.edge_mask for one in alone]).amax(0))


def test_no_index_means_all() -> None:
    # As many results as there are edges, which PyG must not take for something that edges have.
    data = Data(x=torch.randn(6, 4), edge_index=torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]))
    explanation = explainer_of(Classifier("GCN", data))(data.x, data.edge_index)
    assert list(explanation.counterfactuals) == list(range(6)) == list(range(data.num_edges))
    assert explanation.get_complement_subgraph().counterfactuals == explanation.counterfactuals


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (7, r"index is 7, but the model has outputs for 7 nodes \(0 to 6\)"),
        (-1, "index is -1"),
        (torch.ones(4, dtype=torch.bool), r"a mask of shape \(4,\)"),
        (torch.tensor([]), "index is empty"),
        (torch.zeros(7, dtype=torch.bool), "index is empty"),
    ],
)
def test_an_index_that_is_not_there(index, words) -> None:
    data = small_graph(1)
    with pytest.raises(InputError, match=words):
        explainer_of(Classifier("GCN", data))(data.x, data.edge_index, index=index)


def test_where_there_is_nothing_the_mask_is_empty_and_the_status_says_why() -> None:
    data = small_graph(1)
    data.x = torch.cat([data.x, torch.randn(1, 4)])  # a node without edges
    model = Classifier("GCN", data)
    nothing = explainer_of(model)(data.x, data.edge_index, index=7)
    assert nothing.counterfactual.status is butfor.Status.IMPOSSIBLE
    assert not nothing.edge_mask.any()
    assert nothing.validate()
    assert nothing.get_explanation_subgraph().num_edges == 0
    assert nothing.get_complement_subgraph().num_edges == data.num_edges
    far = explainer_of(model, goal=butfor.Goal(least=1e6), budget=butfor.Budget(evaluations=3))
    assert far(data.x, data.edge_index, index=0).counterfactual.status is butfor.Status.UNKNOWN


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(training) -> None:
    data = small_graph(1)
    data.x.requires_grad_()
    model = Classifier("GAT", data).train(training)
    model.shift.requires_grad_(False)
    before = fingerprint(model)
    explainer_of(model, method=butfor.Greedy())(data.x, data.edge_index, index=3)
    assert fingerprint(model) == before
    assert all(module.training == training for module in model.modules() if module is not model.end)
    assert [name for name, value in model.named_parameters() if not value.requires_grad] == ["shift"]
    assert all(value.grad is None for value in (data.x, *model.parameters()))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert not any(layer.explain for layer in model.modules() if hasattr(layer, "explain"))


@pytest.mark.parametrize(
    "method",
    [butfor.Greedy(), butfor.CFGNN(epochs=30), butfor.RandomPerturbation(), butfor.RemoveEgo()],
    ids=lambda method: type(method).__name__,
)
def test_any_method_and_settings_go_through(method) -> None:
    data = small_graph(1)
    model = Classifier("GCN", data)
    before = int(model(data.x, data.edge_index)[3].argmax())
    space = butfor.EditSpace(protected=links_of(data.edge_index)[:2])
    goal, budget = butfor.Goal(wanted=(before + 1) % 3), butfor.Budget(evaluations=200)
    settings = {"goal": goal, "space": space, "budget": budget, "directed": True, "seed": 4}
    explanation = explainer_of(model, method=method, **settings)(data.x, data.edge_index, index=3)
    assert explanation.counterfactual == butfor.explain(model, data, 3, method, **settings)
    assert explanation.edge_mask.sum() == (explanation.counterfactual.size or 0)


def test_weights_copies_and_loops() -> None:
    data = small_graph(1)
    first = data.edge_index[:, [0, 8]]
    loops = torch.tensor([[0, 4], [0, 4]])
    edge_index = torch.cat([data.edge_index, first, loops], dim=1)
    weight = torch.rand(8)
    weight = torch.cat([weight, weight, weight[[0, 0]], torch.ones(2)])
    model = Classifier("GCN", data)
    explain = explainer_of(model)
    found = 0
    for node in range(7):
        explanation = explain(data.x, edge_index, index=node, edge_weight=weight)

        def label(kept, node=node):
            return int(model(data.x, edge_index[:, kept], weight[kept])[node].argmax())

        check(explanation, label, edge_index)
        kept = explanation.get_complement_subgraph()
        assert len(kept.edge_weight) == kept.num_edges
        assert not explanation.edge_mask[-2:].any()
        found += explanation.counterfactual.found
    assert found


def test_in_a_directed_graph_only_one_direction_goes() -> None:
    data = small_graph(1)
    edge_index = torch.cat([data.edge_index[:, :8], data.edge_index[:, 8:10]], dim=1)
    model = Classifier("GraphSAGE", data)
    for node in range(7):
        explanation = explainer_of(model)(data.x, edge_index, index=node)
        gone = explanation.edge_index[:, explanation.edge_mask > 0].T.tolist()
        assert sorted(map(tuple, gone)) == sorted(explanation.counterfactual.removed_edges)


class LinkPredictor(torch.nn.Module):
    def __init__(self, data: Data, pairs: torch.Tensor, end: str = "raw", classes: int = 1) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.head, self.end = GCNConv(4, 6), torch.nn.Linear(6, classes), "raw"
        self.shift = 0.0
        with torch.no_grad():
            self.shift = self(data.x, data.edge_index, pairs).mean(0)
        self.end = end

    def forward(self, x, edge_index, edge_label_index):
        z = self.conv(x, edge_index)
        out = self.head(z[edge_label_index[0]] * z[edge_label_index[1]]) - self.shift
        if self.end == "probs":
            return out.sigmoid() if out.size(1) == 1 else out.softmax(-1)
        return out.squeeze(-1)


@pytest.mark.parametrize(
    ("mode", "returns", "classes"),
    [(BINARY, "raw", 1), (BINARY, "probs", 1), (BINARY, "raw", 2), (BINARY, "probs", 2), (MULTICLASS, "probs", 3)],
)
def test_links(mode, returns, classes) -> None:
    data = small_graph(2)
    pairs = torch.tensor([[0, 1, 6, 5], [4, 3, 2, 5]])
    model = LinkPredictor(data, pairs, returns, classes)
    explain = explainer_of(model, mode, "edge", returns)

    def label_of(number):
        def label(kept):
            out = model(data.x, data.edge_index[:, kept], pairs)[number]
            return int(out.argmax()) if classes > 1 else int(out > (0.5 if returns == "probs" else 0.0))

        return label

    found = 0
    for number in range(4):
        explanation = explain(data.x, data.edge_index, index=number, edge_label_index=pairs)
        assert explanation.validate()
        check(explanation, label_of(number))
        assert explanation.counterfactual.target == tuple(pairs[:, number].tolist())
        found += explanation.counterfactual.found
    assert found
    every = explain(data.x, data.edge_index, edge_label_index=pairs)
    assert list(every.counterfactuals) == [0, 1, 2, 3]


def test_links_need_to_be_named() -> None:
    data = small_graph(2)
    with pytest.raises(InputError, match="pass them to the explainer as edge_label_index"):
        explainer_of(Classifier("GCN", data), level="edge")(data.x, data.edge_index, index=0)


def test_a_model_that_answers_for_something_else_than_the_pairs() -> None:
    data = small_graph(2)
    model = Swallowing(Classifier("GCN", data))
    model.forward = lambda x, edge_index, edge_label_index: model.inner(x, edge_index)
    with pytest.raises(ModelError, match="returns 7 rows for 1 pairs of nodes"):
        explainer_of(model, level="edge")(data.x, data.edge_index, edge_label_index=torch.tensor([[0], [1]]))


class GraphClassifier(torch.nn.Module):
    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.conv, self.head = GATConv(4, 6), torch.nn.Linear(6, classes)
        self.shift = torch.zeros(classes)

    def centred(self, graphs) -> GraphClassifier:
        with torch.no_grad():
            batch = Batch.from_data_list(graphs)
            self.shift = -self(batch.x, batch.edge_index, batch.batch).mean(0)
        return self

    def forward(self, x, edge_index, batch=None):
        return self.head(global_add_pool(self.conv(x, edge_index).relu(), batch)) + self.shift


class Unbatched(torch.nn.Module):
    def __init__(self, inner: GraphClassifier) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x, edge_index):
        return self.inner(x, edge_index)


class Swallowing(torch.nn.Module):
    """Names none of its arguments."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)


GRAPHS = [small_graph(seed, nodes=6, links=7) for seed in range(10, 14)]


@pytest.mark.parametrize("way", ["plain", "batch", "None", "unbatched", "swallowed"])
def test_one_graph(way) -> None:
    model = GraphClassifier().centred(GRAPHS)
    found = 0
    for data in GRAPHS:
        asked = {"unbatched": Unbatched(model), "swallowed": Swallowing(model)}.get(way, model)
        more = {"batch": {"batch": torch.zeros(6, dtype=torch.long)}, "None": {"batch": None}}
        more["swallowed"] = more["batch"]
        explain = explainer_of(asked, level="graph")
        explanation = explain(data.x, data.edge_index, index=0 if way == "plain" else None, **more.get(way, {}))
        assert explanation.validate()
        check(explanation, lambda kept, data=data: int(model(data.x, data.edge_index[:, kept]).argmax()))
        assert explanation.counterfactual.target == 0
        assert explanation.counterfactual.size == butfor.explain(model, data).size
        found += explanation.counterfactual.found
    assert found


def test_graphs_of_a_batch_are_explained_alone() -> None:
    model = GraphClassifier().centred(GRAPHS)
    batch = Batch.from_data_list(GRAPHS)
    explain = explainer_of(model, level="graph")
    intact = model(batch.x, batch.edge_index, batch.batch).argmax(1)
    for number, data in enumerate(GRAPHS):
        explanation = explain(batch.x, batch.edge_index, index=number, batch=batch.batch)
        assert explanation.validate()
        result, alone = explanation.counterfactual, butfor.explain(model, data)
        assert result.target == number
        assert (result.edits, result.status, result.before) == (alone.edits, alone.status, alone.before)
        kept = explanation.get_complement_subgraph()
        after = model(kept.x, kept.edge_index, batch.batch).argmax(1)
        assert [i for i in range(4) if after[i] != intact[i]] == ([number] if result.found else [])
    every = explain(batch.x, batch.edge_index, batch=batch.batch)
    assert list(every.counterfactuals) == [0, 1, 2, 3]
    with pytest.raises(InputError, match="index is 4, but the model has outputs for 4 graphs"):
        explain(batch.x, batch.edge_index, index=4, batch=batch.batch)


class Compared(GraphClassifier):
    """The graphs of a batch are normalised together."""

    def forward(self, x, edge_index, batch=None):
        out = super().forward(x, edge_index, batch)
        return out - out.mean(0)


def test_a_graph_that_depends_on_the_others_is_refused() -> None:
    batch = Batch.from_data_list(GRAPHS)
    with pytest.raises(ModelError, match="what belongs to the whole batch"):
        explainer_of(Compared(), level="graph")(batch.x, batch.edge_index, index=1, batch=batch.batch)


class OneNumber(torch.nn.Module):
    """One number for each node; what ``end`` says of it."""

    def __init__(self, data: Data, end: str = "raw", flat: bool = False, columns: int = 1) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.conv, self.end, self.flat = GCNConv(4, columns), end, flat
        self.shift = 0.0
        with torch.no_grad():
            self.shift = float(self.conv(data.x, data.edge_index).median())

    def forward(self, x, edge_index):
        out = self.conv(x, edge_index) - self.shift
        out = out.sigmoid() if self.end == "probs" else out
        return out.view(-1) if self.flat else out


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize(
    ("mode", "returns", "given", "line"),
    [
        (BINARY, "raw", None, 0.0),
        (BINARY, "probs", None, 0.5),
        (BINARY, "probs", 0.6, 0.6),
        ("regression", "raw", 0.3, 0.3),
    ],
)
def test_one_number(mode, returns, given, line, flat) -> None:
    data = small_graph(3)
    model = OneNumber(data, returns, flat)
    explain = explainer_of(model, mode, returns=returns, goal=butfor.Goal(threshold=given))
    found = 0
    for node in range(0, 7, 2):
        explanation = explain(data.x, data.edge_index, index=node)
        assert explanation.validate()

        def label(kept, node=node):
            return bool(model(data.x, data.edge_index[:, kept])[node] > line)

        check(explanation, label)
        assert explanation.counterfactual.before.value == pytest.approx(float(explanation.prediction[node]), abs=1e-5)
        found += explanation.counterfactual.found
    assert found


def test_several_yes_or_no_answers_at_once_are_refused() -> None:
    data = small_graph(3)
    with pytest.raises(InputError, match="returns 4 numbers for each node, which is no binary classification"):
        explainer_of(OneNumber(data, columns=4), BINARY)(data.x, data.edge_index, index=0)


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


@pytest.mark.parametrize("kind", [Convs, Converted])
def test_several_types(kind) -> None:
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
    with pytest.raises(InputError, match="only nodes can be explained"):
        explainer_of(model, level="graph")(data.x_dict, data.edge_index_dict, index=0)


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


def test_edges_of_several_types_carry_something() -> None:
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
        explain(data.x_dict, data.edge_index_dict, index=0, time_dict={"paper": torch.ones(6)})


class Placed(torch.nn.Module):
    """Takes positions of nodes, attributes of edges, a power and a number as a tensor."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = GATConv(6, 3, edge_dim=2)

    def forward(self, x, edge_index, pos, edge_attr=None, power=1, scale=None, more=None):
        return self.conv(torch.cat([x, pos], 1) ** power * scale, edge_index, edge_attr)


@pytest.mark.parametrize("wrap", [lambda model: model, Swallowing])
def test_all_that_a_model_takes_is_given_to_it(wrap) -> None:
    data = small_graph(1)
    model = Placed()
    attr = torch.randn(8, 2)
    more = {"pos": torch.randn(7, 2), "edge_attr": torch.cat([attr, attr]), "power": 3, "scale": torch.tensor(0.5)}
    explain = explainer_of(wrap(model))
    found = 0
    for node in range(7):
        explanation = explain(data.x, data.edge_index, index=node, more=None, **more)

        def label(kept, node=node):
            given = {**more, "edge_attr": more["edge_attr"][kept]}
            return int(model(data.x, data.edge_index[:, kept], **given)[node].argmax())

        check(explanation, label)
        found += explanation.counterfactual.found
    assert found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("edge_time", torch.ones(16)),
        ("u", torch.ones(1, 3)),
        ("ptr", torch.ones(7)),
        ("parts", {"a": torch.ones(7)}),
        ("y", torch.ones(7)),
        ("train_mask", torch.ones(7, dtype=torch.bool)),
    ],
)
def test_what_cannot_follow_an_edit_is_refused(name, value) -> None:
    data = small_graph(1)
    model = Swallowing(Classifier("GCN", data))
    model.forward = lambda x, edge_index, **kwargs: model.inner(x, edge_index)
    with pytest.raises(InputError, match=f"the model is given {name}, .* nothing says what becomes of it"):
        explainer_of(model)(data.x, data.edge_index, index=0, **{name: value})


def test_a_batch_of_nodes_is_no_hindrance_where_the_model_does_not_read_it() -> None:
    data = small_graph(1)
    model = Swallowing(Classifier("GCN", data))
    model.forward = lambda x, edge_index, batch=None: model.inner(x, edge_index)
    explanation = explainer_of(model)(data.x, data.edge_index, index=3, batch=torch.arange(7) // 4)
    assert explanation.counterfactual.size == butfor.explain(model.inner, data, 3).size


class Product(torch.nn.Module):
    def forward(self, x, matrix):
        return matrix @ x


def test_a_sparse_matrix_is_refused() -> None:
    data = small_graph(1)
    matrix = torch.eye(7).to_sparse()
    with pytest.raises(InputError, match="edge_index is a sparse matrix"):
        explainer_of(Product())(data.x, matrix, index=0)


def test_a_model_that_draws_random_numbers_is_refused() -> None:
    data = small_graph(1)
    model = Classifier("GCN", data)
    model.end = torch.nn.Dropout()
    model.end.forward = lambda x: torch.nn.functional.dropout(x)
    with pytest.raises(ModelError, match="it draws random numbers"):
        explainer_of(model)(data.x, data.edge_index, index=torch.arange(7))


def test_a_model_that_returns_no_rows_is_refused() -> None:
    data = small_graph(1)
    model = Classifier("GCN", data)
    model.end = torch.nn.Identity()
    model.end.forward = lambda x: x.sum()
    with pytest.raises(ModelError, match="does not return a tensor with one row for each node"):
        explainer_of(model)(data.x, data.edge_index, index=0)


def test_changed_features_are_in_the_node_mask() -> None:
    data = small_graph(1)
    x = (data.x > 0).float()
    data.x = x.clone()
    model = Classifier("GCN", data)
    space = butfor.EditSpace(features=butfor.Features(within=1), delete=False)
    found = 0
    for node in range(7):
        explanation = explainer_of(model, nodes="attributes", space=space)(data.x, data.edge_index, index=node)
        assert explanation.validate()
        assert explanation.node_mask.shape == x.shape
        assert not explanation.edge_mask.any()
        result = explanation.counterfactual
        if not result.found:
            assert not explanation.node_mask.any()
            continue
        found += 1
        assert explanation.node_mask.sum() == result.size
        flipped = (x - explanation.node_mask).abs()
        assert model(flipped, data.edge_index)[node].argmax() == result.after.label
        assert explanation.get_explanation_subgraph().num_nodes == len({change.node for change in result.changes})
    assert found
    assert torch.equal(data.x, x)
    plain = explainer_of(model, space=space)(data.x, data.edge_index, index=0)
    assert "node_mask" not in plain


def test_features_in_a_batch_of_graphs() -> None:
    graphs = [Data(x=(data.x > 0).float(), edge_index=data.edge_index) for data in GRAPHS]
    model = GraphClassifier().centred(graphs)
    batch = Batch.from_data_list(graphs)
    space = butfor.EditSpace(features=butfor.Features(), delete=False)
    explain = explainer_of(model, level="graph", nodes="attributes", space=space)
    explanation = explain(batch.x, batch.edge_index, index=2, batch=batch.batch)
    assert explanation.counterfactual.found
    assert explanation.node_mask.nonzero()[:, 0].unique().tolist() == sorted(
        {12 + change.node for change in explanation.counterfactual.changes}
    )
    flipped = (batch.x - explanation.node_mask).abs()
    after = model(flipped, batch.edge_index, batch.batch).argmax(1)
    assert after[2] == explanation.counterfactual.after.label


def test_added_edges_are_in_the_result_only() -> None:
    data = small_graph(1)
    space = butfor.EditSpace(add=butfor.Within(2), delete=False)
    explain = explainer_of(Classifier("GCN", data), space=space)
    found = [explain(data.x, data.edge_index, index=node) for node in range(4)]
    assert any(one.counterfactual.added_edges for one in found)
    assert not any(one.edge_mask.any() for one in found)


@pytest.mark.parametrize(
    ("config", "model_config", "settings", "words"),
    [
        ({"explanation_type": "phenomenon"}, {}, {}, "only explains what the model predicts"),
        (
            {"edge_mask_type": None, "node_mask_type": "attributes"},
            {},
            {"space": butfor.EditSpace(features=butfor.Features())},
            "use edge_mask_type='object'",
        ),
        ({"node_mask_type": "attributes"}, {}, {}, "changes no features"),
        ({"node_mask_type": "object"}, {}, {}, "changes no features"),
        (
            {"node_mask_type": "common_attributes"},
            {},
            {},
            "changes no features (got node_mask_type='common_attributes')",
        ),
        (
            {"edge_mask_type": None, "node_mask_type": "object"},
            {},
            {"space": butfor.EditSpace(delete=False, add=butfor.Within(2))},
            "changes no features",
        ),
        ({}, {"mode": "regression"}, {}, "goal=Goal(threshold=...)"),
        ({}, {}, {"goal": butfor.Goal(threshold=0.5)}, "leave Goal(threshold=0.5) out"),
    ],
)
def test_settings_that_are_refused(config, model_config, settings, words, caplog) -> None:
    chosen = {"explanation_type": "model", "edge_mask_type": "object", **config}
    with (
        caplog.at_level(logging.ERROR),
        pytest.raises(ValueError, match="does not support the given explanation settings"),
    ):
        Explainer(
            torch.nn.Identity(),
            algorithm=CounterfactualExplainer(**settings),
            model_config={"mode": MULTICLASS, "task_level": "node", "return_type": "raw", **model_config},
            **chosen,
        )
    (record,) = caplog.records
    assert record.getMessage().startswith("'CounterfactualExplainer' ")
    assert words in record.getMessage()


@pytest.mark.parametrize("kind", ["attributes", "common_attributes"])
def test_edge_masks_of_attributes_are_refused_by_pyg_itself(kind) -> None:
    with pytest.raises(ValueError, match="'edge_mask_type' needs be None or of type 'object'"):
        Explainer(
            torch.nn.Identity(),
            algorithm=CounterfactualExplainer(),
            explanation_type="model",
            edge_mask_type=kind,
            model_config={"mode": MULTICLASS, "task_level": "node", "return_type": "raw"},
        )


def test_what_pyg_does_with_explanations(tmp_path) -> None:
    data = small_graph(1)
    model = Classifier("GCN", data)
    explanation = explainer_of(model, threshold=("hard", 0.5))(data.x, data.edge_index, index=3)
    plain = explainer_of(model)(data.x, data.edge_index, index=3)
    assert torch.equal(explanation.edge_mask, plain.edge_mask)
    assert explanation.counterfactual == plain.counterfactual
    for other in (
        copy.copy(plain),
        copy.deepcopy(plain),
        plain.clone(),
        plain.to("cpu"),
        pickle.loads(pickle.dumps(plain)),
    ):
        assert other.counterfactual == plain.counterfactual
        assert other.validate()
    pytest.importorskip("networkx")
    pytest.importorskip("matplotlib").use("agg")
    plain.visualize_graph(str(tmp_path / "graph.png"), backend="networkx")
    assert (tmp_path / "graph.png").stat().st_size


# What PyG's own tests pass, test/explain: one model for all levels, which is given all arguments at each.
PATH = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7], [1, 0, 2, 1, 3, 2, 4, 3, 5, 4, 6, 5, 7, 6]])
BATCH = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
PAIRS = torch.tensor([[0, 1, 2], [3, 4, 5]])
# The same without the two edges that lead from one graph to another.
INSIDE = PATH[:, BATCH[PATH[0]] == BATCH[PATH[1]]]
OUTPUTS = [(MULTICLASS, "raw"), (MULTICLASS, "probs"), (MULTICLASS, "log_probs")]
OUTPUTS += [(BINARY, "raw"), (BINARY, "probs"), ("regression", "raw")]
LEVELS = ["node", "edge", "graph"]


class EveryLevel(torch.nn.Module):
    """A GCN for any level and mode, evenly matched."""

    def __init__(self, mode: str, level: str, returns: str) -> None:
        super().__init__()
        torch.manual_seed(12)
        self.level, self.end = level, torch.nn.Identity()
        self.conv1, self.conv2 = GCNConv(3, 16), GCNConv(16, 5 if mode == MULTICLASS else 1)
        self.register_buffer("shift", torch.zeros(()))
        with torch.no_grad():
            self.shift = -EveryLevel.forward(self, features(), INSIDE, BATCH, PAIRS).mean(0)
        if returns != "raw":
            self.end = ENDS[returns] if mode == MULTICLASS else torch.nn.Sigmoid()

    def forward(self, x, edge_index, batch=None, edge_label_index=None):
        x = self.conv2(self.conv1(x, edge_index).relu(), edge_index)
        if self.level == "graph":
            x = global_add_pool(x, batch)
        elif self.level == "edge":
            assert edge_label_index is not None
            x = x[edge_label_index[0]] * x[edge_label_index[1]]
        return self.end(x + self.shift)


def features() -> torch.Tensor:
    return torch.randn(8, 3, generator=torch.Generator().manual_seed(1))


def every_level(mode, level, returns, **more):
    goal = butfor.Goal(threshold=0.0 if mode == "regression" else None)
    model = EveryLevel(mode, level, returns)
    return model, explainer_of(model, mode, level, returns, goal=goal, **more)


def labels_of(mode, returns, out):
    return out.argmax(-1) if mode == MULTICLASS else (out > (0.5 if returns == "probs" else 0.0)).long().view(-1)


@pytest.mark.parametrize("index", [None, 2, torch.tensor([1, 2])], ids=["all", "one", "two"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("mode", "returns"), OUTPUTS)
def test_all_that_pyg_passes_at_every_level(mode, returns, level, index) -> None:
    model, explain = every_level(mode, level, returns)
    x, more = features(), {"batch": BATCH, "edge_label_index": PAIRS}
    explanation = explain(x, INSIDE, index=index, **more)
    assert explanation.validate(raise_on_error=True)
    before = labels_of(mode, returns, model(x, INSIDE, **more))
    numbers = range(len(before)) if index is None else torch.as_tensor(index).view(-1).tolist()
    assert list(explanation.counterfactuals) == list(numbers)
    links = links_of(INSIDE)

    def flips(number, gone):
        kept = INSIDE[:, without(INSIDE, gone)]
        return bool(labels_of(mode, returns, model(x, kept, **more))[number] != before[number])

    union = set()
    for number, result in explanation.counterfactuals.items():
        assert result.before.label == before[number]
        # One graph of a batch counts its nodes from 0.
        first = int((number > BATCH).sum()) if level == "graph" else 0
        gone = {(min(u, v) + first, max(u, v) + first) for u, v in result.removed_edges}
        assert flips(number, gone) == result.found
        singles = [one for one in links if flips(number, {one})]
        assert (result.size == 1) == bool(singles)
        union |= gone
    assert set(links_of(INSIDE[:, explanation.edge_mask > 0])) == union
    if index is None:
        assert any(result.found for result in explanation.counterfactuals.values())


@pytest.mark.parametrize("level", ["node", "edge"])
@pytest.mark.parametrize(("mode", "returns"), OUTPUTS)
def test_where_a_batch_is_ignored_its_edges_may_lead_anywhere(mode, returns, level) -> None:
    _, explain = every_level(mode, level, returns)
    given = explain(features(), PATH, index=2, batch=BATCH, edge_label_index=PAIRS)
    alone = explain(features(), PATH, index=2, **({"edge_label_index": PAIRS} if level == "edge" else {}))
    assert given.counterfactual.edits == alone.counterfactual.edits
    assert torch.equal(given.edge_mask, alone.edge_mask)


@pytest.mark.parametrize("index", [None, 2])
def test_edges_from_one_graph_of_a_batch_to_another_are_refused(index) -> None:
    _, explain = every_level(MULTICLASS, "graph", "raw")
    words = r"edges of the batch cross graphs: the first is \(2, 3\), from graph 0 to graph 1"
    with pytest.raises(InputError, match=words):
        explain(features(), PATH, index=index, batch=BATCH, edge_label_index=PAIRS)
    turned = torch.cat([INSIDE, torch.tensor([[7, 0], [3, 5]])], dim=1)
    with pytest.raises(InputError, match=r"the first is \(7, 3\), from graph 2 to graph 1"):
        explain(features(), turned, index=index, batch=BATCH)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (torch.zeros(5, dtype=torch.long), r"batch has the shape \(5,\)"),
        (torch.zeros(8, 1, dtype=torch.long), r"batch has the shape \(8, 1\)"),
        (torch.zeros(8), "batch holds numbers of type torch.float32"),
        (torch.arange(8) - 1, "batch holds -1"),
        ([0] * 8, "batch is a list"),
    ],
)
@pytest.mark.parametrize("level", LEVELS)
def test_a_batch_that_is_none(level, batch, words) -> None:
    model = EveryLevel(MULTICLASS, level, "raw")
    model.forward = lambda x, edge_index, batch, edge_label_index: EveryLevel.forward(
        model, x, edge_index, BATCH, edge_label_index
    )
    with pytest.raises(InputError, match=words):
        explainer_of(model, level=level)(features(), INSIDE, index=0, batch=batch, edge_label_index=PAIRS)


def test_a_batch_and_its_outputs_must_fit() -> None:
    _, explain = every_level(MULTICLASS, "graph", "raw")
    gap = torch.tensor([0, 0, 0, 2, 2, 3, 3, 3])
    with pytest.raises(InputError, match="graph 1 of the batch has no nodes"):
        explain(features(), INSIDE, index=1, batch=gap)
    assert explain(features(), INSIDE, index=2, batch=gap).counterfactual.target == 2
    model = EveryLevel(MULTICLASS, "node", "raw")
    with pytest.raises(ModelError, match="returns 8 rows for the 3 graphs of the batch"):
        explainer_of(model, level="graph")(features(), INSIDE, index=1, batch=BATCH)


class NormedByGraph(torch.nn.Module):
    """A node classifier that reads the batch: nodes are normalised with those of the same graph."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv1, self.norm, self.conv2 = SAGEConv(3, 8), GraphNorm(8), SAGEConv(8, 3)

    def forward(self, x, edge_index, batch):
        return self.conv2(self.norm(self.conv1(x, edge_index), batch).relu(), edge_index)


def test_a_node_classifier_may_read_the_batch() -> None:
    model, x = NormedByGraph(), features()
    explain = explainer_of(model)
    found = 0
    for node in range(8):
        explanation = explain(x, INSIDE, index=node, batch=BATCH)
        check(explanation, lambda kept, node=node: int(model(x, INSIDE[:, kept], BATCH)[node].argmax()))
        found += explanation.counterfactual.found
    assert found


def test_arguments_that_are_ignored_may_be_required() -> None:
    model = EveryLevel(MULTICLASS, "node", "raw")
    plain = explainer_of(model)(features(), PATH, index=2)
    model.forward = lambda x, edge_index, batch, edge_label_index: EveryLevel.forward(model, x, edge_index)
    given = explainer_of(model)(features(), PATH, index=2, batch=BATCH, edge_label_index=PAIRS)
    assert given.counterfactual.edits == plain.counterfactual.edits


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("edges", ["object", None])
@pytest.mark.parametrize("nodes", ["attributes", "object", "common_attributes"])
def test_every_kind_of_node_mask(nodes, edges, level) -> None:
    model = EveryLevel(MULTICLASS, level, "raw")
    space = butfor.EditSpace(features=butfor.Features(values=[-3.0, 3.0]), delete=False)
    explain = Explainer(
        model,
        algorithm=CounterfactualExplainer(space=space),
        explanation_type="model",
        node_mask_type=nodes,
        edge_mask_type=edges,
        model_config={"mode": MULTICLASS, "task_level": level, "return_type": "raw"},
    )
    explanation = explain(features(), INSIDE, batch=BATCH, edge_label_index=PAIRS)
    assert explanation.validate(raise_on_error=True)
    if edges is None:
        assert "edge_mask" not in explanation
    else:
        assert explanation.edge_mask.shape == (INSIDE.size(1),)
        assert not explanation.edge_mask.any()
    changed = torch.zeros(8, 3)
    for number, result in explanation.counterfactuals.items():
        first = int((number > BATCH).sum()) if level == "graph" else 0
        for change in result.changes:
            changed[first + change.node, change.feature] = 1
    assert changed.any()
    expected = {
        "attributes": changed,
        "object": changed.amax(1, keepdim=True),
        "common_attributes": changed.amax(0, keepdim=True),
    }
    assert torch.equal(explanation.node_mask, expected[nodes])


def test_a_mask_of_nodes_and_pygs_subgraphs() -> None:
    space = butfor.EditSpace(features=butfor.Features(values=[-3.0, 3.0]), delete=False)
    _, explain = every_level(MULTICLASS, "node", "raw", nodes="object", space=space)
    explanation = explain(features(), INSIDE, index=2)
    changed = {change.node for change in explanation.counterfactual.changes}
    assert changed
    assert explanation.get_explanation_subgraph().num_nodes == len(changed)
    assert explanation.get_complement_subgraph().num_nodes == 8 - len(changed)


@pytest.mark.parametrize("nodes", [None, "attributes", "object", "common_attributes"])
@pytest.mark.parametrize("threshold", [("hard", 0.5), ("topk", 50), ("topk", 1), ("topk_hard", 3)])
def test_every_threshold(threshold, nodes) -> None:
    space = butfor.EditSpace(features=butfor.Features(values=[-3.0, 3.0]) if nodes else ())
    _, explain = every_level(MULTICLASS, "node", "raw", nodes=nodes, space=space)
    _, cut = every_level(MULTICLASS, "node", "raw", nodes=nodes, space=space, threshold=threshold)
    plain, explanation = (one(features(), INSIDE, index=2, batch=BATCH) for one in (explain, cut))
    assert explanation.counterfactual == plain.counterfactual
    for name in plain.available_explanations:
        if threshold in (("hard", 0.5), ("topk", 50)):
            assert torch.equal(explanation[name], plain[name])
        elif threshold == ("topk", 1):
            assert explanation[name].sum() == min(1, plain[name].sum())
        else:
            assert explanation[name].sum() == 3


def algorithm_of(mode=MULTICLASS, level="node", returns="raw", **settings) -> CounterfactualExplainer:
    """The algorithm without PyG's ``Explainer`` around it, which runs the model itself first."""
    return explainer_of(torch.nn.Identity(), mode, level, returns, **settings).algorithm


class Writing(EveryLevel):
    """Writes into all that it is given."""

    def forward(self, x, edge_index, batch=None, edge_label_index=None, edge_weight=None, scale=None):
        x /= x.norm(dim=1, keepdim=True)
        out = super().forward(x, edge_index.clone(), batch.clone(), edge_label_index.clone())
        for given in (edge_weight, scale, batch, edge_label_index, edge_index):
            if given is not None:
                given *= 0
        return out


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("method", [butfor.Exact(), butfor.Greedy()], ids=["Exact", "Greedy"])
def test_what_is_given_is_never_changed(level, method) -> None:
    given = {
        "x": features(),
        "edge_index": INSIDE.clone(),
        "batch": BATCH.clone(),
        "edge_label_index": PAIRS.clone(),
        "edge_weight": torch.ones(INSIDE.size(1)),
        "scale": torch.tensor(2.0),
    }
    before = copy.deepcopy(given)
    model = Writing(MULTICLASS, level, "raw")
    explanation = algorithm_of(level=level, method=method)(model, target=None, **given)
    assert all(torch.equal(given[name], before[name]) for name in given)
    x = given["x"] / given["x"].norm(dim=1, keepdim=True)

    def label(number, gone=()):
        kept = INSIDE[:, without(INSIDE, gone)]
        return int(EveryLevel.forward(model, x, kept, BATCH, PAIRS)[number].argmax())

    found = 0
    for number, result in explanation.counterfactuals.items():
        assert result.before.label == label(number)
        if result.found:
            found += 1
            first = int((number > BATCH).sum()) if level == "graph" else 0
            gone = {(min(u, v) + first, max(u, v) + first) for u, v in result.removed_edges}
            assert result.after.label == label(number, gone)
    assert found


class Strange(Exception):
    pass


@pytest.mark.parametrize("error", [RuntimeError("bad\nshapes"), KeyError("a"), Strange(), AssertionError()])
def test_a_model_that_fails_is_named(error) -> None:
    model = EveryLevel(MULTICLASS, "node", "raw")

    def forward(x, edge_index):
        raise error

    model.forward = forward
    words = str(error).splitlines()[0] if str(error) else type(error).__name__
    with pytest.raises(
        ModelError, match=rf"EveryLevel fails as PyG calls it, model\(x, edge_index\): .*{words}"
    ) as raised:
        algorithm_of()(model, features(), PATH, target=None, index=0)
    assert raised.value.__cause__ is error


def test_a_model_that_does_not_take_what_it_is_given() -> None:
    model = EveryLevel(MULTICLASS, "node", "raw")
    words = r"fails as PyG calls it, model\(x, edge_index, time=\.\.\.\): .*unexpected keyword argument 'time'"
    with pytest.raises(ModelError, match=words):
        algorithm_of()(model, features(), PATH, target=None, index=0, time=3)


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (None, "returns a NoneType"),
        ((torch.ones(8, 3), None), "returns a tuple"),
        ([torch.ones(8, 3)], "returns a list"),
        ({"out": torch.ones(8, 3)}, "returns a dict"),
        (torch.tensor(1.0), r"returns a tensor of shape \(\)"),
        (torch.ones(0, 3), r"returns a tensor of shape \(0, 3\)"),
        (torch.ones(8, 3, dtype=torch.long), "returns a tensor of dtype torch.int64"),
        (torch.ones(2, 8, 3), r"returns a tensor of shape \(2, 8, 3\)"),
        (torch.ones(5, 3), r"returns a tensor of shape \(5, 3\)"),
        (torch.full((8, 3), torch.nan), "returns NaN"),
    ],
)
def test_a_model_that_returns_something_else(out, words) -> None:
    model = EveryLevel(MULTICLASS, "node", "raw")
    model.forward = lambda x, edge_index: out
    with pytest.raises(ModelError, match=words):
        algorithm_of()(model, features(), PATH, target=None)
