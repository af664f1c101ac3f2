"""Which edits are allowed, as a JSON file says it: the fields of `EditSpace`, nodes by ids of their own."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from butfor.cli.nodes import parse_edges, places_of
from butfor.edits.space import EditSpace, Features, Within
from butfor.errors import InputError
from butfor.files.json_values import MOST, shown
from butfor.files.reading import read_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch_geometric.data import Data

    from butfor.cli.nodes import Places

__all__ = ["read_space"]


def read_space(path: Path | None, protect: str, data: Data | None) -> EditSpace:
    """The rules of a file, if one is given, with these edges protected besides.

    Args:
        path: a JSON file.
        protect: edges as on the command line, such as "3-17,4-9".
        data: the graph; None where there are several, of which no rule can name a node.

    Raises:
        InputError: the file cannot be read, or says what no edit space can mean.
    """
    space = EditSpace() if path is None else _read(path, data)
    if not protect.strip():
        return space
    if data is None:
        raise InputError(f"--protect {protect!r} {_SEVERAL}")
    return replace(space, protected=[*space.protected, *parse_edges(protect, data)])


def _read(path: Path, data: Data | None) -> EditSpace:
    plain = read_json(path, InputError, pipe=True)
    try:
        if not isinstance(plain, dict):
            raise InputError('they must be an object, such as {"max_edits": 2}')
        _check(plain)
        return EditSpace.from_dict(_Rules(data is None, None if data is None else places_of(data)).placed(plain))
    except InputError as problem:
        raise InputError(f"the rules {path} cannot be used: {problem}") from problem


def _said(value: Any) -> str:
    """A value as the file writes it, unless that is long."""
    short = shown(value)
    return short if "..." in short or isinstance(value, dict) else json.dumps(value)


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) <= MOST


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _is_carried(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_number(one) or _list_of(_is_number)(one) for one in value.values())


_WHOLE = (_is_whole, "a whole number")
_NUMBER = (_is_number, "a number")
_FLAG = (lambda value: isinstance(value, bool), "true or false")

# What the fields must be that name no nodes, here and in the objects of add and features. JSON has no types of its own
# to refuse "2" for 2, and a wrong one would only be noticed in the middle of a search.
_SHAPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "delete": _FLAG,
    "keep_connected": _FLAG,
    "max_edits": _WHOLE,
    "hops": _WHOLE,
    "most": _WHOLE,
    "within": _WHOLE,
    "steps": _WHOLE,
    "cost": _NUMBER,
    "columns": (_list_of(_is_whole), "a list of whole numbers"),
    "values": (lambda value: value == "flip" or _list_of(_is_number)(value), '"flip" or a list of numbers'),
    "between": (lambda value: _list_of(_is_number)(value) and len(value) == 2, "two numbers, [low, high]"),
    "relations": (_list_of(_list_of(_is_text)), "a list of edge types, each of three names"),
    "carries": (_is_carried, 'an object of numbers or lists of them, such as {"edge_attr": [0, 1]}'),
}
_MAY_BE_NULL = ("max_edits", "columns", "between", "relations")
_NESTED: dict[str, type[Within] | type[Features]] = {"add": Within, "features": Features}


def _check(plain: dict[str, Any]) -> None:
    for name, value in plain.items():
        for part in value if isinstance(value, list) else [value]:
            if name in _NESTED and isinstance(part, dict):
                unknown = set(part) - {item.name for item in fields(_NESTED[name])}
                if unknown:
                    raise InputError(f"{name} has no field {sorted(unknown)[0]!r}")
                _check(part)
        if name in _SHAPES and not (value is None and name in _MAY_BE_NULL):
            fits, what = _SHAPES[name]
            if not fits(value):
                raise InputError(f"{name} is {_said(value)}, but must be {what}")


_SEVERAL = "names nodes, but several graphs are explained and none is meant: explain a single one"


@dataclass(frozen=True)
class _Rules:
    """Turns the nodes that rules name into their positions in the graph."""

    several: bool
    places: Places | None

    def placed(self, plain: dict[str, Any]) -> dict[str, Any]:
        """The same rules by positions."""
        given = dict(plain)
        for name in ("protected", "allowed"):
            if name in given and not (name == "allowed" and given[name] is None):
                given[name] = self._edges(name, given[name])
        groups = given.get("groups", [])
        if isinstance(groups, dict):
            given["groups"] = {name: self._edges(f"the group {name!r}", group) for name, group in groups.items()}
        else:
            given["groups"] = [self._edges("groups", group) for group in self._list("groups", groups)]
        if "costs" in given:
            given["costs"] = self._costs(given["costs"])
        if "add" in given and not isinstance(given["add"], dict):
            given["add"] = self._edges("add", given["add"])
        if "features" in given:
            rules = given["features"]
            each = [rules] if isinstance(rules, dict) else self._list("features", rules)
            given["features"] = [self._of_features(rule) for rule in each]
        return given

    def _costs(self, costs: Any) -> Any:
        pairs = list(costs.items()) if isinstance(costs, dict) else self._list("costs", costs)
        placed = []
        for pair in pairs:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not _is_number(pair[1]):
                shown = _said(pair)
                raise InputError(f"costs has {shown}; give [edge, number], such as [[3, 17], 2.5], or a group's name")
            priced, cost = pair
            placed.append((priced if isinstance(priced, str) else self._edge("costs", priced), cost))
        return dict(placed) if isinstance(costs, dict) else placed

    def _of_features(self, rule: Any) -> Any:
        if not isinstance(rule, dict):
            raise InputError(f'features has {_said(rule)}; give an object, such as {{"values": "flip"}}')
        if rule.get("nodes") is None:
            return rule
        return {**rule, "nodes": [self._node("features", node) for node in self._list("nodes", rule["nodes"])]}

    def _edges(self, name: str, edges: Any) -> list[list[int]]:
        return [self._edge(name, edge) for edge in self._list(name, edges)]

    def _edge(self, name: str, edge: Any) -> list[int]:
        if not isinstance(edge, list) or len(edge) != 2:
            raise InputError(f"{name} has {_said(edge)}; an edge is written as its two nodes, such as [3, 17]")
        return [self._node(name, node) for node in edge]

    def _node(self, name: str, node: Any) -> int:
        if self.several:
            raise InputError(f"{name} {_SEVERAL}")
        if self.places is not None:
            if not isinstance(node, (str, int)) or str(node) not in self.places:
                some = ", ".join(list(self.places)[:3])
                raise InputError(f"{name} names {_said(node)}, which is no node id of this graph ({some}, …)")
            return self.places[str(node)]
        if not _is_whole(node):
            raise InputError(f"{name} names {_said(node)}, but the nodes of this graph are numbers")
        number: int = node
        return number

    def _list(self, name: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise InputError(f"{name} is {_said(value)}, but must be a list")
        return value
