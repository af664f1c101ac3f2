"""The verified result: what was edited, what the model then says, and what is proved."""

from __future__ import annotations

from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any

from butfor.edits.edits import Addition, Change, Deletion, Edit, as_edit
from butfor.errors import InputError, StoreError
from butfor.files.json_values import Misfit, flag, items, number, record, shown, text, whole
from butfor.files.printable import printable
from butfor.problem.goal import Goal

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    from matplotlib.figure import Figure
    from torch import nn
    from torch_geometric.data import Data, HeteroData

    from butfor.plotting.scene import Scene

__all__ = ["SCHEMA", "Counterfactual", "Prediction", "Status", "names_of"]

Pair = tuple[int, int]

# The version of the dictionary form; raise it when a field changes its meaning.
SCHEMA = 2

# A sentence names this many edits of a kind and counts the rest.
NAMED = 12


class Status(str, Enum):
    """How sure a result is; `sentence` says it to a person, whatever the goal and the costs were."""

    OPTIMAL = "optimal"
    FOUND = "found"
    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"
    REACHED = "reached"

    @property
    def sentence(self) -> str:
        """What the status means; `Counterfactual.verdict` says it of one result."""
        return {
            Status.OPTIMAL: "A counterfactual was found, and it is proved that no better one exists.",
            Status.FOUND: "A counterfactual was found; a better one may exist.",
            Status.IMPOSSIBLE: "It is proved that no allowed edits reach the goal.",
            Status.UNKNOWN: "No counterfactual was found; one may exist.",
            Status.REACHED: "The goal is reached on the intact graph: nothing has to change.",
        }[self]

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Prediction:
    """A predicted class and its probability, or the number that the class was read from.

    Attributes:
        label: the number of the class.
        name: what it is called.
        probability: of the class; None for a model that returns one number.
        value: that number.
    """

    label: int
    name: str
    probability: float | None
    value: float | None = None

    def __str__(self) -> str:
        number = self.probability if self.value is None else self.value
        # Adding 0 turns the -0.00 of a small negative number into 0.00.
        return f"'{self.name}'" if number is None else f"'{self.name}' ({round(number, 2) + 0.0:.2f})"


@dataclass(frozen=True)
class Counterfactual:
    """But for these edges, or with these changes, the model would have said something else.

    Two results are equal if they say the same; how long they took, on which versions, and the scene
    kept for drawing do not count.

    Attributes:
        target: what is explained: a node, the two nodes of a link, or the number of a graph among those explained.
        status: what is proved.
        before: the prediction on the intact graph.
        after: the verified prediction after the edits; None where nothing was found.
        edits: what is deleted, added and changed, in this order.
        cost: what the edits cost; their number unless they were given other costs.
        lower_bound: proved: nothing that costs less changes the prediction. None: nothing does.
        task: "node", "link" or "graph".
        nodes: nodes in the target's neighbourhood.
        edges: edges in it, each undirected edge counted once.
        directed: whether the graph is.
        goal: what counts as another prediction.
        method: the method and its hyper-parameters.
        evaluations: edit sets that were put to the model.
        seed: of the random numbers.
        space_id: fingerprint of what may be edited; empty where every edge may go at cost 1.
        graph_id: fingerprint of the graph.
        model_id: fingerprint of the model and its weights.
        alternatives: other sets of edits that do it at the same cost, each verified, where the method was
            asked for them.
        necessity: where all smallest sets are known, each edit that is in one of them with the share of
            them that contain it. Share 1: nothing as small does without it.
        node_type: in a graph of several node types, that of the target.
        note: anything unusual about this result.
        names: where the graph's nodes have ids of their own (``data.node_ids``), those of the target and of the
            ends of all edges named here: (position, id).
        seconds: wall time, shared among the targets of a batch.
        versions: of the libraries that computed it.
    """

    target: int | Pair
    status: Status
    before: Prediction
    after: Prediction | None
    edits: tuple[Edit, ...]
    cost: float
    lower_bound: float | None
    task: str
    nodes: int
    edges: int
    directed: bool
    goal: str
    method: str
    evaluations: int
    seed: int
    space_id: str
    graph_id: str
    model_id: str
    alternatives: tuple[tuple[Edit, ...], ...] = ()
    necessity: tuple[tuple[Edit, float], ...] | None = None
    node_type: str | None = None
    note: str = ""
    names: tuple[tuple[int, str], ...] = ()
    seconds: float = field(default=0.0, compare=False)
    versions: dict[str, str] = field(default_factory=dict, compare=False)
    _scene: Scene | None = field(default=None, compare=False, repr=False)

    @property
    def found(self) -> bool:
        """Whether there is a counterfactual."""
        return self.after is not None

    @property
    def verdict(self) -> str:
        """What is proved, in a sentence that follows from the status, the goal and the costs."""
        # Where rules were given, edits may have other costs, and several edges may be one edit.
        better = "cheaper" if self.space_id else "smaller"
        none_better = f"no {better} one exists" if self._any_other else f"no {better} one reaches {self._aim}"
        return {
            Status.OPTIMAL: f"A counterfactual was found, and it is proved that {none_better}.",
            Status.FOUND: f"A counterfactual was found; a {better} one may exist.",
            Status.IMPOSSIBLE: f"It is proved that no allowed edits {self._no_edits('the prediction')}.",
        }.get(self.status, self.status.sentence)

    @property
    def _any_other(self) -> bool:
        """Whether any other prediction would do."""
        return self.goal == str(Goal())

    @property
    def _aim(self) -> str:
        return f"the goal ({self.goal})"

    def _no_edits(self, prediction: str) -> str:
        """What no edits do where that is proved: it must not sound like more."""
        return f"change {prediction}" if self._any_other else f"reach {self._aim}"

    @property
    def size(self) -> int | None:
        """How many edges go or come and how many features change; None where nothing was found."""
        return len(self.edits) if self.found else None

    @property
    def removed_edges(self) -> tuple[Pair, ...]:
        """The deleted edges as pairs of nodes, in order."""
        return tuple((edit.source, edit.target) for edit in self.edits if isinstance(edit, Deletion))

    @property
    def added_edges(self) -> tuple[Pair, ...]:
        """The added edges as pairs of nodes, in order."""
        return tuple((edit.source, edit.target) for edit in self.edits if isinstance(edit, Addition))

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changed features."""
        return tuple(edit for edit in self.edits if isinstance(edit, Change))

    def name(self, node: int) -> str:
        """What the graph itself calls a node, as far as this result knows; else its position."""
        return dict(self.names).get(node, str(node))

    @property
    def called(self) -> str:
        """What the target is called."""
        if isinstance(self.target, tuple):
            arrow = "→" if self.directed else "–"
            return f"link {self.name(self.target[0])}{arrow}{self.name(self.target[1])}"
        if self.task == "graph":
            return f"graph {self.target}"
        return f"{self.node_type or 'node'} {self.name(self.target)}"

    def __getstate__(self) -> dict[str, Any]:
        # The scene holds the whole graph; a pickle of one result must not.
        return {**self.__dict__, "_scene": None}

    def __str__(self) -> str:
        # Names come from files, and this is what is printed.
        return printable(self._told())

    def _told(self) -> str:
        called = self.called
        head = f"{called[0].upper()}{called[1:]} is predicted {self.before}."
        if self.after is None:
            return f"{head} {self._failure()}"
        removed = [edit for edit in self.edits if isinstance(edit, Deletion)]
        if len(removed) == len(self.edits):
            which = "this 1" if len(removed) == 1 else f"these {len(removed)}"
            # Edges that go together may lie beyond the neighbourhood, whose edges are counted.
            of = f"of its {self.edges} edges" if len(removed) <= self.edges else "edges"
            named = ", ".join(_some([self._link(edit) for edit in removed]))
            return f"{head} But for {which} {of} it would be {self.after}: {named}."
        ways = []
        if removed:
            ways.append(f"without {_listed('edge', [self._link(edit) for edit in removed])}")
        if self.added_edges:
            added = [edit for edit in self.edits if isinstance(edit, Addition)]
            ways.append(f"with {_listed('edge', [self._link(edit) for edit in added])} added")
        if self.changes:
            named_changes = [
                f"feature {edit.feature} of node {self.name(edit.node)} at {edit.after:g} instead of {edit.before:g}"
                for edit in self.changes
            ]
            ways.append(f"with {', '.join(_some(named_changes))}")
        return f"{head} It would be {self.after} {' and '.join(ways)}."

    def _link(self, edit: Deletion | Addition) -> str:
        arrow = "→" if self.directed else "–"
        if isinstance(edit, Deletion) and edit.relation is not None:
            source, name, target = edit.relation
            return f"{source} {edit.source} {arrow} {target} {edit.target} ({name})"
        return f"{self.name(edit.source)}{arrow}{self.name(edit.target)}"

    def _failure(self) -> str:
        if self.status is Status.IMPOSSIBLE:
            return f"No allowed edits {self._no_edits('that')}; this is proved."
        if self.status is Status.REACHED:
            return "That is what is wanted: nothing has to change."
        bound = f"; a counterfactual, if there is one, costs at least {self.lower_bound:g}" if self.lower_bound else ""
        return f"No counterfactual was found among its {self.edges} edges{bound}."

    def plot(
        self,
        data: Data | HeteroData | None = None,
        model: nn.Module | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
    ) -> Figure:
        """Draw the target, its neighbourhood and the edits; save the picture if a path is given.

        A whole graph whose data say what its ``atoms`` are is drawn as a molecule, unless features have changed. A
        result that was read from a file or unpickled has lost its graph: pass ``data`` and ``model``.

        Raises:
            InputError: the graph is not known and was not given.
        """
        from butfor.plotting.molecules.drawing import draw_molecule
        from butfor.plotting.picture import draw
        from butfor.plotting.scene import Scene

        scene = self._scene if data is None or model is None else Scene.of(model, data, self)
        if scene is None:
            raise InputError(
                "this result was read from a file or unpickled, without its graph; "
                "give plot() the graph and the model: plot(data, model)"
            )
        molecule = scene.molecule if self.task == "graph" and not self.changes else None
        if molecule is None:
            return draw(self, scene, path=path)
        return draw_molecule(
            molecule.symbols,
            molecule.bonds,
            removed=self.removed_edges,
            added=self.added_edges,
            truth=molecule.truth,
            title=str(self),
            caption=f"{self.verdict} {self.note}".strip(),
            path=path,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with a schema version."""
        plain = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "_scene"}
        plain |= {
            "status": self.status.value,
            "before": asdict(self.before),
            "after": None if self.after is None else asdict(self.after),
            "target": list(self.target) if isinstance(self.target, tuple) else self.target,
            "edits": [edit.plain for edit in self.edits],
            "alternatives": [[edit.plain for edit in other] for other in self.alternatives],
            "necessity": None if self.necessity is None else [[edit.plain, share] for edit, share in self.necessity],
            "names": [list(named) for named in self.names],
            "versions": dict(self.versions),
        }
        return {"schema": SCHEMA, **plain}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Counterfactual:
        """The inverse of `to_dict`.

        Raises:
            StoreError: the dictionary is of another schema, or not a counterfactual.
        """
        if not isinstance(plain, dict) or "schema" not in plain:
            raise StoreError("this is not a counterfactual: it has no schema version")
        if type(plain["schema"]) is not int or plain["schema"] != SCHEMA:
            raise StoreError(
                f"this counterfactual has schema {shown(plain['schema'])}; this version reads schema {SCHEMA}"
            )
        given = {name: value for name, value in plain.items() if name != "schema"}
        try:
            if unknown := set(given) - set(_READ):
                raise Misfit(f"unknown fields {shown(sorted(unknown, key=str))}")
            missing = [item.name for item in fields(cls) if _is_required(item) and item.name not in given]
            if missing:
                raise Misfit(f"it has no {missing[0]!r}")
            result = cls(**{name: _READ[name](value, name) for name, value in given.items()})
        except Misfit as problem:
            raise StoreError(f"this is not a counterfactual: {problem}") from problem
        if contradiction := _contradiction(result):
            raise StoreError(f"the counterfactual of {result.called} contradicts itself: {contradiction}")
        return result


def names_of(data: Data, nodes: Iterable[int]) -> tuple[tuple[int, str], ...]:
    """These nodes, each once and in order, with the ids they have of their own; nothing where they have none."""
    from torch_geometric.data import HeteroData  # here, as it takes long to import

    from butfor.graph.node_names import OwnIds

    ids = None if isinstance(data, HeteroData) else OwnIds.of(data)
    return () if ids is None else tuple((node, ids[node]) for node in sorted(set(nodes)))


def _edits(plain: Any, name: str) -> tuple[Edit, ...]:
    return tuple(as_edit(edit) for edit in items(plain, name))


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
        whole(given["label"], f"the label {name}"),
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
    return tuple((as_edit(edit), share) for (edit, _), share in zip(pairs, shares, strict=True))


def _names(plain: Any, name: str) -> tuple[tuple[int, str], ...]:
    pairs = [items(pair, name, 2) for pair in items(plain, name)]
    return tuple((whole(node, f"a node of {name}"), text(called, f"a name of {name}")) for node, called in pairs)


def _versions(plain: Any, name: str) -> dict[str, str]:
    return {package: text(version, f"{name} of {package}") for package, version in record(plain, name).items()}


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
    **dict.fromkeys(("goal", "method", "space_id", "graph_id", "model_id", "note"), text),
    "alternatives": lambda plain, name: tuple(_edits(other, name) for other in items(plain, name)),
    "necessity": _or_none(_necessity),
    "node_type": _or_none(text),
    "names": _names,
    "seconds": _amount,
    "versions": _versions,
}


def _is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def _contradiction(result: Counterfactual) -> str | None:
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
    if done and result.lower_bound is None:
        return "something was found, and yet nothing could be"
    return None


def _listed(what: str, named: list[str]) -> str:
    """Things of one kind, counted if there are several."""
    if len(named) == 1:
        return f"the {what} {named[0]}"
    return f"these {len(named)} {what}s ({', '.join(_some(named))})"


def _some(named: list[str]) -> list[str]:
    return named if len(named) <= NAMED else [*named[:NAMED], f"and {len(named) - NAMED} more"]
