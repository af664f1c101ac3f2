"""Pictures: everything a reader must see is there, whatever the neighbourhood looks like."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pytest
import torch
from butfor.plotting.scene import Scene
from torch_geometric.data import Data

import butfor
from butfor import Deletion, Prediction, Status
from butfor.errors import InputError
from butfor.graph.graph import Graph
from butfor.plotting.excerpt import View
from butfor.plotting.layout import fit, place
from butfor.plotting.picture import NAMED, draw
from butfor.plotting.style import COLOURS, REMOVED

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from butfor import Counterfactual

Edges = list[tuple[int, int]]


def both(edges: Edges) -> Edges:
    return edges + [(v, u) for u, v in edges]


def scene_of(
    edges: Edges,
    num_nodes: int,
    *,
    classes: int = 2,
    directed: bool | None = None,
    names: list[str] | None = None,
) -> Scene:
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()
    data = Data(x=torch.zeros(num_nodes, 1), edge_index=edge_index)
    called = tuple(names or (f"class {label}" for label in range(classes)))
    return Scene(Graph.of(data, directed), np.arange(num_nodes) % classes, called)


@pytest.fixture(scope="module")
def real() -> Counterfactual:
    """A result of the library itself, whose fields the tests then replace."""
    data = butfor.datasets.tree_cycles(seed=0)
    model = butfor.models.PaperGCN(data.num_features, 2)
    butfor.models.train(model, data, epochs=100, lr=0.01)
    return next(result for result in butfor.explain(model, data, range(600, 640)) if result.found)


@pytest.fixture
def result_of(real: Counterfactual) -> Any:
    def make(target: int, removed: Edges, scene: Scene, hops: int | None = None, **more: Any) -> Counterfactual:
        near = scene.graph.neighbourhood(target, hops)
        links = {(u, v) if scene.graph.directed else (min(u, v), max(u, v)) for u, v in near.edge_index.T.tolist()}
        label = int(scene.classes[target])
        fields = {
            "target": target,
            "status": Status.FOUND if removed else Status.IMPOSSIBLE,
            "before": Prediction(label, scene.class_name(label), 0.9),
            "after": Prediction(1, scene.class_name(1), 0.7) if removed else None,
            "edits": tuple(Deletion(u, v) for u, v in removed),
            "cost": float(len(removed)),
            "lower_bound": 1.0,
            "nodes": near.num_nodes,
            "edges": sum(u != v for u, v in links),
            "directed": scene.graph.directed,
        }
        return replace(real, **{**fields, **more})

    return make


def collection(figure: Figure, gid: str) -> Any:
    """The one collection of that name."""
    (found,) = [item for item in figure.axes[0].collections if item.get_gid() == gid]
    return found


def count(figure: Figure, gid: str) -> int:
    return len(collection(figure, gid).get_paths())


def nodes(figure: Figure) -> np.ndarray[Any, Any]:
    parts = [item for item in figure.axes[0].collections if item.get_gid() == "nodes"]
    return np.concatenate([np.asarray(item.get_offsets()) for item in parts])


def ids(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.axes[0].texts if text.get_gid() == "id"}


def words(text: str) -> str:
    return " ".join(text.split())


def texts(figure: Figure) -> list[str]:
    return [words(text.get_text()) for text in figure.texts]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


WHEEL = both([(0, i) for i in range(1, 9)] + [(i, i % 8 + 1) for i in range(1, 9)])


def test_a_real_result_says_everything(real: Counterfactual) -> None:
    assert real.found
    figure = real.plot()
    title, caption = texts(figure)
    assert title == str(real)
    assert caption == real.verdict
    assert len(nodes(figure)) == real.nodes
    assert count(figure, "other-edges") + count(figure, "removed-edges") == real.edges
    assert count(figure, "removed-edges") == len(real.removed_edges)
    assert str(real.target) in ids(figure)


def test_what_is_marked(result_of: Any) -> None:
    scene = scene_of(WHEEL, 9, names=["spam", "ham"])
    figure = draw(result_of(0, [(0, 3), (0, 4)], scene), scene)
    assert count(figure, "removed-edges") == 2
    assert count(figure, "other-edges") == 14
    assert matplotlib.colors.to_hex(collection(figure, "removed-edges").get_color()[0]) == REMOVED
    assert ids(figure) == {str(node) for node in range(9)}
    assert legend(figure) == ["spam", "ham", "", "node 0, the target", "removed edge", "other edge"]
    centre = collection(figure, "target").get_offsets()[0]
    assert (np.abs(nodes(figure) - centre).max(axis=1) < 1e-6).sum() == 1


def test_removed_edges_run_between_their_ends(result_of: Any) -> None:
    scene = scene_of(WHEEL, 9)
    figure = draw(result_of(0, [(2, 3)], scene), scene)
    where = {text.get_text(): np.array(text.get_position()) for text in figure.axes[0].texts}
    (line,) = collection(figure, "removed-edges").get_segments()
    for end, label in zip(line, ("2", "3"), strict=True):
        assert np.linalg.norm(end - where[label]) < 12


def test_nodes_have_the_colours_of_their_classes(result_of: Any) -> None:
    scene = scene_of(WHEEL, 9, classes=3)
    figure = draw(result_of(0, [(0, 1)], scene), scene)
    parts = [item for item in figure.axes[0].collections if item.get_gid() == "nodes"]
    drawn = {matplotlib.colors.to_hex(item.get_facecolor()[0]): len(item.get_offsets()) for item in parts}
    assert drawn == dict.fromkeys(COLOURS[:3], 3)
    assert REMOVED not in COLOURS


@pytest.mark.parametrize("status", [Status.IMPOSSIBLE, Status.UNKNOWN])
def test_not_found(result_of: Any, status: Status) -> None:
    scene = scene_of(WHEEL, 9)
    result = result_of(0, [], scene, status=status)
    figure = draw(result, scene)
    assert texts(figure) == [str(result), result.verdict]
    assert count(figure, "removed-edges") == 0
    assert count(figure, "other-edges") == 16
    assert "removed edge" not in legend(figure)


def test_an_isolated_target(result_of: Any) -> None:
    scene = scene_of(both([(1, 2)]), 3)
    result = result_of(0, [], scene, hops=4)
    figure = draw(result, scene)
    assert ids(figure) == {"0"}
    assert texts(figure)[0] == str(result)
    assert legend(figure) == ["class 0", "", "node 0, the target"]


def test_two_nodes_and_one_edge(result_of: Any) -> None:
    scene = scene_of(both([(0, 1)]), 2)
    figure = draw(result_of(0, [(0, 1)], scene), scene)
    assert len(np.unique(nodes(figure), axis=0)) == 2
    assert "other edge" not in legend(figure)


def test_self_loops_and_copies(result_of: Any) -> None:
    scene = scene_of([*WHEEL, *both([(0, 3), (0, 3)]), (4, 4), (4, 4), (0, 0)], 9)
    figure = draw(result_of(0, [(0, 3)], scene), scene)
    assert count(figure, "removed-edges") == 1
    assert count(figure, "other-edges") == 15
    assert len(collection(figure, "self-loops").get_offsets()) == 2


def test_directed_edges_have_arrows(result_of: Any) -> None:
    scene = scene_of([(1, 0), (0, 1), (2, 0), (3, 2), (4, 2)], 5, directed=True)
    figure = draw(result_of(0, [(1, 0), (3, 2)], scene), scene)
    assert count(figure, "removed-edges-heads") == 2
    assert count(figure, "other-edges-heads") == 3
    where = {text.get_text(): np.array(text.get_position()) for text in figure.axes[0].texts}
    tips = [path.vertices[0] for path in collection(figure, "removed-edges-heads").get_paths()]
    for tip, (source, target) in zip(tips, (("1", "0"), ("3", "2")), strict=True):
        assert np.linalg.norm(tip - where[target]) < np.linalg.norm(tip - where[source])
    # The way there is removed, the way back is not: they must not lie on top of each other.
    there = collection(figure, "removed-edges").get_segments()[0]
    back = collection(figure, "other-edges").get_segments()[0]
    assert np.abs(there[:, None] - back[None, :]).max(axis=2).min() > 1


def test_messages_against_the_edges(result_of: Any) -> None:
    chain = [(0, 1), (1, 2), (2, 3), (4, 0), (5, 4), (6, 5)]
    scene = scene_of(chain, 7, directed=True)
    near = scene.graph.neighbourhood(0, 3, "target_to_source")
    result = result_of(0, [(0, 1)], scene, nodes=near.num_nodes, edges=3)
    assert View.of(result, scene, 200).nodes.tolist() == near.nodes.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("num_classes", [9, 35, 100])
def test_many_classes_look_different(result_of: Any, num_classes: int) -> None:
    ring = both([(i, (i + 1) % 30) for i in range(30)])
    scene = scene_of(ring, 30, classes=num_classes)
    figure = draw(result_of(29, [(0, 29)], scene), scene)
    parts = [item for item in figure.axes[0].collections if item.get_gid() == "nodes"]
    looks = {(tuple(item.get_facecolor()[0]), item.get_paths()[0].vertices.tobytes()) for item in parts}
    assert len(looks) == len(parts) == min(num_classes, 30)
    names = legend(figure)
    assert scene.class_name(int(scene.classes[29])) in names
    assert ("and 10 more" in names) == (num_classes > 20)


def test_strange_class_names(result_of: Any) -> None:
    names = ["_hidden", "$x_1$ \\frac", "a" * 60, "per cent % & more"]
    scene = scene_of(WHEEL, 9, classes=4, names=names)
    result = result_of(0, [(0, 1)], scene)
    figure = draw(result, scene)
    figure.canvas.draw()
    assert texts(figure)[0] == str(result)
    assert legend(figure)[:4] == ["_hidden", "$x_1$ \\frac", "a" * 23 + "…", "per cent % & more"]


def test_long_ids_stand_below_their_nodes(result_of: Any) -> None:
    start = 1_234_567
    edges = both([(start, start + i) for i in range(1, 6)])
    scene = scene_of(edges, start + 6)
    figure = draw(result_of(start, [(start, start + 2)], scene, hops=2), scene)
    assert ids(figure) == {str(start), str(start + 2)}
    below = [text for text in figure.axes[0].texts if text.get_va() == "top"]
    assert len(below) == 2


def big(num_nodes: int = 400) -> Scene:
    """A dense random graph with a tail of nodes far from node 0."""
    draws = np.random.default_rng(0).integers(0, num_nodes - 20, (1200, 2))
    edges = [(int(u), int(v)) for u, v in draws if u != v]
    tree = [(i, i // 3) for i in range(1, num_nodes - 20)]
    tail = [(i - 1, i) for i in range(num_nodes - 20, num_nodes)]
    return scene_of(both(sorted({(min(pair), max(pair)) for pair in edges + tree + tail})), num_nodes)


def test_a_large_neighbourhood_is_trimmed(result_of: Any) -> None:
    scene = big()
    result = result_of(0, [(0, 1), (398, 399)], scene)
    figure = draw(result, scene, max_nodes=120)
    view = View.of(result, scene, 120)
    assert len(nodes(figure)) == 120
    assert count(figure, "removed-edges") == 2
    assert ids(figure) == {"0", "1", "398", "399"}
    shown = len(view.links)
    assert (
        f"Showing 120 of 400 nodes and {shown} of {result.edges} edges, nearest the target first." in texts(figure)[1]
    )
    # Nothing floats about: what joins the far edge to the target is shown too.
    assert set(range(380, 400)) <= set(view.nodes.tolist())
    distance = scene.graph.neighbourhood(0, None).distance
    left_out = np.setdiff1d(np.arange(400), view.nodes)
    near = [node for node in view.nodes if node < 370]
    assert np.percentile(distance[near], 75) <= distance[left_out].min()


def test_the_default_shows_two_hundred(result_of: Any) -> None:
    scene = big()
    assert "Showing 200 of 400 nodes" in texts(draw(result_of(0, [(0, 1)], scene), scene))[1]


def test_very_many_removed_edges(result_of: Any) -> None:
    star = both([(0, i) for i in range(1, 501)])
    scene = scene_of(star, 501)
    removed = [(0, i) for i in range(1, 501)]
    figure = draw(result_of(0, removed, scene), scene)
    assert len(nodes(figure)) == 200
    assert count(figure, "removed-edges") == 199
    assert ids(figure) == {"0"}
    assert "199 of 500 edges and 199 of 500 removed edges" in texts(figure)[1]
    named = draw(result_of(0, removed[: NAMED - 1], scene), scene)
    assert len(ids(named)) == NAMED


@pytest.mark.parametrize("max_nodes", [1, 2, 3])
def test_hardly_any_room(result_of: Any, max_nodes: int) -> None:
    scene = scene_of(WHEEL, 9)
    view = View.of(result_of(0, [(2, 3)], scene), scene, max_nodes)
    assert len(view.nodes) == max_nodes
    assert 0 in view.nodes
    assert view.removed.sum() == (max_nodes == 3)


def test_parts_stay_together(result_of: Any) -> None:
    parts = both([(i, i + 1) for i in range(10)] + [(20, 21), (21, 22)])
    scene = scene_of(parts, 40)
    figure = draw(result_of(5, [(4, 5)], scene, note="The whole graph was searched."), scene)
    assert len(nodes(figure)) == 40
    assert texts(figure)[1].endswith("The whole graph was searched.")
    gaps = np.linalg.norm(nodes(figure)[:, None] - nodes(figure)[None, :], axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert gaps.min() > 15
    assert gaps.min(axis=1).max() < 150


def everything_inside(figure: Figure) -> None:
    """Title, legend, caption and nodes keep clear of each other."""
    figure.canvas.draw()
    title, caption = (text.get_window_extent() for text in figure.texts)
    key = figure.legends[0].get_window_extent()
    axes = figure.axes[0].get_window_extent()
    page = figure.bbox
    for box in (title, caption, key, axes):
        assert box.x0 >= page.x0
        assert box.y0 >= page.y0
        assert box.x1 <= page.x1
        assert box.y1 <= page.y1
    assert title.y0 > axes.y1 > axes.y0 > caption.y1
    assert title.y0 > key.y1
    assert axes.x1 < key.x0
    low, high = nodes(figure).min(axis=0), nodes(figure).max(axis=0)
    assert (low >= 3).all()
    assert high[0] <= figure.axes[0].get_xlim()[1] - 3
    assert high[1] <= figure.axes[0].get_ylim()[1] - 3


def test_nothing_overlaps(real: Counterfactual, result_of: Any) -> None:
    everything_inside(real.plot())
    scene = scene_of(WHEEL, 9, names=["a rather long name of a class", "b" * 80])
    everything_inside(draw(result_of(0, [(0, 1)], scene), scene))
    endless = scene_of(WHEEL, 9, names=["word " * 500, "b" * 2000])
    everything_inside(draw(result_of(0, [(0, 1)], endless), endless))
    everything_inside(draw(result_of(0, [(0, 1)], big()), big()))


def test_nodes_do_not_cover_each_other(result_of: Any) -> None:
    scene = scene_of(both([(0, i) for i in range(1, 200)]), 200)
    points = nodes(draw(result_of(0, [(0, i) for i in range(1, 200)], scene), scene))
    gaps = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert gaps.min() > 6


def test_the_same_every_time(result_of: Any) -> None:
    scene = big(250)
    result = result_of(0, [(0, 1)], scene)
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first, second = nodes(draw(result, scene)), nodes(draw(result, scene))
    assert np.array_equal(first, second)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_layout_keeps_distances() -> None:
    grid = [(4 * i + j, 4 * i + j + 1) for i in range(4) for j in range(3)]
    grid += [(4 * i + j, 4 * i + j + 4) for i in range(3) for j in range(4)]
    points = place(16, np.array(grid), 5, np.empty(0, dtype=np.int64))
    length = np.linalg.norm(points[[u for u, _ in grid]] - points[[v for _, v in grid]], axis=1)
    assert length.min() > 0.6
    assert length.max() < 1.4
    assert np.linalg.norm(points[0] - points[15]) > 3.5


def test_a_long_chain_is_rolled_up() -> None:
    chain = np.array([(i, i + 1) for i in range(199)])
    points = place(200, chain, 30, np.empty(0, dtype=np.int64))
    assert np.ptp(points, axis=0).max() < 60
    assert np.ptp(points, axis=0).min() > 5


def test_nodes_give_way_to_edges_that_must_stay_visible() -> None:
    points = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.02], [1.0, 2.0]])
    margin = np.full(4, 10.0)
    fitted = fit(points, np.full((4, 4), 20.0), (300.0, 300.0), margin=margin, free=np.array([[0, 1]]), longest=100)
    along = (fitted[1] - fitted[0]) / np.linalg.norm(fitted[1] - fitted[0])
    off = abs(along[0] * (fitted[2] - fitted[0])[1] - along[1] * (fitted[2] - fitted[0])[0])
    assert off > 9


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_saving(result_of: Any, tmp_path: Path, suffix: str, magic: bytes) -> None:
    scene = scene_of(WHEEL, 9)
    path = tmp_path / f"picture.{suffix}"
    path.write_text("old")
    draw(result_of(0, [(0, 1)], scene), scene, path=str(path))
    assert path.read_bytes().startswith(magic)
    assert list(tmp_path.iterdir()) == [path]


def test_the_size_of_a_png(real: Counterfactual, tmp_path: Path) -> None:
    real.plot(path=tmp_path / "a.png")
    header = (tmp_path / "a.png").read_bytes()[16:24]
    assert (int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")) == (1200, 900)


@pytest.mark.parametrize("name", ["picture", "picture.docx", "picture.jpeg"])
def test_unknown_formats(real: Counterfactual, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf"):
        real.plot(path=tmp_path / name)


def test_no_folder(real: Counterfactual, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        real.plot(path=tmp_path / "missing" / "a.png")


def test_a_folder_in_the_way(real: Counterfactual, tmp_path: Path) -> None:
    (tmp_path / "a.png").mkdir()
    with pytest.raises(InputError, match=r"cannot save .*a\.png"):
        real.plot(path=tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_another_graph(result_of: Any) -> None:
    scene = scene_of(WHEEL, 9)
    result = result_of(0, [(0, 1)], scene)
    with pytest.raises(InputError, match="0–1 is not in this graph"):
        draw(result, scene_of(both([(0, 2), (1, 2)]), 3))
    with pytest.raises(InputError, match="0–8 is not in this graph"):
        draw(result_of(0, [(0, 8)], scene), scene_of(both([(0, 2), (1, 2)]), 3))
    with pytest.raises(InputError, match="node 7 is not in this graph"):
        draw(replace(result, target=7), scene_of(both([(0, 1)]), 2))


def test_no_nodes_wanted(result_of: Any) -> None:
    scene = scene_of(WHEEL, 9)
    with pytest.raises(InputError, match="max_nodes is 0"):
        draw(result_of(0, [(0, 1)], scene), scene, max_nodes=0)


def test_without_matplotlib(real: Counterfactual, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"pip install 'butfor\[plot\]'"):
        real.plot()


def test_nothing_global_is_touched(result_of: Any) -> None:
    scene = scene_of(WHEEL, 9)
    settings = dict(matplotlib.rcParams)
    known = "matplotlib.pyplot" in sys.modules
    draw(result_of(0, [(0, 1)], scene), scene)
    assert dict(matplotlib.rcParams) == settings
    assert ("matplotlib.pyplot" in sys.modules) == known


@pytest.mark.published
def test_the_published_graphs(reference: Path) -> None:
    data = butfor.datasets.load_graph(reference / "ba_shapes_graph.npz")
    model = butfor.models.load_published(reference / "ba_shapes_gcn_weights.npz")
    result = butfor.explain(model, data, 563, butfor.KeepEgo())
    figure = result.plot()
    everything_inside(figure)
    assert count(figure, "removed-edges") == result.size > 300
