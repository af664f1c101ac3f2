"""What counts as a changed prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from butfor.boundary.arguments import is_number, is_whole
from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

__all__ = ["Goal"]

# What an infinite score is taken for in a margin.
ENDLESS = 1e100


@dataclass(frozen=True)
class Goal:
    """Another class than before, or a wanted one.

    Attributes:
        wanted: the class to reach, by its number or, where the graph names its classes, by its name; None for any other
            class.
        least: by how much, in scores, it must lead over every class it may not be.
        probability: the least probability that it must have.
        threshold: for a model that returns one number, where the upper of two classes begins: class 0 is at most this,
            class 1 is above. ``least`` is then how far beyond it the number must be.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> goal = butfor.Goal(wanted="base", probability=0.7)
        >>> print(goal)
        class base, with a probability of at least 0.7
        >>> print(butfor.explain(model, data, 597, goal=goal))
        Node 597 is predicted 'motif' (0.85). But for these 2 of its 14 edges it would be 'base' (0.83):
            596–597, 599–600.
        >>> butfor.explain(model, data, 597, goal=butfor.Goal(wanted="motif")).status
        <Status.REACHED: 'reached'>
    """

    wanted: int | str | None = None
    least: float = 0.0
    probability: float | None = None
    threshold: float | None = None

    def __str__(self) -> str:
        words = ["any other class" if self.wanted is None else f"class {self.wanted}"]
        if self.threshold is not None:
            words.append(f"above or below {_exactly(self.threshold)}")
        if self.least:
            words.append(f"by at least {_exactly(self.least)}")
        if self.probability is not None:
            words.append(f"with a probability of at least {_exactly(self.probability)}")
        return ", ".join(words)

    def named(self, names: Sequence[str]) -> Goal:
        """The same goal with the wanted class by its number.

        Raises:
            InputError: no class has this name.
        """
        if not isinstance(self.wanted, str):
            return self
        if self.wanted in names:
            return replace(self, wanted=names.index(self.wanted))
        if self.wanted.isdecimal():
            return replace(self, wanted=int(self.wanted))
        known = f" ({', '.join(names)})" if names else "; give its number"
        raise InputError(f"wanted: {self.wanted!r} is no class of this graph{known}")

    @property
    def lead(self) -> float:
        """A lead over every other class that is necessary; also sufficient if no probability is asked for."""
        if self.probability is None or self.probability <= 0.5:
            return self.least
        # p / (1 - p) is the ratio to all other classes together, so to each of them it is no less.
        return max(self.least, math.log(self.probability / (1 - self.probability)))

    def check(self, num_classes: int) -> None:
        """Refuse a goal that this model cannot have.

        Raises:
            InputError: the wanted class does not exist, or the least margin is negative or not a number.
        """
        for name in ("least", "probability", "threshold"):
            value = getattr(self, name)
            if not is_number(value) and (value is not None or name == "least"):
                raise InputError(f"{name} of the goal is {value!r}; give a number")
        if self.wanted is not None and not is_whole(self.wanted):
            raise InputError(f"class {self.wanted!r} is wanted; give the number of a class")
        if is_whole(self.wanted) and not 0 <= self.wanted < num_classes:
            raise InputError(f"class {self.wanted} is wanted, but the model has classes 0 to {num_classes - 1}")
        if not 0 <= self.least < math.inf:
            raise InputError(f"the least margin is {self.least}; give a finite number that is not negative")
        if self.probability is not None and not 0 < self.probability < 1:
            raise InputError(f"the least probability is {self.probability}; it must lie between 0 and 1")
        if self.probability is not None and self.threshold is not None:
            raise InputError("a model that returns one number gives no probabilities; use least instead of probability")
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise InputError(f"the threshold is {self.threshold}; give a finite number")

    @property
    def label(self) -> int | None:
        """The number of the wanted class; None for any other class."""
        assert not isinstance(self.wanted, str), "names become numbers by `named`"
        return self.wanted

    def margin(self, logits: Tensor, before: Tensor | int) -> Tensor:
        """How far each row of scores is from the goal: positive before it is reached, negative after."""
        wanted = before if self.label is None else self.label
        own = logits.new_full((), wanted).long() if isinstance(wanted, int) else wanted.to(logits.device)
        own = own.expand(logits.shape[:-1]).unsqueeze(-1)
        mine = logits.gather(-1, own).squeeze(-1)
        others = logits.scatter(-1, own, -math.inf).amax(-1)
        return mine - others if self.wanted is None else others - mine

    def slope(self, scores: NDArray[np.floating[Any]], before: int) -> NDArray[np.float64]:
        """The derivatives of the margin with respect to the scores of one target."""
        own = before if self.label is None else self.label
        others = scores.copy()
        others[own] = -np.inf
        first = others == others.max()
        slope = np.where(first, -1 / max(first.sum(), 1), 0.0)
        slope[own] = 1.0
        return slope if self.wanted is None else -slope

    def pairs(self, num_classes: int, before: int) -> NDArray[np.float64]:
        """A row per other class, a difference of logits: the margin is the least, or the largest for a wanted class."""
        own = before if self.label is None else self.label
        others = np.delete(np.eye(num_classes), own, axis=0)
        differences: NDArray[np.float64] = np.eye(num_classes)[own] - others
        return differences if self.wanted is None else -differences

    def judge(self, logits: Tensor, before: NDArray[np.int64] | int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The margin of each row of scores, and whether it reaches the goal: it is the predicted class that decides."""
        # NumPy takes a tenth of the time that torch takes for a few rows, and methods ask often.
        scores = logits.detach().cpu().numpy().astype(np.float64)
        lead, predicted = _lead(scores, before if self.label is None else self.label), scores.argmax(axis=1)
        margins = lead if self.wanted is None else -lead
        met = predicted != before if self.wanted is None else predicted == self.label
        # A model that breaks down after an edit predicts nothing.
        if not np.isfinite(scores).all():
            met &= np.isfinite(scores.max(axis=1))
        if self.least:
            met &= margins <= -self.least
        if self.probability is not None:
            with np.errstate(invalid="ignore"):
                met &= self.probability * np.exp(scores - scores.max(axis=1)[:, None]).sum(axis=1) <= 1
        return margins, met


def _lead(scores: NDArray[np.float64], own: NDArray[np.int64] | int) -> NDArray[np.float64]:
    """By how much one class leads over all others, in each row.

    A score of -inf is a class that cannot be: margins stay finite, and the class stays the last.
    """
    if not np.isfinite(scores).all():
        scores = np.clip(scores, -ENDLESS, ENDLESS)
    rows = slice(None) if isinstance(own, int) else np.arange(len(scores))
    others = scores.copy()
    others[rows, own] = -np.inf
    lead: NDArray[np.float64] = scores[rows, own] - others.max(axis=1)
    return lead


def _exactly(number: float) -> str:
    """A short number if it says all; goals that differ must read differently."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))
