"""What of a neighbourhood is shown: all of it, or what lies nearest; and the graph must be the one explained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from torch_geometric.nn import GCN

import butfor
from butfor import Addition, Change, Deletion, EditSpace, Within
from butfor.errors import InputError
from butfor.plotting.excerpt import LINES, NOTED, Excerpt
from butfor.plotting.picture import draw
from butfor.testing import random_problem
from pictures import WHEEL, as_schema_2, both_ways, collection, ids, look_of, tangle_with_a_tail, texts, words

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor import Counterfactual
    from butfor.graph.csr import Flow
    from butfor.plotting.appearance import Appearance

    Make = Callable[..., Counterfactual]


def shown_of(result: Counterfactual, look: Appearance, max_nodes: int = 200) -> list[int]:
    return Excerpt.of(result, look.graph, max_nodes).nodes.tolist()


# How far it reaches.


# Six nodes behind node 0 and six before it, each in a chain.
CHAINS = [(i, i + 1) for i in range(6)] + [(7, 0), *((i + 1, i) for i in range(7, 12))]


@pytest.mark.parametrize(
    ("hops", "flow", "shown"),
    [
        (2, "source_to_target", [0, 7, 8]),
        (3, "source_to_target", [0, 7, 8, 9]),
        (3, "target_to_source", [0, 1, 2, 3]),
        (None, "source_to_target", list(range(13))),
        (None, None, list(range(13))),
    ],
)
def test_the_neighbourhood_that_was_searched_is_shown(
    result_of: Make, hops: int | None, flow: Flow | None, shown: list[int]
) -> None:
    look = look_of(CHAINS, 13, directed=True)
    result = result_of(0, [], look, hops=hops, flow=flow, nodes=len(shown))
    assert shown_of(result, look) == shown


@pytest.mark.parametrize("hops", [1, 2])
def test_a_removed_edge_outside_is_shown_with_the_whole_graph(result_of: Make, hops: int) -> None:
    # Edges of a group go together, wherever they are.
    look = look_of(both_ways([(i, i + 1) for i in range(9)]), 10)
    assert shown_of(result_of(0, [(0, 1)], look, hops=hops), look) == list(range(hops + 1))
    assert shown_of(result_of(0, [(0, 1), (7, 8)], look, hops=hops), look) == list(range(10))


def test_a_neighbourhood_with_far_additions() -> None:
    model, data = random_problem(2, nodes=300, density=0.008)
    far = [(3, node) for node in range(100, 140)]
    result = butfor.explain(model, data, 3, butfor.Greedy(), space=EditSpace(delete=False, add=far))
    assert result.found
    graph = result._context.graph
    excerpt = Excerpt.of(result, graph, 200)
    shown = set(excerpt.nodes.tolist())
    assert {node for pair in result.added_edges for node in pair} <= shown
    assert len(shown) < result.nodes == excerpt.all_nodes
    assert f"Not shown: {result.nodes - len(shown)} of {result.nodes} nodes" in texts(result.plot())[1]
    assert result.hops is not None
    joined = graph.neighbourhood(3, result.hops, joins=[(0, u, v) for u, v in result.added_edges])
    assert shown == set(joined.nodes.tolist())


# Results of schema 2 do not say how far they reach.


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_result_of_schema_2_has_the_same_excerpt(flow: Flow, directed: bool) -> None:
    data = random_problem(1, nodes=60, density=0.03, directed=directed)[1]
    model = GCN(4, 8, num_layers=2, out_channels=3, flow=flow).eval()
    compared = 0
    for result in butfor.explain(model, data, range(20), butfor.Greedy()):
        graph = result._context.graph
        assert result.flow == flow
        new, old = (Excerpt.of(one, graph, 200) for one in (result, as_schema_2(result)))
        assert len(old.nodes) == len(new.nodes) == result.nodes
        # Without edits, both directions may lead to as many nodes.
        if result.found:
            assert old.nodes.tolist() == new.nodes.tolist()
            compared += 2 < result.nodes < 60
    assert compared > 3


def test_a_result_of_schema_2_with_an_addition_shows_what_lies_as_near_as_its_edits() -> None:
    model, data = random_problem(2, nodes=300, density=0.008)
    space = EditSpace(delete=False, add=Within(2))
    results = butfor.explain(model, data, range(20), butfor.Greedy(), space=space)
    found = [result for result in results if result.found and result.nodes < 300]
    assert found
    for result in found:
        graph = result._context.graph
        old = Excerpt.of(as_schema_2(result), graph, 300)
        ends = {node for pair in result.added_edges for node in pair}
        assert {result.target, *ends} <= set(old.nodes.tolist())
        assert len(old.nodes) <= result.nodes == old.all_nodes


def test_a_result_of_schema_2_whose_size_fits_nowhere_is_shown_with_the_whole_graph(result_of: Make) -> None:
    look = look_of(CHAINS, 13, directed=True)
    fits, not_at_all = (
        replace(result_of(0, [(7, 0)], look, hops=3), hops=None, flow=None, nodes=size) for size in (4, 20)
    )
    assert shown_of(fits, look) == [0, 7, 8, 9]
    assert shown_of(not_at_all, look) == list(range(13))
    # Both chains have four nodes within three hops; the edit tells them apart.
    other = replace(fits, edits=(Deletion(0, 1),))
    assert shown_of(other, look) == [0, 1, 2, 3]
    nowhere = replace(fits, edits=(Deletion(5, 6),))
    assert shown_of(nowhere, look) == list(range(13))


# More nodes than there is room for.


def test_of_a_large_neighbourhood_edits_are_shown_and_what_is_nearest(result_of: Make) -> None:
    look = tangle_with_a_tail()
    result = result_of(0, [(0, 1), (398, 399)], look)
    excerpt = Excerpt.of(result, look.graph, 90)
    assert len(excerpt.nodes) == 90
    assert excerpt.removed.sum() == 2
    assert {"0", "1", *map(str, range(380, 400))} <= ids(draw(result, look, max_nodes=90))
    # Nothing floats about: what joins the far edge to the target is shown too.
    assert set(range(380, 400)) <= set(excerpt.nodes.tolist())
    distance = look.graph.neighbourhood(0, None).distance
    left_out = np.setdiff1d(np.arange(400), excerpt.nodes)
    near = [node for node in excerpt.nodes if node < 370]
    assert np.percentile(distance[near], 75) <= distance[left_out].min()


def test_the_paths_from_edits_to_the_target_are_known(result_of: Make) -> None:
    # Two paths from 0 to 4, one shorter, and a tail that leads nowhere.
    look = look_of(both_ways([(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 3), (4, 6), (1, 7)]), 8)
    excerpt = Excerpt.of(result_of(0, [(3, 4)], look), look.graph, 200)
    assert {tuple(pair) for pair in excerpt.pairs[excerpt.leading].tolist()} == {(0, 5), (3, 5), (3, 4)}
    assert not Excerpt.of(result_of(0, [], look), look.graph, 200).leading.any()


@pytest.mark.parametrize("max_nodes", [1, 2, 3])
def test_the_target_is_shown_first(result_of: Make, max_nodes: int) -> None:
    look = look_of(WHEEL, 9)
    excerpt = Excerpt.of(result_of(0, [(2, 3)], look), look.graph, max_nodes)
    assert len(excerpt.nodes) == max_nodes
    assert 0 in excerpt.nodes
    assert excerpt.removed.sum() == (max_nodes == 3)


# What is said about features.


def test_there_are_not_too_many_words_about_features(result_of: Make) -> None:
    look = look_of(WHEEL, 9)
    changes = tuple(Change(node, feature, 0.0, 1.0) for node in range(9) for feature in range(4))
    figure = draw(result_of(0, [(0, 1)], look, edits=changes), look)
    notes = words(figure, "note")
    assert len(collection(figure, "changed").get_offsets()) == 9
    assert len(notes) == NOTED < 9
    assert {len(note.splitlines()) for note in notes} == {LINES}
    assert all(note.endswith("and 2 more") for note in notes)


# Another graph.


def test_a_removed_edge_or_a_target_that_is_not_there_is_refused(result_of: Make) -> None:
    look = look_of(WHEEL, 9)
    result = result_of(0, [(0, 1)], look)
    with pytest.raises(InputError, match="0–1 is not in this graph"):
        draw(result, look_of(both_ways([(0, 2), (1, 2)]), 3))
    with pytest.raises(InputError, match="0–8 is not in this graph"):
        draw(result_of(0, [(0, 8)], look), look_of(both_ways([(0, 2), (1, 2)]), 3))
    with pytest.raises(InputError, match="node 7 is not in this graph"):
        draw(replace(result, target=7), look_of(both_ways([(0, 1)]), 2))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Addition(0, 1), "added edge 0–1 is in this graph already"),
        (Addition(3, 99), "node 99 is not in this graph"),
        (Change(99, 0, 0.0, 1.0), "node 99 is not in this graph"),
    ],
)
def test_edits_of_another_graph_are_refused(result_of: Make, edit: Any, message: str) -> None:
    look = look_of(WHEEL, 9)
    with pytest.raises(InputError, match=message):
        draw(result_of(0, [(0, 1)], look, edits=(edit,)), look)
