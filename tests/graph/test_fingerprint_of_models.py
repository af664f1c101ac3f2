"""The fingerprint of a model: of its class, and of the names, shapes and values of its weights."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCNConv, GraphSAGE

from butfor.errors import ModelError
from butfor.graph.fingerprint import model_fingerprint
from butfor.models import PaperGCN


def test_class_and_values_count() -> None:
    class Sub(PaperGCN):
        pass

    model, twin, sub = PaperGCN(10, 2), PaperGCN(10, 2), Sub(10, 2)
    for other in (twin, sub):
        other.load_state_dict(model.state_dict())
    before = model_fingerprint(model)
    assert len(before) == 16
    assert int(before, 16) >= 0
    assert model_fingerprint(twin) == before
    assert model_fingerprint(sub) != before
    with torch.no_grad():
        model.lin.bias[0] += 1e-6
    assert model_fingerprint(model) != before


def test_names_and_shapes_count() -> None:
    class Holder(torch.nn.Module):
        def __init__(self, name: str, *shape: int) -> None:
            super().__init__()
            self.register_parameter(name, torch.nn.Parameter(torch.ones(shape)))

    prints = {model_fingerprint(Holder(*what)) for what in (("a", 2, 3), ("a", 3, 2), ("a", 6), ("b", 2, 3))}
    assert len(prints) == 4
    assert model_fingerprint(Holder("a", 2, 3)) in prints


def test_a_layer_without_a_size_is_refused() -> None:
    with pytest.raises(ModelError, match="has no size yet: run the model once"):
        model_fingerprint(GCNConv(-1, 4))


def test_settings_without_weights_count_and_training_does_not() -> None:
    mean, largest = GraphSAGE(4, 8, 2, 3, aggr="mean"), GraphSAGE(4, 8, 2, 3, aggr="max")
    largest.load_state_dict(mean.state_dict())
    assert model_fingerprint(mean) != model_fingerprint(largest)
    assert model_fingerprint(mean.eval()) == model_fingerprint(mean.train())
