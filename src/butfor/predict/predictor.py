"""The user's model, called the way its ``forward`` wants."""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch_geometric import nn as gnn
from torch_geometric.nn.models.basic_gnn import BasicGNN

from butfor.errors import InputError, ModelError, one_line
from butfor.graph.graph import EDGE_FIELDS
from butfor.predict.batch import Copies
from butfor.predict.inputs import Inputs, make_inputs
from butfor.predict.outputs import (
    Sigmoids,
    are_probabilities,
    check_classes,
    check_kind,
    check_numbers,
    check_shape,
    precision_of,
)
from butfor.predict.preserved import untouched

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from butfor.graph.graph import Flow, Graph

__all__ = ["Predictor", "Task"]

# How far scores may be apart and still count as the same, relative to how far a class is from the predicted one; and
# the units in the last place that sums in another order may move a score by.
AGREE = 1e-4
ROUNDING = 16

Task = Literal["node", "link", "graph"]

# Layers whose messages depend on what their sender, receiver and edge carry, and not on the sender's degree.
PLAIN = (
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
    """A model and a graph: edited copies of it in, one row of class scores per target out.

    A model that returns one number is a classifier of two classes, below and above a threshold.

    Attributes:
        model: any module whose ``forward`` takes ``x`` and ``edge_index``.
        graph: the whole graph.
        task: what is predicted: something of each node, of pairs of nodes, or of the whole graph.
        node_type: in a graph of several types, the type that is predicted.
        fields: what of the graph besides features and edges it takes as well.
        takes: the names of all arguments of ``forward``.
        wants_batch: whether it is told which copy each node belongs to: always if it predicts whole graphs, else only
            if it cannot do without or the graph says so.
        threshold: where the upper of two classes begins; None for a model that scores classes.
        probabilities: whether it returns probabilities; scores are then their logarithms.
        precision: how far two neighbouring numbers near 1 are apart in the coarsest type that it computes with.
        depth: how many times it passes messages along edges, counted while it ran.
        reach: how many hops of edges it should need: one more for the degrees of the last senders, unless all
            layers are known not to look at these.
        flow: the direction its messages take; None where layers disagree.
        logits: its scores on the intact graph: for every node, or one row for the whole graph. Of a link predictor
            a single row, of any pair.
    """

    model: nn.Module
    graph: Graph
    task: Task
    node_type: str | None
    fields: tuple[str, ...]
    takes: frozenset[str]
    wants_batch: bool
    threshold: float | None
    probabilities: bool
    precision: float
    depth: int
    reach: int
    flow: Flow | None
    logits: Tensor

    @classmethod
    def of(
        cls,
        model: nn.Module,
        graph: Graph,
        task: Task = "node",
        *,
        node_type: str | None = None,
        threshold: float | None = None,
        probabilities: bool | None = None,
    ) -> Predictor:
        """Run the model once on the whole graph and learn how it wants to be called.

        Raises:
            ModelError: it fails on this graph, or what it returns are not scores of what is to be predicted.
            InputError: the type of the nodes is missing or unknown.
        """
        # Of a model that torch compiled, the module that it was made from: edited graphs are all of other sizes.
        model = getattr(model, "_orig_mod", model)
        _check_model(model)
        takes = frozenset(_accepted(model))
        if task != "link" and _required(model, "edge_label_index"):
            raise ModelError(f"{type(model).__name__} predicts links; ask about a pair of nodes, butfor.Pair(3, 9)")
        if task == "link" and "edge_label_index" not in takes and not _has_decoder(model):
            raise ModelError(
                f"{type(model).__name__} does not say how it predicts links: its forward must take edge_label_index, "
                "or it must have encode(x, edge_index) and decode(z, edge_label_index)"
            )
        draft = cls(
            model=model,
            graph=graph,
            task=task,
            node_type=_checked_type(graph, task, node_type),
            fields=_fields(graph, takes),
            takes=takes,
            wants_batch="batch" in takes and (task == "graph" or "batch" in graph.data or _required(model, "batch")),
            threshold=threshold,
            probabilities=False,
            precision=0.0,
            depth=0,
            reach=0,
            flow=None,
            logits=torch.empty(0, 2),
        )
        layers = {name: module for name, module in model.named_modules() if isinstance(module, gnn.MessagePassing)}
        calls: Counter[str] = Counter()
        with untouched(model), torch.no_grad():  # before the hooks, which must not count another thread's run
            handles = [
                layer.register_propagate_forward_pre_hook(lambda *_, name=name: calls.update([name]))
                for name, layer in layers.items()
            ]
            try:
                with Sigmoids() as sigmoids:
                    out = draft._output(draft.inputs(Copies.whole(graph, draft._everything())))
            finally:
                for handle in handles:
                    handle.remove()
        name = type(model).__name__
        check_numbers(out, name)
        if threshold is not None:
            probabilities = False
        else:
            if probabilities is None:
                check_classes(out, sigmoids, graph.data.get("y") if graph.types is None else None, name)
            probabilities = are_probabilities(out, probabilities, name)
        depth = _depth(model, calls, graph)
        flows = {layer.flow for layer in layers.values()}
        drafted = replace(draft, probabilities=probabilities, precision=precision_of(model, out))
        return replace(
            drafted,
            depth=depth,
            reach=depth if all(type(layer) in PLAIN for layer in layers.values()) else depth + 1,
            flow=flows.pop() if len(flows) == 1 else None,
            logits=drafted._scores(out),
        )

    def _everything(self) -> NDArray[np.int64]:
        """All nodes of the predicted type, the whole graph, or any pair: one line each."""
        if self.task == "graph":
            return np.empty((1, 0), dtype=np.int64)
        if self.task == "link":
            return np.array([[0, self.graph.num_nodes - 1]])
        return np.arange(*self.span)[:, None]

    @property
    def span(self) -> tuple[int, int]:
        """The first node of the predicted type, and the first behind it."""
        types = self.graph.types
        if types is None or self.node_type is None:
            return 0, self.graph.num_nodes
        first, last = types.node_starts[types.node_types.index(self.node_type) :][:2]
        return int(first), int(last)

    def __call__(self, copies: Copies) -> Tensor:
        """One row of scores for each answer wanted; call it inside `untouched`."""
        return self.score(self.inputs(copies))

    def score(self, inputs: Inputs) -> Tensor:
        """The same from inputs that are made already."""
        return self._scores(self._output(inputs))

    def intact(self, targets: Sequence[tuple[int, ...]]) -> Tensor:
        """The scores of these targets on the intact graph."""
        if self.task == "node":
            first = self.span[0]
            if len(targets) == 1:
                return self.logits[targets[0][0] - first][None]
            return self.logits[[target[0] - first for target in targets]]
        if self.task == "graph":
            return self.logits
        with untouched(self.model), torch.no_grad():
            return self(Copies.whole(self.graph, targets))

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return self.logits.size(1)

    @property
    def separable(self) -> bool:
        """Whether it can tell copies side by side apart: a model of whole graphs needs to be told which is which."""
        return self.task != "graph" or self.wants_batch

    def inputs(self, copies: Copies) -> Inputs:
        """The tensors that the model reads."""
        return make_inputs(self.graph, copies, self.fields)

    def same(self, scores: Tensor, truth: Tensor) -> bool:
        """Whether two rows of scores say the same, rounding apart.

        Compared is what decides: how far each class is from the predicted one. What all classes have in common, such as
        a large constant, neither hides a difference nor makes one.
        """
        # NumPy takes a tenth of the time that torch takes for so few numbers.
        mine, other = scores.detach().cpu().double().numpy(), truth.detach().cpu().double().numpy()
        finite = np.isfinite(mine) & np.isfinite(other)
        best = int(np.argmax(np.where(finite, other, -np.inf)))
        with np.errstate(invalid="ignore"):
            distance = other - other[best]
            size = np.maximum(np.abs(mine), np.abs(other)) + abs(self.threshold or 0.0)
            room = AGREE * (1 + np.abs(distance)) + ROUNDING * self.precision * (size + size[best])
            near = np.abs(mine - mine[best] - distance) <= room
        return bool(np.where(finite, near, (mine == other) | (np.isnan(mine) & np.isnan(other))).all())

    def _output(self, inputs: Inputs) -> Tensor:
        """What the model says, one row for each answer wanted.

        Raises:
            ModelError: it fails on these inputs, or what it returns are no scores.
        """
        name = type(self.model).__name__
        rows, graphs = len(inputs.centres), int(inputs.owner.max()) + 1
        try:
            out = self._called(inputs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Whatever the user's code does. On an edited graph it is an answer: there, nothing is predicted.
            width = "" if isinstance(inputs.x, dict) else f" of {inputs.x.size(1)} features per node"
            hint = "; adj_t is given as an edge_index of shape [2, edges]" if "adj_t" in self.takes else ""
            raise ModelError(f"{name} fails on this graph{width}: {one_line(error)}{hint}") from error
        if isinstance(out, dict) and self.node_type in out:
            out = out[self.node_type]
        if not isinstance(out, torch.Tensor):
            hint = "; let forward return the scores alone" if isinstance(out, (tuple, list, dict)) else ""
            raise ModelError(f"{name} returns a {type(out).__name__}; a tensor of class scores is needed{hint}")
        check_kind(out, name)
        if self.threshold is None and len(self.logits) and out.dim() == 2 and out.size(1) != self.num_classes:
            raise ModelError(f"{name} returns {out.size(1)} scores for each {self.task} instead of {self.num_classes}")
        if self.task == "node":
            total = len(inputs.x[self.node_type]) if isinstance(inputs.x, dict) else len(inputs.x)
            check_shape(out, total, f"each of the {total} nodes", name, self.threshold)
            return out[inputs.centres[:, 0]]
        expected = rows if self.task == "link" else graphs
        if self.task == "graph" and out.dim() == 2 and len(out) == len(inputs.owner) > expected:
            raise ModelError(
                f"{name} scores each node, and a whole graph is asked about: is it a node classifier, and "
                "which node is meant?"
            )
        check_shape(out, expected, f"each of the {expected} {self.task}s", name, self.threshold)
        # A model may keep what it returns, and write over it in its next run.
        return out.clone()

    def _called(self, inputs: Inputs) -> Any:
        """Call the model the way it wants."""
        pairs = inputs.centres.T.clone()
        if self.task == "link" and "edge_label_index" not in self.takes:
            model: Any = self.model
            taken = _arguments(model.encode)
            fields = {key: value for key, value in inputs.fields.items() if key in taken}
            return model.decode(model.encode(inputs.x, inputs.edge_index, **fields), pairs)
        extra: dict[str, Any] = {}
        if self.task == "link":
            extra["edge_label_index"] = pairs
        if self.wants_batch:
            extra["batch"] = inputs.batch
        return self.model(inputs.x, inputs.edge_index, **inputs.fields, **extra)

    def _scores(self, out: Tensor) -> Tensor:
        # NumPy knows no bfloat16, and half precision is too coarse to compute margins with.
        out = out.float() if torch.finfo(out.dtype).bits < 32 else out
        if self.threshold is not None:
            above = out.reshape(-1) - self.threshold
            # A number without end is no prediction.
            above = above.masked_fill(~above.isfinite(), torch.nan)
            # Two classes, below and above: only their difference counts.
            return torch.stack([above * 0, above], dim=1)
        return out.clamp_min(torch.finfo(out.dtype).tiny).log() if self.probabilities else out


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


def _check_model(model: object) -> None:
    """Refuse what cannot be called as a model of a graph is.

    Raises:
        ModelError: saying what to write instead.
    """
    name = type(model).__name__
    if not isinstance(model, torch.nn.Module):
        what = f"the {name} {model.__name__}" if inspect.isroutine(model) else f"a {name}"
        raise ModelError(f"model is {what}; give a torch.nn.Module whose forward takes x and edge_index")
    try:
        list(model.modules())
    except AttributeError:
        raise ModelError(f"{name} is not set up: its __init__ must call super().__init__() first") from None
    if any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers())):
        raise ModelError(f"{name} is on the meta device, where weights have no values; load them first")
    if _overrides_forward(model):
        parameters = _parameters(model.forward).values()
        places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
        if parameters and len(places) < 2 and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
            taken = ", ".join(one.name for one in places)
            raise ModelError(
                f"{name}.forward takes ({taken}), but is called as forward(x, edge_index, ...); wrap it in a module "
                "whose forward(self, x, edge_index) calls it with Data(x=x, edge_index=edge_index)"
            )


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    """What a function takes; nothing is known of one that was traced."""
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return {}


def _arguments(function: Any) -> set[str]:
    parameters = _parameters(function)
    names = set(parameters)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        names |= {*EDGE_FIELDS, "batch", "edge_label_index"}
    return names


def _accepted(model: nn.Module) -> set[str]:
    names = _arguments(model.forward) if _overrides_forward(model) else set()
    if _has_decoder(model) and "edge_label_index" not in names:
        names |= _arguments(model.encode) - {"edge_label_index"}
    # PyG's ready-made models all name both, and refuse what their layers do not take.
    if isinstance(model, BasicGNN):
        if not model.supports_edge_weight:
            names.discard("edge_weight")
        if not model.supports_edge_attr:
            names.discard("edge_attr")
    return names


def _overrides_forward(model: nn.Module) -> bool:
    return getattr(model.forward, "__name__", "") != "_forward_unimplemented"


def _required(model: nn.Module, name: str) -> bool:
    parameter = _parameters(model.forward).get(name)
    return parameter is not None and parameter.default is parameter.empty


def _has_decoder(model: nn.Module) -> bool:
    return callable(getattr(model, "encode", None)) and callable(getattr(model, "decode", None))


def _fields(graph: Graph, takes: frozenset[str]) -> tuple[str, ...]:
    if graph.types is not None:
        stores = graph.data.edge_stores
        return tuple(
            f"{name}_dict" for name in EDGE_FIELDS if f"{name}_dict" in takes and any(name in one for one in stores)
        )
    return tuple(name for name in (*graph.edge_fields(), *graph.node_fields()) if name in takes)


def _checked_type(graph: Graph, task: Task, node_type: str | None) -> str | None:
    if graph.types is None:
        if node_type is not None:
            raise InputError(f"node_type is {node_type!r}, but this graph has one type of nodes; leave it out")
        return None
    if task != "node":
        raise InputError("in a graph of several node types only nodes can be explained")
    if node_type is None:
        known = " or ".join(map(repr, graph.types.node_types))
        raise InputError(f"this graph has several node types; say which is predicted: node_type={known}")
    graph.types.number(node_type, 0)
    return node_type
