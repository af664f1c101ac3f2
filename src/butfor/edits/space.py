"""The edit space: what may be changed about a graph, at what cost, and what belongs together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from butfor.boundary.arguments import as_items, as_plain, check_whole, is_number, is_whole
from butfor.boundary.json_values import shown
from butfor.edits.addition import Within
from butfor.edits.change import Features
from butfor.edits.edge_edit import as_relation
from butfor.edits.per_edge import PerEdge, is_per_edge
from butfor.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.graph.edge_keys import Edge, Relation

    # One value for each column of edge_index, or the name of the attribute that has them.
    Values = torch.Tensor | NDArray[Any] | str

__all__ = ["EditSpace", "Features", "Within"]


@dataclass(frozen=True)
class EditSpace:
    """What may be changed, from plain data. By default every edge may be deleted at cost 1.

    Self-loops are no edges in this sense: a node keeps them, so that a proof says nothing about graphs without them.
    An edge is a pair of node ids; in an undirected graph their order does not matter. In a graph of several
    node types it is ``(relation, source, target)`` with the ids that nodes have within their types.

    What holds for many edges is said at once: ``protected`` and ``allowed`` may be an array or tensor of True and
    False, ``costs`` one of numbers, with a value for each column of ``edge_index``; or the name of an edge attribute
    that has these values. In a graph of several node types, a name stands for the attribute of all relations that have
    it, and ``{relation: array or name}`` for single ones. All columns of an edge must have the same value.

    Attributes:
        protected: edges that stay. The list may hold names of attributes beside edges.
        allowed: if given, the only edges that may go, in the same forms.
        costs: what the deletion or addition of an edge costs, where it is not 1; a group by its name.
        delete: False if no edge may be deleted.
        relations: if given, the only edge types that may go; both directions of an edge count as one type. `Within`
            adds edges of these types too, unless it names others.
        groups: edges that go together or not at all: one edit, at cost 1 or what ``costs`` says of the group.
        add: pairs of nodes that may be joined, written as edges are, or `Within`; by default none.
        carries: what an added edge carries where edges carry something: ``{"edge_attr": [0.0, 1.0]}``. By default an
            added edge has weight 1. In a graph of several node types relations may differ:
            ``{"edge_attr": {("user", "pays", "shop"): [0.0, 1.0]}}``; a relation's reverse carries the same.
        features: which features may change; by default none.
        max_edits: the largest number of edits in an answer; a group is one edit.
        keep_connected: no answer may cut off one part of the target's neighbourhood from another. Paths that leave
            the neighbourhood do not count.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> butfor.explain(model, data, 605).removed_edges
        ((602, 603), (605, 606))
        >>> # One of these edges may not go, and the other is expensive.
        >>> space = butfor.EditSpace(protected=[(602, 603)], costs={(605, 606): 3.0})
        >>> cf = butfor.explain(model, data, 605, space=space)
        >>> cf.removed_edges, cf.cost
        (((601, 606), (603, 604)), 2.0)
        >>> # A value for each column of edge_index: only edges inside the six-cycles may go.
        >>> space = butfor.EditSpace(allowed=data.edge_motif, max_edits=1)
        >>> print(butfor.explain(model, data, 605, space=space))
        Node 605 is predicted 'motif' (0.93). No allowed edits change that; this is proved.
        >>> # Edges may come, and none may go.
        >>> space = butfor.EditSpace(delete=False, add=[(595, 597), (597, 605)])
        >>> print(butfor.explain(model, data, 597, space=space))
        Node 597 is predicted 'motif' (0.85). It would be 'base' (0.69) with the edge 595–597 added.
    """

    protected: Collection[Edge | str] | Mapping[Relation, Any] | Values = ()
    allowed: Collection[Edge | str] | Mapping[Relation, Any] | Values | None = None
    costs: Mapping[Any, Any] | Values = field(default_factory=dict)
    delete: bool = True
    relations: Collection[Relation] | None = None
    groups: Mapping[str, Collection[Edge]] | Sequence[Collection[Edge]] = ()
    add: Collection[Edge] | Within = ()
    carries: Mapping[str, Any] = field(default_factory=dict)
    features: Features | Sequence[Features] = ()
    max_edits: int | None = None
    keep_connected: bool = False

    def __post_init__(self) -> None:
        # Each rule in one form: an iterator could be read only once, and an array has no truth value.
        set_ = object.__setattr__
        set_(self, "protected", _chosen(self.protected, "protected"))
        if self.allowed is not None:
            set_(self, "allowed", _chosen(self.allowed, "allowed"))
        set_(self, "costs", _costs(self.costs))
        if isinstance(self.groups, Mapping):
            set_(
                self, "groups", {str(name): _edges(group, f"the group {name!r}") for name, group in self.groups.items()}
            )
        else:
            set_(self, "groups", tuple(_edges(group, "groups") for group in as_items(self.groups, "groups")))
        if not isinstance(self.add, Within):
            set_(self, "add", _edges(self.add, "add"))
        rules = (self.features,) if isinstance(self.features, Features) else as_items(self.features, "features")
        if not all(isinstance(rule, Features) for rule in rules):
            raise InputError(f"features is {shown(self.features)}; give butfor.Features(...), or several")
        set_(self, "features", tuple(rules))
        if self.relations is not None:
            set_(self, "relations", tuple(as_relation(one) for one in as_items(self.relations, "relations")))
        for name in ("delete", "keep_connected"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} is {shown(getattr(self, name))}; give True or False")
        if self.max_edits is not None:
            check_whole(self.max_edits, "max_edits")
        by_field = dict(self.carries) if isinstance(self.carries, Mapping) else {"": None}
        by_field = {name: _by_relation(value) for name, value in by_field.items()}
        values = [one for some in by_field.values() for one in (some.values() if isinstance(some, dict) else [some])]
        if None in map(_shape, values):
            raise InputError(
                f"carries is {shown(self.carries)}; give numbers or lists of them by field, such as "
                "{'edge_attr': [0, 1]}"
            )
        set_(self, "carries", by_field)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> EditSpace:
        """From what JSON can hold: ``add`` may be ``{"hops": 2}``, ``features`` ``{"values": "flip"}`` or several such,
        and ``costs`` a list of ``[edge, cost]``.

        Raises:
            InputError: a field is unknown or makes no sense.
        """
        if not isinstance(plain, Mapping):
            raise InputError(
                f"an edit space is {shown(plain)}; give a dictionary of its fields, such as {{'max_edits': 2}}"
            )
        given = dict(plain)
        if isinstance(given.get("add"), Mapping):
            given["add"] = _made(Within, "add", given["add"])
        if "features" in given:
            rules = given["features"]
            each = (rules,) if isinstance(rules, (Mapping, str)) else as_items(rules, "features")
            given["features"] = [_made(Features, "features", rule) for rule in each]
        space: EditSpace = _made(cls, "an edit space", given)
        return space

    @property
    def feature_rules(self) -> tuple[Features, ...]:
        """The rules for features, however many were given."""
        assert isinstance(self.features, tuple)
        return self.features

    @property
    def cost_of(self) -> dict[Any, Any]:
        """The costs by edge, by the name of a group, and those of many edges by their relation, or None."""
        assert isinstance(self.costs, dict)
        return self.costs

    @property
    def told(self) -> str:
        """What kinds of edits it allows, in words; what else restricts them is left out."""
        kinds = ["deletions"] if self.delete else []
        if isinstance(self.add, Within):
            kinds.append(f"additions within {self.add.hops} hop{'s' if self.add.hops > 1 else ''}")
        elif self.add:
            kinds.append("additions")
        if self.feature_rules:
            kinds.append("feature changes")
        return " and ".join(kinds) or "edits"

    @property
    def names_groups(self) -> bool:
        """Whether groups have names of their own."""
        return isinstance(self.groups, Mapping)

    @cached_property
    def named_groups(self) -> dict[str, list[Edge]]:
        """The groups by name; those without one are numbered."""
        if isinstance(self.groups, Mapping):
            return {name: list(group) for name, group in self.groups.items()}
        return {f"group {number}": list(group) for number, group in enumerate(self.groups)}

    @cached_property
    def is_default(self) -> bool:
        """Whether every edge may go at cost 1 and nothing else may happen."""
        ruled = self.protected or self.costs or self.groups or self.add or self.features or self.keep_connected
        limited = self.allowed is not None or self.relations is not None or self.max_edits is not None
        return self.delete and not ruled and not limited


def _made(kind: type[Any], role: str, plain: Any) -> Any:
    """An object of this kind from its fields by name; or itself."""
    if isinstance(plain, kind):
        return plain
    if not isinstance(plain, Mapping):
        first = fields(kind)[0]
        raise InputError(
            f"{role} has {shown(plain)}; give its fields by name, such as {{{first.name!r}: {first.default!r}}}"
        )
    known = {item.name for item in fields(kind)}
    if unknown := sorted(str(name) for name in plain if name not in known):
        raise InputError(f"{role} has no field {unknown[0]!r}")
    return kind(**plain)


def _priced(pair: Any) -> tuple[Any, Any]:
    """An edge, or a group by its name, and its cost; whether the cost is positive is seen when the space is used.

    Or a relation and the costs of its edges.
    """
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise InputError(
            f"costs has {shown(pair)}; give an edge or a group's name and a number, such as [(3, 17), 2.5]"
        )
    priced, cost = pair
    if isinstance(cost, PerEdge):
        return priced, cost
    if isinstance(priced, (list, tuple)) and len(priced) == 3 and all(isinstance(part, str) for part in priced):
        relation = as_relation(priced)
        return relation, PerEdge.of(cost, f"costs of {relation}", relation)
    if not is_number(cost):
        raise InputError(f"costs gives {shown(priced)} the cost {shown(cost)}; give a number")
    return priced if isinstance(priced, str) else _edge(priced, "costs"), cost


def _by_relation(value: Any) -> Any:
    """What added edges carry by their relation, given as a dictionary or, from JSON, as pairs; other values as is."""
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if (
        not isinstance(pairs, list)
        or not pairs
        or not all(_is_pair(pair) and _is_pair(pair[0], 3, str) for pair in pairs)
    ):
        return value
    return {as_relation(relation): carried for relation, carried in pairs}


def _is_pair(value: Any, length: int = 2, of: type = object) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == length and all(isinstance(one, of) for one in value)


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of a number or of lists of numbers; None if it is something else, or the lists have several shapes."""
    plain = as_plain(value)
    if is_number(plain):
        return ()
    if not isinstance(plain, (list, tuple)):
        return None
    shapes = {_shape(one) for one in plain} or {()}
    shape = shapes.pop()
    return None if shapes or shape is None else (len(plain), *shape)


def _costs(given: Any) -> dict[Any, Any]:
    """Costs by edge or group, and those of many edges by their relation, or None where there is one type."""
    if isinstance(given, (str, torch.Tensor, np.ndarray, PerEdge)):
        return {None: PerEdge.of(given, "costs")}
    pairs = given.items() if isinstance(given, Mapping) else as_items(given, "costs")
    return dict(map(_priced, pairs))


def _chosen(given: Any, role: str) -> tuple[Edge | PerEdge, ...]:
    """Edges, and what chooses many of them at once."""
    if is_per_edge(given):
        return (PerEdge.of(given, role),)
    if isinstance(given, Mapping):
        return tuple(PerEdge.of(values, role, as_relation(relation)) for relation, values in given.items())
    return tuple(
        PerEdge.of(one, role) if isinstance(one, (str, PerEdge)) else _edge(one, role) for one in as_items(given, role)
    )


def _edges(several: Any, role: str) -> tuple[Edge, ...]:
    return tuple(_edge(one, role) for one in as_items(several, role))


def _edge(one: Any, role: str) -> Edge:
    if type(one) is tuple and len(one) == 2 and type(one[0]) is type(one[1]) is int:
        return one  # as nearly all are: the rest takes ten times as long
    plain = as_plain(one)
    if not isinstance(plain, (list, tuple)) or len(plain) not in (2, 3):
        raise InputError(
            f"{role} names {shown(plain)}, which is no edge; give pairs of nodes, such as [(3, 17), (4, 9)]"
        )
    *relation, source, target = plain
    ends = []
    for end in (source, target):
        if not is_whole(end):
            raise InputError(f"{role} names {shown(plain)}, which is no edge: {shown(end)} is not a node")
        ends.append(int(end))
    if not relation:
        return ends[0], ends[1]
    return as_relation(relation[0]), ends[0], ends[1]
