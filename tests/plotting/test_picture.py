"""Pictures of nodes: everything a reader must see is there, whatever the neighbourhood looks like."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
import pytest

import butfor
from butfor import Status
from butfor.errors import InputError
from butfor.plotting.excerpt import Excerpt
from butfor.plotting.picture import NAMED, draw
from butfor.plotting.style import COLOURS, REMOVED
from pictures import (
    WHEEL,
    assert_everything_is_inside,
    both_ways,
    collection,
    colour,
    count,
    gaps,
    ids,
    legend,
    look_of,
    nodes,
    parts,
    places,
    tangle_with_a_tail,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from butfor import Counterfactual

    Make = Callable[..., Counterfactual]


def test_a_real_result_says_everything(real: Counterfactual) -> None:
    figure = real.plot()
    assert texts(figure) == [str(real), real.verdict]
    assert len(nodes(figure)) == real.nodes
    assert count(figure, "other-edges") + count(figure, "removed-edges") == real.edges
    assert count(figure, "removed-edges") == len(real.removed_edges) > 0
    assert str(real.target) in ids(figure)


def test_what_is_marked(result_of: Make) -> None:
    look = look_of(WHEEL, 9, names=["spam", "ham"])
    figure = draw(result_of(0, [(0, 3), (0, 4)], look), look)
    assert count(figure, "removed-edges") == 2
    assert count(figure, "other-edges") == 14
    assert colour(collection(figure, "removed-edges")) == REMOVED
    assert ids(figure) == {str(node) for node in range(9)}
    assert legend(figure) == ["spam", "ham", "", "node 0, the target", "removed edge", "other edge"]
    centre = collection(figure, "target").get_offsets()[0]
    assert (np.abs(nodes(figure) - centre).max(axis=1) < 1e-6).sum() == 1


def test_removed_edges_run_between_their_ends(result_of: Make) -> None:
    look = look_of(WHEEL, 9)
    figure = draw(result_of(0, [(2, 3)], look), look)
    (line,) = collection(figure, "removed-edges").get_segments()
    for end, label in zip(line, ("2", "3"), strict=True):
        assert np.linalg.norm(end - places(figure)[label]) < 12


def test_nodes_have_the_colours_of_their_classes(result_of: Make) -> None:
    look = look_of(WHEEL, 9, classes=3)
    figure = draw(result_of(0, [(0, 1)], look), look)
    drawn = {
        matplotlib.colors.to_hex(item.get_facecolor()[0]): len(item.get_offsets()) for item in parts(figure, "nodes")
    }
    assert drawn == dict.fromkeys(COLOURS[:3], 3)


@pytest.mark.parametrize("status", [Status.IMPOSSIBLE, Status.UNKNOWN])
def test_where_nothing_was_found_the_neighbourhood_is_shown(result_of: Make, status: Status) -> None:
    look = look_of(WHEEL, 9)
    result = result_of(0, [], look, status=status)
    figure = draw(result, look)
    assert texts(figure) == [str(result), result.verdict]
    assert count(figure, "removed-edges") == 0
    assert count(figure, "other-edges") == 16
    assert "removed edge" not in legend(figure)


def test_an_isolated_target(result_of: Make) -> None:
    look = look_of(both_ways([(1, 2)]), 3)
    result = result_of(0, [], look, hops=4)
    figure = draw(result, look)
    assert ids(figure) == {"0"}
    assert texts(figure)[0] == str(result)
    assert legend(figure) == ["class 0", "", "node 0, the target"]


def test_two_nodes_and_one_edge(result_of: Make) -> None:
    look = look_of(both_ways([(0, 1)]), 2)
    figure = draw(result_of(0, [(0, 1)], look), look)
    assert len(np.unique(nodes(figure), axis=0)) == 2
    assert "other edge" not in legend(figure)


def test_self_loops_and_copies(result_of: Make) -> None:
    look = look_of([*WHEEL, *both_ways([(0, 3), (0, 3)]), (4, 4), (4, 4), (0, 0)], 9)
    figure = draw(result_of(0, [(0, 3)], look), look)
    assert count(figure, "removed-edges") == 1
    assert count(figure, "other-edges") == 15
    assert len(collection(figure, "self-loops").get_offsets()) == 2


def test_directed_edges_have_arrows(result_of: Make) -> None:
    look = look_of([(1, 0), (0, 1), (2, 0), (3, 2), (4, 2)], 5, directed=True)
    figure = draw(result_of(0, [(1, 0), (3, 2)], look), look)
    assert count(figure, "removed-edges-heads") == 2
    assert count(figure, "other-edges-heads") == 3
    where = places(figure)
    tips = [path.vertices[0] for path in collection(figure, "removed-edges-heads").get_paths()]
    for tip, (source, target) in zip(tips, (("1", "0"), ("3", "2")), strict=True):
        assert np.linalg.norm(tip - where[target]) < np.linalg.norm(tip - where[source])
    # The way there is removed, the way back is not: they must not lie on top of each other.
    there = collection(figure, "removed-edges").get_segments()[0]
    back = collection(figure, "other-edges").get_segments()[0]
    assert np.abs(there[:, None] - back[None, :]).max(axis=2).min() > 1


def test_long_ids_stand_beside_their_nodes(result_of: Make) -> None:
    start = 1_234_567
    look = look_of(both_ways([(start, start + i) for i in range(1, 6)]), start + 6)
    figure = draw(result_of(start, [(start, start + 2)], look, hops=2), look)
    assert ids(figure) == {str(start), str(start + 2)}
    figure.canvas.draw()
    for text in figure.axes[0].texts:
        box = text.get_window_extent().transformed(figure.axes[0].transData.inverted())
        assert not any(box.contains(*point) for point in nodes(figure))


def test_of_many_nodes_those_stand_out_that_lead_to_an_edit(result_of: Make) -> None:
    look = tangle_with_a_tail()
    result = result_of(0, [(398, 399)], look)
    figure = draw(result, look)
    strong = [item for item in parts(figure, "nodes") if item.get_alpha() == 1]
    excerpt = Excerpt.of(result, look.graph, 200)
    path = excerpt.pairs[excerpt.leading]
    assert sum(len(item.get_offsets()) for item in strong) == len(np.unique(path)) == len(ids(figure))
    assert len(nodes(figure)) == 100
    assert sum(alpha == 1 for alpha in collection(figure, "other-edges").get_alpha()) == len(path) - 1
    # Where nothing is edited, nothing stands out.
    figure = draw(result_of(0, [], look), look)
    assert {item.get_alpha() for item in parts(figure, "nodes")} == {1}


def test_where_edits_have_too_many_ends_only_the_target_is_named(result_of: Make) -> None:
    look = look_of(both_ways([(0, i) for i in range(1, 501)]), 501)
    removed = [(0, i) for i in range(1, 501)]
    figure = draw(result_of(0, removed, look), look)
    assert count(figure, "removed-edges") == 199
    assert ids(figure) == {"0"}
    assert len(ids(draw(result_of(0, removed[: NAMED - 1], look), look))) == NAMED


def test_parts_of_a_graph_stay_together(result_of: Make) -> None:
    look = look_of(both_ways([(i, i + 1) for i in range(10)] + [(20, 21), (21, 22)]), 40)
    figure = draw(result_of(5, [(4, 5)], look), look)
    assert len(nodes(figure)) == 40
    between = gaps(nodes(figure))
    assert between.min() > 15
    assert between.min(axis=1).max() < 150


def test_nodes_do_not_cover_each_other(result_of: Make) -> None:
    look = look_of(both_ways([(0, i) for i in range(1, 200)]), 200)
    figure = draw(result_of(0, [(0, i) for i in range(1, 200)], look), look)
    assert gaps(nodes(figure)).min() > 6


def test_the_same_result_gives_the_same_picture(result_of: Make) -> None:
    look = tangle_with_a_tail(250)
    result = result_of(0, [(0, 1)], look)
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first, second = nodes(draw(result, look)), nodes(draw(result, look))
    assert np.array_equal(first, second)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_matplotlib_is_left_as_it_was(result_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    look = look_of(WHEEL, 9)
    settings = dict(matplotlib.rcParams)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    draw(result_of(0, [(0, 1)], look), look)
    assert dict(matplotlib.rcParams) == settings
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.published
def test_the_published_graphs(reference: Path) -> None:
    data = butfor.datasets.load_graph(reference / "ba_shapes_graph.npz")
    model = butfor.models.load_published(reference / "ba_shapes_gcn_weights.npz")
    result = butfor.explain(model, data, 563, butfor.KeepEgo())
    figure = result.plot()
    assert_everything_is_inside(figure)
    assert count(figure, "removed-edges") == result.size > 300


# Saving.


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_saving_replaces_what_was_there(result_of: Make, tmp_path: Path, suffix: str, magic: bytes) -> None:
    look = look_of(WHEEL, 9)
    path = tmp_path / f"picture.{suffix}"
    path.write_text("old")
    draw(result_of(0, [(0, 1)], look), look, path=str(path))
    assert path.read_bytes().startswith(magic)
    assert list(tmp_path.iterdir()) == [path]


def test_the_size_of_a_png(real: Counterfactual, tmp_path: Path) -> None:
    real.plot(path=tmp_path / "a.png")
    header = (tmp_path / "a.png").read_bytes()[16:24]
    assert (int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")) == (1200, 900)


@pytest.mark.parametrize("name", ["picture", "picture.docx", "picture.jpeg"])
def test_unknown_formats_are_refused(real: Counterfactual, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf"):
        real.plot(path=tmp_path / name)


def test_a_folder_that_is_not_there_is_refused(real: Counterfactual, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        real.plot(path=tmp_path / "missing" / "a.png")


def test_a_folder_in_the_way_is_refused(real: Counterfactual, tmp_path: Path) -> None:
    (tmp_path / "a.png").mkdir()
    with pytest.raises(InputError, match=r"cannot save .*a\.png"):
        real.plot(path=tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_at_least_one_node_must_be_wanted(result_of: Make) -> None:
    look = look_of(WHEEL, 9)
    with pytest.raises(InputError, match="max_nodes is 0"):
        draw(result_of(0, [(0, 1)], look), look, max_nodes=0)


def test_without_matplotlib_the_error_says_what_to_install(
    real: Counterfactual, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"pip install 'butfor\[plot\]'"):
        real.plot()
