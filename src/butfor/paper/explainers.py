"""PyG's other explainers, whose top edges are removed beside those of GNNExplainer in Table 3.

Of Captum's methods three have a row. Deconvolution and guided backpropagation differ from plain gradients only at ReLU
modules, and the paper's GCN calls relu as a function: their masks would be those of input × gradient. Shapley value
sampling runs the model 25 times for each edge of a neighbourhood, two seconds for one of 17 edges and minutes for one
of BA-Shapes.

Attention has a row where the model has some, which none on the paper's datasets can use: all features are equal there,
and a softmax-weighted mean of equal vectors is that vector again. GAT, GATv2 and transformer layers, trained on
Tree-Cycles and BA-Shapes, gave all nodes the same scores up to rounding, so every node the largest class.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.parameter import is_lazy
from torch_geometric.explain import AttentionExplainer, CaptumExplainer, PGExplainer
from torch_geometric.nn import GATConv, GATv2Conv, TransformerConv

from butfor.errors import InputError
from butfor.graph.graph import Graph
from butfor.methods.explainer_masks import Question
from butfor.methods.subgraph import RemoveSubgraph
from butfor.models import fingerprint
from butfor.predict.preserved import untouched
from butfor.session import Explainer

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn
    from torch_geometric.data import Data
    from torch_geometric.explain import ExplainerAlgorithm

    from butfor.methods import Method

__all__ = ["FinePGExplainer", "explainers_for", "trained", "trained_pg_explainer"]

CAPTUM = {
    "Integrated gradients": "IntegratedGradients",
    "Saliency": "Saliency",
    "Input × gradient": "InputXGradient",
}


def explainers_for(model: nn.Module, data: Data | None = None, seed: int = 0) -> dict[str, ExplainerAlgorithm]:
    """The explainers besides GNNExplainer that can rank the edges behind this model's predictions, by their labels.

    Args:
        model: a classifier of nodes.
        data: its graph, on which PGExplainer is trained (see `trained_pg_explainer`); without it that is left for
            later (see `trained`).
        seed: of that training.

    Raises:
        InputError: captum is not installed.
    """
    try:
        explainers = {label: CaptumExplainer(method) for label, method in CAPTUM.items()}
    except ModuleNotFoundError as error:
        raise InputError("PyG's CaptumExplainer needs captum: pip install 'butfor[reproduce]'") from error
    if any(isinstance(module, (GATConv, GATv2Conv, TransformerConv)) for module in model.modules()):
        explainers["Attention"] = AttentionExplainer()
    learning = FinePGExplainer(seed=seed) if data is None else trained_pg_explainer(model, data, seed)
    return {"PGExplainer": learning, **explainers}


class FinePGExplainer(PGExplainer):  # type: ignore[misc]  # PyG is not typed
    """PGExplainer with masks in double precision, which says how it is trained.

    Its logits grow so large in training that in single precision many masks, on Tree-Grid those of more than five
    edges of most nodes, are rounded to 1, and it would be the numbering of the edges that ranks them.

    Attributes:
        epochs: how often each training node is looked at.
        lr: the learning rate.
        nodes: how many training nodes are drawn.
        seed: for the choice of nodes, the first weights and the training.
    """

    def __init__(self, epochs: int = 10, lr: float = 0.003, nodes: int = 100, seed: int = 0) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            super().__init__(epochs, lr)
        self.nodes = nodes
        self.seed = seed

    def __repr__(self) -> str:
        # With the model and the graph, which results name as well, this says all; weights would change with rounding.
        return f"FinePGExplainer(epochs={self.epochs}, lr={self.lr}, nodes={self.nodes}, seed={self.seed})"

    @property
    def is_trained(self) -> bool:
        """Whether its training has begun: only then are the sizes of its weights known."""
        return not any(map(is_lazy, self.parameters()))

    @staticmethod
    def _post_process_mask(mask: Tensor, hard_mask: Tensor | None = None, apply_sigmoid: bool = True) -> Tensor:
        fine: Tensor = PGExplainer._post_process_mask(mask.double(), hard_mask, apply_sigmoid)
        return fine


def trained(method: Method, model: nn.Module, data: Data) -> Method:
    """The same method, its explainer trained on this graph if it is a `FinePGExplainer` that is not yet.

    Those trained last are remembered, so that methods which differ in size share one.
    """
    if not isinstance(method, RemoveSubgraph) or not isinstance(method.explainer, FinePGExplainer):
        return method
    asked = method.explainer
    if asked.is_trained:
        return method
    state = id(data), fingerprint(model), Graph.of(data).fingerprint(), _training_nodes(data).tobytes()
    training = _Training(model, data, state)
    return replace(method, explainer=_trained(training, asked.epochs, asked.lr, asked.nodes, asked.seed))


@dataclass(frozen=True)
class _Training:
    """What an explainer is trained on; the state is there because model and graph may be changed meanwhile."""

    model: nn.Module
    data: Data = field(compare=False)
    state: tuple[object, ...]


@lru_cache(maxsize=8)
def _trained(training: _Training, epochs: int, lr: float, nodes: int, seed: int) -> FinePGExplainer:
    return trained_pg_explainer(training.model, training.data, seed, epochs=epochs, lr=lr, nodes=nodes)


def trained_pg_explainer(
    model: nn.Module, data: Data, seed: int = 0, *, epochs: int = 10, lr: float = 0.003, nodes: int = 100
) -> FinePGExplainer:
    """A PGExplainer that has learnt to explain this model's predictions for its training nodes.

    It learns from what `butfor.RemoveSubgraph` will ask: the neighbourhood of each node (in the whole graph nodes near
    the rim have other embeddings), with the class that the model predicts, not the true one.

    Args:
        model: a classifier of nodes; it is left as it is.
        data: its graph. Training nodes are those of ``train_mask``, or all but those of ``test_mask``, or all.
        seed: see `FinePGExplainer`; torch's own generator is left alone.
        epochs: see there.
        lr: see there.
        nodes: see there.

    Raises:
        InputError: there is nothing to learn from.
    """
    chosen = np.random.default_rng(seed).permutation(_training_nodes(data))[:nodes]
    if not len(chosen) or epochs < 1:
        raise InputError(
            f"PGExplainer cannot learn from {len(chosen)} nodes in {epochs} epochs; give at least one of each, and a "
            "graph whose train_mask is not empty"
        )
    pose = Explainer.of(model, data).poser.pose
    questions = [Question.of(pose((int(node),))) for node in chosen]
    double = copy.deepcopy(model)
    algorithm = FinePGExplainer(epochs, lr, nodes, seed)
    with untouched(double), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # PyG reads the loss in a way that torch has come to warn of.
        warnings.filterwarnings("ignore", "Converting a tensor with requires_grad=True", UserWarning)
        torch.manual_seed(seed)
        asked = [(question, question.explainer(algorithm, double)) for question in questions]
        targets = [question.target(explainer) for question, explainer in asked]
        for epoch in range(epochs):
            for number in torch.randperm(len(asked)).tolist():
                question, explainer = asked[number]
                given = {**question.arguments, **targets[number], "index": question.index}
                algorithm.train(epoch, explainer.model, question.x, question.edge_index, **given)
    return algorithm


def _training_nodes(data: Data) -> NDArray[np.int64]:
    mask = torch.ones(int(data.num_nodes or 0), dtype=torch.bool)
    if data.get("train_mask") is not None:
        mask = data.train_mask
    elif data.get("test_mask") is not None:
        mask = ~data.test_mask
    known: NDArray[np.int64] = mask.nonzero().flatten().cpu().numpy()
    return known
