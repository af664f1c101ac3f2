"""Soft deletion: run any model as a smooth function of one weight per edge.

A deleted edge is an edge that no reduction over edges counts. So while the model runs, every reduction over
edges (a sum, count, mean, maximum, product or softmax of one value per edge) becomes a weighted one:

    sum      Σ w·m, hence degrees Σ w, and with them every normalisation, mean, variance and degree scaler
    mean     Σ w·m / max(Σ w, 1)
    softmax  w·eˢ / Σ w·eˢ, times min(Σ w, 1)
    max      Σ_k w_k·m_k·Π_{j<k} (1 - w_j), with m sorted downwards: the maximum if w were chances to be kept
    product  Π (1 + w·(m - 1))

Each is the reduction itself where all w are 1, and the reduction without the edge where w is 0. A receiver
whose last edge goes fades to what it is without edges, so gradients see that too.

Nothing here knows a layer. Reductions are caught where torch does them, by a `TorchFunctionMode`: an index
into edges is a row of some matrix of pairs (sender, receiver), and the pairs say whose weights to take.
Only PyG's softmax is replaced by name, as its parts alone would divide nothing by nothing at a node that
lost all its edges. Values that a layer keeps of a deleted edge do not matter: no reduction counts them.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import scatter, softmax

from butfor.oracle.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import nn

__all__ = ["soft_edges"]

_SUMS = {Tensor.scatter_add, Tensor.scatter_add_, torch.scatter_add}
_SUMS |= {Tensor.index_add, Tensor.index_add_, torch.index_add}
_REDUCES = {Tensor.scatter_reduce, Tensor.scatter_reduce_, torch.scatter_reduce}
_CLAMPS = {Tensor.clamp, Tensor.clamp_, torch.clamp, Tensor.clamp_min, Tensor.clamp_min_, torch.clamp_min}

# How many of a receiver's largest messages a soft maximum looks at; the last of them counts in full.
RANKS = 4

# No value of a deleted edge is taken for one from here on.
ABSURD = 1e10


@contextmanager
def soft_edges(model: nn.Module, edge_index: Tensor, weights: Tensor, counted: Tensor | None = None) -> Iterator[None]:
    """While the model runs on ``edge_index``, weigh its edges: 0 equals deletion, 1 the intact graph.

    The graph's own fields (``edge_weight``, ``edge_attr``) are passed to the model as ever, without the weights.
    Pairs that are not in ``edge_index`` and all self-loops weigh 1. What this cannot follow (edges renumbered by
    pooling, medians and LSTMs over neighbours, compiled code) is not weighted: compare with true deletion first.

    Args:
        model: it is as found afterwards, also after an exception.
        edge_index: the edges that the model will be called with.
        weights: one in [0, 1] per column; copies of an edge carry the same. Gradients flow to it.
        counted: the weights that degrees are counted with in layers that normalise as GCN does, while messages
            carry ``weights``; by default the same.
    """
    mode = _SoftReductions(edge_index, weights, counted)
    others: list[tuple[Callable[..., Any], Callable[..., Any]]] = [(softmax, mode.softmax)]
    if counted is not None:
        others.append((gcn_norm, mode.gcn_norm))
    with replaced(model, others), mode:
        yield


class _SoftReductions(TorchFunctionMode):
    """Weighs every reduction over edges in the thread that entered it."""

    def __init__(self, edge_index: Tensor, weights: Tensor, counted: Tensor | None) -> None:
        super().__init__()
        self._edge_index = edge_index
        self._thread = threading.get_ident()
        one = weights.new_ones(1)
        # Edges that are not the graph's share one slot behind the weights, which always holds 1.
        self._weights = torch.cat([weights.reshape(-1), one])
        self._counted = self._weights if counted is None else torch.cat([counted.reshape(-1), one])
        self._counting = False
        # Held on to so that their ids stay theirs.
        self._known: dict[tuple[int, int, int], tuple[Tensor, int, Tensor]] = {}
        self._counts: dict[int, Tensor] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in _SUMS or func in _REDUCES:
            return self._reduce(func, args, kwargs)
        if func in _CLAMPS and id(args[0]) in self._counts:
            return _clamp(func, *args, **kwargs)
        if func is torch.sparse_coo_tensor or func is Tensor.__setitem__:
            args = self._weigh_cells(func, args)
        return func(*args, **kwargs)

    def softmax(
        self,
        src: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        num_nodes: int | None = None,
        dim: int = 0,
    ) -> Tensor:
        """PyG's softmax, but the shares of a receiver's edges add up to 1 only with their weights."""
        weight = self._weight_of(index, 0) if threading.get_ident() == self._thread else None
        if weight is None or index is None:
            plain: Tensor = softmax(src, index, ptr, num_nodes, dim)
            return plain
        weight = weight.to(src.dtype)
        group = index.clone()  # no longer a row of pairs, so that the sums below stay as they are written
        size = int(group.max()) + 1 if num_nodes is None else num_nodes
        gone = weight == 0
        highest = scatter(src.detach().masked_fill(_along(gone, src, dim), -torch.inf), group, dim, size, "max")
        shift = highest.masked_fill(highest == -torch.inf, 0)
        # The bound is for edges that are gone: theirs may be above the highest of the others.
        power = (src - shift.index_select(dim, group)).clamp(max=0).exp()
        total = scatter(_times(power, weight, dim), group, dim, size, "sum")
        present = scatter(weight.masked_fill(gone, 0), group, 0, size, "sum")
        present = present.masked_fill(present > 1, 1)
        share = torch.where(total > 0, _along(present, total, dim), 1) / torch.where(total > 0, total, 1)
        shares: Tensor = power * share.index_select(dim, group)
        return shares

    def gcn_norm(self, *args: Any, **kwargs: Any) -> Any:
        """PyG's normalisation by degrees, counted with the weights that are for counting."""
        if threading.get_ident() != self._thread:
            return gcn_norm(*args, **kwargs)
        self._counting = True
        try:
            return gcn_norm(*args, **kwargs)
        finally:
            self._counting = False

    def _reduce(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        named = dict(zip(("input", "dim", "index", "src", "reduce"), args, strict=False))
        named |= {"src" if name == "source" else name: value for name, value in kwargs.items()}
        out, dim, index, src = (named.pop(name) for name in ("input", "dim", "index", "src"))
        kind = named.pop("reduce", "sum")
        weight = self._weight_of(index, dim)
        if weight is None or src.dim() == 0 or src.size(dim) != weight.numel():
            return func(*args, **kwargs)
        how = () if func in _SUMS else (kind,)
        if kind == "sum" and not src.is_floating_point():
            # A count in whole numbers, such as a degree to choose by: right at 0 and 1, a step in between.
            zeros = torch.zeros_like(out, dtype=torch.float64)
            total = func(zeros, dim, index, _times(src.double(), weight, dim), *how, **named).round().to(out.dtype)
            return out.add_(total) if func.__name__.endswith("_") else out + total
        if kind == "sum":
            result = func(out, dim, index, _times(src, weight, dim), *how, **named)
        elif kind == "prod" and src.is_floating_point():
            result = func(out, dim, index, 1 + _times(src - 1, weight, dim), *how, **named)
        elif kind in ("amax", "amin") and named.get("include_self") is False and src.is_floating_point():
            sign = 1 if kind == "amax" else -1
            best = sign * _maximum(sign * out, dim, index, sign * src, weight)
            result = out.copy_(best) if func.__name__.endswith("_") else best
        else:
            return func(*args, **kwargs)
        if result.dim() == 1:
            self._counts[id(result)] = result
        if result.requires_grad:
            # What a layer masks out afterwards, such as 0^-1/2, has no gradient, but 0·inf is not a number.
            result.register_hook(_finite)
        return result

    def _weight_of(self, index: Tensor | None, dim: int) -> Tensor | None:
        """The weights of the edges that an index goes through along ``dim``; None where it is no row of pairs."""
        if index is None or index.numel() == 0:
            return None
        for axis in reversed(range(index.dim())):
            if axis != dim % index.dim():
                if index.stride(axis) != 0 and index.size(axis) != 1:
                    return None
                index = index.select(axis, 0)
        base = index._base
        if base is None or base.dim() != 2 or not base.is_contiguous():
            return None
        sides = [side for side in range(2) if base.size(side) == 2 and index.stride(0) == base.stride(1 - side)]
        if not sides:
            return None
        step = base.stride(sides[0])
        offset = int(index.storage_offset())
        first = offset - (offset - int(base.storage_offset())) // step % 2 * step
        key = (id(base), first, index.numel())
        if key not in self._known or self._known[key][1] != base._version:
            pairs = [index.as_strided(index.shape, index.stride(), first + end * step) for end in range(2)]
            self._known[key] = (base, base._version, self._columns(torch.stack(pairs)))
        weights = self._counted if self._counting else self._weights
        return weights[self._known[key][2]]

    def _weigh_cells(self, func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Weigh what a model writes into an adjacency matrix: sparse (cells, values) or dense [cells] = values."""
        sparse = func is torch.sparse_coo_tensor
        if len(args) < 2 + (not sparse) or not isinstance(args[0], Tensor):
            return args
        cells, values, typed = (args[0], args[1], args[1]) if sparse else (args[1], args[2], args[0])
        ends = [end for end in cells if isinstance(end, Tensor)] if isinstance(cells, tuple) or sparse else []
        if len(ends) != 2 or ends[0].dim() != 1 or ends[0]._base is not ends[1]._base:
            return args
        weight = self._weight_of(ends[0], 0)
        flat = not isinstance(values, Tensor) or values.dim() < 2
        if weight is None or not flat or not isinstance(typed, Tensor) or not typed.is_floating_point():
            return args
        return (*args[: 1 + (not sparse)], values * weight.to(typed.dtype), *args[2 + (not sparse) :])

    def _columns(self, pairs: Tensor) -> Tensor:
        """Where the weight of each pair stands."""
        count = self._edge_index.size(1)
        columns = pairs.new_full((pairs.size(1),), count)
        loops = pairs[0] == pairs[1]
        # Most often these are the given edges, perhaps with self-loops behind.
        same = count if pairs.size(1) >= count and torch.equal(pairs[:, :count], self._edge_index) else 0
        columns[:same] = torch.arange(same, device=pairs.device)
        rest = (~loops).nonzero().view(-1)
        rest = rest[rest >= same]
        if count and len(rest):
            straight, back = self._find(pairs[:, rest]), self._find(pairs[:, rest].flip(0))
            # Pairs that are all known only backwards are a reversed graph; some that are, a graph made undirected.
            reverse = bool((straight == count).any() and (back < count).all())
            columns[rest] = back if reverse else torch.where(straight < count, straight, back)
        return columns.masked_fill(loops, count)

    def _find(self, pairs: Tensor) -> Tensor:
        keys, order = self._keys
        wanted = _key(pairs)
        places = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
        return torch.where(keys[places] == wanted, order[places], len(keys))

    @cached_property
    def _keys(self) -> tuple[Tensor, Tensor]:
        keys, order = _key(self._edge_index).sort()
        return keys, order


def _key(pairs: Tensor) -> Tensor:
    return pairs[0].long() * 2**31 + pairs[1]


def _along(values: Tensor, like: Tensor, dim: int) -> Tensor:
    shape = [1] * like.dim()
    shape[dim] = -1
    return values.view(shape)


def _times(src: Tensor, weight: Tensor, dim: int) -> Tensor:
    weight = _along(weight.to(src.dtype), src, dim)
    gone = weight == 0
    if gone.any():
        # A layer may divide by a sum that is 0 now, or 0 + 1e-16; without the edge nobody would.
        src = src.masked_fill(gone & ~(src.abs() < ABSURD), 0)
    return src * weight


def _clamp(func: Callable[..., Any], values: Tensor, *args: Any, **kwargs: Any) -> Any:
    """A count's lower bound, with its gradient from below: weights can only fall from 1."""
    low = args[0] if args else kwargs.get("min")
    if len(args) + len(kwargs) != 1 or not isinstance(low, int | float):
        return func(values, *args, **kwargs)
    return (values.masked_fill_ if func.__name__.endswith("_") else values.masked_fill)(values <= low, low)


def _maximum(out: Tensor, dim: int, index: Tensor, src: Tensor, weight: Tensor) -> Tensor:
    """The mean of the maximum if each edge were kept with the chance of its weight, as far as `RANKS` go."""
    src, index, rest_of = src.movedim(dim, 0), index.movedim(dim, 0), out.movedim(dim, 0)
    weight = weight.to(src.dtype)
    edges = _along(torch.arange(len(src), device=src.device), src, 0).expand_as(src)
    left = _along(weight > 0, src, 0).expand_as(src)
    result, chance = torch.zeros_like(rest_of), torch.ones_like(rest_of)
    for rank in range(RANKS):
        values = src.detach().masked_fill(~left, -torch.inf)
        top = torch.full_like(rest_of, -torch.inf).scatter_reduce(0, index, values, "amax")
        ours = edges.masked_fill(~left | (values != top.gather(0, index)), -1)
        winner = torch.full_like(top, -1, dtype=torch.long).scatter_reduce(0, index, ours, "amax")
        none, winner = winner < 0, winner.clamp(min=0)
        kept = (torch.ones_like(chance) if rank == RANKS - 1 else weight[winner]).masked_fill(none, 0)
        result = result + chance * kept * src.gather(0, winner)
        chance = chance * (1 - kept)
        # The gradient of the first needs the second, even where the first is there for certain.
        if (rank > 0 or not weight.requires_grad) and not chance.any():
            break
        left = left & (edges != winner.gather(0, index))
    return (result + chance * rest_of).movedim(0, dim)


def _finite(gradient: Tensor) -> Tensor:
    return gradient.nan_to_num(0.0, 0.0, 0.0)
