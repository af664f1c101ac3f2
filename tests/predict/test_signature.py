"""What is no model is refused with what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from torch import Tensor, nn
from torch_geometric import nn as gnn

import butfor
from butfor.errors import ModelError
from butfor.testing import random_problem

if TYPE_CHECKING:
    from torch_geometric.data import Data


class OfData(nn.Module):
    def forward(self, data: Data) -> Tensor:
        return data.x


class NoInit(nn.Module):
    def __init__(self) -> None:
        self.number = 3

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x


def a_function(x: Tensor, edge_index: Tensor) -> Tensor:
    return x


ODD = [
    (a_function, "model is the function a_function; give a torch.nn.Module"),
    ("GCN", "model is a str"),
    (None, "model is a NoneType"),
    (gnn.GCN, "model is a type|model is the"),
    (OfData(), r"OfData.forward takes \(data\)"),
    (NoInit(), "NoInit"),
    (gnn.GCN(4, 8, 2, 3).to("meta"), "meta device"),
]


@pytest.mark.parametrize(("model", "words"), ODD, ids=[str(i) for i in range(len(ODD))])
def test_what_is_no_model(model: object, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        butfor.explain(model, random_problem(4)[1], 0)
