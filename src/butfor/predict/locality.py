"""Does the model look at nothing but a target's neighbourhood? Tested by putting noise around it.

How many hops to try is counted in `butfor.predict.predictor`; `butfor.problem.builder` widens until this test passes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.edits.edits import pack
from butfor.errors import ModelError
from butfor.predict.batch import EditedBatch
from butfor.predict.inputs import with_noise
from butfor.predict.preserved import preserved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits
    from butfor.graph.graph import Graph
    from butfor.graph.neighbourhood import Neighbourhood
    from butfor.predict.predictor import Predictor

__all__ = ["are_local"]

# How many isolated nodes of noise are added, and at least how many edges of noise that share one receiver.
STRANGERS = 8

# Where no more of the graph is read than needed, how many outermost nodes of a neighbourhood get noise.
RIM = 1000

# How large noise is beside the largest feature. Both ways: a ReLU lets one of the two through.
FAR = (10.0, -10.0)
NONE = (0.0,)


def are_local(predictor: Predictor, asked: Sequence[Edits], truths: Sequence[Tensor]) -> list[bool]:
    """For each target, whether noise around its neighbourhood leaves its scores what they are on the whole graph.

    All neighbourhoods lie side by side in one run of the model. Noise sends messages to their outermost nodes, and
    noise that has nothing to do with them lies before and among them. So what a model takes from beyond its messages (a
    maximum, mean or count over all nodes, a certain node) shows, even if that happens to lie inside on the intact one.
    """
    if not asked:
        return []
    for noise in (FAR, NONE):
        try:
            runs = [_scores(predictor, asked, far) for far in noise]
        except ModelError:
            continue  # it may refuse numbers that no feature has
        return [
            all(predictor.same_logits(row, truth) for row in rows) for *rows, truth in zip(*runs, truths, strict=True)
        ]
    if len(asked) == 1:
        return [False]
    half = len(asked) // 2
    return are_local(predictor, asked[:half], truths[:half]) + are_local(predictor, asked[half:], truths[half:])


def _scores(predictor: Predictor, asked: Sequence[Edits], far: float) -> Tensor:
    edited, noise = _surrounded(predictor, asked, far)
    with preserved(predictor.model), torch.no_grad():
        # Where whole graphs are predicted, the strangers are the last.
        return predictor.run(with_noise(predictor.call.inputs(edited), edited, noise, predictor.graph, far))[
            : len(asked)
        ]


def _surrounded(predictor: Predictor, asked: Sequence[Edits], far: float) -> tuple[EditedBatch, NDArray[np.bool_]]:
    """The neighbourhoods with strangers before and behind them and a ring around each; and which rows are noise."""
    graph, nothing = predictor.graph, pack([()])
    edited = EditedBatch.of([(edits, nothing) for edits in asked])
    assert edited.nodes is not None
    random = np.random.default_rng(0)
    edges = graph.edge_index.shape[1]
    # The largest degree of all is among the noise.
    degree = int(np.bincount(edited.edge_index.ravel()).max(initial=0))
    strangers = random.integers(edges, size=max(STRANGERS, degree + 1) if edges else 0)
    extreme = _extreme_edge(predictor, far, np.concatenate([strangers, edited.columns]))
    if extreme is not None:
        # As many as there are others, so that a median over all edges moves.
        strangers = np.concatenate([strangers, np.full(edited.edge_index.shape[1] + len(strangers), extreme)])
    lone = random.integers(graph.num_nodes, size=(2, STRANGERS))
    if graph.types is not None:
        # A model may pool each type by itself, and count graphs by the last that has nodes of this type.
        lone = np.concatenate([lone, np.tile(graph.node_starts[:-1], (2, 1))], axis=1)
    alone = lone.shape[1]
    first = alone + 2 * len(strangers)
    nodes = [lone[0], graph.edge_index[:, strangers].ravel(), edited.nodes]
    ends = [alone + _meeting(graph, strangers), edited.edge_index + first]
    columns = [strangers, edited.columns]
    owner = [np.full(first, len(asked)), edited.owner]
    row = first
    total = first + len(edited.nodes)
    for number, edits in enumerate(asked):
        near = edits.neighbourhood
        column, outside, inside = _ring(graph, near, RIM if predictor.scope == "receptive-field" else None)
        new = total + np.arange(len(column))
        pair = np.stack([new, row + inside])
        nodes.append(outside)
        ends.append(pair if near.flow == "source_to_target" else pair[::-1])
        columns.append(column)
        owner.append(np.full(len(new), number))
        if predictor.scope == "receptive-field" and graph.directed and graph.types is None and edges:
            # A node may have edges that lead away from everything that is read here; its row must not tell.
            inner = np.flatnonzero(near.distance < (near.hops or 0))[:STRANGERS]
            away = np.stack([row + inner, np.arange(len(inner))])
            ends.append(away if near.flow == "source_to_target" else away[::-1])
            columns.append(random.integers(edges, size=len(inner)))
        row += near.num_nodes
        total += len(new)
    nodes.append(lone[1])
    owner.append(np.full(alone, len(asked)))
    noise = np.ones(total + alone, dtype=bool)
    noise[first : first + len(edited.nodes)] = False
    # A model that is told which graph each node is of may expect them one after the other.
    order = np.concatenate(owner).argsort(kind="stable") if predictor.call.wants_batch else np.arange(len(noise))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    around = replace(
        edited,
        nodes=np.concatenate(nodes)[order],
        edge_index=place[np.concatenate(ends, axis=1)],
        columns=np.concatenate(columns),
        target_rows=place[edited.target_rows + first],
        owner=np.concatenate(owner)[order],
    )
    return around, noise[order]


def _extreme_edge(predictor: Predictor, far: float, known: NDArray[np.int64]) -> int | None:
    """The edge that carries most, or least where ``far`` is negative, if the model reads what edges carry.

    Of those that are known already, where no more of the graph is to be read.
    """
    carried = predictor.graph.edge_fields() if predictor.graph.types is None else {}
    read = [values for name, values in carried.items() if name in predictor.fields and len(values)]
    if not read or not far:
        return None
    columns = known if predictor.scope == "receptive-field" else np.arange(len(read[0]))
    sums = read[0][torch.from_numpy(columns)].reshape(len(columns), -1).double().sum(dim=1)
    return int(columns[int(sums.argmax() if far > 0 else sums.argmin())])


def _meeting(graph: Graph, columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows for the ends of these edges, all senders before all receivers; edges of one type lead to one receiver."""
    relation = np.zeros_like(columns)
    if graph.types is not None:
        relation = np.searchsorted(graph.types.edge_starts, columns, side="right") - 1
    _, first, mine = np.unique(relation, return_index=True, return_inverse=True)
    return np.stack([np.arange(len(columns)), len(columns) + first[mine]])


def _ring(
    graph: Graph, near: Neighbourhood, most: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For each outermost node one edge that reaches it from outside: its column, the node outside, the position inside.

    A node without such an edge has none here; and the whole graph has no outermost nodes. If at most so many are wanted
    it is those with the fewest edges.
    """
    rim = np.flatnonzero(near.distance == (-1 if near.hops is None else near.hops))
    if most is not None and len(rim) > most:
        rim = np.sort(rim[np.argsort(graph.degrees(near.nodes[rim], near.flow), kind="stable")[:most]])
    column, sender, receiver = graph.into(near.nodes[rim], near.flow)
    at = np.minimum(np.searchsorted(near.nodes, sender), near.num_nodes - 1)
    outside = np.flatnonzero(near.nodes[at] != sender)
    inside, chosen = np.unique(np.searchsorted(near.nodes, receiver[outside]), return_index=True)
    chosen = outside[chosen]
    return column[chosen], sender[chosen], inside
