"""Edges grouped by the node that receives their message."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from butfor.graph.csr import Incoming, is_among
from edge_lists import edge_lists


@settings(deadline=None, max_examples=100)
@given(edge_lists, st.data())
def test_edges_into_nodes(graph_of: tuple[int, list[tuple[int, int]]], draw) -> None:
    nodes, pairs = graph_of
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    asked = np.array(draw.draw(st.lists(st.integers(0, nodes - 1), max_size=5)), dtype=np.int64)
    for flow in ("source_to_target", "target_to_source"):
        sender, receiver = (0, 1) if flow == "source_to_target" else (1, 0)
        incoming = Incoming.of(ends, nodes, flow)
        assert incoming.num_nodes == nodes
        expected = [
            (column, pair[sender], pair[receiver])
            for node in asked.tolist()
            for column, pair in enumerate(pairs)
            if pair[receiver] == node
        ]
        columns, senders, receivers = incoming.into(asked)
        assert list(zip(columns.tolist(), senders.tolist(), receivers.tolist(), strict=True)) == expected
        assert incoming.counts(asked).sum() == len(expected)


def test_the_search_ends_before_it_looks_at_too_many_edges() -> None:
    chain = np.array([(i + 1, i) for i in range(9)]).T
    incoming = Incoming.of(chain, 10, "source_to_target")
    for limit, furthest in ((None, 5), (1, 5), (0, 0)):
        keys, distance = incoming.reach([(0,)], 5, limit)
        assert keys.tolist() == distance.tolist() == list(range(furthest + 1))
    both, distance = incoming.reach([(0,), (7, 2)], 1)
    assert both.tolist() == [0, 1, 12, 13, 17, 18]
    assert distance.tolist() == [0, 1, 0, 1, 0, 1]


def test_extra_edges_are_followed_like_others() -> None:
    chain = np.array([(i + 1, i) for i in range(5)]).T
    nodes, distance = Incoming.of(chain, 8, "source_to_target").reach_with({1: [7], 7: [6]}, [0], 3)
    assert dict(zip(nodes.tolist(), distance.tolist(), strict=True)) == {0: 0, 1: 1, 2: 2, 3: 3, 6: 3, 7: 2}


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 20)), st.lists(st.integers(0, 20), min_size=1))
def test_which_values_are_among_others(values: list[int], others: list[int]) -> None:
    found = is_among(np.array(values, dtype=np.int64), np.array(sorted(others)))
    assert found.tolist() == [value in others for value in values]
