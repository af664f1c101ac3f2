"""Which edits are allowed, as a JSON file says it: the fields of `EditSpace`, nodes by ids of their own.

What makes sense is decided by `EditSpace`; here only the nodes that rules name are looked up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from butfor.boundary.json_values import MOST, shown
from butfor.boundary.reading import read_json
from butfor.cli.target_lists import parse_edges, places_of
from butfor.edits.space import EditSpace
from butfor.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from torch_geometric.data import Data

    from butfor.cli.target_lists import Places

__all__ = ["read_space"]

SEVERAL = "names nodes, but several graphs are explained and none is meant: explain a single one"


def read_space(path: Path | None, protect: str, data: Data | None) -> EditSpace:
    """The rules of a file, if one is given, with further edges protected.

    Args:
        path: a JSON file.
        protect: edges as on the command line, such as "3-17,4-9".
        data: the graph; None where there are several, of which no rule can name a node.

    Raises:
        InputError: the file cannot be read, or its rules make no sense.
    """
    space = EditSpace() if path is None else _read(path, data)
    if not protect.strip():
        return space
    if data is None:
        raise InputError(f"--protect {protect!r} {SEVERAL}")
    return replace(space, protected=[*space.protected, *parse_edges(protect, data)])


def _read(path: Path, data: Data | None) -> EditSpace:
    plain = read_json(path, InputError, pipe=True)
    try:
        if not isinstance(plain, dict):
            raise InputError('they must be an object, such as {"max_edits": 2}')
        positions = _Positions(data is None, None if data is None else places_of(data))
        return EditSpace.from_dict(positions.of_rules(plain))
    except InputError as problem:
        raise InputError(f"the rules {path} cannot be used: {problem}") from problem


@dataclass(frozen=True)
class _Positions:
    """Turns the nodes that rules name into their positions in the graph.

    Attributes:
        several: whether there are several graphs, of which none is meant.
        places: the positions by node ids, where the graph has such.
    """

    several: bool
    places: Places | None

    def of_rules(self, plain: dict[str, Any]) -> dict[str, Any]:
        """The same rules by positions; what is not a list of edges is left to `EditSpace`."""
        given = dict(plain)
        for name in ("protected", "allowed", "add"):
            if isinstance(given.get(name), list):
                given[name] = self._edges(name, given[name])
        groups = given.get("groups")
        if isinstance(groups, dict):
            given["groups"] = {name: self._edges(f"the group {name!r}", group) for name, group in groups.items()}
        elif isinstance(groups, list):
            given["groups"] = [self._edges("groups", group) for group in groups]
        if isinstance(given.get("costs"), list):
            given["costs"] = [self._priced(pair) for pair in given["costs"]]
        rules = given.get("features")
        if isinstance(rules, (list, dict)):
            each = [rules] if isinstance(rules, dict) else rules
            given["features"] = [self._of_features(rule) for rule in each]
        return given

    def _priced(self, pair: Any) -> Any:
        if not isinstance(pair, list) or len(pair) != 2:
            raise InputError(f"costs has {_said(pair)}; give [edge, number], such as [[3, 17], 2.5], or a group's name")
        priced, cost = pair
        return priced if isinstance(priced, str) else self._edge("costs", priced), cost

    def _of_features(self, rule: Any) -> Any:
        if not isinstance(rule, dict):
            raise InputError(f'features has {_said(rule)}; give an object, such as {{"values": "flip"}}')
        if not isinstance(rule.get("nodes"), list):
            return rule
        return {**rule, "nodes": [self._node("features", node) for node in rule["nodes"]]}

    def _edges(self, name: str, edges: Any) -> Any:
        return [self._edge(name, edge) for edge in edges] if isinstance(edges, list) else edges

    def _edge(self, name: str, edge: Any) -> list[int]:
        if not isinstance(edge, list) or len(edge) != 2:
            raise InputError(f"{name} has {_said(edge)}; an edge is written as its two nodes, such as [3, 17]")
        return [self._node(name, node) for node in edge]

    def _node(self, name: str, node: Any) -> int:
        if self.several:
            raise InputError(f"{name} {SEVERAL}")
        if self.places is not None:
            if not isinstance(node, (str, int)) or str(node) not in self.places:
                some = ", ".join(list(self.places)[:3])
                raise InputError(f"{name} names {_said(node)}, which is no node id of this graph ({some}, …)")
            return self.places[str(node)]
        if type(node) is not int or abs(node) > MOST:
            raise InputError(f"{name} names {_said(node)}, but the nodes of this graph are numbers")
        return node


def _said(value: Any) -> str:
    """A value as the file writes it, unless that is long."""
    short = shown(value)
    return short if "..." in short or isinstance(value, dict) else json.dumps(value)
