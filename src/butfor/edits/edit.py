"""The kinds of edits: one file each, listed here."""

from __future__ import annotations

from typing import Any

from butfor.boundary.json_values import Misfit, shown
from butfor.edits.addition import Addition
from butfor.edits.change import Change
from butfor.edits.deletion import Deletion

__all__ = ["KINDS", "Edit", "read_edit"]

Edit = Deletion | Addition | Change

# In the order in which they are told.
KINDS: tuple[type[Deletion] | type[Addition] | type[Change], ...] = (Deletion, Addition, Change)


def read_edit(plain: Any) -> Edit:
    """The edit whose plain data these are.

    Raises:
        Misfit: it is none.
    """
    if isinstance(plain, (list, tuple)) and plain:
        for kind in KINDS:
            if plain[0] == kind.kind:
                return kind.read(plain[1:])
    raise Misfit(f"{shown(plain)} is no edit")
