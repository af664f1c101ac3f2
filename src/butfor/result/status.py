"""How sure a result is, and what a model predicts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Prediction", "Status"]


class Status(str, Enum):
    """How sure a result is; `sentence` says it to a person, whatever the goal and the costs were.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 605)
        >>> cf.status is butfor.Status.OPTIMAL, cf.status == "optimal"
        (True, True)
        >>> print(cf.status.sentence)
        A counterfactual was found, and it is proved that no better one exists.
    """

    OPTIMAL = "optimal"
    FOUND = "found"
    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"
    REACHED = "reached"
    FAILED = "failed"

    @property
    def sentence(self) -> str:
        """What the status means; `Counterfactual.verdict` says it of one result."""
        return {
            Status.OPTIMAL: "A counterfactual was found, and it is proved that no better one exists.",
            Status.FOUND: "A counterfactual was found; a better one may exist.",
            Status.IMPOSSIBLE: "It is proved that no allowed edits reach the goal.",
            Status.UNKNOWN: "No counterfactual was found; one may exist.",
            Status.REACHED: "The goal is reached on the intact graph: nothing has to change.",
            Status.FAILED: "The search broke off with an error: nothing is known.",
        }[self]

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Prediction:
    """A predicted class and its probability, or the number that the class was read from.

    Attributes:
        label: the number of the class; -1 where none was computed.
        name: what it is called.
        probability: of the class; None for a model that returns one number.
        value: that number.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> cf = butfor.explain(model, data, 605)
        >>> print(cf.before, "before,", cf.after, "after")
        'motif' (0.93) before, 'base' (0.83) after
        >>> cf.before.label, cf.before.name
        (1, 'motif')
    """

    label: int
    name: str
    probability: float | None
    value: float | None = None

    @classmethod
    def unknown(cls) -> Prediction:
        """That of a target for which the model was not run."""
        return cls(-1, "unknown", None)

    def __str__(self) -> str:
        number = self.probability if self.value is None else self.value
        # Adding 0 turns the -0.00 of a small negative number into 0.00.
        return f"'{self.name}'" if number is None else f"'{self.name}' ({round(number, 2) + 0.0:.2f})"
