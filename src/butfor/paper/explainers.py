"""PyG's explainers besides GNNExplainer. Table 3 removes the edges that each of them ranks highest.

Three of Captum's methods are included. Deconvolution and guided backpropagation are not: they differ from plain
gradients only at ReLU modules, but the paper's GCN calls relu as a function, so their masks would be those of
input × gradient. Shapley value sampling is too slow: it runs the model 25 times for each edge, which takes two seconds
for a neighbourhood of 17 edges and minutes for one of BA-Shapes.

Attention is included only for models that have attention layers. Such models cannot learn the paper's datasets: all
nodes have the same features, and a weighted mean of equal vectors is the same vector again. GAT, GATv2 and transformer
layers, trained on Tree-Cycles and BA-Shapes, gave all nodes the same scores up to rounding.
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

from butfor.boundary.extras import optional_imports
from butfor.errors import InputError
from butfor.graph.fingerprint import graph_fingerprint, model_fingerprint
from butfor.methods.explainer_masks import Question
from butfor.methods.subgraph import RemoveSubgraph
from butfor.predict.preserved import preserved
from butfor.session import Session

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn
    from torch_geometric.data import Data
    from torch_geometric.explain import ExplainerAlgorithm

    from butfor.methods import Method

__all__ = ["FinePGExplainer", "explainers_for", "trained_pg_explainer", "with_trained_explainer"]

CAPTUM = {
    "Integrated gradients": "IntegratedGradients",
    "Saliency": "Saliency",
    "Input × gradient": "InputXGradient",
}


def explainers_for(model: nn.Module, data: Data | None = None, seed: int = 0) -> dict[str, ExplainerAlgorithm]:
    """The explainers besides GNNExplainer that can rank edges for this model, by their titles.

    Args:
        model: a node classifier.
        data: its graph, on which PGExplainer is trained (see `trained_pg_explainer`). Without a graph, PGExplainer is
            returned untrained, and `with_trained_explainer` can train it later.
        seed: the seed of the training.

    Raises:
        InputError: captum is not installed.
    """
    with optional_imports():
        explainers = {label: CaptumExplainer(method) for label, method in CAPTUM.items()}
    if any(isinstance(module, (GATConv, GATv2Conv, TransformerConv)) for module in model.modules()):
        explainers["Attention"] = AttentionExplainer()
    pg_explainer = FinePGExplainer(seed=seed) if data is None else trained_pg_explainer(model, data, seed)
    return {"PGExplainer": pg_explainer, **explainers}


class FinePGExplainer(PGExplainer):  # type: ignore[misc]  # PyG is not typed
    """PGExplainer with masks in double precision, and with its training settings in its ``repr``.

    Training makes its logits so large that single precision rounds many mask values to 1 (on Tree-Grid, those of more
    than five edges for most nodes). Such edges would then be ranked by their position in the graph.

    Attributes:
        epochs: how often the training visits each node.
        lr: the learning rate.
        nodes: how many training nodes are drawn.
        seed: the seed for the choice of nodes, the initial weights and the training.
    """

    def __init__(self, epochs: int = 10, lr: float = 0.003, nodes: int = 100, seed: int = 0) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            super().__init__(epochs, lr)
        self.nodes = nodes
        self.seed = seed

    def __repr__(self) -> str:
        # Settings instead of weights, which rounding may change. A result names the model and the graph as well, and
        # together these determine the weights.
        return f"FinePGExplainer(epochs={self.epochs}, lr={self.lr}, nodes={self.nodes}, seed={self.seed})"

    @property
    def is_trained(self) -> bool:
        """Whether it has been trained: until then PyG does not know the shapes of its weights."""
        return not any(map(is_lazy, self.parameters()))

    @staticmethod
    def _post_process_mask(mask: Tensor, hard_mask: Tensor | None = None, apply_sigmoid: bool = True) -> Tensor:
        processed: Tensor = PGExplainer._post_process_mask(mask.double(), hard_mask, apply_sigmoid)
        return processed


def with_trained_explainer(method: Method, model: nn.Module, data: Data) -> Method:
    """The same method; if it uses a `FinePGExplainer` that is still untrained, with one trained on this graph.

    Methods that differ only in how many edges they remove get the same trained explainer.
    """
    if not isinstance(method, RemoveSubgraph) or not isinstance(method.explainer, FinePGExplainer):
        return method
    untrained = method.explainer
    if untrained.is_trained:
        return method
    content = model_fingerprint(model), graph_fingerprint(data), _training_nodes(data).tobytes()
    training_set = _TrainingSet(model, data, content)
    trained = _train_once(training_set, untrained.epochs, untrained.lr, untrained.nodes, untrained.seed)
    return replace(method, explainer=trained)


@dataclass(frozen=True)
class _TrainingSet:
    """What an explainer is trained on. Fingerprints of the content show if model or graph are changed in place."""

    model: nn.Module
    data: Data = field(compare=False)
    content: tuple[object, ...]


@lru_cache(maxsize=8)
def _train_once(training_set: _TrainingSet, epochs: int, lr: float, nodes: int, seed: int) -> FinePGExplainer:
    """`trained_pg_explainer`; the process remembers the last few, because training takes much longer than using one."""
    return trained_pg_explainer(training_set.model, training_set.data, seed, epochs=epochs, lr=lr, nodes=nodes)


def trained_pg_explainer(
    model: nn.Module, data: Data, seed: int = 0, *, epochs: int = 10, lr: float = 0.003, nodes: int = 100
) -> FinePGExplainer:
    """A PGExplainer, trained to explain this model's predictions for its training nodes.

    It is trained on exactly what `butfor.RemoveSubgraph` asks it later: the neighbourhood of a node instead of the
    whole graph (where nodes at its rim have other embeddings), and the predicted class instead of the true one.

    Args:
        model: a node classifier; it is not changed.
        data: its graph. The training nodes are those of ``train_mask``, or all except those of ``test_mask``, or all.
        seed: see `FinePGExplainer`; the state of torch's global random generator is not changed.
        epochs: see `FinePGExplainer`.
        lr: see `FinePGExplainer`.
        nodes: see `FinePGExplainer`.

    Raises:
        InputError: there are no training nodes, or no epochs.
    """
    chosen = np.random.default_rng(seed).permutation(_training_nodes(data))[:nodes]
    if not len(chosen) or epochs < 1:
        raise InputError(
            f"PGExplainer cannot learn from {len(chosen)} nodes in {epochs} epochs; give at least one of each, and a "
            "graph whose train_mask is not empty"
        )
    session = Session.of(model, data)
    questions = [Question.of(session.problem(int(node))) for node in chosen]
    model_copy = copy.deepcopy(model)
    algorithm = FinePGExplainer(epochs, lr, nodes, seed)
    with preserved(model_copy), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        # torch warns about the way in which PyG reads the loss.
        warnings.filterwarnings("ignore", "Converting a tensor with requires_grad=True", UserWarning)
        torch.manual_seed(seed)
        explainers = [question.explainer(algorithm, model_copy) for question in questions]
        targets = [question.target(explainer) for question, explainer in zip(questions, explainers, strict=True)]
        for epoch in range(epochs):
            for number in torch.randperm(len(questions)).tolist():
                question = questions[number]
                arguments = {**question.arguments, **targets[number], "index": question.index}
                algorithm.train(epoch, explainers[number].model, question.x, question.edge_index, **arguments)
    return algorithm


def _training_nodes(data: Data) -> NDArray[np.int64]:
    mask = torch.ones(int(data.num_nodes or 0), dtype=torch.bool)
    if data.get("train_mask") is not None:
        mask = data.train_mask
    elif data.get("test_mask") is not None:
        mask = ~data.test_mask
    nodes: NDArray[np.int64] = mask.nonzero().flatten().cpu().numpy()
    return nodes
