"""A certificate: the tree of a proof and what it is a proof of, as plain data for a file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from butfor.boundary.json_values import Misfit, items, number, record, text, whole
from butfor.boundary.reading import read_bytes
from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["BOUNDED", "TRIED", "Certificate", "read_certificates"]

FORMAT = 1

# The leaves of a tree; every other number is the edit that a branch decides.
TRIED, BOUNDED = -1, -2


@dataclass(frozen=True)
class Certificate:
    """Why no set of edits that costs less than ``below`` reaches the goal.

    The tree lists its nodes in this order: a branch, then the subtree in which its edit is made, then the subtree in
    which it is excluded. A leaf is `TRIED` or `BOUNDED`. At a `TRIED` leaf no further edit is affordable, so the edits
    made on the way to it are the only set left, and it was tried (unless it costs too much itself). At a `BOUNDED` leaf
    a bound on the scores rules out all sets that are left.

    Attributes:
        target: the nodes that the proof is about, by their numbers in the whole graph.
        below: sets that cost less were ruled out; None for all sets.
        edits: what each edit does, in the order of their numbers: the records of a result, as JSON.
        tree: the nodes.
        goal: what counts as another prediction, as `str` of the goal says it.
        graph_id, model_id, space_id: fingerprints of the graph, the model and the edit space.

    Raises:
        Misfit: a field is of the wrong kind or out of range.
    """

    target: tuple[int, ...]
    below: float | None
    edits: tuple[str, ...]
    tree: tuple[int, ...] = field(repr=False)
    goal: str = ""
    graph_id: str = ""
    model_id: str = ""
    space_id: str = ""

    def __post_init__(self) -> None:
        if self.below is not None and number(self.below, "the cost below which sets are ruled out", 0.0) == 0:
            raise Misfit("it rules out nothing: no set of edits costs less than 0")
        for node in self.target:
            whole(node, "a node of the target")
        for edit in self.edits:
            text(edit, "an edit")
        for node in self.tree:
            whole(node, "a node of the tree", BOUNDED)
        for name in ("goal", "graph_id", "model_id", "space_id"):
            text(getattr(self, name), name)

    @property
    def limit(self) -> float:
        """``below`` as a number: sets that cost less were ruled out; infinite for all sets."""
        return math.inf if self.below is None else float(self.below)

    @property
    def plain(self) -> dict[str, Any]:
        """As data for JSON."""
        return {
            "certificate": FORMAT, "target": self.target, "below": self.below, "goal": self.goal,
            "graph": self.graph_id, "model": self.model_id, "space": self.space_id, "edits": self.edits,
            "tree": self.tree,
        }  # fmt: skip

    def to_json(self) -> str:
        """One line of a file."""
        return json.dumps(self.plain, separators=(",", ":"))

    @classmethod
    def from_plain(cls, plain: Any) -> Certificate:
        """From a line that was read.

        Raises:
            Misfit: it is not a certificate.
        """
        fields = record(plain, "the line")
        if (type(fields.get("certificate")), fields.get("certificate")) != (int, FORMAT):
            raise Misfit("it is no certificate of this version")
        lists = [tuple(items(fields.get(name), name)) for name in ("target", "edits", "tree")]
        names: list[Any] = [fields.get(name) for name in ("goal", "graph", "model", "space")]
        return cls(lists[0], fields.get("below"), lists[1], lists[2], *names)


def read_certificates(path: Path) -> Iterator[Certificate]:
    """The certificates of a file, one on each line.

    Raises:
        InputError: a line is not a certificate, naming it.
    """
    for place, line in enumerate(read_bytes(path).splitlines(), 1):
        if line.strip():
            try:
                yield Certificate.from_plain(json.loads(line))
            except (ValueError, RecursionError) as problem:
                raise InputError(f"{path}, line {place}: {problem}") from problem
