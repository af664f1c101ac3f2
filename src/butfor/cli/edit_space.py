"""An edit space from a JSON file: the fields of `EditSpace`, with nodes given by their own ids if they have any.

`EditSpace` itself checks the rules. Here, only the nodes that they name are translated into positions in the graph.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from butfor.boundary.json_values import LARGEST_INT, shown
from butfor.boundary.reading import read_json
from butfor.cli.target_lists import parse_edges, positions_by_id
from butfor.edits.space import EditSpace
from butfor.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from torch_geometric.data import Data

    from butfor.cli.target_lists import PositionsById

__all__ = ["read_space"]

SEVERAL = "names nodes, but several graphs are explained and it does not say in which one: explain a single graph"


def read_space(path: Path | None, protect: str, data: Data | None) -> EditSpace:
    """The edit space of a file, or the default one, with further edges protected.

    Args:
        path: a JSON file.
        protect: edges as on the command line, such as "3-17,4-9".
        data: the graph; None if there are several, because then rules cannot name nodes.

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
        positions = _Positions(data is None, None if data is None else positions_by_id(data))
        return EditSpace.from_dict(positions.of_rules(plain))
    except InputError as problem:
        raise InputError(f"the rules {path} cannot be used: {problem}") from problem


@dataclass(frozen=True)
class _Positions:
    """Turns the nodes that rules name into their positions in the graph.

    Attributes:
        several: whether there are several graphs, so that it is not clear whose nodes are named.
        by_id: the positions of nodes by their own ids; None if they have none.
    """

    several: bool
    by_id: PositionsById | None

    def of_rules(self, plain: dict[str, Any]) -> dict[str, Any]:
        """The same rules with positions instead of ids; whatever is not a list of edges is left to `EditSpace`."""
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
            given["costs"] = [self._of_cost(pair) for pair in given["costs"]]
        rules = given.get("features")
        if isinstance(rules, (list, dict)):
            each = [rules] if isinstance(rules, dict) else rules
            given["features"] = [self._of_feature_rule(rule) for rule in each]
        return given

    def _of_cost(self, pair: Any) -> Any:
        if not isinstance(pair, list) or len(pair) != 2 or isinstance(pair[0], str):
            return pair  # a group by its name
        return self._edge("costs", pair[0]), pair[1]

    def _of_feature_rule(self, rule: Any) -> Any:
        if not isinstance(rule, dict) or not isinstance(rule.get("nodes"), list):
            return rule
        return {**rule, "nodes": [self._node("features", node) for node in rule["nodes"]]}

    def _edges(self, name: str, edges: Any) -> Any:
        # Text is the name of an attribute, which says it of many edges.
        named = isinstance(edges, list)
        return [edge if isinstance(edge, str) else self._edge(name, edge) for edge in edges] if named else edges

    def _edge(self, name: str, edge: Any) -> list[int]:
        if not isinstance(edge, list) or len(edge) != 2:
            raise InputError(f"{name} has {_as_json(edge)}; an edge is written as its two nodes, such as [3, 17]")
        return [self._node(name, node) for node in edge]

    def _node(self, name: str, node: Any) -> int:
        if self.several:
            raise InputError(f"{name} {SEVERAL}")
        if self.by_id is not None:
            if not isinstance(node, (str, int)) or str(node) not in self.by_id:
                some = ", ".join(list(self.by_id)[:3])
                raise InputError(f"{name} names {_as_json(node)}, which is no node id of this graph ({some}, …)")
            return self.by_id[str(node)]
        if type(node) is not int or abs(node) > LARGEST_INT:
            raise InputError(f"{name} names {_as_json(node)}, but the nodes of this graph are numbers")
        return node


def _as_json(value: Any) -> str:
    """A value as JSON, or abbreviated if that is long."""
    short = shown(value)
    return short if "..." in short or isinstance(value, dict) else json.dumps(value)
