"""A fast oracle for stacks of GCN layers, behind the same interface as the general one.

It computes only what the target's output needs, in compiled code, and keeps the constant first product
X·W. `gcn_oracle` offers it only after it was seen to reproduce the model's own scores.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch_geometric.nn import GCN, GCNConv

from butfor.edits.edits import pack as pack_sets
from butfor.models.gcn import PaperGCN
from butfor.oracle.base import Influence, Oracle, Relaxation
from butfor.oracle.gcn.layout import Pack, Place
from butfor.oracle.general import ModelOracle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from butfor.edits.edits import Edits
    from butfor.graph.graph import Graph
    from butfor.predict.predictor import Predictor

__all__ = ["GCNOracle", "Stack", "gcn_oracle"]

# Edit sets that it takes to make up for the start of a thread, and those that a prefix is as much work as.
WORTH_A_THREAD = 4096
A_PREFIX = 32

# Rounding in float32 moves scores by about a tenth of this.
NEARLY_A_TIE = 1e-5


@dataclass(frozen=True, eq=False)
class Stack:
    """The layers of a GCN as plain arrays.

    Attributes:
        convolutions: in the order they are applied.
        relu: whether a ReLU follows each of them.
        joined: whether the head reads all layers side by side (jumping knowledge) or only the last.
        head: the linear layer that turns them into scores, if there is one.
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
        if any(part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part) for part in model.modules()):
            return None
        if type(model) is PaperGCN:
            layers = (model.gc1, model.gc2, model.gc3)
            return cls(layers, (True, True, False), True, model.lin) if _plain(layers) else None
        if type(model) is GCN:
            gcn: Any = model
            layers, jumping = tuple(gcn.convs), gcn.jk_mode
            bare = all(isinstance(norm, torch.nn.Identity) for norm in gcn.norms or ())
            usual = type(gcn.act) is torch.nn.ReLU and bare and jumping in (None, "last", "cat")
            if not (usual and _plain(layers)):
                return None
            last = jumping is not None
            return cls(layers, (True,) * (len(layers) - 1) + (last,), jumping == "cat", getattr(model, "lin", None))
        return None

    def arrays(self) -> tuple[Any, ...]:
        """What the kernels read: widths, ReLUs, padded weights and biases, the head."""
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
        return np.array([0, *outs]), np.array(self.relu), matrices, biases, self.joined, head, head_bias


def _plain(layers: tuple[Any, ...]) -> bool:
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
class GCNOracle(Oracle):
    """True deletion and gradients for a `Stack`; the general oracle decides what is nearly a tie."""

    general: ModelOracle
    stack: Stack
    _arrays: tuple[Any, ...]
    _places: WeakKeyDictionary[Edits, Place] = field(default_factory=WeakKeyDictionary, repr=False)

    @property
    def graph(self) -> Graph:
        """The whole graph."""
        return self.general.graph

    @property
    def predictor(self) -> Predictor:
        """The model."""
        return self.general.predictor

    def logits(self, asked: Sequence[tuple[Edits, NDArray[np.int64]]]) -> list[Tensor]:
        """Each set is a prefix, and nothing after it."""
        answers = []
        for edits, sets in asked:
            rows = pack_sets(sets)
            answers.append(self.extend(edits, rows, np.full(len(rows), -1), np.arange(len(rows) + 1)))
        return answers

    def relax(self, asked: Sequence[Edits]) -> Relaxation:
        """Weights of a GCN are faithful: 0 equals the edit, degrees included."""
        return _GCNRelaxation(
            Pack.of([self._place(edits) for edits in asked]), self._arrays, self.predictor.num_classes
        )

    def extend(
        self,
        edits: Edits,
        prefixes: NDArray[np.int64],
        candidates: NDArray[np.int64],
        pointers: NDArray[np.int64],
        threads: int = 1,
    ) -> Tensor:
        """Only what each further edit changes is computed anew."""
        from butfor.oracle.gcn.incremental import extend

        frame = self._place(edits).frame
        out = np.empty((len(candidates), self.predictor.num_classes), frame[6].dtype)

        def run(part: tuple[int, int]) -> None:
            first, last = part
            extend(frame, self._arrays, prefixes[first:last], candidates, pointers[first : last + 1], out)

        parts = min(threads, (len(candidates) + A_PREFIX * len(prefixes)) // WORTH_A_THREAD + 1)
        if parts > 1:
            # Cut so that each thread has about as many edit sets; what is computed does not depend on it.
            cuts = np.unique(np.searchsorted(pointers, np.linspace(0, len(candidates), parts + 1)))
            with ThreadPoolExecutor(parts) as pool:
                list(pool.map(run, pairwise(cuts)))
        else:
            run((0, len(prefixes)))
        scores = torch.from_numpy(out)
        close = _close(out)
        if len(close):
            rows = np.searchsorted(pointers, close, side="right") - 1
            sets = np.concatenate([prefixes[rows], candidates[close, None]], axis=1)
            scores[close] = self.general.logits([(edits, sets)])[0]
        return scores

    @property
    def proves_locality(self) -> bool:
        """A stack of GCN layers hears along edges, and of nothing else."""
        return True

    def batch_size(self, edits: Edits) -> int:  # noqa: ARG002
        """Any number is answered one by one; so many take a fraction of a second."""
        return 16_384

    def relevant(self, edits: Edits) -> NDArray[np.bool_]:
        """An edit that changes nothing within L hops of the target cannot matter."""
        place = self._place(edits)
        visible: NDArray[np.bool_] = (np.diff(place.frame[9]) > 0) | (np.diff(place.change_rows) > 0)
        return visible

    def equivalence_classes(self, edits: Edits) -> NDArray[np.int64]:
        """Edits that only lower the degree of the same nodes L hops away, by as much, are alike.

        No row of such a node is ever computed: the target sees nothing of it but its degree.
        """
        levels, _, _, receiver, _, _, base, _, _, rows, entries, after = self._place(edits).frame[:12]
        numbers = np.arange(len(edits))
        # An edit of several entries far away would be alike only to edges beside its own, which go with it.
        single = np.flatnonzero(np.diff(rows) == 1)
        entry = entries[rows[single]]
        outer = receiver[entry] >= levels[-2]
        single, entry = single[outer], entry[outer]
        if not len(single):
            return numbers
        keys = np.stack([receiver[entry], base[entry], after[entry], edits.costs[single]])
        order = np.lexsort(keys)
        begins = np.flatnonzero(np.append(True, (np.diff(keys[:, order], axis=1) != 0).any(axis=0)))
        firsts = np.repeat(begins, np.diff(np.append(begins, len(order))))
        numbers[single[order]] = single[order][firsts]
        return numbers

    def influence(
        self,
        edits: Edits,
        pairs: NDArray[np.float64],
        removed: Sequence[int],
        free: NDArray[np.int64],
        more: int,
    ) -> Influence | None:
        """By intervals that hold after all such deletions."""
        from butfor.oracle.gcn.bounds import influence

        if not edits.only_deletes:
            return None
        place = self._place(edits)
        if not (place.loop > 0).all() or not np.isfinite(place.first).all():
            # Where a node may lose its last weight its scale falls from infinity to zero, and what is no number
            # has no bounds.
            return None
        if not len(free) or more < 1:
            return Influence(np.zeros(len(free)), 0.0)
        loose = np.zeros(len(edits), dtype=bool)
        loose[free] = True
        limits = np.zeros(len(edits))
        gone = np.array(removed, dtype=np.int64)
        more = min(more, len(free))
        total = influence(place.frame, self._arrays, place.edit, place.parallel, gone, loose, more, pairs, limits)
        return Influence(limits[free], total)

    @cached_property
    def _products(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        nodes, width = self.graph.num_nodes, self._arrays[0][1]
        return np.empty((nodes, width), self._arrays[2].dtype), np.zeros(nodes, dtype=bool)

    def _first(self, nodes: NDArray[np.int64]) -> NDArray[Any]:
        """The rows of X·W of these nodes, each computed once: neighbourhoods overlap."""
        rows, known = self._products
        missing = nodes[~known[nodes]]
        if len(missing):
            with torch.no_grad():
                rows[missing] = self.stack.convolutions[0].lin(self.graph.x[torch.from_numpy(missing)]).numpy()
            known[missing] = True
        found: NDArray[Any] = rows[nodes]
        return found

    def moves(self, features: NDArray[np.int64], steps: NDArray[np.float64]) -> NDArray[Any]:
        """How a row of X·W moves when so much is added to a feature."""
        weight = self.stack.convolutions[0].lin.weight.detach().numpy()
        moved: NDArray[Any] = weight.T[features] * steps[:, None].astype(weight.dtype)
        return np.ascontiguousarray(moved)

    def _place(self, edits: Edits) -> Place:
        if edits not in self._places:
            self._places[edits] = Place.of(edits, self)
        return self._places[edits]


def gcn_oracle(general: ModelOracle) -> GCNOracle | None:
    """The fast oracle for this model, or None where it is not a plain stack of GCN layers."""
    if general.predictor.task != "node" or general.graph.types is not None:
        return None
    stack = Stack.of(general.predictor.model)
    on_cpu = general.graph.x.device.type == "cpu"
    if (
        stack is None
        or general.predictor.probabilities
        or general.predictor.threshold is not None
        or not on_cpu
        or set(general.predictor.fields) - {"edge_weight"}
    ):
        return None
    if (
        general.graph.x.dtype not in (torch.float32, torch.float64)
        or general.graph.x.dtype != general.predictor.logits.dtype
    ):
        return None
    weights = general.graph.edge_fields().get("edge_weight")
    if weights is not None and bool((weights < 0).any()):
        # Degrees could become negative, and then the model's own NaN is the truth.
        return None
    return GCNOracle(general, stack, stack.arrays())


def _close(scores: NDArray[Any]) -> NDArray[np.int64]:
    """The rows whose first and second class are so close that rounding could swap them."""
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    nearly: NDArray[np.int64] = np.flatnonzero(first - second <= NEARLY_A_TIE * (1 + np.abs(first)))
    return nearly


class _GCNRelaxation(Relaxation):
    def __init__(self, packed: Pack, stack: tuple[Any, ...], num_classes: int) -> None:
        self.pointers = packed.pointers
        self._packed = packed
        self._stack = stack
        self._num_classes = num_classes

    def logits(self, weights: Tensor, degrees: Tensor | None = None) -> Tensor:
        counted = weights if degrees is None else degrees
        return cast("Tensor", _Pass.apply(weights, counted, self))  # type: ignore[no-untyped-call]


class _Pass(torch.autograd.Function):
    """Joins the kernels to autograd. The backward pass computes the activations anew: they are cheap."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, degrees: Tensor, relaxation: _GCNRelaxation) -> Tensor:
        from butfor.oracle.gcn.kernels import forward

        ctx.relaxation = relaxation
        ctx.save_for_backward(weights, degrees)
        packed = relaxation._packed
        out = np.empty((len(packed.arrays[1]), relaxation._num_classes), packed.first.dtype)
        w, d = weights.detach().numpy(), degrees.detach().numpy()
        forward((*packed.arrays, packed.moved(w)), relaxation._stack, w, d, out)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from butfor.oracle.gcn.kernels import backward

        weights, degrees = (saved.detach().numpy() for saved in ctx.saved_tensors)
        d_weights, d_degrees = np.zeros_like(weights), np.zeros_like(degrees)
        wanted = bool(ctx.needs_input_grad[1])
        packed = ctx.relaxation._packed
        node, edit, step = packed.changes
        d_first = np.zeros_like(packed.first) if len(node) else packed.first[:0]
        backward(
            (*packed.arrays, packed.moved(weights)),
            ctx.relaxation._stack,
            weights,
            degrees,
            np.ascontiguousarray(grads[0].numpy()),
            d_weights,
            d_degrees,
            wanted,
            d_first,
        )
        np.add.at(d_weights, edit, -(d_first[node] * step).sum(axis=1))
        return torch.from_numpy(d_weights), torch.from_numpy(d_degrees) if wanted else None, None
