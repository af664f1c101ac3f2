"""Where nothing was found: the result of another edit space beside the first one, which is left as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from butfor.result.status import Status

if TYPE_CHECKING:
    from butfor.result.counterfactual import Counterfactual

__all__ = ["is_without_answer", "with_otherwise"]


def is_without_answer(result: Counterfactual) -> bool:
    """Whether a counterfactual was looked for and none was found."""
    return result.status in (Status.IMPOSSIBLE, Status.UNKNOWN)


def with_otherwise(result: Counterfactual, other: Counterfactual, allowed: str, then_allowed: str) -> Counterfactual:
    """The same result with that of another edit space beside it, and a note that says what would help.

    Args:
        result: the result without an answer; what it claims is left as it is.
        other: the result for the same target in the other edit space.
        allowed: what was allowed, in words.
        then_allowed: what is allowed in the other edit space.
    """
    if allowed == then_allowed:  # other rules for the same kinds of edits
        allowed, then_allowed = f"allowed {allowed}", f"{then_allowed} under the other rules"
    none = f"No {allowed} do it" if result.status is Status.IMPOSSIBLE else f"No {allowed} were found that do it"
    if other.found:
        count = "1 edit" if other.size == 1 else f"{other.size} edits"
        helps = f"with {then_allowed} a counterfactual of {count} was found"
        proved = ", and it is proved that none costs less" if other.status is Status.OPTIMAL else ""
        told = f"{none}; {helps}{proved}."
    elif other.status is Status.IMPOSSIBLE:
        told = f"{none}, and it is proved that nothing does with {then_allowed}."
    else:
        told = f"{none}, nor was anything found with {then_allowed}."
    return replace(result, otherwise=other, note=f"{result.note} {told}".strip())
