"""The layers of a GCN as plain arrays: which models are such a stack, and what the kernels read of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch_geometric.nn import GCN, GCNConv

from butfor.predict.structure import is_as_its_class_says

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

__all__ = ["FirstProduct", "Layers", "Stack"]

# Known by its name, so that nobody who brings a model of his own has to load ours.
PAPER_GCN = "butfor.models.gcn.PaperGCN"


class Layers(NamedTuple):
    """The layers and the head as the kernels read them; rows are padded to the widest layer."""

    widths: NDArray[np.int64]  # layer l has widths[l + 1] outputs, and reads widths[l] inputs unless it is the first
    relu: NDArray[np.bool_]  # whether a ReLU follows the layer
    matrices: NDArray[Any]  # (layer, input, output); that of the first layer is not here, see `FirstProduct`
    biases: NDArray[Any]  # (layer, output)
    joined: bool  # whether the head reads all layers side by side (jumping knowledge) or only the last
    head: NDArray[Any]  # (class, what the head reads)
    head_bias: NDArray[Any]  # (class)


@dataclass(frozen=True, eq=False)
class Stack:
    """A model that is a stack of GCN layers and nothing else.

    Attributes:
        convolutions: in the order they are applied.
        relu: whether a ReLU follows each of them.
        joined: whether the head reads all layers side by side (jumping knowledge) or only the last.
        head: the linear layer that turns them into logits, if there is one.
    """

    convolutions: tuple[GCNConv, ...]
    relu: tuple[bool, ...]
    joined: bool
    head: nn.Linear | None

    @classmethod
    def of(cls, model: nn.Module) -> Stack | None:
        """The stack that this model is, or None.

        Subclasses may compute anything, so they do not count; nor do models with hooks or a ``forward`` of their own.
        """
        if not all(map(is_as_its_class_says, model.modules())):
            return None
        kind, gcn = type(model), cast("Any", model)
        if f"{kind.__module__}.{kind.__qualname__}" == PAPER_GCN:
            layers = (gcn.gc1, gcn.gc2, gcn.gc3)
            return cls(layers, (True, True, False), True, gcn.lin) if _plain(layers) else None
        if kind is GCN:
            layers, jumping = tuple(gcn.convs), gcn.jk_mode
            bare = all(isinstance(norm, torch.nn.Identity) for norm in gcn.norms or ())
            usual = type(gcn.act) is torch.nn.ReLU and bare and jumping in (None, "last", "cat")
            if not (usual and _plain(layers)):
                return None
            last = jumping is not None
            return cls(layers, (True,) * (len(layers) - 1) + (last,), jumping == "cat", getattr(model, "lin", None))
        return None

    def layers(self) -> Layers:
        """The same layers as plain arrays."""
        outs = [layer.lin.weight.shape[0] for layer in self.convolutions]
        dtype = self.convolutions[0].lin.weight.detach().numpy().dtype
        wide = max(outs)
        matrices = np.zeros((len(outs), wide, wide), dtype)
        biases = np.zeros((len(outs), wide), dtype)
        for i, layer in enumerate(self.convolutions):
            if i:
                matrices[i, : outs[i - 1], : outs[i]] = layer.lin.weight.detach().numpy().T
            if layer.bias is not None:
                biases[i, : outs[i]] = layer.bias.detach().numpy()
        read = sum(outs) if self.joined else outs[-1]
        head = np.eye(read, dtype=dtype) if self.head is None else self.head.weight.detach().numpy()
        bias = None if self.head is None else self.head.bias
        head_bias = np.zeros(len(head), dtype) if bias is None else bias.detach().numpy()
        return Layers(
            widths=np.array([0, *outs]),
            relu=np.array(self.relu),
            matrices=matrices,
            biases=biases,
            joined=self.joined,
            head=head,
            head_bias=head_bias,
        )


def _plain(layers: tuple[Any, ...]) -> bool:
    """Whether these are GCN layers as the paper of GCN has them, and nothing was switched on or off."""
    return all(
        type(layer) is GCNConv
        and layer.normalize
        and layer.add_self_loops
        and not layer.improved
        and layer.aggr == "add"
        and layer.flow == "source_to_target"
        and layer.lin.weight.device.type == "cpu"
        for layer in layers
    )


@dataclass(frozen=True, eq=False)
class FirstProduct:
    """X·W, where W is the first layer's matrix: no edge changes it, so each row is computed once.

    Attributes:
        linear: the first layer's linear map.
        x: the features of all nodes.
    """

    linear: Any
    x: Tensor

    def rows(self, nodes: NDArray[np.int64]) -> NDArray[Any]:
        """Those of these nodes; many are known already, because neighbourhoods overlap."""
        rows, known = self._computed
        missing = nodes[~known[nodes]]
        if len(missing):
            with torch.no_grad():
                rows[missing] = self.linear(self.x[torch.from_numpy(missing)]).numpy()
            known[missing] = True
        found: NDArray[Any] = rows[nodes]
        return found

    def steps(self, features: NDArray[np.int64], added: NDArray[np.float64]) -> NDArray[Any]:
        """How a row moves when so much is added to a feature."""
        weight = self.linear.weight.detach().numpy()
        moved: NDArray[Any] = weight.T[features] * added[:, None].astype(weight.dtype)
        return np.ascontiguousarray(moved)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """That of the model, in which the kernels compute."""
        dtype: np.dtype[Any] = self.linear.weight.detach().numpy().dtype
        return dtype

    @cached_property
    def _computed(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The rows, and which of them are filled in."""
        nodes, width = len(self.x), self.linear.weight.shape[0]
        return np.empty((nodes, width), self.dtype), np.zeros(nodes, dtype=bool)
