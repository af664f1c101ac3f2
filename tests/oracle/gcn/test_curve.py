"""The parts of the bounds for equal features that can be held against the truth by themselves."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import butfor
from butfor.oracle.gcn.curve.ranges import most_killed
from butfor.oracle.gcn.curve.shape import Curve
from butfor.session import Session
from butfor.testing import links, random_problem


def test_the_curve_is_what_the_layers_compute() -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        row, bias, matrix = random.normal(size=6), random.normal(size=6), random.normal(size=(6, 4))
        row[seed % 6] *= seed % 3 > 0  # a channel that no t changes
        curve = Curve.of(row, bias, matrix)
        for t in random.normal(size=50) * 3:
            segment = int(np.searchsorted(curve.breaks, t))
            hidden = np.maximum(t * row + bias, 0)
            np.testing.assert_allclose(curve.offset[segment] + curve.slope[segment] * t, hidden @ matrix, atol=1e-12)
            np.testing.assert_allclose(curve.hidden_slope[segment], row * (hidden > 0), atol=1e-12)


def test_so_many_terms_of_a_sum_are_lost_with_an_edit() -> None:
    """A term is an entry u→v, v not the target; it is lost with the entry itself, or with an entry v→0."""
    seen: Counter[str] = Counter()
    for seed in range(24):
        _, data = random_problem(seed, nodes=9, directed=seed % 3 == 0)
        pairs = links(data, directed=seed % 3 == 0)
        groups = [pairs[i : i + 3] for i in range(0, len(pairs), 3)] if seed % 2 else []
        model = GCN(4, 4, 3, 3).eval()
        session = Session.of(model, data, space=butfor.EditSpace(groups=groups), directed=seed % 3 == 0)
        for node in range(data.num_nodes):
            problem = session.problem(node)
            field, free = problem.oracle._field(problem.edits), np.ones(len(problem.edits), dtype=bool)
            sender, receiver, most = field.incoming.sender, field.receiver, 0
            for edit in range(len(free)):
                mine = field.edit_entries[field.edit_rows[edit] : field.edit_rows[edit + 1]]
                cut = {int(sender[e]) for e in mine if receiver[e] == 0}
                lost = [e for e in range(len(sender)) if receiver[e] and (e in mine or int(receiver[e]) in cut)]
                most = max(most, *Counter(sender[lost].tolist()).values(), 0)
            bound = most_killed.py_func(field, free)
            assert bound >= most
            if not groups and len(free):
                assert bound == 1
            seen["several"] += most > 1
            seen["problems"] += 1
    assert seen["problems"] >= 100
    assert seen["several"] >= 20


def test_nothing_is_read_along_the_curve_where_features_differ() -> None:
    model, data = random_problem(0)
    deep = GCN(4, 4, 3, 3).eval()
    data.x = torch.ones_like(data.x)
    for x, layers, expected in ((data.x, deep, True), (data.x, model, False)):
        problem = Session.of(layers, Data(x=x, edge_index=data.edge_index)).problem(0)
        assert problem.oracle._is_curve(problem.oracle._field(problem.edits)) == expected
    data.x[:, 0] = torch.arange(len(data.x))
    problem = Session.of(deep, data).problem(0)
    assert not problem.oracle._is_curve(problem.oracle._field(problem.edits))
