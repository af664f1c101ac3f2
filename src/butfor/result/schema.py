"""Results as plain data for JSON, and back: every version that was ever written can be read."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

from butfor.boundary.json_values import Misfit, flag, items, number, record, shown, text, whole
from butfor.edits.edit import read_edit
from butfor.errors import StoreError
from butfor.problem.goal import Goal
from butfor.problem.method_record import MethodRecord
from butfor.result.status import Prediction, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from butfor.edits.edit import Edit
    from butfor.graph.csr import Flow
    from butfor.graph.edge_keys import TargetType
    from butfor.graph.node_names import Name

__all__ = ["READABLE", "SCHEMA", "from_dict", "to_dict"]

# The version of the dictionary form; raise it when a field is added or changes its meaning, and add to `_UPGRADES`.
SCHEMA = 3

Pair = tuple[int, int]


# `Counterfactual`, which knows this module and not the other way round.
Result = TypeVar("Result")


def to_dict(result: Any) -> dict[str, Any]:
    """A counterfactual as plain data for JSON, with a schema version; its certificate is kept apart."""
    kept = [item.name for item in fields(result) if not item.name.startswith("_") and item.name != "certificate"]
    plain = {name: getattr(result, name) for name in kept}
    plain |= {
        "status": result.status.value,
        "before": asdict(result.before),
        "after": None if result.after is None else asdict(result.after),
        "target": list(result.target) if isinstance(result.target, tuple) else result.target,
        "goal": asdict(result.goal),
        "method": result.method.plain,
        "edits": [edit.plain for edit in result.edits],
        "alternatives": [[edit.plain for edit in other] for other in result.alternatives],
        "necessity": None if result.necessity is None else [[edit.plain, share] for edit, share in result.necessity],
        "names": [list(named) for named in result.names],
        "node_type": list(result.node_type) if isinstance(result.node_type, tuple) else result.node_type,
        "versions": dict(result.versions),
        "otherwise": None if result.otherwise is None else to_dict(result.otherwise),
    }
    return {"schema": SCHEMA, **plain}


def from_dict(kind: type[Result], plain: dict[str, Any]) -> Result:
    """The inverse of `to_dict`, for older schemas too; ``kind`` is the class of counterfactuals.

    Raises:
        StoreError: the dictionary is of an unknown schema, or not a counterfactual.
    """
    if not isinstance(plain, dict) or "schema" not in plain:
        raise StoreError("this is not a counterfactual: it has no schema version")
    schema = plain["schema"]
    if type(schema) is not int or schema not in READABLE:
        known = f"{READABLE[0]} to {READABLE[-1]}"
        raise StoreError(f"this counterfactual has schema {shown(schema)}; this version reads schema {known}")
    given = {name: value for name, value in plain.items() if name != "schema"}
    try:
        for older in range(schema, SCHEMA):
            given = _UPGRADES[older](given)
        other = given.pop("otherwise", None)
        if isinstance(other, dict) and other.get("otherwise") is not None:
            raise Misfit("the result of its other edit space has another one in turn")
        if unknown := set(given) - set(_READ):
            raise Misfit(f"unknown fields {shown(sorted(unknown, key=str))}")
        members = fields(kind)  # type: ignore[arg-type]  # it is a dataclass
        missing = [item.name for item in members if _is_required(item) and item.name not in given]
        if missing:
            raise Misfit(f"it has no {missing[0]!r}")
        values = {name: _READ[name](value, name) for name, value in given.items()}
        values["otherwise"] = None if other is None else from_dict(kind, other)
        result = kind(**values)
    except Misfit as problem:
        raise StoreError(f"this is not a counterfactual: {problem}") from problem
    if contradiction := _contradiction(result):
        raise StoreError(f"the counterfactual of {given['target']} contradicts itself: {contradiction}")
    return result


def _from_2(given: dict[str, Any]) -> dict[str, Any]:
    """Schema 2 had the goal and the method as text, and did not say how far the neighbourhood reaches."""
    upgraded = dict(given)
    for name, read in (("goal", _goal_from_text), ("method", _method_from_text)):
        if name in given:
            upgraded[name] = read(text(given[name], name))
    if {"hops", "flow", "verified_on"} & given.keys():
        raise Misfit(f"schema 2 has no field {shown(sorted({'hops', 'flow', 'verified_on'} & given.keys())[0])}")
    if given.get("after") is not None:
        upgraded["verified_on"] = WHOLE_GRAPH
    return upgraded


# What every counterfactual was verified on before results said it.
WHOLE_GRAPH = "whole graph"

# How a result of each older schema becomes one of the next.
_UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {2: _from_2}
READABLE = (*_UPGRADES, SCHEMA)

_NUMBER = r"([-+.\de]+|inf|nan)"
_GOAL = re.compile(
    rf"(?:any other class|class (\d+))(?:, above or below {_NUMBER})?(?:, by at least {_NUMBER})?"
    rf"(?:, with a probability of at least {_NUMBER})?"
)


def _goal_from_text(said: str) -> dict[str, Any]:
    """The goal of which this is the text."""
    match = _GOAL.fullmatch(said)
    if match is None:
        raise Misfit(f"the goal is {shown(said)}, which no goal is called")
    wanted, threshold, least, probability = match.groups()
    try:
        label = None if wanted is None else int(wanted)
        values = [None if value is None else float(value) for value in (least, probability, threshold)]
    except ValueError:  # such as "1.2.3", or more digits than Python reads
        raise Misfit(f"the goal is {shown(said)}, which no goal is called") from None
    goal = dict(zip(("least", "probability", "threshold"), values, strict=True))
    return {"wanted": label, **goal, "least": goal["least"] or 0.0}


def _method_from_text(said: str) -> dict[str, Any]:
    return MethodRecord.from_text(said).plain


def _edits(plain: Any, name: str) -> tuple[Edit, ...]:
    return tuple(read_edit(edit) for edit in items(plain, name))


def _target(plain: Any, name: str) -> int | Pair:
    if not isinstance(plain, (list, tuple)):
        return whole(plain, name)
    source, target = (whole(end, name) for end in items(plain, name, 2))
    return source, target


def _status(plain: Any, name: str) -> Status:
    known = [status.value for status in Status]
    if not isinstance(plain, str) or plain not in known:
        raise Misfit(f"{name} is {shown(plain)}, but must be one of {', '.join(known)}")
    return Status(plain)


def _prediction(plain: Any, name: str) -> Prediction:
    given = record(plain, name)
    if not {"label", "name", "probability"} <= given.keys() <= {"label", "name", "probability", "value"}:
        raise Misfit(f"{name} is {shown(plain)}, but must have label, name and probability")
    return Prediction(
        whole(given["label"], f"the label {name}", -1 if given == asdict(Prediction.unknown()) else 0),
        text(given["name"], f"the name {name}"),
        # A sum of rounded numbers may be a little more than 1.
        None if given["probability"] is None else number(given["probability"], f"the probability {name}", 0, 1 + 1e-6),
        None if given.get("value") is None else number(given["value"], f"the value {name}"),
    )


def _task(plain: Any, name: str) -> str:
    if plain not in ("node", "link", "graph"):
        raise Misfit(f"{name} is {shown(plain)}, but must be node, link or graph")
    return str(plain)


def _necessity(plain: Any, name: str) -> tuple[tuple[Edit, float], ...]:
    pairs = [items(pair, name, 2) for pair in items(plain, name)]
    shares = [number(share, f"a share of {name}", 0, 1) for _, share in pairs]
    if 0 in shares:
        raise Misfit(f"a share of {name} is 0, but must be more")
    return tuple((read_edit(edit), share) for (edit, _), share in zip(pairs, shares, strict=True))


def _names(plain: Any, name: str) -> tuple[Name, ...]:
    found: list[Name] = []
    for one in items(plain, name):
        typed = isinstance(one, (list, tuple)) and len(one) == 3
        node, called, *kind = items(one, name, 3 if typed else 2)
        pair = whole(node, f"a node of {name}"), text(called, f"a name of {name}")
        found.append((*pair, text(kind[0], f"a node type of {name}")) if kind else pair)
    return tuple(found)


def _node_type(plain: Any, name: str) -> TargetType:
    if not isinstance(plain, (list, tuple)):
        return text(plain, name)
    source, target = (text(end, name) for end in items(plain, name, 2))
    return source, target


def _versions(plain: Any, name: str) -> dict[str, str]:
    return {package: text(version, f"{name} of {package}") for package, version in record(plain, name).items()}


def _goal(plain: Any, name: str) -> Goal:
    given = record(plain, name)
    known = [item.name for item in fields(Goal)]
    if given.keys() != set(known):
        raise Misfit(f"{name} is {shown(plain)}, but must have {', '.join(known)}")
    rest = {key: _or_none(number)(given[key], f"{key} of the {name}") for key in ("probability", "threshold")}
    goal = Goal(
        _or_none(whole)(given["wanted"], f"the class wanted by the {name}"),
        number(given["least"], f"the margin of the {name}", 0),
        **rest,
    )
    if goal.probability is not None and not 0 < goal.probability < 1:
        raise Misfit(f"the probability of the {name} is {goal.probability}, but must lie between 0 and 1")
    return goal


def _method(plain: Any, name: str) -> MethodRecord:
    given = record(plain, name)
    if set(given) != {"name", "settings"}:
        raise Misfit(f"{name} is {shown(plain)}, but must have a name and settings")
    settings = record(given["settings"], f"settings of the {name}")
    nested = {
        key: _method(value, f"{key} of the {name}") if isinstance(value, dict) else value
        for key, value in settings.items()
    }
    return MethodRecord(text(given["name"], f"the name of the {name}"), nested)


def _flow(plain: Any, name: str) -> Flow:
    if plain == "source_to_target":
        return "source_to_target"
    if plain == "target_to_source":
        return "target_to_source"
    raise Misfit(f"{name} is {shown(plain)}, but must be source_to_target or target_to_source")


def _or_none(read: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda plain, name: None if plain is None else read(plain, name)


def _amount(plain: Any, name: str) -> float:
    return number(plain, name, 0)


# How each field is read from plain data.
_READ: dict[str, Callable[[Any, str], Any]] = {
    "target": _target,
    "status": _status,
    "before": _prediction,
    "after": _or_none(_prediction),
    "edits": _edits,
    "cost": _amount,
    "lower_bound": _or_none(_amount),
    "task": _task,
    **dict.fromkeys(("nodes", "edges", "evaluations"), whole),
    "directed": flag,
    "seed": lambda plain, name: whole(plain, name, -(2**63), 2**64 - 1),
    "goal": _goal,
    "method": _method,
    **dict.fromkeys(("space_id", "graph_id", "model_id", "note"), text),
    "alternatives": lambda plain, name: tuple(_edits(other, name) for other in items(plain, name)),
    "necessity": _or_none(_necessity),
    "node_type": _or_none(_node_type),
    "names": _names,
    "seconds": _amount,
    "versions": _versions,
    "hops": _or_none(whole),
    "flow": _or_none(_flow),
    "verified_on": _or_none(text),
}


def _is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def _contradiction(result: Any) -> str | None:
    """What cannot be true at once; None if all can."""
    done = result.status in (Status.OPTIMAL, Status.FOUND)
    if done != result.found or done != bool(result.edits):
        return "edits and outcome"
    if not done and (result.cost or result.alternatives):
        return "nothing was found, and yet it costs something"
    if not all(result.alternatives):
        return "an alternative without edits"
    if (result.task == "link") != isinstance(result.target, tuple):
        return f"its task is {result.task}"
    if result.node_type is not None and (result.task == "link") != isinstance(result.node_type, tuple):
        return f"its task is {result.task}, and its node type {result.node_type}"
    if done and result.lower_bound is None:
        return "something was found, and yet nothing could be"
    if result.otherwise is not None and (done or result.otherwise.target != result.target):
        return "another edit space was searched for another target, or though something was found"
    return None
