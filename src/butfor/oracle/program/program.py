"""What is known of the program of one target, or why it has none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from butfor.oracle.program.bounding.owners import Changes
from butfor.oracle.program.kernels.bound import bound
from butfor.oracle.program.trace import Untraceable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.program.bounding.plain.sieve import PlainBounding
    from butfor.oracle.program.bounding.sieve import Bounding
    from butfor.oracle.program.kernels.bound import Bound
    from butfor.oracle.program.kernels.flat import Edited
    from butfor.oracle.program.layout import Layout
    from butfor.oracle.program.steps import Value
    from butfor.oracle.program.trace import Trace

__all__ = ["NOTHING_CHANGES", "NothingChanges", "Program", "Refused"]

# Why there is no program, and need not be.
NOTHING_CHANGES = "an output that no edit can change"


class NothingChanges(Untraceable):
    """No edit can change the output.

    Attributes:
        trace: the run that showed it.
        beyond: as in `Program`.
    """

    def __init__(self, trace: Trace, beyond: str) -> None:
        super().__init__(NOTHING_CHANGES)
        self.trace, self.beyond = trace, beyond


@dataclass(eq=False)
class Refused:
    """Why a target has no program.

    Attributes:
        reason: in words.
        trace: the run that was recorded; None where it could not be.
        beyond, is_local: as in `Program`.
    """

    reason: str
    trace: Trace | None = None
    beyond: str = "a run that cannot be followed"
    is_local: bool | None = None


@dataclass(eq=False)
class Program:
    """What is known of the program of one target.

    Attributes:
        layout: the program.
        out: its scores, as steps.
        features: the values in which edits set features.
        edited: what each edit does to it.
        trace: the run that it was made from.
        beyond: why something outside the neighbourhood might matter to the target; empty where nothing can.
        is_part: whether it is a part of the program of the whole graph.
        is_local: whether nothing outside matters, as far as that is known.
        bounding: what bounds read of it, for each kind of margin that was asked for.
        plain: likewise, plain intervals.
    """

    layout: Layout
    out: Value
    features: list[Value]
    edited: Edited
    trace: Trace
    beyond: str
    is_part: bool = False
    is_local: bool | None = None
    bounding: dict[tuple[bool, bytes], Bounding | None] = field(default_factory=dict)
    plain: dict[tuple[bool, bytes], PlainBounding | None] = field(default_factory=dict)
    _bound: dict[int, Bound] = field(default_factory=dict)

    @property
    def changes(self) -> Changes:
        """The features that edits set, each in the value that holds it."""
        edited, numbers = self.edited, self.layout.features
        values = [self.features[numbers.index(int(number))] for number in edited.of]
        before = [_data(value)[row, c] for value, row, c in zip(values, edited.rows, edited.features, strict=True)]
        edits = np.repeat(np.arange(len(edited.change_pointers) - 1), np.diff(edited.change_pointers))
        return Changes(edits, values, edited.rows, edited.features, np.array(before, dtype=float), edited.values)

    def bound(self, thread: int) -> Bound:
        """For compiled code, with the values before any edit: a copy for each thread that asks."""
        if thread not in self._bound:
            self._bound[thread] = bound(self.layout.flat, self.layout.state(), self.edited)
        return self._bound[thread]


def _data(value: Value) -> NDArray[np.float64]:
    assert value.data is not None
    return value.data
