"""What a method is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from butfor.problem import Budget, Problem, Proposal

__all__ = ["BatchMethod", "Method"]


class Method(ABC):
    """A frozen dataclass of hyper-parameters with one verb.

    A method keeps no state between calls, reads no files, shows no progress and does not declare its
    own success: it proposes, and `butfor.verify` decides. `butfor.testing.check_method` is the contract.
    """

    @abstractmethod
    def solve(self, problem: Problem, budget: Budget) -> Proposal:
        """Search for the cheapest edits that reach the problem's goal."""


class BatchMethod(Method):
    """A method that works on many targets at once."""

    @abstractmethod
    def solve_batch(self, problems: Sequence[Problem], budget: Budget) -> Iterator[tuple[int, Proposal]]:
        """Search for all of them; give the number of each problem with its proposal as it is done."""

    def solve(self, problem: Problem, budget: Budget) -> Proposal:
        """A batch of one."""
        ((_, proposal),) = self.solve_batch([problem], budget)
        return proposal
