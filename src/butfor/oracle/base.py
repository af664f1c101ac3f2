"""What an oracle is: it answers what the model says after many sets of edits at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from butfor.edits.edits import Edits
    from butfor.oracle.relaxation import Relaxation

__all__ = ["Influence", "Oracle", "Sieve", "Sieved"]


@dataclass(frozen=True)
class Influence:
    """What further edits can do at most.

    Attributes:
        limits: how far each of the free edits lowers the margin at most, whichever others went before it.
        total: how far all that may follow lower it together at most.
        work: it took about as long as so many evaluations, and is counted so.
    """

    limits: NDArray[np.float64]
    total: float
    work: int = 0


@dataclass(frozen=True, eq=False)
class Sieved:
    """Edit sets that were not ruled out: each prefix (with -1 behind its edits) and each of its candidates.

    Attributes:
        prefixes, candidates, pointers: as `Oracle.extend` takes them.
        spent: what bounds have cost, in evaluations.
        done: whether these are the last.
    """

    prefixes: NDArray[np.int64]
    candidates: NDArray[np.int64]
    pointers: NDArray[np.int64]
    spent: int
    done: bool


class Sieve(ABC):
    """All sets of at most so many edits, but for those that cannot reach the goal."""

    @abstractmethod
    def next(self, most: int, threads: int = 1) -> Sieved:
        """Go on until bounds have cost so many evaluations, or enough was found.

        Where several threads can share the work, each may spend that much.
        """


class Oracle(ABC):
    """Answers for many edit sets of many targets at once."""

    @abstractmethod
    def logits(self, asked: Sequence[tuple[Edits, NDArray[np.int64]]]) -> list[Tensor]:
        """For each target's edits and packed edit sets, one row of scores per set, by making the edits."""

    @abstractmethod
    def relax(self, asked: Sequence[Edits]) -> Relaxation | None:
        """The relaxation for these targets; None where the model has no faithful one."""

    @abstractmethod
    def extend(
        self,
        edits: Edits,
        prefixes: NDArray[np.int64],
        candidates: NDArray[np.int64],
        pointers: NDArray[np.int64],
        threads: int = 1,
    ) -> Tensor:
        """The scores after prefix ``i`` and candidate ``j``, for j from pointers[i] to pointers[i + 1]."""

    def refusal(self, edits: Edits) -> str:  # noqa: ARG002
        """Why it cannot answer for these edits; empty where it can."""
        return ""

    def proves_locality(self, edits: Edits) -> bool:  # noqa: ARG002
        """Whether it follows from what the model did that nothing beyond the neighbourhood matters to the target."""
        return False

    def sees_beyond(self, edits: Edits) -> bool:  # noqa: ARG002
        """Whether it is certain that the neighbourhood is too small."""
        return False

    @property
    def knows_layers(self) -> bool:
        """Whether it knows the model's code, not only what it did: then the model does that on every graph."""
        return False

    @abstractmethod
    def batch_size(self, edits: Edits) -> int:
        """How many edit sets of this target it answers in one go; a question may be cut into such pieces."""

    @abstractmethod
    def relevant(self, edits: Edits) -> NDArray[np.bool_]:
        """Which edits can matter at all: False only where it is certain that they cannot."""

    def equivalence_classes(self, edits: Edits) -> NDArray[np.int64]:
        """A number for each edit; edits with the same number may be exchanged in any set, at the same cost.

        Unless an oracle knows better, no two are.
        """
        return np.arange(len(edits))

    def influence(
        self,
        edits: Edits,  # noqa: ARG002
        pairs: NDArray[np.float64],  # noqa: ARG002
        removed: Sequence[int],  # noqa: ARG002
        free: NDArray[np.int64],  # noqa: ARG002
        more: int,  # noqa: ARG002
    ) -> Influence | None:
        """How far further edits can lower a margin at most; None where nothing is proved.

        It holds for every set of ``removed`` and at most ``more`` of the ``free`` edits, and for each
        combination of scores that is a row of ``pairs``.
        """
        return None

    def margin_bound(
        self,
        edits: Edits,  # noqa: ARG002
        pairs: NDArray[np.float64],  # noqa: ARG002
        removed: Sequence[int],  # noqa: ARG002
        free: NDArray[np.int64],  # noqa: ARG002
        more: int,  # noqa: ARG002
        every: bool = True,  # noqa: ARG002
        enough: float = 0.0,  # noqa: ARG002
    ) -> float | None:
        """What the margin is at least after ``removed`` and at most ``more`` of the ``free`` edits; None if unknown.

        The margin is the least of those that are the rows of ``pairs``, or if not ``every`` the largest. A bound need
        be no larger than ``enough``.
        """
        return None

    def sieve(
        self,
        edits: Edits,  # noqa: ARG002
        pairs: NDArray[np.float64],  # noqa: ARG002
        every: bool,  # noqa: ARG002
        order: NDArray[np.int64],  # noqa: ARG002
        size: int,  # noqa: ARG002
        limit: float,  # noqa: ARG002
        needed: float,  # noqa: ARG002
    ) -> Sieve | None:
        """All sets of at most ``size`` edits that may have a margin of at most ``needed``; None where all might.

        Edits are decided in the given order, and a set costs no more than ``limit``. A set may be left out that does
        what a smaller one does, or that is smaller than ``size`` where there is a limit: whoever asks has covered the
        smaller sizes before. The margin is as in `margin_bound`.
        """
        return None
