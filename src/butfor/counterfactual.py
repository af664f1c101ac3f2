"""The verified result: what was removed, what the model then says, and what is proved."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any

from butfor.errors import InputError, StoreError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from matplotlib.figure import Figure
    from torch import nn
    from torch_geometric.data import Data

    from butfor.report.scene import Scene

__all__ = ["SCHEMA", "Counterfactual", "Prediction", "Status", "names_of"]

Pair = tuple[int, int]

# The version of the dictionary form; raise it when a field changes its meaning.
SCHEMA = 1

# A sentence names this many edges and counts the rest.
NAMED = 12


class Status(str, Enum):
    """How sure a result is; `sentence` says it to a person."""

    OPTIMAL = "optimal"
    FOUND = "found"
    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"

    @property
    def sentence(self) -> str:
        """What the status means."""
        return {
            Status.OPTIMAL: "A counterfactual was found, and it is proved that no smaller one exists.",
            Status.FOUND: "A counterfactual was found; a smaller one may exist.",
            Status.IMPOSSIBLE: "It is proved that no allowed edits change the prediction.",
            Status.UNKNOWN: "No counterfactual was found; one may exist.",
        }[self]

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Prediction:
    """A predicted class and its probability."""

    label: int
    name: str
    probability: float

    def __str__(self) -> str:
        return f"'{self.name}' ({self.probability:.2f})"


@dataclass(frozen=True)
class Counterfactual:
    """But for these edges, the model would have said something else.

    Two results are equal if they say the same; how long they took, on which versions, and the scene
    kept for drawing do not count.

    Attributes:
        target: the node that is explained.
        status: what is proved.
        before: the prediction on the intact graph.
        after: the verified prediction without the removed edges; None where nothing was found.
        removed_edges: pairs of node positions in the graph, in order.
        cost: what the removal costs; the number of edges unless edits were given other costs.
        lower_bound: proved: nothing that costs less changes the prediction. None: nothing does.
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
        alternatives: other sets of edges that do it at the same cost, each verified, where the method was
            asked for them.
        necessity: where all smallest sets are known, each edge that is in one of them with the share of
            them that contain it: (source, target, share). Share 1: nothing as small does without it.
        note: anything unusual about this result.
        names: where the graph's nodes have ids of their own (``data.node_ids``), those of the target and of the
            ends of all edges named here: (position, id).
        seconds: wall time, shared among the targets of a batch.
        versions: of the libraries that computed it.
    """

    target: int
    status: Status
    before: Prediction
    after: Prediction | None
    removed_edges: tuple[Pair, ...]
    cost: float
    lower_bound: float | None
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
    alternatives: tuple[tuple[Pair, ...], ...] = ()
    necessity: tuple[tuple[int, int, float], ...] | None = None
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
    def size(self) -> int | None:
        """How many edges are removed; None where nothing was found."""
        return len(self.removed_edges) if self.found else None

    def name(self, node: int) -> str:
        """What the graph itself calls a node, as far as this result knows; else its position."""
        return dict(self.names).get(node, str(node))

    def __getstate__(self) -> dict[str, Any]:
        # The scene holds the whole graph; a pickle of one result must not.
        return {**self.__dict__, "_scene": None}

    def __str__(self) -> str:
        head = f"Node {self.name(self.target)} is predicted {self.before}."
        if self.after is None:
            return f"{head} {self._failure()}"
        which = "this 1" if len(self.removed_edges) == 1 else f"these {len(self.removed_edges)}"
        arrow = "→" if self.directed else "–"
        named = [f"{self.name(u)}{arrow}{self.name(v)}" for u, v in self.removed_edges[:NAMED]]
        if len(self.removed_edges) > NAMED:
            named.append(f"and {len(self.removed_edges) - NAMED} more")
        return f"{head} But for {which} of its {self.edges} edges it would be {self.after}: {', '.join(named)}."

    def _failure(self) -> str:
        if self.status is Status.IMPOSSIBLE:
            return f"No removal among its {self.edges} edges changes that; this is proved."
        bound = f"; a counterfactual, if there is one, costs at least {self.lower_bound:g}" if self.lower_bound else ""
        return f"No counterfactual was found among its {self.edges} edges{bound}."

    def plot(
        self,
        data: Data | None = None,
        model: nn.Module | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
    ) -> Figure:
        """Draw the target, its neighbourhood and the removed edges; save the picture if a path is given.

        A result that was read from a file or unpickled has lost its graph: pass ``data`` and ``model``.

        Raises:
            InputError: the graph is not known and was not given.
        """
        from butfor.report.picture import draw
        from butfor.report.scene import Scene

        scene = self._scene if data is None or model is None else Scene.of(model, data)
        if scene is None:
            raise InputError(
                "this result was read from a file or unpickled, without its graph; "
                "give plot() the graph and the model: plot(data, model)"
            )
        return draw(self, scene, path=path)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with a schema version."""
        plain = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "_scene"}
        plain |= {
            "status": self.status.value,
            "before": asdict(self.before),
            "after": None if self.after is None else asdict(self.after),
            "removed_edges": [list(pair) for pair in self.removed_edges],
            "alternatives": [[list(pair) for pair in other] for other in self.alternatives],
            "necessity": None if self.necessity is None else [list(share) for share in self.necessity],
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
        if plain["schema"] != SCHEMA:
            raise StoreError(f"this counterfactual has schema {plain['schema']}; this version reads schema {SCHEMA}")
        known = {item.name for item in fields(cls)} - {"_scene"}
        given = {name: value for name, value in plain.items() if name != "schema"}
        try:
            unknown = set(given) - known
            if unknown:
                raise TypeError(f"unknown fields {sorted(unknown)}")
            given["status"] = Status(given["status"])
            given["before"] = Prediction(**given["before"])
            given["after"] = None if given["after"] is None else Prediction(**given["after"])
            given["removed_edges"] = _pairs(given["removed_edges"])
            given["alternatives"] = tuple(_pairs(other) for other in given.get("alternatives", ()))
            if given.get("necessity") is not None:
                given["necessity"] = tuple((int(u), int(v), float(share)) for u, v, share in given["necessity"])
            given["names"] = tuple((int(node), str(name)) for node, name in given.get("names", ()))
            result = cls(**given)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise StoreError(f"this is not a counterfactual: {error}") from error
        if result.found != bool(result.removed_edges) or not math.isfinite(result.cost):
            raise StoreError(
                f"the counterfactual of node {result.target} contradicts itself: removed edges and outcome"
            )
        return result


def names_of(data: Data, nodes: Iterable[int]) -> tuple[tuple[int, str], ...]:
    """These nodes, each once and in order, with the ids they have of their own; nothing where they have none."""
    from butfor.datasets.ids import OwnIds  # here, as its package imports torch

    ids = OwnIds.of(data)
    return () if ids is None else tuple((node, ids[node]) for node in sorted(set(nodes)))


def _pairs(plain: Iterable[Sequence[int]]) -> tuple[Pair, ...]:
    return tuple((int(u), int(v)) for u, v in plain)
