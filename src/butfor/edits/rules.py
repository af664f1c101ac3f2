"""An edit space on one graph: every rule checked, every edge by its key; and the edits that it allows a target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from butfor.boundary.arguments import check_whole
from butfor.edits.addition import Additions, Within
from butfor.edits.change import Changes
from butfor.edits.costs import check_cost
from butfor.edits.deletion import Deletions
from butfor.edits.edits import Edits
from butfor.edits.per_edge import EdgeColumns, PerEdge, shown_edge
from butfor.edits.staying import apart, staying
from butfor.errors import InputError
from butfor.graph.fingerprint import array_fingerprint, text_fingerprint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.space import EditSpace
    from butfor.edits.staying import Staying
    from butfor.graph.edge_keys import Edge, EdgeKey, Relation
    from butfor.graph.graph import Graph
    from butfor.graph.neighbourhood import Neighbourhood

__all__ = ["Rules", "counted_edges"]


@dataclass(frozen=True, eq=False)
class Rules:
    """What an edit space means on one graph.

    Attributes:
        graph: the graph.
        space: the rules as the user gave them.
        columns: the columns of its edges.
        stays: which columns' edges may not be deleted.
        prices: for each column, the cost of its edge's deletion; None where all cost 1.
        group_of: the group that an edge is deleted with.
        given_pairs: the pairs of nodes that the user allows to be joined, with their costs.
        joinable: the relations that edges may be added to.
        carries: what an added edge carries; where that depends on its relation, by the names of all relations.
    """

    graph: Graph
    space: EditSpace
    columns: EdgeColumns
    stays: Staying
    prices: NDArray[np.float64] | None
    group_of: dict[EdgeKey, str]
    given_pairs: dict[EdgeKey, float]
    joinable: set[int]
    carries: dict[str, Any]

    @classmethod
    def of(cls, space: EditSpace, graph: Graph, model_reads: Collection[str] = ()) -> Rules:
        """Check the rules against a graph and, for added edges, what the model reads of its edges.

        Raises:
            InputError: a rule names what is not in the graph, contradicts another, or does not say what an added edge
                carries.
        """
        if space.max_edits is not None:
            check_whole(space.max_edits, "max_edits", 1)
        columns = EdgeColumns(graph)
        stays = staying(space, columns)
        group_of: dict[EdgeKey, str] = {}
        for name, group in space.named_groups.items():
            if not group:
                raise InputError(f"the group {name!r} is empty")
            members = columns.named(group, f"the group {name!r}")
            for edge in group:
                key = graph.edge_key(edge)
                if group_of.setdefault(key, name) != name:
                    raise InputError(f"the edge {shown_edge(edge)} is in two groups, {group_of[key]!r} and {name!r}")
            # A group of which one edge must stay stays as a whole.
            if stays[members].any():
                stays = stays.more(members)
        given = dict.fromkeys(_new_pairs(space, graph), 1.0)
        prices = _prices(space, columns, given)
        for rule in space.feature_rules:
            rule.check(graph)
        joinable = _joinable(space, graph, given)
        carries = _carries(space, graph)
        if space.add:
            _check_carried(carries, graph, joinable, model_reads)
        return cls(graph, space, columns, stays, prices, group_of, given, joinable, carries)

    @property
    def only_deletes(self) -> bool:
        """Whether edges may be deleted and nothing else may happen."""
        return not self.space.add and not self.space.feature_rules

    @property
    def farthest(self) -> int:
        """The largest distance from the target, in hops, at which edges may be added or features changed."""
        hops = [self.space.add.hops] if isinstance(self.space.add, Within) else []
        return max([0, *hops, *(rule.within for rule in self.space.feature_rules)])

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of the rules, the same however they are written down; empty where there are none."""
        space, graph = self.space, self.graph
        if space.is_default:
            return ""

        def keys(edges: Iterable[Edge]) -> list[EdgeKey]:
            return sorted({(r, u, v) for r, u, v in graph.edge_keys(list(edges)).tolist()})

        def chosen(items: Iterable[Any], role: str) -> list[Any]:
            edges, many = apart(items)
            return [*keys(edges), *(array_fingerprint(self.columns.mask(one, role)) for one in many)]

        many = {one: cost for one, cost in space.cost_of.items() if isinstance(cost, PerEdge)}
        single = {one: cost for one, cost in space.cost_of.items() if one not in many and not isinstance(one, str)}
        costs = [(one, float(cost)) for one, cost in space.cost_of.items() if isinstance(one, str)]
        names = [str(tuple(key)) for key in graph.edge_keys(list(single)).tolist()]
        costs += zip(names, map(float, single.values()), strict=True)
        hashed = [(str(one), array_fingerprint(*self.columns.costs(cost))) for one, cost in many.items()]
        rules = {
            "protected": chosen(space.protected, "protected"),
            "allowed": None if space.allowed is None else chosen(space.allowed, "allowed"),
            "costs": [*sorted(costs), *sorted(hashed)],
            "delete": space.delete,
            "relations": None if space.relations is None else sorted(map(graph.relation, space.relations)),
            "groups": sorted(
                (name if space.names_groups else "", keys(group)) for name, group in space.named_groups.items()
            ),
            "add": repr(space.add) if isinstance(space.add, Within) else keys(space.add),
            "carries": sorted((name, _plain(value)) for name, value in self.carries.items()),
            "features": sorted(repr(rule.plain) for rule in space.feature_rules),
            "limits": (space.max_edits, space.keep_connected),
        }
        if isinstance(space.add, Within) and space.add.relations is not None:
            rules["joinable"] = sorted(self.joinable)
        return text_fingerprint(repr(rules))

    def joins(self, near: Neighbourhood) -> tuple[dict[EdgeKey, float], str]:
        """The pairs that may be joined around a target, with their costs, and a note for the user.

        Only the nodes of ``near`` and their distances count.
        """
        add = self.space.add
        return add.pairs(self.graph, near, self.joinable) if isinstance(add, Within) else (self.given_pairs, "")

    def edits(
        self,
        near: Neighbourhood,
        around: Neighbourhood | None = None,
        joins: Mapping[EdgeKey, float] | None = None,
    ) -> Edits:
        """The allowed edits of one neighbourhood: deletions in the order of their end nodes, then the rest.

        ``around`` tells how far nodes are from the target before anything is joined.
        """
        edges, edge_of = counted_edges(self.graph, near)
        if self.space.is_default:
            return Edits(self.graph, near, edges, np.ones(len(edges.edit)), edge_of, len(edges.edit))
        keys: list[EdgeKey] = []
        if self.group_of:
            ids = near.nodes[edges.ends]
            keys = [(r, u, v) for r, (u, v) in zip(edges.relation.tolist(), ids.tolist(), strict=True)]
        number, deleting, groups = self._numbered(near, edge_of, len(edges.edit), keys)
        mine = number >= 0
        outside, deleted_outside = self._outside(set(keys), groups)
        added = _additions(near, joins or {}, len(deleting))
        adding = [float((joins or {})[key]) for key in added[1]]
        changes, changing = self._changes(near, around or near, len(deleting) + len(adding))
        return Edits(
            graph=self.graph,
            neighbourhood=near,
            deleted=Deletions(edges.ends[mine], edges.relation[mine], number[mine]),
            costs=np.concatenate([deleting, adding, changing]),
            edit_of=np.append(number, -1)[edge_of],
            num_edges=len(number),
            added=added[0],
            changes=changes,
            carries=self.carries,
            outside=outside,
            deleted_outside=deleted_outside,
            max_edits=self.space.max_edits,
            keep_connected=self.space.keep_connected,
        )

    def _numbered(
        self, near: Neighbourhood, edge_of: NDArray[np.int64], edges: int, keys: Sequence[EdgeKey]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], dict[str, int]]:
        """The number of each edge's deletion, -1 where it must stay; the costs by number; the numbers of groups.

        ``keys`` are those of the edges; they are needed where there are groups.
        """
        inside = edge_of >= 0
        columns, owner = near.columns[inside], edge_of[inside]
        goes, costs = np.empty(edges, dtype=bool), np.ones(edges)
        goes[owner] = ~self.stays[columns]
        if self.prices is not None:
            costs[owner] = self.prices[columns]
        # A group is known by its first edge.
        first, begins = np.arange(edges), dict[str, int]()
        for i, key in enumerate(keys):
            name = self.group_of.get(key)
            if name is not None and goes[i]:
                first[i] = begins.setdefault(name, i)
                costs[first[i]] = float(self.space.cost_of.get(name, 1.0))
        kept, edit = np.unique(first[goes], return_inverse=True)
        number = np.full(edges, -1)
        number[goes] = edit
        return number, costs[kept], {name: int(number[i]) for name, i in begins.items()}

    def _changes(self, near: Neighbourhood, around: Neighbourhood, first: int) -> tuple[Changes, list[float]]:
        """The changes that the rules allow, numbered from ``first``, and their costs."""
        found = [rule.changes(self.graph, near, around) for rule in self.space.feature_rules]
        if not found:
            return Changes.none(), []
        node, feature, before, after = (np.concatenate(part) for part in zip(*found, strict=True))
        counts = [len(part[0]) for part in found]
        costs = np.repeat([float(rule.cost) for rule in self.space.feature_rules], counts)
        # The same change by two rules is one edit, at the lower cost.
        order = np.lexsort([costs, after, feature, node])
        new = np.ones(len(order), dtype=bool)
        keys = np.stack([node, feature, after])[:, order]
        new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
        kept = np.sort(order[new])
        numbers = first + np.arange(len(kept))
        return Changes(node[kept], feature[kept], before[kept], after[kept], numbers), costs[kept].tolist()

    def _outside(
        self, inside: set[EdgeKey], groups: Mapping[str, int]
    ) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], Deletions]:
        """The members of groups that lie outside the neighbourhood."""
        columns: list[int] = []
        owners: list[int] = []
        keys: list[EdgeKey] = []
        edits: list[int] = []
        for key, name in sorted(self.group_of.items()):
            if name in groups and key not in inside:
                found = self.graph.columns_of(key)
                columns += found
                owners += [groups[name]] * len(found)
                keys.append(key)
                edits.append(groups[name])
        ends = np.array([key[1:] for key in keys], dtype=np.int64).reshape(-1, 2)
        relation = np.array([key[0] for key in keys], dtype=np.int64)
        apart = np.array(columns, dtype=np.int64), np.array(owners, dtype=np.int64)
        return apart, Deletions(ends, relation, np.array(edits, dtype=np.int64))


def _new_pairs(space: EditSpace, graph: Graph) -> list[EdgeKey]:
    """The given pairs that may be joined, each once."""
    if isinstance(space.add, Within):
        return []
    keys = list(dict.fromkeys(map(graph.edge_key, space.add)))
    for key in keys:
        if graph.has_edge(key):
            raise InputError(f"add names {shown_edge(graph.edge(key))}, which is an edge of this graph already")
        if key[1] == key[2]:
            raise InputError(f"add names {shown_edge(graph.edge(key))}; a node cannot be joined to itself")
    return keys


def _joinable(space: EditSpace, graph: Graph, pairs: Iterable[EdgeKey]) -> set[int]:
    """The relations that edges may be added to."""
    if not isinstance(space.add, Within):
        return {key[0] for key in pairs}
    named = space.relations if space.add.relations is None else space.add.relations
    if named is not None:
        return {graph.relation(one) for one in named}
    return {0} if graph.types is None else set(graph.types.forward.tolist())


def _carries(space: EditSpace, graph: Graph) -> dict[str, Any]:
    """What an added edge carries, by field; where relations differ, for each of them and for its reverse.

    Raises:
        InputError: a relation is not in the graph.
    """
    carries: dict[str, Any] = {}
    for name, value in space.carries.items():
        if not isinstance(value, dict):
            carries[name] = value
            continue
        numbers = {graph.relation(relation): given for relation, given in value.items()}
        assert graph.types is not None
        relations = zip(graph.types.relations, graph.types.forward.tolist(), strict=True)
        # One that is named itself has the last word.
        carries[name] = {one: numbers[forward] for one, forward in relations if forward in numbers} | value
    return carries


def _plain(value: Any) -> Any:
    """What an added edge carries as plain data, whatever it was given as."""
    if isinstance(value, dict):
        return sorted((relation, _plain(one)) for relation, one in value.items())
    return torch.as_tensor(value).tolist()


def _prices(space: EditSpace, columns: EdgeColumns, given_pairs: dict[EdgeKey, float]) -> NDArray[np.float64] | None:
    """The cost of each column's edge, None where all cost 1; those of pairs that may be joined are filled in.

    The costs of groups are checked and stay with their names.
    """
    graph = columns.graph
    if not space.cost_of:
        return None
    prices = np.ones(graph.edge_index.shape[1])
    single: dict[Edge, float] = {}
    for priced, cost in space.cost_of.items():
        if isinstance(cost, PerEdge):
            priced_columns, costs = columns.costs(cost)
            prices[priced_columns] = costs[priced_columns]
        elif not isinstance(priced, str):
            single[priced] = cost
        elif priced not in space.named_groups:
            raise InputError(f"costs names the group {priced!r}, which is not among the groups")
        else:
            check_cost(cost, f"the group {priced!r}")
    if given_pairs:
        for edge in [edge for edge in single if graph.edge_key(edge) in given_pairs]:
            check_cost(single[edge], f"edge {shown_edge(edge)}")
            given_pairs[graph.edge_key(edge)] = single.pop(edge)
    found, which = columns.found(single, "costs")
    costs = np.array(list(single.values()), dtype=np.float64)
    for bad in np.flatnonzero(~((costs > 0) & np.isfinite(costs)))[:1]:
        edge, cost = list(single.items())[bad]
        check_cost(cost, f"edge {shown_edge(edge)}")
    prices[found] = costs[which]
    return prices


def _check_carried(
    carries: Mapping[str, Any], graph: Graph, joinable: Iterable[int], model_reads: Collection[str]
) -> None:
    """Refuse additions where it is not known what an added edge carries.

    Raises:
        InputError: the model reads something of its edges that was not given for added ones.
    """
    for name, value in carries.items():
        for one in value.values() if isinstance(value, dict) else [value]:
            if not bool(torch.as_tensor(one).isfinite().all()):
                raise InputError(f"carries gives {name} the value {one}; give finite numbers")
    for relation in sorted({*joinable, *(int(graph.reverse[one]) for one in joinable)} - {-1}):
        known = graph.edge_fields(relation)
        for name in model_reads:
            if name in known:
                _check_shape(
                    carries, name, known[name], None if graph.types is None else graph.types.relations[relation]
                )


def _check_shape(carries: Mapping[str, Any], name: str, values: Tensor, relation: Relation | None) -> None:
    """Refuse what does not fit beside the values of a field that edges have."""
    said = carries.get(name)
    said = said.get(relation) if isinstance(said, dict) else said
    edges = "edges" if relation is None else f"edges of {relation}"
    if said is None and not (name == "edge_weight" and values.dim() == 1):
        an_edge = "an added edge" if relation is None else f"an added edge of {relation}"
        raise InputError(
            f"the model reads {name}, and nothing says what {an_edge} carries there; give "
            f"EditSpace(carries={{{name!r}: ...}}) with a value of shape {tuple(values.shape[1:])}"
        )
    if said is not None and torch.as_tensor(said).shape != values.shape[1:]:
        raise InputError(
            f"carries gives {name} the shape {tuple(torch.as_tensor(said).shape)}, but {edges} have "
            f"{tuple(values.shape[1:])}"
        )


def counted_edges(graph: Graph, near: Neighbourhood) -> tuple[Deletions, NDArray[np.int64]]:
    """The edges of a neighbourhood as a person counts them, and the number of each column's edge; -1 for self-loops."""
    first, second, relation = graph.edges_of(near)
    loops = first == second
    # An edge as one number: sorting these is much quicker than sorting rows.
    size = near.num_nodes
    number = first * size + second if relation is None else (relation * size + first) * size + second
    keys, edge_of = np.unique(number[~loops], return_inverse=True)
    heads, tails = np.divmod(keys, size)
    edges = Deletions(np.stack([heads % size, tails], axis=1), heads // size, np.arange(len(keys)))
    numbers = np.full(len(first), -1, dtype=np.int64)
    numbers[~loops] = edge_of
    return edges, numbers


def _additions(near: Neighbourhood, joins: Mapping[EdgeKey, float], first: int) -> tuple[Additions, list[EdgeKey]]:
    """The pairs of a neighbourhood that may be joined, numbered from ``first``, and their keys."""
    position = {int(node): at for at, node in enumerate(near.nodes)} if joins else {}
    keys = [key for key in joins if key[1] in position and key[2] in position]
    ends = np.array([(position[u], position[v]) for _, u, v in keys], dtype=np.int64).reshape(-1, 2)
    relation = np.array([key[0] for key in keys], dtype=np.int64)
    return Additions(ends, first + np.arange(len(keys)), relation), keys
