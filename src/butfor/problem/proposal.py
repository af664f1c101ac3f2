"""What a method found."""

from __future__ import annotations

import warnings
from dataclasses import InitVar, dataclass, field

__all__ = ["Proposal"]


@dataclass(frozen=True)
class Proposal:
    """What a method found; nothing is a counterfactual until it is verified.

    Attributes:
        candidates: edit sets believed to reach the goal, the best first.
        lower_bound: proved: no set that costs less reaches the goal.
        exhausted: proved: no set of allowed edits reaches it.
        alternatives: other sets, as cheap as the best candidate.
        complete: proved: with the best candidate these are all sets of that cost.
        margins: of the candidates, as far as the search knows them.
        note: what the user should know about this search.
        tree: the proof of the lower bound, or of ``exhausted``, written down (see `butfor.certificate`), if asked for.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> problem = butfor.prepare(model, data).problem(597)
        >>> proposal = butfor.Greedy().solve(problem)
        >>> proposal.lower_bound, problem.edits.records(proposal.candidates[0])
        (1.0, (Deletion(source=596, target=597, relation=None),))
    """

    candidates: tuple[tuple[int, ...], ...] = ()
    lower_bound: float = 0.0
    exhausted: bool = False
    alternatives: tuple[tuple[int, ...], ...] = ()
    complete: bool = False
    margins: tuple[float, ...] = ()
    note: str = ""
    tree: tuple[int, ...] | None = field(default=None, repr=False)
    evaluations: InitVar[int | None] = None

    def __post_init__(self, evaluations: int | None) -> None:
        if evaluations is not None:
            warnings.warn(
                "evaluations of a Proposal is no longer needed: the problem counts what it is asked",
                DeprecationWarning,
                stacklevel=3,
            )
