"""Pictures of edits that are no deletions: what is added or changed looks different from what is removed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import matplotlib
import numpy as np

import butfor
from butfor import Addition, Change, Deletion, EditSpace, Features, Within
from butfor.plotting.appearance import Appearance
from butfor.plotting.picture import draw
from butfor.plotting.style import NEW, REMOVED
from butfor.testing import random_problem
from pictures import (
    assert_everything_is_inside,
    collection,
    colour,
    ids,
    legend,
    parts,
    places,
    reread,
    words,
)

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data


def binary(seed: int) -> tuple[torch.nn.Module, Data]:
    """A problem whose features are 0 or 1."""
    model, data = random_problem(seed, nodes=20, density=0.09)
    data.x = (data.x > 0).float()
    return model, data


def test_added_edges_look_different() -> None:
    found = []
    for seed in range(4):
        model, data = binary(seed)
        results = butfor.explain(model, data, range(6), space=EditSpace(delete=False, add=Within(2)))
        found += [(model, data, result) for result in results if result.found]
    assert found
    for model, data, result in found[:6]:
        for figure in (result.plot(), reread(result).plot(data, model)):
            assert_everything_is_inside(figure)
            added = collection(figure, "added-edges")
            assert len(added.get_segments()) == len(result.added_edges) == result.size
            assert colour(added) == NEW
            assert added.get_linestyle()[0][1] is None, "a whole line"
            assert "added edge" in legend(figure)
            assert "removed edge" not in legend(figure)
            assert {str(node) for pair in result.added_edges for node in pair} <= ids(figure)
            where = places(figure)
            for line, pair in zip(added.get_segments(), result.added_edges, strict=True):
                for end, node in zip(line, pair, strict=True):
                    assert np.linalg.norm(end - where[str(node)]) < 25


def test_changed_features_are_marked_and_named() -> None:
    model, data = binary(0)
    space = EditSpace(delete=False, features=Features(within=2))
    results = butfor.explain(model, data, range(20), butfor.Greedy(), space=space)
    result = next(result for result in results if result.found)
    for figure in (result.plot(), reread(result).plot(data, model)):
        assert_everything_is_inside(figure)
        stars = {change.node for change in result.changes}
        assert len(collection(figure, "changed").get_offsets()) == len(stars)
        said = "\n".join(words(figure, "note")).splitlines()
        assert sorted(said) == sorted(f"feature {c.feature}: {c.before:g} → {c.after:g}" for c in result.changes)
        assert "changed feature" in legend(figure)
        assert {str(node) for node in stars} <= ids(figure)


def test_deletions_additions_and_changes_together() -> None:
    model, data = binary(5)
    target, other = data.edge_index[:, 0].tolist()
    result = butfor.explain(model, data, target)
    graph = result._context.graph
    new = next(node for node in range(20) if node != target and not graph.has_edge(graph.edge_key((node, target))))
    edits = (Deletion(target, other), Addition(target, new), Change(target, 1, 0.0, 0.25))
    figure = draw(replace(result, after=result.before, edits=edits), Appearance(result._context))
    marks = [f"node {target}, the target", "removed edge", "added edge", "changed feature", "other edge"]
    assert legend(figure)[-5:] == marks
    assert words(figure, "note") == ["feature 1: 0 → 0.25"]
    rims = {matplotlib.colors.to_hex(edge) for item in parts(figure, "nodes") for edge in item.get_edgecolors()}
    assert {NEW, REMOVED} <= rims
