"""The user's model on one graph: edited copies in, logits out, and how far it sees."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch_geometric import nn as gnn

from butfor.errors import ModelError
from butfor.predict.batch import EditedBatch
from butfor.predict.call import Call
from butfor.predict.outputs import Sigmoids, are_probabilities, check_classes, check_numbers, precision_of
from butfor.predict.preserved import preserved
from butfor.predict.structure import Symbol, followed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from butfor.graph.csr import Flow
    from butfor.graph.edge_keys import EdgeKey, TargetType
    from butfor.graph.graph import Graph
    from butfor.graph.neighbourhood import Neighbourhood
    from butfor.predict.call import Task
    from butfor.predict.inputs import Inputs

__all__ = ["Predictor", "Scope"]

# What the model is run on for its predictions, and to verify edits.
Scope = Literal["whole-graph", "receptive-field"]

# How far two rows of logits may be apart and still count as the same, relative to how far a class is from the predicted
# one; and the units in the last place by which sums in another order may differ.
AGREE = 1e-4
ROUNDING = 16

# Where only receptive fields are read, that of one target in this many reaches a hop further than it has to, unless it
# then has more edges than this.
SAMPLED = 16
SAMPLED_EDGES = 200_000

# From how many nodes it is learned how a model is called, where only receptive fields are read.
FIRST_NODES = 16

# Layers whose messages depend on what their sender, receiver and edge carry, and not on the sender's degree.
DEGREE_FREE = (
    gnn.CGConv,
    gnn.EdgeConv,
    gnn.GATConv,
    gnn.GATv2Conv,
    gnn.GatedGraphConv,
    gnn.GINConv,
    gnn.GINEConv,
    gnn.GraphConv,
    gnn.NNConv,
    gnn.PNAConv,
    gnn.ResGatedGraphConv,
    gnn.RGCNConv,
    gnn.SAGEConv,
    gnn.SimpleConv,
    gnn.TransformerConv,
)


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model and a graph: edited copies of it in, one row of logits per target out.

    A model that returns one number is a classifier of two classes, below and above a threshold.

    Attributes:
        call: how the model is called.
        probabilities: whether it returns probabilities; their logarithms then serve as logits.
        precision: the machine epsilon of the coarsest type that it computes with.
        depth: how many times it passes messages along edges, counted while it ran.
        reach: how many hops to try first: its depth, and one more if a layer may read the degrees of senders.
        flow: the direction its messages take; None where layers disagree.
        logits: on the intact graph: for every node, or one row for the whole graph. Of a link predictor a single row,
            of some pair; where only receptive fields are read, of some nodes of a small part.
        scope: what the model is run on for its predictions, and to verify edits: the whole graph, or the receptive
            field of each target.
    """

    call: Call
    probabilities: bool
    precision: float
    depth: int
    reach: int
    flow: Flow | None
    logits: Tensor
    scope: Scope = "whole-graph"

    @classmethod
    def of(
        cls,
        model: nn.Module,
        graph: Graph,
        task: Task = "node",
        *,
        node_type: TargetType | None = None,
        threshold: float | None = None,
        probabilities: bool | None = None,
        scope: Scope | None = None,
    ) -> Predictor:
        """Run the model once, on all that is in its scope, and learn what it returns and how far it sees.

        By default that is the whole graph, unless it is in a folder.

        Raises:
            ModelError: it fails on this graph, or what it returns are not scores of what is to be predicted.
            InputError: the type of the nodes is missing or unknown.
        """
        call = Call.of(model, graph, task, node_type, threshold)
        scope = scope or ("whole-graph" if graph.path is None else "receptive-field")
        model, name = call.model, type(call.model).__name__
        layers = {key: module for key, module in model.named_modules() if isinstance(module, gnn.MessagePassing)}
        calls: Counter[str] = Counter()
        with preserved(model), torch.no_grad():  # before the hooks, which must not count another thread's run
            handles = [
                layer.register_propagate_forward_pre_hook(lambda *_, key=key: calls.update([key]))
                for key, layer in layers.items()
            ]
            try:
                with Sigmoids() as sigmoids:
                    out = call.output(call.inputs(_first_batch(call, scope)))
            finally:
                for handle in handles:
                    handle.remove()
        check_numbers(out, name)
        if threshold is not None:
            probabilities = False
        else:
            if probabilities is None:
                labels = graph.attribute("y", call.node_type if isinstance(call.node_type, str) else None)
                check_classes(out, sigmoids, labels, name)
            probabilities = are_probabilities(out, probabilities, name)
        depth = _depth(model, calls, graph)
        flows = {layer.flow for layer in layers.values()}
        return cls(
            call=call,
            probabilities=probabilities,
            precision=precision_of(model, out),
            depth=depth,
            reach=depth if all(type(layer) in DEGREE_FREE for layer in layers.values()) else depth + 1,
            flow=flows.pop() if len(flows) == 1 else None,
            logits=_logits(out, threshold, probabilities),
            scope=scope,
        )

    # What is asked most often of the call.

    @property
    def model(self) -> nn.Module:
        """The user's model."""
        return self.call.model

    @property
    def graph(self) -> Graph:
        """The whole graph."""
        return self.call.graph

    @property
    def task(self) -> Task:
        """What is predicted."""
        return self.call.task

    @property
    def node_type(self) -> TargetType | None:
        """In a graph of several types, the type that is predicted; for links the types of their two ends."""
        return self.call.node_type

    @property
    def threshold(self) -> float | None:
        """Where the upper of two classes begins; None for a model that scores classes."""
        return self.call.threshold

    @property
    def fields(self) -> tuple[str, ...]:
        """What of the graph the model takes besides features and edges."""
        return self.call.fields

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return self.logits.size(1)

    @property
    def node_range(self) -> tuple[int, int]:
        """The first node of the predicted type, and the first behind it."""
        return _span(self.call)

    @cached_property
    def structure(self) -> Symbol | None:
        """What the model's code was seen to be made of; None where it could not be followed."""
        with preserved(self.model), torch.no_grad():
            return followed(self.call)

    @cached_property
    def hears_only_messages(self) -> bool:
        """Whether it follows from the model's code that nothing beyond `reach` hops matters to a node."""
        return self.depth > 0 and self.flow is not None and self.structure is not None

    @property
    def can_batch(self) -> bool:
        """Whether it can tell graphs side by side apart: a model of whole graphs has to be told which is which."""
        return self.task != "graph" or self.call.wants_batch

    def __call__(self, edited: EditedBatch) -> Tensor:
        """One row of logits for each answer wanted; call it inside `preserved`."""
        return self.run(self.call.inputs(edited))

    def run(self, inputs: Inputs) -> Tensor:
        """The same from inputs that are made already.

        Raises:
            ModelError: the model fails on them, or returns something else than on the intact graph.
        """
        out = self.call.output(inputs)
        if self.threshold is None and out.size(1) != self.num_classes:
            name = type(self.model).__name__
            raise ModelError(f"{name} returns {out.size(1)} scores for each {self.task} instead of {self.num_classes}")
        return _logits(out, self.threshold, self.probabilities)

    def intact_logits(self, targets: Sequence[tuple[int, ...]]) -> Tensor:
        """The logits of these targets on the intact graph."""
        if self.scope == "receptive-field":
            with preserved(self.model), torch.no_grad():
                return torch.cat([self(EditedBatch.receptive_field(self.field(target))) for target in targets])
        if self.task == "node":
            first = self.node_range[0]
            if len(targets) == 1:
                return self.logits[targets[0][0] - first][None]
            return self.logits[[target[0] - first for target in targets]]
        if self.task == "graph":
            return self.logits
        with preserved(self.model), torch.no_grad():
            return self(EditedBatch.whole_graph(self.graph, targets))

    def field(self, target: tuple[int, ...], joins: Collection[EdgeKey] = ()) -> Neighbourhood:
        """The receptive field of a target, read afresh; where edges are added, with what messages along them bring."""
        flow = self.flow or "source_to_target"
        return self.graph.neighbourhood(target, self.field_hops(target), flow, joins, rim=False)

    def field_hops(self, target: tuple[int, ...]) -> int:
        """How far a receptive field reaches: a hop further than messages do, for the degrees of the last senders.

        For a sample of the targets yet another hop, which must not change anything, as long as that is not much.
        """
        hops, flow = self.depth + 1, self.flow or "source_to_target"
        sampled = sum(target) % SAMPLED == 0
        return hops + (sampled and self.graph.size(target, hops + 1, flow, SAMPLED_EDGES) <= SAMPLED_EDGES)

    def verified_on(self, target: tuple[int, ...]) -> str:
        """What edits of this target are verified on, in words."""
        if self.scope == "whole-graph":
            return "whole graph"
        return f"receptive field of {self.field_hops(target)} hops"

    def same_logits(self, logits: Tensor, truth: Tensor) -> bool:
        """Whether two rows of logits say the same, rounding apart.

        Compared is what decides: how far each class is from the predicted one. What all classes have in common, such as
        a large constant, neither hides a difference nor makes one.
        """
        # NumPy is ten times as quick as torch for a few numbers.
        mine, other = logits.detach().cpu().double().numpy(), truth.detach().cpu().double().numpy()
        finite = np.isfinite(mine) & np.isfinite(other)
        best = int(np.argmax(np.where(finite, other, -np.inf)))
        with np.errstate(invalid="ignore"):
            distance = other - other[best]
            size = np.maximum(np.abs(mine), np.abs(other)) + abs(self.threshold or 0.0)
            room = AGREE * (1 + np.abs(distance)) + ROUNDING * self.precision * (size + size[best])
            near = np.abs(mine - mine[best] - distance) <= room
        return bool(np.where(finite, near, (mine == other) | (np.isnan(mine) & np.isnan(other))).all())


def _span(call: Call) -> tuple[int, int]:
    types = call.graph.types
    if types is None or not isinstance(call.node_type, str):
        return 0, call.graph.num_nodes
    first, last = types.node_starts[types.node_types.index(call.node_type) :][:2]
    return int(first), int(last)


def _every_target(call: Call) -> NDArray[np.int64]:
    """All nodes of the predicted type, the whole graph, or some pair: one row each."""
    if call.task == "graph":
        return np.empty((1, 0), dtype=np.int64)
    if call.task == "link":
        types = call.graph.types
        if types is None or call.node_type is None:
            return np.array([[0, call.graph.num_nodes - 1]])
        source, target = (types.node_types.index(kind) for kind in call.node_type)
        return np.array([[types.node_starts[source], types.node_starts[target + 1] - 1]])
    return np.arange(*_span(call))[:, None]


def _first_batch(call: Call, scope: Scope) -> EditedBatch:
    """What the model is run on to learn how: the whole graph, or some nodes and what they hear of in one hop."""
    targets = _every_target(call) if scope == "whole-graph" or call.task == "link" else _some_targets(call)
    if scope == "whole-graph":
        return EditedBatch.whole_graph(call.graph, targets)
    near = call.graph.neighbourhood(np.unique(targets).tolist(), 1, rim=False)
    return replace(EditedBatch.receptive_field(near), target_rows=np.searchsorted(near.nodes, targets))


def _some_targets(call: Call) -> NDArray[np.int64]:
    """Nodes all over the predicted type, of those of least degree."""
    first, last = _span(call)
    spread = np.unique(np.linspace(first, last - 1, 8 * FIRST_NODES).astype(np.int64))
    degrees = call.graph.degrees(spread)
    return np.sort(spread[np.argsort(degrees, kind="stable")[:FIRST_NODES]])[:, None]


def _logits(out: Tensor, threshold: float | None, probabilities: bool) -> Tensor:
    """What the model returned, as logits."""
    # NumPy knows no bfloat16, and half precision is too coarse to compute margins with.
    out = out.float() if torch.finfo(out.dtype).bits < 32 else out
    if threshold is not None:
        above = out.reshape(-1) - threshold
        # An infinite number is no prediction.
        above = above.masked_fill(~above.isfinite(), torch.nan)
        # Two classes, below and above: only their difference counts.
        return torch.stack([above * 0, above], dim=1)
    return out.clamp_min(torch.finfo(out.dtype).tiny).log() if probabilities else out


def _depth(model: nn.Module, calls: Counter[str], graph: Graph) -> int:
    """How many times messages are passed one after another, from how often each layer passed them.

    In a graph of several types the layers that PyG makes of one, a dictionary with one for each relation, work side
    by side.
    """
    if graph.types is None:
        return calls.total()
    stages: dict[str, int] = {}
    for name, count in calls.items():
        parent, _, own = name.rpartition(".")
        named = any(all(part in own for part in relation) for relation in graph.types.relations)
        side_by_side = named and isinstance(model.get_submodule(parent), torch.nn.ModuleDict)
        stage = parent if side_by_side else name
        stages[stage] = max(stages.get(stage, 0), count)
    return sum(stages.values())
