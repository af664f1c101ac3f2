"""Rules for many edges at once: one value for each column of ``edge_index``, as an array or by an attribute's name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from butfor.boundary.json_values import shown
from butfor.edits.costs import check_cost
from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from butfor.graph.edge_keys import Edge, EdgeKey, Relation
    from butfor.graph.graph import Graph

__all__ = ["EdgeColumns", "PerEdge", "is_per_edge", "shown_edge"]


def is_per_edge(value: Any) -> bool:
    """Whether this is a name, or an array with one value for each column; rows of pairs are a list of edges."""
    if isinstance(value, (str, PerEdge)):
        return True
    return isinstance(value, (torch.Tensor, np.ndarray)) and value.ndim != 2 and (value.ndim != 1 or len(value) > 0)


@dataclass(frozen=True, eq=False)
class PerEdge:
    """One value for each column of ``edge_index``.

    Attributes:
        values: the values, or the name of the edge attribute that has them.
        relation: in a graph of several node types, the relation whose columns are meant; None for those of all.
    """

    values: NDArray[Any] | str
    relation: Relation | None = None

    @classmethod
    def of(cls, given: Any, role: str, relation: Relation | None = None) -> PerEdge:
        """From a name, an array or a tensor.

        Raises:
            InputError: it is something else.
        """
        if isinstance(given, (PerEdge, str)):
            return given if isinstance(given, PerEdge) else cls(given, relation)
        if not isinstance(given, (torch.Tensor, np.ndarray)):
            raise InputError(f"{role} is {shown(given)}; give one value for each edge, or the name of an attribute")
        return cls(_as_array(given, role), relation)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PerEdge) and self._plain == other._plain

    def __hash__(self) -> int:
        return hash(self._plain)

    @property
    def _plain(self) -> tuple[Any, ...]:
        values = self.values
        held = values if isinstance(values, str) else (values.dtype.str, values.shape, values.tobytes())
        return self.relation, held

    def on(self, graph: Graph, role: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The columns of the graph that have a value, and their values.

        Raises:
            InputError: there is no such attribute or relation, or not one value for each column.
        """
        if graph.types is None:
            if self.relation is not None:
                raise InputError(f"{role} names the relation {self.relation}, but this graph has one type of edges")
            return self._part(graph.data, role, 0, graph.edge_index.shape[1])
        if self.relation is None and not isinstance(self.values, str):
            raise InputError(f"{role} is an array; in a graph of several node types give one for each relation")
        if self.relation is not None:
            graph.relation(self.relation)
            chosen = [self.relation]
        else:
            chosen = [one for one in graph.types.relations if self.values in graph.data[one]]
        if not chosen:
            raise InputError(f"{role} names {self.values!r}, which is no attribute of any relation of this graph")
        parts = []
        for one in chosen:
            first, last = graph.types.edge_starts[graph.types.relations.index(one) :][:2]
            parts.append(self._part(graph.data[one], f"{role} of {one}", int(first), int(last)))
        return np.concatenate([columns for columns, _ in parts]), np.concatenate([values for _, values in parts])

    def _part(self, store: Any, role: str, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        values, edges = self.values, last - first
        if isinstance(values, str):
            held = store.get(values)
            if held is None:
                known = ", ".join(sorted(name for name in store.keys() if _fits(store[name], edges)))  # noqa: SIM118
                raise InputError(
                    f"{role} names the edge attribute {values!r}, which this graph has not"
                    + (f" (it has {known})" if known else "")
                )
            role = f"{role}, the attribute {values!r},"
            if not isinstance(held, (torch.Tensor, np.ndarray)):
                raise InputError(f"{role} is {shown(held)}; give a tensor with one value for each edge")
            values = _as_array(held, role)
        if len(values) != edges:
            raise InputError(f"{role} has {len(values)} values; give one for each of the {edges} columns of edge_index")
        return np.arange(first, last), values


@dataclass(frozen=True, eq=False)
class EdgeColumns:
    """The columns of a graph's edges, to look up what rules say of many edges at once."""

    graph: Graph

    def named(self, edges: Iterable[Edge], role: str) -> NDArray[np.int64]:
        """All columns of the edges that a rule names.

        Raises:
            InputError: one of them is not in the graph, or is a self-loop.
        """
        return self.found(edges, role)[0]

    def found(self, edges: Iterable[Edge], role: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same, and for each column the number of its edge among the given ones; of those that are equal, the last.

        Raises:
            InputError: as `named`.
        """
        edges = list(edges)
        keys = self.graph.edge_keys(edges)
        columns, which = self.graph.columns_of_all(keys)
        missing = np.ones(len(edges), dtype=bool)
        missing[which] = False
        if missing.any():  # an edge that is named twice is found once
            missing &= ~np.isin(self.graph.edge_numbers(keys), self.graph.edge_numbers(keys[~missing]))
        loops = keys[:, 1] == keys[:, 2]
        for number in np.flatnonzero(missing | loops)[:1]:
            edge = shown_edge(edges[number])
            if missing[number]:
                raise InputError(f"{role} names the edge {edge}, which is not in this graph")
            raise InputError(f"{role} names the self-loop {edge}; a self-loop is never deleted")
        return columns, which

    def mask(self, given: PerEdge, role: str) -> NDArray[np.bool_]:
        """True for the columns of edges that an array of True and False, or such an attribute, names.

        Raises:
            InputError: it is of another type, does not fit, or says two things of one edge.
        """
        columns, values = given.on(self.graph, role)
        if values.dtype != bool:
            raise InputError(
                f"{role} is of dtype {values.dtype}; give True or False for each edge, such as values.bool()"
            )
        mask: NDArray[np.bool_] = self._agreed(columns, values, role)[1]
        return mask

    def costs(self, given: PerEdge) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Which columns have a cost, and the cost of each.

        Raises:
            InputError: it is no positive number, does not fit, or there are two for one edge.
        """
        columns, values = given.on(self.graph, "costs")
        if values.dtype.kind not in "iuf":
            raise InputError(f"costs is of dtype {values.dtype}; give a number for each edge")
        values = values.astype(np.float64)
        bad = np.flatnonzero(~((values > 0) & np.isfinite(values)) & ~self._loops[columns])
        for place in bad[:1]:
            check_cost(float(values[place]), f"edge {self._told(columns[place])}")
        return self._agreed(columns, values, "costs")

    def _agreed(self, columns: NDArray[np.int64], values: NDArray[Any], role: str) -> tuple[NDArray[np.bool_], Any]:
        """Which columns are of an edge with a value, and that value.

        Raises:
            InputError: the columns of an edge have different values.
        """
        edge_of = self._edge_of
        of_edge = np.zeros(edge_of.max(initial=-1) + 1, dtype=values.dtype)
        has_value = np.zeros(len(of_edge), dtype=bool)
        of_edge[edge_of[columns]] = values
        has_value[edge_of[columns]] = True
        clash = np.flatnonzero((of_edge[edge_of[columns]] != values) & ~self._loops[columns])
        for place in clash[:1]:
            one, other = values[place].item(), of_edge[edge_of[columns[place]]].item()
            raise InputError(
                f"{role} gives the edge {self._told(columns[place])} two values, {one} and {other}; give all columns "
                "of an edge the same, in both directions"
            )
        return has_value[edge_of], of_edge[edge_of]

    @cached_property
    def _edge_of(self) -> NDArray[np.int64]:
        """The number of each column's edge."""
        keys = self.graph.keys_of_columns(np.arange(self.graph.edge_index.shape[1]))
        return np.unique(self.graph.edge_numbers(keys), return_inverse=True)[1]

    @cached_property
    def _loops(self) -> NDArray[np.bool_]:
        source, target = self.graph.edge_index
        loops: NDArray[np.bool_] = source == target
        return loops

    def _told(self, column: int | np.integer) -> str:
        (key,) = self.graph.keys_of_columns(np.array([column])).tolist()
        types = self.graph.types
        if types is None:
            return f"{key[1]}–{key[2]}"
        return shown_edge((types.relations[key[0]], types.local(key[1])[1], types.local(key[2])[1]))


def shown_edge(edge: Edge | EdgeKey) -> str:
    """An edge as a message names it."""
    if len(edge) == 3:
        return f"{edge[1]}–{edge[2]} of {edge[0]}"
    return f"{edge[0]}–{edge[1]}"


def _as_array(given: Any, role: str) -> NDArray[Any]:
    """A tensor or array of one value for each edge, as an array."""
    try:
        if isinstance(given, torch.Tensor):
            given = given.detach().cpu()
            given = (given.float() if given.dtype == torch.bfloat16 else given).numpy()  # NumPy does not know it
    except (RuntimeError, TypeError, NotImplementedError):
        raise InputError(f"{role} is a tensor whose values cannot be read; give a plain one") from None
    array: NDArray[Any] = np.array(given)  # a copy: what a rule says must not change with the user's array
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1:
        raise InputError(f"{role} has shape {array.shape}; give one value for each column of edge_index")
    return array


def _fits(value: Any, edges: int) -> bool:
    return isinstance(value, (torch.Tensor, np.ndarray)) and value.ndim > 0 and value.shape[0] == edges
