"""The program of a target: the model's run on its neighbourhood, recorded, taken apart and laid out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.program.columns import leave_out_constant_columns
from butfor.oracle.program.layout import Layout
from butfor.oracle.program.lowering import Lowering
from butfor.oracle.program.lowering.ranges import hull, range_between, range_of_all
from butfor.oracle.program.program import NothingChanges, Program
from butfor.oracle.program.recording import check_graph, everything, parts_of, recorded, with_every_type
from butfor.oracle.program.restriction import Restrictable
from butfor.oracle.program.rewriting import begin_with_what_is_added, simplify
from butfor.oracle.program.steps import Linear, Reduce, in_order, made
from butfor.oracle.program.trace import Untraceable
from butfor.predict.batch import EditedBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.edits.edits import Edits
    from butfor.graph.csr import Flow
    from butfor.oracle.program.kernels.flat import Edited
    from butfor.oracle.program.lowering.ranges import Range
    from butfor.oracle.program.recording import Part
    from butfor.oracle.program.steps import Value
    from butfor.oracle.program.trace import Trace
    from butfor.predict.predictor import Predictor

__all__ = ["TOO_SMALL", "Run", "WholeProgram", "build", "differences"]

# Why something outside the neighbourhood matters for certain.
TOO_SMALL = "a reduction at the rim of the neighbourhood"


def build(predictor: Predictor, edits: Edits, max_numbers: int) -> Program:
    """Record the model on the neighbourhood with all edges that there are or may be.

    Raises:
        Untraceable: saying what about the model cannot be written as a program.
    """
    near = edits.neighbourhood
    seen, may_be = everything(edits), edits.all_ends.shape[1]
    batch = with_every_type(predictor.graph, seen)
    never = may_be + np.arange(len(batch.columns) - len(seen.columns))
    columns = np.concatenate([np.flatnonzero(edits.visible), never])
    lowered = _lowered(predictor, batch, columns, near.flow, edits.changes.node)
    features = lowered.features
    leave_out_constant_columns(lowered.out)
    present = np.arange(may_be + len(never)) < near.num_columns
    layout = Layout.of(lowered.out, 0, present, [value for value, _ in features], never, fused=True)
    _check_size(layout, max_numbers)
    against = predictor.graph.directed and any(turned for _, turned in layout.receivers)
    if near.hops is not None and (lowered.facts.reads_all or against):
        beyond = TOO_SMALL
    else:
        beyond = next(iter(lowered.facts.beyond), "") or _outside(edits, layout)
    return Program(
        layout,
        lowered.out,
        [value for value, _ in features],
        _edited(edits, layout, [rows for _, rows in features]),
        lowered.facts.trace,
        beyond,
    )


def differences(predictor: Predictor, edits: Edits, pairs: NDArray[np.float64]) -> Value:
    """The model's run on the neighbourhood as steps, whose output are combinations of scores, the rows of ``pairs``.

    Raises:
        Untraceable: saying what about the model cannot be written as a program.
    """
    columns, flow = np.flatnonzero(edits.visible), edits.neighbourhood.flow
    return _lowered(predictor, everything(edits), columns, flow, edits.changes.node, pairs).out


@dataclass(frozen=True, eq=False)
class WholeProgram:
    """The model's run on the whole graph, of which each target takes what it needs.

    Attributes:
        rows: the program, with a row for each node that can be a target.
        first: the first of these nodes.
        trace: the run.
    """

    rows: Restrictable
    first: int
    trace: Trace

    @classmethod
    def of(cls, predictor: Predictor, flow: Flow, max_numbers: int) -> WholeProgram:
        """Record the model on the whole graph.

        Raises:
            Untraceable: saying why there is no such program, or no use of one.
        """
        graph = predictor.graph
        check_graph(graph, max_numbers)
        first, last = predictor.node_range
        whole = EditedBatch.whole_graph(graph, np.arange(first, last)[:, None])
        whole = replace(whole, nodes=np.arange(graph.num_nodes))
        lowered = _lowered(predictor, whole, np.arange(graph.edge_index.shape[1]), flow)
        if lowered.facts.beyond or lowered.facts.reads_all:
            raise Untraceable(next(iter(lowered.facts.beyond), "a sum over all edges"))
        if graph.directed and any(isinstance(step, Reduce) and step.against for step, _ in in_order(lowered.out)):
            raise Untraceable("messages against the edges")
        return cls(Restrictable(lowered.out), first, lowered.facts.trace)

    def of_target(self, edits: Edits, max_numbers: int) -> Program:
        """The program of one target whose edits only delete.

        Raises:
            Untraceable: it is too large, or the target needs more than the neighbourhood.
        """
        near = edits.neighbourhood
        out, row = self.rows.of(near.targets[0] - self.first, near.columns)
        leave_out_constant_columns(out)
        layout = Layout.of(out, row, np.ones(near.num_columns, dtype=bool), fused=True)
        _check_size(layout, max_numbers)
        return Program(layout, out, [], _edited(edits, layout, []), self.trace, "", is_part=True)


@dataclass(frozen=True, eq=False)
class _Lowered:
    """A run as steps: the output, what is known of the rest, and the features that edits change."""

    out: Value
    facts: Lowering
    features: list[tuple[Value, NDArray[np.int64]]]


@dataclass(frozen=True, eq=False)
class Run:
    """A run of the model on some graph, with all that it was given: what has a row for each node, or each edge."""

    predictor: Predictor
    nodes: list[Part]
    edges: list[Part]
    trace: Trace

    @classmethod
    def of(cls, predictor: Predictor, batch: EditedBatch, columns: NDArray[np.int64]) -> Run:
        """Record a run on these edge columns.

        Raises:
            Untraceable: the model fails there, or does what cannot be recorded.
        """
        inputs = predictor.call.inputs(batch)
        nodes, edges = parts_of(predictor.graph, inputs, batch, columns)
        return cls(predictor, nodes, edges, recorded(predictor, inputs, [*nodes, *edges]))

    def lowering(
        self, flow: Flow, changed: NDArray[np.int64] | None = None
    ) -> tuple[Lowering, list[tuple[Value, NDArray[np.int64]]]]:
        """What is known before any operation, and the features that edits change: those of ``changed`` nodes."""

        def given(name: str) -> Range | None:
            """Where edits change features, nothing is known of these."""
            part = next(part for part in (*self.nodes, *self.edges) if part.name == name)
            edited = name.startswith("x ") and changed is not None and len(changed)
            return None if edited else _range_on_graph(self.predictor, part)

        lowering = Lowering(self.trace, 1 if flow == "source_to_target" else 0, given)
        features: list[tuple[Value, NDArray[np.int64]]] = []
        lowering.add_targets("target_rows", _types_of_targets(self.predictor))
        for part in self.nodes:
            changes = changed is not None and part.name.startswith("x ") and bool(np.isin(changed, part.rows).any())
            value = lowering.add_rows(part.name, lowering.add_nodes(part.node_types[0], part.rows), editable=changes)
            if changes:
                features.append((value, part.rows))
        for part in self.edges:
            if part.name.startswith("edge_index "):
                lowering.add_edges(part.name, part.rows, part.node_types)
            elif part.tensor.is_floating_point():
                lowering.add_rows(part.name, lowering.edge_space(part.rows))
            else:
                lowering.add_labels(part.name, part.rows)
        return lowering, features


def _lowered(
    predictor: Predictor,
    batch: EditedBatch,
    columns: NDArray[np.int64],
    flow: Flow,
    changed: NDArray[np.int64] | None = None,
    pairs: NDArray[np.float64] | None = None,
) -> _Lowered:
    """Record a run on these edge columns, and take it apart; features of ``changed`` nodes are left open.

    The output are the scores or, where ``pairs`` are given, these combinations of them.
    """
    run = Run.of(predictor, batch, columns)
    lowering, features = run.lowering(flow, changed)
    out = lowering.run().value
    if not _can_change(out):
        lowering.forget_values()
        raise NothingChanges(run.trace, TOO_SMALL if lowering.reads_all else next(iter(lowering.beyond), ""))
    if pairs is not None:
        assert out.space is not None
        out = made(Linear([out], np.ascontiguousarray(pairs.T)), out.space, len(pairs))
    simplify(out)
    begin_with_what_is_added(out)
    lowering.forget_values()
    return _Lowered(out, lowering, features)


def _types_of_targets(predictor: Predictor) -> tuple[str, ...]:
    """The node types of what is asked about: one for a node, two for a link, none for a whole graph."""
    count, types, named = {"node": 1, "link": 2}.get(predictor.task, 0), predictor.graph.types, predictor.node_type
    if named is None:
        return ("" if types is None else types.node_types[0],) * count
    return (named,) if isinstance(named, str) else tuple(named)


def _can_change(out: Value) -> bool:
    """Whether an edit can change a value: an edge leads to it, or features do that edits set."""
    steps = [step for step, _ in in_order(out)]
    along = any((step.edges >= 0).any() for step in steps if isinstance(step, Reduce))
    return along or out.editable or any(value.editable for step in steps for value in step.inputs)


def _range_on_graph(predictor: Predictor, part: Part) -> Range | None:
    """Between which numbers an input lies on the whole graph, and with what edits add; None where not all is read."""
    graph, name = predictor.graph, part.name.removesuffix(" ")
    if predictor.scope == "receptive-field" or graph.types is not None or name not in graph.extremes:
        return None
    return hull([range_of_all(part.tensor), range_between(*graph.extremes[name])])


def _check_size(layout: Layout, max_numbers: int) -> None:
    if layout.numbers > max_numbers:
        raise Untraceable(f"a program of {layout.numbers:,} numbers")


def _outside(edits: Edits, layout: Layout) -> str:
    """Why edges outside the neighbourhood might matter.

    They do not where each row that the target needs of a reduction is a node whose edges are all inside.
    """
    near = edits.neighbourhood
    if near.hops is None:
        return "the neighbourhood is the whole graph"
    nodes = np.concatenate([np.empty(0, np.int64), *(rows for rows, _ in layout.receivers)])
    if (near.distance[nodes[nodes >= 0]] >= near.hops).any():
        return TOO_SMALL
    return "a reduction to rows that are no nodes" if (nodes < 0).any() else ""


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
