"""The user's model, called the way its ``forward`` wants and left exactly as it was found."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.models.basic_gnn import BasicGNN

from butfor.errors import ModelError
from butfor.graph import EDGE_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn

    from butfor.graph import Flow, Graph

__all__ = ["Predictor", "untouched"]


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Run the model in evaluation mode, its parameters frozen, without layer caches; then put all back.

    A layer such as ``GCNConv(cached=True)`` would answer for the old graph after a deletion, and PyG's
    explainers would leave gradients on the parameters.
    """
    training = {module: module.training for module in model.modules()}
    trainable = {parameter: parameter.requires_grad for parameter in model.parameters()}
    cached: dict[nn.Module, dict[str, Any]] = {}
    try:
        for parameter in trainable:
            parameter.requires_grad = False
        for module in model.modules():
            module.training = False
            if vars(module).get("cached") is True:
                names = [name for name in vars(module) if name == "cached" or name.startswith("_cached")]
                cached[module] = {name: vars(module)[name] for name in names}
                for name in names:
                    setattr(module, name, False if name == "cached" else None)
        yield
    finally:
        for parameter, mode in trainable.items():
            parameter.requires_grad = mode
        for module, mode in training.items():
            module.training = mode
        for module, values in cached.items():
            for name, value in values.items():
                setattr(module, name, value)


@dataclass(frozen=True, eq=False)
class Predictor:
    """A node classifier: features and edges in, one row of class scores per node out.

    Attributes:
        model: any module whose ``forward`` takes ``x`` and ``edge_index``.
        fields: the edge fields of the graph (``edge_weight``, ``edge_attr``) that it takes as well.
        takes_weight: whether ``forward`` takes an ``edge_weight``, which is what a relaxation needs.
        probabilities: whether it returns probabilities; scores are then their logarithms.
        depth: how many times it passes messages along edges, counted while it ran.
        flow: the direction its messages take; None where layers disagree.
        logits: its scores for every node of the intact graph.
    """

    model: nn.Module
    fields: tuple[str, ...]
    takes_weight: bool
    probabilities: bool
    depth: int
    flow: Flow | None
    logits: Tensor

    @classmethod
    def of(cls, model: nn.Module, graph: Graph) -> Predictor:
        """Run the model once on the whole graph and learn how it wants to be called.

        Raises:
            ModelError: it fails on this graph, or what it returns are not class scores of its nodes.
        """
        accepted = _accepted(model)
        fields = tuple(name for name in graph.edge_fields() if name in accepted)
        layers = [module for module in model.modules() if isinstance(module, MessagePassing)]
        calls: list[object] = []
        handles = [layer.register_propagate_forward_pre_hook(lambda *_: calls.append(None)) for layer in layers]
        values = {name: graph.edge_fields()[name] for name in fields}
        try:
            with untouched(model), torch.no_grad():
                out = model(graph.x, graph.data.edge_index, **values)
        except Exception as error:
            name, width = type(model).__name__, graph.x.size(1)
            reason = _first_line(error)
            raise ModelError(f"{name} fails on this graph of {width} features per node: {reason}") from error
        finally:
            for handle in handles:
                handle.remove()
        _check_output(out, graph, type(model).__name__)
        flows = {layer.flow for layer in layers}
        return cls(
            model=model,
            fields=fields,
            takes_weight="edge_weight" in accepted,
            probabilities=bool((out >= 0).all() and torch.allclose(out.sum(1), torch.ones(()).to(out), atol=1e-4)),
            depth=len(calls),
            flow=flows.pop() if len(flows) == 1 else None,
            logits=out,
        )._with_scores()

    def __call__(self, x: Tensor, edge_index: Tensor, fields: dict[str, Tensor]) -> Tensor:
        """The class scores of every node."""
        return self._scores(self.model(x, edge_index, **fields))

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return self.logits.size(1)

    def _scores(self, out: Tensor) -> Tensor:
        return out.clamp_min(torch.finfo(out.dtype).tiny).log() if self.probabilities else out

    def _with_scores(self) -> Predictor:
        return Predictor(**{**vars(self), "logits": self._scores(self.logits)})


def _accepted(model: nn.Module) -> set[str]:
    parameters = inspect.signature(model.forward).parameters
    names = set(parameters)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        names |= set(EDGE_FIELDS)
    # PyG's ready-made models all name both, and refuse what their layers do not take.
    if isinstance(model, BasicGNN):
        if not model.supports_edge_weight:
            names.discard("edge_weight")
        if not model.supports_edge_attr:
            names.discard("edge_attr")
    return names


def _check_output(out: object, graph: Graph, name: str) -> None:
    if not isinstance(out, torch.Tensor):
        raise ModelError(f"{name} returns a {type(out).__name__}; a tensor of class scores per node is needed")
    if out.dim() != 2 or out.size(0) != graph.num_nodes or out.size(1) < 2:
        raise ModelError(
            f"{name} returns a tensor of shape {tuple(out.shape)}; one row of at least two class "
            f"scores for each of the {graph.num_nodes} nodes is needed"
        )
    if torch.isnan(out).any() or (out == torch.inf).any():
        raise ModelError(f"{name} returns NaN or infinite scores on this graph; check its weights")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
