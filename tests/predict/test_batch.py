"""Edited graphs as one batch: what is in it is what the edits make of the graph by hand, and copies are kept apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from butfor.edits.edits import pack
from butfor.predict.batch import EditedBatch
from butfor.session import Session
from hand_edits import edited
from mixed_cases import mixed_case

if TYPE_CHECKING:
    from torch import Tensor

    from truth import Question


def prepared(question: Question) -> Session:
    return Session.of(question.model, question.data, space=question.space, directed=question.directed)


def columns(edge_index: Tensor, field: Tensor) -> list[tuple[list[int], list[float]]]:
    """Edges with what they carry, in no order."""
    return sorted(zip(edge_index.T.tolist(), field.reshape(edge_index.size(1), -1).tolist(), strict=True))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("kind", "field"), [("weighted GCN", "edge_weight"), ("GAT with attributes", "edge_attr")])
def test_the_whole_graph_after_edits_is_what_they_make_of_it_by_hand(kind: str, field: str, seed: int) -> None:
    question = mixed_case(kind, seed)
    session = prepared(question)
    random = np.random.default_rng(seed)
    kinds = set()
    for node in range(question.data.num_nodes):
        edits = session.problem(node).edits
        for chance in (0.0, 0.3, 0.6):
            chosen = np.flatnonzero(edits.without_conflicts(random.random((1, len(edits))) < chance)[0])
            batch = EditedBatch.whole_graph(session.graph, [(node,)], [(edits, chosen)])
            inputs = session.predictor.call.inputs(batch)
            row = question.chosen[[question.row(edits.records(chosen))]]
            by_hand = edited(question.data, question.directed, question.acts, row, question.space.carries)
            carried = columns(inputs.edge_index, inputs.fields[field])
            assert carried == columns(by_hand.edge_index, by_hand[field].float())
            assert inputs.x.tolist() == by_hand.x.float().tolist()
            assert inputs.target_rows.tolist() == [[node]]
            kinds |= {edit.kind for edit in edits.records(chosen)}
    assert kinds == {"delete", "add", "change"}


def test_copies_side_by_side_are_kept_apart() -> None:
    question = mixed_case("GCN", 0)
    session = prepared(question)
    asked = [(session.problem(node).edits, pack([[], [0], [1, 2]])) for node in (0, 3)]
    batch = EditedBatch.of(asked)
    # Six copies, one after the other; no edge leads from one to another.
    sizes = np.repeat([edits.neighbourhood.num_nodes for edits, _ in asked], 3)
    assert np.bincount(batch.owner).tolist() == sizes.tolist()
    assert (np.diff(batch.owner) >= 0).all()
    assert (batch.owner[batch.edge_index[0]] == batch.owner[batch.edge_index[1]]).all()
    # One answer for each of them, about the node that was asked about.
    assert batch.owner[batch.target_rows[:, 0]].tolist() == [0, 1, 2, 3, 4, 5]
    assert batch.nodes[batch.target_rows[:, 0]].tolist() == [0, 0, 0, 3, 3, 3]
    old = batch.columns >= 0
    assert (session.graph.edge_index[:, batch.columns[old]] == batch.nodes[batch.edge_index[:, old]]).all()


def test_edits_of_several_targets_are_made_on_one_graph() -> None:
    question = mixed_case("GCN", 0, only_cuts=True)
    session = prepared(question)
    made = [(session.problem(node).edits, [number]) for node, number in ((0, 0), (3, 1))]
    batch = EditedBatch.whole_graph(session.graph, [(0,), (3,)], made)
    gone = {edge for edits, chosen in made for edge in edits.whole_columns(chosen).tolist()}
    assert len(gone) > 2
    assert batch.columns.tolist() == [column for column in range(question.data.num_edges) if column not in gone]
    assert batch.target_rows.tolist() == [[0], [3]]
