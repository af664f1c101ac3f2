"""The tensors that a model reads on some graph, and its run on them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.edits.edits import pack
from butfor.errors import ModelError
from butfor.oracle.program.recorder import record
from butfor.oracle.program.trace import Untraceable
from butfor.predict.batch import EditedBatch
from butfor.predict.preserved import preserved

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits
    from butfor.graph.graph import Graph
    from butfor.oracle.program.trace import Trace
    from butfor.predict.inputs import Inputs
    from butfor.predict.predictor import Predictor

__all__ = ["Part", "check_graph", "everything", "parts_of", "recorded", "with_every_type"]


@dataclass(frozen=True, eq=False)
class Part:
    """One of the tensors that a model reads: what it is called, and the nodes or edge columns that its rows are.

    ``node_types`` is the type of these nodes, or the types of both ends of the edges.
    """

    name: str
    tensor: Tensor
    rows: NDArray[np.int64]
    node_types: tuple[str, ...]


def recorded(predictor: Predictor, inputs: Inputs, parts: list[Part]) -> Trace:
    """The trace of one run.

    Raises:
        Untraceable: the model fails on the neighbourhood, or does what cannot be recorded.
    """
    tensors = {part.name: part.tensor for part in parts}
    tensors |= {"target_rows": inputs.target_rows, "owner": inputs.owner}
    try:
        # What torch has to say of recording is nothing that a user could act upon.
        with preserved(predictor.model), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return record(predictor.model, lambda: predictor.run(inputs), tensors)
    except ModelError as problem:
        if isinstance(problem.__cause__, Untraceable):
            raise problem.__cause__ from None
        raise Untraceable("a neighbourhood on which the model fails") from problem


def check_graph(graph: Graph, max_numbers: int) -> None:
    """Raise `Untraceable` where a run on the whole graph has too many numbers."""
    width = max(store.x.size(1) for store in graph.data.node_stores)
    if (graph.num_nodes + graph.edge_index.shape[1]) * width > max_numbers:
        raise Untraceable("a graph too large to be recorded")


def everything(edits: Edits) -> EditedBatch:
    """The neighbourhood with all edges that there are or may be."""
    columns = np.flatnonzero(edits.visible)
    intact = EditedBatch.of([(edits, pack([()]))])
    return replace(intact, edge_index=edits.all_ends[:, columns], columns=edits.all_columns[columns])


def with_every_type(graph: Graph, batch: EditedBatch, times: int = 1) -> EditedBatch:
    """The same batch with ``times`` more nodes and edges of each type that it has none of, but the graph has some.

    A layer may do less where there are no edges of its relation. These are there so that it does what it does on the
    whole graph; a program takes them for edges that are never there, so that the nodes do not matter.
    """
    types = graph.types
    if types is None or batch.nodes is None:
        return batch
    missing = np.setdiff1d(np.flatnonzero(np.diff(types.node_starts)), graph.kinds(batch.nodes))
    nodes = np.concatenate([batch.nodes, np.repeat(types.node_starts[missing], times)])
    owner = np.concatenate([batch.owner, np.zeros(len(nodes) - len(batch.nodes), batch.owner.dtype)])
    kind, here = graph.kinds(nodes), set(types.relations_of(batch.columns).tolist())
    ends, columns = [batch.edge_index], [batch.columns]
    for number, (source, _, target) in enumerate(types.relations):
        first, last = types.edge_starts[number : number + 2]
        if number not in here and first < last:
            rows = [np.flatnonzero(kind == types.node_types.index(name))[:1] for name in (source, target)]
            ends.append(np.repeat(np.stack(rows), times, axis=1))
            columns.append(np.full(times, first))
    return replace(
        batch, nodes=nodes, owner=owner, edge_index=np.concatenate(ends, axis=1), columns=np.concatenate(columns)
    )


def parts_of(
    graph: Graph, inputs: Inputs, edited: EditedBatch, columns: NDArray[np.int64]
) -> tuple[list[Part], list[Part]]:
    """The tensors that have a row for each node, and those that have one for each edge."""
    assert edited.nodes is not None
    kinds: dict[Any, NDArray[np.int64]] = {"": np.arange(len(edited.nodes))}
    relations: dict[Any, NDArray[np.int64]] = {"": columns}
    if graph.types is not None:
        kind, relation = graph.kinds(edited.nodes), graph.types.relations_of(edited.columns)
        kinds = {name: np.flatnonzero(kind == number) for number, name in enumerate(graph.types.node_types)}
        relations = {name: columns[relation == number] for number, name in enumerate(graph.types.relations)}

    def split(name: str, given: Any, rows: dict[Any, NDArray[np.int64]]) -> list[Part]:
        by_type = given if isinstance(given, dict) else {"": given}
        ends = 1 if rows is kinds else 2
        return [
            Part(f"{name} {key}", tensor, rows[key], key[::2] if isinstance(key, tuple) else (key,) * ends)
            for key, tensor in by_type.items()
        ]

    nodes, edges = split("x", inputs.x, kinds), split("edge_index", inputs.edge_index, relations)
    of_edges = graph.edge_fields() if graph.types is None else ()
    for name, given in inputs.fields.items():
        along = name in of_edges or (isinstance(given, dict) and set(given) <= set(relations))
        (edges if along else nodes).extend(split(name, given, relations if along else kinds))
    return nodes, edges
