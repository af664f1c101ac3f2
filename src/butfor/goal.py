"""What counts as a changed prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["Goal"]


@dataclass(frozen=True)
class Goal:
    """Another class than before, or a wanted one.

    Attributes:
        wanted: the class to reach; None for any other class.
        least: by how much, in scores, it must lead over every class it may not be.
    """

    wanted: int | None = None
    least: float = 0.0

    def __str__(self) -> str:
        target = "any other class" if self.wanted is None else f"class {self.wanted}"
        return f"{target}, by at least {self.least:g}" if self.least else target

    def check(self, num_classes: int) -> None:
        """Refuse a goal that this model cannot have.

        Raises:
            InputError: the wanted class does not exist, or the least margin is negative or not a number.
        """
        if self.wanted is not None and not 0 <= self.wanted < num_classes:
            raise InputError(f"class {self.wanted} is wanted, but the model has classes 0 to {num_classes - 1}")
        if not self.least >= 0:
            raise InputError(f"the least margin is {self.least}; it cannot be negative")

    def margin(self, logits: Tensor, before: Tensor | int) -> Tensor:
        """How far each row of scores is from the goal: positive before it is reached, negative after."""
        own = torch.as_tensor(before if self.wanted is None else self.wanted, device=logits.device)
        own = own.expand(logits.shape[:-1]).unsqueeze(-1)
        mine = logits.gather(-1, own).squeeze(-1)
        others = logits.scatter(-1, own, -torch.inf).amax(-1)
        return mine - others if self.wanted is None else others - mine

    def pairs(self, num_classes: int, before: int) -> NDArray[np.float64]:
        """The differences of two scores that the margin is the least or the largest of, one in each row."""
        own = before if self.wanted is None else self.wanted
        others = np.delete(np.eye(num_classes), own, axis=0)
        differences: NDArray[np.float64] = np.eye(num_classes)[own] - others
        return differences if self.wanted is None else -differences

    def reached(self, logits: Tensor, before: Tensor | int) -> Tensor:
        """Whether each row of scores meets the goal: it is the predicted class that decides."""
        predicted = logits.argmax(-1)
        met = predicted != before if self.wanted is None else predicted == self.wanted
        # A model that breaks down after an edit predicts nothing.
        met = met & ~(logits.isnan() | (logits == torch.inf)).any(-1)
        return met & (self.margin(logits, before) <= -self.least) if self.least else met
