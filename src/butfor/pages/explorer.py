"""What the explorer's page asks, and the answers: plain data in, plain data out, whatever carries them."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from butfor.boundary.json_values import Misfit, flag, items, number, record, shown, text, whole
from butfor.boundary.printable import printable
from butfor.edits.space import EditSpace
from butfor.errors import InputError
from butfor.graphs import Graphs
from butfor.methods import Exact
from butfor.pages.naming import Naming
from butfor.pages.scene import Legend
from butfor.pages.searching import Searches
from butfor.pages.view import View, prediction_after
from butfor.problem.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from butfor.problem.goal import Goal
    from butfor.problem.listener import Listener
    from butfor.problem.target import Target
    from butfor.result.counterfactual import Counterfactual
    from butfor.session import Session

__all__ = ["Explorer"]

# How many questions (rules and goals), and targets under them, are kept ready.
SESSIONS, VIEWS = 8, 16
# A search ends by itself after so many seconds.
LONGEST = 3600.0
# How many names are suggested.
SUGGESTED = 12
# The page shows up to this many edits of a target, and its rules name up to so many edges and values.
MOST_EDITS, MOST_EDGES, MOST_VALUES = 20_000, 1_000, 100
# How far from a target the page may let edges come anywhere, and among how many nodes: all pairs are looked through.
MOST_HOPS, MOST_NEAR = 2, 1_000

Kept = TypeVar("Kept")


@dataclass(frozen=True, eq=False)
class Explorer:
    """One model on one graph, or on several, to be looked at and tried out.

    It keeps no state of its own about what somebody looks at: every question says which target, rules and goal it is
    about, so that undoing, saving and loading are up to the page.

    Attributes:
        subject: the model and the graph; or the graphs, where each is a target.
        first: the target that is shown first.
        title: what the page is called.
    """

    subject: Session | Graphs
    first: Target | int = None
    title: str = "butfor explorer"
    searches: Searches = field(default_factory=Searches)
    _sessions: OrderedDict[str, Session] = field(default_factory=OrderedDict)
    _views: OrderedDict[str, View] = field(default_factory=OrderedDict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def answer(self, verb: object, body: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one question of the page.

        Raises:
            InputError: it makes no sense; the page shows the sentence.
        """
        verbs: dict[object, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "target": self._target,
            "predict": self._predict,
            "search": self._search,
            "progress": lambda asked: self.searches.progress(asked.get("search")),
            "stop": self._stop,
            "find": lambda asked: {"found": self.naming.find(text(asked.get("text"), "text"), SUGGESTED)},
        }
        if not isinstance(verb, str) or verb not in verbs:
            raise InputError(f"{shown(verb)} is no question of this page")
        try:
            return verbs[verb](body)
        except Misfit as problem:
            raise InputError(str(problem)) from problem
        except RecursionError as problem:
            raise InputError("the question is nested too deeply") from problem

    @property
    def _base(self) -> Session:
        return self.subject.first if isinstance(self.subject, Graphs) else self.subject

    @property
    def naming(self) -> Naming:
        """How targets are named."""
        count = len(self.subject.graphs) if isinstance(self.subject, Graphs) else None
        return Naming(self._base, count)

    def opened(self) -> dict[str, Any]:
        """What the page knows before it asks."""
        base, naming = self._base, self.naming
        names, types = base._context.class_names, base.graph.types
        relations = [0] if types is None else sorted(set(types.forward))
        return {
            "title": printable(self.title),
            "task": base.predictor.task,
            "first": naming.plain(self.first) if self.first is not None else naming.example(),
            "range": naming.told,
            "classes": list(map(printable, names)),
            "number": base.predictor.threshold is not None,
            "goal": {"wanted": base.goal.label, "probability": base.goal.probability},
            # Rules that were given hold; without any, the page may allow more kinds of edits.
            "free": base.space.is_default,
            "space": base.space.told,
            "directed": base.graph.directed,
            "relations": [list(types.relations[one]) for one in relations] if types is not None else [],
            # Whether an edge that is added has a direction, by its relation.
            "arrows": [bool(base.graph.reverse[one] != one) for one in relations],
            "predicted_type": base.predictor.node_type if isinstance(base.predictor.node_type, str) else None,
            "ids": [base.model_id, "" if isinstance(self.subject, Graphs) else base.graph_id],
        }

    # Questions.

    def _target(self, body: Mapping[str, Any]) -> dict[str, Any]:
        target = self.naming.read(body.get("target"))
        view, legend = self._view(target, body), Legend()
        plain = view.plain(legend)
        return {
            "target": self.naming.plain(target),
            "name": printable(self.naming.name(target)),
            "typed": printable(self.naming.typed(target)),
            "unedited": prediction_after(view, []),
            "legend": legend.plain,
            **plain,
        }

    def _predict(self, body: Mapping[str, Any]) -> dict[str, Any]:
        view = self._view(self.naming.read(body.get("target")), body)
        return prediction_after(view, view.chosen(body.get("edits")))

    def _search(self, body: Mapping[str, Any]) -> dict[str, Any]:
        target = self.naming.read(body.get("target"))
        seconds = number(body.get("seconds", LONGEST), "seconds", 0.01, LONGEST)
        method = Exact(all_smallest=flag(body.get("all", True), "all"))
        self._view(target, body)  # what cannot be shown is not searched either
        session = self._session(target, body)
        asked = None if isinstance(self.subject, Graphs) else target

        def find(listener: Listener) -> Counterfactual:
            return session.explain(asked, method, budget=Budget(None, seconds), listener=listener)

        return {"search": self.searches.start(find)}

    def _stop(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self.searches.stop(body.get("search"))
        return {}

    # What is kept ready.

    def _session(self, target: Any, body: Mapping[str, Any]) -> Session:
        """The session with the rules and the goal that the page states."""
        rules, goal = record(body.get("rules") or {}, "rules"), record(body.get("goal") or {}, "goal")
        graph = target if isinstance(self.subject, Graphs) else None

        def made() -> Session:
            base = self.subject.session(int(target)) if isinstance(self.subject, Graphs) else self.subject
            return base.asking(_goal(base.goal, goal), _space(base.space, rules))

        return self._kept(self._sessions, SESSIONS, json.dumps([graph, rules, goal], sort_keys=True), made)

    def _view(self, target: Any, body: Mapping[str, Any]) -> View:
        session = self._session(target, body)
        asked = None if isinstance(self.subject, Graphs) else target
        key = json.dumps([self.naming.plain(target), body.get("rules"), body.get("goal")], sort_keys=True)

        def made() -> View:
            self._check_near(target, body)
            problem = session.problem(asked)
            if len(problem.edits) > MOST_EDITS:
                raise InputError(
                    f"{len(problem.edits):,} edits are possible here, and this page shows {MOST_EDITS:,} at most; "
                    "butfor.explain can search them"
                )
            return View(problem, replace(session._context, predictor=None))

        return self._kept(self._views, VIEWS, key, made)

    def _check_near(self, target: Any, body: Mapping[str, Any]) -> None:
        """Refuse to join any two of more nodes than can be looked through while somebody waits."""
        rules = body.get("rules") or {}
        if not isinstance(rules.get("add"), dict):
            return
        near = self._view(target, {**body, "rules": {**rules, "add": None}}).problem.edits.neighbourhood
        hops = rules["add"]["hops"]
        if (close := int((near.distance <= hops).sum())) > MOST_NEAR:
            raise InputError(
                f"{close:,} nodes are within {hops} hops of this target; the page lets edges come between any two of "
                f"{MOST_NEAR:,} at most"
            )

    def _kept(self, known: OrderedDict[str, Kept], most: int, key: str, made: Callable[[], Kept]) -> Kept:
        """What was made for this key before, or made now; what was not used for longest is given up."""
        with self._lock:
            if key not in known:
                known[key] = made()
            known.move_to_end(key)
            while len(known) > most:
                known.popitem(last=False)
            return known[key]


def _goal(base: Goal, plain: Mapping[str, Any]) -> Goal:
    """The goal that the page states."""
    wanted, probability = plain.get("wanted"), plain.get("probability")
    return replace(
        base,
        wanted=None if wanted is None else whole(wanted, "the wanted class"),
        probability=None if probability is None else number(probability, "the probability", 0, 1),
    )


def _space(base: EditSpace, plain: Mapping[str, Any]) -> EditSpace:
    """The edit space with what the page protects and what it says of costs.

    Rules that were given hold: only where there are none may the page allow more kinds of edits.
    """
    known = {"protected", "costs", "add", "features"}
    if unknown := sorted(set(plain) - known):
        raise InputError(f"the rules have no field {unknown[0]!r}")
    given = {name: value for name, value in plain.items() if value}
    if not base.is_default and {"add", "features"} & set(given):
        raise InputError("rules were given with the model, and they do not allow the page to allow more")
    for name in ("protected", "costs"):
        _short(given.get(name, []), name, MOST_EDGES)
    mine = EditSpace.from_dict({**given, **_wider(given)})
    return replace(
        base,
        protected=(*base.protected, *mine.protected),
        costs={**base.cost_of, **mine.cost_of},
        add=mine.add or base.add,
        features=mine.features or base.features,
    )


def _wider(given: Mapping[str, Any]) -> dict[str, Any]:
    """The kinds of edits that the page allows, in the few forms that it has for them: others might take for ever."""
    wider: dict[str, Any] = {}
    if isinstance(given.get("add"), dict):
        wider["add"] = {"hops": whole(_only(given["add"], "add", "hops"), "hops", 1, MOST_HOPS)}
    elif "add" in given:
        wider["add"] = _short(given["add"], "add", MOST_EDGES)
    if "features" in given:
        values = _only(record(given["features"], "features"), "features", "values")
        wider["features"] = {"values": values if values == "flip" else _short(values, "values", MOST_VALUES)}
    return wider


def _only(plain: Mapping[str, Any], name: str, known: str) -> Any:
    """The one field that an object has."""
    if set(plain) != {known}:
        raise InputError(f"{name} is {shown(plain)}; on this page it has {known} and nothing else")
    return plain[known]


def _short(value: Any, name: str, most: int) -> list[Any]:
    """A list that is not too long."""
    if len(listed := items(value, name)) > most:
        raise InputError(f"{name} lists {len(listed):,}; the rules of a page list at most {most:,}")
    return listed
