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
from butfor.errors import InputError
from butfor.graph.fingerprint import text_fingerprint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.space import EditSpace
    from butfor.graph.edge_keys import Edge, EdgeKey, Relation
    from butfor.graph.graph import Graph
    from butfor.graph.neighbourhood import Neighbourhood

__all__ = ["Rules"]


@dataclass(frozen=True, eq=False)
class Rules:
    """What an edit space means on one graph.

    Attributes:
        graph: the graph.
        space: the rules as the user gave them.
        kept: edges that may not be deleted.
        allowed: if given, the only edges that may be deleted.
        relations: if given, the only relations whose edges may be deleted.
        group_of: the group that an edge is deleted with.
        price_of: the cost of an edge's deletion or addition, where it is not 1.
        given_pairs: the pairs of nodes that the user allows to be joined, with their costs.
        joinable: the relations that edges may be added to.
        carries: what an added edge carries; where that depends on its relation, by the names of all relations.
    """

    graph: Graph
    space: EditSpace
    kept: set[EdgeKey]
    allowed: set[EdgeKey] | None
    relations: set[int] | None
    group_of: dict[EdgeKey, str]
    price_of: dict[EdgeKey, float]
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
        kept = _named_edges(space.protected, "protected", graph)
        allowed = None if space.allowed is None else _named_edges(space.allowed, "allowed", graph)
        relations = None if space.relations is None else {graph.relation(one) for one in space.relations}
        group_of: dict[EdgeKey, str] = {}
        for name, group in space.named_groups.items():
            if not group:
                raise InputError(f"the group {name!r} is empty")
            for edge in group:
                (key,) = _named_edges([edge], f"the group {name!r}", graph)
                if group_of.setdefault(key, name) != name:
                    raise InputError(f"the edge {_shown(edge)} is in two groups, {group_of[key]!r} and {name!r}")
        pairs = _new_pairs(space, graph)
        price_of = _prices(space, graph, pairs)
        for rule in space.feature_rules:
            rule.check(graph)
        joinable = _joinable(space, graph, pairs)
        carries = _carries(space, graph)
        if space.add:
            _check_carried(carries, graph, joinable, model_reads)
        given = {key: price_of.get(key, 1.0) for key in pairs}
        rules = cls(graph, space, kept, allowed, relations, group_of, price_of, given, joinable, carries)
        # A group of which one edge must stay stays as a whole.
        staying = {name for key, name in group_of.items() if not rules.may_delete(key)}
        kept.update(key for key, name in group_of.items() if name in staying)
        return rules

    def may_delete(self, key: EdgeKey) -> bool:
        """Whether an edge may be deleted."""
        fits = (self.allowed is None or key in self.allowed) and (self.relations is None or key[0] in self.relations)
        return self.space.delete and fits and key not in self.kept

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
            return sorted({graph.edge_key(edge) for edge in edges})

        rules = {
            "protected": keys(space.protected),
            "allowed": None if space.allowed is None else keys(space.allowed),
            "costs": sorted(
                (one if isinstance(one, str) else str(graph.edge_key(one)), float(cost))
                for one, cost in space.costs.items()
            ),
            "delete": space.delete,
            "relations": None if self.relations is None else sorted(map(graph.relation, space.relations or ())),
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
        edges, edge_of = _edges_of(self.graph, near)
        if self.space.is_default:
            return Edits(self.graph, near, edges, np.ones(len(edges.edit)), edge_of, len(edges.edit))
        ids = near.nodes[edges.ends]
        keys = [(r, u, v) for r, (u, v) in zip(edges.relation.tolist(), ids.tolist(), strict=True)]
        number, costs, groups = self._numbered(keys)
        mine = number >= 0
        outside, deleted_outside = self._outside(set(keys), groups)
        added = _additions(near, joins or {}, len(costs))
        costs += [float((joins or {})[key]) for key in added[1]]
        changes, prices = self._changes(near, around or near, len(costs))
        return Edits(
            graph=self.graph,
            neighbourhood=near,
            deleted=Deletions(edges.ends[mine], edges.relation[mine], number[mine]),
            costs=np.array(costs + prices, dtype=np.float64),
            edit_of=np.append(number, -1)[edge_of],
            num_edges=len(keys),
            added=added[0],
            changes=changes,
            carries=self.carries,
            outside=outside,
            deleted_outside=deleted_outside,
            max_edits=self.space.max_edits,
            keep_connected=self.space.keep_connected,
        )

    def _numbered(self, keys: list[EdgeKey]) -> tuple[NDArray[np.int64], list[float], dict[str, int]]:
        """The number of each edge's deletion, -1 where it must stay; the costs by number; the numbers of groups."""
        number = np.full(len(keys), -1)
        costs: list[float] = []
        groups: dict[str, int] = {}
        for i, key in enumerate(keys):
            if not self.may_delete(key):
                continue
            name = self.group_of.get(key)
            if name is None or name not in groups:
                if name is not None:
                    groups[name] = len(costs)
                number[i] = len(costs)
                costs.append(self.price_of.get(key, 1.0) if name is None else float(self.space.costs.get(name, 1.0)))
            else:
                number[i] = groups[name]
        return number, costs, groups

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


def _named_edges(edges: Iterable[Edge], role: str, graph: Graph) -> set[EdgeKey]:
    """The keys of edges that a rule names.

    Raises:
        InputError: one of them is not in the graph, or is a self-loop.
    """
    keys = set()
    for edge in edges:
        key = graph.edge_key(edge)
        if not graph.has_edge(key):
            raise InputError(f"{role} names the edge {_shown(edge)}, which is not in this graph")
        if key[1] == key[2]:
            raise InputError(f"{role} names the self-loop {_shown(edge)}; a self-loop is never deleted")
        keys.add(key)
    return keys


def _new_pairs(space: EditSpace, graph: Graph) -> list[EdgeKey]:
    """The given pairs that may be joined, each once."""
    if isinstance(space.add, Within):
        return []
    keys = list(dict.fromkeys(map(graph.edge_key, space.add)))
    for key in keys:
        if graph.has_edge(key):
            raise InputError(f"add names {_shown(graph.edge(key))}, which is an edge of this graph already")
        if key[1] == key[2]:
            raise InputError(f"add names {_shown(graph.edge(key))}; a node cannot be joined to itself")
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


def _prices(space: EditSpace, graph: Graph, pairs: list[EdgeKey]) -> dict[EdgeKey, float]:
    """The costs of edges and pairs by their keys; those of groups are checked and stay with their names."""
    prices: dict[EdgeKey, float] = {}
    for priced, cost in space.costs.items():
        if isinstance(priced, str):
            if priced not in space.named_groups:
                raise InputError(f"costs names the group {priced!r}, which is not among the groups")
            check_cost(cost, f"the group {priced!r}")
            continue
        key = graph.edge_key(priced)
        if key not in pairs:
            _named_edges([priced], "costs", graph)
        check_cost(cost, f"edge {_shown(priced)}")
        prices[key] = cost
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


def _edges_of(graph: Graph, near: Neighbourhood) -> tuple[Deletions, NDArray[np.int64]]:
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


def _shown(edge: Edge) -> str:
    if len(edge) == 3:
        return f"{edge[1]}–{edge[2]} of {edge[0]}"
    return f"{edge[0]}–{edge[1]}"
