"""What reads what, against the graph itself."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from butfor.oracle.program.kernels.flat import REDUCE
from families import plain_of, sage_stack, undirected_case

# A ring with a chord, and a path that leads away from the target, node 0.
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6)]


@pytest.fixture(
    params=[(a, d) for a in ("sum", "mean", "max") for d in (2, 3)], ids=lambda param: f"{param[0]} {param[1]}"
)
def question(request):
    """The tables of a question, how many layers there are, and each node's distance from the target."""
    aggregation, depth = request.param
    case = undirected_case(sage_stack(aggregation, depth, 0), EDGES, 0)
    plain, _, _ = plain_of(case)
    distance = nx.single_source_shortest_path_length(nx.Graph(EDGES), 0)
    edits = case.edits
    ends = [edits.neighbourhood.nodes[edits.all_ends[:, edits.columns([e])[0]]].tolist() for e in range(len(edits))]
    return plain.tables, depth, distance, ends


def lists(from_, members):
    return [members[a:b].tolist() for a, b in pairwise(from_)]


def test_an_edit_is_as_far_as_the_nearer_end_of_its_edge(question):
    tables, depth, distance, ends = question
    near = np.array([min(distance[u], distance[v]) for u, v in ends])
    assert (tables.hops[near < depth] == near[near < depth]).all()
    assert (tables.hops[near >= depth] > depth).all(), "the target never hears of it"
    assert depth - 1 in near


def test_an_edit_deletes_an_entry_at_either_end_in_each_layer_that_the_target_hears_of(question):
    tables, depth, distance, ends = question
    is_reduction = tables.flat.kind[tables.step_of] == REDUCE
    for rows, pair in zip(lists(tables.edit_from, tables.edit_rows), ends, strict=True):
        deleted = [row for row in rows if is_reduction[row]]
        assert len(deleted) == sum(max(depth - distance[node], 0) for node in pair)
        assert (tables.at_once[deleted] == 1).all()


def test_reductions_feed_those_of_later_layers(question):
    tables, depth, distance, ends = question
    # The row that a neighbour sends has heard of the sums of all layers before, of the first ones by its own path.
    through = []
    for layer in range(2, depth + 1):
        heard = [node for node in distance if distance[node] <= depth - layer]
        through += [edit for node in heard for edit, pair in enumerate(ends) if node in pair] * (layer - 1)
    assert sorted(tables.reads_by[tables.reads_by >= 0].tolist()) == sorted(through)


def test_what_a_row_reads_comes_before_it_and_leads_to_the_target(question):
    tables, *_ = question
    readers = lists(tables.readers_from, tables.readers)
    leads = {tables.out}
    for row in range(tables.out, -1, -1):
        assert all(reader > row for reader in readers[row])
        leads |= {row} if leads & set(readers[row]) else set()
    assert leads == set(tables.rows.tolist())
    assert all(len(set(one)) == len(one) for one in readers)
    assert np.array_equal(np.sort(np.unique(tables.readers)), np.unique(tables.readers))
