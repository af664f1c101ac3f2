"""How the user's model is called on edited graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import torch

from butfor.errors import InputError, ModelError, one_line
from butfor.graph.fields import EDGE_FIELDS
from butfor.predict.inputs import make_inputs
from butfor.predict.outputs import check_kind, check_shape
from butfor.predict.signature import accepted, arguments, check_model, has_decoder, is_required

if TYPE_CHECKING:
    from torch import Tensor, nn

    from butfor.graph.edge_keys import TargetType
    from butfor.graph.graph import Graph
    from butfor.predict.batch import EditedBatch
    from butfor.predict.inputs import Inputs

__all__ = ["Call", "Task"]

# What a model predicts: something of each node, of pairs of nodes, or of the whole graph.
Task = Literal["node", "link", "graph"]


@dataclass(frozen=True, eq=False)
class Call:
    """A model, a graph, and what the model is given of it.

    Attributes:
        model: any module whose ``forward`` takes ``x`` and ``edge_index``; in a graph of several types, dictionaries.
        graph: the whole graph.
        task: what is predicted.
        node_type: in a graph of several types, the type that is predicted; for links the types of their two ends.
        fields: what of the graph it takes besides features and edges, by the names of its arguments. In a graph of
            several types these are dictionaries, and may be called ``edge_attr_dict`` for ``edge_attr``.
        takes: the names of all arguments of ``forward``.
        wants_batch: whether ``forward`` is given ``batch``: if it takes one, and whole graphs are predicted, or the
            argument is required, or the graph has a ``batch``. In a graph of several types it may be ``batch_dict``.
        threshold: where the upper of two classes begins; None for a model that scores classes.
    """

    model: nn.Module
    graph: Graph
    task: Task
    node_type: TargetType | None
    fields: tuple[str, ...]
    takes: frozenset[str]
    wants_batch: bool
    threshold: float | None

    @classmethod
    def of(
        cls,
        model: nn.Module,
        graph: Graph,
        task: Task,
        node_type: TargetType | None = None,
        threshold: float | None = None,
    ) -> Call:
        """Find out how the model wants to be called.

        Raises:
            ModelError: it cannot be called for this task.
            InputError: the type of the nodes is missing or unknown.
        """
        # Of a model that torch compiled, the module that it was made from: edited graphs are all of other sizes.
        model = getattr(model, "_orig_mod", model)
        check_model(model)
        takes = frozenset(accepted(model, graph.types is not None))
        batch = _batch_name(graph, takes)
        if task != "link" and is_required(model, "edge_label_index"):
            raise ModelError(f"{type(model).__name__} predicts links; ask about a pair of nodes, butfor.Pair(3, 9)")
        if task == "link" and "edge_label_index" not in takes and not has_decoder(model):
            raise ModelError(
                f"{type(model).__name__} does not say how it predicts links: its forward must take edge_label_index, "
                "or it must have encode(x, edge_index) and decode(z, edge_label_index)"
            )
        return cls(
            model=model,
            graph=graph,
            task=task,
            node_type=_checked_type(graph, task, node_type),
            fields=_fields(graph, takes),
            takes=takes,
            wants_batch=batch in takes and (task == "graph" or "batch" in graph.data or is_required(model, batch)),
            threshold=threshold,
        )

    @property
    def batch_name(self) -> str:
        """What it calls the graph that each node belongs to."""
        return _batch_name(self.graph, self.takes)

    @property
    def edge_fields(self) -> list[str]:
        """What it takes of edges, as the graph calls it."""
        return [name for name in self._stored if name in EDGE_FIELDS]

    @property
    def _stored(self) -> tuple[str, ...]:
        """What the graph calls each of `fields`."""
        return self.fields if self.graph.types is None else tuple(name.removesuffix("_dict") for name in self.fields)

    def inputs(self, edited: EditedBatch) -> Inputs:
        """The tensors that the model reads."""
        inputs = make_inputs(self.graph, edited, self._stored)
        return replace(inputs, fields=dict(zip(self.fields, inputs.fields.values(), strict=True)))

    def output(self, inputs: Inputs) -> Tensor:
        """What the model returns, one row for each answer wanted; call it inside `preserved`.

        Raises:
            ModelError: it fails on these inputs, or what it returns are no scores.
        """
        name = type(self.model).__name__
        rows, graphs = len(inputs.target_rows), int(inputs.owner.max()) + 1
        try:
            out = self._called(inputs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Whatever the user's code does. On an edited graph it is an answer: there, nothing is predicted.
            width = "" if isinstance(inputs.x, dict) else f" of {inputs.x.size(1)} features per node"
            hint = "; adj_t is given as an edge_index of shape [2, edges]" if "adj_t" in self.takes else ""
            raise ModelError(f"{name} fails on this graph{width}: {one_line(error)}{hint}") from error
        if isinstance(out, dict) and self.task == "node" and self.node_type in out:
            out = out[self.node_type]
        if self.task == "graph" and self.graph.types is not None and isinstance(out, dict):
            raise ModelError(
                f"{name} returns a dictionary ({', '.join(map(str, out))}), and a whole graph is asked about: let "
                "forward return one row of scores, or say which node is meant and give its node_type"
            )
        if not isinstance(out, torch.Tensor):
            hint = "; let forward return the scores alone" if isinstance(out, (tuple, list, dict)) else ""
            raise ModelError(f"{name} returns a {type(out).__name__}; a tensor of class scores is needed{hint}")
        check_kind(out, name)
        if self.task == "node":
            total = len(inputs.x[self.node_type]) if isinstance(inputs.x, dict) else len(inputs.x)
            check_shape(out, total, f"each of the {total} nodes", name, self.threshold)
            return out[inputs.target_rows[:, 0]]
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
        pairs = inputs.target_rows.T.clone()
        if self.task == "link" and "edge_label_index" not in self.takes:
            model: Any = self.model
            taken = arguments(model.encode, self.graph.types is not None)
            fields = {key: value for key, value in inputs.fields.items() if key in taken}
            return model.decode(model.encode(inputs.x, inputs.edge_index, **fields), pairs)
        extra: dict[str, Any] = {}
        if self.task == "link":
            extra["edge_label_index"] = pairs
        if self.wants_batch:
            extra[self.batch_name] = inputs.batch
        return self.model(inputs.x, inputs.edge_index, **inputs.fields, **extra)


def _fields(graph: Graph, takes: frozenset[str]) -> tuple[str, ...]:
    if graph.types is None:
        return tuple(name for name in (*graph.edge_fields(), *graph.node_fields()) if name in takes)
    known: dict[str, None] = {}
    for relation in range(len(graph.types.relations)):
        known |= dict.fromkeys(graph.edge_fields(relation))
    for kind in range(len(graph.types.node_types)):
        known |= dict.fromkeys(graph.node_fields(kind))
    called = (f"{name}_dict" if f"{name}_dict" in takes else name for name in known)
    return tuple(name for name in called if name in takes)


def _batch_name(graph: Graph, takes: frozenset[str]) -> str:
    """What the model calls the graph that each node belongs to."""
    return "batch_dict" if graph.types is not None and "batch_dict" in takes else "batch"


def _checked_type(graph: Graph, task: Task, node_type: TargetType | None) -> TargetType | None:
    if graph.types is None:
        if node_type is not None:
            raise InputError(f"node_type is {node_type!r}, but this graph has one type of nodes; leave it out")
        return None
    if task == "graph":
        if node_type is not None:
            raise InputError(
                f"node_type is {node_type!r}, but a whole graph is asked about; leave it out, or say which {node_type}"
            )
        return None
    if node_type is None and len(graph.types.node_types) == 1:
        (node_type,) = graph.types.node_types
    known = " or ".join(map(repr, graph.types.node_types))
    if task == "link":
        ends = (node_type, node_type) if isinstance(node_type, str) else node_type
        if not isinstance(ends, (list, tuple)) or len(ends) != 2:
            raise InputError(
                f"this graph has several node types; say which the two ends of a link are of ({known}): "
                f"node_type=({graph.types.node_types[0]!r}, {graph.types.node_types[-1]!r})"
            )
        for end in ends:
            graph.types.number(end, 0)
        return ends[0], ends[1]
    if not isinstance(node_type, str):
        raise InputError(f"this graph has several node types; say which is predicted: node_type={known}")
    graph.types.number(node_type, 0)
    return node_type
