"""Neighbourhoods as plain data: labels, kinds, lines and what they mean."""

from __future__ import annotations

import json

import numpy as np

from butfor.pages.scene import Legend, scene_of
from butfor.plotting.appearance import Appearance
from page_runs import library, links, molecules, trees
from pictures import WHEEL, look_of


def whole(appearance: Appearance, legend: Legend, targets: tuple[int, ...] = ()) -> dict[str, object]:
    graph = appearance.graph
    first, second = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    lines = np.stack([first, second], axis=1)
    nothing = np.zeros(len(lines), dtype=np.int64)
    every, marked = np.arange(graph.num_nodes), np.array(targets, dtype=np.int64)
    return scene_of(appearance, legend, every, lines, nothing, nothing.astype(bool), marked)


def test_a_graph_of_one_type() -> None:
    legend = Legend()
    scene = whole(look_of(WHEEL, 9, names=["hub", "\x1b[31mrim"]), legend, (0,))
    assert scene["labels"] == [str(node) for node in range(9)]
    assert scene["kinds"] == [node % 2 for node in range(9)]
    assert scene["targets"] == [0]
    assert len(scene["ends"]) == 2 * 16  # type: ignore[arg-type]
    assert not {"names", "relations", "arrows", "symbols", "xy"} & scene.keys()
    assert legend.plain["title"] == "predicted class"
    names = [name for name, *_ in legend.plain["kinds"].values()]
    assert names == ["hub", "\\x1b[31mrim"]
    json.dumps([scene, legend.plain], allow_nan=False)


def test_a_legend_grows_with_what_is_shown() -> None:
    legend, look = Legend(), look_of(WHEEL, 9, classes=3)
    assert legend.add(look, np.array([0, 3])) == [0, 0]
    assert set(legend.kinds) == {0}
    assert legend.add(look, np.array([1, 2])) == [1, 2]
    assert set(legend.kinds) == {0, 1, 2}


def test_types_have_shapes_and_classes_colours() -> None:
    context = library().results[0]._context
    assert context is not None
    legend = Legend()
    kinds = legend.add(Appearance(context), np.arange(16))
    assert [name for name, _ in legend.plain["types"]] == ["paper", "author"]
    told = {name for name, *_ in legend.kinds.values() if name}
    assert told == {f"class {label}" for label in np.unique(context.classes_of(np.arange(10)))}
    # Authors have no class: they are told among the types alone.
    assert {legend.kinds[kind][0] for kind in kinds[10:]} == {""}
    assert {legend.kinds[kind][2] for kind in kinds[10:]}.isdisjoint(legend.kinds[kind][2] for kind in kinds[:10])


def test_where_nothing_is_predicted_for_nodes_nothing_is_told() -> None:
    context = links().results[0]._context
    assert context is not None
    legend = Legend()
    legend.add(Appearance(context), np.arange(16))
    assert [name for name, *_ in legend.kinds.values()] == [""]


def test_a_molecule_has_elements_positions_and_bonds() -> None:
    context = molecules().results[0]._context
    assert context is not None
    scene = whole(Appearance(context), Legend())
    assert scene["symbols"] == ["C", "N", "O", "O", "H", "H", "H"]
    assert scene["labels"] == ["C0", "N1", "O2", "O3", "H4", "H5", "H6"]
    assert scene["bonds"].count("double") == 1  # type: ignore[attr-defined]
    points = np.reshape(scene["xy"], (-1, 2))
    ends = np.reshape(scene["ends"], (-1, 2))
    assert np.allclose(np.linalg.norm(points[ends[:, 0]] - points[ends[:, 1]], axis=1), 1, atol=0.15)


def test_a_part_of_a_molecule_is_drawn_like_any_graph() -> None:
    context = trees().results[0]._context
    assert context is not None
    scene = whole(Appearance(context), Legend())
    assert "symbols" not in scene
