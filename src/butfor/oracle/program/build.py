"""The program of a target: the model's run on its neighbourhood, recorded, taken apart and laid out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.edits.edits import pack
from butfor.errors import ModelError
from butfor.oracle.program.layout import Layout
from butfor.oracle.program.lowering import Lowering
from butfor.oracle.program.rewriting import simplify
from butfor.oracle.program.steps import Space
from butfor.oracle.program.trace import Untraceable, record
from butfor.predict.batch import EditedBatch
from butfor.predict.preserved import preserved

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits
    from butfor.graph.graph import Graph
    from butfor.oracle.program.kernels.flat import Edited, State
    from butfor.oracle.program.steps import Value
    from butfor.oracle.program.trace import Trace
    from butfor.predict.inputs import Inputs
    from butfor.predict.predictor import Predictor

__all__ = ["NOTHING_CHANGES", "TOO_SMALL", "Program", "build", "recorded_at_other_sizes"]

# Why there is no program, and need not be.
NOTHING_CHANGES = "an output that no edit can change"

# Why something outside the neighbourhood matters for certain.
TOO_SMALL = "a reduction at the rim of the neighbourhood"


@dataclass(eq=False)
class Program:
    """What is known of the program of one target.

    Attributes:
        layout: the program.
        edited: what each edit does to it.
        trace: the run that it was made from.
        beyond: why something outside the neighbourhood might matter to the target; empty where nothing can.
        is_local: whether nothing outside matters, as far as that is known.
    """

    layout: Layout
    edited: Edited
    trace: Trace
    beyond: str
    is_local: bool | None = None
    _states: dict[int, State] = field(default_factory=dict)

    def state(self, thread: int) -> State:
        """The values before any edit, one copy for each thread that asks."""
        if thread not in self._states:
            self._states[thread] = self.layout.state()
        return self._states[thread]


@dataclass(frozen=True, eq=False)
class _Part:
    """One of the tensors that a model reads: what it is called, and the nodes or edge columns that its rows are."""

    name: str
    tensor: Tensor
    rows: NDArray[np.int64]


def build(predictor: Predictor, edits: Edits, max_numbers: int) -> Program:
    """Record the model on the neighbourhood with all edges that there are or may be.

    Raises:
        Untraceable: saying what about the model cannot be written as a program.
    """
    near = edits.neighbourhood
    everything = _everything(edits)
    inputs = predictor.call.inputs(everything)
    nodes, edges = _parts(predictor.graph, inputs, everything, np.flatnonzero(edits.visible))
    trace = recorded(predictor, inputs, [*nodes, *edges])
    lowering = Lowering(trace, 1 if near.flow == "source_to_target" else 0)
    features: list[tuple[Value, NDArray[np.int64]]] = []
    lowering.add_targets("target_rows")
    for part in nodes:
        changes = part.name.startswith("x ") and bool(np.isin(edits.changes.node, part.rows).any())
        value = lowering.add_rows(part.name, Space(len(part.rows)), editable=changes)
        if changes:
            features.append((value, part.rows))
    for part in edges:
        if part.name.startswith("edge_index "):
            lowering.add_edges(part.name, part.rows)
        elif part.tensor.is_floating_point():
            lowering.add_rows(part.name, lowering.edge_space(part.rows))
        else:
            lowering.add_labels(part.name, part.rows)
    out = lowering.run().value
    if out.fixed:
        raise Untraceable(NOTHING_CHANGES)
    simplify(out)
    layout = Layout.of(out, 0, np.arange(edits.all_ends.shape[1]) < near.num_columns, [value for value, _ in features])
    if layout.numbers > max_numbers:
        raise Untraceable(f"a program of {layout.numbers:,} numbers")
    groups = [part.rows for part in nodes if part.name.startswith("x ")]
    against = predictor.graph.directed and any(turned for _, _, turned in layout.receivers)
    if near.hops is not None and (lowering.reads_all or against):
        beyond = TOO_SMALL
    else:
        beyond = next(iter(lowering.beyond), "") or _outside(edits, layout, [*groups, np.concatenate(groups)])
    return Program(layout, _edited(edits, layout, [rows for _, rows in features]), trace, beyond)


def recorded(predictor: Predictor, inputs: Inputs, parts: list[_Part]) -> Trace:
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


def recorded_at_other_sizes(predictor: Predictor, edits: Edits, max_numbers: int) -> list[Trace]:
    """The same model on two copies of a neighbourhood side by side, and on the whole graph.

    Raises:
        Untraceable: the whole graph is too large for that.
    """
    graph = predictor.graph
    twice = EditedBatch.of([(edits, pack([(), ()]))])
    whole = EditedBatch.whole_graph(graph, [edits.neighbourhood.targets])
    width = max(store.x.size(1) for store in graph.data.node_stores)
    if (graph.num_nodes + graph.edge_index.shape[1]) * width > max_numbers:
        raise Untraceable("a graph too large to be recorded")
    traces = []
    for batch in (twice, replace(whole, nodes=np.arange(graph.num_nodes))):
        inputs = predictor.call.inputs(batch)
        nodes, edges = _parts(graph, inputs, batch, np.arange(batch.edge_index.shape[1]))
        traces.append(recorded(predictor, inputs, [*nodes, *edges]))
        traces[-1].values.clear()
    return traces


def _everything(edits: Edits) -> EditedBatch:
    """The neighbourhood with all edges that there are or may be."""
    columns = np.flatnonzero(edits.visible)
    intact = EditedBatch.of([(edits, pack([()]))])
    return replace(intact, edge_index=edits.all_ends[:, columns], columns=edits.all_columns[columns])


def _parts(
    graph: Graph, inputs: Inputs, edited: EditedBatch, columns: NDArray[np.int64]
) -> tuple[list[_Part], list[_Part]]:
    """The tensors that have a row for each node, and those that have one for each edge."""
    assert edited.nodes is not None
    kinds: dict[Any, NDArray[np.int64]] = {"": np.arange(len(edited.nodes))}
    relations: dict[Any, NDArray[np.int64]] = {"": columns}
    if graph.types is not None:
        kind, relation = graph.kinds(edited.nodes), graph.types.relations_of(edited.columns)
        kinds = {name: np.flatnonzero(kind == number) for number, name in enumerate(graph.types.node_types)}
        relations = {name: columns[relation == number] for number, name in enumerate(graph.types.relations)}

    def split(name: str, given: Any, rows: dict[Any, NDArray[np.int64]]) -> list[_Part]:
        by_type = given if isinstance(given, dict) else {"": given}
        return [_Part(f"{name} {key}", tensor, rows[key]) for key, tensor in by_type.items()]

    nodes, edges = split("x", inputs.x, kinds), split("edge_index", inputs.edge_index, relations)
    of_edges = graph.edge_fields() if graph.types is None else ()
    for name, given in inputs.fields.items():
        along = name in of_edges or (isinstance(given, dict) and set(given) <= set(relations))
        (edges if along else nodes).extend(split(name, given, relations if along else kinds))
    return nodes, edges


def _outside(edits: Edits, layout: Layout, groups: list[NDArray[np.int64]]) -> str:
    """Why edges outside the neighbourhood might matter; ``groups`` are nodes that rows of a reduction may stand for.

    They do not where each row that the target needs of a reduction is a node whose edges are all inside.
    """
    near = edits.neighbourhood
    if near.hops is None:
        return "the neighbourhood is the whole graph"
    found = ""
    for size, rows, _ in layout.receivers:
        rims = [bool((near.distance[nodes[rows]] >= near.hops).any()) for nodes in groups if len(nodes) == size]
        if rims and all(rims):
            return TOO_SMALL
        if not rims or any(rims):
            found = "a reduction to rows that may not be the nodes"
    return found


def _edited(edits: Edits, layout: Layout, nodes: list[NDArray[np.int64]]) -> Edited:
    """What each edit does; ``nodes`` are the positions of the rows of each value that holds features."""
    from butfor.oracle.program.kernels.flat import Edited

    owner = np.concatenate([edits.edit_of, edits.new_edit])
    owned = np.flatnonzero((owner >= 0) & edits.visible)
    columns = owned[np.argsort(owner[owned], kind="stable")]
    changes, counted = edits.changes, np.arange(len(edits) + 1)
    value, row = np.full(len(changes.edit), -1), np.zeros(len(changes.edit), dtype=np.int64)
    for number, mine in zip(layout.features, nodes, strict=True):
        here = np.isin(changes.node, mine)
        value[here], row[here] = number, np.searchsorted(mine, changes.node[here])
    by = np.argsort(changes.edit, kind="stable")
    by = by[value[by] >= 0]
    return Edited(
        np.searchsorted(owner[columns], counted), columns, np.searchsorted(changes.edit[by], counted),
        value[by], row[by], changes.feature[by], changes.after[by],
        np.array([number for number in layout.features if number >= 0], dtype=np.int64),
    )  # fmt: skip
