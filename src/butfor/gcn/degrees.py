"""Count a GCN layer's degrees with other weights than its messages carry.

The paper's method needs it: its soft forward pass weighs messages by σ(P̂), but normalises them by the
degrees of the thresholded graph (the published code: by degrees that the gradient does not see).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch_geometric.nn import GCNConv
from torch_geometric.utils import add_remaining_self_loops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, nn

__all__ = ["degrees_from"]


@contextmanager
def degrees_from(model: nn.Module, edge_index: Tensor, message: Tensor, counted: Tensor) -> Iterator[None]:
    """While the model runs with ``edge_weight=message``, let its GCN layers count degrees with ``counted``.

    Both hold one weight per column of ``edge_index``. Layers that do not normalise by degree are left alone.
    """
    layers = [module for module in model.modules() if isinstance(module, GCNConv) and module.normalize]
    handles = [
        layer.register_propagate_forward_pre_hook(_swap(layer, edge_index, message, counted)) for layer in layers
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _swap(layer: GCNConv, edges: Tensor, message: Tensor, counted: Tensor) -> Callable[..., tuple[Any, ...]]:
    def hook(_: nn.Module, inputs: tuple[Tensor, Any, dict[str, Any]]) -> tuple[Any, ...]:
        edge_index, size, kwargs = inputs
        num_nodes = kwargs["x"].size(0)
        sent, weighed = message, counted
        if layer.add_self_loops:
            fill = 2.0 if layer.improved else 1.0
            _, sent = add_remaining_self_loops(edges, message, fill, num_nodes)
            _, weighed = add_remaining_self_loops(edges, counted, fill, num_nodes)
        receiver = edge_index[1 if layer.flow == "source_to_target" else 0]
        degree = weighed.new_zeros(num_nodes).index_add(0, receiver, weighed)
        scale = degree.pow(-0.5).masked_fill(degree == 0, 0.0)
        return edge_index, size, {**kwargs, "edge_weight": scale[edge_index[0]] * sent * scale[edge_index[1]]}

    return hook
