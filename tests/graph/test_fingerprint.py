"""Fingerprints of graphs: everything that a model can read, and nothing else; the same from version to version."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_geometric.data import Data, HeteroData

from butfor.graph.fingerprint import DIGITS, graph_fingerprint, model_fingerprint, text_fingerprint
from full_graph import full_graph

READ = ["x", "edge_index", "edge_weight", "edge_attr", "edge_type", "pos", "z", "batch"]


@pytest.mark.parametrize("name", READ)
def test_whatever_a_model_reads_counts(name: str) -> None:
    one, other = full_graph(), full_graph()
    assert graph_fingerprint(one) == graph_fingerprint(other)
    other[name] = other[name].clone()
    other[name].reshape(-1)[0] += 1
    assert graph_fingerprint(one) != graph_fingerprint(other)
    without = full_graph()
    if name not in ("x", "edge_index"):
        del without[name]
        assert graph_fingerprint(one) != graph_fingerprint(without)


@pytest.mark.parametrize("name", ["y", "train_mask", "node_ids"])
def test_what_no_model_reads_does_not(name: str) -> None:
    one, other = full_graph(), full_graph()
    del other[name]
    assert graph_fingerprint(one) == graph_fingerprint(other)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32])
def test_any_type_of_features(dtype: torch.dtype) -> None:
    one, other = full_graph(), full_graph()
    one.x = one.x.to(dtype)
    assert graph_fingerprint(one) == graph_fingerprint(one.clone()) != graph_fingerprint(other)


def test_names_of_types_count() -> None:
    def typed(name: str) -> HeteroData:
        data = HeteroData()
        data[name].x = torch.ones(2, 1)
        data[name, "to", name].edge_index = torch.tensor([[0], [1]])
        return data

    assert graph_fingerprint(typed("a")) == graph_fingerprint(typed("a")) != graph_fingerprint(typed("b"))


def test_runs_of_earlier_versions_can_be_continued() -> None:
    """These are the fingerprints that version 0.1.0 wrote into its results."""
    data = Data(x=torch.arange(6.0).reshape(3, 2), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    assert graph_fingerprint(data) == "7ebfc87e96871e21"
    data.edge_weight = torch.tensor([1.0, 1.0, 0.5, 0.5])
    data.pos, data.y = torch.ones(3, 1, dtype=torch.float64), torch.arange(3)
    assert graph_fingerprint(data) == "d4fd8fe8925e6714"
    typed = HeteroData()
    typed["a"].x, typed["b"].x = torch.ones(2, 1), torch.zeros(1, 2)
    typed["a", "to", "b"].edge_index = torch.tensor([[0, 1], [0, 0]])
    assert graph_fingerprint(typed) == "2cb5fd7baace5f60"
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([3.0])})
    assert model_fingerprint(layer) == "6e0a4439a258fb98"


def test_texts() -> None:
    assert len(text_fingerprint("a")) == DIGITS
    assert text_fingerprint("a") == text_fingerprint("a") != text_fingerprint("b")
