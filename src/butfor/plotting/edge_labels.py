"""What is written beside the edges of a picture: the relation of edited ones, and an attribute on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from butfor.boundary.printable import printable
from butfor.edits.per_edge import PerEdge
from butfor.errors import InputError
from butfor.plotting.excerpt import PREDICTED
from butfor.plotting.labels import shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.graph.graph import Graph
    from butfor.plotting.excerpt import Excerpt

__all__ = ["edge_labels"]

# Edited edges have labels if there are at most EDITED of them, and so have all edges if there are at most ALL.
EDITED, ALL = 24, 30
# Removed and added edges show the names of their relations if there are at most this many.
RELATIONS = 8
# Of several edges between the same nodes, so many values are written.
VALUES = 3


def edge_labels(graph: Graph, excerpt: Excerpt, attribute: str | None) -> dict[int, str]:
    """The label of each line that has one.

    Raises:
        InputError: the graph has no such edge attribute.
    """
    edited = np.flatnonzero(excerpt.removed | excerpt.added)
    labels: dict[int, list[str]] = {}
    if graph.types is not None and len(edited) <= RELATIONS:
        labels = {line: [shortened(graph.types.relations[excerpt.relation[line]][1])] for line in edited.tolist()}
    if attribute is not None:
        edges = np.flatnonzero(excerpt.role != PREDICTED)
        shown = edges if len(edges) <= ALL else edited if len(edited) <= EDITED else edited[:0]
        for line, value in _values(graph, excerpt, attribute, shown).items():
            labels.setdefault(line, []).append(value)
    return {line: printable(" ".join(words)) for line, words in labels.items()}


def _values(graph: Graph, excerpt: Excerpt, attribute: str, lines: NDArray[np.int64]) -> dict[int, str]:
    """What the attribute says of each of these lines; added edges have no value."""
    if not isinstance(attribute, str):
        raise InputError(f"edge_labels is {attribute!r}; give the name of an edge attribute")
    columns, values = PerEdge(attribute).on(graph, "edge_labels")
    keys = np.column_stack([excerpt.relation[lines], excerpt.nodes[excerpt.pairs[lines]]])
    mine, which = graph.columns_of_all(keys)
    order = np.argsort(columns)
    at = np.searchsorted(columns[order], mine)
    found: dict[int, dict[str, None]] = {}
    for column, place, row in sorted(zip(mine, at, which, strict=True)):
        # In a graph of several types, not every relation need have the attribute.
        if place < len(order) and columns[order[place]] == column:
            # Copies of an edge, and its two directions, mostly have the same value.
            found.setdefault(int(lines[row]), {})[_told(values[order[place]])] = None
    return {
        line: ", ".join([*list(said)[:VALUES], *(["…"] if len(said) > VALUES else [])]) for line, said in found.items()
    }


def _told(value: np.generic) -> str:
    number = value.item()
    if isinstance(number, float):
        return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.6g}"
    return shortened(str(number))
