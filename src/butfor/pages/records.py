"""A result as plain data for a page: what is shown of it in words, and its neighbourhood."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.boundary.printable import printable
from butfor.edits.change import Change
from butfor.pages.scene import scene_of
from butfor.plotting.appearance import Appearance
from butfor.plotting.excerpt import PREDICTED, Excerpt
from butfor.result.status import Status

if TYPE_CHECKING:
    from butfor.edits.edit import Edit
    from butfor.pages.scene import Legend
    from butfor.result.context import PlotContext
    from butfor.result.counterfactual import Counterfactual
    from butfor.result.status import Prediction

__all__ = ["record_of"]

# A picture shows at most this many nodes: those of edits, and those nearest the target.
SHOWN = 60
# At most this many other sets of edits are listed.
ALTERNATIVES = 50
# Those are drawn too if they have at most this many edits in all.
DRAWN = 60


def record_of(result: Counterfactual, legend: Legend, context: PlotContext | None) -> dict[str, Any]:
    """What a page shows of a result. Without a context, its picture shows the edits alone.

    Raises:
        InputError: the context is of another graph.
    """
    sets = [result.edits, *result.alternatives[:ALTERNATIVES]] if result.found else []
    shares = dict(result.necessity or ())
    edits = list(dict.fromkeys([*(edit for some in sets for edit in some), *shares]))
    number = {edit: at for at, edit in enumerate(edits)}
    drawn = edits if len(edits) <= DRAWN else list(result.edits)
    plain: dict[str, Any] = {
        "target": printable(result.target_name),
        "task": result.task,
        "status": result.status.value,
        "before": prediction_of(result.before),
        "after": None if result.after is None else prediction_of(result.after),
        "size": result.size,
        "cost": result.cost if result.found else None,
        "bound": result.lower_bound if result.status is not Status.FAILED else 0,
        "sentence": str(result),
        "verdict": printable(result.verdict),
        "note": printable(result.note),
        "facts": _facts(result),
        "edits": [_edit(edit, result) for edit in edits],
        "sets": [[number[edit] for edit in some] for some in sets],
        "more": max(len(result.alternatives) - ALTERNATIVES, 0),
        "shares": [[number[edit], round(share, 4)] for edit, share in shares.items()],
    }
    if context is None:
        plain["scene"], marks = _edits_alone(result, drawn)
    else:
        plain["scene"], marks = _neighbourhood(result, drawn, legend, context)
    for edit, mark in zip(drawn, marks, strict=True):
        plain["edits"][number[edit]] |= mark
    return plain


def prediction_of(prediction: Prediction) -> dict[str, Any]:
    """A prediction as plain data."""
    number = prediction.probability if prediction.value is None else prediction.value
    name = printable(prediction.name)
    # JSON knows no infinite numbers.
    if number is None or not math.isfinite(number):
        return {"name": name}
    return {"name": name, "number": round(number + 0.0, 4)}


def _edit(edit: Edit, result: Counterfactual) -> dict[str, Any]:
    return {"kind": edit.kind, "told": printable(edit.told(result.name, "→" if result.directed else "–"))}


def _facts(result: Counterfactual) -> list[list[str]]:
    """What else is known, as rows of two columns."""
    bound = "none exists" if result.lower_bound is None else f"at least {result.lower_bound:g}"
    what = "graph" if result.task == "graph" else "neighbourhood"
    facts = [
        ["cost", f"{result.cost:g} (proved: {bound})" if result.found else bound],
        [what, f"{result.nodes} nodes, {result.edges} edges"],
        ["goal", str(result.goal)],
        ["method", str(result.method)],
        ["tried", f"{result.evaluations:,} edit sets in {result.seconds:.3g} s"],
        ["verified on", result.verified_on or "–"],
    ]
    return [[name, printable(value)] for name, value in facts]


def _neighbourhood(
    result: Counterfactual, drawn: list[Edit], legend: Legend, context: PlotContext
) -> tuple[dict[str, Any], list[dict[str, int]]]:
    """The neighbourhood with the lines of all edits that are drawn; and for each of these where it is."""
    graph, appearance = context.graph, Appearance(context)
    excerpt = Excerpt.of(replace(result, edits=tuple(drawn)), graph, SHOWN if result.task != "graph" else 4 * SHOWN)
    lines = (excerpt.nodes, excerpt.pairs, excerpt.relation, excerpt.arrows, excerpt.targets)
    scene = scene_of(appearance, legend, *lines)
    scene["all"] = [excerpt.all_nodes, excerpt.all_edges]
    asked = np.flatnonzero(excerpt.role == PREDICTED)
    if len(asked):
        scene["link"] = asked.tolist()
    place = {int(node): at for at, node in enumerate(excerpt.nodes)}
    kinds, ends, roles = excerpt.relation.tolist(), excerpt.nodes[excerpt.pairs].tolist(), excerpt.role.tolist()
    where = {
        (kind, *pair): line
        for line, (kind, pair, role) in enumerate(zip(kinds, ends, roles, strict=True))
        if role != PREDICTED
    }
    marks: list[dict[str, int]] = []
    for edit in drawn:
        if isinstance(edit, Change):
            node = edit.node if graph.types is None else graph.types.number(str(edit.node_type), edit.node)
            marks.append({"node": place[node]} if node in place else {})
        else:
            line = where.get(graph.edge_key(edit.edge))
            marks.append({} if line is None else {"line": line})
    return scene, marks


def _edits_alone(result: Counterfactual, drawn: list[Edit]) -> tuple[dict[str, Any], list[dict[str, int]]]:
    """The nodes of the target and of edits, where the graph is not known; and for each edit where it is."""
    nodes = [node for edit in drawn for node in zip(edit.nodes, edit.node_types, strict=True)]
    targets: list[tuple[int, str | None]] = []
    if isinstance(result.target, tuple):
        kinds = result.node_type if isinstance(result.node_type, tuple) else (None, None)
        targets = list(zip(result.target, kinds, strict=True))
    elif result.task == "node":
        targets = [(result.target, result.node_type if isinstance(result.node_type, str) else None)]
    at = {node: position for position, node in enumerate(dict.fromkeys([*targets, *nodes]))}
    ends: list[int] = []
    marks: list[dict[str, int]] = []
    for edit in drawn:
        places = [at[node] for node in zip(edit.nodes, edit.node_types, strict=True)]
        if isinstance(edit, Change):
            marks.append({"node": places[0]})
        else:
            marks.append({"line": len(ends) // 2})
            ends += places
    scene: dict[str, Any] = {
        "labels": [printable(result.name(*node)) for node in at],
        "kinds": [-1] * len(at),
        "targets": [at[node] for node in targets],
        "ends": ends,
        "all": [result.nodes, result.edges],
    }
    if result.directed:
        scene["arrows"] = [1] * (len(ends) // 2)
    return scene, marks
