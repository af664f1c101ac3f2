"""Graphs to draw, and what a picture shows: lines, nodes and words, found by the names that the drawing gives them.

For the tests of pictures, tests/plotting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import torch
from torch_geometric.data import Data

from butfor import Counterfactual
from butfor.graph.graph import Graph
from butfor.plotting.appearance import Appearance
from butfor.result.context import PlotContext

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Edges = list[tuple[int, int]]


def both_ways(edges: Edges) -> Edges:
    """The edges of an undirected graph."""
    return edges + [(v, u) for u, v in edges]


# A hub with a rim of eight nodes.
WHEEL = both_ways([(0, i) for i in range(1, 9)] + [(i, i % 8 + 1) for i in range(1, 9)])


def look_of(
    edges: Edges,
    num_nodes: int,
    *,
    classes: int = 2,
    directed: bool | None = None,
    names: list[str] | None = None,
) -> Appearance:
    """A graph of which it is known what is predicted for its nodes: the classes in turn."""
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()
    data = Data(x=torch.zeros(num_nodes, 1), edge_index=edge_index)
    called = tuple(names or (f"class {label}" for label in range(classes)))
    return Appearance(PlotContext(Graph.of(data, directed), np.arange(num_nodes) % classes, called))


def tangle_with_a_tail(num_nodes: int = 400) -> Appearance:
    """A dense random graph around node 0, and a tail of twenty nodes that leads far away from it."""
    draws = np.random.default_rng(0).integers(0, num_nodes - 20, (1200, 2))
    edges = [(int(u), int(v)) for u, v in draws if u != v]
    tree = [(i, i // 3) for i in range(1, num_nodes - 20)]
    tail = [(i - 1, i) for i in range(num_nodes - 20, num_nodes)]
    return look_of(both_ways(sorted({(min(pair), max(pair)) for pair in edges + tree + tail})), num_nodes)


def reread(result: Counterfactual) -> Counterfactual:
    """What comes back from a file: the result without its graph."""
    return Counterfactual.from_dict(result.to_dict())


def as_schema_2(result: Counterfactual) -> Counterfactual:
    """What comes back from a file of schema 2, which did not say how far the neighbourhood reaches."""
    plain = {key: value for key, value in result.to_dict().items() if key not in ("hops", "flow", "verified_on")}
    old = Counterfactual.from_dict({**plain, "schema": 2, "goal": str(result.goal), "method": str(result.method)})
    assert old.hops is old.flow is None
    return old


def parts(figure: Figure, gid: str) -> list[Any]:
    """All collections of that name."""
    return [item for item in figure.axes[0].collections if item.get_gid() == gid]


def collection(figure: Figure, gid: str) -> Any:
    """The one collection of that name."""
    (found,) = parts(figure, gid)
    return found


def count(figure: Figure, gid: str) -> int:
    """How many lines or heads it has."""
    return len(collection(figure, gid).get_paths())


def colour(item: Any) -> str:
    """The colour of its first line."""
    return matplotlib.colors.to_hex(item.get_color()[0])


def nodes(figure: Figure) -> np.ndarray[Any, Any]:
    """Where the nodes stand."""
    return np.concatenate([np.asarray(item.get_offsets()) for item in parts(figure, "nodes")])


def places(figure: Figure) -> dict[str, np.ndarray[Any, Any]]:
    """Where each word in the drawing stands."""
    return {text.get_text(): np.array(text.get_position()) for text in figure.axes[0].texts}


def words(figure: Figure, gid: str) -> list[str]:
    """The words of that name in the drawing."""
    return [text.get_text() for text in figure.axes[0].texts if text.get_gid() == gid]


def ids(figure: Figure) -> set[str]:
    """The ids of nodes that can be read."""
    return set(words(figure, "id"))


def texts(figure: Figure) -> list[str]:
    """Title and caption, with line breaks as spaces."""
    return [" ".join(text.get_text().split()) for text in figure.texts]


def legend(figure: Figure) -> list[str]:
    """The entries of the legend; none where there is no legend."""
    return [text.get_text() for item in figure.legends for text in item.get_texts()]


def gaps(points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The distances between all pairs of points, without those from a point to itself."""
    between = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    np.fill_diagonal(between, np.inf)
    return between


def assert_everything_is_inside(figure: Figure) -> None:
    """Title, legend, caption and nodes are on the page and keep clear of each other."""
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
