"""What the explorer shows of a target: its neighbourhood, and the edits that the rules allow there, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.boundary.json_values import Misfit, items, shown
from butfor.boundary.printable import printable
from butfor.edits.edit import read_edit
from butfor.edits.edits import pack
from butfor.edits.rules import counted_edges
from butfor.errors import InputError
from butfor.pages.scene import scene_of
from butfor.plotting.appearance import Appearance
from butfor.predict.truth import logits_after
from butfor.result.assemble import prediction

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edit import Edit
    from butfor.pages.scene import Legend
    from butfor.problem.problem import Problem
    from butfor.result.context import PlotContext

__all__ = ["View", "prediction_after"]

# A page gets at most this many nodes, those nearest the target; the search knows all of them.
SHOWN = 2000


@dataclass(frozen=True, eq=False)
class View:
    """One target under certain rules.

    Attributes:
        problem: the target, its neighbourhood and the numbered edits.
        context: the graph, and what nodes and classes are called.
    """

    problem: Problem
    context: PlotContext

    @cached_property
    def records(self) -> list[tuple[Edit, ...]]:
        """What each of the numbered edits does: mostly one thing, several where edges go together."""
        edits = self.problem.edits
        found: list[list[Edit]] = [[] for _ in range(len(edits))]
        graph, everything, ids = edits.graph, np.ones(len(edits), dtype=bool), edits.neighbourhood.nodes
        kinds = (
            (edits.deleted.edit, edits.deleted.records(graph, everything, ids)),
            (edits.deleted_outside.edit, edits.deleted_outside.records(graph, everything, None)),
            (edits.added.edit, edits.added.records(graph, everything, ids)),
            (edits.changes.edit, edits.changes.records(graph, everything, ids)),
        )
        for numbers, records in kinds:
            for number, record in zip(numbers.tolist(), records, strict=True):
                found[number].append(record)
        return list(map(tuple, found))

    @cached_property
    def _numbers(self) -> dict[Edit, int]:
        return {record: number for number, records in enumerate(self.records) for record in records}

    def chosen(self, plain: object) -> list[int]:
        """The numbers of edits that are given as plain data.

        Raises:
            InputError: one of them is none, or the rules do not allow it for this target.
        """
        numbers = set()
        for one in items(plain, "edits"):
            try:
                edit = read_edit(one)
            except Misfit as problem:
                raise InputError(str(problem)) from problem
            if edit not in self._numbers:
                raise InputError(f"{shown(one)} is not allowed for this target by the rules")
            numbers.add(self._numbers[edit])
        return sorted(numbers)

    def plain(self, legend: Legend) -> dict[str, Any]:
        """All of it for the page."""
        edits, near, graph = self.problem.edits, self.problem.edits.neighbourhood, self.problem.graph
        edges, _ = counted_edges(graph, near)
        nodes = self._nearest()
        place = np.full(near.num_nodes, -1)
        place[nodes] = np.arange(len(nodes))
        ends = np.concatenate([edges.ends, edits.added.ends])
        relation = np.concatenate([edges.relation, edits.added.relation])
        inside = (place[ends] >= 0).all(axis=1)
        numbers = np.concatenate([self._deleting(edges.ends, edges.relation), edits.added.edit])
        added = np.arange(len(ends)) >= len(edges.ends)
        targets = place[near.target_rows]
        arrows = graph.reverse[relation[inside]] != relation[inside]
        scene = scene_of(
            self._appearance, legend, near.nodes[nodes], place[ends[inside]], relation[inside], arrows, targets
        )
        changes = edits.changes
        return {
            "scene": scene | {"all": [near.num_nodes, len(edges.ends)]},
            "nodes": self._node_keys(near.nodes[nodes]),
            "distance": near.distance[nodes].tolist(),
            "lines": {
                "edit": numbers[inside].tolist(),
                "edge": self._edges(near.nodes[ends[inside]], relation[inside]),
                "added": added[inside].astype(int).tolist(),
            },
            "edits": [[edit.plain for edit in records] for records in self.records],
            "told": [printable(", ".join(self._told(edit) for edit in records)) for records in self.records],
            "costs": edits.costs.tolist(),
            "changes": [
                {"edit": number, "node": int(place[node])}
                for number, node in zip(changes.edit.tolist(), changes.node.tolist(), strict=True)
            ],
            "note": printable(self.problem.note),
        }

    def _nearest(self) -> NDArray[np.int64]:
        near = self.problem.edits.neighbourhood
        order = np.lexsort([np.arange(near.num_nodes), near.distance])
        return np.sort(order[:SHOWN])

    def _deleting(self, ends: NDArray[np.int64], relation: NDArray[np.int64]) -> NDArray[np.int64]:
        """The edit that deletes each edge of the neighbourhood; -1 where it may not go."""
        deleted = self.problem.edits.deleted
        known = {
            (int(kind), *pair): int(edit)
            for kind, pair, edit in zip(deleted.relation, deleted.ends.tolist(), deleted.edit, strict=True)
        }
        edges = zip(relation.tolist(), ends.tolist(), strict=True)
        return np.array([known.get((kind, *pair), -1) for kind, pair in edges], dtype=np.int64)

    def _edges(self, ends: NDArray[np.int64], relation: NDArray[np.int64]) -> list[Any]:
        """Each line as a user names its edge."""
        graph = self.problem.graph
        if graph.types is None:
            pairs: list[Any] = ends.tolist()
            return pairs
        keys = zip(relation.tolist(), ends.tolist(), strict=True)
        return [list(graph.edge((kind, *pair))) for kind, pair in keys]

    def _node_keys(self, nodes: NDArray[np.int64]) -> list[list[Any]]:
        """Each node by its number, within its type where there are several, and that type."""
        types = self.problem.graph.types
        return [[node] if types is None else list(types.local(node)[::-1]) for node in nodes.tolist()]

    def _told(self, edit: Edit) -> str:
        arrow = "→" if self.problem.graph.directed else "–"
        return edit.told(self._name, arrow)

    def _name(self, node: int, node_type: str | None) -> str:
        types = self.problem.graph.types
        number = node if types is None or node_type is None else types.number(node_type, node)
        return self._appearance.label(number)

    @cached_property
    def _appearance(self) -> Appearance:
        return Appearance(self.context)


def prediction_after(view: View, chosen: list[int]) -> dict[str, Any]:
    """What the model says after these edits: they are really made, and the model is run on the result."""
    problem = view.problem
    logits = logits_after(problem.predictor, problem.edits, chosen) if chosen else problem.logits
    reached = problem.goal.judge(logits[None], problem.before)[1][0]
    allowed = bool(problem.edits.permits(pack([chosen]))[0]) if chosen else True
    return {
        **_scores(view, logits),
        "reached": bool(reached),
        "allowed": allowed,
        "cost": problem.edits.cost(chosen),
        "on": problem.predictor.verified_on(problem.target),
    }


def _scores(view: View, logits: Tensor) -> dict[str, Any]:
    """The predicted class, and how likely all are; or the number that the class was read from."""
    predictor, names = view.problem.predictor, view.context.class_names
    if not bool(logits.amax().isfinite()):  # NaN is larger than everything
        return {"name": "no prediction", "label": -1}
    said = prediction(predictor, logits, names)
    plain: dict[str, Any] = {"name": printable(said.name), "label": said.label}
    if said.value is not None:
        return plain | {"number": said.value}
    return plain | {"number": said.probability, "shares": [round(one, 6) for one in logits.softmax(-1).tolist()]}
