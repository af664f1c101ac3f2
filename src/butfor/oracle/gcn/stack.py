"""The layers of a GCN as plain arrays: which models are such a stack, and what the kernels read of them.

A model is recognised by what it was seen to do (`butfor.predict.structure`), whoever wrote its class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch_geometric.nn import GCNConv, Linear

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from butfor.predict.structure import Symbol

__all__ = ["FirstProduct", "Layers", "Margins", "Stack"]


class Layers(NamedTuple):
    """The layers and the head as the kernels read them; rows are padded to the widest layer."""

    widths: NDArray[np.int64]  # layer l has widths[l + 1] outputs, and reads widths[l] inputs unless it is the first
    relu: NDArray[np.bool_]  # whether a ReLU follows the layer
    matrices: NDArray[Any]  # (layer, input, output); that of the first layer is not here, see `FirstProduct`
    biases: NDArray[Any]  # (layer, output)
    joined: bool  # whether the head reads all layers side by side (jumping knowledge) or only the last
    head: NDArray[Any]  # (class, what the head reads)
    head_bias: NDArray[Any]  # (class)


class Margins(NamedTuple):
    """Margins of a stack of two layers as functions of what the first layer computes."""

    coefs: NDArray[np.float64]  # (pair, channel): what a channel of the first layer counts for
    constant: NDArray[np.float64]  # (pair): the part that no edge changes
    bias: NDArray[np.float64]  # (channel): of the first layer
    relu: bool  # whether a ReLU follows the first layer

    @classmethod
    def of(cls, layers: Layers, pairs: NDArray[np.float64]) -> Margins | None:
        """The margin of each row of ``pairs``; None where it is not linear in what the second layer receives."""
        if len(layers.relu) != 2 or layers.relu[1] or layers.joined:
            return None
        _, hidden, out = layers.widths.tolist()
        head = pairs @ layers.head.astype(np.float64)
        return cls(
            coefs=np.ascontiguousarray(head @ layers.matrices[1, :hidden, :out].T.astype(np.float64)),
            constant=head @ layers.biases[1, :out].astype(np.float64) + pairs @ layers.head_bias.astype(np.float64),
            bias=layers.biases[0, :hidden].astype(np.float64),
            relu=bool(layers.relu[0]),
        )


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
    def of(cls, out: Symbol, weighted: bool) -> Stack | None:
        """The stack that a model is, by how what it returns is made; None if it is something else.

        ``weighted`` says whether edges carry weights, which then all layers have to be given.
        """
        head = out.made if type(out.made) in (Linear, torch.nn.Linear) else None
        last = out if head is None else out.sources[0]
        joined = last.made == "cat"
        seen: list[Symbol] = [*last.sources[::-1]] if joined else []
        layers: list[tuple[GCNConv, bool]] = []
        at = last.sources[-1] if joined else last
        while at.sources:
            if joined and (not seen or seen.pop(0) is not at):
                return None
            relu = at.made == "relu" or type(at.made) is torch.nn.ReLU
            layer = at.sources[0] if relu else at
            if not _is_plain(layer.made) or (len(layer.sources) > 1) != weighted:
                return None
            layers.insert(0, (layer.made, relu))
            at = layer.sources[0]
        if not layers or seen or at.width is None:
            return None
        return cls(tuple(one for one, _ in layers), tuple(relu for _, relu in layers), joined, head)

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


def _is_plain(layer: Any) -> bool:
    """Whether this is a GCN layer as the paper of GCN has it, and nothing was switched on or off."""
    return (
        type(layer) is GCNConv
        and type(layer.lin) is Linear
        and layer.lin.bias is None
        and layer.normalize
        and layer.add_self_loops
        and not layer.improved
        and layer.aggr == "add"
        and layer.flow == "source_to_target"
        and layer.lin.weight.device.type == "cpu"
    )


# How many numbers of the first product are kept; of larger ones, rows are computed whenever they are needed.
MAX_KEPT = 40_000_000

# So many rows of X·W are computed at a time.
BLOCK = 16


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
        if len(self.x) * self.linear.weight.shape[0] > MAX_KEPT:
            return self._product(nodes)
        rows, known = self._computed
        missing = nodes[~known[nodes]]
        # Always the same blocks: how a row is rounded depends on the rows that it is multiplied with, and ties must not
        # be broken by which targets came before.
        for start in (np.unique(missing // BLOCK) * BLOCK).tolist():
            block = np.arange(start, min(start + BLOCK, len(rows)))
            rows[block], known[block] = self._product(block), True
        found: NDArray[Any] = rows[nodes]
        return found

    def _product(self, nodes: NDArray[np.int64]) -> NDArray[Any]:
        with torch.no_grad():
            product: NDArray[Any] = self.linear(self.x[torch.from_numpy(nodes)]).numpy()
        return product

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
