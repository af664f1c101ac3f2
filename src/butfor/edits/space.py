"""The edit space: what may be changed about a graph, at what cost, and what belongs together."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from butfor.checks import as_items, check_whole, is_whole
from butfor.edits.candidates import Features, Within, check_cost
from butfor.edits.edits import Changes, Edits, Links
from butfor.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.edits.edits import Relation
    from butfor.graph.graph import Graph, Link, LinkKey, Neighbourhood

__all__ = ["EditSpace", "Features", "Within"]


@dataclass(frozen=True)
class EditSpace:
    """What may be changed, from plain data. Unless something is said, every edge may be deleted at cost 1.

    Self-loops are no edges in this sense: a node keeps them, so that a proof says nothing about graphs without them.
    An edge is a pair of node ids; in an undirected graph their order does not matter. In a graph of several
    node types it is ``(relation, source, target)`` with the ids that nodes have within their types.

    Attributes:
        protected: edges that stay.
        allowed: if given, the only edges that may go.
        costs: what the deletion (or the addition) of an edge costs, 1 where nothing is said; a group by its name.
        delete: False if no edge may be deleted.
        relations: if given, the only edge types that may go; both directions of an edge count as one type.
        groups: edges that go together or not at all: one edit, at cost 1 unless ``costs`` names the group.
        add: pairs of nodes that may be joined, or `Within`; none unless given.
        carries: what an added edge carries where edges carry something: ``{"edge_attr": [0.0, 1.0]}``. An added edge
            has weight 1 where nothing is said.
        features: which features may change; none unless given.
        max_edits: how many edits an answer may have at most; a group is one edit.
        keep_connected: no answer may cut off one part of the target's neighbourhood from another. Paths that leave
            the neighbourhood do not count.
    """

    protected: Collection[Link] = ()
    allowed: Collection[Link] | None = None
    costs: Mapping[Any, float] = field(default_factory=dict)
    delete: bool = True
    relations: Collection[Relation] | None = None
    groups: Mapping[str, Collection[Link]] | Sequence[Collection[Link]] = ()
    add: Collection[tuple[int, int]] | Within = ()
    carries: Mapping[str, float | Sequence[float]] = field(default_factory=dict)
    features: Features | Sequence[Features] = ()
    max_edits: int | None = None
    keep_connected: bool = False

    def __post_init__(self) -> None:
        # Written once and for all: an iterator would be used up by the first look, an array has no truth.
        set_ = object.__setattr__
        set_(self, "protected", _links(self.protected, "protected"))
        if self.allowed is not None:
            set_(self, "allowed", _links(self.allowed, "allowed"))
        given = tuple(self.costs.items()) if isinstance(self.costs, Mapping) else as_items(self.costs, "costs")
        if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in given):
            raise InputError(f"costs is {self.costs!r}; give {{(3, 17): 2.5}}, or a list of (edge, cost)")
        set_(self, "costs", {one if isinstance(one, str) else _link(one, "costs"): cost for one, cost in given})
        if isinstance(self.groups, Mapping):
            set_(
                self, "groups", {str(name): _links(group, f"the group {name!r}") for name, group in self.groups.items()}
            )
        else:
            set_(self, "groups", tuple(_links(group, "groups") for group in as_items(self.groups, "groups")))
        if not isinstance(self.add, Within):
            set_(self, "add", _links(self.add, "add"))
        rules = (self.features,) if isinstance(self.features, Features) else as_items(self.features, "features")
        if not all(isinstance(rule, Features) for rule in rules):
            raise InputError(f"features is {self.features!r}; give butfor.Features(...), or several")
        set_(self, "features", tuple(rules))
        if self.relations is not None:
            set_(self, "relations", tuple(_relation(one) for one in as_items(self.relations, "relations")))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> EditSpace:
        """From what JSON can hold: ``add`` may be ``{"hops": 2}``, ``features`` ``{"values": "flip"}`` or several such,
        and ``costs`` a list of ``[edge, cost]``.

        Raises:
            InputError: a field is unknown or makes no sense.
        """
        if not isinstance(plain, Mapping):
            raise InputError(f"this is no edit space: {plain!r}; give a dictionary of its fields")
        unknown = sorted(map(str, set(plain) - {item.name for item in fields(cls)}))
        if unknown:
            raise InputError(f"an edit space has no field {unknown[0]!r}")
        given = dict(plain)
        try:
            if isinstance(given.get("add"), Mapping):
                given["add"] = Within(**given["add"])
            rules = given.get("features", ())
            given["features"] = [Features(**rule) for rule in ([rules] if isinstance(rules, Mapping) else rules)]
            return cls(**given)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
            raise InputError(f"this is no edit space: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        # What was worked out for a graph stays behind with it.
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    def _rules(self) -> tuple[Features, ...]:
        assert isinstance(self.features, tuple)
        return self.features

    @cached_property
    def _groups(self) -> dict[str, list[Link]]:
        if isinstance(self.groups, Mapping):
            return {name: list(group) for name, group in self.groups.items()}
        return {f"group {number}": list(group) for number, group in enumerate(self.groups)}

    @cached_property
    def _plain(self) -> bool:
        """Whether every edge may go at cost 1 and nothing else may happen."""
        ruled = self.protected or self.costs or self.groups or self.add or self.features or self.keep_connected
        limited = self.allowed is not None or self.relations is not None or self.max_edits is not None
        return self.delete and not ruled and not limited

    def fingerprint(self, graph: Graph) -> str:
        """A short hash of the rules, however they are written down; empty where there are none."""
        if self._plain:
            return ""

        def keys(links: Collection[Link]) -> list[LinkKey]:
            return sorted({graph.link_key(link) for link in links})

        given = isinstance(self.groups, Mapping)
        rules = {
            "protected": keys(self.protected),
            "allowed": None if self.allowed is None else keys(self.allowed),
            "costs": sorted(
                (one if isinstance(one, str) else str(graph.link_key(one)), float(cost))
                for one, cost in self.costs.items()
            ),
            "delete": self.delete,
            "relations": None if self.relations is None else sorted(map(graph.relation, self.relations)),
            "groups": sorted((name if given else "", keys(group)) for name, group in self._groups.items()),
            "add": repr(self.add) if isinstance(self.add, Within) else keys(self.add),
            "carries": sorted((name, torch.as_tensor(value).tolist()) for name, value in self.carries.items()),
            "features": sorted(repr(rule.plain) for rule in self._rules),
            "limits": (self.max_edits, self.keep_connected),
        }
        return hashlib.sha256(repr(rules).encode()).hexdigest()[:16]

    def check(self, graph: Graph) -> None:
        """Refuse what cannot be meant.

        Raises:
            InputError: an edge is not in the graph, a cost is not positive, a rule contradicts another.
        """
        for name in ("delete", "keep_connected"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} is {getattr(self, name)!r}; give True or False")
        if self.max_edits is not None:
            check_whole(self.max_edits, "max_edits", 1)
        if self._plain:
            return
        if graph.types is not None and (self.add or self._rules):
            raise InputError("in a graph of several node types only edges can be deleted: leave out add and features")
        for relation in self.relations or ():
            graph.relation(relation)
        named = [("protected", self.protected), ("allowed", self.allowed or ())]
        named += [(f"the group {name!r}", group) for name, group in self._groups.items()]
        for role, links in named:
            for link in links:
                key = graph.link_key(link)
                if not graph.has_link(key):
                    raise InputError(f"{role} names the edge {_shown(link)}, which is not in this graph")
                if key[1] == key[2]:
                    raise InputError(f"{role} names the self-loop {_shown(link)}; a self-loop is never deleted")
        self._check_groups(graph)
        new = self._candidates(graph)
        for key in new:
            if graph.has_link(key):
                raise InputError(f"add names {key[1]}–{key[2]}, which is an edge of this graph already")
            if key[1] == key[2]:
                raise InputError(f"add names {key[1]}–{key[2]}; a node cannot be joined to itself")
        for priced, cost in self.costs.items():
            if isinstance(priced, str):
                if priced not in self._groups:
                    raise InputError(f"costs names the group {priced!r}, which is not among the groups")
                check_cost(cost, f"the group {priced!r}")
                continue
            key = graph.link_key(priced)
            if not graph.has_link(key) and key not in new:
                raise InputError(f"costs names the edge {_shown(priced)}, which is not in this graph")
            if key[1] == key[2]:
                raise InputError(f"costs names the self-loop {_shown(priced)}; a self-loop is never deleted")
            check_cost(cost, f"edge {_shown(priced)}")
        for rule in self._rules:
            rule.check(graph)

    def _check_groups(self, graph: Graph) -> None:
        owner: dict[LinkKey, str] = {}
        for name, group in self._groups.items():
            if not group:
                raise InputError(f"the group {name!r} is empty")
            for link in group:
                other = owner.setdefault(graph.link_key(link), name)
                if other != name:
                    raise InputError(f"the edge {_shown(link)} is in two groups, {other!r} and {name!r}")

    def check_fields(self, graph: Graph, carried: Collection[str]) -> None:
        """Refuse additions where it is not known what an added edge carries.

        Raises:
            InputError: the model reads something of its edges that was not given for added ones.
        """
        if not self.add:
            return
        for name, value in self.carries.items():
            if not bool(torch.as_tensor(value).isfinite().all()):
                raise InputError(f"carries gives {name} the value {value}; give finite numbers")
        for name in carried:
            values = graph.edge_fields()[name]
            if name not in self.carries and not (name == "edge_weight" and values.dim() == 1):
                raise InputError(
                    f"the model reads {name}, and nothing says what an added edge carries there; give "
                    f"EditSpace(carries={{{name!r}: ...}}) with a value of shape {tuple(values.shape[1:])}"
                )
            if name in self.carries and torch.as_tensor(self.carries[name]).shape != values.shape[1:]:
                raise InputError(
                    f"carries gives {name} the shape {tuple(torch.as_tensor(self.carries[name]).shape)}, but edges "
                    f"have {tuple(values.shape[1:])}"
                )

    def _candidates(self, graph: Graph) -> dict[LinkKey, float]:
        """The given pairs that may be joined, with their costs."""
        if isinstance(self.add, Within) or not self.add:
            return {}
        costs = {graph.link_key(link): cost for link, cost in self.costs.items() if not isinstance(link, str)}
        return {key: costs.get(key, 1.0) for key in map(graph.link_key, self.add)}

    def joins(self, graph: Graph, near: Neighbourhood) -> tuple[dict[LinkKey, float], str]:
        """The pairs that may be joined around a target, with their costs, and what to tell the user of them.

        Of ``near`` only the nodes and their distances count.
        """
        if not isinstance(self.add, Within):
            return self._candidates(graph), ""
        return self.add.pairs(graph, near)

    @property
    def widest(self) -> int:
        """How many hops from the target additions and changes may be."""
        hops = [self.add.hops] if isinstance(self.add, Within) else []
        return max([0, *hops, *(rule.within for rule in self._rules)])

    def edits(
        self,
        graph: Graph,
        near: Neighbourhood,
        around: Neighbourhood | None = None,
        joins: Mapping[LinkKey, float] | None = None,
    ) -> Edits:
        """The allowed edits of one neighbourhood: deletions in the order of their end nodes, then the rest.

        ``around`` says how far nodes are from the target before anything is joined.
        """
        first, second, relation = graph.links(near)
        loops = first == second
        # A link as one number: sorting these is much quicker than sorting rows.
        size = near.num_nodes
        number = first * size + second if relation is None else (relation * size + first) * size + second
        keys, link_of = np.unique(number[~loops], return_inverse=True)
        heads, tails = np.divmod(keys, size)
        links = Links(np.stack([heads % size, tails], axis=1), heads // size, np.arange(len(keys)))
        if self._plain:
            edit_of = np.full(len(first), -1, dtype=np.int64)
            edit_of[~loops] = link_of
            return Edits(graph, near, links, np.ones(len(keys)), edit_of, len(keys))
        return self._ruled(
            graph, near, links, np.where(loops, -1, _spread(link_of, loops)), around or near, joins or {}
        )

    def _ruled(
        self,
        graph: Graph,
        near: Neighbourhood,
        links: Links,
        link_of: NDArray[np.int64],
        around: Neighbourhood,
        joins: Mapping[LinkKey, float],
    ) -> Edits:
        rules = self._on(graph)
        ids = near.nodes[links.ends]
        known = [(r, u, v) for r, (u, v) in zip(links.relation.tolist(), ids.tolist(), strict=True)]
        number = np.full(len(known), -1)
        costs: list[float] = []
        grouped: dict[str, int] = {}
        for i, key in enumerate(known):
            name = rules.group_of.get(key)
            if not rules.may_go(key):
                continue
            if name is not None and name in grouped:
                number[i] = grouped[name]
                continue
            number[i] = len(costs)
            costs.append(rules.priced.get(key, 1.0) if name is None else float(self.costs.get(name, 1.0)))
            if name is not None:
                grouped[name] = int(number[i])
        kept = number >= 0
        deleted = Links(links.ends[kept], links.relation[kept], number[kept])
        edit_of = np.append(number, -1)[link_of]
        beyond = self._beyond(graph, set(known), grouped)

        position = {int(node): at for at, node in enumerate(near.nodes)}
        new = [key for key in joins if key[1] in position and key[2] in position]
        ends = np.array([(position[u], position[v]) for _, u, v in new], dtype=np.int64).reshape(-1, 2)
        added = Links(ends, np.zeros(len(new), np.int64), len(costs) + np.arange(len(new)))
        costs += [float(joins[key]) for key in new]

        changes, prices = self._changes(graph, near, around, len(costs))
        costs += prices
        return Edits(
            graph=graph,
            neighbourhood=near,
            deleted=deleted,
            costs=np.array(costs, dtype=np.float64),
            edit_of=edit_of,
            num_links=len(known),
            added=added,
            changes=changes,
            carries=self.carries,
            beyond=beyond[0],
            beyond_links=beyond[1],
            max_edits=self.max_edits,
            keep_connected=self.keep_connected,
        )

    def _changes(
        self, graph: Graph, near: Neighbourhood, around: Neighbourhood, first: int
    ) -> tuple[Changes, list[float]]:
        """The changes that the rules allow, numbered from ``first``, and their costs."""
        found = [rule.changes(graph, near, around) for rule in self._rules]
        if not found:
            return Changes.none(), []
        node, feature, before, after = (np.concatenate(part) for part in zip(*found, strict=True))
        counts = [len(part[0]) for part in found]
        costs = np.repeat([float(rule.cost) for rule in self._rules], counts)
        # The same change by two rules is one edit, at the lower cost.
        order = np.lexsort([costs, after, feature, node])
        new = np.ones(len(order), dtype=bool)
        keys = np.stack([node, feature, after])[:, order]
        new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
        kept = np.sort(order[new])
        numbers = first + np.arange(len(kept))
        return Changes(node[kept], feature[kept], before[kept], after[kept], numbers), costs[kept].tolist()

    def _on(self, graph: Graph) -> _Rules:
        """The rules by the keys of a graph's links, worked out once for the graph at hand."""
        bound: tuple[Graph, _Rules] | None = self.__dict__.get("_bound")
        if bound is None or bound[0] is not graph:
            bound = graph, _Rules.of(self, graph)
            self.__dict__["_bound"] = bound
        return bound[1]

    def _beyond(
        self, graph: Graph, inside: set[LinkKey], grouped: Mapping[str, int]
    ) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], Links]:
        """The members of groups that lie outside the neighbourhood."""
        columns: list[int] = []
        owners: list[int] = []
        keys: list[LinkKey] = []
        edits: list[int] = []
        for name, edit in grouped.items():
            for key in {graph.link_key(link) for link in self._groups[name]} - inside:
                found = graph.columns_of(key)
                columns += found
                owners += [edit] * len(found)
                keys.append(key)
                edits.append(edit)
        ends = np.array([key[1:] for key in keys], dtype=np.int64).reshape(-1, 2)
        relation = np.array([key[0] for key in keys], dtype=np.int64)
        apart = np.array(columns, dtype=np.int64), np.array(owners, dtype=np.int64)
        return apart, Links(ends, relation, np.array(edits, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class _Rules:
    """An edit space by the keys of one graph's links."""

    kept: set[LinkKey]
    allowed: set[LinkKey] | None
    relations: set[int] | None
    group_of: dict[LinkKey, str]
    priced: dict[LinkKey, float]
    delete: bool

    @classmethod
    def of(cls, space: EditSpace, graph: Graph) -> _Rules:
        key = graph.link_key
        rules = cls(
            kept={key(link) for link in space.protected},
            allowed=None if space.allowed is None else {key(link) for link in space.allowed},
            relations=None if space.relations is None else {graph.relation(one) for one in space.relations},
            group_of={key(link): name for name, group in space._groups.items() for link in group},
            priced={key(link): cost for link, cost in space.costs.items() if not isinstance(link, str)},
            delete=space.delete,
        )
        # A group of which one edge must stay stays as a whole.
        for group in space._groups.values():
            keys = {key(link) for link in group}
            if not all(map(rules.may_go, keys)):
                rules.kept.update(keys)
        return rules

    def may_go(self, key: LinkKey) -> bool:
        fits = (self.allowed is None or key in self.allowed) and (self.relations is None or key[0] in self.relations)
        return self.delete and fits and key not in self.kept


def _spread(link_of: NDArray[np.int64], loops: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Numbers of the columns that are no loops, in the places of all columns."""
    spread = np.zeros(len(loops), dtype=np.int64)
    spread[~loops] = link_of
    return spread


def _links(several: Any, role: str) -> tuple[Link, ...]:
    return tuple(_link(one, role) for one in as_items(several, role))


def _link(one: Any, role: str) -> Link:
    plain = one.tolist() if hasattr(one, "tolist") else one
    if not isinstance(plain, (list, tuple)) or len(plain) not in (2, 3):
        raise InputError(f"{role} names {plain!r}, which is no edge; give pairs of nodes, such as [(3, 17), (4, 9)]")
    *relation, source, target = plain
    ends = []
    for end in (source, target):
        if not is_whole(end):
            raise InputError(f"{role} names {plain!r}, which is no edge: {end!r} is not a node")
        ends.append(int(end))
    if not relation:
        return ends[0], ends[1]
    return _relation(relation[0]), ends[0], ends[1]


def _relation(name: Any) -> Relation:
    if isinstance(name, (list, tuple)) and len(name) == 3 and all(isinstance(part, str) for part in name):
        return tuple(name)
    raise InputError(f"{name!r} is no relation; give its source type, name and target type: ('user', 'pays', 'shop')")


def _shown(link: Link) -> str:
    if len(link) == 3:
        return f"{link[1]}–{link[2]} of {link[0]}"
    return f"{link[0]}–{link[1]}"
