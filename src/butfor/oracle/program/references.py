"""Runs of a model on graphs of other sizes: what it does differently there depends on more than edges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from butfor.edits.edits import pack
from butfor.oracle.program.build import Run
from butfor.oracle.program.recording import check_graph, with_every_type
from butfor.oracle.program.trace import Untraceable
from butfor.predict.batch import EditedBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.edits.edits import Edits
    from butfor.graph.csr import Flow
    from butfor.graph.graph import Graph
    from butfor.oracle.program.trace import Trace
    from butfor.predict.predictor import Predictor

__all__ = ["recorded_at_other_sizes"]

# Up to so many edges are left out to see whether a model asks how many there are.
FEWER = 4

# What no run of the neighbourhood has a place for.
NOWHERE = -1


def recorded_at_other_sizes(predictor: Predictor, edits: Edits, max_numbers: int) -> list[Trace]:
    """The same model on two or three copies of a neighbourhood side by side, and on the whole graph.

    Where only receptive fields are read, on one that reaches a hop further than the neighbourhood. Then without one
    edge, without two and so on, because code may ask for a certain number of edges, which only an edit leads to; of
    all edges, and of those of each relation.

    Each run is lowered: a slice that keeps all rows of a neighbourhood may keep a few of the whole graph's.

    Raises:
        Untraceable: the whole graph is too large for that.
    """
    graph, near = predictor.graph, edits.neighbourhood
    count = 2
    copies = EditedBatch.of([(edits, pack([()] * count))])
    if copies.edge_index.shape[1] == edits.visible.sum():
        # As many edges as there may be on one neighbourhood.
        count = 3
        copies = EditedBatch.of([(edits, pack([()] * count))])
    copies = with_every_type(graph, copies, count)
    if predictor.scope == "receptive-field":
        assert near.hops is not None
        larger = EditedBatch.receptive_field(graph.neighbourhood(near.targets, near.hops + 1, near.flow, rim=False))
    else:
        check_graph(graph, max_numbers)
        larger = replace(EditedBatch.whole_graph(graph, [near.targets]), nodes=np.arange(graph.num_nodes))
    traces = []
    for batch in (copies, larger, *_with_fewer_edges(graph, larger)):
        run = Run.of(predictor, batch, np.arange(batch.edge_index.shape[1]))
        _place(run, near.flow)
        traces.append(run.trace)
    return traces


def _place(run: Run, flow: Flow) -> None:
    """Lower a run for what it says of places alone; where rows depend on more than their edges, nothing agrees."""
    lowering, _ = run.lowering(flow)
    try:
        lowering.run()
    except Untraceable as problem:
        lowering.beyond.append(str(problem))
    if lowering.beyond:
        run.trace.placed[NOWHERE] = lowering.beyond
    lowering.forget_values()


def _with_fewer_edges(graph: Graph, batch: EditedBatch) -> list[EditedBatch]:
    """The same graph without one edge, without two and so on, each in both directions where it has both.

    Then without so many of each relation.
    """
    _, edge = np.unique(np.sort(batch.edge_index, axis=0), axis=1, return_inverse=True)
    ranks = [edge.reshape(-1)]
    if graph.types is not None and len(graph.types.relations) > 1:
        ranks.append(_rank_within(graph.types.relations_of(batch.columns), ranks[0]))
    kept = [np.flatnonzero(rank >= count) for rank in ranks for count in range(1, FEWER + 1)]
    return [replace(batch, edge_index=batch.edge_index[:, some], columns=batch.columns[some]) for some in kept]


def _rank_within(relation: NDArray[np.int64], edge: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many other edges of its relation come before each; the last stays, since layers do less where there is none.

    What a model does then is compared before anything is claimed (`Edits.sets_of_each_relation`).
    """
    rank = np.empty(len(edge), dtype=np.int64)
    for number in np.unique(relation):
        mine = np.flatnonzero(relation == number)
        rank[mine] = np.unique(edge[mine], return_inverse=True)[1].reshape(-1)
        rank[mine[rank[mine] == rank[mine].max()]] = FEWER
    return rank
