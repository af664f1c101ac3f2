"""What follows from a model's code alone: that it hears along edges and of nothing else."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric import nn as pyg

import butfor
from butfor.graph.graph import Graph
from butfor.predict.predictor import Predictor
from butfor.predict.truth import logits_after_all
from butfor.result import verify
from gnns import FRAGILE, GLOBAL, LOCAL, ring
from votes import path

# Layers of which nothing is known here, or that are put together in a way that is not followed.
NOT_FOLLOWED = {
    *("ChebConv", "ChebConv, edge_weight", "TAGConv", "TAGConv, edge_weight"),
    *("ARMAConv", "PNA", "PNA, edge_attr", "EdgeConv", "EdgeConv, mean"),
    *("CGConv, edge_attr", "NNConv, edge_attr", "a layer of one's own", "RGCN, edge_type", "PointNet, pos"),
    *("GraphSAGE, edges turned around", "jumping knowledge, max", "jumping knowledge, lstm", "counts"),
    *("PyG's GraphSAGE", "PyG's GAT", "PyG's PNA", "PyG's EdgeCNN"),
}


@pytest.mark.filterwarnings("ignore:Sparse")  # torch says once that its sparse tensors are new
@pytest.mark.parametrize("name", [*LOCAL, *GLOBAL, *FRAGILE])
def test_what_is_followed_is_local(name: str) -> None:
    data = ring(False)
    model = (LOCAL | GLOBAL | FRAGILE)[name].make(data)
    predictor = Predictor.of(model, Graph.of(data))
    assert predictor.hears_only_messages == (name in LOCAL and name not in NOT_FOLLOWED)
    assert not any("forward" in vars(module) for module in model.modules())


class Model(nn.Module):
    """A layer and a head with something between them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = pyg.SAGEConv(1, 4), nn.Linear(4, 2)
        self.norm, self.table = nn.BatchNorm1d(4, track_running_stats=False), nn.Parameter(torch.randn(8, 4))
        self.register_buffer("seen", torch.zeros(1))
        self.last: list[Tensor] = []
        self.calls = 0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.head(self.between(self.layer(x, edge_index), edge_index))

    def between(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x.relu()


def counted(self, x: Tensor, edge_index: Tensor) -> Tensor:
    self.calls += 1
    return x * (1.0 if self.calls < 9 else 2.0)


def written(self, x: Tensor, edge_index: Tensor) -> Tensor:
    self.seen += 1
    return x * self.seen


READS = {
    "all rows": lambda self, x, e: x - x.mean(0),
    "all rows of a tensor": lambda self, x, e: x - x.mean(0) if isinstance(x, Tensor) else x,
    "how many nodes": lambda self, x, e: x * (len(x) < 9),
    "how many edges": lambda self, x, e: x * (e.size(1) < 9),
    "a shape": lambda self, x, e: x / x.shape[0],
    "the next row": lambda self, x, e: x + x.roll(1, 0),
    "a row": lambda self, x, e: x + x[0],
    "a value": lambda self, x, e: x if x.sum() > 0 else -x,
    "a table of nodes": lambda self, x, e: x + self.table[: len(x)],
    "the whole table": lambda self, x, e: x + self.table,
    "edges turned round": lambda self, x, e: F.relu(self.layer(x[:, :1], e.flip(0))),
    "a softmax over nodes": lambda self, x, e: x.softmax(0),
    "a softmax over nodes, by name": lambda self, x, e: F.softmax(x, dim=0),
    "nodes below each other": lambda self, x, e: torch.cat([x, x])[: len(x)],
    "a norm over nodes": lambda self, x, e: self.norm(x),
    "dropout": lambda self, x, e: F.dropout(x, 0.5, training=True),
    "its former runs": counted,
    "a tensor that runs write into": written,
}
FOLLOWED = {
    "nothing": lambda self, x, e: x,
    "functions": lambda self, x, e: F.dropout(F.leaky_relu(torch.tanh(x), 0.1), 0.5, training=self.training),
    "numbers": lambda self, x, e: 2 * x / 3 - 1,
    "vectors": lambda self, x, e: x + self.table.detach().new_ones(4),
    "columns": lambda self, x, e: (x + x).log_softmax(1) * F.softmax(x, dim=-1),
}


@pytest.mark.parametrize(
    ("name", "followed"), [*((name, False) for name in READS), *((name, True) for name in FOLLOWED)]
)
def test_whatever_may_mix_rows_is_not_followed(name: str, followed: bool) -> None:
    model = type("Other", (Model,), {"between": (READS | FOLLOWED)[name]})().eval()
    data = path(torch.ones(8, 1))
    predictor = Predictor.of(model, Graph.of(data), probabilities=False)
    before = copy.deepcopy(model.state_dict())
    calls = model.calls
    assert predictor.hears_only_messages == followed
    assert model.calls == calls, "it ran a copy"
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize("kept", [False, True])
def test_what_a_model_keeps_of_its_runs_are_no_symbols(kept: bool) -> None:
    class Keeps(Model):
        def between(self, x: Tensor, edge_index: Tensor) -> Tensor:
            self.last.append(x)
            if kept:
                self.edges = edge_index
            return x

    model = Keeps().eval()
    predictor = Predictor.of(model, Graph.of(path(torch.ones(8, 1))))
    assert not predictor.hears_only_messages
    assert len(model.last) == 1
    assert type(model.last[0]) is Tensor
    assert type(model.__dict__.get("edges", model.last[0])) is Tensor


def test_a_layer_that_was_exchanged_or_hooked_is_not_followed() -> None:
    data = path(torch.ones(8, 1))
    plain, forward, message, hook, inner = (Model().eval() for _ in range(5))
    forward.head.forward = lambda x: x[:, :2] - x.mean()
    message.layer.message = lambda x_j: x_j * len(x_j)
    hook.layer.register_message_forward_hook(lambda _layer, _given, out: out - out.mean())
    inner.layer.lin_l.register_forward_hook(lambda _layer, _given, out: out - out.mean())
    models = (plain, forward, message, hook, inner)
    followed = [Predictor.of(model, Graph.of(data)).hears_only_messages for model in models]
    assert followed == [True, False, False, False, False]


def test_what_is_proved_of_a_model_that_is_followed_takes_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    data = ring(False)
    runs = []
    monkeypatch.setattr(
        verify,
        "logits_after_all",
        lambda predictor, made: (runs.append(len(made)), logits_after_all(predictor, made))[1],
    )
    counts = []
    for name in ("GraphSAGE, mean", "EdgeConv"):
        session = butfor.prepare(LOCAL[name].make(data), data)
        # One edit needs no proof that it is the least.
        proved = 0
        for node in range(8):
            runs.clear()
            result = session.explain(node)
            if result.status.value == "optimal" and result.lower_bound > 1:
                proved += 1
                counts.append((name, len(runs)))
        assert proved
    assert {count for name, count in counts if name == "GraphSAGE, mean"} == {1}
    assert min(count for name, count in counts if name == "EdgeConv") > 3
