"""What a method is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import TYPE_CHECKING

from butfor.checks import is_finite, is_whole
from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from butfor.problem.problem import Budget, Problem, Proposal

__all__ = ["BatchMethod", "Method"]


class Method(ABC):
    """A frozen dataclass of hyper-parameters with one verb.

    A method keeps no state between calls, reads no files, shows no progress and does not declare its
    own success: it proposes, and `butfor.result.verify` decides. `butfor.testing.check_method` is the contract.
    """

    def __post_init__(self) -> None:
        """Refuse hyper-parameters of another kind than declared: 1.5 is no number of epochs.

        Raises:
            InputError: naming the first of them.
        """
        for item in fields(self):  # type: ignore[arg-type]  # every method is a dataclass; its base says nothing
            _check_kind(item.name, getattr(self, item.name), str(item.type))

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


def _check_kind(name: str, value: object, declared: str) -> None:
    """Check numbers and switches by the text of their type; what else there is, methods check themselves."""
    kinds = {kind.strip() for kind in declared.split("|")}
    if (value is None and "None" in kinds) or (isinstance(value, str) and "Literal" in declared):
        return
    if "Literal" in declared and not is_whole(value):
        raise InputError(f"{name} is {value!r}; give one of the words for it")
    fits = {"int": is_whole(value), "float": is_finite(value), "bool": isinstance(value, bool)}
    words = {"int": "a whole number", "float": "a finite number", "bool": "True or False"}
    for kind in kinds & words.keys():
        if not fits[kind]:
            raise InputError(f"{name} is {value!r}; give {words[kind]}{' or None' if 'None' in kinds else ''}")
