"""Models and graphs for PyG's Explainer, and the check of what it hands back: for tests/integrations/pyg."""

from __future__ import annotations

import itertools

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer
from torch_geometric.nn import GAT, GCN, GIN, GATConv, GCNConv, GraphSAGE, global_add_pool

import butfor
from butfor.integrations.pyg import CounterfactualExplainer

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


class Swallowing(torch.nn.Module):
    """Names none of its arguments."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)


class GraphClassifier(torch.nn.Module):
    """A classifier of whole graphs whose classes can be evenly matched."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.conv, self.head = GATConv(4, 6), torch.nn.Linear(6, classes)
        self.shift = torch.zeros(classes)

    def centred(self, graphs) -> GraphClassifier:
        """Match the classes evenly on these graphs."""
        with torch.no_grad():
            batch = Batch.from_data_list(graphs)
            self.shift = -self(batch.x, batch.edge_index, batch.batch).mean(0)
        return self

    def forward(self, x, edge_index, batch=None):
        return self.head(global_add_pool(self.conv(x, edge_index).relu(), batch)) + self.shift


GRAPHS = [small_graph(seed, nodes=6, links=7) for seed in range(10, 14)]


def explainer_of(model, mode=MULTICLASS, level="node", returns="raw", nodes=None, threshold=None, **settings):
    """PyG's Explainer with our algorithm."""
    return Explainer(
        model,
        algorithm=CounterfactualExplainer(**settings),
        explanation_type="model",
        node_mask_type=nodes,
        edge_mask_type="object",
        model_config={"mode": mode, "task_level": level, "return_type": returns},
        threshold_config=threshold,
    )


def algorithm_of(mode=MULTICLASS, level="node", returns="raw", **settings) -> CounterfactualExplainer:
    """The algorithm without PyG's ``Explainer`` around it, which runs the model itself first."""
    return explainer_of(torch.nn.Identity(), mode, level, returns, **settings).algorithm


def links_of(edge_index):
    """The undirected edges, each once."""
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
    """The features of the eight nodes."""
    return torch.randn(8, 3, generator=torch.Generator().manual_seed(1))


def every_level(mode, level, returns, **more):
    """A model for this level, and its explainer."""
    goal = butfor.Goal(threshold=0.0 if mode == "regression" else None)
    model = EveryLevel(mode, level, returns)
    return model, explainer_of(model, mode, level, returns, goal=goal, **more)


def labels_of(mode, returns, out):
    """The predicted classes, from what the model returned."""
    return out.argmax(-1) if mode == MULTICLASS else (out > (0.5 if returns == "probs" else 0.0)).long().view(-1)
