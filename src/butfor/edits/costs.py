"""What edits cost and how many there may be."""

from __future__ import annotations

from butfor.boundary.arguments import is_finite
from butfor.boundary.json_values import shown
from butfor.boundary.limits import check_size
from butfor.errors import InputError

__all__ = ["check_cost", "check_count"]

# Roughly what an edit takes while a method searches, in bytes.
BYTES_PER_EDIT = 1024


def check_cost(cost: float, what: str) -> None:
    """Refuse a cost that is not positive.

    Raises:
        InputError: naming it.
    """
    if not (is_finite(cost) and cost > 0):
        raise InputError(f"the cost of {what} is {shown(cost)}; give a positive number")


def check_count(edits: int, what: str) -> None:
    """Refuse rules that would list more edits than fit into memory.

    Raises:
        InputError: naming the rule.
    """
    check_size(edits * BYTES_PER_EDIT, f"{what} makes {edits} edits, which", InputError)
