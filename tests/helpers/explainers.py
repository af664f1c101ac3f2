"""What tests of PyG's explainers share: a model with layers that they can look into, and masks as they give them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch_geometric import nn as pyg

from butfor.methods.explainer_masks import Question
from butfor.paper.explainers import FinePGExplainer, trained_pg_explainer
from butfor.session import Session
from butfor.testing import random_problem

if TYPE_CHECKING:
    import numpy as np
    from torch_geometric.data import Data
    from torch_geometric.explain import ExplainerAlgorithm


class Lively(nn.Module):
    """Two layers of a kind, with ReLU as a module."""

    def __init__(self, layer=pyg.GCNConv, first: nn.Module | None = None) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.first = first or nn.Identity()
            self.one, self.relu, self.two = layer(4, 8), nn.ReLU(), layer(8, 3)

    def forward(self, x, edge_index):
        return self.two(self.relu(self.one(self.first(x), edge_index)), edge_index)


def mask(explainer: ExplainerAlgorithm, model: nn.Module, data: Data, node: int = 0, goal=None) -> np.ndarray:
    """The explainer's mask by column of the target's neighbourhood."""
    return Question.of(Session.of(model, data, goal=goal).problem(node)).ask(explainer, model, 0)


@cache
def learnt() -> tuple[nn.Module, Data, FinePGExplainer]:
    """A model, a graph and a PGExplainer that was trained on them."""
    model, data = random_problem(0, nodes=10)
    return model, data, trained_pg_explainer(model, data, epochs=3)
