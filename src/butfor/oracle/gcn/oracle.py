"""A fast oracle for stacks of GCN layers, behind the same interface as the general one.

It computes only what the target's output needs, in compiled code, and keeps the constant first product
X·W. Whoever builds a problem uses it only after it was seen to reproduce the model's own logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import torch

from butfor.oracle.base import Influence
from butfor.oracle.extending import ExtendingOracle
from butfor.oracle.gcn.curve.shape import Curve, Reading
from butfor.oracle.gcn.layout import Batch, ReceptiveField
from butfor.oracle.gcn.stack import FirstProduct, Margins, Stack
from butfor.oracle.program.oracle import program_oracle
from butfor.oracle.relaxation import Relaxation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.edits.edits import Edits
    from butfor.graph.graph import Graph
    from butfor.oracle.base import Sieve
    from butfor.oracle.extending import Extend
    from butfor.oracle.gcn.stack import Layers
    from butfor.oracle.general import ModelOracle
    from butfor.oracle.program.oracle import ProgramOracle
    from butfor.predict.predictor import Predictor

    Floats = NDArray[np.floating[Any]]

__all__ = ["GCNOracle", "gcn_oracle"]

# Products of numbers below this do not overflow.
LARGE = 1e75

# Bounding the influence of so many edits takes about as long as one evaluation; and so many where features are equal.
BOUNDED, BOUNDED_ALONG_CURVE = 4, 16


@dataclass(frozen=True, eq=False)
class GCNOracle(ExtendingOracle):
    """True deletion and gradients for a `Stack`; the general oracle decides what is nearly a tie.

    Attributes:
        enumerated: how many sets of edits at one node are tried one by one to bound what it sends.
        branches: how many branches are followed at the target to bound a margin.
        max_work: the most that bounding a margin may take, in additions: some tenths of a second. At a hub of ten
            thousand edges it would take minutes, whatever the budget says.
        layers: the model's layers as the kernels read them.
        product: what the first layer aggregates.
    """

    prefix_work = 32
    enumerated: ClassVar[int] = 256
    branches: ClassVar[int] = 64
    max_work: ClassVar[int] = 200_000_000
    layers: Layers
    product: FirstProduct

    @property
    def graph(self) -> Graph:
        """The whole graph."""
        return self.general.graph

    @property
    def predictor(self) -> Predictor:
        """The model."""
        return self.general.predictor

    def relax(self, asked: Sequence[Edits]) -> Relaxation:
        """Weights of a GCN are faithful: 0 equals the edit, degrees included."""
        batch = Batch.of([self._field(edits) for edits in asked])
        return _GCNRelaxation(batch, self.layers, self.predictor.num_classes)

    def _compiled(self, edits: Edits, count: int) -> tuple[NDArray[Any], Extend]:
        from butfor.oracle.gcn.incremental import extend

        field = self._field(edits)
        out = np.empty((count, self.predictor.num_classes), self.product.dtype)

        def run(
            _: int, prefixes: NDArray[np.int64], candidates: NDArray[np.int64], pointers: NDArray[np.int64]
        ) -> None:
            extend(field, self.layers, prefixes, candidates, pointers, out)

        return out, run

    def proves_locality(self, edits: Edits) -> bool:  # noqa: ARG002
        """A stack of GCN layers hears along edges, and of nothing else."""
        return True

    @property
    def knows_layers(self) -> bool:
        """It was recognised by its layers."""
        return True

    def relevant(self, edits: Edits) -> NDArray[np.bool_]:
        """An edit that changes nothing within L hops of the target cannot matter."""
        field = self._field(edits)
        visible: NDArray[np.bool_] = (np.diff(field.edit_rows) > 0) | (np.diff(field.change_rows) > 0)
        return visible

    def equivalence_classes(self, edits: Edits) -> NDArray[np.int64]:
        """Edits that only lower the degree of the same nodes L hops away, by as much, are alike.

        No row of such a node is ever computed: the target sees nothing of it but its degree.
        """
        field = self._field(edits)
        numbers = np.arange(len(edits))
        # An edit of several entries far away would be alike only to edges beside its own, which go with it.
        single = np.flatnonzero(np.diff(field.edit_rows) == 1)
        entry = field.edit_entries[field.edit_rows[single]]
        outer = field.receiver[entry] >= field.incoming.levels[-2]
        single, entry = single[outer], entry[outer]
        if not len(single):
            return numbers
        keys = np.stack([field.receiver[entry], field.base[entry], field.after[entry], edits.costs[single]])
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
        """By intervals that hold after all such deletions; along the first layer's curve where features are equal."""
        field = self._field(edits)
        if not self._has_bounds(edits, field):
            return None
        more = min(more, len(free))
        if more < 1:
            return Influence(np.zeros(len(free)), 0.0)
        is_free = np.zeros(len(edits), dtype=bool)
        is_free[free] = True
        limits = np.empty(len(edits))
        gone = np.array(removed, dtype=np.int64)
        field, layers = self._double_field(edits), self._double_layers
        if self._is_curve(field):
            from butfor.oracle.gcn.curve.influence import influence as along_curve

            along_curve(field, self._curve(field), Reading.of(layers, pairs), gone, is_free, more, limits)
            return Influence(limits[free], float(np.sort(limits[free])[-more:].sum()), len(free) // BOUNDED_ALONG_CURVE)
        from butfor.oracle.gcn.bounds import influence

        total = influence(field, layers, gone, is_free, more, pairs, limits)
        return Influence(limits[free], total, len(free) // BOUNDED)

    def _is_curve(self, field: ReceptiveField) -> bool:
        """Whether there are three layers, and all that tells nodes apart is their edges."""
        return self.layers.relu.tolist() == [True, True, False] and bool((field.first == field.first[0]).all())

    def _curve(self, field: ReceptiveField) -> Curve:
        layers = self._double_layers
        _, one, two, _ = layers.widths.tolist()
        return Curve.of(field.first[0, :one], layers.biases[0, :one], layers.matrices[1, :one, :two])

    def margin_bound(
        self,
        edits: Edits,
        pairs: NDArray[np.float64],
        removed: Sequence[int],
        free: NDArray[np.int64],
        more: int,
        every: bool = True,
        enough: float = 0.0,
    ) -> float | None:
        """For two layers, by tables of what each neighbour of the target sends at least."""
        from butfor.oracle.gcn.margins.least import least_margin

        field = self._field(edits)
        margins = Margins.of(self._double_layers, pairs)
        if margins is None or not self._has_bounds(edits, field):
            return None
        if not all(float(np.abs(x).max(initial=0.0)) < LARGE for x in (field.first, margins.coefs, margins.bias)):
            return None
        more = min(more, len(free))
        work = _work(field, margins, len(edits), more)
        if work > self.max_work:
            return None
        is_free = np.zeros(len(edits), dtype=bool)
        is_free[free] = True
        gone = np.array(removed, dtype=np.int64)
        suspect = self._suspects.setdefault(edits, np.zeros(len(edits), dtype=bool))
        bound = least_margin(
            self._double_field(edits), margins, gone, is_free, more, every, enough,
            self.enumerated, min(self.branches, self.max_work // work), suspect,
        )  # fmt: skip
        return float(bound)

    def sieve(
        self,
        edits: Edits,
        pairs: NDArray[np.float64],
        every: bool,
        order: NDArray[np.int64],
        size: int,
        limit: float,
        needed: float,
    ) -> Sieve | None:
        """That of the model's program: it is quicker where the influence of single edits leaves many sets open."""
        if self._program.refusal(edits):
            return None
        return self._program.sieve(edits, pairs, every, order, size, limit, needed)

    @cached_property
    def _program(self) -> ProgramOracle:
        return program_oracle(self.general)

    def _has_bounds(self, edits: Edits, field: ReceptiveField) -> bool:
        # Where a node may lose its last weight its scale falls from infinity to zero, and what is no number has no
        # bounds.
        return edits.only_deletes and bool((field.incoming.loop > 0).all() and np.isfinite(field.first).all())

    @cached_property
    def _suspects(self) -> WeakKeyDictionary[Edits, NDArray[np.bool_]]:
        """For each target, the edits at it that were made in the last branch whose margin was not clear of the goal."""
        return WeakKeyDictionary()

    @cached_property
    def _fields(self) -> WeakKeyDictionary[Edits, ReceptiveField]:
        return WeakKeyDictionary()

    # Bounds are computed in double precision, whatever the model's: then their kernels are compiled once.

    @cached_property
    def _double_fields(self) -> WeakKeyDictionary[Edits, ReceptiveField]:
        return WeakKeyDictionary()

    def _double_field(self, edits: Edits) -> ReceptiveField:
        if edits not in self._double_fields:
            self._double_fields[edits] = _in_double_precision(self._field(edits))
        return self._double_fields[edits]

    @cached_property
    def _double_layers(self) -> Layers:
        layers: Layers = _in_double_precision(self.layers)
        return layers

    def _field(self, edits: Edits) -> ReceptiveField:
        """The receptive field of the edits' target, laid out once."""
        if edits not in self._fields:
            weighted = "edge_weight" in self.predictor.fields
            edge_weights = self.graph.edge_fields()["edge_weight"] if weighted else None
            self._fields[edits] = ReceptiveField.of(edits, len(self.layers.relu), self.product, edge_weights)
        return self._fields[edits]


# In how many additions an entry or edit of the neighbourhood is looked at while a margin is bounded.
PASSES = 60


def _work(field: ReceptiveField, margins: Margins, edits: int, more: int) -> int:
    """About how many additions it takes to bound a margin once, at most ``more`` of so many edits made."""
    pairs, width = margins.coefs.shape
    degrees = np.diff(field.incoming.rows[: field.incoming.levels[1] + 1])
    tables = int((degrees * np.minimum(degrees, more)).sum()) * pairs * width
    # All tables are as long as the longest, and every entry and edit is looked at some times.
    longest = 2 * pairs * min(more, int(degrees.max(initial=0)))
    total: int = tables + len(degrees) * longest + PASSES * (len(field.edit) + edits)
    return total


def _in_double_precision(part: Any) -> Any:
    """The same arrays, those of single precision in double precision."""
    if isinstance(part, tuple):
        return type(part)(*map(_in_double_precision, part))
    single = isinstance(part, np.ndarray) and part.dtype == np.float32
    return part.astype(np.float64) if single else part


def gcn_oracle(general: ModelOracle) -> GCNOracle | None:
    """The fast oracle for this model, or None where it is not a plain stack of GCN layers."""
    predictor, graph = general.predictor, general.graph
    if not predictor.hears_only_messages or predictor.structure is None or set(predictor.fields) - {"edge_weight"}:
        return None
    stack = Stack.of(predictor.structure, bool(predictor.fields))
    if stack is None or predictor.probabilities or predictor.threshold is not None or graph.x.device.type != "cpu":
        return None
    if graph.x.dtype not in (torch.float32, torch.float64) or graph.x.dtype != predictor.logits.dtype:
        return None
    if predictor.precision > torch.finfo(torch.float32).eps:
        # Inside `torch.autocast`, say: neither near ties nor bounds leave that much room for rounding.
        return None
    weights = graph.edge_fields().get("edge_weight")
    if weights is not None and len(weights) and float(weights.min()) < 0:
        # Degrees could become negative, and then the model's own NaN is the truth.
        return None
    return GCNOracle(general, stack.layers(), FirstProduct(stack.convolutions[0].lin, graph.x))


class _GCNRelaxation(Relaxation):
    """Soft edges and features, by the kernels, in the model's own precision."""

    def __init__(self, batch: Batch, layers: Layers, num_classes: int) -> None:
        self.pointers = batch.pointers
        self.batch = batch
        self.layers = layers
        self.num_classes = num_classes

    def scores(self, weights: Floats, degrees: Floats) -> Floats:
        """One row of scores for each target."""
        from butfor.oracle.gcn.kernels import forward

        batch = self.batch
        out = np.empty((len(batch.levels), self.num_classes), batch.first.dtype)
        forward(batch.with_features(weights), self.layers, weights, degrees, out)
        return out

    def slopes(self, weights: Floats, degrees: Floats, of_scores: Floats, by_degrees: bool) -> tuple[Floats, Floats]:
        """The derivatives with respect to the weights, and to those of degrees."""
        from butfor.oracle.gcn.kernels import Gradients, backward

        batch = self.batch
        changes = len(batch.change_node) > 0
        d_first = np.zeros_like(batch.first) if changes else batch.first[:0]
        gradients = Gradients(np.zeros_like(weights), np.zeros_like(degrees), d_first)
        d_logits = np.ascontiguousarray(of_scores, dtype=batch.first.dtype)
        backward(batch.with_features(weights), self.layers, weights, degrees, d_logits, gradients, by_degrees)
        if changes:
            moved = (d_first[batch.change_node] * batch.change_step).sum(axis=1)
            np.add.at(gradients.messages, batch.change_edit, -moved)
        return gradients.messages, gradients.degrees
